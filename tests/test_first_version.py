"""What the first version stored opens in this one, and everything computed is the same, to the bit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import bits

EXPECTED: dict[str, Any] = json.loads((bits.V1 / "digests.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", bits.AGENTS)
def test_a_new_run_has_the_bits_of_the_first_version(name: str) -> None:
    assert bits.new_run(name) == EXPECTED["new"][name]


@pytest.mark.parametrize("name", bits.AGENTS)
def test_an_agent_file_of_the_first_version_continues_to_the_same_bits(name: str) -> None:
    assert bits.continued_agent(name, bits.V1 / "agents" / f"{name}.npz") == EXPECTED["agents"][name]


def test_a_checkpoint_of_the_first_version_continues_to_the_same_bits() -> None:
    assert bits.continued_checkpoint(bits.V1 / "checkpoint.npz") == EXPECTED["checkpoint"]


def test_a_durable_agent_of_the_first_version_continues_to_the_same_bits() -> None:
    assert bits.continued_live(bits.V1 / "live") == EXPECTED["live"]


def test_a_store_of_the_first_version_reads_as_it_did() -> None:
    assert bits.stored(bits.V1 / "store") == EXPECTED["store"]


@pytest.mark.slow
def test_a_store_of_the_first_version_is_resumed_without_running_anything_again() -> None:
    assert bits.resumed_store(bits.V1 / "store") == EXPECTED["resumed"]


def test_every_agent_on_points_stores_the_runs_of_the_first_version() -> None:
    assert bits.experiment(bits.V1 / bits.SPEC_ON_POINTS) == EXPECTED["on-points"]


@pytest.mark.slow
def test_the_quickstart_stores_the_runs_of_the_first_version() -> None:
    assert bits.experiment(bits.V1 / bits.QUICKSTART) == EXPECTED["quickstart"]
