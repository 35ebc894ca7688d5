"""What an agent with a count-based bonus counts with: `counts=` of such an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, describe
from gainful.pseudo_counts.density import DensityCounts
from gainful.pseudo_counts.hashed import HashedCounts
from gainful.pseudo_counts.named import EXACT, parse_counts


class CountsFromVisits(Protocol):
    """Counts that are a function of the visits: runs stay compiled, and nothing has to be saved with the agent."""

    def table(self, visits: NDArray[np.int64]) -> NDArray[np.float64]:
        """(S,A) pseudo-counts from the (S,A) visits."""


class CountsOfSteps(Protocol):
    """Counts that see every step, such as those of a network that is trained on the way."""

    def update(self, state: int, action: int) -> None:
        """Take note of a step, which was just observed."""

    def count(self, state: int, action: int) -> float:
        """How often the pair seems to have been visited: a finite number of at least 0."""


Counts: TypeAlias = str | Mapping[str, Any] | CountsFromVisits | CountsOfSteps
"""A name ("exact", "modulo:buckets=4", …), what `settings` returned, or an object."""

_EXPECTED = (
    'a name such as "exact" or "modulo:buckets=4", gf.HashedCounts, gf.DensityCounts, or an object with '
    "table(visits), or with update(state, action) and count(state, action)"
)


class BonusCounts:
    """The counts of one agent, whatever they were given as.

    Parameters
    ----------
    given : str, mapping or object
        See `Counts`.
    n_states, n_actions : int
        The agent's.
    """

    def __init__(self, given: Counts, n_states: int, n_actions: int) -> None:
        self.shape = n_states, n_actions
        self._name = ""
        self.provider: Any = given
        if isinstance(given, str):
            name = parse_counts(given)
            self._name, self.provider = str(name), name.make(n_states)
        elif isinstance(given, Mapping):
            self.provider = _from_settings(given)
        self.is_exact = self._name == EXACT
        self.title = self._name or type(self.provider).__name__
        self.sees_steps = not callable(getattr(self.provider, "table", None))
        if isinstance(self.provider, type) or (self.sees_steps and not _has_verbs(self.provider)):
            hint = f"make one: {given.__name__}(...)" if isinstance(given, type) else ""
            raise InvalidArgumentError("counts", given, _EXPECTED, hint, problem=f"counts is {describe(given)}")
        size = getattr(self.provider, "n_states", n_states)
        if size != n_states:
            problem = f"counts are for {size} states, and the agent has {n_states}"
            expected = f"a row of features or a code for each of {n_states} states"
            raise InvalidArgumentError("counts", given, expected, problem=problem)

    def update(self, state: int, action: int) -> None:
        """Let counts that see every step see one."""
        if self.sees_steps:
            self.provider.update(state, action)

    def table(self, visits: NDArray[np.int64]) -> NDArray[np.float64]:
        """(S*A,) pseudo-counts from the (S*A,) visits, checked."""
        if self.is_exact:
            return visits.astype(np.float64)
        found = self._asked() if self.sees_steps else self.provider.table(visits.reshape(self.shape).copy())
        try:
            counts = np.array(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._refusal(f"{self.title}.table returned {describe(found)}") from error
        if counts.shape != self.shape:
            raise self._refusal(f"{self.title}.table returned an array of shape {counts.shape}")
        bad = np.argwhere(~(np.isfinite(counts) & (counts >= 0.0)))
        if bad.size:
            s, a = map(int, bad[0])
            raise self._refusal(f"{self.title} counts {counts[s, a]} visits of action {a} in state {s}")
        return counts.reshape(-1)

    def _asked(self) -> list[list[Any]]:
        """(S,A) what the user's own counts answer, pair by pair."""
        n_states, n_actions = self.shape
        return [[self.provider.count(s, a) for a in range(n_actions)] for s in range(n_states)]

    def _refusal(self, problem: str) -> InvalidArgumentError:
        expected = f"finite numbers of at least 0, of shape {self.shape}"
        return InvalidArgumentError("counts", self.title, expected, problem=problem)

    def settings(self) -> Any:
        """The name, or plain values from which built-in counts are made again; the class of the user's own."""
        if self._name:
            return self._name
        if isinstance(self.provider, HashedCounts | DensityCounts):
            return self.provider.settings()
        made = type(self.provider)
        return f"{made.__module__}:{made.__qualname__}"

    @property
    def cannot_be_saved(self) -> str:
        """Why no file can hold an agent with these counts; empty if one can."""
        if self._name or isinstance(self.provider, HashedCounts | DensityCounts):
            return ""
        return f"gainful cannot make the counts of a {self.title} again"


def _has_verbs(provider: Any) -> bool:
    return callable(getattr(provider, "update", None)) and callable(getattr(provider, "count", None))


def _from_settings(settings: Mapping[str, Any]) -> HashedCounts | DensityCounts:
    kinds: dict[str, type[HashedCounts] | type[DensityCounts]] = {"codes": HashedCounts, "features": DensityCounts}
    for key, kind in kinds.items():
        if set(settings) == {key}:
            return kind.from_settings(settings)
    raise InvalidArgumentError("counts", dict(settings), 'one key, "codes" or "features"')
