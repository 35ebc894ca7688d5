"""What is known of a Gymnasium environment that is one of gainful's own: its optimal gain, and what each pair loses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from numpy.typing import NDArray

from gainful.environments.continuous.gymnasium_env import ContinuousEnv, NamedContinuousEnv
from gainful.environments.gymnasium_env import NamedEnv
from gainful.mdp.gymnasium_env import MDPEnv
from gainful.mdp.model import MDP
from gainful.simulation.continuous import known_gain
from gainful.simulation.optimum import known_gaps, optimal_gain

if TYPE_CHECKING:
    from gainful.environments.continuous.oracle import OracleGain

TRANSPARENT = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.HumanRendering,
)
"""Wrappers that change neither states, actions, rewards nor restarts."""


@dataclass(frozen=True, eq=False)
class GymnasiumModel:
    """The optimal gain of an environment and where it comes from; for an MDP, the amounts that its pairs count for."""

    gain: float
    gain_source: str
    means: NDArray[np.float64] | None = None
    """(S*A,) mean rewards of the pairs, as the agent numbers them."""
    gaps: NDArray[np.float64] | None = None
    """(S*A,) their optimality gaps."""


def gymnasium_model(env: gymnasium.Env[Any, Any], gain: float | OracleGain | None) -> GymnasiumModel:
    """What is known of `env`: all of it if it is one of ours and no wrapper changes it, otherwise the gain given."""
    inside, changed_by = _unwrapped(env)
    kind = type(inside)
    if kind in (MDPEnv, NamedEnv) and not changed_by:
        best = (optimal_gain(inside.mdp), "solved") if gain is None else known_gain(None, gain)
        return GymnasiumModel(*best, *_pair_amounts(inside.mdp))
    if kind in (ContinuousEnv, NamedContinuousEnv) and not changed_by:
        return GymnasiumModel(*known_gain(inside.environment, gain))
    if kind in (MDPEnv, NamedEnv, ContinuousEnv, NamedContinuousEnv) and gain is None:
        reason = f"unknown: {changed_by} may change the model; say gain=, the optimal average reward per step"
        return GymnasiumModel(math.nan, reason)
    return GymnasiumModel(*known_gain(None, gain))


def _unwrapped(env: gymnasium.Env[Any, Any]) -> tuple[Any, str]:
    """The innermost environment, and the name of the first wrapper around it that may change what it does."""
    changed_by = ""
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in TRANSPARENT:
            changed_by = type(env).__name__
        env = env.env
    return env, changed_by


def _pair_amounts(mdp: MDP) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(S*A,) mean rewards and gaps; an action that a state does not have stands for the first one that it has."""
    taken = np.where(mdp.allowed, np.arange(mdp.n_actions), mdp.allowed.argmax(axis=1)[:, np.newaxis])
    means, gaps = mdp.rewards, known_gaps(mdp).reshape(mdp.n_states, mdp.n_actions)
    return tuple(np.take_along_axis(table, taken, axis=1).reshape(-1) for table in (means, gaps))  # type: ignore[return-value]
