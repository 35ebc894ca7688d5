"""Which agents run on a GPU, and the launch of the kernel with which each of them plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.c_kl_scal_plus import KLSCALPlusOnCells
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.fixed import Fixed
from gainful.agents.kl_scal_plus import KL_UNINFORMATIVE, KLSCALPlus
from gainful.agents.planning_agent import PlanningAgent
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.scal_plus_bonuses import BONUSES, sharp_constants
from gainful.agents.sets import SetConstants
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.cuda_device import (
    MAX_WARPS,
    SIMULATED,
    WARP,
    PreparedLaunch,
    cuda,
    grid_for,
    max_shared_bytes,
    multiprocessors,
)
from gainful.errors import DeviceError
from gainful.optimism.bernstein_scal_plus import BernsteinConstants
from gainful.optimism.kl_scal_plus import KLConstants
from gainful.planning.kl_on_counts import KL_DAMPING
from gainful.simulation.device.episodes import plan_fixed
from gainful.simulation.device.extended import BALLS, INTERVALS, ExtendedConstants, new_extended_space, plan_extended
from gainful.simulation.device.kl_scal_plus import (
    KLDeviceConstants,
    KLMemory,
    new_kl_memory,
    new_kl_space,
    plan_kl_scal_plus,
)
from gainful.simulation.device.packed_layout import PackedRuns
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns, TodoList
from gainful.simulation.device.scal_plus import SCAL_PLUS_THREADS, plan_scal_plus
from gainful.simulation.device.scal_plus_counts import PlanWork
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    PAPER,
    SHARP,
    UNROLLED,
    ActionMajorRows,
    DevicePlanConstants,
    action_major_rows,
    are_paired,
    block_size,
    row_pitch,
)
from gainful.simulation.transition_table import RewardLaw

ON_DEVICE = "SCALPlus, KLSCALPlus, UCRL2, UCRL2B, Fixed, and these on cells (CSCALPlus, CKLSCALPlus, Discretized)"
"""The agents that run on a GPU, for messages."""
FIXED_THREADS, MAX_PLANNING_THREADS = 64, 32 * MAX_WARPS
"""Threads of a block for fixed policies, and the most threads of a block that plans."""
BLOCKS_PER_MULTIPROCESSOR, THREADS_PER_MULTIPROCESSOR = 32, 2048
"""The most blocks and threads that a multiprocessor runs at a time."""
MAX_WORKSPACE = 1 << 28
"""The most numbers in the working arrays of all blocks, where these are in global memory."""
TINY_REWARDS = 1e-100
"""Below this range of rewards `quotient` is not used, because values could be less than `MIN_DIVIDEND`."""
EVI_DAMPING = 0.9
"""The damping of `extended_value_iteration`."""


@dataclass(frozen=True)
class PlannedRuns:
    """The arrays of a batch that the kernels that plan read and write."""

    todo: TodoList
    rows: Any
    """What `DevicePlanner.arrange_rows` returns."""
    runs: DeviceRuns
    counts: DeviceCounts
    episodes: DeviceEpisodes
    values: Any
    """(R, S) the values from which the next plan starts."""
    memory: Any
    """What `DevicePlanner.new_memory` returns."""
    packed: PackedRuns
    law: RewardLaw
    """The law of rewards."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first six arguments of every kernel that plans, except that of fixed policies."""
        return self.todo, self.rows, self.runs, self.counts, self.episodes, self.values

    @property
    def width(self) -> int:
        """The length of the longest row of counts."""
        return int(self.counts.transitions.shape[1] // self.counts.visits.shape[1])

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.runs.state.size)


class DevicePlanner:
    """How one kind of agent plans on a GPU; there is a subclass for each kernel."""

    def __init__(self, agent: EpisodicAgent) -> None:
        self.agent = agent

    needs_squares = False
    """Whether plans need the sums of squared rewards."""
    bytes_per_pair = 0
    """Bytes of the GPU's memory that a run takes for each pair, besides its counts."""
    value_scale = 1.0
    """The factor that converts the values of a plan to units of reward."""

    @property
    def cumulative(self) -> NDArray[np.float64]:
        """(S, A) cumulative probabilities of a policy that draws actions; else empty."""
        return np.zeros((0, 0))

    def arrange_rows(self, rows: DeviceRows) -> Any:
        """The rows of the model in the order in which the kernel reads them."""
        return rows

    def new_memory(self, n_runs: int) -> Any:  # noqa: ARG002
        """The arrays that runs keep from plan to plan, besides values."""
        return ()

    def counts_logs(self, width: int) -> bool:  # noqa: ARG002
        """Whether the kernel that plans counts the logs of packed runs and loads their policies."""
        return False

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """The launch that plans for the listed runs."""
        raise NotImplementedError


class FixedPlanner(DevicePlanner):
    """A fixed policy."""

    agent: Fixed

    @property
    def cumulative(self) -> NDArray[np.float64]:
        """(S, A) cumulative probabilities if the policy draws actions; else empty."""
        return self.agent.plan(self.agent.statistics, 1).cumulative

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """The launch that begins the only episode."""
        actions = self.agent.plan(self.agent.statistics, 1).actions
        bounds = np.array([self.agent.reward_min, self.agent.reward_max])
        arrays = cuda.to_device(actions.astype(np.uint32)), cuda.to_device(bounds)
        where = grid_for(many.n_runs, FIXED_THREADS)
        return plan_fixed.prepared(where, many.todo, *arrays, many.runs, many.counts, many.episodes)


class ScalPlusPlanner(DevicePlanner):
    """SCAL+ with any bonus."""

    agent: SCALPlus

    def arrange_rows(self, rows: DeviceRows) -> ActionMajorRows:
        """The rows in action-major order."""
        return action_major_rows(rows, self.agent.n_actions)

    @property
    def kind(self) -> int:
        """The kind of bonus."""
        return {"sharp": SHARP, "bernstein": BERNSTEIN}.get(self.agent.bonus, PAPER)

    def block_sizes(self, width: int) -> tuple[int, int]:
        """How many float64 and uint32 numbers the working arrays of a block have."""
        n_pairs = self.agent.n_states * self.agent.n_actions
        return block_size(self.agent.n_states, n_pairs, self.kind), n_pairs * row_pitch(width)

    def counts_logs(self, width: int) -> bool:
        """Whether the working arrays of a block fit shared memory."""
        numbers, words = self.block_sizes(width)
        return 8 * numbers + 4 * words <= max_shared_bytes()

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """The launch that plans for the listed runs."""
        agent, kind, fits_shared = self.agent, self.kind, self.counts_logs(many.width)
        n_pairs = agent.n_states * agent.n_actions
        numbers, words = self.block_sizes(many.width)
        threads = min(SCAL_PLUS_THREADS, WARP * -(-agent.n_states // WARP))
        grid = PlanningGrid(threads, 0 if fits_shared else numbers + words)
        n_workspaces = 0 if fits_shared else grid.blocks
        work = PlanWork(
            cuda.device_array((n_workspaces, numbers), np.float64),
            cuda.device_array((n_workspaces, words), np.uint32),
            many.counts.transitions.view(np.uint64) if are_paired(many.width) else many.counts.transitions,
            many.packed,
            many.law,
        )
        constants = DevicePlanConstants(
            kind=(0,) * kind,
            in_global_memory=(0,) * (not fits_shared),
            counts_logs=many.packed.planner_counts,
            tiny_rewards=(0,) * (agent.reward_range < TINY_REWARDS),
            quads=(0,) * (int(many.rows.next_state_quads.size) // n_pairs),
            width=(0,) * (many.width if many.width <= UNROLLED else 0),
            actions=(0,) * (agent.n_actions if agent.n_actions <= UNROLLED else 0),
            paired=(0,) * are_paired(many.width),
            paper=agent.constants,
            sharp=sharp_constants(agent),
            bernstein=BernsteinConstants(agent.n_states, agent.delta, agent.bonus_scale, agent.reward_range),
            span=agent.span,
            damping=BONUSES[agent.bonus].damping,
            reward_range=agent.reward_range,
            reward_min=agent.reward_min,
        )
        where = grid.shape(many.n_runs, 8 * numbers + 4 * words if fits_shared else 0)
        return plan_scal_plus.prepared(where, *many.arguments, work, constants, at_once=True)


class ExtendedPlanner(DevicePlanner):
    """UCRL2 and UCRL2B."""

    agent: UCRL2 | UCRL2B

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        """UCRL2B estimates the variance of rewards."""
        return type(self.agent) is UCRL2B

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """The launch that plans for the listed runs."""
        agent, kind = self.agent, INTERVALS if self.needs_squares else BALLS
        n_pairs = agent.n_states * agent.n_actions
        grid = PlanningGrid(threads_for(n_pairs), 6 * n_pairs * (many.width + 1) + 8 * agent.n_states)
        blocks = min(grid.blocks, many.n_runs)
        space = new_extended_space(blocks, agent.n_states, n_pairs, many.width, kind)
        constants = ExtendedConstants(
            kind=(0,) * kind,
            sets=SetConstants(*agent.set_constants),
            damping=EVI_DAMPING,
            reward_range=agent.reward_range,
            reward_min=agent.reward_min,
        )
        return plan_extended.prepared(grid.shape(many.n_runs, 0), *many.arguments, space, constants)


class KLScalPlusPlanner(DevicePlanner):
    """KL-SCAL+."""

    agent: KLSCALPlus
    bytes_per_pair = 72

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        """Whether rewards are bounded by their variance."""
        return self.agent.reward_bound == "variance"

    @property
    def value_scale(self) -> float:  # type: ignore[override]
        """Values are in units of r_max."""
        return self.agent.reward_range

    def new_memory(self, n_runs: int) -> KLMemory:
        """Sets, dual variables and keys."""
        return new_kl_memory(n_runs, self.agent.n_states, self.agent.allowed)

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """The launch that plans for the listed runs, with one thread per run."""
        agent = self.agent
        n_pairs = agent.n_states * agent.n_actions
        size = 3 * (512 + agent.n_states) + 4 * agent.n_states + n_pairs * (3 + 2 * many.width)
        n_threads = max(1, min(many.n_runs, MAX_WORKSPACE // size))
        work = many.memory, new_kl_space(n_threads, agent.n_states, n_pairs, many.width)
        constants = KLDeviceConstants(
            sets=KLConstants(agent.log_union, agent.reward_range, agent.width_scale),
            span=np.inf if agent.span is None else agent.span / agent.reward_range,
            damping=KL_DAMPING,
            reward_range=agent.reward_range,
            base=agent.reward_min + agent.model_error,
            uninformative=KL_UNINFORMATIVE,
        )
        return plan_kl_scal_plus.prepared(grid_for(n_threads, WARP), *many.arguments, work, constants)


class PlanningGrid:
    """The grid of a kernel that plans with one block per run; each block has `size` numbers in global memory."""

    def __init__(self, threads: int, size: int) -> None:
        self.threads = 2 if SIMULATED else threads
        self.blocks = multiprocessors() * min(BLOCKS_PER_MULTIPROCESSOR, THREADS_PER_MULTIPROCESSOR // self.threads)
        if size > 0:
            self.blocks = max(1, min(self.blocks, MAX_WORKSPACE // size))

    def shape(self, n_runs: int, shared: int) -> tuple[int, int, int]:
        """Blocks, threads per block and bytes of shared memory of a launch for at most `n_runs` plans."""
        return min(self.blocks, n_runs), self.threads, shared


def threads_for(n_pairs: int) -> int:
    """A number of threads of which few idle when they share the pairs: the largest of the nearly best sizes."""
    sizes = range(WARP, MAX_PLANNING_THREADS + 1, WARP)
    used = {size: n_pairs / (size * -(-n_pairs // size)) for size in sizes}
    best = max(used.values())
    return max(size for size in sizes if used[size] >= best - 0.02)


def device_planner(agent: EpisodicAgent) -> DevicePlanner:
    """How agents like this one plan on a GPU; raises an error if they cannot."""
    kind, reason = type(agent), ""
    if isinstance(agent, PlanningAgent) and not agent.is_doubling:
        reason = f"episodes is {agent.episode_rule!r}"
    elif kind is SCALPlus and isinstance(agent, SCALPlus):
        if agent.mixture == "copy" and agent.replanning == "full":
            return ScalPlusPlanner(agent)
        reason = "replanning is 'local'" if agent.mixture == "copy" else f"mixture is {agent.mixture!r}"
    elif kind in (KLSCALPlus, KLSCALPlusOnCells) and isinstance(agent, KLSCALPlus):
        if agent.unreachable is None:
            return KLScalPlusPlanner(agent)
        reason = "unreachable is 'tucrl'"
    elif kind in (UCRL2, UCRL2B):
        return ExtendedPlanner(agent)
    elif kind is Fixed:
        return FixedPlanner(agent)
    raise DeviceError(
        f"{kind.__name__} cannot run on a GPU" + (f": {reason}" if reason else ""),
        name="device",
        found="cuda",
        expected=ON_DEVICE,
        hint="leave device out",
    )
