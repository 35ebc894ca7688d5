"""How hard an MDP is to learn: published numbers of RiverSwim, and what is left out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("n", "diameter"), [(6, 14.72), (12, 34.72), (20, 61.39), (40, 128.06), (70, 228.06), (100, 328.06)]
)
def test_riverswim_has_the_published_diameter_local_diameter_and_support(n: int, diameter: float) -> None:
    """Bourel, Maillard & Talebi 2020, tables 1 and 2; they print 6.67 for S = 6, too, which is 6.661."""
    found = gf.hardness(gf.environments.riverswim(n))
    assert found.diameter == pytest.approx(diameter, rel=0, abs=0.005)
    assert found.local_diameter == pytest.approx(6.661 if n == 6 else 6.67, rel=0, abs=0.0005 if n == 6 else 0.005)
    assert found.support == pytest.approx(1.40, rel=0, abs=0.005)
    assert (found.ergodic, found.slope) == (False, None)


def test_riverswim_has_the_published_size_of_the_regret_of_ucrl3() -> None:
    """R(UCRL3) = 30.0 for S = 6 in the same tables: sqrt(Σ max{D_s²·L_sa, 1}) + D; without the maximum it is 29.8."""
    river = gf.environments.riverswim(6)
    times = gf.hitting_times(river)
    each = gf.theory.local_diameters(river, times)[:, None] ** 2 * gf.theory.effective_supports(river)
    found = float(np.sqrt(np.maximum(each, 1.0).sum()) + times.max())
    assert found == pytest.approx(30.0, rel=0, abs=0.05)
    assert float(np.sqrt(each.sum()) + times.max()) < 29.95


def test_the_terms_of_ucrl3_are_those_of_its_theorem() -> None:
    river, T, delta = gf.environments.riverswim(6), 1e7, 0.01
    times, r_max = gf.hitting_times(river), 1.0
    each = gf.theory.local_diameters(river, times)[:, None] ** 2 * gf.theory.effective_supports(river)
    D, root = times.max(), math.sqrt(T * math.log(6 * 36 * 2 * math.sqrt(T + 1) / delta))
    first = r_max * (5 * math.sqrt(each.sum()) + 10 * math.sqrt(12) + 2 * D) * root
    found = gf.theory.ucrl3_regret_terms(T, river, delta=delta)
    assert found.total - found.supports == pytest.approx(first, rel=1e-12, abs=0)
    assert found.supports == pytest.approx(30 * D * 3 * 12 ** (2 / 3) * T ** (1 / 3), rel=1e-12, abs=0)
    with pytest.raises(InvalidArgumentError, match="cannot be reached"):
        gf.theory.ucrl3_regret_terms(T, gf.environments.weakly_communicating_toy())


def test_a_next_state_that_is_listed_with_several_rewards_was_counted_several_times() -> None:
    plain = gf.MDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[0.5], [0.0]])
    split = gf.MDP.from_rows([0, 3, 4], [0, 0, 1, 0], [0.25, 0.25, 0.5, 1.0], [1.0, 0.0, 0.5, 0.0], n_actions=1)
    assert split.n_transitions == 4
    for mdp in (plain, split):
        assert gf.theory.effective_supports(mdp).tolist() == [[1.0], [0.0]]
    terms = [
        gf.theory.ucrl3_regret_terms(1e6, mdp).supports / (mdp.reward_max - mdp.reward_min) for mdp in (plain, split)
    ]
    assert terms[0] == terms[1]


def test_gaps_span_and_variance_are_those_of_the_definition() -> None:
    mdp = gf.environments.riverswim(6)
    found, gaps, plan = gf.hardness(mdp), gf.optimality_gaps(mdp), gf.solve(mdp, precision=1e-11)
    P, _ = mdp.to_dense()
    variance = max(float(p @ plan.bias**2 - (p @ plan.bias) ** 2) for row in P for p in row)
    assert found.inverse_gaps == pytest.approx(float(np.sum(1 / gaps[gaps > 0])), rel=1e-9, abs=0)
    assert found.least_gap == gaps[gaps > 0].min()
    assert found.span == pytest.approx(plan.span, rel=1e-8, abs=0)
    assert found.variance == pytest.approx(variance, rel=1e-6, abs=0)


def test_relaxation_of_two_states_by_hand() -> None:
    chain = gf.MDP([[[0.9, 0.1]], [[0.3, 0.7]]], [[0.0], [1.0]])  # eigenvalues 1 and 0.6
    assert gf.hardness(chain).relaxation == pytest.approx(2.5, rel=1e-12, abs=0)
    turning = gf.MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [1.0]])
    assert gf.hardness(turning).relaxation == math.inf
    told = gf.hardness(turning).to_dict()
    assert told["relaxation"] is None
    assert "relaxation is infinite" in told["skipped"]
    json.dumps(told, allow_nan=False)


def test_what_takes_long_is_left_out_and_said() -> None:
    found = gf.hardness(gf.environments.riverswim(6), max_states=5)
    assert (found.diameter, found.local_diameter, found.relaxation) == (None, None, None)
    assert found.skipped == ("diameters: more than 5 states", "mixing: more than 5 states")
