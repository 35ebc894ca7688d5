"""The class of Gymnasium ids such as gainful/RiverSwim-v0."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.environments.registry import make
from gainful.mdp.gymnasium_env import MDPEnv


class NamedEnv(MDPEnv):
    """An environment by name, as `mdp.to_gymnasium()` makes it, except that every action is accepted in every state.

    Gymnasium's samplers and checkers draw actions from the whole action space, so an action that the state does not
    have is not an error here: the first action of the state is taken instead. `info["action_taken"]` is the action
    that was taken, and `info["action_mask"]` shows which actions the state has. `env.unwrapped.mdp` is the MDP.
    """

    def __init__(self, environment: str, render_mode: str | None = None, **parameters: Any) -> None:
        super().__init__(make(environment, **parameters), render_mode)

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Draw the next state and the reward; `action` is an index."""
        if self.state is not None and self.action_space.contains(action):
            available = self.mdp.allowed[self.state]
            if not available[action]:
                action = np.int64(np.argmax(available))
        state, reward, terminated, truncated, info = super().step(action)
        return state, reward, terminated, truncated, info | {"action_taken": int(action)}
