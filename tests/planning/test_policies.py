"""Policies as people write them: mappings, tables and files; and how far they are from optimal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import gainful as gf
from gainful.errors import GainfulError, InvalidArgumentError, MultichainError
from tests.strategies import mdps

RIVER = gf.environments.riverswim(3)
MIXED = {"left bank": "right", "river 1": {"left": 0.25, "right": 0.75}, "right bank": "left"}
AS_ARRAY = [[0.0, 1.0], [0.25, 0.75], [1.0, 0.0]]
ROWS = {
    "state": ["left bank", "river 1", "river 1", "right bank"], "action": ["right", "left", "right", "left"],
    "probability": [1.0, 0.25, 0.75, 1.0],
}  # fmt: skip


def test_a_policy_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "policy.csv", index=False)
    frame.to_parquet(tmp_path / "policy.parquet")
    (tmp_path / "policy.json").write_text(json.dumps(MIXED))
    printed = [{"state": s, ("probabilities" if isinstance(a, dict) else "action"): a} for s, a in MIXED.items()]
    (tmp_path / "printed.json").write_text(json.dumps({"gain": 0.1, "policy": printed}))
    files = [tmp_path / name for name in ("policy.csv", "policy.parquet", "policy.json", "printed.json")]
    wanted = gf.evaluate(RIVER, AS_ARRAY)
    policies: tuple[Any, ...] = (MIXED, frame, *files, str(files[0]))
    for policy in policies:
        found = gf.evaluate(RIVER, policy)
        assert np.array_equal(found.policy, wanted.policy)
        assert found.gain_from_start == wanted.gain_from_start


def test_states_with_one_action_may_be_left_out() -> None:
    mdp = gf.MDP([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], [[1.0, 0.0], [2.0, 0.0]], allowed=[[True, True], [True, False]])
    assert gf.evaluate(mdp, {0: 0}).gain_from_start == 1.5
    assert gf.evaluate(mdp, {"0": 0}).gain_from_start == 1.5
    with pytest.raises(InvalidArgumentError, match="no action for state '0', expected"):
        gf.evaluate(mdp, {1: 0})


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        ({"left bank": "right"}, "no action for states 'river 1', 'right bank'"),
        ({**MIXED, "sea": "right"}, "there is no state 'sea'"),
        ({**MIXED, "left bank": "rihgt"}, "did you mean 'right'"),
        ({**MIXED, "left bank": {"left": 0.5, "right": 0.6}}, "probabilities in state left bank"),
        ({**MIXED, "left bank": {"left": float("nan")}}, "expected a number in"),
        ({**MIXED, "left bank": {"left": "much"}}, "expected a number in"),
        ({**MIXED, "left bank": {"left": 1e300}}, "expected a number in"),
        ({**MIXED, "left bank": None}, "there is no action 'None'"),
        ({**MIXED, "left bank": ["left"]}, "there is no action"),
        (pd.DataFrame({"state": ["left bank"] * 2, "action": ["left", "right"]}), "row 1: state left bank has two"),
        (pd.DataFrame({"state": ["left bank"] * 2, "action": ["left", "left"]}), "twice"),
        (pd.DataFrame({"state": ["left bank"]}), "column 'action' missing"),
        ("nowhere.csv", "no such file"),
        ("nowhere.json", "no such file"),
        ("policy.exe", "not supported"),
    ],
)
def test_policies_that_cannot_be(policy: Any, match: str) -> None:
    with pytest.raises(GainfulError, match=match):
        gf.evaluate(RIVER, policy)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xff\xfe{}", "not UTF-8"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"river 1": "left", "river 1": "right"}', "occurs twice"),
        (b'[{"state": "river 1", "action": "left"}, {"state": "river 1", "action": "right"}]', "two actions"),
        (b'[{"state": ["river 1"], "action": "left"}]', "a state is"),
        (b'[{"state": "river 1"}]', "there is no action 'None'"),
        (b'[{"action": "left"}]', "not a policy"),
        (b"7", "not a policy"),
        (b"[]", "no action for"),
    ],
)
def test_files_of_policies_that_cannot_be(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "policy.json").write_bytes(content)
    with pytest.raises(GainfulError, match=match):
        gf.evaluate(RIVER, tmp_path / "policy.json")


# ---------------------------------------------------------------------- how far from optimal


@given(mdps(communicating=True, costs=True))
@settings(max_examples=15)
def test_the_losses_of_the_states_add_up_to_the_distance_from_the_optimum(mdp: gf.MDP) -> None:
    found = gf.evaluate(mdp, mdp.allowed.argmax(axis=1))
    lost = found.shortfall
    distance = abs(gf.solve(mdp, precision=1e-9).gain - found.gain_from_start)
    assert lost.total == pytest.approx(distance, rel=0, abs=1e-8)
    assert lost.by_state.sum() == pytest.approx(lost.total, rel=0, abs=1e-7)
    assert (lost.per_visit >= 0.0).all()


def test_an_optimal_policy_loses_nothing_anywhere() -> None:
    plan = gf.solve(RIVER)
    lost = gf.evaluate(RIVER, plan).shortfall
    assert not lost.per_visit.any()
    assert lost.total == pytest.approx(0.0, rel=0, abs=1e-8)
    assert lost.to_frame()["best"].tolist() == ["right"] * 3


def test_losses_are_per_unit_of_time_where_time_is_continuous() -> None:
    queue = gf.environments.admission_control(capacity=3)
    found = gf.evaluate(queue, queue.allowed.argmax(axis=1))
    assert found.shortfall.by_state.sum() == pytest.approx(found.shortfall.total, rel=0, abs=1e-7)


def test_there_is_no_distance_where_no_gain_is_optimal_everywhere() -> None:
    apart = gf.MDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [1.0]])
    found = gf.evaluate(apart, [0, 0])
    with pytest.raises(MultichainError):
        found.shortfall
