"""Which agents run on a GPU, and how each of them plans there."""

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
    MOST_WARPS,
    SIMULATED,
    WARP,
    PreparedLaunch,
    cuda,
    grid_for,
    most_shared,
    multiprocessors,
)
from gainful.errors import DeviceError
from gainful.optimism.bernstein_scal_plus import BernsteinConstants
from gainful.optimism.kl_scal_plus import KLConstants
from gainful.planning.kl_on_counts import KL_DAMPING
from gainful.simulation.device.extended import BALLS, INTERVALS, ExtendedConstants, new_extended_space, plan_extended
from gainful.simulation.device.kl_scal_plus import (
    KLDeviceConstants,
    KLMemory,
    new_kl_memory,
    new_kl_space,
    plan_kl_scal_plus,
)
from gainful.simulation.device.packed import PackedRuns
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns
from gainful.simulation.device.scal_plus import SCAL_PLUS_THREADS, plan_scal_plus
from gainful.simulation.device.scal_plus_counts import PlanWork
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    PAPERS,
    SHARP,
    UNROLLED,
    DevicePlanConstants,
    PlacedRows,
    are_paired,
    placed_rows,
    row_pitch,
    space_size,
)
from gainful.simulation.device.teams import TodoList, plan_fixed
from gainful.simulation.transition_table import RewardLaw

ON_DEVICE = "SCALPlus, KLSCALPlus, UCRL2, UCRL2B, Fixed, and these on cells (CSCALPlus, CKLSCALPlus, Discretized)"
"""The agents that run on a GPU, for messages."""
THREADS, MOST_THREADS = 64, 32 * MOST_WARPS
BLOCKS_EACH, THREADS_EACH = 32, 2048
"""Blocks and threads that a multiprocessor runs at a time."""
FAR_NUMBERS = 1 << 28
"""Numbers that all blocks have together where their vectors do not fit shared memory."""
TINY_REWARDS = 1e-100
"""Ranges of rewards below which values are divided in the usual way: they could be less than `LEAST_DIVIDED`."""
EVI_DAMPING = 0.9
"""The damping of `extended_value_iteration`."""


@dataclass(frozen=True)
class PlannedRuns:
    """The arrays of a batch that plans read and write."""

    todo: TodoList
    rows: Any
    """`DeviceRows`, or what a planner made of them."""
    runs: DeviceRuns
    counts: DeviceCounts
    episodes: DeviceEpisodes
    values: Any
    """(R, S) what the next plan starts from."""
    memory: Any
    """What else a planner keeps of each run: `DevicePlanner.new_memory`."""
    packed: PackedRuns
    law: RewardLaw
    """Packed runs, and the law of their rewards."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first six of every kernel that plans."""
        return self.todo, self.rows, self.runs, self.counts, self.episodes, self.values

    @property
    def width(self) -> int:
        """The length of the longest row of counts."""
        return int(self.counts.seen.shape[1] // self.counts.visits.shape[1])

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.runs.state.size)


class DevicePlanner:
    """How all runs of one kind of agent plan on the GPU; a subclass launches the kernel."""

    def __init__(self, agent: EpisodicAgent) -> None:
        self.agent = agent

    needs_squares = False
    """Whether plans need the sums of squared rewards."""
    bytes_per_pair = 0
    """Memory of the GPU that a run takes for each pair, besides its counts."""
    value_scale = 1.0
    """What values of a plan are multiplied with, to be in units of reward."""

    @property
    def cumulative(self) -> NDArray[np.float64]:
        """(S, A) of a policy that draws actions; else empty."""
        return np.zeros((0, 0))

    def arranged(self, rows: DeviceRows) -> Any:
        """The rows of the model in the order in which plans read them."""
        return rows

    def new_memory(self, n_runs: int) -> Any:  # noqa: ARG002
        """What runs keep from plan to plan besides values."""
        return ()

    def adds_logs(self, width: int) -> bool:  # noqa: ARG002
        """Whether the kernel that plans adds the logs of packed runs to agents' counts, and deals their cards."""
        return False

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """A function that plans for the runs of the list."""
        raise NotImplementedError


class FixedPlanner(DevicePlanner):
    """A fixed policy."""

    agent: Fixed

    @property
    def cumulative(self) -> NDArray[np.float64]:
        """(S, A) if the policy draws actions."""
        return self.agent.plan(self.agent.statistics, 1).cumulative

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """A function that begins the one episode."""
        actions = self.agent.plan(self.agent.statistics, 1).actions
        bounds = np.array([self.agent.reward_min, self.agent.reward_max])
        arrays = cuda.to_device(actions.astype(np.uint32)), cuda.to_device(bounds)
        where = grid_for(many.n_runs, THREADS)
        return plan_fixed.prepared(where, many.todo, *arrays, many.runs, many.counts, many.episodes)


class ScalPlusPlanner(DevicePlanner):
    """SCAL+ with any bonus."""

    agent: SCALPlus

    def arranged(self, rows: DeviceRows) -> PlacedRows:
        """By action, then by state."""
        return placed_rows(rows, self.agent.n_actions)

    @property
    def kind(self) -> int:
        """The kind of bonus."""
        return {"sharp": SHARP, "bernstein": BERNSTEIN}.get(self.agent.bonus, PAPERS)

    def block_sizes(self, width: int) -> tuple[int, int]:
        """Numbers of 8 bytes and words of 4 that a block takes."""
        n_pairs = self.agent.n_states * self.agent.n_actions
        return space_size(self.agent.n_states, n_pairs, self.kind), n_pairs * row_pitch(width)

    def adds_logs(self, width: int) -> bool:
        """If the vectors of a block fit shared memory."""
        numbers, words = self.block_sizes(width)
        return 8 * numbers + 4 * words <= most_shared()

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """A function that plans for the runs of the list."""
        agent, kind, near = self.agent, self.kind, self.adds_logs(many.width)
        n_pairs = agent.n_states * agent.n_actions
        numbers, words = self.block_sizes(many.width)
        threads = min(SCAL_PLUS_THREADS, WARP * -(-agent.n_states // WARP))
        team = Team(threads, 0 if near else numbers + words)
        n_far = 0 if near else team.blocks
        work = PlanWork(
            cuda.device_array((n_far, numbers), np.float64),
            cuda.device_array((n_far, words), np.uint32),
            many.counts.seen.view(np.uint64) if are_paired(many.width) else many.counts.seen,
            many.packed,
            many.law,
        )
        constants = DevicePlanConstants(
            kind=(0,) * kind,
            far=(0,) * (not near),
            logs=many.packed.by_plans,
            tiny=(0,) * (agent.reward_range < TINY_REWARDS),
            quarters=(0,) * (int(many.rows.fours.size) // n_pairs),
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
        where = team.where(many.n_runs, 8 * numbers + 4 * words if near else 0)
        return plan_scal_plus.prepared(where, *many.arguments, work, constants, at_once=True)


class ExtendedPlanner(DevicePlanner):
    """UCRL2 and UCRL2B."""

    agent: UCRL2 | UCRL2B

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        """UCRL2B estimates the variance of rewards."""
        return type(self.agent) is UCRL2B

    def prepared(self, many: PlannedRuns) -> PreparedLaunch:
        """A function that plans for the runs of the list."""
        agent, kind = self.agent, INTERVALS if self.needs_squares else BALLS
        n_pairs = agent.n_states * agent.n_actions
        team = Team(threads_for(n_pairs), 6 * n_pairs * (many.width + 1) + 8 * agent.n_states)
        blocks = min(team.blocks, many.n_runs)
        space = new_extended_space(blocks, agent.n_states, n_pairs, many.width, kind)
        constants = ExtendedConstants(
            kind=(0,) * kind,
            sets=SetConstants(*agent.set_constants),
            damping=EVI_DAMPING,
            reward_range=agent.reward_range,
            reward_min=agent.reward_min,
        )
        return plan_extended.prepared(team.where(many.n_runs, 0), *many.arguments, space, constants)


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
        """A function that plans for the runs of the list, one thread for each."""
        agent = self.agent
        n_pairs = agent.n_states * agent.n_actions
        size = 3 * (512 + agent.n_states) + 4 * agent.n_states + n_pairs * (3 + 2 * many.width)
        n_threads = max(1, min(many.n_runs, FAR_NUMBERS // size))
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


class Team:
    """Blocks that plan: their threads, and how many there are if each has `size` numbers in global memory."""

    def __init__(self, threads: int, size: int) -> None:
        self.threads = 2 if SIMULATED else threads
        self.blocks = multiprocessors() * min(BLOCKS_EACH, THREADS_EACH // self.threads)
        if size > 0:
            self.blocks = max(1, min(self.blocks, FAR_NUMBERS // size))

    def where(self, n_runs: int, shared: int) -> tuple[int, int, int]:
        """Blocks, threads and shared memory of a launch for at most `n_runs` plans."""
        return min(self.blocks, n_runs), self.threads, shared


def threads_for(n_pairs: int) -> int:
    """Threads among which pairs are divided with few to spare: the most of those sizes that waste the least."""
    sizes = range(WARP, MOST_THREADS + 1, WARP)
    used = {size: n_pairs / (size * -(-n_pairs // size)) for size in sizes}
    best = max(used.values())
    return max(size for size in sizes if used[size] >= best - 0.02)


def device_planner(agent: EpisodicAgent) -> DevicePlanner:
    """How agents like this one plan on the GPU; an error if they cannot."""
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
