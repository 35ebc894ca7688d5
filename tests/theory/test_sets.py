"""The equations of the confidence sets against numbers worked out by hand, and against the compiled ones in use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gainful.optimism import bernstein, kl, scal, ucrl2
from gainful.theory import (
    kl_ucrl_radius,
    kl_ucrl_reward_width,
    scal_floor,
    scal_width,
    tucrl_radius,
    tucrl_truncated,
    ucrl2_radius,
    ucrl2_reward_width,
    ucrl2b_width,
)

VISITS = np.array([0, 1, 2, 7, 100, 10**6])
S, A, DELTA = 6, 2, 0.05


def test_ucrl2_by_hand() -> None:
    # 2·S·A·t/δ = 2·6·2·1000/0.05 = 480000, ln = 13.0815413; 7·13.0815413/(2·100) = 0.45785395
    assert ucrl2_reward_width(100, 1000, S, A, DELTA) == pytest.approx(0.67665, rel=0, abs=1e-5)
    # 2·A·t/δ = 80000, ln = 11.2897819; 14·6·11.2897819/100 = 9.4834168
    assert ucrl2_radius(100, 1000, S, A, DELTA) == pytest.approx(3.07952, rel=0, abs=1e-5)


def test_ucrl2b_by_hand() -> None:
    # 6·S·A·N/δ = 6·12·100/0.05 = 144000, ln = 11.8775686; 2·sqrt(0.25·ln/100) + 6·ln/100
    assert ucrl2b_width(100, 0.25, S, A, DELTA) == pytest.approx(0.3446385 + 0.7126541, rel=0, abs=1e-6)


def test_scal_by_hand() -> None:
    # ln(480000) = 13.0815413; sqrt(14·0.25·13.0815413/100) + 49/3·13.0815413/99
    assert scal_width(100, 0.25, 1000, S, A, DELTA) == pytest.approx(0.6766497 + 2.1582341, rel=0, abs=1e-6)
    assert scal_floor(1000, 2.5, 5.0) == pytest.approx(0.002, rel=1e-15, abs=0)
    assert scal_floor(1, 0.1, 1.0) == 1.0


def test_kl_ucrl_by_hand() -> None:
    # T = e⁴: ln T = 4; B = ln(2e·36·2·4/0.05) = ln(31314.7) = 10.351844; C_p = 6·(B + ln(B + .25)·(1 + 1/(B + .25)))
    B = 1.0 + math.log(2 * 36 * 2 * 4 / 0.05)
    constant = 6 * (B + math.log(B + 0.25) * (1 + 1 / (B + 0.25)))
    assert constant == pytest.approx(77.613, rel=0, abs=1e-3)
    assert kl_ucrl_radius(10, math.exp(4), S, A, DELTA) == pytest.approx(constant / 10, rel=1e-14, abs=0)
    # 4·12·4/0.05 = 3840, ln = 8.2532276; /1.99 = 4.1473505
    assert kl_ucrl_reward_width(4, math.exp(4), S, A, DELTA, 3.0) == pytest.approx(3 * 2.036505 / 2, rel=0, abs=1e-5)


@pytest.mark.parametrize("t", [1, 13, 10**7])
def test_the_equations_are_those_in_use(t: int) -> None:
    exact: dict[str, Any] = {"rel": 1e-14, "abs": 0}
    for n in VISITS.tolist():
        logs = ucrl2.reward_log(S, A, t, DELTA), ucrl2.transition_log(A, t, DELTA)
        assert ucrl2_reward_width(n, t, S, A, DELTA, 2.0) == pytest.approx(
            ucrl2.reward_width(logs[0], n, 2.0, 1.0), **exact
        )
        assert ucrl2_radius(n, t, S, A, DELTA) == pytest.approx(ucrl2.transition_radius(S, logs[1], n, 1.0), **exact)
        of_entries = bernstein.width(0.2, bernstein.log_term(S, A, n, DELTA), n, 2.0, 1.0)
        assert ucrl2b_width(n, 0.2, S, A, DELTA, 2.0) == pytest.approx(of_entries, **exact)
        of_scal = scal.width(0.2, scal.log_term(S, A, t, DELTA), n, 2.0, 1.0)
        assert scal_width(n, 0.2, t, S, A, DELTA, 2.0) == pytest.approx(of_scal, **exact)
        assert bool(tucrl_truncated(n, t, S, A)) == bool(bernstein.well_visited(n, S, A, t))
        if t > 1:
            of_rows = kl.transition_radius(kl.transition_constant(S, A, float(t), DELTA), n, 1.0)
            assert kl_ucrl_radius(n, t, S, A, DELTA) == pytest.approx(of_rows, **exact)
            of_rewards = kl.reward_width(kl.reward_constant(S, A, float(t), DELTA), n, 2.0, 1.0)
            assert kl_ucrl_reward_width(n, t, S, A, DELTA, 2.0) == pytest.approx(of_rewards, **exact)


def test_tucrls_width_is_two_and_a_half_times_that_of_ucrl2b() -> None:
    # 0.538 and 0.204 at N = 1000, p = 1/2, t = 10^5, on RiverSwim-6
    assert round(float(scal_width(1000, 0.25, 1e5, S, A, DELTA)), 3) == 0.538
    assert round(float(ucrl2b_width(1000, 0.25, S, A, DELTA)), 3) == 0.204


def test_the_relaxed_radius_sums_over_all_next_states() -> None:
    widths, unseen = (
        scal_width(100, [0.25, 0.25, 0.0], 1000, S, A, DELTA),
        scal_width([100, 100], 0.0, 1000, S, A, DELTA),
    )
    found = tucrl_radius(widths, [0, 0, 1], unseen, S)
    assert found == pytest.approx([2 * widths[0] + 4 * unseen[0], 6 * unseen[1]], rel=1e-14, abs=0)


def test_truncation_begins_above_the_root() -> None:
    # sqrt(t/(SA)) = 3: N - 1 > 3 from N = 5 on; for t < SA every pair is, even those never visited
    assert tucrl_truncated([0, 4, 5], 9 * 12, 6, 2).tolist() == [False, False, True]
    assert tucrl_truncated([0, 1, 2], 11, 6, 2).all()
