"""Examples and exercises of textbooks and lecture courses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import gainful as gf
from tests.published.exact import PRECISION, Choice, arrays, linear_programme, optimum


# M. L. Puterman, Markov Decision Processes, Wiley 1994, section 3.1 (Figure 3.1.1): two states, the second absorbing
# and paying -1. Data also in Y. Mansour's 1999 lecture notes. From any state the average reward is that of the second.
def test_puterman_two_states() -> None:
    states: list[list[Choice]] = [[([Fraction(1, 2), Fraction(1, 2)], 5), ([0, 1], 10)], [([0, 1], -1)]]
    P, R, allowed = arrays(states)
    mdp = gf.MDP(P, R, allowed=allowed)
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(-1.0, rel=0, abs=PRECISION)
    # bias: h1 = 5 + 1 + h1/2 + h2/2, so h1 - h2 = 12 > 11 = 10 + 1: the first action
    assert found.bias[0] - found.bias[1] == pytest.approx(12.0, rel=0, abs=1e-6)
    assert found.actions is not None
    assert found.actions.tolist() == [0, 0]


# Puterman 1994, Problem 6.1 with the average reward of chapter 8's problems: which customers get a catalogue?
# The book asks and prints no answer; 85/3 by hand: send to all, so the classes L and H have frequencies 2/9 and 7/9.
def test_puterman_catalogues() -> None:
    low: list[Choice] = [([Fraction(1, 2), Fraction(1, 2)], 10), ([Fraction(3, 10), Fraction(7, 10)], 20 - 15)]
    high: list[Choice] = [([Fraction(3, 5), Fraction(2, 5)], 25), ([Fraction(1, 5), Fraction(4, 5)], 50 - 15)]
    assert optimum([low, high]) == (Fraction(85, 3), [1, 1])
    P, R, _ = arrays([low, high])
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert found.gain == pytest.approx(85 / 3, rel=0, abs=PRECISION)
    assert found.actions is not None
    assert found.actions.tolist() == [1, 1]


# S. M. Ross, Introduction to Probability Models, chapter 4, exercise on a taxi serving zones A and B: mean profit of a
# trip. An MDP with one action and rewards on transitions; 62/7 from the frequencies 3/7, 4/7.
def test_ross_taxi() -> None:
    P = np.array([[[0.6, 0.4]], [[0.3, 0.7]]])
    profit = np.array([[[6.0, 12.0]], [[12.0, 8.0]]])
    found = gf.solve(gf.MDP(P, profit), precision=PRECISION)
    assert found.gain == pytest.approx(62 / 7, rel=0, abs=PRECISION)


# R. S. Sutton & A. G. Barto, Reinforcement Learning: An Introduction, 2nd edition, MIT Press 2018, Example 10.2: access
# control, "computed exactly": no exact figure is printed, so an independent linear programme on independently built
# arrays. The order of events is that of the environment's docstring.
def test_sutton_barto_access_control() -> None:
    n, pay, p = 10, (1, 2, 4, 8), 0.06
    S = (n + 1) * 4
    P, R, allowed = np.zeros((S, 2, S)), np.zeros((S, 2)), np.ones((S, 2), dtype=bool)
    freed = np.zeros((n + 1, n + 1))  # freed[b, k]: k of b busy servers become free, one server after the other
    freed[0, 0] = 1.0
    for b in range(1, n + 1):
        freed[b] = (1 - p) * freed[b - 1]
        freed[b, 1:] += p * freed[b - 1, :-1]
    for free, i, accept in product(range(n + 1), range(4), range(2)):
        s = 4 * free + i
        if accept and free == 0:
            allowed[s, accept] = False
            continue
        R[s, accept] = pay[i] * accept
        left = free - accept
        for k in range(n - left + 1):
            P[s, accept, 4 * (left + k) : 4 * (left + k) + 4] += freed[n - left, k] / 4
    found = gf.solve(gf.environments.access_control_queue(), precision=PRECISION)
    assert found.gain == pytest.approx(linear_programme(P, R, allowed), rel=0, abs=PRECISION)
    assert round(found.gain, 6) == 2.747642
    # thresholds: the better a customer pays, the fewer servers need be free; who pays 4 or 8 is always served
    served = {w: [f for f in range(1, n + 1) if found.action(f"{f} free, priority {w}") == "accept"] for w in pay}
    assert served[8] == served[4] == list(range(1, n + 1))
    assert set(served[1]) <= set(served[2]) <= set(served[4])
    assert served[2] == list(range(min(served[2]), n + 1))


# D. P. Bertsekas, Dynamic Programming and Optimal Control, vol. I, chapter "Introduction to infinite horizon problems",
# average cost per stage: a manufacturer receives an order with probability p per period, pays c per unfilled order and
# period or fills all of them for K; at most n may wait. A threshold m is optimal. Filling takes the order book to 0
# before the next period's order. Renewal-reward: waiting with i orders lasts 1/p periods, for i = 0 … m-1, except that
# the period of filling already brings the first order with probability p.
@pytest.mark.parametrize(
    ("p", "c", "K", "n"), [(Fraction(1, 2), 1, 5, 8), (Fraction(1, 5), 2, 30, 6), (Fraction(9, 10), 1, 3, 10)]
)
def test_bertsekas_manufacturer(p: Fraction, c: int, K: int, n: int) -> None:
    def threshold(m: int) -> Fraction:
        waiting = sum((c * i / p for i in range(1, m)), Fraction(0))
        length = 1 + (1 - p) / p + (m - 1) / p
        return (K + waiting) / length

    P, cost, allowed = np.zeros((n + 1, 2, n + 1)), np.zeros((n + 1, 2)), np.ones((n + 1, 2), dtype=bool)
    for i in range(n + 1):
        P[i, 1, 0], P[i, 1, 1], cost[i, 1] = float(1 - p), float(p), K
        if i < n:
            P[i, 0, i], P[i, 0, i + 1], cost[i, 0] = float(1 - p), float(p), c * i
    allowed[n, 0] = False
    found = gf.solve(gf.MDP(P, cost, allowed=allowed, objective="cost"), precision=PRECISION)
    assert found.gain == pytest.approx(float(min(threshold(m) for m in range(1, n + 1))), rel=0, abs=PRECISION)


# University of Cambridge, Mathematical Tripos, Part II, 2009, Paper 2, Optimization and Control: a coin adds 0 or 1 to
# the score, a die its number; 1 is won whenever the score is divisible by 3. By hand: die only at remainder 1, 4/9.
def test_cambridge_tripos_coin_and_die() -> None:
    half, third = Fraction(1, 2), [Fraction(1, 3)] * 3
    states: list[list[Choice]] = [
        [([half, half, 0], half), (third, Fraction(1, 3))],
        [([0, half, half], 0), (third, Fraction(1, 3))],
        [([half, 0, half], half), (third, Fraction(1, 3))],
    ]
    assert optimum(states) == (Fraction(4, 9), [0, 1, 0])
    P, R, _ = arrays(states)
    mdp = gf.MDP(P, R, action_labels=("coin", "die"))
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(4 / 9, rel=0, abs=PRECISION)
    assert [found.action(s) for s in range(3)] == ["coin", "die", "coin"]
    coin = gf.evaluate(mdp, np.zeros(3, dtype=int))
    assert np.asarray(coin.gain) == pytest.approx(1 / 3, rel=0, abs=PRECISION)


# R. Weber, Optimization and Control, Cambridge lecture notes, the consultant who accepts or declines jobs offered one a
# day. Renewal-reward over offers: accepting the set A earns sum_A a_i R_i / (sum_A a_i/p_i + sum_not A a_i) per day.
def test_weber_consultant() -> None:
    offered, done, pay = (
        [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)],
        [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)],
        [30, 16, 3],
    )

    def earning(accepted: tuple[bool, ...]) -> Fraction:
        terms = list(zip(accepted, offered, done, pay, strict=True))
        money = sum((a * r for yes, a, _, r in terms if yes), Fraction(0))
        return money / sum((a / p if yes else a for yes, a, p, _ in terms), Fraction(0))

    # states: offered i (0, 1, 2), busy with i (3, 4, 5); accepting is the first day of work, pay comes on completion
    P, R, allowed = np.zeros((6, 2, 6)), np.zeros((6, 2)), np.ones((6, 2), dtype=bool)
    new = np.array([float(a) for a in offered])
    for i in range(3):
        P[i, 0, :3] = new
        for s in (i, 3 + i):
            P[s, 1, :3] = float(done[i]) * new
            P[s, 1, 3 + i] = float(1 - done[i])
            R[s, 1] = float(done[i] * pay[i])
        allowed[3 + i, 0] = False
    best = max(product((False, True), repeat=3), key=earning)
    found = gf.solve(gf.MDP(P, R, allowed=allowed), precision=PRECISION)
    assert found.gain == pytest.approx(float(earning(best)), rel=0, abs=PRECISION)
    assert found.actions is not None
    assert found.actions[:3].tolist() == [int(yes) for yes in best]
