"""Which bound on the span to plan with next: play so far, what each bound claims, and which claims are refuted.

Everything is in units of r_max: base i plans with c_i = 2^i. The proofs are in docs/unknown_span.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.saved_arrays import check_saved
from gainful.agents.statistics import Statistics
from gainful.agents.turns import Turns

MOST_BASES = 60
"""More bases than any run can use: base i is used from step 2^i·S·A on."""
GROWTH = 4
"""An episode ends at the latest when c_i·n_i of its base is so many times the least of the other bases."""


def state_surplus(statistics: Statistics, n_states: int) -> NDArray[np.int64]:
    """(S,) how many of all steps ended in each state less how many began there; 0 in total."""
    kept = statistics.to_arrays()
    ended = np.bincount(kept["next_state"], weights=kept["count"], minlength=n_states).astype(np.int64)
    found: NDArray[np.int64] = ended - statistics.visits.reshape(n_states, -1).sum(axis=1)
    return found


class SpanLedger(Turns):
    """Steps, rewards and claims of every base, and which of them are refuted.

    Parameters
    ----------
    n_pairs : int
        S·A.
    delta : float
        δ: the probability with which a base whose c is large enough may be given up.
    n_states : int
        S.
    """

    def __init__(self, n_pairs: int, delta: float, n_states: int = 1) -> None:
        super().__init__(0)  # none in use yet
        self.n_states, self.n_pairs, self.delta = n_states, n_pairs, delta
        self.surplus: NDArray[np.int64] = np.zeros((0, n_states), dtype=np.int64)
        """(k, S) how often its steps ended in each state less how often they began there."""
        self.claims: NDArray[np.float64] = np.zeros(0)
        """(k,) the least optimistic gain of all its plans; infinite before the first."""
        self.refuted: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._seen_surplus: NDArray[np.int64] = np.zeros(n_states, dtype=np.int64)

    @property
    def n_bases(self) -> int:
        """How many bases are in use, refuted ones included."""
        return int(self.steps.size)

    @property
    def active(self) -> NDArray[np.int64]:
        """The bases that are not refuted."""
        return np.flatnonzero(~self.refuted)

    # ------------------------------------------------------------------ what was played

    def settle(self, steps: int, reward: float, surplus: NDArray[np.int64] | None = None) -> None:
        """Credit what was observed since the last call to the base that played; all three are totals of the agent."""
        surplus = self._seen_surplus if surplus is None else surplus
        self.credit(steps, reward)
        if self.playing >= 0:
            self.surplus[self.playing] += surplus - self._seen_surplus
        self._seen_surplus = surplus

    def extend(self, t: int) -> None:
        """Take base i into use at step 2^i·S·A: before, c_i·S·A > t and its regret bound says nothing."""
        wanted = max(1, (t // self.n_pairs).bit_length())
        more = min(wanted, MOST_BASES) - self.n_bases
        if more > 0:
            nothing = np.zeros(more, dtype=np.int64)
            self.steps, self.segments = (np.concatenate([old, nothing]) for old in (self.steps, self.segments))
            self.rewards = np.concatenate([self.rewards, np.zeros(more)])
            self.surplus = np.concatenate([self.surplus, np.zeros((more, self.n_states), dtype=np.int64)])
            self.claims = np.concatenate([self.claims, np.full(more, math.inf)])
            self.refuted = np.concatenate([self.refuted, np.zeros(more, dtype=bool)])

    # ------------------------------------------------------------------ what follows from it

    def pieces(self, j: int) -> int:
        """m_j: what the differences of h* over the steps of a base add up to is at most m_j·sp(h*).

        They add up to Σ_s h*(s)·surplus(s) in whatever order the steps came, so half of Σ |surplus| is enough. Where
        each step begins where the last one ended, the number of stretches is no less, and it is taken.
        """
        return max(int(self.segments[j]), int(np.abs(self.surplus[j]).sum()) // 2)

    def proven_gain(self, i: int) -> float:
        r"""A lower bound on g* if sp(h*) ≤ c_i, of the best base.

        The largest, over bases j with n_j steps, m_j pieces (`pieces`) and rewards X_j, of
        [X_j - c_i·m_j - (1 + c_i)·sqrt(n_j/2 · ln(n_j(n_j+1)(j+1)(j+2)/δ))]/n_j.
        """
        c, best = 2.0**i, -math.inf
        for j in np.flatnonzero(self.steps).tolist():
            n = int(self.steps[j])
            level = math.log(n) + math.log(n + 1) + math.log((j + 1) * (j + 2)) - math.log(self.delta)
            loss = c * self.pieces(j) + (1.0 + c) * math.sqrt(0.5 * n * level)
            best = max(best, (float(self.rewards[j]) - loss) / n)
        return best

    def is_refuted(self, i: int) -> bool:
        """Whether base i claims less than is proven if its c is large enough."""
        return bool(self.claims[i] < self.proven_gain(i))

    def refute(self) -> None:
        """Give up every base whose claim is refuted, except that the largest c is kept if all are."""
        for i in self.active.tolist():
            if self.active.size > 1 and self.is_refuted(i):
                self.refuted[i] = True

    def choose(self) -> int:
        """The active base with the least c_i·n_i, the square of what its regret bound grows with; ties to small c."""
        return int(min(self.active.tolist(), key=lambda i: (int(self.steps[i]) << i, i)))

    def longest(self, i: int) -> int | None:
        """The most steps of an episode of base i: until c_i·n_i is GROWTH times the least of the others; None: any."""
        others: list[int] = [int(self.steps[j]) << j for j in self.active.tolist() if j != i]
        if not others:
            return None
        allowed: int = GROWTH * max(min(others), 1 << i) >> i
        return max(1, allowed - int(self.steps[i]))

    # ------------------------------------------------------------------ files

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, to be saved."""
        return {
            "steps": self.steps,
            "rewards": self.rewards,
            "segments": self.segments,
            "surplus": self.surplus,
            "seen_surplus": self._seen_surplus,
            "claims": self.claims,
            "refuted": self.refuted,
            "seen": np.array([self.seen_steps, self.playing], dtype=np.int64),
            "seen_reward": np.array([self.seen_reward]),
        }

    def restore(self, arrays: dict[str, NDArray[Any]], t: int) -> None:
        """Take back what `arrays` returned, of an agent that has observed t steps."""
        k = arrays["steps"].size
        if k > MOST_BASES:
            raise ValueError(f"{k} bases, at most {MOST_BASES}")
        whole = np.zeros(k, dtype=np.int64)
        for name in ("steps", "segments"):
            check_saved(arrays, name, whole, low=0, high=t)
        check_saved(arrays, "surplus", np.zeros((k, self.n_states), dtype=np.int64), low=-t, high=t)
        check_saved(arrays, "seen_surplus", self._seen_surplus, low=-t, high=t)
        check_saved(arrays, "rewards", np.zeros(k))
        check_saved(arrays, "refuted", np.zeros(k, dtype=bool))
        check_saved(arrays, "seen", np.zeros(2, dtype=np.int64), low=-1)
        check_saved(arrays, "seen_reward", np.zeros(1))
        claims = arrays["claims"]
        if claims.shape != (k,) or claims.dtype != np.float64 or np.isnan(claims).any():
            raise ValueError("array 'claims' holds something that is no gain")
        seen, playing = (int(x) for x in arrays["seen"])
        if not 0 <= seen <= t or playing >= k or (k and arrays["refuted"].all()) or int(arrays["steps"].sum()) > t:
            raise ValueError("the ledger does not fit the number of steps")
        self.steps, self.segments = arrays["steps"].copy(), arrays["segments"].copy()
        self.surplus, self._seen_surplus = arrays["surplus"].copy(), arrays["seen_surplus"].copy()
        self.rewards, self.claims = arrays["rewards"].copy(), claims.copy()
        self.refuted, self.playing = arrays["refuted"].copy(), playing
        self.seen_steps, self.seen_reward = seen, float(arrays["seen_reward"][0])
