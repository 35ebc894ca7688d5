"""A finite MDP made ready for stepping: where a step leads, what it earns, and one step at a time from Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.mdp.model import MDP
from gainful.rng import Key, Role, draw, draws, stream_key

DETERMINISTIC, BERNOULLI, TRANSITION = 0, 1, 2
_LAWS = {"deterministic": DETERMINISTIC, "bernoulli": BERNOULLI, "transition": TRANSITION}

LOW_BITS = np.uint64(0xFFFFFFFF)
_NEVER = np.uint32(0xFFFFFFFF)
ONE, FOUR, EIGHT = np.uint64(1), np.uint64(4), np.uint64(8)


class TransitionTable(NamedTuple):
    """Bounds of 32 bits instead of probabilities: next state j of a pair is the first with u ≤ bound[j], u of 32 bits.

    bound[j] = round(2³²·(p_1 + … + p_j)) - 1, and 2³² - 1 for the last. Where no pair has more than 4 (8) next states,
    a pair's bounds and next states stand side by side in `lines`, padded to a width of 4 (8) each, so that a step reads
    one line of memory and counts the bounds below u without a branch. Else the width is 0 and the rows of the MDP are
    searched by bisection. The width is the length of the tuple `padding`, and so a constant to the compiler (up to 1.3
    times faster).
    """

    lines: Any
    padding: tuple[int, ...]
    first: Any
    next_states: Any
    bounds: Any
    n_actions: Any

    @classmethod
    def of(cls, mdp: MDP) -> TransitionTable:
        """The table of an MDP."""
        sizes = np.diff(mdp.indptr)
        width = 4 if sizes.max() <= 4 else 8 if sizes.max() <= 8 else 0
        first = mdp.indptr.view(np.uint64)
        bounds: NDArray[np.uint32] = np.empty(mdp.n_transitions, dtype=np.uint32)
        fill_bounds(first, mdp.probabilities, bounds)
        lines: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        if width:
            table = np.full((sizes.size, 2, width), _NEVER, dtype=np.uint32)
            table[:, 1] = 0
            filled = np.arange(width) < sizes[:, None]
            table[:, 0][filled], table[:, 1][filled] = bounds, mdp.indices
            lines, bounds = table.reshape(-1), bounds[:0]
        return cls(lines, (0,) * width, first, mdp.indices, bounds, np.uint64(mdp.n_actions))


class RewardLaw(NamedTuple):
    """What a step earns: the pair's mean, `success` with a chance of `chances`·2⁻³² or else 0, or the transition's own.

    The kind of law is the length of the tuple `kind`, and so a constant to the compiler. Arrays that the law does not
    need are empty.
    """

    kind: tuple[int, ...]
    means: Any
    entry_rewards: Any
    chances: Any
    success: float

    @classmethod
    def of(cls, mdp: MDP) -> RewardLaw:
        """The law of an MDP, in the units of `mdp.rewards`."""
        kind, units = _LAWS[mdp.reward_law], mdp.units
        means = (mdp.pair_rewards + units.offset).copy()
        entry_rewards = means[:0] if mdp.entry_rewards is None else mdp.entry_rewards + units.offset
        chances = units.sign * means if kind == BERNOULLI else means[:0]
        return cls((0,) * kind, means, entry_rewards, np.rint(chances * 2.0**32).astype(np.uint64), units.sign)


class TabularStepper:
    """Steps of an MDP, one at a time.

    Step t (from 0) uses draw number t of the seed's environment stream: the high 32 bits choose the next state (see
    `TransitionTable`), the low 32 bits decide a Bernoulli reward. Rewards are those of `mdp.rewards`.
    """

    def __init__(self, mdp: MDP, seed: int) -> None:
        self.key, self.first_state = stream_key(seed, Role.ENVIRONMENT), first_state(mdp, seed)
        self._n_actions = mdp.n_actions
        self._table, self._law = tuple(TransitionTable.of(mdp)), tuple(RewardLaw.of(mdp))

    def step(self, t: int, state: int, action: int) -> tuple[float, int]:
        """Reward and next state of step t (from 0): what the compiled loop does, one step at a time."""
        pair = np.uint64(state * self._n_actions + action)
        reward, to = one_step(self._table, self._law, self.key, np.uint64(t), pair)
        return float(reward), int(to)


def first_draws(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Draw number 0 of many streams."""
    found = np.empty_like(keys)
    draw_of_each(keys, found)
    return found


@kernel
def draw_of_each(keys: Any, out: Any) -> None:
    """out[i] = draw(keys[i], 0)."""
    for i in range(keys.size):
        out[i] = draw(keys[i], np.uint64(0))


def first_state(mdp: MDP, seed: int) -> int:
    """The state in which a run with this seed begins."""
    start = np.empty(1, dtype=np.uint64)
    draws(stream_key(seed, Role.START), np.uint64(0), start)
    u = float(start[0] >> np.uint64(11)) * 2.0**-53
    return int(np.searchsorted(np.cumsum(mdp.start)[:-1], u, side="right"))


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


@inlined
def env_step(table: TransitionTable, law: RewardLaw, pair: Any, mean: float, bits: Any) -> tuple[Any, Any, float]:
    """One step from `pair`, whose mean reward is `mean`: the rank of the next state, the next state, and the reward.

    Its branches depend on types alone. With others in it, Numba would count references to the arrays at every call.
    """
    rank, to = next_state(table, pair, np.uint32(bits >> np.uint64(32)))
    if len(law.kind) == DETERMINISTIC:
        reward = mean
    elif len(law.kind) == BERNOULLI:
        reward = law.success if succeeds(law, pair, bits) else 0.0
    else:
        reward = law.entry_rewards[table.first[pair] + rank]
    return rank, to, reward


@inlined
def next_state(table: TransitionTable, pair: Any, u: Any) -> tuple[Any, Any]:
    """The rank of the next state of `pair` to which 32 random bits lead, and that state."""
    width = np.uint64(len(table.padding))
    if width == FOUR:
        line = pair << np.uint64(3)  # 2*width numbers
        rank = below_4(table.lines, line, u)
        to = np.uint64(table.lines[line + width + rank])
    elif width == EIGHT:
        line = pair << np.uint64(4)
        rank = below_8(table.lines, line, u)
        to = np.uint64(table.lines[line + width + rank])
    else:
        rank = search(table.bounds, table.first[pair], table.first[pair + ONE], u)
        to = np.uint64(table.next_states[table.first[pair] + rank])
    return rank, to


@inlined
def succeeds(law: RewardLaw, pair: Any, bits: Any) -> bool:
    """Whether the low 32 of 64 random bits give the Bernoulli reward of `pair`."""
    won: bool = (bits & LOW_BITS) < law.chances[pair]
    return won


@kernel
def one_step(table: tuple[Any, ...], law: tuple[Any, ...], key: Key, t: Any, pair: Any) -> tuple[float, Any]:
    """Reward and next state of step t from `pair`; the groups as plain tuples, the quicker arguments from Python."""
    named = RewardLaw(*law)
    _, to, reward = env_step(TransitionTable(*table), named, pair, named.means[pair], draw(key, t))
    return reward, to
