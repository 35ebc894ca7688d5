"""Checks of a user's own counts for a count-based bonus, before an agent relies on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import ConformanceError, InvalidArgumentError
from gainful.pseudo_counts.provider import BonusCounts


def check_counts(make: Callable[[], Any], n_states: int, n_actions: int, *, steps: int = 200) -> None:
    """Check that counts of your own keep what an agent with a count-based bonus relies on.

    Counts are finite numbers of at least 0, before the first step and after any. Asking for them changes nothing.
    The same steps give the same counts, and a step does not lower the count of its own pair.

    Parameters
    ----------
    make : callable
        `make()` returns new counts: an object with `table(visits)`, or with `update(state, action)` and
        `count(state, action)`.
    n_states, n_actions : int
        The numbers of states S and actions A that they are for.
    steps : int
        The number of random steps that they are shown.

    Raises
    ------
    ConformanceError
        If a contract is broken; the message names it.

    Examples
    --------
    >>> import gainful as gf
    >>> from gainful.testing import check_counts
    >>> check_counts(lambda: gf.HashedCounts.modulo(6, 2), 6, 2)
    """
    first, second = _Watched(make(), n_states, n_actions), _Watched(make(), n_states, n_actions)
    rng = np.random.default_rng(0)
    before = first.counts("before the first step")
    for step in range(1, steps + 1):
        s, a = int(rng.integers(n_states)), int(rng.integers(n_actions))
        when = f"after step {step}, action {a} in state {s}"
        for each in (first, second):
            each.step(s, a)
        now = first.counts(when)
        _require(np.array_equal(now, first.counts(when)), "asking for counts changes nothing", when)
        _require(np.array_equal(now, second.counts(when)), "the same steps give the same counts", when)
        fell = f"{when}: from {before[s, a]:g} to {now[s, a]:g}"
        _require(bool(now[s, a] >= before[s, a]), "a step does not lower the count of its pair", fell)
        before = now


class _Watched:
    """Counts, with the visits that they are computed from."""

    def __init__(self, provider: Any, n_states: int, n_actions: int) -> None:
        self.counted = BonusCounts(provider, n_states, n_actions)
        self.visits = np.zeros((n_states, n_actions), dtype=np.int64)

    def step(self, state: int, action: int) -> None:
        self.visits[state, action] += 1
        self.counted.update(state, action)

    def counts(self, when: str) -> NDArray[np.float64]:
        try:
            return self.counted.table(self.visits.reshape(-1)).reshape(self.visits.shape)
        except InvalidArgumentError as error:
            promise = "counts are finite numbers of at least 0, one for each pair"
            raise _broken(promise, f"{when}: {error.problem}") from error


def _require(holds: bool, promise: str, detail: str) -> None:
    if not holds:
        raise _broken(promise, detail)


def _broken(promise: str, detail: str) -> ConformanceError:
    problem = f"a contract of counts is broken: {promise} ({detail})"
    return ConformanceError(problem, name=promise, found=detail, hint="docs/howto/pseudo_counts.md has an example")
