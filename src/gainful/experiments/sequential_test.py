"""Whether two agents differ, tested again and again as seeds are added, with one stated error for all looks.

The test is a group sequential permutation test, as in AdaStop: Mathieu, Della Vecchia, Shilova, Centa de Medeiros,
Kohler, Maillard and Preux (2024), AdaStop: adaptive statistical testing for sound comparisons of Deep RL agents,
Transactions on Machine Learning Research. The paper's agents have seeds of their own, and its test exchanges values
between any two runs of two agents. Agents are compared on shared seeds here, so their values may be dependent; the
test therefore exchanges the two values of a seed, which flips the sign of their difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError

Floats = NDArray[np.float64]

TIE_UNITS = 1e10
"""Sums that differ by less than 1/TIE_UNITS of the sum of all |differences| are ties, whatever rounding says."""

MOST_FLIPS = 5_000_000
"""More flips are not drawn: they would take gigabytes."""


@dataclass(frozen=True)
class SequentialDesign:
    r"""What is fixed before the first look at the data.

    Parameters
    ----------
    error : float
        α, the probability that at least one of two equal agents is called better, over all comparisons and looks.
    seeds_per_interim : int
        Seeds that are added before each look.
    max_interims : int
        Looks after which what is not decided stays undecided.
    flips : int
        Ways to flip signs, the identity included, that a test draws. The error is at most α whatever their number.
    seed : int
        Of these draws.

    Examples
    --------
    >>> design = SequentialDesign(error=0.05, seeds_per_interim=5, max_interims=4)
    >>> design.max_seeds, design.to_json()["error"]
    (20, 0.05)
    """

    error: float = 0.05
    seeds_per_interim: int = 10
    max_interims: int = 10
    flips: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.error < 1.0:
            raise InvalidArgumentError("error", self.error, "a probability between 0 and 1, such as 0.05")
        for name, least in (("seeds_per_interim", 1), ("max_interims", 1), ("flips", 2), ("seed", 0)):
            value: Any = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidArgumentError(name, value, f"a whole number of at least {least}")

    @property
    def max_seeds(self) -> int:
        """The most seeds of an agent."""
        return self.seeds_per_interim * self.max_interims

    def check_decidable(self, comparisons: int) -> None:
        """Refuse a design whose last look cannot decide even if one agent wins on every seed.

        Parameters
        ----------
        comparisons : int
            How many pairs of agents are compared at first.

        Raises
        ------
        InvalidArgumentError
            If 2^(1 - max_seeds), the probability of that by chance, is above error/comparisons.
        """
        needed = 1 + math.ceil(math.log2(comparisons / self.error))
        if self.max_seeds < needed:
            raise InvalidArgumentError(
                "max_seeds",
                self.max_seeds,
                f"at least {needed}",
                problem=f"{self.max_seeds} seeds cannot decide {comparisons:,} comparison"
                f"{'' if comparisons == 1 else 's'} at an error of {self.error:g}: even an agent that is better on "
                "every seed may be so by chance",
            )
        if self.flips * self.error < comparisons * self.max_interims:
            least = math.ceil(comparisons * self.max_interims / self.error)
            raise InvalidArgumentError("flips", self.flips, f"at least {least:,} for {comparisons:,} comparisons")

    def to_json(self) -> dict[str, Any]:
        """The design as plain values."""
        names = ("error", "seeds_per_interim", "max_interims", "flips", "seed")
        return {name: getattr(self, name) for name in names}


def flips_for(comparisons: int, interims: int, error: float) -> int:
    """How many flips to draw: 10,000, or ten times what the strictest level of the first look needs.

    >>> flips_for(3, 10, 0.05), flips_for(90, 10, 0.05)
    (10000, 180000)
    """
    least = 10 * comparisons * interims / MOST_FLIPS
    if error < least:
        raise InvalidArgumentError(
            "error", error, f"at least {least:.2g} for {comparisons:,} comparisons and {interims:,} looks"
        )
    return max(10_000, math.ceil(10 * comparisons * interims / error))


class SignFlips:
    """The sign flips of a design, drawn interim by interim; the same for all comparisons."""

    def __init__(self, design: SequentialDesign) -> None:
        self.design = design
        self._drawn: list[NDArray[np.int8]] = []

    def of_interim(self, k: int) -> NDArray[np.int8]:
        """(flips, seeds per interim) signs for the seeds of interim k (from 0); the first row is the identity."""
        while len(self._drawn) <= k:
            sequence = np.random.SeedSequence(self.design.seed, spawn_key=(len(self._drawn),))
            shape = self.design.flips, self.design.seeds_per_interim
            signs = 2 * np.random.default_rng(sequence).integers(0, 2, shape, dtype=np.int8) - 1
            signs[0] = 1
            self._drawn.append(signs)
        return self._drawn[k]


class PairTest:
    r"""The group sequential sign-flip test of one pair of agents.

    Parameters
    ----------
    flips : SignFlips
        The flips of the design.

    Notes
    -----
    D_i is the difference of the two agents on seed i. If they are equal in the sense that exchanging their values on a
    seed changes nothing (hypothesis H), (D_i) and (σ_i D_i) have the same law for independent random signs σ_i. With
    B - 1 such σ and the identity σ⁰, S_k(b) = \|Σ_{i ≤ kn} σᵇ_i D_i\| at interim k. At level a, up to ⌊B a k/K⌋ flips
    are rejected by interim k: of those not rejected before, the ones with the largest S_k, ties together or not at all.
    The rule treats all b alike and S(0), …, S(B-1) are exchangeable under H, so the identity is rejected at any interim
    with probability at most a: the bound holds for every number of seeds, interims and flips, and interim k uses only
    the seeds up to k. This is AdaStop's rule (its spending of α/K per interim, given what was not rejected earlier)
    with sign flips for permutations.

    Examples
    --------
    >>> test = PairTest(SignFlips(SequentialDesign(seeds_per_interim=8, max_interims=2)))
    >>> test.add(np.array([1.0, 2.0, 1.5, 0.5, 1.2, 0.7, 2.2, 1.1]))
    >>> test.divisor(3)  # decided even if three comparisons share the error
    3
    """

    def __init__(self, flips: SignFlips) -> None:
        self._flips = flips
        self._sums = np.zeros(flips.design.flips)
        self._values = np.empty(0)
        self._extremes: list[Floats] = []
        self._divisor = 0

    @property
    def interims(self) -> int:
        """How many interims have been added."""
        return len(self._extremes)

    @property
    def mean(self) -> float:
        """The mean difference so far."""
        return float(self._values.mean())

    def add(self, differences: Floats) -> None:
        """Add the differences on the seeds of the next interim."""
        signs = self._flips.of_interim(self.interims)
        self._values = np.concatenate([self._values, differences])
        self._sums = self._sums + (signs * differences).sum(axis=1)
        unit = np.abs(self._values).sum() / TIE_UNITS
        self._extremes.append(np.rint(np.abs(self._sums) / unit) if unit > 0 else np.zeros_like(self._sums))

    def divisor(self, most: int) -> int:
        """The largest m ≤ `most` such that H is rejected at all levels α, α/2, …, α/m by now; 0 if at none.

        That all greater levels reject, too, makes the tests nested, which the multiple comparison needs: ties alone
        would not allow to conclude it.
        """
        while self._divisor < most and self._rejects(self._flips.design.error / (self._divisor + 1)):
            self._divisor += 1
        return min(self._divisor, most)

    def _rejects(self, level: float) -> bool:
        """Whether the identity is rejected at this level at one of the interims so far."""
        design = self._flips.design
        alive, spent = np.ones(design.flips, dtype=bool), 0
        for k, extremes in enumerate(self._extremes):
            allowed = math.floor(design.flips * level * (k + 1) / design.max_interims * (1.0 + 1e-12)) - spent
            rejected = alive & (extremes > _next_largest(extremes[alive], allowed))
            if rejected[0]:
                return True
            alive &= ~rejected
            spent += int(rejected.sum())
        return False


def _next_largest(values: Floats, count: int) -> float:
    """The (count + 1)-th largest value: at most `count` are above it.

    >>> _next_largest(np.array([3.0, 1.0, 2.0, 2.0]), 2), _next_largest(np.array([1.0]), 1)
    (2.0, -inf)
    """
    if count >= values.size:
        return -math.inf
    place = values.size - 1 - count
    return float(np.partition(values, place)[place])
