"""An MDP made ready to be stepped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.mdp.model import MDP
from gainful.rng import Role, draw, draws, stream_key

DETERMINISTIC, BERNOULLI, TRANSITION = 0, 1, 2
_LAWS = {"deterministic": DETERMINISTIC, "bernoulli": BERNOULLI, "transition": TRANSITION}

LOW_BITS = np.uint64(0xFFFFFFFF)
_NEVER = np.uint32(0xFFFFFFFF)
ONE, FOUR = np.uint64(1), np.uint64(4)


class TransitionTable:
    """Bounds of 32 bits instead of probabilities: next state j of a pair is the first with u ≤ bound[j], u of 32 bits.

    bound[j] = round(2³²·(p_1 + … + p_j)) - 1, and 2³² - 1 for the last. Where no pair has more than 4 (8) next states,
    a pair's bounds and next states stand side by side in `table`, padded to `width` = 4 (8) each, so that a step reads
    one line of memory and counts the bounds below u without a branch. Else `width` is 0 and the rows of the MDP are
    searched by halves.
    """

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        longest = int(np.diff(mdp.indptr).max())
        self.width = np.uint64(4 if longest <= 4 else 8 if longest <= 8 else 0)
        self.first: NDArray[np.uint64] = mdp.indptr.view(np.uint64)
        bound = np.empty(mdp.n_transitions, dtype=np.uint32)
        fill_bounds(self.first, mdp.probabilities, bound)
        self.table: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        if self.width:
            pairs, n, width = mdp.n_states * mdp.n_actions, np.diff(mdp.indptr), int(self.width)
            table = np.full((pairs, 2, width), _NEVER, dtype=np.uint32)
            table[:, 1] = 0
            filled = np.arange(width) < n[:, None]
            table[:, 0][filled], table[:, 1][filled] = bound, mdp.indices
            self.table, bound = table.reshape(-1), bound[:0]
        self.bound: NDArray[np.uint32] = bound
        self.law = _LAWS[mdp.reward_law]
        self.mean: NDArray[np.float64] = (mdp.pair_rewards + mdp.units.offset).copy()
        entry = self.mean[:0] if mdp.entry_rewards is None else mdp.entry_rewards + mdp.units.offset
        self.entry_reward: NDArray[np.float64] = entry
        chance = mdp.units.sign * self.mean if self.law == BERNOULLI else self.mean[:0]
        self.chance: NDArray[np.uint64] = np.rint(chance * 2.0**32).astype(np.uint64)
        self.success = mdp.units.sign

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read."""
        return (
            self.table, self.width, self.first, self.mdp.indices, self.bound, self.law, self.entry_reward, self.chance,
            self.success,
        )  # fmt: skip

    @property
    def typed_arrays(self) -> tuple[Any, ...]:
        """The same, with width and law as tuples of that length: constants to the compiler (up to 1.3 times faster)."""
        table, width, first, indices, bound, law, *rest = self.arrays
        return (table, (0,) * int(width), first, indices, bound, (0,) * law, *rest)


class TabularStepper:
    """An MDP made ready to be stepped.

    Step t (from 0) uses draw number t of the seed's environment stream: the high 32 bits choose the next state (see
    `TransitionTable`, which runs of several seeds may share); the low 32 bits decide a Bernoulli reward. Rewards are
    those of `mdp.rewards`.
    """

    def __init__(self, mdp: MDP, seed: int, dynamics: TransitionTable | None = None) -> None:
        self.mdp, self.key = mdp, stream_key(seed, Role.ENVIRONMENT)
        self.dynamics = TransitionTable(mdp) if dynamics is None else dynamics
        start = np.empty(1, dtype=np.uint64)
        draws(stream_key(seed, Role.START), np.uint64(0), start)
        u = float(start[0] >> np.uint64(11)) * 2.0**-53
        self.first_state = int(np.searchsorted(np.cumsum(mdp.start)[:-1], u, side="right"))
        self._arrays = (*self.dynamics.arrays, self.dynamics.mean, self.key)

    def step(self, t: int, state: int, action: int) -> tuple[float, int]:
        """Reward and next state of step t (from 0): what the compiled loop does, one step at a time."""
        reward, to = one_step(*self._arrays, np.uint64(t), np.uint64(state * self.mdp.n_actions + action))
        return float(reward), int(to)


@kernel
def fill_bounds(first: Any, probabilities: Any, bound: Any) -> None:
    """The bounds of a table; a first one of at least 0, so that 2⁻³² is the least chance of a first next state."""
    for pair in range(first.size - 1):
        total = 0.0
        for j in range(first[pair], first[pair + 1]):
            total += probabilities[j]
            scaled = np.rint(total * 2.0**32)
            bound[j] = np.uint32(np.uint64(min(max(scaled, 1.0), 2.0**32)) - ONE)
        if first[pair + 1] > first[pair]:
            bound[first[pair + 1] - ONE] = _NEVER


@inlined
def below_4(table: Any, at: Any, u: Any) -> Any:
    """How many of the first 3 bounds from `at` on are below u (the 4th never is)."""
    j = np.uint64(0)
    for i in range(3):
        j += np.uint64(u > table[at + np.uint64(i)])
    return j


@inlined
def below_8(table: Any, at: Any, u: Any) -> Any:
    """How many of the first 7 bounds from `at` on are below u (the 8th never is)."""
    j = np.uint64(0)
    for i in range(7):
        j += np.uint64(u > table[at + np.uint64(i)])
    return j


@inlined
def search(bound: Any, first: Any, end: Any, u: Any) -> Any:
    """How many of the bounds first … end - 1, which increase, are below u (the last never is)."""
    low, n = first, end - first
    while n > ONE:
        half = n >> ONE
        low += half * np.uint64(u > bound[low + half - ONE])
        n -= half
    return low - first


@kernel
def one_step(
    table: Any, width: Any, first: Any, indices: Any, bound: Any, law: int, entry_reward: Any, chance: Any,
    success: float, mean: Any, key: Any, t: Any, pair: Any,
) -> tuple[float, Any]:  # fmt: skip
    """Reward and next state of one step from `pair`."""
    bits = draw(key, t)
    u = np.uint32(bits >> np.uint64(32))
    j = first[pair]
    if width == FOUR:
        j += below_4(table, pair << np.uint64(3), u)
    elif width:
        j += below_8(table, pair << np.uint64(4), u)
    else:
        j += search(bound, j, first[pair + ONE], u)
    reward = mean[pair]
    if law == BERNOULLI:
        reward = success if (bits & LOW_BITS) < chance[pair] else 0.0
    elif law == TRANSITION:
        reward = entry_reward[j]
    return reward, np.int64(indices[j])
