from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.simulation.summary import MeasureSummary, bin_edges, bins_of


def test_a_summary_of_the_cpu_is_that_of_its_runs() -> None:
    mdp = gf.environments.riverswim(6)

    def agent(seed: int) -> gf.UCRL2:
        return gf.UCRL2(6, 2, seed=seed)

    runs = gf.simulate_many(agent, mdp, 200, range(9))
    found = gf.simulate_many(agent, mdp, 200, range(9), keep="summary")
    assert found.n_runs == 9
    for name in ("expected_regret", "regret"):
        values, measure = np.array([getattr(run, name) for run in runs]), getattr(found, name)
        np.testing.assert_allclose(measure.mean, values.mean(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(measure.variance, values.var(axis=0, ddof=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(measure.minimum, values.min(axis=0))
        np.testing.assert_array_equal(measure.quantile(1.0), values.max(axis=0))
        assert measure.counts.sum() == 9 * found.steps.size


def test_batches_add_up_and_quantiles_are_within_their_bin() -> None:
    values = np.random.default_rng(1).normal(50.0, 40.0, (2, 1000))
    together, apart = MeasureSummary.empty(2), MeasureSummary.empty(2)
    together.add(values)
    for part in np.array_split(values, 7, axis=1):
        apart.add(part)
    np.testing.assert_allclose(apart.mean, together.mean, rtol=1e-12)
    np.testing.assert_allclose(apart.variance, together.variance, rtol=1e-12)
    np.testing.assert_array_equal(apart.counts, together.counts)
    for q in (0.1, 0.5, 0.9):
        exact = np.sort(values, axis=1)[:, int(q * 1000) - 1]
        np.testing.assert_allclose(apart.quantile(q), exact, rtol=0.0112, atol=2.0**-10)


@pytest.mark.parametrize("value", [0.0, 2.0**-11, -(2.0**-11), 1.0, -1.0, 3.7e9, -123.4])
def test_a_value_lies_in_its_bin(value: float) -> None:
    edges, found = bin_edges(), int(bins_of(np.array([value]))[0])
    assert edges[found] * (1 + 1e-12 * np.sign(-edges[found])) <= value <= edges[found + 1] + abs(value) * 1e-12
