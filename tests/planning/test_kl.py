from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import brentq

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.confidence import KLBall
from tests.planning.rows import Array, dense, maxima, random_mdp, random_values


def dual(p: list[Decimal], v: list[Decimal], radius: Decimal, nu: Decimal) -> Decimal:
    """An upper bound for any ν > max v: p·v <= ν - exp(Σ p̄ ln(ν-v) - ρ) on the ball, by Jensen's inequality."""
    return nu - (sum((a * (nu - b).ln() for a, b in zip(p, v, strict=True) if a > 0), Decimal(0)) - radius).exp()


def exact_maximum(p: Array, radius: float, v: Array) -> float:
    """The least dual bound, to 50 digits, by golden-section search over ν (the dual is convex in ν)."""
    with localcontext() as context:
        context.prec = 60
        P, V, rho = [Decimal(float(x)) for x in p], [Decimal(float(x)) for x in v], Decimal(radius)
        total = sum(P, Decimal(0))
        P = [x / total for x in P]
        top, unit = max(V), max(V) - min(V)
        if unit == 0:
            return float(top)
        low, high = Decimal(-100), Decimal(60)  # ln((ν - top)/unit)
        ratio = (Decimal(5).sqrt() - 1) / 2
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        fa, fb = (dual(P, V, rho, top + unit * x.exp()) for x in (a, b))
        for _ in range(180):
            if fa < fb:
                high, b, fb = b, a, fa
                a = high - ratio * (high - low)
                fa = dual(P, V, rho, top + unit * a.exp())
            else:
                low, a, fa = a, b, fb
                b = low + ratio * (high - low)
                fb = dual(P, V, rho, top + unit * b.exp())
        return float(min(fa, fb))


def divergence(p: Array, q: Array) -> float:
    return math.fsum(x * math.log(x / y) for x, y in zip(p, q, strict=True) if x > 0.0)


@pytest.mark.parametrize("seed", range(10))
def test_the_best_row_reaches_the_dual_bound(seed: int) -> None:
    """Its value is at most one rounding above the exact maximum, and at most 1e-12 of the range below."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 6))
    mdp = random_mdp(rng, S, 1, 4)  # supports are partial: the best state often has probability 0
    v = random_values(rng, S)
    radius = rng.choice([1e-12, 1e-5, 0.01, 0.3, 2.0, 20.0], size=(S, 1))
    q, rows = maxima(mdp, KLBall(radius), v)
    P = mdp.to_dense()[0].reshape(S, S)
    for k in range(S):
        exact = exact_maximum(P[k], float(radius[k, 0]), v)
        assert -1e-12 <= q[k] - exact <= 1e-14
        p = dense(rows, k, S)
        assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-14)
        assert divergence(P[k], p) <= radius[k, 0] * (1 + 1e-12) + 1e-15
        assert p @ v == pytest.approx(q[k], rel=0, abs=1e-14)


@pytest.mark.parametrize("p", [0.3, 1e-6, 1 - 1e-6])
@pytest.mark.parametrize("radius", [1e-9, 1e-3, 0.5, 5.0])
def test_two_states_match_the_binary_divergence(p: float, radius: float) -> None:
    mdp = MDP([[[1 - p, p]], [[1.0, 0.0]]], [[0.0], [0.0]])
    q, _ = maxima(mdp, KLBall(np.full((2, 1), radius)), np.array([0.0, 1.0]))

    def excess(x: float) -> float:
        return p * math.log(p / x) + (1 - p) * math.log((1 - p) / (1 - x)) - radius

    largest = 1.0 - 1e-16
    exact = largest if excess(largest) < 0.0 else float(brentq(excess, p, largest, xtol=1e-15, rtol=1e-14))
    assert q[0] == pytest.approx(exact, rel=0, abs=1e-9 if radius < 1e-6 else 1e-12)
    assert q[1] == pytest.approx(-math.expm1(-radius), rel=1e-14, abs=0)  # KL((1,0), (1-r,r)) = -ln(1-r)


def test_radius_zero_is_the_row_and_infinity_the_simplex() -> None:
    mdp = random_mdp(np.random.default_rng(8), 6, 2, 4)
    v = np.random.default_rng(9).random(6)
    q, rows = maxima(mdp, KLBall(np.zeros((6, 2))), v)
    assert q == pytest.approx(mdp.matrix() @ v, rel=0, abs=1e-15)
    assert dense(rows, 3, 6) == pytest.approx(mdp.to_dense()[0].reshape(-1, 6)[3], rel=0, abs=1e-15)
    q, rows = maxima(mdp, KLBall(np.full((6, 2), np.inf)), v)
    assert np.all(q == v.max())
    assert dense(rows, 0, 6)[v.argmax()] == 1.0


def test_equal_values_give_that_value_whatever_the_radius() -> None:
    mdp = random_mdp(np.random.default_rng(8), 4, 1, 4)
    for radius in (0.0, 1e-300, 1e-8, 1.0, 1e4, np.inf):
        q, _ = maxima(mdp, KLBall(np.full((4, 1), radius)), np.full(4, 0.7))
        assert np.all(q == 0.7)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_extreme_radii_and_scales_stay_between_mean_and_maximum(scale: float) -> None:
    rng = np.random.default_rng(12)
    mdp = random_mdp(rng, 8, 2, 5)
    v = scale * rng.random(8)
    mean = mdp.matrix() @ v
    before = mean - 1e-15 * scale
    for radius in (1e-300, 1e-30, 1e-18, 1e-12, 1e-6, 1e-2, 1.0, 30.0, 700.0, 1e5, 1e300):
        q, _ = maxima(mdp, KLBall(np.full((8, 2), radius)), v)
        assert np.all(q >= before - 1e-15 * scale)  # increasing in the radius
        assert np.all(q <= v.max() * (1 + 1e-15))
        before = q
    assert before == pytest.approx(np.full(16, v.max()), rel=1e-15, abs=0)


def test_truncated_pairs_do_not_move_to_unreachable_states() -> None:
    """The ball of a truncated pair is that of the pair if the others were worth least."""
    rng = np.random.default_rng(4)
    mdp, v = random_mdp(rng, 5, 2, 2), rng.random(5)
    reachable = np.ones(5, dtype=bool)
    best = int(v.argmax())
    reachable[best] = False
    listed = mdp.to_dense()[0].reshape(10, 5)[:, best] > 0.0
    truncated = ~listed.reshape(5, 2)
    radius = rng.uniform(0.01, 1.0, (5, 2))
    q, rows = maxima(mdp, KLBall(radius, reachable, truncated), v)
    free, _ = maxima(mdp, KLBall(radius), v)
    worthless, _ = maxima(mdp, KLBall(radius), np.where(reachable, v, 0.0))
    assert np.array_equal(q, np.where(listed, free, worthless))
    assert np.any(q < free)
    assert all(dense(rows, k, 5)[best] == 0.0 for k in np.flatnonzero(~listed).tolist())


def test_bad_radii_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"radius\[0, 1\] is nan"):
        KLBall(np.array([[0.1, np.nan]]))
