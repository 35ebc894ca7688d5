"""An MDP as a continuing Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


class MDPEnv(gymnasium.Env[np.int64, np.int64]):
    """The MDP as an environment with Discrete spaces that never terminates nor truncates.

    Observations and actions are indices. Rewards are drawn by the MDP's reward law on the scale of `mdp.rewards`:
    the user's units, per step, a cost as a negative reward. `info` holds `action_mask` (int8, 1 for the actions the
    state has) and `state_label`. `reset(options={"state": s})` begins at a state given by index or label.
    `P` and `initial_state_distrib` are the table other libraries, and `MDP.from_gymnasium`, read.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (declared so by Gymnasium)

    def __init__(self, mdp: MDP, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi"):
            raise InvalidArgumentError(f"render_mode {render_mode!r}; expected None or 'ansi'")
        self.mdp = mdp
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(mdp.n_states)
        self.action_space = spaces.Discrete(mdp.n_actions)
        self.initial_state_distrib: NDArray[np.float64] = mdp.start
        self._rewards = mdp.rewards
        self._cumulative_start = _cumulative(mdp.start)
        self._state: int | None = None
        self._last: tuple[int, int, float] | None = None
        self._table: Table | None = None

    @property
    def state(self) -> int | None:
        """The current state, None before the first reset."""
        return self._state

    @property
    def P(self) -> Table:
        """P[s][a]: a list of (probability, next state, reward, False); only the actions s has. Built when asked for."""
        if self._table is None:
            self._table = _table(self.mdp)
        return self._table

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Begin at a state drawn from the start distribution, or at options["state"]."""
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
            raise InvalidArgumentError("step before reset; call env.reset() first")
        a = int(action)
        if a != action or not 0 <= a < mdp.n_actions:
            raise InvalidArgumentError(f"action {action} is out of range, expected 0 … {mdp.n_actions - 1}")
        if not mdp.allowed[s, a]:
            names = ", ".join(mdp.action_name(int(b)) for b in np.flatnonzero(mdp.allowed[s]))
            raise InvalidArgumentError(
                f"state {mdp.state_name(s)} does not have the action {mdp.action_name(a)}; it has: {names} "
                "(info['action_mask'])"
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

    def render(self) -> str | None:
        """The last step in one line ("ansi")."""
        if self.render_mode is None or self._state is None:
            return None
        here = self.mdp.state_name(self._state)
        if self._last is None:
            return f"{here}\n"
        s, a, reward = self._last
        return f"{self.mdp.state_name(s)} --{self.mdp.action_name(a)} ({reward:g})--> {here}\n"

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


def _table(mdp: MDP) -> Table:
    """P as Gymnasium's toy-text environments have it; Bernoulli rewards become two entries."""
    table: Table = {}
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
