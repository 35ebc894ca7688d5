"""Continuing decision processes on a box: the class of every continuous environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.arguments import real, reward_range, whole
from gainful.errors import InvalidArgumentError
from gainful.rng import Role, draws, stream_key

if TYPE_CHECKING:
    from gainful.environments.continuous.gymnasium_env import ContinuousEnv
    from gainful.environments.continuous.mixture import MixtureLaw
    from gainful.mdp.model import MDP

Array = NDArray[np.float64]

Law = Callable[[Array, int, Array], tuple[Array, Array]]
"""law(x, action, y) -> F(y|x), ∫₀^y F(·|x): x (N,1) and y (1,M) in the unit interval, before clipping to it."""


class EnvironmentKind(IntEnum):
    """The step function of an environment, for the compiled dispatch."""

    USER = 0
    CONTINUOUS_RIVERSWIM = 1
    LQG = 2
    CONTINUOUS_INVENTORY = 3
    REPLACEMENT = 4
    SHIP_STEERING = 5
    MOUNTAIN_CAR = 6
    MIXTURE = 7


class Curvature(NamedTuple):
    """Bounds on the second derivative of F(x) = r(x,a) + E h(X') for a piecewise linear h (d = 1); see `oracle_gain`.

    Between two kinks |F''| ≤ reward + ½·transition·osc(h') + blend·max|h'|, where h' = 0 outside [0, 1].
    `kinks` are the points of the unit interval where F need not have a derivative.
    """

    reward: float
    transition: float
    blend: float
    kinks: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousEnvironment:
    """A continuing decision process with states in a box and finitely many actions; immutable.

    All computations use states in the unit cube [0, 1]^d; `low` and `high` are the same box in the user's units
    (`to_unit` and `from_unit` convert), which is what its Gymnasium environment shows. The reward of a step is a
    function of the state and the action alone and all randomness is in the transition, so that the pseudo-regret can
    be computed. Step t (from 0) uses draws m·t, …, m·t + m - 1 of the environment's stream, m = `draws`.

    Use `from_function` to make your own.

    Parameters
    ----------
    name : str
        A name to show.
    kind : int
        Which compiled step function it has.
    parameters : array_like
        The arguments of that function.
    n_actions : int
        The number of actions.
    draws : int
        m, the number of random numbers per step.
    start : array_like (d,)
        Where a run starts, in the unit cube.
    low, high : array_like (d,)
        The box, in the user's units.
    reward_min, reward_max : float
        Bounds on the rewards; r_max = reward_max - reward_min.
    reward_lipschitz, transition_lipschitz, holder : float, optional
        L_r, L_p and α with |r(x,a) - r(y,a)| ≤ L_r·|x-y|^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L_p·|x-y|^α, in the sup-norm of
        the unit cube. `lipschitz` is L = max(L_r / r_max, L_p).
    no_guarantee : str, optional
        Why there are no such constants.
    action_labels, axis_labels : tuple of str
        Names of the actions and axes.
    settings : dict
        The arguments of the function that made it.
    law : callable, optional
        The law of the next state for d = 1, for `oracle_gain`.
    curvature : Curvature, optional
        Bounds on second derivatives, for `oracle_gain`.
    grid_model : callable, optional
        For d = 2: the finite model with `bins` intervals per axis that `oracle_gain` solves.
    mixture : MixtureLaw, optional
        The law of the next state if it is a mixture of two fixed laws.
    function : callable, optional
        The compiled step(x, action, uniforms, out) of `from_function`.

    Examples
    --------
    >>> import gainful as gf
    >>> env = gf.environments.lqg()
    >>> env.dim, env.n_actions, round(env.lipschitz, 3)
    (1, 5, 6.383)
    """

    name: str
    kind: int
    parameters: Array
    n_actions: int
    draws: int
    start: Array
    """Where a run begins, in the unit cube."""
    low: Array
    high: Array
    reward_min: float
    reward_max: float
    reward_lipschitz: float | None = None
    """The Hölder constant of r(·,a) in the user's units of reward; L = max(this / r_max, transition_lipschitz)."""
    transition_lipschitz: float | None = None
    holder: float | None = None
    no_guarantee: str | None = None
    action_labels: tuple[str, ...] = ()
    axis_labels: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    """The arguments of the function that made it."""
    law: Law | None = None
    """The law of the next state for d = 1, for the oracle."""
    curvature: Curvature | None = None
    grid_model: Callable[[int], MDP] | None = None
    """For d = 2: the finite model of `bins` intervals per axis that the oracle solves."""
    mixture: MixtureLaw | None = None
    """The law of the next state if it is a mixture of two fixed laws: gain and bias are then in closed form."""
    function: Any = None
    """The compiled step(x, action, uniforms, out) of `from_function`; None for the shipped environments."""

    def __post_init__(self) -> None:
        for name in ("parameters", "start", "low", "high"):
            array = np.array(getattr(self, name), dtype=np.float64).reshape(-1)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        d = self.low.size
        if d < 1 or self.high.size != d or self.start.size != d:
            raise InvalidArgumentError(
                "low",
                (d, self.high.size, self.start.size),
                "one per axis",
                problem=f"low, high and start have {d}, {self.high.size} and {self.start.size} entries",
            )
        bad = [i for i in range(d) if not (-math.inf < self.low[i] < self.high[i] < math.inf)]
        if bad:
            low, high = float(self.low[bad[0]]), float(self.high[bad[0]])
            raise InvalidArgumentError(
                f"axis {bad[0]}",
                (low, high),
                "finite numbers with low < high",
                problem=f"axis {bad[0]} is [{low:g}, {high:g}]",
            )
        if not np.all((self.start >= 0.0) & (self.start <= 1.0)):
            raise InvalidArgumentError("start", self.start.tolist(), "a point of the unit cube")
        reward_range(self.reward_min, self.reward_max)
        if (self.lipschitz is None) != (self.no_guarantee is not None):
            raise InvalidArgumentError(
                "no_guarantee",
                self.no_guarantee,
                hint="give reward_lipschitz, transition_lipschitz and holder, or else no_guarantee with the reason",
                problem="either the Lipschitz constants or no_guarantee must be given",
            )
        if not self.action_labels:
            object.__setattr__(self, "action_labels", tuple(str(a) for a in range(self.n_actions)))
        if not self.axis_labels:
            object.__setattr__(self, "axis_labels", tuple(f"x{i}" for i in range(d)))
        if len(self.action_labels) != self.n_actions or len(self.axis_labels) != d:
            raise InvalidArgumentError(
                "action_labels",
                (len(self.action_labels), len(self.axis_labels)),
                f"{self.n_actions} and {d}",
                problem=f"there are {len(self.action_labels)} action labels and {len(self.axis_labels)} axis labels",
            )

    @classmethod
    def from_function(
        cls,
        step: Callable[..., Any],
        *,
        dim: int,
        n_actions: int,
        draws: int = 1,
        reward_min: float = 0.0,
        reward_max: float = 1.0,
        low: float | ArrayLike = 0.0,
        high: float | ArrayLike = 1.0,
        start: float | ArrayLike | None = None,
        reward_lipschitz: float | None = None,
        transition_lipschitz: float | None = None,
        holder: float | None = None,
        action_labels: Sequence[str] = (),
        axis_labels: Sequence[str] = (),
        name: str = "own",
    ) -> Self:
        """Make an environment from your own step function, which Numba compiles in every process.

        The function is called at a few hundred points to check it.

        Parameters
        ----------
        step : callable
            `step(x, action, uniforms, out) -> reward`. x (d,) is the current state and out (d,) receives the next one,
            both points of the unit cube; they may be the same array, so read x before writing out. uniforms (`draws`,)
            are independent and uniform on [0, 1). The reward lies in [reward_min, reward_max] and should depend on x
            and action alone, because regret is computed from it. The function must not keep anything between calls.
        dim : int
            d, the number of axes.
        n_actions : int
            The number of actions.
        draws : int
            The number of random numbers per step.
        reward_min, reward_max : float
            Bounds on the rewards.
        low, high : float or array_like (d,)
            The box in the user's units.
        start : float or array_like (d,), optional
            Where a run starts, in the unit cube; the centre by default.
        reward_lipschitz, transition_lipschitz, holder : float, optional
            See the class; without them results are marked "no guarantee".
        action_labels, axis_labels : sequence of str
            Names of the actions and axes.
        name : str
            A name to show.

        Returns
        -------
        ContinuousEnvironment

        Raises
        ------
        InvalidArgumentError
            If the function fails, leaves the unit cube, or returns a reward out of range.

        Examples
        --------
        >>> def drift(x, action, uniforms, out):
        ...     z = x[0]
        ...     out[0] = min(1.0, 0.8 * z + 0.2 * uniforms[0] * action)
        ...     return z
        >>> env = ContinuousEnvironment.from_function(drift, dim=1, n_actions=2)
        >>> env.step(0, [0.5], 0)
        (0.5, array([0.4]))
        """
        import numba

        d = whole("dim", dim, 1)
        m = whole("draws", draws, 0)
        constants = (reward_lipschitz, transition_lipschitz, holder)
        if any(c is None for c in constants) and any(c is not None for c in constants):
            raise InvalidArgumentError(
                "holder",
                holder,
                hint="give all three or none",
                problem="reward_lipschitz, transition_lipschitz and holder belong together",
            )
        if holder is not None:
            real("reward_lipschitz", reward_lipschitz, 0.0)
            real("transition_lipschitz", transition_lipschitz, 0.0)
            real("holder", holder, 0.0, 1.0, low_open=True)
        if isinstance(step, numba.core.registry.CPUDispatcher):
            compiled = step
        elif callable(step):
            compiled = numba.njit(error_model="numpy", nogil=True)(step)
        else:
            raise InvalidArgumentError("step", step, "a function step(x, action, uniforms, out)")
        env = cls(
            name=name,
            kind=int(EnvironmentKind.USER),
            parameters=np.empty(0),
            n_actions=whole("n_actions", n_actions, 1),
            draws=m,
            start=np.full(d, 0.5) if start is None else np.broadcast_to(np.asarray(start, dtype=np.float64), (d,)),
            low=np.broadcast_to(np.asarray(low, dtype=np.float64), (d,)),
            high=np.broadcast_to(np.asarray(high, dtype=np.float64), (d,)),
            reward_min=real("reward_min", reward_min),
            reward_max=real("reward_max", reward_max),
            reward_lipschitz=reward_lipschitz,
            transition_lipschitz=transition_lipschitz,
            holder=holder,
            no_guarantee=None if holder is not None else "no Lipschitz constants were given",
            action_labels=tuple(action_labels),
            axis_labels=tuple(axis_labels),
            function=compiled,
        )
        env._try_out()
        return env

    # ------------------------------------------------------------------ what it is

    @property
    def dim(self) -> int:
        """d, the number of axes."""
        return int(self.low.size)

    @property
    def reward_range(self) -> float:
        """r_max = reward_max - reward_min."""
        return self.reward_max - self.reward_min

    @property
    def lipschitz(self) -> float | None:
        """L = max(L_r / r_max, L_p), or None if there are no such constants."""
        if self.reward_lipschitz is None or self.transition_lipschitz is None or self.holder is None:
            return None
        return max(self.reward_lipschitz / self.reward_range, self.transition_lipschitz)

    @property
    def has_oracle(self) -> bool:
        """Whether `oracle_gain` can compute the optimal gain."""
        return self.law is not None or self.grid_model is not None or self.mixture is not None

    def to_unit(self, point: ArrayLike) -> Array:
        """Convert from the user's units to the unit cube.

        Parameters
        ----------
        point : array_like (d,) or (N, d)
            One or many points in the user's units; they are clipped to the box.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.lqg(bound=2.0).to_unit([1.0])
        array([0.75])
        """
        return np.clip((np.asarray(point, dtype=np.float64) - self.low) / (self.high - self.low), 0.0, 1.0)

    def from_unit(self, point: ArrayLike) -> Array:
        """Convert from the unit cube to the user's units.

        Parameters
        ----------
        point : array_like (d,) or (N, d)
            One or many points of the unit cube.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.lqg(bound=2.0).from_unit([0.75])
        array([1.])
        """
        x = np.asarray(point, dtype=np.float64)
        return np.clip(self.low + x * (self.high - self.low), self.low, self.high)

    # ------------------------------------------------------------------ what it does

    def step(self, t: int, x: ArrayLike, action: int, seed: int = 0, *, key: Any = None) -> tuple[float, Array]:
        """Take one step, with the same compiled function as a simulation and therefore the same bits.

        Parameters
        ----------
        t : int
            The number of the step, from 0.
        x : array_like (d,)
            The state, in the unit cube.
        action : int
            The action.
        seed : int
            The seed of the environment's random stream.
        key : int, optional
            The key of the stream, in place of `seed`.

        Returns
        -------
        reward : float
        next_state : ndarray (d,)
            In the unit cube.

        Raises
        ------
        InvalidArgumentError
            If `x` is not in the unit cube, or there is no such action.

        Examples
        --------
        >>> import gainful as gf
        >>> env = gf.environments.replacement(replacement_cost=1.0)
        >>> env.step(0, [0.4], action=1)
        (-1.0, array([0.]))
        """
        from gainful.environments.continuous.dispatch import step_once

        point = np.array(x, dtype=np.float64).reshape(-1)
        if point.shape != (self.dim,) or not np.all((point >= 0.0) & (point <= 1.0)):
            raise InvalidArgumentError(
                "x",
                point.tolist(),
                f"{self.dim} number(s) in [0, 1]",
                "env.to_unit converts from the user's units",
                problem=f"the state is {point.tolist()}",
            )
        a = whole("action", action, 0, self.n_actions - 1)
        moment = whole("t", t, 0)
        stream = stream_key(seed, Role.ENVIRONMENT) if key is None else np.uint64(key)
        out = np.empty(self.dim)
        if self.kind == EnvironmentKind.USER:
            reward = float(self.function(point, a, self._uniforms(stream, moment), out))
        else:
            reward = float(step_once(self.kind, self.parameters, point, a, stream, moment, out))
        return reward, out

    def rewards(self, points: ArrayLike, action: int) -> Array:
        """The rewards r(x, action) at many points.

        Parameters
        ----------
        points : array_like (N, d), or (N,) if d = 1
            Points of the unit cube.
        action : int
            The action.

        Returns
        -------
        ndarray (N,)

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.replacement().rewards([0.0, 0.25], action=0)
        array([1.  , 0.75])
        """
        from gainful.environments.continuous.dispatch import rewards_at

        x = np.ascontiguousarray(np.asarray(points, dtype=np.float64).reshape(-1, self.dim))
        a = whole("action", action, 0, self.n_actions - 1)
        found = np.empty(len(x))
        if self.kind == EnvironmentKind.USER:
            uniforms, out = np.full(self.draws, 0.5), np.empty(self.dim)
            for i, point in enumerate(x):
                found[i] = self.function(point, a, uniforms, out)
        else:
            rewards_at(self.kind, self.parameters, x, a, found)
        return found

    def to_gymnasium(self, render_mode: str | None = None) -> ContinuousEnv:
        """A continuing Gymnasium environment with these dynamics.

        Parameters
        ----------
        render_mode : {None, "ansi"}
            Whether `render` returns the last step as text.

        Returns
        -------
        gymnasium.Env
            With a Box of float64 observations in the user's units; it never terminates or truncates.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.lqg().to_gymnasium().action_space
        Discrete(5)
        """
        from gainful.environments.continuous.gymnasium_env import ContinuousEnv

        return ContinuousEnv(self, render_mode)

    def _uniforms(self, key: Any, t: int) -> Array:
        bits = np.empty(self.draws, dtype=np.uint64)
        draws(key, np.uint64(self.draws) * np.uint64(t), bits)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _try_out(self) -> None:
        """Call a user's function at random points and check that states and rewards are in range."""
        key = stream_key(0, Role.START)
        generator = np.random.default_rng(0)
        for t in range(256):
            x = self.start.copy() if t < self.n_actions else generator.random(self.dim)
            action = t % self.n_actions
            out = np.full(self.dim, np.nan)
            before = x.copy()
            try:
                reward = float(self.function(x, action, self._uniforms(key, t), out))
            except Exception as error:
                raise InvalidArgumentError(
                    "step",
                    self.function,
                    problem=f"step(x, action, uniforms, out) failed at x = {before.tolist()}, action {action}: {error}",
                ) from error
            if not np.all((out >= 0.0) & (out <= 1.0)):
                raise InvalidArgumentError(
                    "step",
                    out.tolist(),
                    "a point of the unit cube",
                    "clip the next state",
                    problem=f"step moved from {before.tolist()} by action {action} to {out.tolist()}",
                )
            if not self.reward_min <= reward <= self.reward_max:
                raise InvalidArgumentError(
                    "step",
                    reward,
                    f"a reward in [{self.reward_min:g}, {self.reward_max:g}]",
                    problem=f"step returned the reward {reward} at {before.tolist()}, action {action}",
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContinuousEnvironment):
            return NotImplemented
        arrays = ("parameters", "start", "low", "high")
        plain = (
            "name",
            "kind",
            "n_actions",
            "draws",
            "reward_min",
            "reward_max",
            "reward_lipschitz",
            "transition_lipschitz",
            "holder",
            "no_guarantee",
            "action_labels",
            "axis_labels",
            "function",
        )
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in arrays) and all(
            getattr(self, n) == getattr(other, n) for n in plain
        )

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.parameters.tobytes(), self.n_actions))

    def __repr__(self) -> str:
        constants = "no guarantee" if self.lipschitz is None else f"L = {self.lipschitz:.4g}, α = {self.holder:g}"
        return f"ContinuousEnvironment('{self.name}', dim {self.dim}, {self.n_actions} actions, {constants})"
