"""Which agents run on a GPU, and how each of them plans there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.fixed import Fixed
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.scal_plus_bonuses import BONUSES, sharp_constants
from gainful.cuda_device import MOST_SHARED, SIMULATED, cuda, grid_for, multiprocessors
from gainful.errors import DeviceError
from gainful.optimism.bernstein_scal_plus import BernsteinConstants
from gainful.simulation.device.scal_plus import BERNSTEIN, PAPERS, SHARP, DevicePlanConstants, plan_scal_plus
from gainful.simulation.device.teams import TodoList, plan_fixed, space_size

ON_DEVICE = "SCALPlus and Fixed"
"""The agents that run on a GPU, for messages."""
WARP, THREADS, MOST_THREADS = 32, 64, 256
BLOCKS_EACH, THREADS_EACH = 32, 2048
"""Blocks and threads that a multiprocessor runs at a time."""
FAR_NUMBERS = 1 << 28
"""Numbers that all blocks have together where their vectors do not fit shared memory."""


class DevicePlanner:
    """How all runs of one kind of agent plan on the GPU; a subclass launches the kernel."""

    def __init__(self, agent: EpisodicAgent) -> None:
        self.agent = agent

    needs_squares = False
    """Whether plans need the sums of squared rewards."""

    def prepared(
        self, todo: TodoList, rows: Any, runs: Any, counts: Any, episodes: Any, values: Any
    ) -> Callable[[], None]:
        """A function that plans for the runs of the list."""
        raise NotImplementedError


class FixedPlanner(DevicePlanner):
    """A fixed policy."""

    def __init__(self, agent: Fixed) -> None:
        super().__init__(agent)
        self._actions = cuda.to_device(agent.policy.astype(np.uint32))
        self._bounds = cuda.to_device(np.array([agent.reward_min, agent.reward_max]))

    def prepared(
        self, todo: TodoList, rows: Any, runs: Any, counts: Any, episodes: Any, values: Any
    ) -> Callable[[], None]:
        """A function that begins the one episode."""
        del rows, values
        grid = grid_for(runs.state.size, THREADS)
        return plan_fixed.prepared(grid, todo, self._actions, self._bounds, runs, counts, episodes)


class ScalPlusPlanner(DevicePlanner):
    """SCAL+ with any bonus."""

    def __init__(self, agent: SCALPlus) -> None:
        super().__init__(agent)
        kind = {"sharp": SHARP, "bernstein": BERNSTEIN}.get(agent.bonus, PAPERS)
        n_pairs = agent.n_states * agent.n_actions
        self._team = Team(space_size(agent.n_states, n_pairs), n_pairs)
        self.constants = DevicePlanConstants(
            kind=(0,) * kind,
            far=(0,) * (self._team.far.size > 0),
            paper=agent.constants,
            sharp=sharp_constants(agent),
            bernstein=BernsteinConstants(agent.n_states, agent.delta, agent.bonus_scale, agent.reward_range),
            span=agent.span,
            damping=BONUSES[agent.bonus].damping,
            reward_range=agent.reward_range,
            reward_min=agent.reward_min,
        )

    def prepared(
        self, todo: TodoList, rows: Any, runs: Any, counts: Any, episodes: Any, values: Any
    ) -> Callable[[], None]:
        """A function that plans for the runs of the list."""
        where, far = self._team.where(runs.state.size), self._team.far
        return plan_scal_plus.prepared(where, todo, rows, runs, counts, episodes, values, far, self.constants)


class Team:
    """Blocks that plan: their threads, and where their vectors of `size` numbers are."""

    def __init__(self, size: int, n_pairs: int) -> None:
        self.threads = 2 if SIMULATED else min(MOST_THREADS, -(-n_pairs // WARP) * WARP)
        self.shared = 8 * size
        blocks = multiprocessors() * min(BLOCKS_EACH, THREADS_EACH // self.threads)
        self.blocks = blocks if self.shared <= MOST_SHARED else min(blocks, FAR_NUMBERS // size)
        self.far = cuda.device_array((self.blocks if self.shared > MOST_SHARED else 0, size), np.float64)

    def where(self, n_runs: int) -> tuple[int, int, int]:
        """Blocks, threads and shared memory of a launch for at most `n_runs` plans."""
        return min(self.blocks, n_runs), self.threads, self.shared if self.far.size == 0 else 0


def device_planner(agent: EpisodicAgent) -> DevicePlanner:
    """How agents like this one plan on the GPU; an error if they cannot."""
    reason = ""
    if type(agent) is SCALPlus:
        if agent.mixture != "copy":
            reason = f"mixture is {agent.mixture!r}"
        elif agent.replanning != "full":
            reason = "replanning is 'local'"
        else:
            return ScalPlusPlanner(agent)
    if type(agent) is Fixed:
        if agent.policy.ndim == 1:
            return FixedPlanner(agent)
        reason = "its policy draws actions"
    raise DeviceError(
        f"{type(agent).__name__} cannot run on a GPU" + (f": {reason}" if reason else ""),
        name="device",
        found="cuda",
        expected=f"{ON_DEVICE}, with deterministic policies and full re-planning",
        hint="leave device out",
    )
