"""How slowly an MDP mixes: what `solve` says about it, and whether its chains can be eliminated instead of iterated."""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from gainful.errors import SlowMixingWarning
from gainful.mdp.model import MDP
from gainful.progress import duration

BAND_ENTRIES = 20_000_000
"""The most entries of a band matrix that is factored to evaluate a policy: about 1 GB with everything around it."""

WARN_AFTER_SECONDS = 10.0
"""Seconds after which a search says what is left of it."""
NOTED_EVERY = 100
"""Sweeps between two widths that the estimate is made of, at least; a tenth of it where sweeps take long."""
LARGE = 1_000_000
"""Transitions from which sweeps take long."""


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
        if len(self._seen) < 2:
            return math.inf
        (before, wide), (now, narrow) = self._seen[-2:]
        if not 0.0 < narrow < wide < math.inf or now <= before:
            return math.inf
        rate = (math.log(wide) - math.log(narrow)) / (now - before)
        return math.ceil(max(0.0, math.log(narrow) - math.log(self.target)) / rate * (1.0 - 1e-12))

    def in_words(self, n_states: int, sweeps: int, seconds: float) -> str:
        """What is left after `sweeps` in that many `seconds`, as a sentence that says why."""
        left, slowest, each = self.sweeps_left(), float(n_states) ** 2, seconds / max(1, sweeps)
        if sweeps < slowest < left:
            return (
                "mixing is the limit: the bracket hardly narrows yet, because each sweep carries news of a reward at "
                f"most one transition further; {n_states:,} states need between {n_states:,} sweeps "
                f"({duration(n_states * each)}) and about {slowest:.0e} where moves are nearly symmetric "
                f"({duration(min(slowest * each, 1e15))})"
            )
        if left == math.inf:
            return (
                "mixing is the limit: the bracket has stopped narrowing, because some states are reached by rare moves "
                "only; a move of probability p needs about 1/p sweeps"
            )
        return (
            f"mixing is the limit: at the present rate about {left:.2g} more sweeps are needed "
            f"({duration(min(left * each, 1e15))})"
        )


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
    """

    def __init__(self, what: str, mdp: MDP, target: float, hint: str = "") -> None:
        self._what, self._mdp, self._hint = what, mdp, hint
        self._estimate = MixingEstimate(target)
        self._began, self._warned, self._noted = time.monotonic(), False, 0
        self._every = NOTED_EVERY if mdp.n_transitions < LARGE else NOTED_EVERY // 10
        self._before = 0  # sweeps before the clock was started: compiling them takes time

    def look(self, sweeps: int, width: float) -> None:
        """Take down the width of the bracket after a number of sweeps, and warn if it is time."""
        if sweeps < self._noted + self._every:
            return
        if self._noted == 0:
            self._began, self._before = time.monotonic(), sweeps
        self._noted = sweeps
        self._estimate.add(sweeps, width)
        if self._warned or sweeps == self._before or time.monotonic() - self._began < WARN_AFTER_SECONDS:
            return
        self._warned = True
        duration_of_step = self._mdp.units.step_duration
        warnings.warn(
            f"{self._what}: the gain is within {width / duration_of_step:.1e} after {sweeps:,} sweeps "
            f"(wanted {self._estimate.target / duration_of_step:.1e}); {self.what_is_left(sweeps)}"
            + (f"; {self._hint}" if self._hint else ""),
            SlowMixingWarning,
            stacklevel=5,
        )

    def what_is_left(self, sweeps: int) -> str:
        """Why it takes long, and an estimate of the sweeps that are still needed."""
        return self._estimate.in_words(self._mdp.n_states, sweeps - self._before, time.monotonic() - self._began)
