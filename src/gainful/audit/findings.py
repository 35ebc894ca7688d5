"""What was found about one statement in one run, in plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.number_text import four_digits

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Columns = TypeVar("Columns", bound="DataclassInstance")
Floats: TypeAlias = NDArray[np.float64]

ROUNDING = 1e-9
"""What rounding may add to either side of an inequality, relative to its larger side."""


@dataclass(frozen=True)
class Worst:
    """Where a statement, found ≤ allowed, came nearest to failing or failed most.

    Attributes
    ----------
    found, allowed : float
        The two sides of the inequality.
    episode, step : int
        The episode, from 1, and its first step.
    state, action : int or None
        The place if there is one.
    seed : int or None
        The seed of the run; None in the finding of a single run.
    excess : float
        found − allowed − rounding, relative to the largest of the three: above 0 the statement failed.

    Examples
    --------
    >>> str(Worst(0.5, 1.0, episode=3, step=40, state=2, action=1, excess=-0.5))
    '0.5 ≤ 1 (episode 3, step 40, state 2, action 1)'
    """

    found: float
    allowed: float
    episode: int
    step: int
    state: int | None = None
    action: int | None = None
    seed: int | None = None
    excess: float = 0.0

    @property
    def relation(self) -> str:
        """How found compares with allowed: "≤", ">", or "≈" if it is above by no more than rounding."""
        return ">" if self.excess > 0.0 else "≤" if self.found <= self.allowed else "≈"

    def __str__(self) -> str:
        place = [] if self.seed is None else [f"seed {self.seed}"]
        place += [f"episode {self.episode:,}", f"step {self.step:,}"]
        if self.state is not None and self.state >= 0:
            place.append(f"state {self.state}")
            if self.action is not None and self.action >= 0:
                place.append(f"action {self.action}")
        return f"{four_digits(self.found)} {self.relation} {four_digits(self.allowed)} ({', '.join(place)})"


@dataclass(frozen=True)
class Finding:
    """One statement in one run.

    Attributes
    ----------
    checks, failures : int
        How often it was checked, and how often it failed.
    worst : Worst or None
        Its worst case; None if it was not checked.
    reason : str
        Why it is not applicable; empty if it is.
    certain : bool
        Whether it could not have failed in this run, because whatever was possible is allowed.
    unproven : str
        Why no theorem says that it holds; empty if one does. The numbers then only describe what happened.

    Examples
    --------
    >>> finding = Finding(checks=12, failures=0, worst=None)
    >>> finding.applicable, finding.failures
    (True, 0)
    """

    checks: int
    failures: int
    worst: Worst | None
    reason: str = ""
    certain: bool = False
    unproven: str = ""

    @property
    def applicable(self) -> bool:
        """Whether its assumptions hold here, so that it was checked."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """Convert the finding to plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name, `worst` as a dictionary of its own.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Finding:
        """Make a finding from what `to_dict` returned.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, possibly by way of JSON.

        Returns
        -------
        Finding
            An equal finding.

        Examples
        --------
        >>> finding = Finding(checks=12, failures=0, worst=None)
        >>> Finding.from_dict(finding.to_dict()) == finding
        True
        """
        worst = values["worst"]
        return cls(**{**values, "worst": None if worst is None else Worst(**worst)})


@dataclass(frozen=True)
class Cases:
    """found ≤ allowed, asked once per episode: arrays with one entry for each.

    Attributes
    ----------
    found, allowed : array
        The two sides of the inequality, at the place that is nearest to failing.
    rounding : array
        What rounding may add to either side.
    states, actions : array or None
        The place if there is one; -1 for none.
    certain : array of bool or None
        Whether nothing that is possible exceeds what is allowed; None if that is not known.
    """

    found: Floats
    allowed: Floats
    rounding: Floats
    states: NDArray[np.int64] | None = None
    actions: NDArray[np.int64] | None = None
    certain: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, found: ArrayLike, allowed: ArrayLike, rounding: ArrayLike = 0.0, **places: Any) -> Cases:
        """Cases whose `allowed` and `rounding` may be single numbers; arrays are copied."""
        left = np.array(found, dtype=np.float64)
        right, spare = (np.zeros_like(left) + np.asarray(x) for x in (allowed, rounding))
        return cls(left, right, spare, **places)

    def finding(self, steps: ArrayLike) -> Finding:
        """The finding over all episodes; `steps` are their first steps."""
        return compared(
            self.found,
            self.allowed,
            steps,
            states=self.states,
            actions=self.actions,
            rounding=self.rounding,
            certain=self.certain,
        )


def joined(parts: Sequence[Columns]) -> Columns:
    """One dataclass of arrays from those of several batches, one after the other; None stays None."""
    columns: dict[str, Any] = {}
    for field in fields(parts[0]):
        arrays = [getattr(part, field.name) for part in parts]
        columns[field.name] = None if arrays[0] is None else np.concatenate(arrays)
    return type(parts[0])(**columns)


def not_applicable(reason: str) -> Finding:
    """A statement whose assumptions do not hold here."""
    return Finding(0, 0, None, reason)


def without_theorem(why: str, found: Finding | None = None) -> Finding:
    """A statement that nobody has proven for this agent, with what was found about it, if it was looked at.

    >>> without_theorem("the regret of PSRL is bounded on average over the prior only").checks
    0
    """
    return replace(Finding(0, 0, None) if found is None else found, unproven=why)


def compared(
    found: ArrayLike,
    allowed: ArrayLike,
    steps: ArrayLike,
    *,
    states: ArrayLike | None = None,
    actions: ArrayLike | None = None,
    episodes: ArrayLike | None = None,
    rounding: ArrayLike = 0.0,
    certain: ArrayLike | None = None,
) -> Finding:
    """Check found ≤ allowed, one number of each per episode, up to rounding; NaN on either side is a failure.

    Parameters
    ----------
    found, allowed : array_like
        The two sides.
    steps : array_like
        The first step of each episode.
    states, actions : array_like, optional
        The place that each number belongs to.
    episodes : array_like, optional
        The number of the episode, from 1, where entries are not one per episode.
    rounding : array_like
        An absolute allowance in addition to the relative one, `ROUNDING`.
    certain : array_like of bool, optional
        For each entry whether nothing that is possible exceeds `allowed`.

    Examples
    --------
    >>> finding = compared([0.5, 1.5, 1.0], 1.0, steps=[1, 10, 100])
    >>> finding.checks, finding.failures, finding.worst.step
    (3, 1, 10)
    """
    left = np.atleast_1d(np.asarray(found, dtype=np.float64))
    right = np.broadcast_to(np.asarray(allowed, dtype=np.float64), left.shape)
    if left.size == 0:
        return not_applicable("nothing to check: no episode was complete")
    scale = np.maximum(np.abs(left), np.abs(right))
    spare = ROUNDING * scale + np.asarray(rounding)
    with np.errstate(invalid="ignore"):
        above = left - right - spare
    holds = above <= 0.0  # false for NaN
    excess = np.where(np.isnan(above), np.inf, above / np.maximum(np.maximum(scale, spare), 1e-300))
    i = int(np.argmax(excess))

    def at(values: ArrayLike | None) -> int | None:
        return None if values is None else int(np.broadcast_to(np.asarray(values), left.shape)[i])

    number = i + 1 if episodes is None else at(episodes)
    step = at(steps)
    assert number is not None
    assert step is not None
    worst = Worst(float(left[i]), float(right[i]), number, step, at(states), at(actions), excess=float(excess[i]))
    return Finding(left.size, int(np.sum(~holds)), worst, certain=certain is not None and bool(np.all(certain)))
