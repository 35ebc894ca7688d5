"""The environments of runs on a GPU: the states that an agent sees, where runs begin, and which kernels step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.cuda_device import (
    DEFAULT_SHARED_BYTES,
    LISTING_BLOCK,
    SIMULATED,
    WARP,
    PreparedLaunch,
    cuda,
    device_zeros,
    grid_for,
    list_where,
    max_shared_bytes,
    multiprocessors,
)
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.rng import Role, stream_keys
from gainful.simulation.continuous import Cells, ContinuousRun, check_points_fit, known_gain, uses_user_units
from gainful.simulation.device.packed_counting import COUNTING_BLOCK, count_logs
from gainful.simulation.device.packed_layout import LogFormat, PackedRuns, new_packed_runs
from gainful.simulation.device.packed_points import step_packed_points
from gainful.simulation.device.packed_policy import load_policies
from gainful.simulation.device.packed_tables import PackedTable, packed_table, step_packed
from gainful.simulation.device.points import (
    MAX_DEVICE_AXES,
    MAX_REGISTER_PARAMETERS,
    CellCounters,
    PointWorldArrays,
    step_points,
)
from gainful.simulation.device.runs import (
    NEEDS_COUNTING,
    NEEDS_COUNTING_AND_PLAN,
    NEEDS_PLAN,
    DeviceCounts,
    DeviceCurves,
    DeviceRows,
    DeviceRuns,
    TodoList,
    device_table,
    on_device,
    rows_of,
)
from gainful.simulation.device.steps import StepRule
from gainful.simulation.device.steps_global import step_global
from gainful.simulation.device.steps_shared import shared_bytes, step_shared
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run
from gainful.simulation.tabular import check_fit
from gainful.simulation.transition_table import BERNOULLI, TRANSITION, RewardLaw, TransitionTable, first_draws

MAX_COUNTING_BLOCKS = 4224
"""The most blocks that count logs or load policies: 32 for each multiprocessor of an H200."""
GLOBAL_BLOCK = 128
"""Threads of a block whose counters are in global memory."""
STEPPING_BLOCKS = (128, 64, 32)
"""Threads of a block whose counters are in shared memory: the first number whose counters fit."""
PACKED_POINT_BLOCK = 32
"""Threads of a block that steps packed runs in a continuous environment."""
MAX_BLOCK = 1024
"""The most threads of a block."""
MIN_PACKED_RUNS = 1 if SIMULATED else 32
"""Runs are packed only if shared memory has room for this many."""
NO_LAW = RewardLaw((), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint64), 1.0)
"""The law of a continuous environment, where packed runs keep the sums of rewards."""


class StepLaunches(NamedTuple):
    """The launches of one round before and after the launch that plans."""

    before: tuple[PreparedLaunch, ...]
    """They list the runs to plan for, and count their logs."""
    after: tuple[PreparedLaunch, ...]
    """They load policies, and step."""


@dataclass(frozen=True)
class SteppingRuns:
    """The arrays of a batch that the kernels that step read and write."""

    runs: DeviceRuns
    counts: DeviceCounts
    curves: DeviceCurves
    rule: StepRule
    law: RewardLaw
    todo: TodoList
    packed: PackedRuns | None
    """None if runs are not packed."""

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.runs.state.size)

    def listing(self, todo: TodoList, least: int, most: int) -> PreparedLaunch:
        """A launch that lists the runs whose status is from `least` to `most`."""
        return list_where.prepared(grid_for(self.n_runs, LISTING_BLOCK), self.runs.status, least, most, *todo)

    def counting_steps(self, steps: PreparedLaunch) -> StepLaunches:
        """The launches of kernels that count while they step."""
        return StepLaunches((self.listing(self.todo, NEEDS_PLAN, NEEDS_PLAN),), (steps,))

    def logging_steps(self, packed: PackedRuns, steps: PreparedLaunch, log_format: LogFormat) -> StepLaunches:
        """The launches of packed runs: count logs, load policies, unless the planner loads them, and step."""
        blocks = min(self.n_runs, MAX_COUNTING_BLOCKS)
        lists = (
            self.listing(self.todo, NEEDS_PLAN, NEEDS_PLAN),
            self.listing(packed.to_count, NEEDS_COUNTING, NEEDS_COUNTING_AND_PLAN),
        )
        arguments = self.law, self.runs, self.counts, self.curves, packed, self.todo, self.rule.reward_min
        shape = blocks, COUNTING_BLOCK, log_format.counting_bytes
        count = count_logs.prepared(shape, *arguments, at_once=True)
        if packed.planner_counts:
            return StepLaunches((*lists, count), (steps,))
        load = load_policies.prepared((blocks, COUNTING_BLOCK), self.todo, self.runs, self.counts, packed)
        return StepLaunches((*lists, count), (load, steps))


def even_block(n_runs: int, most: int, n_multiprocessors: int) -> int:
    """Threads of a block, if a multiprocessor holds one block: whole warps, and about the same number in every wave."""
    most = max(WARP, min(most, MAX_BLOCK) // WARP * WARP)
    waves = -(-n_runs // (most * n_multiprocessors))
    return min(most, WARP * -(-n_runs // (waves * n_multiprocessors * WARP)))


class DeviceWorld:
    """An environment of runs on a GPU; there is a subclass for each kind."""

    n_states: int
    """States that agents see: cells, in a continuous environment."""
    n_actions: int
    width: int
    """The length of the longest row of counts."""
    dim = 0
    """Coordinates of a point; 0 in a finite MDP."""
    gain: float
    gaps: NDArray[np.float64]
    """(pairs,) optimality gaps; empty if they are not known."""
    law: RewardLaw
    """The law of rewards."""

    def check_fit(self, agent: Any) -> None:
        """Raise an error unless the agent fits this environment."""
        raise NotImplementedError

    def rows(self, allowed: NDArray[np.bool_]) -> DeviceRows:
        """The next state of each transition counter."""
        raise NotImplementedError

    def first_states(self, seeds: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The states in which runs begin."""
        raise NotImplementedError

    def first_points(self, n_runs: int) -> NDArray[np.float64]:
        """The points at which runs begin."""
        return np.zeros((n_runs, 0))

    def bytes_per_run(self) -> int:
        """Bytes of the GPU's memory that one run takes besides its counts."""
        return 0

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Packed runs, with or without sums of squared rewards; None if other kernels are faster or runs do not fit."""
        raise NotImplementedError

    def prepared_steps(self, stepping: SteppingRuns) -> StepLaunches:
        """The launches that list the runs to plan for, and step the runs that have a plan."""
        raise NotImplementedError

    def run(self, **fields: Any) -> Run:
        """The result of one run."""
        raise NotImplementedError


class TabularWorld(DeviceWorld):
    """An MDP."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.n_states, self.n_actions = mdp, mdp.n_states, mdp.n_actions
        self.width = int(np.diff(mdp.indptr).max())
        self.gain, self.gaps = optimal_gain(mdp), known_gaps(mdp)
        self.table, self.law = TransitionTable.of(mdp), RewardLaw.of(mdp)

    def check_fit(self, agent: Any) -> None:
        """Raise an error unless the agent fits the MDP."""
        check_fit(agent, self.mdp)

    def rows(self, allowed: NDArray[np.bool_]) -> DeviceRows:
        """The rows of the MDP."""
        return rows_of(np.diff(self.mdp.indptr), self.mdp.indices, allowed)

    def first_states(self, seeds: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """`transition_table.first_state` of each seed."""
        u = (first_draws(stream_keys(seeds, Role.START)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.searchsorted(np.cumsum(self.mdp.start)[:-1], u, side="right").astype(np.uint32)

    @property
    def _block(self) -> int:
        """Threads of a block whose counters fit shared memory; 0 if no number does."""
        sizes = {b: shared_bytes(self.table, self.law, self.n_states, self.width, b) for b in STEPPING_BLOCKS}
        return next((block for block, size in sizes.items() if size <= DEFAULT_SHARED_BYTES), 0)

    @property
    def _packed_world(self) -> PackedTable:
        return packed_table(self.table, self.law)

    @property
    def _log_format(self) -> LogFormat | None:
        """What packed runs log; None if too few of them fit shared memory, or if counters fit without packing."""
        if self._block or len(self.law.kind) == TRANSITION or len(self.table.padding) == 0:
            return None
        log_format = LogFormat(self.n_states, self.width, self.n_actions, 0, len(self.law.kind) == BERNOULLI)
        room = max_shared_bytes() - self._packed_world.words.nbytes
        return (
            log_format
            if log_format.fits(max_shared_bytes()) and room >= MIN_PACKED_RUNS * log_format.run_bytes
            else None
        )

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed if their counters do not fit shared memory."""
        del squares  # the log determines them
        log_format = self._log_format
        return None if log_format is None else new_packed_runs(n_runs, log_format)

    def bytes_per_run(self) -> int:
        """Bytes of the GPU's memory that one run takes besides its counts."""
        log_format = self._log_format
        return 0 if log_format is None else log_format.run_bytes + log_format.log_bytes

    def prepared_steps(self, stepping: SteppingRuns) -> StepLaunches:
        """Packed runs, or counters in shared memory; counters in global memory if neither fits or actions are drawn."""
        law, log_format = stepping.law, self._log_format
        if stepping.packed is not None and log_format is not None:
            world, size = self._packed_world, log_format.run_bytes
            fits = (max_shared_bytes() - world.words.nbytes) // size
            grid = grid_for(stepping.n_runs, even_block(stepping.n_runs, fits, multiprocessors()))
            where = (*grid, world.words.nbytes + grid[1] * size)
            arrays = (
                on_device(world),
                law,
                stepping.runs,
                stepping.counts,
                stepping.curves,
                stepping.packed,
                stepping.rule,
                stepping.todo.n,
            )
            return stepping.logging_steps(stepping.packed, step_packed.prepared(where, *arrays), log_format)
        table, block = device_table(self.table), self._block
        arguments = table, law, stepping.runs, stepping.counts, stepping.curves, stepping.rule, stepping.todo.n
        if block and stepping.rule.cumulative.size == 0:
            needed = shared_bytes(self.table, self.law, self.n_states, self.width, block)
            return stepping.counting_steps(
                step_shared.prepared((*grid_for(stepping.n_runs, block), needed), *arguments)
            )
        return stepping.counting_steps(step_global.prepared(grid_for(stepping.n_runs, GLOBAL_BLOCK), *arguments))

    def run(self, **fields: Any) -> Run:
        """The result of one run."""
        means = fields.pop("means")
        del fields["final_point"]
        return Run(gain=self.gain, pseudo_regret=fields["steps"] * self.gain - means, **fields)


class PointWorld(DeviceWorld):
    """A continuous environment, seen in cells."""

    def __init__(self, env: ContinuousEnvironment, agent: Any) -> None:
        self.env = env
        check_points_fit(agent, env)
        check_environment(env)
        self.partition, self.own_units = agent.partition, uses_user_units(agent)
        self.n_states, self.n_actions, self.dim = self.partition.n_cells, env.n_actions, env.dim
        self.width = self.n_states
        self.gaps, self.law = np.zeros(0), NO_LAW
        self.gain, self.gain_source = known_gain(env, None)

    def check_fit(self, agent: PartitionedAgent) -> None:
        """Raise an error unless the agent fits the environment."""
        check_points_fit(agent, self.env)

    def rows(self, allowed: NDArray[np.bool_]) -> DeviceRows:
        """Every cell may follow every cell."""
        n_pairs = self.n_states * self.n_actions
        lengths = np.full(n_pairs, self.n_states, dtype=np.int64)
        return rows_of(lengths, np.tile(np.arange(self.n_states, dtype=np.uint32), n_pairs), allowed)

    def first_states(self, seeds: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The cell of the point at which all runs begin."""
        return np.full(seeds.size, self.cell(self.env.start), dtype=np.uint32)

    def cell(self, point: NDArray[np.float64]) -> int:
        """The cell of a point of the unit cube."""
        return int(self.partition.index(self.seen(point)))

    def seen(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """A point of the unit cube in the coordinates of the partition."""
        return self.env.from_unit(point) if self.own_units else point.copy()

    def first_points(self, n_runs: int) -> NDArray[np.float64]:
        """The start of the environment."""
        return np.tile(self.env.start, (n_runs, 1))

    def bytes_per_run(self) -> int:
        """Bytes of the GPU's memory that one run takes besides its counts."""
        log_format = self._log_format(True)
        return 8 * self.dim + (
            24 * self.n_states if log_format is None else log_format.run_bytes + log_format.log_bytes
        )

    def _log_format(self, squares: bool) -> LogFormat | None:
        """What packed runs log; None if too few of them fit shared memory."""
        log_format = LogFormat(self.n_states, self.n_states, self.n_actions, 1 + squares, False)
        return (
            log_format
            if log_format.fits(max_shared_bytes()) and MIN_PACKED_RUNS * log_format.run_bytes <= max_shared_bytes()
            else None
        )

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed if enough of them fit shared memory."""
        log_format = self._log_format(squares)
        return None if log_format is None else new_packed_runs(n_runs, log_format)

    def prepared_steps(self, stepping: SteppingRuns) -> StepLaunches:
        """Packed runs, or counters in global memory."""
        env, part = self.env, self.partition
        world = PointWorldArrays(
            kind=(0,) * int(env.kind),
            axes=(0,) * self.dim,
            in_registers=(0,) * (env.parameters.size if env.parameters.size <= MAX_REGISTER_PARAMETERS else 0),
            parameters=cuda.to_device(env.parameters.copy()),
            cells=on_device(Cells(*(np.array(a) for a in part.arrays))),
            own_units=self.own_units,
            low=cuda.to_device(env.low.copy()),
            high=cuda.to_device(env.high.copy()),
        )
        log_format = self._log_format(stepping.counts.reward_squares.size > 0)
        if stepping.packed is not None and log_format is not None:
            grid = grid_for(stepping.n_runs, PACKED_POINT_BLOCK)
            where = (*grid, grid[1] * log_format.run_bytes)
            arrays = (
                world,
                stepping.runs,
                stepping.counts,
                stepping.curves,
                stepping.packed,
                stepping.rule,
                stepping.todo.n,
            )
            steps = step_packed_points.prepared(where, *arrays)
            return stepping.logging_steps(stepping.packed, steps, log_format)
        shape = stepping.n_runs, self.n_states
        counters = CellCounters(
            act=device_zeros(shape, np.uint32),
            remaining=device_zeros(shape, np.uint32),
            sums=device_zeros(shape, np.float64),
            squares=device_zeros(shape, np.float64),
        )
        arguments = world, stepping.runs, stepping.counts, stepping.curves, stepping.rule, stepping.todo.n, counters
        return stepping.counting_steps(step_points.prepared(grid_for(stepping.n_runs, GLOBAL_BLOCK), *arguments))

    def run(self, **fields: Any) -> ContinuousRun:
        """The result of one run."""
        del fields["means"], fields["expected_regret"]
        fields["final_point"] = self.seen(fields["final_point"])
        return ContinuousRun(
            gain=self.gain, gain_source=self.gain_source, pseudo_regret=fields["regret"].copy(), **fields
        )


def check_environment(environment: Any) -> None:
    """Raise an error if an environment is of no kind that runs on a GPU."""
    if isinstance(environment, MDP):
        return
    name, reason = f"a {type(environment).__name__}", ""
    if isinstance(environment, ContinuousEnvironment):
        if environment.kind != EnvironmentKind.USER and environment.dim <= MAX_DEVICE_AXES:
            return
        name, reason = environment.name, ": its step function is the user's own"
    raise DeviceError(
        f"{name} cannot run on a GPU{reason}",
        name="device",
        found="cuda",
        expected="an MDP, or a continuous environment of gf.environments",
        hint="leave device out",
    )


def device_world(environment: Any, agent: Any) -> DeviceWorld:
    """The environment on a GPU, as this agent sees it."""
    check_environment(environment)
    return TabularWorld(environment) if isinstance(environment, MDP) else PointWorld(environment, agent)
