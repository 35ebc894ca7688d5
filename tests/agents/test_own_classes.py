"""Agents of a user's own class in files and folders: found again by their module, and no file causes an import."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.files import AGENT_FILE, agent_state
from gainful.archive import write_archive
from gainful.errors import InvalidAgentError, InvalidArgumentError, JournalError, UnknownNameError
from gainful.user_modules import load_object
from tests.experiments.user_code import forget, write_module

RIVER = gf.environments.riverswim(3)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(folder: Path, module: str) -> tuple[Any, Path]:
    """A saved agent of the class Uniform in a new module, which is then forgotten."""
    write_module(folder, module)
    agent = load_object(f"{module}:Uniform")(3, 2, b=2.0, seed=4)
    gf.simulate(agent, RIVER, 200, seed=1)
    agent.save(folder / "mine.agent")
    forget(module)
    return agent, folder / "mine.agent"


def test_an_agent_of_ones_own_class_is_saved_and_loaded(home: Path) -> None:
    agent, file = saved(home, "own_a")
    again = gf.load_agent(file, allow=["own_a"])
    assert (type(again).__name__, again.b, again.t) == ("Uniform", 2.0, 200)
    assert again.act(0) == agent.act(0)
    assert np.array_equal(again.statistics.visits, agent.statistics.visits)
    assert gf.load_agent(file).b == 2.0  # imported meanwhile


def test_no_saved_agent_causes_an_import(home: Path) -> None:
    _, file = saved(home, "own_b")
    (home / "own_b.py").write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(InvalidAgentError, match=r"import own_b first, or, if you trust it, say allow=\['own_b'\]"):
        gf.load_agent(file)
    with pytest.raises(InvalidAgentError, match="own_b"):
        gf.load_agent(file, allow=["own", "own_bb", "b"])
    assert "own_b" not in sys.modules


@pytest.mark.parametrize(
    "module",
    ["os:system", "builtins:dict", "subprocess:Popen", "os:path.join", "no_such:Thing", "a b", "x:", "gainful:errors"],
)
def test_a_file_cannot_name_anything_but_a_class_of_agents(home: Path, module: str) -> None:
    header, arrays = agent_state(gf.UCRL2(3, 2))
    file = home / "hostile.agent"
    write_archive(AGENT_FILE, file, {**header, "module": module}, arrays)
    with pytest.raises(InvalidAgentError, match=r"hostile\.agent: "):
        gf.load_agent(file)
    for odd in (3, ["os:system"], {"a": 1}):
        write_archive(AGENT_FILE, file, {**header, "module": odd}, arrays)
        with pytest.raises(InvalidAgentError):
            gf.load_agent(file)


def test_a_class_that_is_unknown_does_not_ask_for_an_upgrade_alone(home: Path) -> None:
    write_module(home, "own_c")
    header, arrays = agent_state(load_object("own_c:Uniform")(3, 2))
    first_version = home / "old.agent"
    write_archive(AGENT_FILE, first_version, {**header, "module": ""}, arrays)
    with pytest.raises(InvalidAgentError, match=r"'Uniform' is not a class of this gainful; if it is your own, allow"):
        gf.load_agent(first_version)
    assert gf.load_agent(first_version, allow=["own_c"]).n_states == 3


def test_a_class_that_has_changed_says_so(home: Path) -> None:
    _, file = saved(home, "own_d")
    source = (home / "own_d.py").read_text(encoding="utf-8")
    (home / "own_d.py").write_text(source.replace("b: float = 1.0", "c: float = 1.0"), encoding="utf-8")
    with pytest.raises(InvalidAgentError, match=r"cannot be made again: .*its class may have changed since"):
        gf.load_agent(file, allow=["own_d"])


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    class Local(gf.UCRL2):
        pass

    with pytest.raises(InvalidArgumentError, match="Local cannot be found again by its name"):
        Local(3, 2).save(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="does not take delta; let Narrow"):
        Narrow(3, 2).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


class Narrow(gf.UCRL2):
    def __init__(self, n_states: int, n_actions: int, reward_max: float = 1.0, reward_min: float = 0.0) -> None:
        super().__init__(n_states, n_actions, reward_max=reward_max, reward_min=reward_min)


class Acting(gf.UCRL2):
    def act(self, state: int) -> int:
        return 0


def test_a_discretised_agent_of_ones_own_class_is_saved_and_loaded(home: Path) -> None:
    write_module(home, "own_e")
    agent = gf.Discretized(load_object("own_e:Uniform"), gf.Partition.uniform(bins=4), n_actions=2, b=3.0)
    agent.observe(0.1, 0, 0.5, 0.7)
    agent.save(home / "cells")
    forget("own_e")
    with pytest.raises(InvalidAgentError, match="import own_e first"):
        gf.load_agent(home / "cells")
    assert gf.load_agent(home / "cells", allow=["own_e"]).core.b == 3.0


# ---------------------------------------------------------------------- folders


CONFIG = {"n_states": 3, "n_actions": 2, "seed": 4}


def test_a_durable_agent_of_ones_own_class(home: Path) -> None:
    write_module(home, "own_f")
    with gf.open_agent(home / "pump", {"agent": "own_f:Uniform", "b": 2.0, **CONFIG}) as agent:
        agent.report(agent.act(0).decision_id, reward=0.5, next_state=1)
        assert agent.kind == "Uniform"
    forget("own_f")
    with pytest.raises(JournalError, match=r"pump: .*import own_f first, or, if you trust it, say allow=\['own_f'\]"):
        gf.open_agent(home / "pump")
    with pytest.raises(JournalError, match="own_f"):
        gf.live.recover(home / "pump", home / "saved")
    assert "own_f" not in sys.modules
    table = gf.live.read_journal(home / "pump")  # the table needs no class
    assert len(table) == 3
    assert "own_f" not in sys.modules
    with gf.open_agent(home / "pump", allow=["own_f"]) as agent:
        assert agent.t == 1
    forget("own_f")
    assert gf.live.recover(home / "pump", home / "saved", allow=["own_f"]).observations == 1
    with pytest.raises(JournalError, match="stored own_f:Uniform, given UCRL2"):
        gf.open_agent(home / "pump", {"agent": "ucrl2", **CONFIG})


def test_a_durable_agent_does_not_ignore_verbs_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="Acting has its own act, which a durable agent would not call"):
        gf.open_agent(tmp_path / "a", Acting(3, 2))

    class Plain:
        def act(self, state: int) -> int:
            return 0

        def observe(self, *transition: Any) -> None:
            pass

    with pytest.raises(InvalidArgumentError, match="config makes a Plain, expected an agent that is derived"):
        gf.open_agent(tmp_path / "a", Plain())
    assert not list(tmp_path.iterdir())


def test_names_of_agents_in_a_config(home: Path) -> None:
    with gf.open_agent(home / "a", {"agent": "SCAL+", "span": 2.0, **CONFIG}) as agent:
        assert agent.kind == "SCALPlus"
    with pytest.raises(UnknownNameError, match="there is no module 'no_such'"):
        gf.open_agent(home / "b", {"agent": "no_such:Thing", **CONFIG})


def test_a_hostile_folder_causes_no_import(home: Path) -> None:
    with gf.open_agent(home / "a", {"agent": "ucrl2", **CONFIG}):
        pass
    (home / "evil.py").write_text("raise SystemExit", encoding="utf-8")
    for file in (home / "a").iterdir():
        if zipfile.is_zipfile(file):
            assert b"evil" not in file.read_bytes()
    kept = json.loads((home / "a" / "agent.json").read_text(encoding="utf-8"))
    kept["module"] = "evil:Agent"
    kept.pop("checksum", None)
    (home / "a" / "agent.json").write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(JournalError):
        gf.open_agent(home / "a")
    assert "evil" not in sys.modules
