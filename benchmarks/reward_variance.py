"""What the variance of rewards tells KL-SCAL+ beyond their mean: figures in docs/field.md and docs/which_agent.md.

    python benchmarks/reward_variance.py [widths] [maintenance]

widths       how far above the mean reward seen its bounds lie, by the mean, by the variance, and UCRL3's: medians over
             the pairs visited in one run of 10⁶ steps in the stockroom
maintenance  euros lost after 1, 10 and 100 years by KL-SCAL+ with vanishing episodes and either bound, 30 seeds
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful.optimism.ucrl3 import laplace_term, peeling_term, reward_width
from gainful.problems import Maintenance, Stockroom
from gainful.theory import kl_scal_plus_radius, klup, klup_by_variance

Bound = Literal["mean", "variance"]
SEEDS = 30
YEARS = (1, 10, 100)
DAYS = 365


def agent_for(mdp: gf.MDP, bound: Bound, seed: int) -> gf.KLSCALPlus:
    """KL-SCAL+ with vanishing episodes, which is told the range of the rewards."""
    return gf.KLSCALPlus.for_mdp(mdp, episodes="vanishing", reward_bound=bound, seed=seed)


def widths() -> None:
    """Medians over the pairs visited."""
    mdp = Stockroom().model
    agent = agent_for(mdp, "variance", 0)
    gf.simulate(agent, mdp, 10**6, seed=0)
    visited = agent.statistics.visits > 0
    n = agent.statistics.visits[visited]
    mean = agent.statistics.reward_sum[visited] / (n * agent.reward_range)
    square = agent.statistics.reward_squares[visited] / (n * agent.reward_range**2)
    variance = np.clip(square - mean**2, 0.0, mean * (1.0 - mean))
    radius = kl_scal_plus_radius(n, mdp.n_states, agent.delta)
    deviation, of_coins = (np.sqrt(np.average(v, weights=n)) for v in (variance, mean * (1 - mean)))
    print(f"standard deviation of rewards: {deviation:.1%} of {agent.reward_range:g} euros; of coins: {of_coins:.1%}")
    found = {
        "by the mean": klup(mean, radius) - mean,
        "by the variance": klup_by_variance(mean, variance, radius) - mean,
        "UCRL3's": ucrl3_widths(gf.UCRL3.for_mdp(mdp).level, variance, n),
    }
    for name, width in found.items():
        print(f"{name}: median width {agent.reward_range * np.median(width):.1f} euros over {n.size} pairs")


def ucrl3_widths(level: float, variance: NDArray[np.float64], visits: NDArray[np.int64]) -> NDArray[np.float64]:
    """UCRL3's bounds of rewards in [0, 1], above the mean seen."""
    pairs = zip(variance, visits, strict=True)
    return np.array([reward_width(v, peeling_term(n, level), laplace_term(n, level), 1.0) for v, n in pairs])


def maintenance() -> None:
    """Euros lost."""
    problem = Maintenance()
    checkpoints = [round(years * DAYS * problem.steps_per_day) for years in YEARS]
    for bound in get_args(Bound):
        runs = gf.simulate_many(
            partial(agent_for, problem.model, bound),
            problem.model,
            checkpoints[-1],
            range(SEEDS),
            checkpoints=checkpoints,
        )
        lost = np.array([run.expected_regret for run in runs])
        for years, euros in zip(YEARS, lost.T, strict=True):
            error = euros.std(ddof=1) / np.sqrt(SEEDS)
            print(f"by the {bound}, {years} years: {euros.mean():,.0f} ± {error:,.0f} euros")


if __name__ == "__main__":
    parts = {"widths": widths, "maintenance": maintenance}
    parser = argparse.ArgumentParser(description="What the variance of rewards tells KL-SCAL+ beyond their mean.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    for name in parser.parse_args().parts or list(parts):
        parts[name]()
