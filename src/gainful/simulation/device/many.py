"""`simulate_many` on a GPU: batches of runs that fit into its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.cuda_device import SIMULATED, cuda, require_device
from gainful.errors import DeviceError, InvalidArgumentError
from gainful.simulation.device.batch import Batch, BatchResult, ManyRuns
from gainful.simulation.device.planners import ON_DEVICE, device_planner
from gainful.simulation.device.worlds import DeviceWorld, device_world
from gainful.simulation.run import Run
from gainful.simulation.summary import RunSummary, Summariser

BATCH_SHARE = 0.8
"""The share of the GPU's free memory that a batch may take."""
MAX_BATCH_RUNS = 1 << 20
"""The most runs of a batch."""
MAX_DEVICE_STEPS = 2**32 - 2
"""The most steps of a run: counters have 32 bits."""

AgentFactoryFunction = Callable[[int], Any]


def same_agent(agent_factory: AgentFactoryFunction, seeds: NDArray[np.uint64]) -> Any:
    """The agent of the first seed; raises an error if the agent of the last seed has other settings."""
    first, last = agent_factory(int(seeds[0])), agent_factory(int(seeds[-1]))
    settings = [_settings(agent) for agent in (first, last)]
    if type(first) is not type(last) or settings[0] != settings[1]:
        raise InvalidArgumentError(
            "agent_factory",
            agent_factory,
            "agents that differ in their seed alone",
            problem=f"the agents of seeds {seeds[0]} and {seeds[-1]} have different settings",
        )
    if first.t > 0:
        raise InvalidArgumentError(
            "agent_factory",
            agent_factory,
            "new agents",
            problem=f"the agent of seed {seeds[0]} has observed {first.t} steps",
        )
    check_agent(first)
    return first


def check_agent(agent: Any) -> None:
    """Raise an error if an agent is of no kind that runs on a GPU, or changes its cells."""
    _settings(agent)
    if isinstance(agent, PartitionedAgent) and agent.log is not None:
        raise DeviceError(
            f"{type(agent).__name__} cannot run on a GPU: its cells become finer during a run",
            name="device",
            found="cuda",
            expected="a partition, or a horizon",
            hint="give it one of them, or leave device out",
        )


def _settings(agent: Any) -> dict[str, Any]:
    """Everything that an agent was made with but its seed."""
    if not hasattr(agent, "settings") or not hasattr(agent, "core"):
        raise DeviceError(
            f"{type(agent).__name__} cannot run on a GPU",
            name="device",
            found="cuda",
            expected=ON_DEVICE,
            hint="leave device out",
        )
    return {name: value for name, value in agent.settings().items() if name != "seed"}


class DeviceSweep:
    """All runs of one agent in one environment, in batches that fit the GPU's memory."""

    def __init__(
        self,
        agent_factory: AgentFactoryFunction,
        environment: Any,
        checkpoints: NDArray[np.int64],
        seeds: NDArray[np.uint64],
        keep_episodes: bool,
    ) -> None:
        require_device()
        if checkpoints[-1] > MAX_DEVICE_STEPS:
            raise InvalidArgumentError("horizon", int(checkpoints[-1]), f"at most {MAX_DEVICE_STEPS:,} on a GPU")
        agent = same_agent(agent_factory, seeds)
        self.seeds, self.checkpoints = seeds, checkpoints
        planner = device_planner(agent.core)
        self.world: DeviceWorld = device_world(environment, agent)
        self.world.check_fit(agent)
        self.many = ManyRuns(self.world, checkpoints, planner, keep_episodes)

    def batches(
        self, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[tuple[NDArray[np.uint64], Batch, BatchResult]]:
        """Make all runs, batch after batch: the seeds, the batch and its results."""
        size = max(1, min(MAX_BATCH_RUNS, int(BATCH_SHARE * _free_memory()) // self.many.bytes_per_run()))
        n_batches = -(-self.seeds.size // size)
        made, total = 0, int(self.checkpoints[-1]) * self.seeds.size
        for part in np.array_split(self.seeds, n_batches):
            report = None if progress is None else (lambda steps, before=made: progress(before + steps, total))
            batch = Batch(self.many, part)
            yield part, batch, batch.run(report)
            made += int(self.checkpoints[-1]) * part.size

    def next_states(self) -> NDArray[np.int64]:
        """(pairs, width) the next state of each transition counter; -1 for none."""
        rows = self.world.rows(self.many.planner.agent.allowed)
        n_pairs, stride = rows.length.size, int(rows.stride)
        lists = rows.next_state.reshape(-1, stride).T[:n_pairs].astype(np.int64)
        return np.where(np.arange(lists.shape[1]) < rows.length[:, None], lists, -1)

    def run(self, found: BatchResult, i: int, seed: int) -> Run:
        """Run i of a batch."""
        steps, rewards = self.checkpoints, found.rewards[:, i].copy()
        return self.world.run(
            steps=steps,
            rewards=rewards,
            regret=steps * self.world.gain - rewards,
            means=found.means[:, i],
            episodes=found.episodes(i),
            final_state=int(found.final_state[i]),
            final_point=found.final_point[i],
            seed=seed,
            planning_seconds=0.0,
            acting_seconds=found.seconds / found.rewards.shape[1],
            vacuous=bool(found.vacuous[i]),
            expected_regret=found.expected_regret[:, i].copy(),
        )


def can_run_on_device(
    agent_factory: AgentFactoryFunction,
    environment: Any,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
) -> bool:
    """Whether these runs can be made on a GPU."""
    try:
        DeviceSweep(agent_factory, environment, checkpoints, seeds, False)
    except (DeviceError, InvalidArgumentError):  # the CPU says what is wrong, if anything is
        return False
    return True


def _free_memory() -> int:
    """Bytes of the GPU's memory that are free."""
    return 1 << 30 if SIMULATED else int(cuda.current_context().get_memory_info().free)


def device_runs(
    agent_factory: AgentFactoryFunction,
    environment: Any,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """All runs with their curves and episodes."""
    sweep, found = DeviceSweep(agent_factory, environment, checkpoints, seeds, True), []
    for part, _, batch in sweep.batches(progress):
        found += [sweep.run(batch, i, seed) for i, seed in enumerate(part.tolist())]
    return found


def device_summary(
    agent_factory: AgentFactoryFunction,
    environment: Any,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    progress: Callable[[int, int], None] | None = None,
) -> RunSummary:
    """The distributions of regret over all runs; neither curves nor episodes are kept."""
    sweep = DeviceSweep(agent_factory, environment, checkpoints, seeds, False)
    summariser = Summariser(checkpoints, sweep.world.gain)
    for _, _, batch in sweep.batches(progress):
        summariser.add(batch.expected_regret, batch.rewards, batch.seconds)
    return summariser.summary()
