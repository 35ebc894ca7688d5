"""The slope of regret over ln T in tables, beside the constant of ergodic environments and of no others."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.agents import registry
from gainful.cli.run import summary_table
from gainful.experiments.log_slopes import ANY_JOINT_LAW, MOST_PAIRS, constant_of, log_slope, with_log_slopes

STEPS = np.array([1, 10, 100, 1000, 2000, 5000, 10_000])


def stored(name: str, parameters: dict[str, Any], slope: float, agent: str = "psrl") -> pd.DataFrame:
    """Two runs whose expected regret is slope·ln t, and a little more for one of them."""
    text = json.dumps({"names": [name, agent], "environment": parameters, "agent": {}})
    runs = [
        pd.DataFrame(
            {
                "environment": f"the {name}",
                "agent": f"the {agent}",
                "parameters": text,
                "seed": seed,
                "run_id": f"{name}/{agent}/{seed}",
                "step": STEPS,
                **dict.fromkeys(("expected_regret", "pseudo_regret", "regret"), seed + slope * np.log(STEPS)),
                "planning_seconds": 1.0,
                "acting_seconds": 1.0,
            }
        )
        for seed in (0, 1)
    ]
    return pd.concat(runs, ignore_index=True)


def test_the_slope_is_that_of_the_last_decade() -> None:
    early = np.where(STEPS < 1000, 1e6, 7.0 * np.log(STEPS))
    assert log_slope(STEPS, early) == pytest.approx(7.0, rel=1e-12, abs=0)
    assert math.isnan(log_slope([1, 100], [0.0, 1.0]))
    assert math.isnan(log_slope(STEPS, np.full(STEPS.size, np.nan)))
    assert math.isnan(log_slope([], []))


def test_the_constant_is_known_for_small_ergodic_environments_only() -> None:
    small = gf.environments.riverswim_ergodic(3)
    assert constant_of("riverswim-ergodic", {"n_states": 3}) == gf.theory.asymptotic_slope(small).slope
    assert constant_of("riverswim", {}) is None
    assert constant_of("riverswim-ergodic", {"n_states": MOST_PAIRS}) is None
    assert constant_of("my_module:river", {}) is None
    assert constant_of("lqg", {}) is None
    assert constant_of("riverswim-ergodic", {"n_states": "three"}) is None


def test_the_table_of_a_sweep_has_the_ratio_where_it_is_known() -> None:
    C = constant_of("riverswim-ergodic", {"n_states": 3})
    assert C is not None
    frame = pd.concat([stored("riverswim-ergodic", {"n_states": 3}, 0.5 * C), stored("riverswim", {}, 9.0)])
    table = with_log_slopes(gf.summary(frame, resamples=10), frame).assign(guarantee="no")
    found = table.set_index("environment")
    assert found.loc["the riverswim-ergodic", "slope_ratio"] == pytest.approx(0.5, rel=1e-12, abs=0)
    assert found.loc["the riverswim", "log_slope"] == pytest.approx(9.0, rel=1e-12, abs=0)
    assert bool(found["slope_ratio"].isna()["the riverswim"])
    heads = [column.header for column in summary_table(table).columns]
    assert "slope/C" in heads
    assert "slope/C" not in [c.header for c in summary_table(table[table["environment"] == "the riverswim"]).columns]


def test_the_constant_is_that_of_what_the_agent_takes_for_unknown() -> None:
    river: Any = {"n_states": 3}
    joint, product = (constant_of("riverswim-ergodic", river, "joint"), constant_of("riverswim-ergodic", river))
    assert joint is not None
    assert product is not None
    assert joint > product > 0.0
    frame = pd.concat([stored("riverswim-ergodic", river, joint, agent) for agent in ("imed-rl", "psrl")])
    table = with_log_slopes(gf.summary(frame, resamples=10), frame).set_index("agent")
    assert table["slope_class"].to_dict() == {"the imed-rl": "joint", "the psrl": "product"}
    assert table.loc["the imed-rl", "slope_ratio"] == pytest.approx(1.0, rel=1e-12, abs=0)
    assert table.loc["the psrl", "slope_ratio"] == pytest.approx(joint / product, rel=1e-12, abs=0)


def test_every_agent_is_in_the_table_or_has_a_posterior_or_no_claim_of_its_own() -> None:
    assert set(registry.names()) - ANY_JOINT_LAW == {"psrl", "opt-psrl", "epsilon-greedy-q", "fixed"}
    assert set(registry.names()) > ANY_JOINT_LAW
