from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError


@pytest.mark.parametrize("T", [12, 1e4, 1e9])
@pytest.mark.parametrize(
    ("S", "A", "gamma", "c", "r_max"), [(6, 2, 3, 7.0, 1.0), (3, 1, 1, 0.5, 4.0), (20, 5, 20, 0.0, 1.0)]
)
def test_the_bound_is_theorem_11(T: float, S: int, A: int, gamma: int, c: float, r_max: float) -> None:
    T = max(T, S * A)
    pairs, x = S * A, c / r_max
    log = math.log(6 * S**2 * A * math.sqrt(T) / 0.1)
    expected = (
        (x * (2 * math.sqrt(gamma) + 2 * math.sqrt(2)) + 5) * math.sqrt(pairs * T * log)
        + x * math.sqrt(T * log)
        + 4 * math.sqrt(T)
        + x * ((4 + 4 / 3 * gamma * log) * pairs * math.log(T) + pairs * (2 + math.log2(4 * T / pairs)))
        + 3 * pairs
    )
    found = gf.theory.regret_bound(T, S, A, span=c, support=gamma, reward_max=r_max, delta=0.1, bonus="sharp")
    assert found == pytest.approx(r_max * expected, rel=1e-12, abs=0)


def test_on_cells_the_bound_is_that_of_the_page() -> None:
    T, K, A, c, L = 1e6, 20, 3, 2.0, 1.5
    log, roots = math.log(6 * K**2 * A * math.sqrt(T) / 0.05), math.sqrt(K * A * T)
    expected = (
        (1.5 * c + 2) * L * 20**-0.5 * T
        + 2 * math.sqrt(2) * roots * (c * math.sqrt(K * math.log(2) + log) + (c + 2) * math.sqrt(log))
        + c * math.sqrt(T * log)
        + 4 * math.sqrt(T)
        + c * (4 * K * A * math.log(T) + 2 * K * A + K * A * math.log2(4 * T / (K * A)))
        + 3 * K * A
    )
    found = gf.theory.regret_bound(T, K, A, span=c, lipschitz=L, holder=0.5, bins=20, bonus="sharp")
    assert found == pytest.approx(expected, rel=1e-12, abs=0)
    with pytest.raises(InvalidArgumentError, match="belong together"):
        gf.theory.sharp_terms(T, K, A, span=c, lipschitz=L)
    with pytest.raises(InvalidArgumentError, match="no bound for this mixture"):
        gf.theory.regret_bound(T, K, A, span=c, bonus="sharp", mixture="min-action")


def test_beta_covers_a_mean_at_all_times() -> None:
    """The level itself: the one-sided deviation of a fair coin, 1,000 runs of 1,000 tosses, S = 1, so δ' = δ/2."""
    n = np.arange(1, 1001)
    tosses = np.random.default_rng(5).random((1000, 1000)) < 0.5
    below = 0.5 - np.cumsum(tosses, axis=1) / n
    crossed = np.any(below > gf.theory.sharp_beta(n, 1, 0.2), axis=1).mean()
    assert 0.0 < crossed <= 0.1
