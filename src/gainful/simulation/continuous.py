"""A run in a continuous environment: one compiled call per episode, the same trace as stepping `act` and `observe`."""

from __future__ import annotations

import hashlib
import inspect
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.own_verbs import has_own_rule, own_verbs, sees_steps
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.plain_learner import is_plain
from gainful.agents.policy_kernels import Policy, choose
from gainful.agents.statistics import AgentCounts, count_visit, named, touch
from gainful.agents.stepwise import PLANNED, LearningTables, decide, learn, learner_of
from gainful.environments.continuous.dispatch import continuous_step, user_step
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.oracle import OracleGain, oracle_gain
from gainful.errors import InvalidArgumentError
from gainful.growable_rows import add
from gainful.partition import axis_cell
from gainful.rng import Key, Role, stream_key
from gainful.simulation.base import ResumableSimulation
from gainful.simulation.run import Run
from gainful.simulation.slices import STEPS_AT_A_TIME

LOGGED_PAUSE = 1 << 18
"""The same for an agent that keeps its raw transitions: the log grows by this many at a time."""

DONE, EPISODE_OVER, NEW_STATE_REACHED, GROW, BAD_REWARD, BAD_STATE = range(6)
STEPS_MADE, STATUS = 0, 1


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousRun(Run):
    """A run with continuous states: `final_state` is the cell of the last point."""

    final_point: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    """Where the run ended, in the coordinates that the agent sees."""
    gain_source: str = ""
    """Where g* comes from; if it is unknown, `gain`, `regret` and `pseudo_regret` are NaN, and this says why."""


@inlined
def seen_coordinate(x: float, user_units: bool, low: float, high: float) -> float:
    """A coordinate of the unit cube as the agent sees it: `ContinuousEnvironment.from_unit` where it sees units."""
    return min(max(low + x * (high - low), low), high) if user_units else x


class Cells(NamedTuple):
    """A partition: the number of intervals of each axis, and its ends."""

    bins: Any
    low: Any
    high: Any


class PointEnvironment(NamedTuple):
    """A continuous environment, for kernels, and the cells in which the agent sees its points.

    Where `own_units` is true the cells are of the box from `low` to `high`, else of the unit cube. `uniforms` holds
    the draws of a user's step function.
    """

    cells: Cells
    kind: int
    parameters: Any
    uniforms: Any
    key: Key
    own_units: bool
    low: Any
    high: Any


class TransitionSink(NamedTuple):
    """Where raw transitions go, from number `n` on; empty arrays if they are not kept."""

    origin: Any
    target: Any
    action: Any
    reward: Any
    n: int


class PointClock(NamedTuple):
    """Where a run is: the point in the unit cube, (step, why the last loop stopped), and the sum of rewards."""

    point: Any
    now: Any
    earned: Any


def _run_points(
    function: Any,
    env: PointEnvironment,
    counts: AgentCounts,
    learner: LearningTables,
    policy: Policy,
    sink: TransitionSink,
    clock: PointClock,
    until: int,
) -> None:
    """Step until step `until` or the end of the episode; why it stopped is in the clock.

    `function` is a user's step, or None for the environments that are shipped.
    Everything is counted in the agent's own arrays, step by step. A step that finds no room in them, or that the
    agent would reject (a reward outside its range, a point outside the cube), leaves everything as it was before it.
    Arrays are indexed here rather than passed to pieces: counting references to them would take most of the time.
    """
    env, counts, policy = PointEnvironment(Cells(*env[0]), *env[1:]), named(counts), Policy(*policy)
    sink, clock = TransitionSink(*sink), PointClock(*clock)
    rows, n_actions, x, cells = counts.rows, counts.n_actions, clock.point, env.cells
    rule, q, target, numbers, allowed = learner
    begin, length, next_state = rows.begin, rows.length, rows.key
    mixed, logging, logged = policy.cumulative.size > 0, sink.action.size > 0, sink.n
    planned, steps_before = policy.planned_now, policy.steps_before
    groups, group_left = policy.groups, policy.group_left
    grouped = group_left.size > 0
    d, t, total = x.size, clock.now[STEPS_MADE], clock.earned[0]
    out, before = np.empty(d), np.empty(d)
    state = 0
    for i in range(d):
        seen = seen_coordinate(x[i], env.own_units, env.low[i], env.high[i])
        state = state * cells.bins[i] + axis_cell(seen, cells.bins[i], cells.low[i], cells.high[i])
    status = DONE
    while t < until:
        action = policy.actions[state]
        if len(rule) > PLANNED:
            number = np.uint64(2 * (steps_before + t))
            action = decide(len(rule), q, numbers, allowed, state, policy.key, number)
        elif mixed:
            action = choose(policy.cumulative, state, policy.key, np.uint64(2 * (steps_before + t) + planned))
            planned = False
        pair = state * n_actions + action
        if policy.doubling and counts.remaining[pair] <= 0:  # untouched pairs have at least one left
            status = EPISODE_OVER
            break
        if grouped and group_left[groups[pair]] <= 0:
            status = EPISODE_OVER
            break
        if function is None:
            reward = continuous_step(env.kind, env.parameters, x, action, env.key, t, out)
        else:
            for i in range(d):
                before[i] = x[i]  # the function may keep nothing, but write to what it is given
            reward = user_step(function, before, action, env.key, t, env.uniforms, out)
        if not (policy.reward_min <= reward <= policy.reward_max):
            status = BAD_REWARD
            break
        inside, to = True, 0
        for i in range(d):
            inside = inside and 0.0 <= out[i] <= 1.0
            seen = seen_coordinate(out[i], env.own_units, env.low[i], env.high[i])
            to = to * cells.bins[i] + axis_cell(seen, cells.bins[i], cells.low[i], cells.high[i])
        if not inside:
            status = BAD_STATE
            break
        at, end = begin[pair], begin[pair] + length[pair]
        if at < end:
            guess = at + to - np.int64(next_state[at])  # where it is if the row has no gaps, as most have for d = 1
            if at <= guess < end and next_state[guess] == to:
                at = guess
            else:
                n = end - at
                while n > 1:  # by halves, to the last that is not above `to`
                    half = n >> 1
                    at += half * (next_state[at + half] <= to)
                    n -= half
        if at < end and next_state[at] == to:
            rows.count[at] += 1
        elif not add(rows, pair, to, 1):
            status = GROW
            break
        if logging:
            for i in range(d):
                sink.origin[logged, i] = seen_coordinate(x[i], env.own_units, env.low[i], env.high[i])
                sink.target[logged, i] = seen_coordinate(out[i], env.own_units, env.low[i], env.high[i])
            sink.action[logged], sink.reward[logged] = action, reward
            logged += 1
        inner = reward - policy.reward_min
        if not counts.is_changed[pair]:
            touch(counts, pair)
        count_visit(counts, pair, inner)
        if grouped:
            group_left[groups[pair]] -= 1
        total += reward
        if len(rule) > PLANNED:
            learn(len(rule), (q, target, numbers), n_actions, pair, inner, to, counts.visits[pair])
        for i in range(d):
            x[i] = out[i]
        t += 1
        counts.visited[state] = True
        state = to
        if not counts.visited[to]:
            counts.visited[to] = True
            if policy.stop_on_new_state:
                status = NEW_STATE_REACHED
                break
    clock.now[STEPS_MADE], clock.now[STATUS], clock.earned[0] = t, status, total


run_points = kernel(_run_points)
# a kernel that takes a function never hits the cache: compiled in every process
run_user_points = numba.njit(nogil=True, error_model="numpy")(_run_points)


def uses_user_units(agent: PartitionedAgent) -> bool:
    """Whether the agent's partition is in the environment's own units, and not of the unit cube."""
    part = agent.partition
    return any(a != 0.0 for a in part.low) or any(b != 1.0 for b in part.high)


def check_points_fit(agent: PartitionedAgent, env: ContinuousEnvironment) -> None:
    """Raise an error unless the agent fits the states, actions and rewards of the environment."""
    if not isinstance(agent, PartitionedAgent):
        raise InvalidArgumentError(
            "agent",
            agent,
            hint="gf.Discretized puts it on a partition",
            problem=f"{type(agent).__name__} is a tabular agent, and {env.name} has continuous states",
        )
    if (agent.dim, agent.n_actions) != (env.dim, env.n_actions):
        raise InvalidArgumentError(
            "agent",
            agent,
            problem=f"the agent has {agent.dim} dimension(s) and {agent.n_actions} actions, "
            f"{env.name} {env.dim} and {env.n_actions}",
        )
    if env.reward_min < agent.reward_min or env.reward_max > agent.reward_max:
        raise InvalidArgumentError(
            "agent",
            agent,
            hint="give it env.reward_min and env.reward_max",
            problem=f"rewards of {env.name} lie in [{env.reward_min:g}, {env.reward_max:g}], the agent accepts "
            f"[{agent.reward_min:g}, {agent.reward_max:g}]",
        )
    if uses_user_units(agent) and agent.partition.outside == "error":
        for i in range(env.dim):
            low, high = agent.partition.low[i], agent.partition.high[i]
            if env.low[i] < low or env.high[i] > high:
                raise InvalidArgumentError(
                    "agent",
                    agent,
                    hint="partition that box, or the unit cube",
                    problem=f"axis {i} of the partition is [{low:g}, {high:g}], that of {env.name} "
                    f"[{env.low[i]:g}, {env.high[i]:g}]",
                )


@lru_cache(maxsize=64)
def _oracle(env: ContinuousEnvironment) -> OracleGain:
    return oracle_gain(env)


def known_gain(env: ContinuousEnvironment | None, gain: float | OracleGain | None) -> tuple[float, str]:
    """The g* to measure regret against, and where it comes from; NaN if it is unknown."""
    if isinstance(gain, OracleGain):
        return gain.gain, str(gain)
    if gain is not None:
        if not math.isfinite(gain):
            raise InvalidArgumentError("gain", gain, "a finite number, or None")
        return float(gain), "given"
    if env is None:
        return math.nan, "unknown: say gain=, the optimal average reward per step"
    if not env.has_oracle:
        return math.nan, f"unknown: {env.name} has no oracle; say gain=, the optimal average reward per step"
    found = _oracle(env)
    return found.gain, str(found)


class ContinuousSimulation(ResumableSimulation):
    """One agent's run with continuous states: its state, and what it has earned at each checkpoint."""

    agent: PartitionedAgent

    def __init__(
        self,
        agent: PartitionedAgent,
        env: ContinuousEnvironment,
        seed: int,
        grid: NDArray[np.int64],
        gain: tuple[float, str],
    ) -> None:
        super().__init__(agent, seed, grid)
        self.env, (self.gain, self.gain_source) = env, gain
        self.key, self.user_units = stream_key(seed, Role.ENVIRONMENT), uses_user_units(agent)
        self.x: NDArray[np.float64] = env.start.copy()
        """Where the agent is, in the unit cube."""
        self._clock, self._earned = np.zeros(2, dtype=np.int64), np.zeros(1)
        uniforms = np.empty(env.draws)
        # a PointEnvironment without its cells, which may change
        self._environment = (int(env.kind), env.parameters, uniforms, self.key, self.user_units, env.low, env.high)
        self.compiled = not own_verbs(agent) and not has_own_rule(agent)
        if is_plain(agent):
            self.restarts_because = f"gainful does not know the state of {agent.core.title}"  # type: ignore[attr-defined]
        elif sees_steps(agent):
            self.restarts_because = f"gainful does not know the state of {agent.core.bonus_counts.title}"  # type: ignore[union-attr]

    @property
    def t(self) -> int:
        """Steps made in this run."""
        return int(self._clock[STEPS_MADE])

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        return float(self._earned[0])

    @property
    def point(self) -> NDArray[np.float64]:
        """Where the agent is, in the coordinates of its partition."""
        return self.env.from_unit(self.x) if self.user_units else self.x.copy()

    def advance(self, target: int) -> None:
        """One kernel call: to step `target`, or to the end of the episode, or of the room in the arena."""
        if not self.compiled:
            self._step_on(min(target, self.t + STEPS_AT_A_TIME))
            return
        agent = self.agent
        before = time.process_time()
        agent.act(self.point)
        self.planning_seconds += time.process_time() - before
        began = time.thread_time()
        inner, plan, log, env = agent.core, agent.current, agent.log, self.env
        assert plan is not None
        until = min(target, plan.last_step - self.steps_before, agent.refines_at - self.steps_before)
        sink = _no_sink(env.dim)
        if log is not None:
            until = min(until, self.t + LOGGED_PAUSE)
            log.reserve(until - self.t)
            sink = (log.origin, log.target, log.action, log.reward, log.n)
        run, t = run_points if env.function is None else run_user_points, self.t
        try:
            run(
                env.function,
                (agent.partition.arrays, *self._environment),
                inner.counts(),
                learner_of(inner),
                inner.policy_in_force(self.steps_before),
                sink,
                (self.x, self._clock, self._earned),
                until,
            )
        finally:  # in any case, also after Ctrl-C: the agent has counted every step
            inner.t = self.steps_before + self.t
            if log is not None:
                log.n += self.t - t
            status = int(self._clock[STATUS])
            inner.interrupted = status == NEW_STATE_REACHED
        self.acting_seconds += time.thread_time() - began
        if status == GROW:
            inner.statistics.enlarge()
        elif status in (BAD_REWARD, BAD_STATE):
            self._step_on(self.t + 1)  # raises the error of the rejected step

    def _step_on(self, target: int) -> None:
        """Do the same as `advance`, by `act`, `env.step` and `observe`."""
        agent, env = self.agent, self.env
        while self.t < target:
            began = time.process_time()
            action = agent.act(self.point)
            acted = time.process_time()
            self.planning_seconds += acted - began
            reward, to = env.step(self.t, self.x, action, key=self.key)
            if not np.all((to >= 0.0) & (to <= 1.0)):
                raise InvalidArgumentError(
                    "next state",
                    to,
                    "a point of the unit cube",
                    problem=f"{env.name} moved from {self.x.tolist()} by action {action} to {to.tolist()} at step "
                    f"{self.t + 1}",
                )
            agent.observe(self.point, action, reward, env.from_unit(to) if self.user_units else to)
            self.x[:] = to
            self._clock[STEPS_MADE] += 1
            self._earned[0] += reward
            self.acting_seconds += time.process_time() - acted

    @property
    def fingerprint(self) -> str:
        """What the run depends on of the environment; of a user's own step function its code and what it refers to."""
        env, digest = self.env, hashlib.sha256()
        digest.update(
            repr((env.name, int(env.kind), env.n_actions, env.draws, env.reward_min, env.reward_max)).encode()
        )
        for array in (env.parameters, env.start, env.low, env.high):
            digest.update(np.ascontiguousarray(array).tobytes())
        if env.function is not None:
            digest.update("\n".join(_described(env.function, set())).encode())
        return digest.hexdigest()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Clock, rewards, and the point in the unit cube."""
        return {"clock": self._clock, "earned": self._earned, "rewards": self.rewards, "point": self.x}

    def step_of(self, arrays: dict[str, NDArray[Any]]) -> int:
        """The clock's; the point must be one of the unit cube."""
        t = int(arrays["clock"][STEPS_MADE])
        if not np.all((arrays["point"] >= 0.0) & (arrays["point"] <= 1.0)):
            raise ValueError(f"step {t} at the point {arrays['point'].tolist()}")
        return t

    def regrets_at(self, i: int) -> dict[str, float]:
        """Those of the base; the pseudo-regret is the regret, as in `run`."""
        found = super().regrets_at(i)
        return found | {"pseudo_regret": found["regret"]}

    def run(self) -> ContinuousRun:
        """The result, once the run is finished."""
        regret = self.checkpoints * self.gain - self.rewards
        return ContinuousRun(
            steps=self.checkpoints,
            rewards=self.rewards,
            regret=regret,
            pseudo_regret=regret.copy(),
            gain=self.gain,
            episodes=self.agent.episodes,
            final_state=self.agent.partition.index(self.point),
            seed=self.seed,
            planning_seconds=self.planning_seconds,
            acting_seconds=self.acting_seconds,
            final_point=self.point,
            gain_source=self.gain_source,
            vacuous=self.agent.vacuous,
        )


@lru_cache(maxsize=64)
def _no_sink(dim: int) -> tuple[Any, ...]:
    """A `TransitionSink` that takes nothing."""
    return (np.empty((0, dim)), np.empty((0, dim)), np.empty(0, dtype=np.int32), np.empty(0), 0)


def _described(function: Any, seen: set[int]) -> Iterator[str]:
    """The code of a Python function, the constants in it, and the values and functions that it refers to."""
    function = getattr(function, "py_func", function)
    if id(function) in seen or not hasattr(function, "__code__"):
        return
    seen.add(id(function))
    inside = inspect.getclosurevars(function)
    yield from _code(function.__code__)
    for name, value in sorted({**inside.globals, **inside.nonlocals}.items()):
        if hasattr(getattr(value, "py_func", value), "__code__"):
            yield f"function {name}"
            yield from _described(value, seen)
        elif isinstance(value, np.ndarray):
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            yield f"{name} {value.dtype} {value.shape} {content}"
        elif isinstance(value, (int, float, complex, str, bytes, tuple, bool, np.generic)):
            yield f"{name} {value!r}"
        else:
            yield f"{name} {getattr(value, '__name__', type(value).__name__)}"


def _code(code: Any) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from _code(constant)
        else:
            yield repr(constant)
