"""Costs and rates are shown as such; a store that does not know the units is shown as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.experiments.environment_facts import facts_of, stored_units
from gainful.experiments.store import Store
from gainful.experiments.sweep import run_experiment
from gainful.mdp.units import Units
from gainful.report.collect import collect
from gainful.report.page import page
from gainful.report.tables import subtitle
from tests.report.conftest import Reporter

SPEC = """
title = "Costs"
horizon = 300
seeds = 1
[[environments]]
name = "machine-replacement"
parameters = { n_states = 4 }
[[environments]]
name = "server-routing"
parameters = { capacity = 2 }
[[agents]]
name = "psrl"
"""


def test_only_units_that_differ_from_rewards_per_step_are_stored() -> None:
    assert set(facts_of(gf.environments.riverswim(6))) == {"gain", "gain_source", "span"}
    costs = facts_of(gf.environments.machine_replacement(4))
    assert costs["gain"] < 0
    assert costs["units"] == {"objective": "cost", "step_duration": 1.0, "continuous": False}
    assert json.loads(json.dumps(costs)) == costs


@pytest.mark.parametrize(
    "units",
    [
        None,
        [],
        "cost",
        {},
        {"objective": "profit", "step_duration": 1.0},
        {"objective": "cost"},
        {"objective": "cost", "step_duration": 0.0},
        {"objective": "cost", "step_duration": float("inf")},
        {"objective": "cost", "step_duration": "1"},
        {"objective": ["cost"], "step_duration": 1.0},
    ],
    ids=str,
)
def test_units_that_no_version_writes_are_those_of_rewards_per_step(units: Any) -> None:
    class Anything(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            return {"units": units}

    assert stored_units(Anything(), "machine-replacement", {}) == Units()
    assert stored_units(Anything(), "no-such-environment", {}) == Units()


@pytest.mark.slow
def test_a_report_shows_costs_as_costs_and_old_stores_as_before(tmp_path: Path, reporter: Reporter) -> None:
    folder = tmp_path / "out"
    assert run_experiment(SPEC, folder, jobs=1).complete
    shown = collect(folder)
    models = [gf.environments.machine_replacement(4), gf.environments.server_routing(2)]
    for environment, model in zip(shown.environments, models, strict=True):
        best = gf.solve(model)
        assert environment.shown_gain == pytest.approx(best.gain, rel=1e-6, abs=0)
        assert f"optimal {model.units.gain_name} {best.gain:.4g}"[:-1] in subtitle(environment)
    told = reporter(folder, "--json").data["environments"]
    assert [one["objective"] for one in told] == ["cost", "cost"]
    assert told[1]["gain_is"] == "average cost per unit of time"
    assert told[0]["gain"] == -told[0]["gain_in_these_units"]
    made = page(shown)
    assert '"Cost per step"' in made
    assert '"Cost per unit of time"' in made
    with Store.open(folder) as store:
        for key, facts in store.facts().items():
            store.keep_facts(key, {name: value for name, value in facts.items() if name != "units"})
    old = collect(folder)
    assert "optimal gain −" in subtitle(old.environments[0])
    assert "Cost per step" not in page(old)
