"""What all agents share that plan once per episode: the clock, the statistics, `act` and `observe`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.archive import Format, write_archive
from gainful.arguments import finite
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.rng import Role, draw, stream_key, uniform

NEVER = np.iinfo(np.int64).max

EPISODE_RECORD = np.dtype(
    [("step", "i8"), ("gain", "f8"), ("gain_low", "f8"), ("gain_high", "f8"), ("span", "f8"), ("sweeps", "i8"),
     ("planning_seconds", "f8")]
)  # fmt: skip
"""One record per episode: first step t_k (from 1), planner's gain with its bracket, sp(v_k), sweeps, CPU seconds."""


class EpisodeLog:
    """Records of episodes, appended one by one to an array that doubles: a million episodes are 56 MB."""

    def __init__(self, records: NDArray[Any] | None = None) -> None:
        self._kept = np.zeros(16, dtype=EPISODE_RECORD) if records is None or not len(records) else records.copy()
        self._n = 0 if records is None else len(records)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: int) -> tuple[Any, ...]:
        record: tuple[Any, ...] = self.array[i].item()
        return record

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.array.tolist())

    def append(self, record: tuple[Any, ...]) -> None:
        """One more."""
        if self._n == self._kept.size:
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)])
        self._kept[self._n] = record
        self._n += 1

    @property
    def array(self) -> NDArray[Any]:
        """All of them: a view."""
        return self._kept[: self._n]


@dataclass(frozen=True)
class EpisodePlan:
    """What an agent does until the episode ends, and what the planner says of it (in the user's units)."""

    actions: NDArray[np.int64]
    """(S,) the action of each state; ignored where `probabilities` is given."""
    gain_bounds: tuple[float, float]
    values: NDArray[np.float64]
    sweeps: int
    probabilities: NDArray[np.float64] | None = None
    """(S,A) for a policy that mixes actions."""
    doubling: bool = True
    """Whether the episode ends when a pair has been executed max{1, N_k} times."""
    last_step: int = NEVER
    """The step (from 1) after which a new episode begins in any case."""
    stop_on_new_state: bool = False
    """Whether reaching a state never visited before ends the episode (TUCRL)."""
    span: float | None = None
    """sp(values), for a planner that knows it."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else `on_episode` may show: bonus, optimistic rewards, ..."""

    @cached_property
    def cumulative(self) -> NDArray[np.float64]:
        """(S,A) cumulative probabilities, 1 from the last positive one on; empty for a deterministic policy."""
        if self.probabilities is None:
            return np.empty((0, 0))
        total = np.cumsum(self.probabilities, axis=1)
        total[total >= total[:, -1:] - 1e-12] = 1.0
        return total


@dataclass(frozen=True)
class EpisodeView:
    """One episode's beginning, shown to `agent.on_episode`."""

    episode: int
    step: int
    plan: EpisodePlan
    statistics: Statistics


class EpisodicAgent:
    """An agent with doubling episodes; a subclass says how to `plan`.

    An episode ends when the action chosen in the current state has been executed in it max{1, N_k(s,a)} times, N_k
    being the visits before the episode. The test comes before the execution: the action is then chosen anew by
    the new policy. Rewards enter in the user's units, in [reward_min, reward_max], and are shifted to [0, r_max] here
    and nowhere else.
    """

    def __init__(
        self, n_states: int, n_actions: int, *, reward_max: float = 1.0, reward_min: float = 0.0, delta: float = 0.05,
        seed: int = 0, allowed: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        for name, size in (("n_states", n_states), ("n_actions", n_actions)):
            if not isinstance(size, int | np.integer) or size < 1:  # type: ignore[redundant-expr]
                raise InvalidArgumentError(f"{name} is {size!r}, expected an integer of at least 1")
        if not (finite(reward_min) and finite(reward_max) and reward_min < reward_max):
            raise InvalidArgumentError(f"rewards in [{reward_min}, {reward_max}], expected reward_min < reward_max")
        if not (finite(delta) and 0.0 < delta < 1.0):
            raise InvalidArgumentError(f"delta is {delta}, expected a probability in (0, 1)")
        self.n_states, self.n_actions = int(n_states), int(n_actions)
        self.reward_min, self.reward_max, self.delta = float(reward_min), float(reward_max), float(delta)
        self.allowed: NDArray[np.bool_] = np.ones((self.n_states, self.n_actions), dtype=bool)
        """(S,A) the actions each state has."""
        if allowed is not None:
            mask = np.array(allowed, dtype=bool)
            if mask.shape != self.allowed.shape or not mask.any(axis=1).all():
                raise InvalidArgumentError(
                    f"allowed has shape {mask.shape}, expected {self.allowed.shape} with an action in every state"
                )
            self.allowed = mask
        self.allowed.flags.writeable = False
        self.key, self.seed = stream_key(seed, Role.ACTIONS), int(seed)
        self.statistics = Statistics(self.n_states, self.n_actions)
        self.t = 0
        """Steps observed so far; the next one is number t + 1."""
        self.current: EpisodePlan | None = None
        self.remaining: NDArray[np.int64] = np.ones(self.n_states * self.n_actions, dtype=np.int64)
        """How often each pair may still be executed in this episode."""
        self.planned_at = -1
        """The value of t when the current episode began."""
        self.interrupted = False
        """Whether the episode is to end before the next decision, for a reason of its own (a new state)."""
        self.visited: NDArray[np.bool_] = np.zeros(self.n_states, dtype=bool)
        """States seen so far, as the origin or the end of a transition."""
        self.records = EpisodeLog()
        self.on_episode: Callable[[EpisodeView], None] | None = None

    @property
    def reward_range(self) -> float:
        """r_max of the theory: reward_max - reward_min."""
        return self.reward_max - self.reward_min

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode so far, see `EPISODE_RECORD`."""
        return self.records.array.copy()

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """The plan of an episode whose first step is number t."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """What this agent promises with its present constants."""
        raise NotImplementedError

    @property
    def vacuous(self) -> bool:
        """Whether its bounds are still so wide that the data do not matter; False for agents that keep none."""
        return False

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again (what a saved file holds beside the arrays)."""
        return {
            "n_states": self.n_states, "n_actions": self.n_actions, "reward_max": self.reward_max,
            "reward_min": self.reward_min, "delta": self.delta, "seed": self.seed,
        }  # fmt: skip

    def resize(self, settings: dict[str, Any]) -> None:
        """Take the size of an agent with these settings, where that changes in the course of a life."""

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What a subclass must keep, beside the statistics and the current plan, to go on to the same bits."""
        return {}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `own_arrays` gave."""

    def save(self, path: str | Path) -> None:
        """Write the whole state to one plain file; `gf.load_agent(path)` goes on to the same bits."""
        write_archive(AGENT_FILE, path, *agent_state(self))

    def predict(self, state: int) -> int:
        """The greedy action of the present policy; begins no episode and learns nothing.

        Of a policy that mixes actions it is the most probable one, ties to the lowest; before the first plan the
        lowest action that the state has.
        """
        s = self._checked("state", state, self.n_states)
        if self.current is None:
            return int(np.argmax(self.allowed[s]))
        if self.current.probabilities is not None:
            return int(np.argmax(self.current.probabilities[s]))
        return int(self.current.actions[s])

    def act(self, state: int) -> int:
        """The action to take in `state`; asked again before `observe`, the answer is the same."""
        s = self._checked("state", state, self.n_states)
        if self.current is None or self.interrupted or self.t >= self.current.last_step:
            self.begin_episode()
        assert self.current is not None
        a = self._decision(s)
        if self.current.doubling and self.remaining[s * self.n_actions + a] <= 0:
            self.begin_episode()
            a = self._decision(s)
        return a

    def _decision(self, s: int) -> int:
        """Decision t uses draw 2t, and 2t+1 when the episode began at it."""
        assert self.current is not None
        if self.current.probabilities is None:
            return int(self.current.actions[s])
        number = 2 * self.t + (self.planned_at == self.t)
        return int(choose(self.current.cumulative, s, self.key, np.uint64(number)))

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """What happened: any valid transition, whether or not the agent chose it."""
        s = self._checked("state", state, self.n_states)
        a = self._checked("action", action, self.n_actions)
        to = self._checked("next state", next_state, self.n_states)
        if not self.allowed[s, a]:
            raise InvalidArgumentError(f"action {a} at step {self.t + 1}: state {s} does not have it")
        try:
            r = reward if type(reward) is float else float(reward)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"reward {reward!r} at step {self.t + 1}, expected a number") from error
        if not self.reward_min <= r <= self.reward_max:
            raise InvalidArgumentError(
                f"reward {reward} at step {self.t + 1}, expected a number in "
                f"[{self.reward_min:g}, {self.reward_max:g}]; give the agent the true reward_min and reward_max"
            )
        pair = s * self.n_actions + a
        self.statistics.observe(pair, to, r - self.reward_min)
        self.remaining[pair] -= 1
        self.t += 1
        self.visited[s] = True
        if not self.visited[to]:
            self.visited[to] = True
            self.interrupted = self.current is not None and self.current.stop_on_new_state

    def begin_episode(self) -> None:
        """Plan from what has been seen, and give every pair max{1, N} executions."""
        began = time.process_time()
        plan = self.plan(self.statistics, self.t + 1)
        spent = time.process_time() - began
        low, high = plan.gain_bounds
        self.records.append(
            (
                self.t + 1, low + (high - low) / 2, low, high,
                float(np.ptp(plan.values)) if plan.span is None else plan.span, plan.sweeps, spent,
            )
        )  # fmt: skip
        self.current, self.planned_at, self.interrupted = plan, self.t, False
        grant(self.statistics.visits, *self.statistics.changes, self.remaining)
        if self.on_episode is not None:
            self.on_episode(EpisodeView(len(self.records), self.t + 1, plan, self.statistics))

    @staticmethod
    def _checked(what: str, value: int, n: int) -> int:
        if type(value) is int and 0 <= value < n:
            return value
        try:
            i = int(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"{what} is {value!r}, expected an integer in 0 … {n - 1}") from error
        if i != value or not 0 <= i < n:
            raise InvalidArgumentError(f"{what} is {value}, expected an integer in 0 … {n - 1}")
        return i


@kernel
def choose(cumulative: NDArray[Any], s: int, key: Any, number: Any) -> int:
    """The action of state s whose cumulative probability is the first to exceed draw `number`."""
    u = uniform(draw(key, number))
    a = 0
    while cumulative[s, a] <= u:
        a += 1
    return a


@kernel
def grant(
    visits: NDArray[Any], is_changed: NDArray[Any], changed: NDArray[Any], n_changed: NDArray[Any],
    remaining: NDArray[Any],
) -> None:  # fmt: skip
    """Give every pair max{1, N} executions: those not observed since the last plan have used none of theirs."""
    for i in range(n_changed[0]):
        k = changed[i]
        remaining[k] = max(1, visits[k])
        is_changed[k] = False
    n_changed[0] = 0


# ---------------------------------------------------------------------- one plain file

AGENT_FILE = Format("gainful-agent", 1, "agent", "agent.save", InvalidAgentError)


def agent_state(agent: EpisodicAgent) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """All of an agent: settings and clock as a JSON header; statistics, plan and records as arrays."""
    plan = agent.current
    header: dict[str, Any] = {
        "agent": type(agent).__name__, "settings": agent.settings(), "t": agent.t, "planned_at": agent.planned_at,
        "interrupted": agent.interrupted, "plan": None,
    }  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {
        "allowed": agent.allowed, "remaining": agent.remaining, "visited": agent.visited, "records": agent.episodes,
    }  # fmt: skip
    if plan is not None:
        header["plan"] = {
            "gain_bounds": plan.gain_bounds, "sweeps": plan.sweeps, "doubling": plan.doubling,
            "last_step": plan.last_step, "stop_on_new_state": plan.stop_on_new_state, "span": plan.span,
        }  # fmt: skip
        arrays |= {"plan_actions": plan.actions, "plan_values": plan.values}
        if plan.probabilities is not None:
            arrays["plan_probabilities"] = plan.probabilities
    arrays |= {f"statistics_{name}": array for name, array in agent.statistics.to_arrays().items()}
    arrays |= {f"own_{name}": array for name, array in agent.own_arrays().items()}
    return header, arrays


def take_state(agent: EpisodicAgent, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Make a new agent, of the same settings, what `agent_state` told of another; ValueError where that cannot be."""
    agent.resize(header["settings"])
    agent.statistics.from_arrays(
        {name.removeprefix("statistics_"): a for name, a in arrays.items() if name.startswith("statistics_")}
    )
    pairs = agent.n_states * agent.n_actions
    for name, shape, dtype in (("remaining", (pairs,), np.int64), ("visited", (agent.n_states,), np.bool_)):
        if arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise ValueError(f"array '{name}' has shape {arrays[name].shape} and dtype {arrays[name].dtype}")
    if arrays["records"].dtype != EPISODE_RECORD or arrays["records"].ndim != 1:
        raise ValueError(f"records have dtype {arrays['records'].dtype} and shape {arrays['records'].shape}")
    if int(header["t"]) != int(agent.statistics.visits.sum()):
        raise ValueError(f"{header['t']} steps, but {agent.statistics.visits.sum()} visits")
    agent.remaining[:], agent.visited[:] = arrays["remaining"], arrays["visited"]
    statistics = agent.statistics
    used = np.flatnonzero(agent.remaining != np.maximum(statistics.visits, 1))  # what this episode has executed
    statistics.forget_changes()
    statistics.is_changed[used], statistics.changed[: used.size], statistics.n_changed[0] = True, used, used.size
    agent.records = EpisodeLog(arrays["records"])
    agent.t, agent.planned_at = int(header["t"]), int(header["planned_at"])
    agent.interrupted = bool(header["interrupted"])
    agent.current = None
    if header["plan"] is not None:
        kept = dict(header["plan"])
        kept["gain_bounds"] = tuple(kept["gain_bounds"])
        agent.current = EpisodePlan(
            actions=arrays["plan_actions"], values=arrays["plan_values"],
            probabilities=arrays.get("plan_probabilities"), **kept,
        )  # fmt: skip
        _check_plan(agent.current, agent)
    agent.restore({name.removeprefix("own_"): a for name, a in arrays.items() if name.startswith("own_")})


def _check_plan(plan: EpisodePlan, agent: EpisodicAgent) -> None:
    """ValueError unless the plan is one for the agent's states and actions."""
    S, A = agent.n_states, agent.n_actions
    actions, p = plan.actions, plan.probabilities
    if actions.shape != (S,) or actions.dtype != np.int64 or not (actions.min() >= 0 and actions.max() < A):
        raise ValueError(
            f"the plan's actions have shape {actions.shape} and dtype {actions.dtype}, or are out of range"
        )
    if plan.values.shape != (S,) or not np.isfinite(plan.values).all():
        raise ValueError(f"the plan's values have shape {plan.values.shape}, or are not finite")
    if p is not None and (p.shape != (S, A) or not np.all(np.abs(p.sum(axis=1) - 1.0) < 1e-6) or p.min() < 0.0):
        raise ValueError("the plan's probabilities are none")
    if type(plan.last_step) is not int or not plan.gain_bounds[0] <= plan.gain_bounds[1]:
        raise ValueError(f"the plan ends at {plan.last_step} with the bracket {plan.gain_bounds}")


def restore_agent(
    make: Callable[..., EpisodicAgent], path: str | Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> EpisodicAgent:
    """An agent from the file of `agent.save`; any disagreement is an InvalidAgentError."""
    try:
        agent = make(**header["settings"], allowed=arrays["allowed"])
        take_state(agent, header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise AGENT_FILE.damaged(path, f"{type(error).__name__}: {error}") from error
    return agent
