"""What a saved agent keeps in addition to its state: labels and, for a class outside of gainful, its module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.agents.files import AGENT_FILE
from gainful.agents.labels import AgentLabels
from gainful.archive import read_archive, write_archive
from gainful.errors import InvalidAgentError

LABELS = AgentLabels(("new", "worn"), ("run", "service", "replace"), "cost")


def test_labels_come_back_from_a_file(tmp_path: Path) -> None:
    agent = gf.UCRL2(n_states=2, n_actions=3)
    agent.labels = LABELS
    agent.save(tmp_path / "a")
    assert gf.load_agent(tmp_path / "a").labels == LABELS


def test_labels_come_back_from_a_durable_agent(tmp_path: Path) -> None:
    agent = gf.SCALPlus(n_states=2, n_actions=3, span=1.0)
    agent.labels = LABELS
    with gf.open_agent(tmp_path / "a", agent) as live:
        live.observe(0, 1, 0.5, 1)
        live.snapshot()
    with gf.open_agent(tmp_path / "a") as live:
        assert live.copy().labels == LABELS


def test_an_agent_without_labels_has_none_after_loading(tmp_path: Path) -> None:
    gf.UCRL2(n_states=2, n_actions=3).save(tmp_path / "a")
    header, _ = read_archive(AGENT_FILE, tmp_path / "a")
    assert (header["version"], header["labels"], header["module"]) == (2, None, "")
    assert gf.load_agent(tmp_path / "a").labels is None


@pytest.mark.parametrize(
    "labels",
    [
        {"states": ["new"]},
        {"actions": ["run", "run", "stop"]},
        {"states": "ab"},
        {"states": [1, 2]},
        {"objective": "luck"},
        {"other": 1},
        ["new", "worn"],
        7,
    ],
)
def test_labels_that_cannot_be_are_refused(labels: Any, tmp_path: Path) -> None:
    gf.UCRL2(n_states=2, n_actions=3).save(tmp_path / "a")
    header, arrays = read_archive(AGENT_FILE, tmp_path / "a")
    write_archive(AGENT_FILE, tmp_path / "a", {**header, "labels": labels}, arrays)
    with pytest.raises(InvalidAgentError, match="truncated or damaged"):
        gf.load_agent(tmp_path / "a")


class OwnAgent(gf.UCRL2):
    """A class outside of gainful."""


def test_a_saved_agent_says_where_its_class_is_defined(tmp_path: Path) -> None:
    OwnAgent(n_states=2, n_actions=3).save(tmp_path / "a")
    header, _ = read_archive(AGENT_FILE, tmp_path / "a")
    assert header["module"] == f"{__name__}:OwnAgent"
