"""The √Γ of optimism: families whose excess is known in closed form, and the slopes that must come out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.audit.tightness import even_split, evenly_visited, fitted_slopes, fixed_bias, measured_tightness
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError

S, A, C = 16, 2, 0.8


@pytest.mark.parametrize("family", [fixed_bias, even_split])
@pytest.mark.parametrize(("span", "stay"), [(0.4, 0.0), (4.0, 0.9)])
def test_families_have_the_bias_and_the_gain_they_say(family: object, span: float, stay: float) -> None:
    assert callable(family)
    for support in (2, 6, 16):
        mdp: gf.MDP = family(S, A, support, span=span, stay=stay, instance=3)
        plan = gf.solve(mdp, precision=1e-9)
        assert plan.gain == pytest.approx(0.5, rel=0, abs=1e-8)
        assert plan.span == pytest.approx(span, rel=0, abs=1e-6)
        assert int(np.diff(mdp.indptr).max()) <= support + (stay > 0)


@pytest.mark.parametrize(("support", "options"), [(3, {}), (32, {}), (4, {"span": 1.1})])
def test_families_that_cannot_be(support: int, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        even_split(S, A, support, **options)


@pytest.mark.parametrize("law", ["deterministic", "bernoulli"])
def test_evenly_visited(law: str) -> None:
    mdp = gf.environments.garnet(6, 2, 3, reward_law="bernoulli" if law == "bernoulli" else "deterministic")
    truth = Truth.of(mdp)
    found = evenly_visited(truth, 10**6, seed=1)
    assert (found.visits == 10**6).all()
    P, R = mdp.to_dense()
    for k in range(12):
        p = np.zeros(6)
        states, counts = found.row(k)
        p[states] = counts / 10**6
        assert np.abs(p - P[k // 2, k % 2]).max() < 6 * 0.5 / 1000  # six standard deviations at most
    assert np.abs(found.reward_sum / 10**6 - R.reshape(-1)).max() < (6 * 0.5 / 1000 if law == "bernoulli" else 1e-9)
    if law == "bernoulli":
        assert np.array_equal(found.reward_squares, found.reward_sum)
    again = evenly_visited(truth, 10**6, seed=1)
    assert np.array_equal(found.count, again.count)


def test_excess_in_closed_form() -> None:
    """Even split: SCAL+ (c + r_max)·β, SCAL c·sqrt(3.5·(Γ-1)·b/N), UCRL2 c·radius/2 + its reward width."""
    N, delta = 10**9, 0.05
    t = S * A * N + 1
    b = math.log(2 * S * A * t / delta)
    table = measured_tightness(lambda g, seed: even_split(S, A, g, span=C, instance=seed), (4, 16), [N], seeds=(0,))
    for support in (4, 16):
        found = table[table["support"] == support].set_index("agent")["mean"]
        # counts are random: L̂h* moves by about c·sqrt(1/N)/2, a fiftieth of the bonus
        assert found["SCALPlus"] == pytest.approx((C + 1.0) * math.sqrt(7 * b / N), rel=0.1, abs=0)
        assert found["SCAL"] == pytest.approx(C * math.sqrt(3.5 * (support - 1) * b / N), rel=0.05, abs=0)
        log = math.log(6 * S * A * N / delta)
        assert found["UCRL2B"] == pytest.approx(C * math.sqrt((support - 1) * log / N), rel=0.05, abs=0)
        radius = math.sqrt(14 * S * math.log(2 * A * t / delta) / N)
        width = math.sqrt(3.5 * b / N)
        assert found["UCRL2"] == pytest.approx(C * radius / 2 + width, rel=0.1, abs=0)


def test_scal_grows_like_the_root_of_the_support_and_scal_plus_does_not() -> None:
    table = measured_tightness(
        lambda g, seed: even_split(64, A, g, instance=seed), (8, 16, 32, 64), [10**3, 10**8], seeds=(0, 1)
    )
    assert (table["least"] > -1e-7).all()  # optimistic everywhere
    slope = fitted_slopes(table).set_index(["agent", "visits"])["slope"]
    assert slope["SCALPlus", 10**8] == pytest.approx(0.0, rel=0, abs=0.01)
    assert slope["UCRL2", 10**8] == pytest.approx(0.0, rel=0, abs=0.01)
    root = math.log(63 / 7) / 2 / math.log(64 / 8)  # of sqrt(Γ - 1) between 8 and 64: 0.528
    assert slope["SCAL", 10**8] == pytest.approx(root, rel=0, abs=0.02)
    assert slope["UCRL2B", 10**8] == pytest.approx(root, rel=0, abs=0.02)
    assert slope["SCAL", 10**3] == pytest.approx(0.0, rel=0, abs=0.01)  # every interval still is [0, 1]


def test_slopes_need_two_supports() -> None:
    table = measured_tightness(
        lambda g, seed: even_split(4, 1, g, instance=seed), (2,), [100], seeds=(0,), agents=["SCAL"]
    )
    with pytest.raises(InvalidArgumentError, match="two values of support"):
        fitted_slopes(table)


def test_unknown_agents_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="PSRL"):
        measured_tightness(lambda g, seed: even_split(4, 1, g), (2,), [100], agents=["PSRL"])
