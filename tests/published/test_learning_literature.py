"""Problems of the reinforcement-learning literature and of other solvers' documentation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gainful as gf
from tests.published.exact import PRECISION, Choice, Row, arrays, optimum


# RiverSwim with Osband's parameters (Osband, Russo & Van Roy 2013; idea of Strehl & Littman 2008) and Maillard's:
# gain, span and diameter worked out by hand for this project (THEORY.md, sections 6 and 7).
@pytest.mark.parametrize(
    ("mdp", "gain", "span", "diameter"),
    [
        (gf.environments.riverswim(6), Fraction(7203, 16805), 6.310324, 14.722338),
        (gf.environments.riverswim_maillard(6), Fraction(248832, 271453), 8.181822, 8.925620),
    ],
    ids=["Osband", "Maillard"],
)
def test_riverswim(mdp: gf.MDP, gain: Fraction, span: float, diameter: float) -> None:
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(float(gain), rel=0, abs=PRECISION)
    assert round(found.span, 6) == span
    assert round(gf.diameter(mdp), 6) == diameter
    assert found.span == pytest.approx(float(gain) * gf.diameter(mdp), rel=0, abs=1e-6)


@pytest.mark.parametrize("S", [2, 3, 4, 8, 12])
def test_riverswim_of_any_length(S: int) -> None:
    q = Fraction(7) ** (S - 3)
    osband = Fraction(3, 5) if S == 2 else 21 * q / (49 * q - 2)
    maillard = Fraction(11 * 12 ** (S - 1), 12**S - 1)
    bourel = Fraction(7 * 8 ** (S - 1), 8**S - 1)
    for mdp, gain in (
        (gf.environments.riverswim(S), osband),
        (gf.environments.riverswim_maillard(S), maillard),
        (gf.environments.riverswim_bourel(S), bourel),
        (gf.environments.riverswim_ergodic(S), maillard),
        (gf.environments.riverswim_ergodic(S, left_success=0.6), maillard),
    ):
        assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(float(gain), rel=0, abs=PRECISION)


# Bourel, Maillard & Talebi 2020: gain, span and diameter as in THEORY.md, section 7.
def test_riverswim_bourel() -> None:
    mdp = gf.environments.riverswim_bourel(25)
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(0.875, rel=0, abs=PRECISION)
    assert round(found.span, 2) == 59.64
    assert round(gf.diameter(mdp), 2) == 68.16
    assert round(gf.diameter(gf.environments.riverswim_bourel(6)), 2) == 13.88


# Strehl & Littman, An analysis of model-based interval estimation for MDPs, JCSS 74 (2008), SixArms: the sixth room is
# entered with probability .01 and pays 6000 per step; a step in the hall loses 6000, 100 of them on average, and coming
# back from another room one more.
def test_six_arms() -> None:
    mdp = gf.environments.six_arms()
    found = gf.solve(mdp, precision=1e-8)
    assert found.gain == pytest.approx(6000.0, rel=0, abs=1e-8)
    assert found.span == pytest.approx(606_000.0, rel=0, abs=1e-3)
    assert gf.diameter(mdp) == pytest.approx(101.0, rel=0, abs=1e-6)


# Fruit, Pirotta, Lazaric & Ortner 2018, three-state domain: THEORY.md, section 6.
@pytest.mark.parametrize("delta", [0.005, 0.1, 0.25, 0.5, 0.8])
def test_toy3d(delta: float) -> None:
    mdp = gf.environments.toy3d(delta)
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(2 / 3, rel=0, abs=PRECISION)
    assert found.span == pytest.approx(1 / (1 - delta), rel=0, abs=1e-6)
    assert gf.diameter(mdp) == pytest.approx(max(1 / delta, 2 / (1 - delta)), rel=0, abs=1e-6)


# The two-state toy of THEORY.md, section 6: span-constrained gain and probability of leaving s1.
@pytest.mark.parametrize("c", [0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 2.0])
def test_two_state_toy_under_a_span_constraint(c: float) -> None:
    plan = gf.scopt(gf.environments.two_state_toy(), span=c, precision=PRECISION)
    assert plan.gain == pytest.approx(min(max(c, 0.5), 1.0), rel=0, abs=PRECISION)
    leave = 1 / (2 + 2 * c) if c < 0.5 else max((1 - c) / (1 + c), 0.0)
    assert plan.policy[1, 0] == pytest.approx(leave, rel=0, abs=1e-7)
    assert plan.span <= c + 1e-7


# Jaksch, Ortner & Auer, Near-optimal regret bounds for reinforcement learning, JMLR 11 (2010), lower bound: two states,
# each left with delta, one action of s0 with delta + epsilon; s1 pays 1. Gain (delta+eps)/(2 delta+eps).
@pytest.mark.parametrize(
    ("delta", "epsilon"),
    [(Fraction(1, 10), Fraction(1, 100)), (Fraction(1, 25), Fraction(1, 50)), (Fraction(1, 3), Fraction(1, 6))],
)
def test_jaksch_lower_bound_piece(delta: Fraction, epsilon: Fraction) -> None:
    rows: list[Choice] = [([1 - delta, delta], 0), ([1 - delta - epsilon, delta + epsilon], 0), ([1 - delta, delta], 0)]
    P, R, allowed = arrays([rows, [([delta, 1 - delta], 1)]])
    mdp = gf.MDP(P, R, allowed=allowed)
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(float((delta + epsilon) / (2 * delta + epsilon)), rel=0, abs=PRECISION)
    assert gf.diameter(mdp) == pytest.approx(float(1 / delta), rel=0, abs=1e-6)


# R. Dearden, N. Friedman & S. Russell, Bayesian Q-learning, AAAI 1998, and M. Strens, A Bayesian framework for
# reinforcement learning, ICML 2000: the 5-state chain with slip .2 and rewards 2 and 10, and the double loop of nine
# states with rewards 1 and 2. Always advancing is optimal on the chain: .2*2 + .8*10*.8^4.
def test_chain() -> None:
    P, R = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    for s in range(5):
        for a, slip in ((0, 0.2), (1, 0.8)):
            P[s, a, 0] += slip
            P[s, a, min(s + 1, 4)] += 1 - slip
        R[s, :, 0] = 2.0
    R[4, :, 4] = 10.0
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert Fraction(1, 5) * 2 + Fraction(4, 5) * 10 * Fraction(4, 5) ** 4 == Fraction(2298, 625)
    assert found.gain == pytest.approx(2298 / 625, rel=0, abs=PRECISION)
    assert found.actions is not None
    assert found.actions.tolist() == [0] * 5


def test_double_loop() -> None:
    # right loop 0-1-2-3-4-0 whatever is done (reward 1 on closing); left loop 0-5-6-7-8-0 needs action 1 at each step
    P, R = np.zeros((9, 2, 9)), np.zeros((9, 2))
    P[0, 0, 1] = P[0, 1, 5] = 1.0
    for s, to in ((1, 2), (2, 3), (3, 4), (4, 0)):
        P[s, :, to] = 1.0
    R[4] = 1.0
    for s, to in ((5, 6), (6, 7), (7, 8), (8, 0)):
        P[s, 0, 0] = P[s, 1, to] = 1.0
    R[8, :] = 2.0
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert found.gain == pytest.approx(2 / 5, rel=0, abs=PRECISION)


# MDPtoolbox (Chadès, Chapron, Cros, Garcia & Sabbadin, Ecography 2014; pymdptoolbox 4.0-b3), docstring of relative
# value iteration. Forest: 3.24 is exact, 4 * .9^2. Two states: the printed 3.885235… stopped at the default epsilon
# = .01, the gain is 35/9 = 3.888…
def test_mdptoolbox_forest() -> None:
    fire = Fraction(1, 10)
    wait: list[Row] = [[fire, 1 - fire, 0], [fire, 0, 1 - fire], [fire, 0, 1 - fire]]
    cut: Row = [1, 0, 0]
    states: list[list[Choice]] = [[(wait[0], 0), (cut, 0)], [(wait[1], 0), (cut, 1)], [(wait[2], 4), (cut, 2)]]
    P, R, _ = arrays(states)
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert found.gain == pytest.approx(4 * 0.81, rel=0, abs=PRECISION)
    assert round(found.gain, 2) == 3.24
    assert found.actions is not None
    assert found.actions.tolist() == [0, 0, 0]


def test_mdptoolbox_two_states() -> None:
    states: list[list[Choice]] = [
        [([Fraction(1, 2), Fraction(1, 2)], 5), ([0, 1], 10)],
        [([Fraction(4, 5), Fraction(1, 5)], -1), ([Fraction(1, 10), Fraction(9, 10)], 2)],
    ]
    assert optimum(states) == (Fraction(35, 9), [1, 0])
    P, R, _ = arrays(states)
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert found.gain == pytest.approx(35 / 9, rel=0, abs=PRECISION)
    assert abs(found.gain - 3.8852352464118312) < 0.01


# R. M. Karp, A characterization of the minimum cycle mean in a digraph, Discrete Mathematics 23 (1978): with sure moves
# the gain is the largest mean weight of a cycle, max_v min_k (D_n(v) - D_k(v))/(n - k).
@pytest.mark.parametrize("seed", range(4))
def test_karp_cycle_mean(seed: int) -> None:
    n, moves = 12, 3
    rng = np.random.default_rng(seed)
    to = rng.integers(0, n, size=(n, moves))
    to[:, 0] = (np.arange(n) + 1) % n  # a cycle through all states: communicating
    weight = rng.integers(-20, 20, size=(n, moves))
    best: list[list[int | None]] = [[0, *([None] * (n - 1))]]  # best[k][v]: heaviest walk of k moves from 0 to v
    for _ in range(n):
        longer: list[int | None] = [None] * n
        for s, value in enumerate(best[-1]):
            if value is not None:
                for a in range(moves):
                    v, total = int(to[s, a]), value + int(weight[s, a])
                    known = longer[v]
                    longer[v] = total if known is None else max(known, total)
        best.append(longer)
    means = []
    for v, last in enumerate(best[n]):
        if last is not None:
            earlier = [(k, best[k][v]) for k in range(n)]
            means.append(min(Fraction(last - d, n - k) for k, d in earlier if d is not None))
    P = np.zeros((n, moves, n))
    for s in range(n):
        P[s, np.arange(moves), to[s]] = 1.0
    found = gf.solve(gf.MDP(P, weight.astype(float)), precision=PRECISION)
    assert found.gain == pytest.approx(float(max(means)), rel=0, abs=PRECISION)
