"""Semi-Markov processes: Tijms 2003, and ratios in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidMDPError
from tests.planning.exact import chain_gains
from tests.published.exact import PRECISION

# H. C. Tijms, A First Course in Stochastic Models, Wiley 2003, Example 6.1.1, data and first policy on p. 249:
# conditions 1 … 5, deterioration q_ij, preventive repair in one day, forced repair in two. As a semi-Markov process it
# needs no state for the second day of a repair.
DETERIORATION = [
    [0.90, 0.10, 0.00, 0.00, 0.00],
    [0.00, 0.80, 0.10, 0.05, 0.05],
    [0.00, 0.00, 0.70, 0.10, 0.20],
    [0.00, 0.00, 0.00, 0.50, 0.50],
]
RUN, REPAIR = 0, 1


def tijms() -> gf.MDP:
    P, cost, time = np.zeros((5, 2, 5)), np.zeros((5, 2)), np.ones((5, 2))
    P[:4, RUN], P[:, REPAIR, 0] = DETERIORATION, 1.0
    cost[:, REPAIR], time[4] = [0, 7, 7, 5, 10], 2.0
    allowed = np.array([[1, 0], [1, 1], [1, 1], [1, 1], [0, 1]], dtype=bool)
    return gf.MDP.from_rates(P, jump_costs=cost, sojourn_times=time, allowed=allowed)


def test_tijms_maintenance_with_a_repair_of_two_days() -> None:
    plan = gf.solve(tijms(), precision=PRECISION)
    assert plan.gain == pytest.approx(95 / 219, rel=0, abs=PRECISION)
    assert plan.actions is not None
    assert plan.actions.tolist() == [RUN, RUN, RUN, REPAIR, REPAIR]
    only_forced = gf.evaluate(tijms(), [RUN, RUN, RUN, RUN, REPAIR])
    assert round(only_forced.gain_from_start, 4) == 0.5128  # p. 249


def test_the_gain_is_the_ratio_of_what_is_earned_to_the_time_it_takes() -> None:
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 9, (3, 2, 3))
    P, reward, time = weights / 32.0, rng.integers(-4, 9, (3, 2)), rng.integers(1, 64, (3, 2)) / 8.0
    P[:, :, 0] += 1.0 - P.sum(axis=2)
    best = None
    for policy in product(range(2), repeat=3):
        chain = [{x: Fraction(float(P[s, a, x])) for x in range(3)} for s, a in enumerate(policy)]
        earned = chain_gains(chain, [Fraction(int(reward[s, a])) for s, a in enumerate(policy)])[0]
        taken = chain_gains(chain, [Fraction(float(time[s, a])) for s, a in enumerate(policy)])[0]
        best = earned / taken if best is None else max(best, earned / taken)
    plan = gf.solve(gf.MDP.from_rates(P, jump_rewards=reward, sojourn_times=time), precision=PRECISION)
    assert best is not None
    assert plan.gain == pytest.approx(float(best), rel=0, abs=2 * PRECISION)


def test_a_table_of_probabilities_and_sojourn_times(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    path.write_text(
        "state,action,next_state,probability,sojourn_time,reward,reward_rate\n"
        "idle,wait,busy,1,4,0,-1\nbusy,work,idle,0.75,2,10,0\nbusy,work,busy,0.25,2,10,0\n"
    )
    mdp = gf.MDP.from_rates(path)
    exact = (4 * -1 + 10 * Fraction(4, 3)) / (4 + 2 * Fraction(4, 3))
    assert gf.solve(mdp).gain == pytest.approx(float(exact), rel=0, abs=2e-8)
    path.write_text(path.read_text().replace("0.25,2", "0.25,3"))
    with pytest.raises(InvalidMDPError, match=r"sojourn_time.*one value for"):
        gf.MDP.from_rates(path)


@pytest.mark.parametrize(
    ("rates", "times", "message"),
    [
        ([[[0.0, 0.5]], [[1.0, 0.0]]], [1.0, 1.0], "state 0, action 0 sum to 0.5"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [1.0, 0.0], "sojourn time of state 1, action 0 is 0, expected a positive"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [1.0, np.nan], "is nan, expected a positive"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [[[1.0]]], "sojourn_times have shape"),
        ([[[-1.0, 2.0]], [[1.0, 0.0]]], [1.0, 1.0], "minus the sum|at least 0"),
    ],
)
def test_wrong_sojourn_times_are_named(rates: object, times: object, message: str) -> None:
    with pytest.raises(InvalidMDPError, match=message):
        gf.MDP.from_rates(rates, [1.0, 0.0], sojourn_times=times)
