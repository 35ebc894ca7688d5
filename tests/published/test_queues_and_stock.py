"""Queues in continuous time and stocks: closed forms of Erlang, Naor, Miller, Harris and the newsvendor."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, factorial

import numpy as np
import pytest

import gainful as gf
from tests.published.exact import PRECISION


def birth_death(births: list[Fraction], deaths: list[Fraction]) -> list[Fraction]:
    """Stationary distribution of a birth-death process: births[i] from i to i+1, deaths[i] from i+1 to i."""
    weights = [Fraction(1)]
    for up, down in zip(births, deaths, strict=True):
        weights.append(weights[-1] * up / down)
    total = sum(weights, Fraction(0))
    return [w / total for w in weights]


def chain(births: list[Fraction], deaths: list[Fraction]) -> np.ndarray:
    """The same process as rates (S,1,S)."""
    S = len(births) + 1
    rates = np.zeros((S, 1, S))
    for i, (up, down) in enumerate(zip(births, deaths, strict=True)):
        rates[i, 0, i + 1], rates[i + 1, 0, i] = float(up), float(down)
    return rates


# A. K. Erlang 1917, the loss formula B(c, a) = (a^c/c!) / sum_k a^k/k!: calls lost per unit of time = rate * B.
@pytest.mark.parametrize(
    ("servers", "rate", "service"),
    [(1, Fraction(1), Fraction(2)), (5, Fraction(3), Fraction(1)), (10, Fraction(9), Fraction(3, 2))],
)
def test_erlang_loss(servers: int, rate: Fraction, service: Fraction) -> None:
    a = rate / service
    loss = (a**servers / factorial(servers)) / sum((a**k / factorial(k) for k in range(servers + 1)), Fraction(0))
    rates = chain([rate] * servers, [service * k for k in range(1, servers + 1)])
    lost = np.zeros((servers + 1, 1))
    lost[servers] = float(rate)
    found = gf.solve(gf.MDP.from_rates(rates, costs=lost), precision=PRECISION)
    assert found.gain == pytest.approx(float(rate * loss), rel=0, abs=PRECISION)


# L. Kleinrock, Queueing Systems, vol. 1, Wiley 1975, the M/M/1/K queue: mean number in the system
# x/(1-x) - (K+1) x^(K+1)/(1 - x^(K+1)), and K/2 for x = 1.
@pytest.mark.parametrize(
    ("rate", "service", "K"),
    [(Fraction(1, 2), Fraction(1), 4), (Fraction(3), Fraction(2), 12), (Fraction(1), Fraction(1), 7)],
)
def test_number_in_an_mm1k_queue(rate: Fraction, service: Fraction, K: int) -> None:
    x = rate / service
    mean = Fraction(K, 2) if x == 1 else x / (1 - x) - (K + 1) * x ** (K + 1) / (1 - x ** (K + 1))
    rates = chain([rate] * K, [service] * K)
    found = gf.solve(gf.MDP.from_rates(rates, costs=np.arange(K + 1.0)[:, None]), precision=PRECISION)
    assert found.gain == pytest.approx(float(mean), rel=0, abs=PRECISION)


# P. Naor, The regulation of queue size by levying tolls, Econometrica 37 (1969): socially optimal threshold n and its
# gain. Below the threshold admit; the customers' own threshold floor(R mu / C) is never smaller.
@pytest.mark.parametrize(
    ("rate", "service", "reward", "cost"),
    [
        (Fraction(4, 5), Fraction(1), 10, 1),
        (Fraction(3, 2), Fraction(1), 8, 1),
        (Fraction(1, 3), Fraction(1, 2), 5, 1),
        (Fraction(2), Fraction(5), 7, 3),
    ],
)
def test_naor_threshold(rate: Fraction, service: Fraction, reward: int, cost: int) -> None:
    K, x = 20, rate / service

    def gain(n: int) -> Fraction:
        number = x / (1 - x) - (n + 1) * x ** (n + 1) / (1 - x ** (n + 1))
        return rate * reward * (1 - x**n) / (1 - x ** (n + 1)) - cost * number

    gains = [gain(n) for n in range(K + 1)]
    best = gains.index(max(gains))
    mdp = gf.environments.admission_control(
        K, arrival_rate=float(rate), service_rate=float(service), reward=reward, holding_cost=cost
    )
    found = gf.solve(mdp, precision=PRECISION)
    assert found.gain == pytest.approx(float(gains[best]), rel=0, abs=PRECISION)
    assert [found.action(s) for s in range(best + 1)] == ["accept"] * best + ["reject"]
    assert best <= reward * service / cost


# B. L. Miller, A queueing reward system with several customer classes, Management Science 16 (1969): servers shared by
# classes of different reward. Every policy is a birth-death process, so the optimum by enumeration, in fractions.
def test_miller_two_classes() -> None:
    servers, rates, rewards, service = 4, (Fraction(3), Fraction(2)), (1, 5), Fraction(1)
    sets = [(False, False), (True, False), (False, True), (True, True)]

    def gain(policy: tuple[tuple[bool, bool], ...]) -> Fraction:
        births = [sum((r for yes, r in zip(p, rates, strict=True) if yes), Fraction(0)) for p in policy]
        pi = birth_death(births, [service * k for k in range(1, servers + 1)])
        return sum(
            (pi[s] * r * w for s, p in enumerate(policy) for yes, r, w in zip(p, rates, rewards, strict=True) if yes),
            Fraction(0),
        )

    best = max(product(sets, repeat=servers), key=gain)
    S = servers + 1
    q, earned = np.zeros((S, 4, S)), np.zeros((S, 4))
    for s, (a, accepted) in product(range(S), enumerate(sets)):
        if s > 0:
            q[s, a, s - 1] = float(service * s)
        if s < servers:
            for yes, r, w in zip(accepted, rates, rewards, strict=True):
                q[s, a, s + 1] += float(r) * yes
                earned[s, a] += float(r) * w * yes
    found = gf.solve(gf.MDP.from_rates(q, earned), precision=PRECISION)
    assert found.gain == pytest.approx(float(gain(best)), rel=0, abs=PRECISION)
    assert found.actions is not None
    assert [sets[a] for a in found.actions[:servers]] == list(best)
    assert all(p[1] for p in best)  # Miller: the best class is always admitted
    assert not all(p[0] for p in best)  # and the other one is turned away when servers get scarce


# K. J. Arrow, T. Harris & J. Marschak, Optimal inventory policy, Econometrica 19 (1951): without a fixed cost, order up
# to the newsvendor's quantile P(D <= y) >= (lost - unit) / (lost - unit + holding).
@pytest.mark.parametrize(("mean", "unit", "holding", "lost"), [(5.0, 2.0, 1.0, 8.0), (3.0, 0.0, 1.0, 9.0)])
def test_newsvendor(mean: float, unit: float, holding: float, lost: float) -> None:
    M = 20
    p = [exp(-mean) * mean**d / factorial(d) for d in range(M)]

    def cost(y: int) -> float:
        left = sum((y - d) * p[d] for d in range(y))
        sold = y - left
        return unit * sold + holding * left + lost * (mean - sold)

    level = next(y for y in range(M) if sum(p[: y + 1]) >= (lost - unit) / (lost - unit + holding))
    mdp = gf.environments.inventory_control(
        M, mean_demand=mean, order_cost=0.0, unit_cost=unit, holding_cost=holding, lost_sale_cost=lost
    )
    found = gf.solve(mdp, precision=PRECISION)
    assert cost(level) == pytest.approx(min(cost(y) for y in range(M + 1)), rel=0, abs=1e-12)
    assert found.gain == pytest.approx(cost(level), rel=0, abs=PRECISION)
    assert found.action("stock 0") == f"order {level}"


# F. W. Harris, How many parts to make at once, Factory 10 (1913), in discrete time: a sure demand of one per period,
# K per order, h per unit left at the end of a period. Ordering n every n periods costs (K + h n(n-1)/2)/n.
@pytest.mark.parametrize(("K", "h"), [(6, 1), (10, 3), (50, 1)])
def test_harris_lot_size(K: int, h: int) -> None:
    M = 15
    mdp = gf.environments.inventory_control(
        M, demand=[0.0, 1.0], order_cost=K, unit_cost=0.0, holding_cost=h, lost_sale_cost=1000.0
    )
    found = gf.solve(mdp, precision=PRECISION)
    best = min((Fraction(K) + Fraction(h * n * (n - 1), 2)) / n for n in range(1, M + 1))
    assert found.gain == pytest.approx(float(best), rel=0, abs=PRECISION)
