"""Who is better than whom, decided as seeds are added, with one error for all pairs of agents in all environments.

Each pair is tested by the group sequential test of `gainful.experiments.sequential_test`, and all pairs together by
Holm's step-down procedure with Shaffer's (1986, Modified Sequentially Rejective Multiple Test Procedures, Journal of
the American Statistical Association 81) bound on how many pairs can still be equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.errors import InvalidArgumentError
from gainful.experiments.sequential_test import Floats, PairTest, SequentialDesign, SignFlips


@dataclass(frozen=True)
class PairDecision:
    """What is known about two agents in one environment."""

    environment: str
    better: str
    """The better one; while undecided, the one with the better mean so far."""
    worse: str
    decided: bool
    interim: int
    """The look (from 1) at which it was decided, or the last one."""
    seeds: int
    """Seeds of each of the two that were used."""
    difference: float
    """How much better the mean is, on these seeds."""

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.decided:
            return f"{self.better} is better than {self.worse} ({self.seeds} seeds)"
        return f"{self.better} and {self.worse} are undecided after {self.seeds} seeds"


@dataclass(frozen=True)
class SequentialComparison:
    """What a comparison of agents has decided so far, and who needs more seeds."""

    design: SequentialDesign
    pairs: tuple[PairDecision, ...]
    """In the order of environments and agents."""
    interims: int
    """Looks at the data so far."""
    seeds_used: dict[str, dict[str, int]]
    """Seeds that each agent has used in each environment."""

    @property
    def decided(self) -> bool:
        """Whether every pair is decided."""
        return all(pair.decided for pair in self.pairs)

    @property
    def undecided(self) -> tuple[PairDecision, ...]:
        """The pairs that are not decided."""
        return tuple(pair for pair in self.pairs if not pair.decided)

    @property
    def finished(self) -> bool:
        """Whether no more seeds are wanted: all is decided, or the last look has been."""
        return self.decided or self.interims == self.design.max_interims

    def open_agents(self, environment: str) -> list[str]:
        """The agents of an environment that are part of an undecided pair."""
        open_pairs = [pair for pair in self.undecided if pair.environment == environment]
        wanted = {name for pair in open_pairs for name in (pair.better, pair.worse)}
        return [name for name in self.seeds_used[environment] if name in wanted]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "design": self.design.to_json(),
            "interims": self.interims,
            "decided": self.decided,
            "finished": self.finished,
            "seeds": self.seeds_used,
            "pairs": [
                {
                    "environment": pair.environment,
                    "better": pair.better,
                    "worse": pair.worse,
                    "decided": pair.decided,
                    "interim": pair.interim,
                    "seeds": pair.seeds,
                    "difference": pair.difference if math.isfinite(pair.difference) else None,
                    "sentence": pair.sentence,
                }
                for pair in self.pairs
            ],
        }


def compare_sequentially(
    values: Mapping[str, Mapping[str, ArrayLike]],
    design: SequentialDesign,
    *,
    larger_is_better: Iterable[str] = (),
) -> SequentialComparison:
    r"""Decide who is better than whom from what is known so far, with an error of at most `design.error` in all.

    Parameters
    ----------
    values : mapping from environment to agent to numbers
        One number per seed, seeds in the same order for all agents; the smaller the better, as with regret. An agent
        may have fewer than another once all its comparisons are decided. Values beyond the last complete interim of an
        open comparison are not looked at.
    design : SequentialDesign
        Error, seeds per interim and number of interims.
    larger_is_better : iterable of str
        Environments in which larger numbers are better, as rewards are.

    Returns
    -------
    SequentialComparison
        The decisions; the same data give the same ones, in one call or in many.

    Raises
    ------
    InvalidArgumentError
        If there is nothing to compare, a value is not finite, or fewer seeds are given than one interim has.

    Notes
    -----
    The family is all pairs of agents of all environments. Step-down: let t be the most pairs that can be equal, given
    how many are decided in each environment (with three agents, 3 at first, and 1 as soon as one pair is decided:
    equality is transitive). A pair is decided if its test rejects at level α/t; then t is computed anew. When the first
    equal pair is wrongly decided, all decided before differ, so t is at least the number t₀ of equal pairs, and the
    tests are nested in their levels: this has probability at most t₀ · α/t₀ = α, whichever pairs are equal (the error
    is controlled in the strong sense), however the pairs depend on each other, and although decided agents get no
    more seeds. Sources: Holm (1979), Shaffer (1986), Mathieu et al. (2024), whose own procedure takes the largest
    statistic of all pairs instead.

    Equal means that exchanging the two agents' values on a seed changes nothing. Two agents of equal mean and different
    law are not equal in this sense; their means are compared correctly in the limit of many seeds only.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> river = {"a": rng.normal(1.0, 1, 40), "b": rng.normal(3.0, 1, 40), "c": rng.normal(1.0, 1, 40)}
    >>> found = compare_sequentially({"river": river}, SequentialDesign(max_interims=4))
    >>> [pair.sentence for pair in found.pairs]
    ['a is better than b (10 seeds)', 'c and a are undecided after 40 seeds', 'c is better than b (10 seeds)']
    """
    comparison = _StepDown(values, design, frozenset(larger_is_better))
    while comparison.can_look():
        comparison.look()
    if not comparison.interims:
        raise InvalidArgumentError(
            "values", expected=f"at least {design.seeds_per_interim} seeds of every agent", problem="too few seeds"
        )
    return comparison.result()


@dataclass
class _PairUnderTest:
    """A pair under test; the sign of its differences says who is better."""

    environment: str
    agents: tuple[str, str]
    test: PairTest
    decided_at: int = 0
    mean: float = math.nan

    def decision(self, interims: int, design: SequentialDesign) -> PairDecision:
        first, second = self.agents if self.mean <= 0.0 else self.agents[::-1]
        interim = self.decided_at or interims
        return PairDecision(
            self.environment,
            first,
            second,
            bool(self.decided_at),
            interim,
            interim * design.seeds_per_interim,
            abs(self.mean),
        )


class _StepDown:
    """The comparison as it goes on from look to look."""

    def __init__(
        self,
        values: Mapping[str, Mapping[str, ArrayLike]],
        design: SequentialDesign,
        larger_is_better: frozenset[str],
    ) -> None:
        self.design, self.interims = design, 0
        self.values = {
            environment: {
                agent: _checked(numbers, agent, environment in larger_is_better) for agent, numbers in of.items()
            }
            for environment, of in values.items()
        }
        flips = SignFlips(design)
        self.pairs = [
            _PairUnderTest(environment, pair, PairTest(flips))
            for environment, agents in self.values.items()
            for pair in combinations(agents, 2)
        ]
        if not self.pairs:
            raise InvalidArgumentError(
                "values", expected="at least two agents in one environment", problem="there is nothing to compare"
            )
        design.check_decidable(len(self.pairs))
        self.used = {environment: dict.fromkeys(agents, 0) for environment, agents in self.values.items()}

    @property
    def open_pairs(self) -> list[_PairUnderTest]:
        return [pair for pair in self.pairs if not pair.decided_at]

    def can_look(self) -> bool:
        """Whether there is another look, and all open agents have its seeds."""
        if self.interims == self.design.max_interims or not self.open_pairs:
            return False
        end = (self.interims + 1) * self.design.seeds_per_interim
        return all(
            self.values[pair.environment][agent].size >= end for pair in self.open_pairs for agent in pair.agents
        )

    def look(self) -> None:
        """Add one interim's seeds to all open pairs, then decide what can be decided."""
        n = self.design.seeds_per_interim
        seeds = slice(self.interims * n, (self.interims + 1) * n)
        self.interims += 1
        for pair in self.open_pairs:
            mine = self.values[pair.environment]
            first, second = (mine[agent][seeds] for agent in pair.agents)
            pair.test.add(first - second)
            pair.mean = pair.test.mean
            for agent in pair.agents:
                self.used[pair.environment][agent] = seeds.stop
        while self._decide():
            pass

    def _decide(self) -> bool:
        """Decide the pairs that the current level rejects; whether there were any."""
        divisor = self._most_equal_pairs()
        found = [pair for pair in self.open_pairs if pair.test.divisor(divisor) >= divisor]
        for pair in found:
            pair.decided_at = self.interims
        return bool(found)

    def _most_equal_pairs(self) -> int:
        """The most pairs that can be equal, given how many are decided."""
        total = 0
        for environment, agents in self.values.items():
            decided = sum(1 for pair in self.pairs if pair.environment == environment and pair.decided_at)
            total += most_equal_pairs(len(agents), decided)
        return max(1, total)

    def result(self) -> SequentialComparison:
        decisions = tuple(pair.decision(self.interims, self.design) for pair in self.pairs)
        return SequentialComparison(self.design, decisions, self.interims, self.used)


def _checked(numbers: ArrayLike, agent: str, negate: bool) -> Floats:
    found = np.asarray(numbers, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise InvalidArgumentError("values", problem=f"the values of {agent} are not a list of finite numbers")
    return -found if negate else found


def most_equal_pairs(agents: int, decided: int) -> int:
    """The most pairs of agents that can be equal if so many pairs differ (Shaffer 1986).

    Equality splits the agents into groups of sizes g with Σ g = `agents`, and Σ g(g-1)/2 pairs are equal.

    >>> [most_equal_pairs(4, decided) for decided in range(7)]
    [6, 3, 3, 3, 2, 1, 0]
    """
    allowed = agents * (agents - 1) // 2 - decided
    return max(count for count in _counts_of_equal_pairs(agents) if count <= allowed)


@cache
def _counts_of_equal_pairs(agents: int) -> frozenset[int]:
    """Every number of equal pairs that some split into groups has."""
    if agents <= 1:
        return frozenset([0])
    return frozenset(
        size * (size - 1) // 2 + rest for size in range(1, agents + 1) for rest in _counts_of_equal_pairs(agents - size)
    )
