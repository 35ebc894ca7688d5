"""How slowly an MDP mixes: what `solve` says about it, and whether its chains can be eliminated instead of iterated."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from gainful.errors import SlowMixingWarning, level_of_the_caller
from gainful.mdp.model import MDP
from gainful.planning.relaxation import Relaxation
from gainful.progress import duration

BAND_ENTRIES = 20_000_000
"""The most entries of a band matrix that is factored to evaluate a policy: about 1 GB with everything around it."""
ELIMINATION_WORK = 500_000_000
"""The most operations of such an elimination that count as little."""
LEAST_NARROW = 300
"""States up to which exact evaluation is not tried early."""

WARN_AFTER_SECONDS = 10.0
"""Seconds after which a search says what is left of it."""
NOTED_EVERY = 100
"""Sweeps between two widths that the estimate is made of, at least; a tenth of it where sweeps take long."""
LARGE = 1_000_000
"""Transitions from which sweeps take long."""
STEADY = 0.9
"""The rate of narrowing, as a fraction of what it was before, from which it counts as the same."""
YEAR = 365.25 * 86400.0
"""Seconds."""


def bandwidth(mdp: MDP) -> int:
    """How far apart the states of a transition are, at most, once they are well ordered (reverse Cuthill-McKee).

    1 or 2 for a river or a ring: a policy's linear system is then solved in time S·b², whatever the mixing.
    """
    S, A = mdp.n_states, mdp.n_actions
    states = np.repeat(np.arange(S * A) // A, np.diff(mdp.indptr)).astype(np.int32)
    moves = mdp.indices.view(np.int32)
    ones = np.ones(moves.size, dtype=np.int8)
    graph = sp.csr_matrix((np.concatenate([ones, ones]), (np.r_[states, moves], np.r_[moves, states])), shape=(S, S))
    place = np.empty(S, dtype=np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(S)
    return int(np.abs(place[states] - place[moves]).max(initial=0))


def is_narrow(mdp: MDP) -> bool:
    """Whether the policies of a large MDP are evaluated in seconds by eliminating states, whatever the mixing."""
    if not LEAST_NARROW < mdp.n_states <= BAND_ENTRIES or mdp.n_transitions > BAND_ENTRIES:
        return False
    return mdp.n_states * (2 * bandwidth(mdp) + 1) ** 2 <= ELIMINATION_WORK


def is_local(mdp: MDP) -> bool:
    """Whether the policies of an MDP can be evaluated by eliminating states, because each leads to near ones only."""
    return mdp.n_transitions <= BAND_ENTRIES and (2 * bandwidth(mdp) + 1) * mdp.n_states <= BAND_ENTRIES


class MixingEstimate:
    """How the bracket of a search has narrowed, and how many sweeps are left at that rate.

    Examples
    --------
    >>> estimate = MixingEstimate(0.001)
    >>> estimate.add(1000, 1.0)
    >>> estimate.add(2000, 0.1)
    >>> float(estimate.sweeps_left())
    2000.0
    """

    def __init__(self, target: float) -> None:
        self.target = target
        self._seen: list[tuple[int, float]] = []

    def add(self, sweeps: int, width: float) -> None:
        """Take down the width of the bracket after a number of sweeps."""
        self._seen.append((sweeps, width))

    def sweeps_left(self) -> float:
        """The sweeps still needed if the bracket goes on to narrow as it last did; inf if it has not narrowed."""
        rate = _rate(_last_half(self._seen))
        if not rate > 0.0:
            return math.inf
        narrow = self._seen[-1][1]
        return math.ceil(max(0.0, math.log(narrow) - math.log(self.target)) / rate * (1.0 - 1e-12))

    @property
    def is_steady(self) -> bool:
        """Whether the rate was the same in the last half of the sweeps as in the half before: then it goes on.

        Before news has spread over all states the bracket narrows like a power of the sweeps, at a rate that halves
        whenever they double.
        """
        last = _last_half(self._seen)
        before = _last_half(self._seen[: len(self._seen) - len(last) + 1])
        return 0.0 < STEADY * _rate(before) <= _rate(last)

    def in_words(self, sweeps: int, seconds: float, known: Relaxation | None = None) -> str:
        """What is left after `sweeps` in that many `seconds`, as a sentence that says why.

        `known` is what the graph says about the sweeps needed; it counts where the bracket does not show them yet.
        """
        left, each = self.sweeps_left(), seconds / max(1, sweeps)
        needed = 0.0 if known is None else known.sweeps(self._seen[-1][1] if self._seen else 1.0, self.target)
        if known is not None and (sweeps < known.distance or (needed > sweeps and not self.is_steady)):
            return f"mixing is the limit: {known.reason}, which takes about {_sweeps_and_time(needed, each)}"
        if self.is_steady:
            return f"mixing is the limit: at the present rate about {_sweeps_and_time(left, each)} more are needed"
        if left == math.inf:
            return (
                "mixing is the limit: the bracket does not narrow at present; each sweep carries news of a reward one "
                "transition further, and a move of probability p needs about 1/p sweeps"
            )
        return (
            f"mixing is the limit: at least {_sweeps_and_time(left, each)} more are needed, as the bracket narrows "
            "ever more slowly"
        )


def _last_half(seen: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """What was taken down in the last half of the sweeps, at least the last two."""
    if not seen:
        return []
    first = next(i for i, (sweeps, _) in enumerate(seen) if sweeps >= seen[-1][0] / 2)
    return seen[min(first, max(0, len(seen) - 2)) :]


def _rate(seen: list[tuple[int, float]]) -> float:
    """By how much the logarithm of the width decreased per sweep; 0 if it did not."""
    if len(seen) < 2:
        return 0.0
    (before, wide), (now, narrow) = seen[0], seen[-1]
    if not 0.0 < narrow < wide < math.inf or now <= before:
        return 0.0
    return (math.log(wide) - math.log(narrow)) / (now - before)


def _sweeps_and_time(sweeps: float, each: float) -> str:
    return f"{sweeps:.0e} sweeps ({long_duration(sweeps * each)})"


def long_duration(seconds: float) -> str:
    """A time in words, also one that nobody waits for.

    >>> long_duration(75), long_duration(1e10)
    ('1 min 15 s', 'about 3e+02 years')
    """
    return duration(seconds) if seconds < YEAR else f"about {seconds / YEAR:.0e} years"


class SlowSearch:
    """Says once, after ten seconds of a search, that mixing is the limit and how many sweeps are left.

    Parameters
    ----------
    what : str
        The planner.
    mdp : MDP
        Its problem.
    target : float
        The internal width of the bracket that it wants.
    hint : str
        What the user can do.
    known : callable, optional
        What the graph of the process says, asked when it is needed.
    """

    def __init__(
        self,
        what: str,
        mdp: MDP,
        target: float,
        hint: str = "",
        known: Callable[[], Relaxation | None] = lambda: None,
    ) -> None:
        self._what, self._mdp, self._hint, self._known = what, mdp, hint, known
        self._estimate = MixingEstimate(target)
        self._began, self._warned, self._noted = time.monotonic(), False, 0
        self._every = NOTED_EVERY if mdp.n_transitions < LARGE else NOTED_EVERY // 10
        self._before = 0  # sweeps before the clock was started: compiling them takes time
        self._noted_at = self._began

    def look(self, sweeps: int, width: float, hint: str = "") -> None:
        """Take down the width of the bracket after a number of sweeps, and warn if it is time.

        `hint` is about what the search does just now.
        """
        now = time.monotonic()
        if sweeps >= self._noted + self._every:
            if self._noted == 0:
                self._began, self._before = now, sweeps
            self._noted, self._noted_at = sweeps, now
            self._estimate.add(sweeps, width)
        if self._warned or self._noted == 0 or now - self._began < WARN_AFTER_SECONDS:
            return
        self._warned = True
        duration_of_step = self._mdp.units.step_duration
        warnings.warn(
            f"{self._what}: the gain is within {width / duration_of_step:.1e} after {sweeps:,} sweeps "
            f"(wanted {self._estimate.target / duration_of_step:.1e}); {self.what_is_left()}"
            + "".join(f"; {more}" for more in (self._hint, hint) if more),
            SlowMixingWarning,
            stacklevel=level_of_the_caller(),
        )

    def what_is_left(self) -> str:
        """Why it takes long, and an estimate of the sweeps that are still needed."""
        return self._estimate.in_words(self._noted - self._before, self._noted_at - self._began, self._known())
