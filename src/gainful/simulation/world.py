"""An MDP made ready to be stepped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.mdp.model import MDP
from gainful.rng import Role, draw, draws, stream_key

DETERMINISTIC, BERNOULLI, TRANSITION = 0, 1, 2
_LAWS = {"deterministic": DETERMINISTIC, "bernoulli": BERNOULLI, "transition": TRANSITION}


class World:
    """An MDP made ready to be stepped: thresholds of 32 bits instead of probabilities.

    Step t (from 0) uses draw number t of the seed's environment stream: the high 32 bits choose the next state, the
    first whose threshold exceeds them; the low 32 bits decide a Bernoulli reward. Rewards are those of `mdp.rewards`.
    """

    def __init__(self, mdp: MDP, seed: int) -> None:
        self.mdp, self.key = mdp, stream_key(seed, Role.ENVIRONMENT)
        total = np.concatenate([[0.0], np.cumsum(mdp.probabilities)])
        within = total[1:] - np.repeat(total[mdp.indptr[:-1]], np.diff(mdp.indptr))  # cumulative inside each row
        self.threshold = np.rint(within * 2.0**32).astype(np.uint64)
        self.threshold[mdp.indptr[1:][mdp.allowed.reshape(-1)] - 1] = 1 << 32
        self.law = _LAWS[mdp.reward_law]
        self.mean = (mdp.pair_rewards + mdp.units.offset).copy()
        entry = self.mean[:0] if mdp.entry_rewards is None else mdp.entry_rewards + mdp.units.offset
        self.entry_reward: NDArray[np.float64] = entry
        chance = mdp.units.sign * self.mean if self.law == BERNOULLI else np.zeros_like(self.mean)
        self.chance = np.rint(chance * 2.0**32).astype(np.uint64)
        self.success = mdp.units.sign
        start = np.empty(1, dtype=np.uint64)
        draws(stream_key(seed, Role.START), np.uint64(0), start)
        u = float(start[0] >> np.uint64(11)) * 2.0**-53
        self.first_state = int(np.searchsorted(np.cumsum(mdp.start)[:-1], u, side="right"))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read."""
        mdp = self.mdp
        return (
            mdp.indptr,
            mdp.indices,
            self.threshold,
            self.law,
            self.mean,
            self.entry_reward,
            self.chance,
            self.success,
        )

    def step(self, t: int, state: int, action: int) -> tuple[float, int]:
        """Reward and next state of step t (from 0): what the compiled loop does, one step at a time."""
        reward, to = one_step(*self.arrays, self.key, np.uint64(t), state * self.mdp.n_actions + action)
        return float(reward), int(to)


@kernel
def one_step(
    indptr: Any, indices: Any, threshold: Any, law: int, mean: Any, entry_reward: Any, chance: Any, success: float,
    key: Any, t: Any, pair: int,
) -> tuple[float, Any]:  # fmt: skip
    """Reward and next state of one step from `pair`."""
    bits = draw(key, t)
    j = indptr[pair]
    while (bits >> np.uint64(32)) >= threshold[j]:
        j += 1
    reward = mean[pair]
    if law == BERNOULLI:
        reward = success if (bits & np.uint64(0xFFFFFFFF)) < chance[pair] else 0.0
    elif law == TRANSITION:
        reward = entry_reward[j]
    return reward, np.int64(indices[j])
