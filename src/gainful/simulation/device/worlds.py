"""The environments of runs on a GPU: how many states an agent sees, where runs begin, and which kernel steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.cuda_device import (
    LISTING_BLOCK,
    MOST_SHARED,
    SIMULATED,
    WARP,
    PreparedLaunch,
    cuda,
    device_zeros,
    grid_for,
    list_where,
    most_shared,
    multiprocessors,
)
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.rng import Role, stream_keys
from gainful.simulation.continuous import Cells, ContinuousRun, check_points_fit, known_gain, uses_user_units
from gainful.simulation.device.packed import (
    SETTLING_BLOCK,
    LogPlan,
    PackedRuns,
    deal_runs,
    new_packed_runs,
    settle_runs,
)
from gainful.simulation.device.packed_points import step_packed_points
from gainful.simulation.device.packed_tables import PackedTable, packed_table, step_packed
from gainful.simulation.device.points import MOST_AXES, MOST_FEW, PointWorldArrays, Walk, step_points
from gainful.simulation.device.runs import (
    NEEDS_BOTH,
    NEEDS_PLAN,
    NEEDS_SETTLING,
    DeviceCounts,
    DeviceCurves,
    DeviceRows,
    DeviceRuns,
    device_table,
    on_device,
    rows_of,
)
from gainful.simulation.device.steps import (
    StepRule,
    shared_bytes,
    step_far,
    step_runs,
)
from gainful.simulation.device.teams import TodoList
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run
from gainful.simulation.tabular import check_fit
from gainful.simulation.transition_table import BERNOULLI, TRANSITION, RewardLaw, TransitionTable, first_draws

DEALING_BLOCKS = 4224
"""Blocks that settle runs and deal their policies, at most: 32 for each multiprocessor of an H200."""
FAR_BLOCK = 128
"""Threads of a block that counts in global memory."""
STEPPING_BLOCKS = (128, 64, 32)
"""Threads of a block that steps: the first that fits."""
PACKED_POINT_BLOCK = 32
"""Threads of a block that steps packed runs in a continuous environment."""
MOST_IN_BLOCK = 1024
"""Threads that a block can have."""
FEWEST_PACKED = 1 if SIMULATED else 32
"""Packed runs that shared memory must have room for."""
NO_LAW = RewardLaw((), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint64), 1.0)
"""In a continuous environment, rewards are summed up in the packed run."""


class RoundOfSteps(NamedTuple):
    """Functions to be called one after the other, before runs are planned for and after."""

    before: tuple[PreparedLaunch, ...]
    """The first ones list runs."""
    after: tuple[PreparedLaunch, ...]


@dataclass(frozen=True)
class SteppingRuns:
    """The arrays of a batch that steps read and write."""

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
        """A function that lists the runs whose status is from `least` to `most`."""
        return list_where.prepared(grid_for(self.n_runs, LISTING_BLOCK), self.runs.status, least, most, *todo)

    def round_of_steps(self, steps: PreparedLaunch) -> RoundOfSteps:
        """Steps that give agents what they count themselves."""
        return RoundOfSteps((self.listing(self.todo, NEEDS_PLAN, NEEDS_PLAN),), (steps,))

    def round_of_logs(self, packed: PackedRuns, steps: PreparedLaunch, plan: LogPlan) -> RoundOfSteps:
        """Steps that packed runs log: settle them before plans are made, and deal the new policies, if plans do not."""
        blocks = min(self.n_runs, DEALING_BLOCKS)
        lists = (
            self.listing(self.todo, NEEDS_PLAN, NEEDS_PLAN),
            self.listing(packed.waiting, NEEDS_SETTLING, NEEDS_BOTH),
        )
        arguments = self.law, self.runs, self.counts, self.curves, packed, self.todo, self.rule.low
        settle = settle_runs.prepared((blocks, SETTLING_BLOCK, plan.counting_bytes), *arguments, at_once=True)
        if packed.by_plans:
            return RoundOfSteps((*lists, settle), (steps,))
        deal = deal_runs.prepared((blocks, SETTLING_BLOCK), self.todo, self.runs, self.counts, packed)
        return RoundOfSteps((*lists, settle), (deal, steps))


def even_block(n_runs: int, most: int, n_multiprocessors: int) -> int:
    """Threads of a block, one of which fills a multiprocessor: whole warps, and no turn is nearly empty."""
    most = max(WARP, min(most, MOST_IN_BLOCK) // WARP * WARP)
    turns = -(-n_runs // (most * n_multiprocessors))
    return min(most, WARP * -(-n_runs // (turns * n_multiprocessors * WARP)))


class DeviceWorld:
    """An environment of runs on a GPU; a subclass knows its kind."""

    n_states: int
    """States that agents see: cells, in a continuous environment."""
    n_actions: int
    width: int
    """The length of the longest row of counts."""
    dim = 0
    """Coordinates of a point; 0 where states are numbers."""
    gain: float
    gaps: NDArray[np.float64]
    """(pairs,) from which expected regret counts; empty if there are none."""
    law: RewardLaw
    """Of finite MDPs."""

    def check_fit(self, agent: Any) -> None:
        """Raise an error unless the agent fits this environment."""
        raise NotImplementedError

    def rows(self, allowed: NDArray[np.bool_]) -> DeviceRows:
        """Which next state a counter belongs to."""
        raise NotImplementedError

    def first_states(self, seeds: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The states in which runs begin."""
        raise NotImplementedError

    def first_points(self, n_runs: int) -> NDArray[np.float64]:
        """The points at which runs begin."""
        return np.zeros((n_runs, 0))

    def bytes_per_run(self) -> int:
        """Memory of the GPU that one run takes besides its counts."""
        return 0

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Packed runs, whose rewards are also squared or not, if that is how they step fastest."""
        raise NotImplementedError

    def prepared_steps(self, many: SteppingRuns) -> RoundOfSteps:
        """Functions that list the runs to plan for, and let every run that has a plan step."""
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
        """Threads of a block that counts in words of shared memory; 0 if none fits."""
        sizes = {b: shared_bytes(self.table, self.law, self.n_states, self.width, b) for b in STEPPING_BLOCKS}
        return next((block for block, size in sizes.items() if size <= MOST_SHARED), 0)

    @property
    def _packed_world(self) -> PackedTable:
        return packed_table(self.table, self.law)

    @property
    def _log_plan(self) -> LogPlan | None:
        """What packed runs log; None if too few of them fit into shared memory, or need not be packed."""
        if self._block or len(self.law.kind) == TRANSITION or len(self.table.padding) == 0:
            return None
        plan = LogPlan(self.n_states, self.width, self.n_actions, 0, len(self.law.kind) == BERNOULLI)
        room = most_shared() - self._packed_world.words.nbytes
        return plan if plan.fits(most_shared()) and room >= FEWEST_PACKED * plan.run_bytes else None

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed where their counters do not fit into shared memory otherwise."""
        del squares  # they follow from counts
        plan = self._log_plan
        return None if plan is None else new_packed_runs(n_runs, plan)

    def bytes_per_run(self) -> int:
        """Memory of the GPU that one run takes besides its counts."""
        plan = self._log_plan
        return 0 if plan is None else plan.run_bytes + plan.log_bytes

    def prepared_steps(self, many: SteppingRuns) -> RoundOfSteps:
        """Steps that count in shared memory if it is large enough, and the policy draws no actions."""
        law, plan = many.law, self._log_plan
        if many.packed is not None and plan is not None:
            world, size = self._packed_world, plan.run_bytes
            fits = (most_shared() - world.words.nbytes) // size
            grid = grid_for(many.n_runs, even_block(many.n_runs, fits, multiprocessors()))
            where = (*grid, world.words.nbytes + grid[1] * size)
            arrays = on_device(world), law, many.runs, many.counts, many.curves, many.packed, many.rule, many.todo.n
            return many.round_of_logs(many.packed, step_packed.prepared(where, *arrays), plan)
        table, block = device_table(self.table), self._block
        arguments = table, law, many.runs, many.counts, many.curves, many.rule, many.todo.n
        if block and many.rule.cumulative.size == 0:
            needed = shared_bytes(self.table, self.law, self.n_states, self.width, block)
            return many.round_of_steps(step_runs.prepared((*grid_for(many.n_runs, block), needed), *arguments))
        return many.round_of_steps(step_far.prepared(grid_for(many.n_runs, FAR_BLOCK), *arguments))

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
        """Memory of the GPU that one run takes besides its counts."""
        plan = self._log_plan(True)
        return 8 * self.dim + (24 * self.n_states if plan is None else plan.run_bytes + plan.log_bytes)

    def _log_plan(self, squares: bool) -> LogPlan | None:
        """What packed runs log; None if too few of them fit into shared memory."""
        plan = LogPlan(self.n_states, self.n_states, self.n_actions, 1 + squares, False)
        return plan if plan.fits(most_shared()) and FEWEST_PACKED * plan.run_bytes <= most_shared() else None

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed if they fit into shared memory so."""
        plan = self._log_plan(squares)
        return None if plan is None else new_packed_runs(n_runs, plan)

    def prepared_steps(self, many: SteppingRuns) -> RoundOfSteps:
        """Steps that count in shared memory if it is large enough."""
        env, part = self.env, self.partition
        world = PointWorldArrays(
            kind=(0,) * int(env.kind),
            axes=(0,) * self.dim,
            few=(0,) * (env.parameters.size if env.parameters.size <= MOST_FEW else 0),
            parameters=cuda.to_device(env.parameters.copy()),
            cells=on_device(Cells(*(np.array(a) for a in part.arrays))),
            own_units=self.own_units,
            low=cuda.to_device(env.low.copy()),
            high=cuda.to_device(env.high.copy()),
        )
        plan = self._log_plan(many.counts.reward_squares.size > 0)
        if many.packed is not None and plan is not None:
            grid = grid_for(many.n_runs, PACKED_POINT_BLOCK)
            where = (*grid, grid[1] * plan.run_bytes)
            arrays = world, many.runs, many.counts, many.curves, many.packed, many.rule, many.todo.n
            steps = step_packed_points.prepared(where, *arrays)
            return many.round_of_logs(many.packed, steps, plan)
        shape = many.n_runs, self.n_states
        far = Walk(
            act=device_zeros(shape, np.uint32),
            left=device_zeros(shape, np.uint32),
            sums=device_zeros(shape, np.float64),
            squares=device_zeros(shape, np.float64),
        )
        arguments = world, many.runs, many.counts, many.curves, many.rule, many.todo.n, far
        return many.round_of_steps(step_points.prepared(grid_for(many.n_runs, FAR_BLOCK), *arguments))

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
        if environment.kind != EnvironmentKind.USER and environment.dim <= MOST_AXES:
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
