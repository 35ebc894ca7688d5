"""`simulate_many` on a GPU: batches of runs that fit into its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.cuda_device import SIMULATED, cuda, require_device
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.simulation.device.batch import Batch, BatchResult, ManyRuns
from gainful.simulation.device.planners import device_planner
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run
from gainful.simulation.summary import RunSummary, Summariser
from gainful.simulation.tabular import check_fit
from gainful.simulation.transition_table import RewardLaw, TransitionTable

BATCH_SHARE = 0.8
"""The part of the GPU's free memory that a batch may take."""
MOST_RUNS = 1 << 20
"""Runs of a batch at most."""


def same_agent(agent_factory: Callable[[int], EpisodicAgent], seeds: NDArray[np.uint64], mdp: MDP) -> EpisodicAgent:
    """The agent that all runs have but for its seed: the factory is asked for the first and for the last."""
    first, last = agent_factory(int(seeds[0])), agent_factory(int(seeds[-1]))
    check_fit(first, mdp)
    settings = [{k: v for k, v in agent.settings().items() if k != "seed"} for agent in (first, last)]
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
    return first


def batches(
    agent_factory: Callable[[int], EpisodicAgent],
    mdp: MDP,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    keep_episodes: bool,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[NDArray[np.uint64], BatchResult]]:
    """Make all runs, batch after batch: their seeds, and what they returned."""
    require_device()
    agent = same_agent(agent_factory, seeds, mdp)
    table, law = TransitionTable.of(mdp), RewardLaw.of(mdp)
    many = ManyRuns(mdp, table, law, known_gaps(mdp), checkpoints, device_planner(agent), keep_episodes)
    size = max(1, min(MOST_RUNS, int(BATCH_SHARE * _free_memory()) // many.bytes_per_run()))
    n_batches = -(-seeds.size // size)
    made, total = 0, int(checkpoints[-1]) * seeds.size
    for part in np.array_split(seeds, n_batches):
        heard = None if progress is None else (lambda steps, before=made: progress(before + steps, total))
        yield part, Batch(many, part).run(heard)
        made += int(checkpoints[-1]) * part.size


def _free_memory() -> int:
    """Bytes of the GPU's memory that nobody uses."""
    return 1 << 30 if SIMULATED else int(cuda.current_context().get_memory_info().free)


def device_runs(
    agent_factory: Callable[[int], EpisodicAgent],
    mdp: MDP,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """All runs with their curves and episodes."""
    gain, found = optimal_gain(mdp), []
    for part, batch in batches(agent_factory, mdp, checkpoints, seeds, True, progress):
        seconds = batch.seconds / part.size
        for i, seed in enumerate(part.tolist()):
            found.append(
                Run(
                    steps=checkpoints,
                    rewards=batch.rewards[:, i].copy(),
                    regret=checkpoints * gain - batch.rewards[:, i],
                    pseudo_regret=checkpoints * gain - batch.means[:, i],
                    gain=gain,
                    episodes=batch.episodes(i),
                    final_state=int(batch.final_state[i]),
                    seed=seed,
                    planning_seconds=0.0,
                    acting_seconds=seconds,
                    vacuous=bool(batch.vacuous[i]),
                    expected_regret=batch.expected_regret[:, i].copy(),
                )
            )
    return found


def device_summary(
    agent_factory: Callable[[int], EpisodicAgent],
    mdp: MDP,
    checkpoints: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    progress: Callable[[int, int], None] | None = None,
) -> RunSummary:
    """The distributions of regret over all runs; neither curves nor episodes are kept."""
    summariser = Summariser(checkpoints, optimal_gain(mdp))
    for _, batch in batches(agent_factory, mdp, checkpoints, seeds, False, progress):
        summariser.add(batch.expected_regret, batch.rewards, batch.seconds)
    return summariser.summary()
