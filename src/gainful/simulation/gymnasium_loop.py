"""A run in any Gymnasium environment with Discrete actions: the trace of `act`, `env.step` and `observe`, at less cost.

Between two plans a policy is fixed, and all a step needs is the cell of its observation. So the loop keeps the
transitions of an episode aside and gives them to the agent's statistics in one compiled call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.own_verbs import own_verbs
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.plain_learner import checked_action, is_plain
from gainful.agents.policy_kernels import choose
from gainful.agents.stepwise import StepwiseAgent
from gainful.environments.registry import continuous_names, names
from gainful.errors import InvalidArgumentError, describe
from gainful.partition import locate_one
from gainful.simulation.base import Simulation
from gainful.simulation.continuous import ContinuousRun
from gainful.simulation.counters import total_over_pairs
from gainful.simulation.gymnasium_model import GymnasiumModel

STEPS_KEPT_ASIDE = 4096
"""The most steps that are kept aside before they are added to the agent's statistics."""


def check_environment(agent: Any, env: Any) -> None:
    """Raise an error unless `env` is one Gymnasium environment whose spaces fit the agent."""
    if isinstance(env, gymnasium.vector.VectorEnv) or hasattr(env, "num_envs"):
        problem = f"{type(env).__name__} steps several environments at once"
        raise InvalidArgumentError(
            "environment", env, hint="a run has one: pass one, or simulate each", problem=problem
        )
    if not isinstance(env, gymnasium.Env):
        problem, expected = f"the environment is {describe(env)}", "an MDP, a continuous environment or a gymnasium.Env"
        raise InvalidArgumentError("environment", env, expected, _who_makes(env), problem=problem)
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    if not isinstance(env.action_space, spaces.Discrete):
        hint = "choose finitely many actions, with a wrapper" if isinstance(env.action_space, spaces.Box) else ""
        problem = f"{name} has actions {env.action_space}"
        raise InvalidArgumentError("environment", env, "a Discrete space", hint, problem=problem)
    if int(env.action_space.n) != agent.n_actions:
        problem = f"{name} has {env.action_space.n} actions, the agent {agent.n_actions}"
        raise InvalidArgumentError("agent", agent, hint=f"make it with n_actions={env.action_space.n}", problem=problem)
    _check_observations(agent, env.observation_space, name)


def _who_makes(env: Any) -> str:
    """How to make the environment that somebody gave by its name."""
    if not isinstance(env, str):
        return ""
    if env in names():
        return f"gf.environments.make({env!r}) makes one"
    return f"{'gf.environments.make_continuous' if env in continuous_names() else 'gymnasium.make'}({env!r}) makes one"


def _check_observations(agent: EpisodicAgent | PartitionedAgent, space: spaces.Space[Any], name: str) -> None:
    """Raise an error unless observations of this space fit the agent."""
    if isinstance(space, spaces.Discrete):
        if agent.dim:
            problem = f"{name} has {space.n} states and needs no partition"
            raise InvalidArgumentError("agent", agent, hint="take a tabular agent", problem=problem)
        if int(space.n) != agent.n_states:
            problem = f"{name} has {space.n} states, the agent {agent.n_states}"
            raise InvalidArgumentError("agent", agent, hint=f"make it with n_states={space.n}", problem=problem)
    elif isinstance(space, spaces.Box):
        if is_plain(agent):
            return  # it sees what it is given
        if agent.dim == 0:
            raise InvalidArgumentError(
                "agent",
                agent,
                hint="put it on a partition: "
                "gf.Discretized(agent_class, gf.Partition.from_box(env.observation_space, ...), ...)",
                problem=f"{name} observes points ({space}), and {type(agent).__name__} is a tabular agent",
            )
        if space.shape != (agent.dim,) and not (space.shape == () and agent.dim == 1):
            problem = f"{name} observes shape {space.shape}, the agent's partition has {agent.dim}"
            raise InvalidArgumentError("agent", agent, problem=problem)
    else:
        hint, problem = "gymnasium.wrappers can flatten it", f"{name} observes {space}"
        raise InvalidArgumentError("environment", space, "a Box or Discrete space", hint, problem=problem)


class GymnasiumSimulation(Simulation):
    """One agent's run in a Gymnasium environment: its state, and what it has earned at each checkpoint."""

    def __init__(
        self, agent: Any, env: gymnasium.Env[Any, Any], seed: int, grid: NDArray[np.int64], model: GymnasiumModel
    ) -> None:
        super().__init__(agent, seed, grid)
        self.env, self.model, self.gain = env, model, model.gain
        self.means, self.expected_regret = np.full(grid.size, np.nan), np.full(grid.size, np.nan)
        self._visits_before = agent.core.statistics.visits.copy()
        self._visits = self._visits_before.copy()  # counted here if the agent's own `observe` may not do it
        self._t, self._total, self.restarts = 0, 0.0, 0
        assert isinstance(env.action_space, spaces.Discrete)
        self._first_action = int(env.action_space.start)
        self._first_state = 0
        if isinstance(env.observation_space, spaces.Discrete):
            self._first_state = int(env.observation_space.start)
        self.fast = not own_verbs(agent) and not isinstance(agent.core, StepwiseAgent)
        self.restarts_because = "a Gymnasium environment does not tell its state"
        self.observation, _ = env.reset(seed=seed)

    @property
    def t(self) -> int:
        """Steps made in this run."""
        return self._t

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        return self._total

    @property
    def core(self) -> EpisodicAgent:
        """The tabular agent: the one itself, or that on the cells."""
        core: EpisodicAgent = self.agent.core
        return core

    def seen(self, observation: Any) -> Any:
        """An observation in the form that the agent accepts: the point, or the number of the state from 0."""
        return observation if self.agent.dim else observation - self._first_state

    def state_of(self, observation: Any) -> int:
        """The cell or the state of an observation, checked."""
        try:
            return int(self.agent.cell(self.seen(observation)))
        except InvalidArgumentError as error:
            problem = f"the observation at step {self.t + 1} of the run: {error.problem}"
            raise InvalidArgumentError(error.name, error.found, error.expected, error.hint, problem=problem) from error

    def advance(self, target: int) -> None:
        """Continue to step `target`, or to the end of the episode."""
        began = time.process_time()
        if self.fast:
            self.state_of(self.observation)  # names the step, should it be a bad one
            self.agent.act(self.seen(self.observation))
            planned = time.process_time()
            self.planning_seconds += planned - began
            began = planned
            self._run_on(target)
        else:
            self._step_on(min(target, self.t + STEPS_KEPT_ASIDE))
        self.acting_seconds += time.process_time() - began

    def _run_on(self, target: int) -> None:
        """Steps with the present plan, its transitions kept aside until the end."""
        agent, inner, plan = self.agent, self.core, self.core.current
        assert plan is not None
        log, refines_at = agent.log, agent.refines_at
        t, steps_before, total = self.t, self.steps_before, self.total
        until = min(target, plan.last_step - steps_before, refines_at - steps_before, t + STEPS_KEPT_ASIDE)
        arrays: tuple[Any, ...] = (plan.actions, inner.visited)
        actions, visited = (memoryview(a) for a in arrays)  # one by one they are quicker than an array
        n_actions, first_action, low, high = inner.n_actions, self._first_action, inner.reward_min, inner.reward_max
        doubling, stop_on_new, groups = plan.doubling, plan.stop_on_new_state, plan.groups
        cumulative, mixed, planned = plan.cumulative, plan.probabilities is not None, inner.planned_at == inner.t
        cell, step = self._locator(), self.env.step
        observation, state = self.observation, self.state_of(self.observation)
        if log is not None:
            observation = np.array(observation)
        pairs: list[int] = []
        targets: list[int] = []
        rewards: list[float] = []
        left: dict[int, int] = {}
        refused: tuple[Any, ...] | None = None
        lost: tuple[Any, ...] = ()
        interrupted = False
        try:
            while t < until:
                if mixed:
                    action = int(choose(cumulative, state, inner.key, np.uint64(2 * (steps_before + t) + planned)))
                    planned = False
                else:
                    action = actions[state]
                pair = state * n_actions + action
                limited = pair if groups is None else int(groups[pair])
                if limited not in left:
                    left[limited] = inner.executions_left(pair)
                if doubling and left[limited] <= 0:
                    break
                following, reward, terminated, truncated, _ = step(action + first_action)
                if terminated:  # the end is a way back to the beginning
                    following = self._restarted()
                try:
                    earned = float(reward)
                except (TypeError, ValueError):
                    earned = float("nan")
                if not low <= earned <= high:
                    refused = (observation, action, reward, following)
                    break
                to = cell(following)
                if to < 0:
                    lost = (following,)
                    break
                if log is not None:
                    log.append(observation, action, earned, following)
                rewards.append(earned)
                pairs.append(pair)
                targets.append(to)
                left[limited] -= 1
                total += earned
                t += 1
                if stop_on_new:
                    visited[state] = True
                    interrupted = not visited[to]
                # an environment may use one array for all its observations: who keeps them copies
                observation, state = following if log is None else np.array(following), to
                if truncated and not terminated:  # a time limit is not a transition: continue from the reset
                    observation = self._restarted() if log is None else np.array(self._restarted())
                    state = cell(observation)
                if interrupted or state < 0:
                    break
        finally:  # whatever happens, Ctrl-C and an error of the environment too: the agent counts every step
            n = len(targets)  # the last of the three to grow
            inner.count_many(
                np.array(pairs[:n], dtype=np.int64),
                np.array(targets, dtype=np.int64),
                np.array(rewards[:n]) - inner.reward_min,
            )
            inner.interrupted = interrupted
            self._t, self._total, self.observation = self.t + len(targets), total, observation
            inner.t = steps_before + self.t
            if log is not None:
                log.n = inner.t
        if lost:
            self.state_of(*lost)
        if refused is not None:
            agent.observe(self.seen(refused[0]), refused[1], refused[2], self.seen(refused[3]))
            raise AssertionError("a reward outside the agent's range was taken")

    def _locator(self) -> Callable[[Any], int]:
        """As `state_of`, but -1 for what has none; quick for observations of the last one's class, type and shape."""

        def slowly(observation: Any) -> int:
            try:
                return self.state_of(observation)
            except InvalidArgumentError:
                return -1

        last = self.observation
        if self.agent.dim == 0:
            n, first = self.core.n_states, self._first_state

            def state(observation: Any) -> int:
                if observation.__class__ is int or observation.__class__ is np.int64:
                    number = int(observation) - first
                    return number if 0 <= number < n else -1
                return slowly(observation)

            return state
        part = self.agent.partition
        if not (isinstance(last, np.ndarray) and last.shape == (part.dim,) and last.dtype.kind in "fiub"):
            return slowly
        buffer, table, dtype, shape = np.empty(part.dim), part._table(last.dtype), last.dtype, last.shape

        def cell(observation: Any) -> int:
            if observation.__class__ is np.ndarray and observation.dtype is dtype and observation.shape == shape:
                buffer[:] = observation
                return int(locate_one(buffer, table))
            return slowly(observation)

        return cell

    def _step_on(self, target: int) -> None:
        """Do the same as `advance`, by `act`, `env.step` and `observe`."""
        while self.t < target:
            state = self.state_of(self.observation)
            here = np.array(self.seen(self.observation))[()]  # a copy, should the environment use one array for all
            action = checked_action(self.core, type(self.agent).__name__, self.agent.act(here), state, here)
            following, reward, terminated, truncated, _ = self.env.step(action + self._first_action)
            if terminated:
                following = self._restarted()
            self.state_of(following)
            self.agent.observe(here, action, reward, self.seen(following))
            self._visits[state * self.core.n_actions + action] += 1
            self._t, self._total, self.observation = self.t + 1, self.total + float(reward), following
            if truncated and not terminated:
                self.observation = self._restarted()

    def _restarted(self) -> Any:
        """The first observation after a restart."""
        self.restarts += 1
        return self.env.reset()[0]

    def record_checkpoint(self) -> None:
        """Record what has been earned, and in an MDP of ours what has been lost, if this is a checkpoint."""
        i, model = self.checkpoints_passed, self.model
        super().record_checkpoint()
        if self.checkpoints_passed > i and model.means is not None:
            visits = self.core.statistics.visits if self.fast else self._visits
            self.means[i] = total_over_pairs(visits, self._visits_before, model.means)
            self.expected_regret[i] = total_over_pairs(visits, self._visits_before, model.gaps)

    def regrets_at(self, i: int) -> dict[str, float]:
        """Those of the base, with mean rewards and gaps counted from visits."""
        pseudo_regret = float(self.checkpoints[i] * self.gain - self.means[i])
        return super().regrets_at(i) | {
            "pseudo_regret": pseudo_regret,
            "expected_regret": float(self.expected_regret[i]),
        }

    def run(self) -> ContinuousRun:
        """The result, once the run is finished."""
        return ContinuousRun(
            steps=self.checkpoints,
            rewards=self.rewards,
            regret=self.checkpoints * self.gain - self.rewards,
            pseudo_regret=self.checkpoints * self.gain - self.means,
            gain=self.gain,
            episodes=self.agent.episodes,
            final_state=self.state_of(self.observation),
            seed=self.seed,
            planning_seconds=self.planning_seconds,
            acting_seconds=self.acting_seconds,
            final_point=np.array(self.observation, dtype=np.float64).reshape(-1),
            gain_source=self.model.gain_source,
            vacuous=self.agent.vacuous,
            expected_regret=self.expected_regret,
        )
