"""Are drawn models draws of the posterior? Every draw becomes a number that is uniform if they are.

A Dirichlet row is broken like a stick: the share of its first entry in the whole is a Beta variable, that of the second
in what is left is another one, independent of the first, and so on. F(x) of a Beta variable x with distribution
function F is uniform on [0, 1] (Rosenblatt 1952). Given everything before it, each such number is uniform and fresh,
however the run went on; so all numbers of a run together are independent and uniform. Two tests judge them:

- Their empirical distribution is within sqrt(ln(2/η)/(2n)) of the uniform one, with probability 1 - η (the inequality
  of Dvoretzky, Kiefer & Wolfowitz with the constant of Massart 1990). Distances are taken on a grid, where they are no
  larger.
- Those of two consecutive plans are uncorrelated: Σ (u - ½)(u' - ½) over n of them is a sum of martingale differences
  in [-¼, ¼], and |Σ| ≤ sqrt(n·ln(2/η)/8) with probability 1 - η (Azuma 1967).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from gainful.audit.findings import Finding, Floats, compared

FALSE_ALARM = 1e-9
"""η: the probability with which all draws of a run are right and a test says that they are not."""
GRID = 1024
"""Points at which the empirical distribution is compared with the uniform one."""
JUDGED_APART_BELOW = 10
"""Pairs with fewer visits are judged apart from the others: there the prior matters most."""
RESOLVED = 1e-12
"""A share nearer than this to 0 or 1 is one of them up to rounding."""
BATCH_DRAWS = 200_000
"""Draws that are kept before they are counted."""
REWARD, UNSEEN_TOTAL, SEEN_SHARE, UNSEEN_SHARE, UNSEEN_RANK = range(5)
KINDS = 5
"""Of draws: mean rewards, the mass on next states never seen, shares of those seen and not seen, and which of them."""


class BetaDraws(NamedTuple):
    """Shares one/(one + others) that should be Beta(a, b) variables, and the group in which each is judged."""

    one: Floats
    others: Floats
    a: Floats
    b: Floats
    group: NDArray[np.int64]


def uniform_of(draws: BetaDraws, rng: np.random.Generator) -> Floats:
    """F(x) of every draw; where x is 0 or 1 up to rounding, a uniform number of the range that F then has.

    >>> draws = BetaDraws(np.array([0.25]), np.array([0.75]), np.array([1.0]), np.array([1.0]), np.zeros(1, np.int64))
    >>> float(uniform_of(draws, np.random.default_rng(0))[0])
    0.25
    """
    one, others, a, b, _ = draws
    total = one + others
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = one / total, others / total
    u = np.where(x < 0.5, betainc(a, b, np.minimum(x, 0.5)), 1.0 - betainc(b, a, np.minimum(y, 0.5)))
    low, high = x < RESOLVED, y < RESOLVED
    if low.any():
        u[low] = rng.random(int(low.sum())) * betainc(a[low], b[low], RESOLVED)
    if high.any():
        u[high] = 1.0 - rng.random(int(high.sum())) * betainc(b[high], a[high], RESOLVED)
    return u


class Calibration:
    """Counts the uniform numbers of a run, by group, and correlates those of consecutive plans.

    Parameters
    ----------
    seed : int
        Of the audit's own random numbers, which spread what rounding has made equal.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 0xA0D1])
        self._counts: NDArray[np.int64] = np.zeros((2 * KINDS, GRID), dtype=np.int64)
        self._batch: list[BetaDraws] = []
        self._at_places: list[BetaDraws] = []
        self._ranks: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        self._waiting = 0
        self._last: Floats | None = None
        self._sum, self._pairs = 0.0, 0

    def add(self, draws: BetaDraws) -> None:
        """Count the draws of a plan; groups are those of `group_of`."""
        self._batch.append(draws)
        self._waiting += draws.one.size
        if self._waiting > BATCH_DRAWS:
            self._flush()

    def add_at_places(self, draws: BetaDraws) -> None:
        """Count the draws of a plan, one for each of the same places as in the plan before, and correlate the two."""
        self._at_places.append(draws)
        self._waiting += draws.one.size
        if self._waiting > BATCH_DRAWS:
            self._flush()

    def add_uniform(self, u: Floats, group: NDArray[np.int64]) -> None:
        """Count numbers that should be uniform as they are."""
        at = np.clip((np.nan_to_num(u) * GRID).astype(np.int64), 0, GRID - 1)
        self._counts += np.bincount(group * GRID + at, minlength=self._counts.size).reshape(self._counts.shape)

    def add_ranks(self, rank: NDArray[np.int64], among: NDArray[np.int64], group: NDArray[np.int64]) -> None:
        """Count places that should be uniform among so many, from 0."""
        self._ranks.append((rank.copy(), among.copy(), group.copy()))
        self._waiting += rank.size

    def uniform_ranks(
        self, rank: NDArray[np.int64], number: NDArray[np.int64] | int, group: NDArray[np.int64]
    ) -> Floats:
        """Count places that should be uniform among `number`, from 0, and return a uniform number for each."""
        u = (rank + self._rng.random(rank.size)) / number
        self.add_uniform(u, group)
        return np.asarray(u)

    def correlate(self, u: Floats) -> None:
        """Correlate one number per place with those of the plan before; NaN where there is none."""
        if self._last is not None:
            product = (self._last - 0.5) * (u - 0.5)
            known = ~np.isnan(product)
            self._sum, self._pairs = self._sum + float(product[known].sum()), self._pairs + int(known.sum())
        self._last = u

    def _count(self, batch: list[BetaDraws]) -> Floats:
        """F(x) of the draws of several plans, counted."""
        draws = BetaDraws(*(np.concatenate(column) for column in zip(*batch, strict=True)))
        u = uniform_of(draws, self._rng)
        self.add_uniform(u, draws.group)
        return u

    def _flush(self) -> None:
        if self._batch:
            self._count(self._batch)
        if self._at_places:
            for u in self._count(self._at_places).reshape(len(self._at_places), -1):
                self.correlate(u)
        if self._ranks:
            self.uniform_ranks(*(np.concatenate(column) for column in zip(*self._ranks, strict=True)))
        self._batch, self._at_places, self._ranks, self._waiting = [], [], [], 0

    def findings(self, episodes: int, step: int) -> dict[str, Finding]:
        """The two tests, at the end of a run of so many episodes, the last of which began at `step`."""
        self._flush()
        n = self._counts.sum(axis=1)
        groups = np.flatnonzero(n)
        uniform = np.arange(1, GRID + 1) / GRID
        distance = np.abs(np.cumsum(self._counts[groups], axis=1) / n[groups, None] - uniform).max(axis=1, initial=0.0)
        most = math.sqrt(math.log(2.0 * 2 * KINDS / FALSE_ALARM) / 2.0)
        at = {"steps": [step] * groups.size, "episodes": [episodes] * groups.size}
        found = {"posterior-sample": compared(np.sqrt(n[groups]) * distance, most, **at)}
        lags = [abs(self._sum) / math.sqrt(self._pairs)] if self._pairs else []
        one = {"steps": [step] * len(lags), "episodes": [episodes] * len(lags)}
        found["fresh-sample"] = compared(lags, math.sqrt(math.log(2.0 / FALSE_ALARM) / 8.0), **one)
        return found


def group_of(kind: int, visits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The group of draws of one kind, for pairs with so many visits.

    >>> group_of(SEEN_SHARE, np.array([3, 300])).tolist()
    [4, 5]
    """
    return np.asarray(2 * kind + (visits >= JUDGED_APART_BELOW), dtype=np.int64)
