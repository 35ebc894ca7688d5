"""An MDP as a continuing Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError
from gainful.frames import check_that_frames_can_be_drawn
from gainful.mdp.frames import CellFrames, GraphFrames, caption_of, new_frames

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

GymnasiumTable = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


class MDPEnv(gymnasium.Env[np.int64, np.int64]):
    """An MDP as an environment with Discrete spaces that never terminates or truncates.

    Observations and actions are indices. Rewards are drawn by the MDP's reward law on the scale of `mdp.rewards`:
    the user's units, per step, with a cost as a negative reward. `info` holds `action_mask` (int8, 1 for the actions
    that the state has) and `state_label`. `P` and `initial_state_distrib` are the table that other libraries, and
    `MDP.from_gymnasium`, read.

    Parameters
    ----------
    mdp : MDP
        The decision process.
    render_mode : {None, "ansi", "rgb_array"}
        Whether `render` returns the last step as text, or as a picture of the MDP: a graph of up to 40 states, cells
        shaded by their best mean reward if there are more.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (so declared)

    def __init__(self, mdp: MDP, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi", "rgb_array"):
            raise InvalidArgumentError("render_mode", render_mode, "None, 'ansi' or 'rgb_array'")
        if render_mode == "rgb_array":
            check_that_frames_can_be_drawn()
        self.mdp = mdp
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(mdp.n_states)
        self.action_space = spaces.Discrete(mdp.n_actions)
        self.initial_state_distrib: NDArray[np.float64] = mdp.start
        self._rewards = mdp.rewards
        self._cumulative_start = _cumulative(mdp.start)
        self._state: int | None = None
        self._last: tuple[int, int, float] | None = None
        self._table: GymnasiumTable | None = None
        self._frames: GraphFrames | CellFrames | None = None

    @property
    def state(self) -> int | None:
        """The current state, None before the first reset."""
        return self._state

    @property
    def P(self) -> GymnasiumTable:
        """P[s][a]: a list of (probability, next state, reward, False), for the actions of s; built on first use."""
        if self._table is None:
            self._table = _table(self.mdp)
        return self._table

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start at a state drawn from the start distribution, or at options["state"] (an index or a label)."""
        super().reset(seed=seed)
        given = (options or {}).get("state")
        self._state = (
            _draw(self._cumulative_start, self.np_random.random()) if given is None else self.mdp.state_index(given)
        )
        self._last = None
        return np.int64(self._state), self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Draw the next state and the reward; `action` is an index."""
        s, mdp = self._state, self.mdp
        if s is None:
            raise InvalidArgumentError("step", hint="call env.reset() first", problem="step was called before reset")
        a = int(action)
        if a != action or not 0 <= a < mdp.n_actions:
            raise InvalidArgumentError(
                "action", action, f"0 … {mdp.n_actions - 1}", problem=f"action {action} is out of range"
            )
        if not mdp.allowed[s, a]:
            names = ", ".join(mdp.action_name(int(b)) for b in np.flatnonzero(mdp.allowed[s]))
            raise InvalidArgumentError(
                "action",
                mdp.action_name(a),
                hint=f"it has: {names} (info['action_mask'])",
                problem=f"state {mdp.state_name(s)} does not have the action {mdp.action_name(a)}",
            )
        k = s * mdp.n_actions + a
        begin, end = int(mdp.indptr[k]), int(mdp.indptr[k + 1])
        at = begin + _draw(_cumulative(mdp.probabilities[begin:end]), self.np_random.random())
        if mdp.reward_law == "bernoulli":
            mean = abs(float(self._rewards[s, a]))
            reward = mdp.units.sign * float(self.np_random.random() < mean) + 0.0
        elif mdp.entry_rewards is not None:
            reward = float(mdp.entry_rewards[at] + mdp.units.offset)
        else:
            reward = float(self._rewards[s, a])
        self._state = int(mdp.indices[at])
        self._last = (s, a, reward)
        return np.int64(self._state), reward, False, False, self._info()

    def render(self) -> Any:
        """The last step as one line of text, or as a picture: (height, width, 3) of uint8; by `render_mode`."""
        if self.render_mode is None or self._state is None:
            return None
        if self.render_mode == "ansi":
            return f"{caption_of(self.mdp, self._state, self._last)}\n"
        if self._frames is None:
            self._frames = new_frames(self.mdp)
        return self._frames.frame(self.mdp, self._state, self._last)

    def _info(self) -> dict[str, Any]:
        assert self._state is not None
        return {
            "action_mask": self.mdp.allowed[self._state].astype(np.int8),
            "state_label": self.mdp.state_name(self._state),
        }


def _cumulative(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(p)


def _draw(cumulative: NDArray[np.float64], u: float) -> int:
    """The first index whose cumulative probability exceeds u·total: never one of probability zero."""
    return int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))


def _table(mdp: MDP) -> GymnasiumTable:
    """P in the form of Gymnasium's toy-text environments; Bernoulli rewards become two entries."""
    table: GymnasiumTable = {}
    rewards = mdp.rewards
    for s in range(mdp.n_states):
        table[s] = {}
        for a in np.flatnonzero(mdp.allowed[s]).tolist():
            k = s * mdp.n_actions + a
            entries = table[s][a] = []
            for j in range(int(mdp.indptr[k]), int(mdp.indptr[k + 1])):
                p, target = float(mdp.probabilities[j]), int(mdp.indices[j])
                if mdp.reward_law == "bernoulli":
                    mean = abs(float(rewards[s, a]))
                    if mean < 1.0:
                        entries.append((p * (1.0 - mean), target, 0.0, False))
                    if mean > 0.0:
                        entries.append((p * mean, target, mdp.units.sign, False))
                elif mdp.entry_rewards is not None:
                    entries.append((p, target, float(mdp.entry_rewards[j] + mdp.units.offset), False))
                else:
                    entries.append((p, target, float(rewards[s, a]), False))
    return table
