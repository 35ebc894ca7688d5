"""A batch of runs on a GPU: kernels that step and kernels that plan take turns until every run is finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episode_log import EPISODE_RECORD
from gainful.cuda_device import PreparedLaunch, cuda, device_zeros
from gainful.errors import NotConvergedError
from gainful.rng import Role, stream_keys
from gainful.simulation.device.packed_layout import no_packed_runs
from gainful.simulation.device.planners import DevicePlanner, PlannedRuns
from gainful.simulation.device.runs import (
    FINISHED,
    NEEDS_PLAN,
    PLAN_FAILED,
    DeviceCounts,
    DeviceCurves,
    DeviceEpisodes,
    DeviceRuns,
    TodoList,
    on_device,
)
from gainful.simulation.device.steps import StepRule
from gainful.simulation.device.worlds import DeviceWorld, SteppingRuns

CHECK_EVERY = 16
"""Rounds of launches between two checks whether runs are finished; the GPU need not wait for the CPU between them."""
FIRST_EPISODES = 64
"""Episodes of a run for which arrays have room at first."""
STEPS_DIVISOR, PACKED_STEPS_DIVISOR = 128, 256
"""A launch makes 1/128 or 1/256 of the steps made before, because a run whose episode ends idles until the end of the
launch. Steps of packed runs take longer, so that their launches are shorter."""


@dataclass(frozen=True)
class BatchResult:
    """The results of a batch: arrays (C, R) and (R,), unless they say otherwise."""

    rewards: NDArray[np.float64]
    means: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    final_state: NDArray[np.uint32]
    final_point: NDArray[np.float64]
    """(R, d)."""
    n_episodes: NDArray[np.int64]
    vacuous: NDArray[np.bool_]
    records: tuple[NDArray[Any], ...]
    """(E, R) step, low, high, span and sweeps; of length 0 if they were not kept."""
    seconds: float
    """Wall time."""
    steps_made: int
    """Steps of each run."""

    def episodes(self, run: int) -> NDArray[Any]:
        """The records of the episodes of one run."""
        n = int(self.n_episodes[run])
        step, low, high, span, sweeps = (column[:n, run] for column in self.records)
        found = np.zeros(n, dtype=EPISODE_RECORD)
        found["step"], found["gain_low"], found["gain_high"], found["span"] = step, low, high, span
        found["gain"], found["sweeps"] = low + (high - low) / 2, sweeps
        return found


@dataclass(frozen=True)
class LearnedCounts:
    """The counts of R agents, and their last plans."""

    transitions: NDArray[np.uint32]
    """(R, pairs * width) by pair, then by the rank of the next state in its row."""
    visits: NDArray[np.uint32]
    """(R, pairs)."""
    reward_sum: NDArray[np.float64]
    """(R, pairs)."""
    reward_squares: NDArray[np.float64]
    """(R, pairs), or (R, 0) if the agents do not need them."""
    actions: NDArray[np.uint32]
    """(R, S)."""
    values: NDArray[np.float64]
    """(R, S) in units of reward."""


@dataclass(frozen=True)
class ManyRuns:
    """What all batches of a sweep have in common."""

    world: DeviceWorld
    checkpoints: NDArray[np.int64]
    planner: DevicePlanner
    keep_episodes: bool

    def bytes_per_run(self) -> int:
        """Bytes of the GPU's memory that one run takes."""
        n_states, n_pairs = self.world.n_states, self.world.n_states * self.world.n_actions
        counters = 4 * (n_pairs * (self.world.width + 1) + n_states)
        curves = 24 * self.checkpoints.size
        records = 40 * 4 * FIRST_EPISODES if self.keep_episodes else 0
        own = self.world.bytes_per_run() + self.planner.bytes_per_pair * n_pairs
        return 64 + counters + 16 * n_pairs + 12 * n_states + curves + records + own


class Batch:
    """R runs and their arrays on the GPU."""

    def __init__(self, many: ManyRuns, seeds: NDArray[np.uint64]) -> None:
        world, self.many, self.n_runs = many.world, many, seeds.size
        n_states, n_pairs, R = world.n_states, world.n_states * world.n_actions, seeds.size
        C = many.checkpoints.size
        self.seeds = seeds
        self.rows = on_device(many.planner.arrange_rows(world.rows(many.planner.agent.allowed)))
        self.runs = on_device(
            DeviceRuns(
                state=world.first_states(seeds),
                step=np.zeros(R, dtype=np.int64),
                key=stream_keys(seeds, Role.ENVIRONMENT),
                earned=np.zeros(R),
                status=np.full(R, NEEDS_PLAN, dtype=np.uint32),
                passed=np.zeros(R, dtype=np.uint32),
                sweeps=np.zeros(R, dtype=np.int64),
                point=world.first_points(R),
            )
        )
        self.counts = DeviceCounts(
            transitions=device_zeros((R, world.width * n_pairs), np.uint32),
            visits=device_zeros((R, n_pairs), np.uint32),
            reward_sum=device_zeros((R, n_pairs), np.float64),
            reward_squares=device_zeros((R, n_pairs if many.planner.needs_squares else 0), np.float64),
            act=device_zeros((R, n_states), np.uint32),
            remaining=device_zeros((R, n_states), np.uint32),
        )
        rewards, means, expected = (device_zeros((C, R), np.float64) for _ in range(3))
        gaps = world.gaps.copy()
        self.curves = on_device(DeviceCurves(many.checkpoints, rewards, means, expected, gaps, np.zeros(gaps.size)))
        room = FIRST_EPISODES if many.keep_episodes else 0
        self.episodes = DeviceEpisodes(
            number=device_zeros(R, np.int64),
            step=device_zeros((room, R), np.int64),
            low=device_zeros((room, R), np.float64),
            high=device_zeros((room, R), np.float64),
            span=device_zeros((room, R), np.float64),
            sweeps=device_zeros((room, R), np.int64),
            vacuous=device_zeros(R, np.bool_),
        )
        self.todo = TodoList(cuda.device_array(R, np.int64), device_zeros(1, np.int64))
        self.values = device_zeros((R, n_states), np.float64)
        self.memory = many.planner.new_memory(R)
        cumulative = many.planner.cumulative
        keys = stream_keys(seeds, Role.ACTIONS) if cumulative.size else seeds[:0].copy()
        self.law = on_device(world.law)
        self.packed = None if cumulative.size else world.new_packed(R, many.planner.needs_squares)
        if self.packed is not None and many.planner.counts_logs(world.width):
            self.packed = self.packed._replace(planner_counts=(0,))
        divisor = STEPS_DIVISOR if self.packed is None else PACKED_STEPS_DIVISOR
        self.rule = on_device(StepRule(many.planner.agent.reward_min, divisor, cumulative, keys))

    def run(self, progress: Callable[[int], None] | None = None) -> BatchResult:
        """Finish all runs; `progress(steps)` is called with the number of steps that all of them have made."""
        began = time.perf_counter()
        finished, round_of_launches = False, self.launches()
        while not finished:
            if self._make_room():
                round_of_launches = self.launches()
            for _ in range(CHECK_EVERY):
                for launch in round_of_launches:
                    launch()
            status = self.runs.status.copy_to_host()
            self._check(status)
            finished = bool(np.all(status == FINISHED))
            if progress is not None:
                progress(int(self.runs.step.copy_to_host().sum()))
        return self._result(time.perf_counter() - began)

    def launches(self) -> tuple[PreparedLaunch, ...]:
        """One round: list the runs whose episode is over, plan for them, and step every run that has a plan."""
        planned = PlannedRuns(
            self.todo,
            self.rows,
            self.runs,
            self.counts,
            self.episodes,
            self.values,
            self.memory,
            no_packed_runs() if self.packed is None else self.packed,
            self.law,
        )
        stepping = SteppingRuns(self.runs, self.counts, self.curves, self.rule, self.law, self.todo, self.packed)
        steps = self.many.world.prepared_steps(stepping)
        return (*steps.before, self.many.planner.prepared(planned), *steps.after)

    def learned(self) -> LearnedCounts:
        """The counts of all agents, and their last plans."""
        scale = self.many.planner.value_scale
        return LearnedCounts(
            transitions=self.counts.transitions.copy_to_host(),
            visits=self.counts.visits.copy_to_host(),
            reward_sum=self.counts.reward_sum.copy_to_host(),
            reward_squares=self.counts.reward_squares.copy_to_host(),
            actions=self.counts.act.copy_to_host(),
            values=scale * self.values.copy_to_host(),
        )

    def _make_room(self) -> bool:
        """Make room for the episodes that may begin before the next check; whether arrays were replaced."""
        room = self.episodes.step.shape[0]
        if not self.many.keep_episodes or int(self.episodes.number.copy_to_host().max()) + CHECK_EVERY < room:
            return False
        longer = {}
        for name in ("step", "low", "high", "span", "sweeps"):
            old = getattr(self.episodes, name)
            new = cuda.device_array((2 * room, self.n_runs), old.dtype)
            new[:room].copy_to_device(old)
            longer[name] = new
        self.episodes = self.episodes._replace(**longer)
        return True

    def _check(self, status: NDArray[Any]) -> None:
        """Raise the error of the first run that could not plan."""
        failed = np.flatnonzero(status == PLAN_FAILED)
        if failed.size:
            i = int(failed[0])
            agent, t = self.many.planner.agent, int(self.runs.step.copy_to_host()[i]) + 1
            rounding = float(self.runs.earned.copy_to_host()[i])
            raise NotConvergedError(
                f"{type(agent).__name__} cannot plan at step {t} of seed {int(self.seeds[i])}: "
                f"rounding alone is {rounding:.1e}",
                name="precision",
            )

    def _expected_regret(self) -> NDArray[np.float64]:
        """NaN where there are no optimality gaps."""
        found: NDArray[np.float64] = self.curves.expected_regret.copy_to_host()
        if self.many.world.gaps.size == 0:
            found[:] = np.nan
        return found

    def _result(self, seconds: float) -> BatchResult:
        number = self.episodes.number.copy_to_host()
        most = int(number.max()) if self.many.keep_episodes else 0
        return BatchResult(
            rewards=self.curves.rewards.copy_to_host(),
            means=self.curves.means.copy_to_host(),
            expected_regret=self._expected_regret(),
            final_state=self.runs.state.copy_to_host(),
            final_point=self.runs.point.copy_to_host(),
            n_episodes=number,
            vacuous=self.episodes.vacuous.copy_to_host(),
            records=tuple(array[:most].copy_to_host() for array in self.episodes[1:6]),
            seconds=seconds,
            steps_made=int(self.many.checkpoints[-1]),
        )
