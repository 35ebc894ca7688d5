"""Rewards that replace the MDP's own: a learner's optimistic ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.arguments import REWARD_LIMIT
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP


def replaced_rewards(mdp: MDP, rewards: ArrayLike | None) -> NDArray[np.float64]:
    """Internal rewards (S*A,): those of the MDP, or `rewards` (S,A) given in the units of `mdp.rewards`; read-only."""
    if rewards is None:
        return mdp.pair_rewards
    table = np.array(rewards, dtype=np.float64)
    if table.shape != (mdp.n_states, mdp.n_actions):
        raise InvalidArgumentError(
            "rewards",
            table.shape,
            f"(S, A) = ({mdp.n_states}, {mdp.n_actions})",
            problem=f"rewards have shape {table.shape}",
        )
    bad = np.flatnonzero(mdp.allowed & ~(np.abs(table) <= REWARD_LIMIT))
    if bad.size:
        s, a = divmod(int(bad[0]), mdp.n_actions)
        expected = f"a finite number, at most {REWARD_LIMIT:g} in absolute value"
        raise InvalidArgumentError(f"rewards[{s}, {a}]", float(table[s, a]), expected)
    r = np.where(mdp.allowed, table - mdp.units.offset, 0.0).reshape(-1)
    r.flags.writeable = False
    return r
