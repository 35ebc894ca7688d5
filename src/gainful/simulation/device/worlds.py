"""The environments of runs on a GPU: how many states an agent sees, where runs begin, and which kernel steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.cuda_device import MOST_SHARED, SIMULATED, cuda, device_zeros, grid_for, most_shared
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.rng import Role, stream_keys
from gainful.simulation.continuous import Cells, ContinuousRun, check_points_fit, known_gain, uses_user_units
from gainful.simulation.device.packed import (
    MOST_BYTE,
    SETTLING_BLOCK,
    PackedRuns,
    deal_runs,
    new_packed_runs,
    packed_bytes,
    settle_runs,
)
from gainful.simulation.device.packed_points import step_packed_points
from gainful.simulation.device.packed_tables import PackedTable, packed_table, step_packed
from gainful.simulation.device.points import MOST_AXES, MOST_FEW, PointWorldArrays, Walk, step_points
from gainful.simulation.device.runs import (
    MOST_HALF,
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

DEALING_BLOCKS = 4096
"""Blocks that pack new plans, at most."""
FAR_BLOCK = 128
"""Threads of a block that counts in global memory."""
STEPPING_BLOCKS = (128, 64, 32)
"""Threads of a block that steps: the first that fits."""
PACKED_BLOCK, PACKED_POINT_BLOCK = 256, 32
"""Threads of a block that steps packed runs, at most: in a finite MDP all of them share its table."""
FEWEST_PACKED = 1 if SIMULATED else 32
"""Packed runs that shared memory must have room for."""
NO_LAW = RewardLaw((), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint64), 1.0)
"""In a continuous environment, rewards are summed up in the packed run."""


@dataclass(frozen=True)
class SteppingRuns:
    """The arrays of a batch that steps read and write."""

    runs: DeviceRuns
    counts: DeviceCounts
    curves: DeviceCurves
    rule: StepRule
    todo: TodoList
    packed: PackedRuns | None
    """None if runs are not packed."""

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.runs.state.size)

    def between_settling(self, law: RewardLaw, steps: Callable[[], None]) -> tuple[Callable[[], None], ...]:
        """Pack new plans, step, and give agents what packed runs have counted."""
        blocks = min(self.n_runs, DEALING_BLOCKS)
        deal = deal_runs.prepared((blocks, SETTLING_BLOCK), self.todo, self.runs, self.counts, self.packed)
        arguments = law, self.runs, self.counts, self.curves, self.packed, self.rule.low
        return deal, steps, settle_runs.prepared((self.n_runs, SETTLING_BLOCK), *arguments)


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

    def prepared_steps(self, many: SteppingRuns) -> tuple[Callable[[], None], ...]:
        """Functions that let every run that has a plan step, to be called one after the other."""
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

    def _packed_size(self) -> int:
        """Bytes of a packed run; 0 if too few of them fit into shared memory, or need not."""
        size = packed_bytes(self.n_states, self.width, 0, len(self.law.kind) == BERNOULLI)
        packs = not self._block and len(self.law.kind) != TRANSITION and self.n_actions <= MOST_BYTE + 1
        if not packs or len(self.table.padding) == 0 or self.n_states > MOST_HALF + 1:
            return 0
        return size if most_shared() - self._packed_world.words.nbytes >= FEWEST_PACKED * size else 0

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed where their counters do not fit into shared memory otherwise."""
        del squares  # they follow from counts
        if not self._packed_size():
            return None
        return new_packed_runs(n_runs, self.n_states, self.width, 0, len(self.law.kind) == BERNOULLI)

    def bytes_per_run(self) -> int:
        """Memory of the GPU that one run takes besides its counts."""
        size = self._packed_size()
        return size + 8 * self.n_states if size else 0

    def prepared_steps(self, many: SteppingRuns) -> tuple[Callable[[], None], ...]:
        """Steps that count in shared memory if it is large enough, and the policy draws no actions."""
        law = on_device(self.law)
        if many.packed is not None:
            world, size = self._packed_world, self._packed_size()
            fits = (most_shared() - world.words.nbytes) // size
            grid = grid_for(many.n_runs, min(fits, PACKED_BLOCK))
            where = (*grid, world.words.nbytes + grid[1] * size)
            arrays = on_device(world), law, many.runs, many.counts, many.curves, many.packed, many.rule, many.todo.n
            return many.between_settling(law, step_packed.prepared(where, *arrays))
        table, block = device_table(self.table), self._block
        arguments = table, law, many.runs, many.counts, many.curves, many.rule, many.todo.n
        if block and many.rule.cumulative.size == 0:
            needed = shared_bytes(self.table, self.law, self.n_states, self.width, block)
            return (step_runs.prepared((*grid_for(many.n_runs, block), needed), *arguments),)
        return (step_far.prepared(grid_for(many.n_runs, FAR_BLOCK), *arguments),)

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
        self.gaps = np.zeros(0)
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
        packed = self._packed_size(True)
        return 8 * self.dim + (packed + 8 * self.n_states if packed else 24 * self.n_states)

    def _packed_size(self, squares: bool) -> int:
        """Bytes of a packed run; 0 if too few of them fit into shared memory."""
        size = packed_bytes(self.n_states, self.n_states, 1 + squares, False)
        return size if FEWEST_PACKED * size <= most_shared() and self.n_actions <= MOST_BYTE + 1 else 0

    def new_packed(self, n_runs: int, squares: bool) -> PackedRuns | None:
        """Runs are packed if they fit into shared memory so."""
        if not self._packed_size(squares):
            return None
        return new_packed_runs(n_runs, self.n_states, self.n_states, 1 + squares, False)

    def prepared_steps(self, many: SteppingRuns) -> tuple[Callable[[], None], ...]:
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
        if many.packed is not None:
            grid = grid_for(many.n_runs, PACKED_POINT_BLOCK)
            where = (*grid, grid[1] * self._packed_size(many.counts.reward_squares.size > 0))
            arrays = world, many.runs, many.counts, many.curves, many.packed, many.rule, many.todo.n
            return many.between_settling(on_device(NO_LAW), step_packed_points.prepared(where, *arrays))
        shape = many.n_runs, self.n_states
        far = Walk(
            act=device_zeros(shape, np.uint32),
            left=device_zeros(shape, np.uint32),
            sums=device_zeros(shape, np.float64),
            squares=device_zeros(shape, np.float64),
        )
        arguments = world, many.runs, many.counts, many.curves, many.rule, many.todo.n, far
        return (step_points.prepared(grid_for(many.n_runs, FAR_BLOCK), *arguments),)

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
