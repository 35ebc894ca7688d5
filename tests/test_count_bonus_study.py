"""The problem of the study of count-based bonuses is what its page says, and the claim can be seen in a few runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from studies.count_bonus import predicted, share_of

sys.path.append(str(Path(__file__).parents[1] / "studies" / "specs" / "count_bonus"))
long_bets = __import__("long_bets").long_bets


@pytest.mark.parametrize("wait", [4.0, 64.0])
def test_the_span_is_the_wait_and_tossing_coins_loses_what_the_page_says(wait: float) -> None:
    mdp = long_bets(wait)
    plan = gf.solve(mdp, precision=1e-10)
    assert plan.gain == pytest.approx(0.6 * wait / (1 + wait), rel=0, abs=1e-9)
    assert plan.span == pytest.approx(wait, rel=0, abs=1e-6)
    assert plan.policy[:14, 1].tolist() == [1.0] * 14
    coins = gf.evaluate(mdp, np.zeros(16, dtype=np.int64)).gain
    assert plan.gain - coins == pytest.approx(0.1 * wait / (1 + wait), rel=0, abs=1e-9)


def test_one_table_alone_foresees_less_lost_with_a_larger_bonus() -> None:
    found = [predicted(ratio, 5_000) for ratio in (0.05, 0.25, 1.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(0.37, rel=0, abs=0.02)  # one lost bet is enough, unless the coin was unlucky too


def test_a_share_has_the_interval_of_wilson() -> None:
    found = share_of([True] * 8 + [False] * 12)  # Wilson (1927), as in any table of it
    assert (round(found.low, 3), round(found.high, 3)) == (0.219, 0.613)


def given_up(wait: float, beta: float, counts: Any = "exact") -> float:
    """The share of tables at which the plan tosses the coin after a million steps, over eight seeds."""
    mdp, found = long_bets(wait), []
    for seed in range(8):
        agent = gf.CountBonus.for_mdp(mdp, beta=beta, counts=counts)
        gf.simulate(agent, mdp, 10**6, seed=seed)
        found.append(np.mean([agent.predict(table) == 0 for table in range(14)]))
    return float(np.mean(found))


@pytest.mark.slow
def test_a_bonus_that_does_not_know_the_span_gives_up_good_actions() -> None:
    # of 112 tables 37 % are foreseen to be lost: fewer than 20 % by chance has probability 1e-4; at β = span 2 %
    assert given_up(64.0, 4.0) > 0.2
    assert given_up(4.0, 4.0) < 0.1
    assert given_up(16.0, 16.0) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("counts", ["modulo:buckets=4", "density:shape=4x4"])
def test_pseudo_counts_give_up_good_actions_that_exact_counts_keep(counts: str) -> None:
    assert given_up(16.0, 32.0, counts) > 0.1
