"""A continuous environment as a continuing Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.frames import PointFrames
from gainful.environments.registry import make_continuous
from gainful.errors import InvalidArgumentError
from gainful.frames import check_that_frames_can_be_drawn
from gainful.rng import Role, stream_key


class ContinuousEnv(gymnasium.Env[NDArray[np.float64], np.int64]):
    """A Box of float64 observations in the user's units and Discrete actions; it never terminates or truncates.

    `reset(seed=s)` addresses the same random numbers as a compiled run with seed s: the two take the same steps, bit
    for bit. `reset(options={"state": x})` starts at x, in the user's units. `info["unit_state"]` is the state in the
    unit cube, `info["action_label"]` what was done.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (so declared)

    def __init__(self, environment: ContinuousEnvironment, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi", "rgb_array"):
            raise InvalidArgumentError("render_mode", render_mode, "None, 'ansi' or 'rgb_array'")
        if render_mode == "rgb_array":
            check_that_frames_can_be_drawn()
        self._frames: PointFrames | None = None if render_mode != "rgb_array" else PointFrames(environment)
        self.environment = environment
        self.render_mode = render_mode
        self.observation_space = spaces.Box(environment.low, environment.high, dtype=np.float64)
        self.action_space = spaces.Discrete(environment.n_actions)
        self._key: Any = None
        self._t = 0
        self._x: NDArray[np.float64] | None = None
        self._last: tuple[NDArray[np.float64], int, float] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start at the environment's start, or at options["state"]; without a seed, random numbers are new."""
        super().reset(seed=seed)
        if seed is not None:
            self._key = stream_key(seed, Role.ENVIRONMENT)
        else:
            self._key = self.np_random.integers(0, 2**64, dtype=np.uint64, endpoint=False)
        given = (options or {}).get("state")
        env = self.environment
        if given is None:
            self._x = env.start.copy()
        else:
            point = np.asarray(given, dtype=np.float64).reshape(-1)
            if point.shape != (env.dim,) or not np.all((point >= env.low) & (point <= env.high)):
                raise InvalidArgumentError(
                    "options['state']", given, f"{env.dim} number(s) between {env.low} and {env.high}"
                )
            self._x = env.to_unit(point)
        self._t, self._last = 0, None
        if self._frames is not None:
            self._frames.start(env.from_unit(self._x))
        return env.from_unit(self._x), {"unit_state": self._x.copy()}

    def step(self, action: np.int64) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Reward and next state; `action` is an index."""
        if self._x is None:
            raise InvalidArgumentError("step", hint="call env.reset() first", problem="step was called before reset")
        env, before = self.environment, self._x
        a = int(action)
        if a != action or not 0 <= a < env.n_actions:
            raise InvalidArgumentError(
                "action", action, f"0 … {env.n_actions - 1}", problem=f"action {action} is out of range"
            )
        reward, self._x = env.step(self._t, before, a, key=self._key)
        self._t += 1
        self._last = (before, a, reward)
        if self._frames is not None:
            self._frames.moved(env.from_unit(self._x))
        info = {"unit_state": self._x.copy(), "action_label": env.action_labels[a]}
        return env.from_unit(self._x), reward, False, False, info

    def render(self) -> Any:
        """The last step as one line of text, or as a picture: (height, width, 3) of uint8; by `render_mode`."""
        if self.render_mode is None or self._x is None:
            return None
        return f"{self._caption()}\n" if self._frames is None else self._frames.frame(self._caption())

    def _caption(self) -> str:
        assert self._x is not None
        here = self._as_text(self._x)
        if self._last is None:
            return here
        before, a, reward = self._last
        return f"{self._as_text(before)} --{self.environment.action_labels[a]} ({reward:g})--> {here}"

    def _as_text(self, x: NDArray[np.float64]) -> str:
        values = self.environment.from_unit(x)
        return ", ".join(f"{n} {v:.4g}" for n, v in zip(self.environment.axis_labels, values, strict=True))


class NamedContinuousEnv(ContinuousEnv):
    """The class of Gymnasium ids such as gainful/LQG-v0; `env.unwrapped.environment` is the environment itself."""

    def __init__(self, environment: str, render_mode: str | None = None, **parameters: Any) -> None:
        super().__init__(make_continuous(environment, **parameters), render_mode)
