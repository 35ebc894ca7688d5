"""Plans as dictionaries, JSON and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.archive import read_archive, write_archive
from gainful.errors import InvalidPlanError
from gainful.planning.plan_files import PLAN_FILE

RIVER = gf.environments.riverswim(3)


@pytest.fixture(scope="module")
def plan() -> gf.Plan:
    return gf.solve(RIVER)


def test_a_plan_comes_back_as_it_was(tmp_path: Path, plan: gf.Plan) -> None:
    mixed = gf.scopt(RIVER, span=1.0)
    for given in (plan, mixed):
        given.save(tmp_path / "plan")
        found = gf.Plan.load(tmp_path / "plan")
        assert (found.gain, found.gain_bounds, found.sweeps, found.method) == (
            given.gain, given.gain_bounds, given.sweeps, given.method,
        )  # fmt: skip
        assert found.mdp == RIVER
        assert np.array_equal(found.bias, given.bias)
        assert np.array_equal(found.policy, given.policy)
        assert set(found.details) == set(given.details)


def test_the_dictionary_is_json_and_a_policy(tmp_path: Path, plan: gf.Plan) -> None:
    text = plan.to_json(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text() == text
    assert json.loads(text) == plan.to_dict()
    assert plan.to_dict()["policy"][2] == {"state": "right bank", "action": "right", "bias": plan.bias[2]}
    assert gf.evaluate(RIVER, tmp_path / "plan.json").gain_from_start == pytest.approx(plan.gain, rel=0, abs=1e-8)
    mixed = gf.scopt(RIVER, span=1.0)
    assert np.allclose(gf.evaluate(RIVER, mixed.to_dict()["policy"] and _written(tmp_path, mixed)).policy, mixed.policy)


def _written(tmp_path: Path, plan: gf.Plan) -> Path:
    plan.to_json(tmp_path / "mixed.json")
    return tmp_path / "mixed.json"


def test_fractions_of_time_are_those_of_the_policy(plan: gf.Plan) -> None:
    assert np.array_equal(plan.stationary, gf.evaluate(RIVER, plan).stationary)
    assert plan.stationary.sum() == pytest.approx(1.0, rel=0, abs=1e-12)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not an archive"])
def test_files_that_hold_no_plan(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plan").write_bytes(content)
    with pytest.raises(InvalidPlanError):
        gf.Plan.load(tmp_path / "plan")
    RIVER.save(tmp_path / "mdp")
    with pytest.raises(InvalidPlanError, match="gainful-plan"):
        gf.Plan.load(tmp_path / "mdp")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("actions", np.array([0, 0, 2])), ("actions", np.array([0, 0])), ("actions", np.array([0.0, 0.0, 0.0])),
        ("bias", np.array([np.nan, 0.0, 0.0])), ("mdp_indptr", np.array([0, 1])), ("more", np.zeros(3)),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, plan: gf.Plan, name: str, value: Any) -> None:
    plan.save(tmp_path / "plan")
    header, arrays = read_archive(PLAN_FILE, tmp_path / "plan")
    write_archive(PLAN_FILE, tmp_path / "plan", header, {**arrays, name: value})
    with pytest.raises(InvalidPlanError, match="damaged"):
        gf.Plan.load(tmp_path / "plan")


@pytest.mark.parametrize(
    "change", [{"gain": 7.0}, {"gain_bounds": [1.0]}, {"mdp": {}}, {"details": 3}, {"sweeps": "x"}]
)
def test_headers_that_do_not_fit_are_refused(tmp_path: Path, plan: gf.Plan, change: dict[str, object]) -> None:
    plan.save(tmp_path / "plan")
    header, arrays = read_archive(PLAN_FILE, tmp_path / "plan")
    write_archive(PLAN_FILE, tmp_path / "plan", {**header, **change}, arrays)
    with pytest.raises(InvalidPlanError, match="damaged"):
        gf.Plan.load(tmp_path / "plan")
