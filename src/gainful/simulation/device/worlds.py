"""The environments of runs on a GPU: how many states an agent sees, where runs begin, and which kernel steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.cuda_device import MOST_SHARED, cuda, device_zeros, grid_for
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.rng import Role, stream_keys
from gainful.simulation.continuous import Cells, ContinuousRun, check_points_fit, known_gain, uses_user_units
from gainful.simulation.device.points import MOST_AXES, PointWorldArrays, Walk, shared_bytes_of_points, step_points
from gainful.simulation.device.runs import (
    DeviceCounts,
    DeviceCurves,
    DeviceRows,
    DeviceRuns,
    device_environment,
    on_device,
    rows_of,
)
from gainful.simulation.device.steps import (
    HALF_LIMIT,
    StepRule,
    shared_bytes,
    shared_bytes_of_policy,
    step_far,
    step_middle,
    step_runs,
)
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run
from gainful.simulation.tabular import check_fit
from gainful.simulation.transition_table import TRANSITION, RewardLaw, TransitionTable, first_draws

FAR_BLOCK = 128
"""Threads of a block that counts in global memory."""
STEPPING_BLOCKS = (128, 64, 32)
"""Threads of a block that steps: the first that fits."""
POINT_BLOCKS = (64, 32)
"""The same in continuous environments."""


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

    def prepared_steps(
        self, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, rule: StepRule, n_todo: Any
    ) -> Callable[[], None]:
        """A function that lets every run that has a plan step."""
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

    def prepared_steps(
        self, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, rule: StepRule, n_todo: Any
    ) -> Callable[[], None]:
        """Steps that count in shared memory if it is large enough, and the policy draws no actions."""
        n_runs, (table, law) = runs.state.size, device_environment(self.table, self.law)
        for block in STEPPING_BLOCKS if rule.cumulative.size == 0 else ():
            needed = shared_bytes(self.table, self.law, self.n_states, self.width, block)
            if needed <= MOST_SHARED:
                where = (*grid_for(n_runs, block), needed)
                return step_runs.prepared(where, table, law, runs, counts, curves, rule, n_todo)
        for block in STEPPING_BLOCKS if rule.cumulative.size == 0 and len(self.law.kind) != TRANSITION else ():
            policy = shared_bytes_of_policy(self.law, self.n_states, block)
            if policy <= MOST_SHARED and self.n_actions <= HALF_LIMIT:
                where = (*grid_for(n_runs, block), policy)
                return step_middle.prepared(where, table, law, runs, counts, curves, rule, n_todo)
        return step_far.prepared(grid_for(n_runs, FAR_BLOCK), table, law, runs, counts, curves, rule, n_todo)

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
        return 8 * self.dim + (0 if self._block else 24 * self.n_states)

    @property
    def _block(self) -> int:
        """Threads of a block that counts in shared memory; 0 if none fits."""
        needed = {block: shared_bytes_of_points(self.n_states, block, True) for block in POINT_BLOCKS}
        return next((block for block in POINT_BLOCKS if needed[block] <= MOST_SHARED), 0)

    def prepared_steps(
        self, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, rule: StepRule, n_todo: Any
    ) -> Callable[[], None]:
        """Steps that count in shared memory if it is large enough."""
        n_runs, env, part = runs.state.size, self.env, self.partition
        world = PointWorldArrays(
            kind=(0,) * int(env.kind),
            axes=(0,) * self.dim,
            parameters=cuda.to_device(env.parameters.copy()),
            cells=on_device(Cells(*(np.array(a) for a in part.arrays))),
            own_units=self.own_units,
            low=cuda.to_device(env.low.copy()),
            high=cuda.to_device(env.high.copy()),
        )
        block = self._block
        shape = (0 if block else n_runs, self.n_states)
        far = Walk(
            act=device_zeros(shape, np.uint32),
            left=device_zeros(shape, np.uint32),
            sums=device_zeros(shape, np.float64),
            squares=device_zeros(shape, np.float64),
        )
        shared = shared_bytes_of_points(self.n_states, block, counts.reward_squares.size > 0)
        where = (*grid_for(n_runs, block or FAR_BLOCK), shared)
        return step_points.prepared(where, world, runs, counts, curves, rule, n_todo, far)

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
