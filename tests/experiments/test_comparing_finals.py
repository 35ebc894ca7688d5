"""Paired ratios, performance profiles, parameter importance and final values, against their definitions."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gainful.errors import InvalidArgumentError
from gainful.experiments.final_values import final_values
from gainful.experiments.paired_ratios import ratio_of_means
from gainful.experiments.parameter_importance import parameter_effects
from gainful.experiments.performance_profiles import factors_of_best, profile_curve


def by_seed(values: Any) -> dict[int, float]:
    return {seed: float(value) for seed, value in enumerate(values)}


def test_the_ends_of_the_interval_are_where_students_test_turns() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(10.0, 1.0, 12)
    y = 3.0 * x + rng.normal(0.0, 2.0, 12)
    found = ratio_of_means(by_seed(x), by_seed(y), confidence=0.9)
    assert found.ratio == pytest.approx(y.mean() / x.mean(), rel=1e-12)
    for end in (found.low, found.high):
        assert stats.ttest_1samp(y - end * x, 0.0).pvalue == pytest.approx(0.1, rel=1e-9)
    assert found.low < found.ratio < found.high
    assert (found.pairs, found.wins, found.decided) == (12, 12, True)


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(1000):
        x = rng.normal(5.0, 1.0, 6)
        y = 0.5 * x + rng.normal(7.5, 1.0, 6)  # the means are 5 and 10
        found = ratio_of_means(by_seed(x), by_seed(y))
        inside += found.low <= 2.0 <= found.high
    # 950 ± 3.2 standard deviations of 1000 trials at 0.95
    assert 928 <= inside <= 972


def test_only_shared_and_known_seeds_count_and_no_interval_is_made_up() -> None:
    found = ratio_of_means({1: 1.0, 2: 2.0, 3: math.nan}, {2: 6.0, 3: 1.0, 4: 1.0})
    assert (found.ratio, found.pairs, found.wins) == (3.0, 1, 1)
    assert math.isnan(found.low)
    assert math.isnan(ratio_of_means({1: -1.0, 2: -1.0}, {1: 1.0, 2: 1.0}).ratio)
    assert ratio_of_means({}, {1: 1.0}).pairs == 0
    wild = ratio_of_means({1: 1.0, 2: 100.0}, {1: 5.0, 2: 7.0})
    assert math.isnan(wild.high)
    assert not wild.decided
    huge = ratio_of_means({1: 1e200, 2: 1.1e200}, {1: 2e200, 2: 2.1e200})
    assert huge.ratio == pytest.approx(4.1 / 2.1, rel=1e-12)


def test_a_profile_is_the_share_of_problems_within_a_factor() -> None:
    rng = np.random.default_rng(3)
    values: dict[str, Any] = {name: by_seed(rng.uniform(1.0, 9.0, 20)) for name in "ABC"}
    table = np.array([list(v.values()) for v in values.values()])
    values["absent"] = {99: 1.0}
    factors = factors_of_best(values)
    assert list(factors) == ["A", "B", "C"]
    for row, agent in enumerate("ABC"):
        tau, share = profile_curve(factors[agent], 20.0)
        assert (tau[0], tau[-1]) == (1.0, 20.0)
        for at in (1.0, 1.5, 3.0, 8.9):
            wanted = np.mean(table[row] <= at * table.min(axis=0))
            assert share[np.searchsorted(tau, at, side="right") - 1] == pytest.approx(wanted, abs=1e-12)
    zero = factors_of_best({"A": {1: 0.0}, "B": {1: 3.0}})
    assert (zero["A"].tolist(), zero["B"].tolist()) == ([1.0], [math.inf])


def test_shares_are_those_of_an_analysis_of_variance() -> None:
    grid = list(product((0.1, 1.0), ("x", "y", "z"), (True, False)))
    rng = np.random.default_rng(4)
    y = np.array([5.0 * (a == 1.0) + {"x": 0.0, "y": 1.0, "z": 2.0}[b] for a, b, _ in grid])
    y += rng.normal(0.0, 0.1, y.size)
    configurations = [{"a": a, "b": b, "c": c, "same": 7} for a, b, c in grid]
    effects = {e.name: e for e in parameter_effects(configurations, np.exp(y).tolist())}
    assert list(effects) == ["a", "b", "c"]  # the most important first, and nothing that does not vary
    for name, number in (("a", 0), ("b", 1), ("c", 2)):
        levels = [
            [v for v, g in zip(y, grid, strict=True) if g[number] == level] for level in {g[number] for g in grid}
        ]
        between = sum(len(level) * (np.mean(level) - y.mean()) ** 2 for level in levels)
        assert effects[name].share == pytest.approx(between / ((y - y.mean()) ** 2).sum(), rel=1e-9)
    assert effects["b"].levels == ("x", "y", "z")
    assert sum(e.share for e in effects.values()) <= 1.0 + 1e-12


def test_many_values_are_put_into_ranges_and_too_little_gives_nothing() -> None:
    rng = np.random.default_rng(5)
    configurations = [
        {"rate": float(rate), "n": int(n)} for rate, n in zip(rng.random(40), rng.integers(0, 3, 40), strict=True)
    ]
    first, second = parameter_effects(configurations, [math.exp(5.0 * c["rate"]) for c in configurations])
    assert (first.name, len(first.levels), sum(first.configurations)) == ("rate", 4, 40)
    assert first.means == tuple(sorted(first.means))
    assert second.share < 0.2 < 0.8 < first.share
    assert parameter_effects(configurations[:3], [1.0, 2.0, 3.0]) == ()
    assert parameter_effects([{"a": i} for i in range(5)], [1.0, 2.0, 3.0, 4.0, 5.0]) == ()
    assert parameter_effects(configurations[:4], [1.0] * 4) == ()


def test_final_values_are_at_the_last_step_that_all_runs_share() -> None:
    def runs(agent: str, seed: int, steps: list[int]) -> pd.DataFrame:
        y = np.array(steps, dtype=float) + seed
        return pd.DataFrame(
            {
                "environment": "E",
                "agent": agent,
                "seed": seed,
                "run_id": f"{agent}{seed}",
                "step": steps,
                "pseudo_regret": y,
                "regret": y,
                "reward": y,
            }
        )

    frame = pd.concat([runs("a", 0, [1, 10, 100]), runs("a", 1, [1, 10]), runs("b", 0, [1, 10, 100])])
    measure, found = final_values(frame)
    assert (measure, found) == ("pseudo_regret", {"E": {"a": {0: 10.0, 1: 11.0}, "b": {0: 10.0}}})
    with pytest.raises(InvalidArgumentError, match="value is 'wealth'"):
        final_values(frame, "wealth")
    with pytest.raises(InvalidArgumentError, match="unknown for every run"):
        final_values(frame.assign(regret=np.nan), "regret")
