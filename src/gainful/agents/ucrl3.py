"""UCRL3: time-uniform bounds on every transition probability, and supports that leave out what can hardly matter."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent, PlausibleModels
from gainful.agents.guarantee import Guarantee
from gainful.agents.sets import EntryIntervals, Sums, allow_everything, capped_reward, empty_intervals, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import choice, flag
from gainful.errors import NotConvergedError
from gainful.optimism.bernstein import reward_variance
from gainful.optimism.ucrl3 import (
    AS_PRINTED,
    LOWER_TAIL,
    laplace_term,
    lower_probability,
    peeling_term,
    reward_width,
    upper_probability,
)
from gainful.planning.confidence import Intervals, NearOptimistic

Tails: TypeAlias = Literal["proven", "printed"]

KAPPA = 10.0
"""κ(s,a) = KAPPA·sp(v)·|supp p̄(s,a)|/(max N)^{2/3}."""


class UCRL3Constants(NamedTuple):
    """What the bounds depend on beside the counts."""

    level: float
    """δ' = δ/((3 + 3S)·S·A)."""
    scale: float
    reward_max: float
    proxy: int
    """g̲: `LOWER_TAIL`, or `AS_PRINTED` in the paper."""
    published_code: bool
    """Whether a next state that always followed has probability at least ½^{1/n}."""


@kernel
def ucrl3_sets(rows: EmpiricalRows, sums: Sums, constants: UCRL3Constants, out: EntryIntervals) -> None:
    """Bounds of every entry of the rows, of the states that a row does not list, and optimistic rewards."""
    rows, sums, c, out = EmpiricalRows(*rows), Sums(*sums), UCRL3Constants(*constants), EntryIntervals(*out)
    for k in range(sums.visits.size):
        if sums.visits[k] == 0:
            allow_everything(rows.indptr, k, c.reward_max, out)
        else:
            write_bounds(rows, sums, c, k, out)


@inlined
def write_bounds(rows: EmpiricalRows, sums: Sums, c: UCRL3Constants, k: int, out: EntryIntervals) -> None:
    """The bounds and the optimistic reward of pair k, which has been visited."""
    n = sums.visits[k]
    peeling, laplace = peeling_term(n, c.level), laplace_term(n, c.level)
    out.unseen[k] = upper_probability(0.0, peeling, laplace, c.scale, c.proxy)
    for j in range(rows.indptr[k], rows.indptr[k + 1]):
        out.lower[j] = lower_probability(rows.p[j], peeling, laplace, c.scale)
        out.upper[j] = upper_probability(rows.p[j], peeling, laplace, c.scale, c.proxy)
        if c.published_code and rows.p[j] == 1.0:
            out.lower[j] = max(out.lower[j], 0.5 ** (1.0 / n))
    spread = reward_variance(sums.rewards[k], sums.squares[k], n) / (c.reward_max * c.reward_max)
    out.rewards[k] = capped_reward(
        sums, k, c.reward_max * reward_width(spread, peeling, laplace, c.scale), c.reward_max
    )


class UCRL3(ExtendedAgent):
    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        tails: Tails = "proven",
        published_code: bool = False,
        width_scale: float = 1.0,
    ) -> None:
        super().__init__(
            n_states,
            n_actions,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            width_scale=width_scale,
        )
        self.tails = choice("tails", tails, ("proven", "printed"))
        self._proxy = AS_PRINTED if tails == "printed" else LOWER_TAIL
        self.published_code = flag("published_code", published_code)

    def intervals(self, statistics: Statistics) -> tuple[EmpiricalRows, EntryIntervals]:
        rows = empirical_rows(statistics, self.allowed)
        found = empty_intervals(statistics.visits.size, rows.p.size)
        level = self.delta / ((3.0 + 3.0 * self.n_states) * self.n_states * self.n_actions)
        constants = (level, self.width_scale, self.reward_range, self._proxy, self.published_code)
        ucrl3_sets(tuple(rows), sums_of(statistics), constants, tuple(found))
        return rows, found

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        rows, found = self.intervals(statistics)
        most = max(1, int(statistics.visits.max()))
        tolerance = KAPPA * statistics.length / most ** (2.0 / 3.0)
        shape = (self.n_states, self.n_actions)
        sets = NearOptimistic(found.lower, found.upper, found.unseen.reshape(shape), tolerance=tolerance.reshape(shape))
        return self.plan_over(PlausibleModels(rows, sets, found.rewards, found.unseen >= 1.0), t)
