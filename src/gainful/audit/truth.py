"""What an audit knows and an agent does not know: the true model, its gain and its bias."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gainful.errors import GainfulError, PrecisionError
from gainful.mdp.model import MDP
from gainful.planning.hitting import diameter, hitting_times
from gainful.planning.solve import solve
from gainful.simulation.transition_table import RewardLaw

GAIN_PRECISION = 1e-9
"""The precision to which g* is solved, relative to the range of rewards; coarser if rounding does not allow it."""
LARGEST_DIAMETER = 500
"""States up to which the diameter is computed. Only the lower bound that is shown needs it."""


@dataclass(frozen=True, eq=False)
class Truth:
    """A solved MDP: rewards and gain as the agent sees them (to be maximised, per step)."""

    mdp: MDP = field(repr=False)
    gain: float
    gain_low: float
    """The proven lower end of g*, with which optimism is compared."""
    bias: NDArray[np.float64] = field(repr=False)
    """(S,) h*, a solution of the optimality equation, up to the precision of the gain."""
    rewards: NDArray[np.float64] = field(repr=False)
    """(S*A,) mean rewards."""

    @classmethod
    def of(cls, mdp: MDP) -> Truth:
        """Solve an MDP."""
        low, high = mdp.reward_range
        units, wanted = mdp.units, GAIN_PRECISION * (high - low or 1.0)
        while True:
            try:
                found = solve(mdp, precision=wanted / units.step_duration)
                break
            except PrecisionError:  # large rewards that differ little: what float64 can certify
                wanted *= 10.0
                if wanted > high - low:
                    raise
        ends = [units.sign * end * units.step_duration for end in found.gain_bounds]
        return cls(
            mdp=mdp,
            gain=units.sign * found.gain * units.step_duration,
            gain_low=min(ends),
            bias=np.ascontiguousarray(units.sign * found.bias),
            rewards=RewardLaw.of(mdp).means,
        )

    @property
    def environment(self) -> MDP:
        """What was solved."""
        return self.mdp

    @property
    def span(self) -> float:
        """sp(h*)."""
        return float(np.ptp(self.bias))

    @cached_property
    def support(self) -> int:
        """Γ, the most next states of a pair."""
        return int(np.diff(self.rows[0]).max())

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
        """Transition rows, CSR over pairs, sorted, each next state once (a table may list one with two rewards)."""
        ptr, idx, p = self.mdp.indptr, self.mdp.indices, self.mdp.probabilities
        pair = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
        new = np.ones(idx.size, dtype=bool)
        new[1:] = (idx[1:] != idx[:-1]) | (pair[1:] != pair[:-1])
        first = np.flatnonzero(new)
        lengths = np.bincount(pair[first], minlength=ptr.size - 1)
        return np.concatenate([[0], np.cumsum(lengths)]), idx[first].copy(), np.add.reduceat(p, first)

    @cached_property
    def diameter(self) -> float | None:
        """D, or None if it is infinite or would take long to compute."""
        if self.mdp.n_states > LARGEST_DIAMETER:
            return None
        try:
            found = float(diameter(self.mdp))
        except GainfulError:
            return None
        return found if np.isfinite(found) else None

    @cached_property
    def hitting_times(self) -> NDArray[np.float64]:
        """(S,S) τ_z(s), the least expected number of steps from s to z; infinite if z cannot be reached."""
        return hitting_times(self.mdp)
