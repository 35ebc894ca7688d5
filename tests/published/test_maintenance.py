"""Maintenance and replacement: Tijms 2003, Hillier & Lieberman, Derman 1963, Barlow & Hunter 1960."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gainful as gf
from tests.published.exact import PRECISION, Choice, Row, arrays, evaluated, optimum


# H. C. Tijms, A First Course in Stochastic Models, Wiley 2003, Example 6.1.1. Data as in the test files of the public
# R package relund/mdp (HCT_ex6.1.1). The printed answer 0.4338 was not looked up in the book: the data give 95/219.
# A failure (condition 5) takes two days to repair: the sixth state is its second day.
def tijms() -> list[list[Choice]]:
    h = Fraction(1, 100)
    wear: list[Row] = [
        [90 * h, 10 * h, 0, 0, 0, 0],
        [0, 80 * h, 10 * h, 5 * h, 5 * h, 0],
        [0, 0, 70 * h, 10 * h, 20 * h, 0],
        [0, 0, 0, 50 * h, 50 * h, 0],
    ]
    new: Row = [1, 0, 0, 0, 0, 0]
    states: list[list[Choice]] = [[(wear[0], 0)]]
    states += [[(wear[i], 0), (new, cost)] for i, cost in ((1, 7), (2, 7), (3, 5))]
    return [*states, [([0, 0, 0, 0, 0, 1], 10)], [(new, 0)]]


def test_tijms_inspection_maintenance() -> None:
    exact, policy = optimum(tijms(), minimise=True)
    P, cost, allowed = arrays(tijms())
    found = gf.solve(gf.MDP(P, cost, allowed=allowed, objective="cost"), precision=PRECISION)
    assert exact == Fraction(95, 219)
    assert found.gain == pytest.approx(float(exact), rel=0, abs=PRECISION)
    assert round(found.gain, 4) == 0.4338
    assert found.actions is not None
    assert found.actions.tolist() == policy == [0, 0, 0, 1, 0, 0]  # repair preventively in condition 4 only


# F. S. Hillier & G. J. Lieberman, Introduction to Operations Research, chapter "Markov Decision Processes", prototype
# example: do nothing, overhaul (back to minor deterioration), replace. Data also in public lecture notes (GSLM 52800);
# the four rounded costs as commonly quoted, each confirmed by the fraction beside it.
NOTHING, OVERHAUL, REPLACE = 0, 1, 2
MACHINE: dict[tuple[int, int], tuple[list[Fraction], int]] = {
    (0, NOTHING): ([Fraction(0), Fraction(7, 8), Fraction(1, 16), Fraction(1, 16)], 0),
    (1, NOTHING): ([Fraction(0), Fraction(3, 4), Fraction(1, 8), Fraction(1, 8)], 1000),
    (2, NOTHING): ([Fraction(0), Fraction(0), Fraction(1, 2), Fraction(1, 2)], 3000),
    (2, OVERHAUL): ([Fraction(0), Fraction(1), Fraction(0), Fraction(0)], 4000),
    (1, REPLACE): ([Fraction(1), Fraction(0), Fraction(0), Fraction(0)], 6000),
    (2, REPLACE): ([Fraction(1), Fraction(0), Fraction(0), Fraction(0)], 6000),
    (3, REPLACE): ([Fraction(1), Fraction(0), Fraction(0), Fraction(0)], 6000),
}


def machine() -> gf.MDP:
    P, cost, allowed = np.zeros((4, 3, 4)), np.zeros((4, 3)), np.zeros((4, 3), dtype=bool)
    for (s, a), (row, c) in MACHINE.items():
        P[s, a], cost[s, a], allowed[s, a] = [float(p) for p in row], c, True
    return gf.MDP(P, cost, allowed=allowed, objective="cost", action_labels=("nothing", "overhaul", "replace"))


def test_hillier_lieberman_machine() -> None:
    found = gf.solve(machine(), precision=PRECISION)
    assert found.gain == pytest.approx(5000 / 3, rel=0, abs=PRECISION)
    assert [found.action(s) for s in range(4)] == ["nothing", "nothing", "overhaul", "replace"]


@pytest.mark.parametrize(
    ("policy", "exact", "printed"),
    [
        ((NOTHING, NOTHING, NOTHING, REPLACE), Fraction(25000, 13), 1923),
        ((NOTHING, NOTHING, OVERHAUL, REPLACE), Fraction(5000, 3), 1667),
        ((NOTHING, NOTHING, REPLACE, REPLACE), Fraction(19000, 11), 1727),
        ((NOTHING, REPLACE, REPLACE, REPLACE), Fraction(3000), 3000),
    ],
    ids=["Ra", "Rb", "Rc", "Rd"],
)
def test_hillier_lieberman_policies(policy: tuple[int, ...], exact: Fraction, printed: int) -> None:
    assert evaluated([MACHINE[s, a] for s, a in enumerate(policy)])[0] == exact
    found = gf.evaluate(machine(), np.array(policy))
    assert np.asarray(found.gain) == pytest.approx(float(exact), rel=0, abs=PRECISION)
    assert round(float(exact)) == printed


# C. Derman, On optimal replacement rules when changes of state are Markovian, in Mathematical Optimization Techniques
# (ed. R. Bellman), 1963: a control limit is optimal. Its cost by renewal-reward.
@pytest.mark.parametrize(
    ("p", "running", "new"),
    [(Fraction(1, 5), 1, 20), (Fraction(1, 2), 2, 31), (Fraction(1), 1, 10), (Fraction(1, 20), 3, 100)],
)
def test_derman_control_limit(p: Fraction, running: int, new: int) -> None:
    S = 10
    costs = {m: (running * Fraction(m * (m - 1), 2) + p * new) / (m + p) for m in range(1, S)}
    found = gf.solve(
        gf.environments.machine_replacement(S, wear_probability=float(p), operating_cost=running, replacement_cost=new),
        precision=PRECISION,
    )
    best = min(costs, key=lambda m: costs[m])
    assert found.gain == pytest.approx(float(costs[best]), rel=0, abs=PRECISION)
    first = next(s for s in range(S) if found.action(s) == "replace")
    assert costs[max(first, 1)] == costs[best]


# R. Barlow & L. Hunter, Optimum preventive maintenance policies, Operations Research 8 (1960): age replacement. In
# discrete time, replacing at age T costs (c_f F(T) + c_p (1 - F(T))) / sum_{k<T} (1 - F(k)) per step.
@pytest.mark.parametrize("planned", [Fraction(1), Fraction(2), Fraction(4)])
def test_barlow_hunter_age_replacement(planned: Fraction) -> None:
    hazard = [
        Fraction(1, 20),
        Fraction(1, 10),
        Fraction(3, 20),
        Fraction(1, 4),
        Fraction(2, 5),
        Fraction(3, 5),
        Fraction(4, 5),
        Fraction(1),
    ]  # P(fails | age)
    failure = Fraction(5)
    n = len(hazard)
    alive = [Fraction(1)]
    for q in hazard:
        alive.append(alive[-1] * (1 - q))
    rule = {T: (failure * (1 - alive[T]) + planned * alive[T]) / sum(alive[:T], Fraction(0)) for T in range(1, n + 1)}
    # state: age at the start of a step; action: run to the end of the step, then either keep or renew what survives
    P, cost = np.zeros((n, 2, n)), np.zeros((n, 2))
    allowed = np.ones((n, 2), dtype=bool)
    for age, q in enumerate(hazard):
        if age + 1 < n:
            P[age, 0, 0], P[age, 0, age + 1] = float(q), float(1 - q)
            cost[age, 0] = float(failure * q)
        else:
            allowed[age, 0] = False
        P[age, 1, 0] = 1.0
        cost[age, 1] = float(failure * q + planned * (1 - q))
    found = gf.solve(gf.MDP(P, cost, allowed=allowed, objective="cost"), precision=PRECISION)
    assert found.gain == pytest.approx(float(min(rule.values())), rel=0, abs=PRECISION)
