"""`simulate_many`: four seeds side by side in one thread, so that one's wait for memory is another's work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.stepwise import StepwiseAgent
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.errors import InvalidArgumentError
from gainful.machine import available_cores, check_memory
from gainful.mdp.model import MDP
from gainful.planning.arguments import checked_device
from gainful.progress import Progress, shown_progress
from gainful.rng import draw
from gainful.simulation.callbacks import Callback, checked_callback, one_at_a_time
from gainful.simulation.continuous import known_gain
from gainful.simulation.counters import (
    NEW_STATE,
    NOT_LOADED,
    RECORD_SHIFT,
    SQUARES,
    STEP,
    SUM,
    TOUCHED,
    UNLIMITED,
    Clock,
    Counters,
    counted_step,
    counters_in,
    new_records,
)
from gainful.simulation.loops import agent_for, simulation_class
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.slices import SliceLength
from gainful.simulation.summary import RunSummary, Summariser
from gainful.simulation.tabular import TabularSimulation, check_fit
from gainful.simulation.threads import Pause, in_threads
from gainful.simulation.transition_table import RewardLaw, TransitionTable

RUN_BYTES = 340.0
"""What one of many runs takes for each state and action, in bytes (measured)."""
LANES = 4
"""Runs stepped in turn by one thread (measured: 4 with their numbers in registers are faster than 8)."""
LONG = 2000
"""Steps per episode from which stepping in turn pays off: a run that ends its episode briefly stops the others."""
RUNS_AT_ONCE = 256
"""Runs that are in memory together if only their summary is kept."""
BLOCK = 64  # rounds whose random bits are drawn at once


class LanePlans(NamedTuple):
    """What four runs do until one of them ends its episode, and what their records are loaded from.

    `route` (4, S) has the pair that the policy chooses in each state, `stopped` the runs whose episode has ended. The
    arrays of the four agents are tuples.
    """

    route: Any
    doubling: Any
    stopped: Any
    reward_min: Any
    remaining: Any
    reward_sum: Any
    reward_squares: Any


@kernel
def run_lanes(
    table: TransitionTable, law: RewardLaw, counters: Counters, plans: LanePlans, clock: Clock, until: int
) -> None:
    """One step of each of four runs in turn, until step `until` or until one of them, or more, end their episodes.

    All four are at the same step, and stay so: in the round in which an episode ends none makes a step. Each run's
    arrays are a row of the arrays here, and its steps are exactly those of `tabular.run_steps`.
    """
    table, law, counters = TransitionTable(*table), RewardLaw(*law), Counters(*counters)
    plans, clock = LanePlans(*plans), Clock(*clock)
    record, real, now, earned, low = counters.record, counters.real, clock.now, clock.earned, plans.reward_min
    n_states, words = np.uint64(plans.route.shape[1]), np.uint64(record.size // 4)
    go = plans.route.reshape(-1)
    a1, a2, a3 = n_states, n_states + n_states, n_states + n_states + n_states
    o1, o2, o3 = words, words + words, words + words + words
    s0, s1, s2, s3 = np.uint64(now[0, 0]), np.uint64(now[1, 0]), np.uint64(now[2, 0]), np.uint64(now[3, 0])
    w0, w1, w2, w3 = earned[0, 0], earned[1, 0], earned[2, 0], earned[3, 0]
    low0, low1, low2, low3 = low[0], low[1], low[2], low[3]
    drawn = np.empty(4 * BLOCK, dtype=np.uint64)
    t, halt = now[0, STEP], False
    while t < until and not halt:
        for i in range(4):
            for k in range(BLOCK):
                drawn[i * BLOCK + k] = draw(clock.key[i], np.uint64(t + k))
        for k in range(np.uint64(min(BLOCK, until - t))):
            p0, p1, p2, p3 = np.uint64(go[s0]), np.uint64(go[a1 + s1]), np.uint64(go[a2 + s2]), np.uint64(go[a3 + s3])
            at0, at1 = p0 << RECORD_SHIFT, o1 + (p1 << RECORD_SHIFT)
            at2, at3 = o2 + (p2 << RECORD_SHIFT), o3 + (p3 << RECORD_SHIFT)
            left0, left1, left2, left3 = record[at0] - 1, record[at1] - 1, record[at2] - 1, record[at3] - 1
            if left0 | left1 | left2 | left3 < 0:
                for i in range(4):
                    s = s0 if i == 0 else s1 if i == 1 else s2 if i == 2 else s3
                    pair = np.uint64(plans.route[i, s])
                    at = np.uint64(i) * words + (pair << RECORD_SHIFT)
                    if record[at] == NOT_LOADED:
                        record[at] = plans.remaining[i][pair] if plans.doubling[i] else UNLIMITED
                        real[at + SUM], real[at + SQUARES] = plans.reward_sum[i][pair], plans.reward_squares[i][pair]
                        counters.touched[i, now[i, TOUCHED]] = pair
                        now[i, TOUCHED] += 1
                    plans.stopped[i] = record[at] <= 0
                    halt = halt or plans.stopped[i]
                if halt:
                    break
                left0, left1, left2, left3 = record[at0] - 1, record[at1] - 1, record[at2] - 1, record[at3] - 1
            s0, r0 = counted_step(table, law, counters, p0, at0, left0, low0, drawn[k])
            w0 += r0
            s1, r1 = counted_step(table, law, counters, p1, at1, left1, low1, drawn[k + np.uint64(BLOCK)])
            w1 += r1
            s2, r2 = counted_step(table, law, counters, p2, at2, left2, low2, drawn[k + np.uint64(2 * BLOCK)])
            w2 += r2
            s3, r3 = counted_step(table, law, counters, p3, at3, left3, low3, drawn[k + np.uint64(3 * BLOCK)])
            w3 += r3
            t += 1
    for i in range(4):
        now[i, STEP], now[i, NEW_STATE] = t, False
    now[0, 0], now[1, 0], now[2, 0], now[3, 0] = s0, s1, s2, s3
    earned[0, 0], earned[1, 0], earned[2, 0], earned[3, 0] = w0, w1, w2, w3


def _check_factory_and_seeds(agent_factory: Any, seeds: Any) -> None:
    """Raise an error about an agent in place of a function that makes agents, or a number in place of seeds."""
    if not callable(agent_factory):
        raise InvalidArgumentError(
            "agent_factory",
            agent_factory,
            "a function that makes the agent of a seed",
            "write lambda seed: gf.KLSCALPlus(6, 2, seed=seed)",
        )
    if not isinstance(seeds, Iterable):
        hint = f"range({seeds}) are the first {seeds}" if isinstance(seeds, int) else "such as range(5)"
        raise InvalidArgumentError("seeds", seeds, "the seeds themselves", hint)


@overload
def simulate_many(
    agent_factory: Callable[[int], Any],
    mdp: MDP | ContinuousEnvironment,
    horizon: float,
    seeds: Iterable[int],
    *,
    checkpoints: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress = None,
    callback: Callback = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
    keep: Literal["runs"] = "runs",
) -> list[Run]: ...


@overload
def simulate_many(
    agent_factory: Callable[[int], Any],
    mdp: MDP | ContinuousEnvironment,
    horizon: float,
    seeds: Iterable[int],
    *,
    checkpoints: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress = None,
    callback: Callback = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
    keep: Literal["summary"],
) -> RunSummary: ...


def simulate_many(
    agent_factory: Callable[[int], Any],
    mdp: MDP | ContinuousEnvironment,
    horizon: float,
    seeds: Iterable[int],
    *,
    checkpoints: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress = None,
    callback: Callback = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
    keep: Literal["runs", "summary"] = "runs",
) -> list[Run] | RunSummary:
    """Make one run per seed, each equal to `simulate(agent_factory(seed), mdp, horizon, seed)`.

    The seeds are distributed over the cores, and each core steps four runs in turn. With `device="cuda"` all of them
    run at once on a GPU, one thread each (docs/gpu.md).

    Parameters
    ----------
    agent_factory : callable
        `agent_factory(seed)` makes the agent of one run: any object with `act` and `observe`, see `simulate`.
        On a GPU the agents may differ in their seed alone; the factory is then called for the first seed and the last.
    mdp : MDP or ContinuousEnvironment
        The environment.
    horizon : int
        The number of steps of each run.
    seeds : iterable of int
        The seeds, each once.
    checkpoints : array_like of int, optional
        The steps at which the regret is recorded, as for `simulate`.
    threads : int, optional
        The number of cores; all by default.
    progress : bool or callable, optional
        True shows the progress on stderr; a function `progress(steps, total)` is called now and then with the steps of
        all runs together.
    callback : callable, optional
        As for `simulate`, at every checkpoint of every run; `CheckpointView.seed` says of which. One call at a time.
    device : {"cpu", "cuda", "auto"}
        Where to run. "cuda" needs an NVIDIA GPU and the extra `gainful[cuda]`, and takes no `callback`. "auto" is the
        GPU if there is one and these runs can be made there, and else the CPU.
    keep : {"runs", "summary"}
        "summary" keeps the distribution of regret at each checkpoint and no run, so that a million runs take little
        memory.

    Returns
    -------
    list of Run or RunSummary
        The runs in the order of the seeds, or their summary.

    Raises
    ------
    InvalidArgumentError
        If a seed occurs twice, or an agent does not fit the MDP.
    DeviceError
        If `device` is "cuda", and there is no GPU, or the agent does not run on one; the message says which do.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.riverswim(6)
    >>> runs = gf.simulate_many(lambda seed: gf.UCRL2(6, 2, seed=seed), mdp, horizon=100, seeds=range(3))
    >>> [run.seed for run in runs]
    [0, 1, 2]
    """
    steps = checked_horizon(horizon)
    grid = checked_checkpoints(checkpoints, steps)
    _check_factory_and_seeds(agent_factory, seeds)
    if isinstance(seeds, Sized):
        n_states = mdp.n_states if isinstance(mdp, MDP) else 1
        needed = len(seeds) * (RUN_BYTES * n_states * mdp.n_actions + 100.0 * grid.size)
        check_memory("seeds", len(seeds), needed, f"{len(seeds):,} runs of {n_states:,} states side by side")
    numbers = [int(seed) for seed in seeds]
    if len(set(numbers)) != len(numbers):
        raise InvalidArgumentError("seeds", numbers, hint="each seed is one run", problem="a seed occurs twice")
    if keep not in ("runs", "summary"):
        raise InvalidArgumentError("keep", keep, '"runs" or "summary"')
    place = (
        chosen_device(device, agent_factory, mdp, grid, numbers) if callback is None else checked_device(device, False)
    )
    if place == "cuda" and numbers:
        from gainful.simulation.device.many import device_runs, device_summary  # numba-cuda is an extra

        if callback is not None:
            raise InvalidArgumentError("callback", callback, 'None with device="cuda"', "runs of a GPU are not shown")
        make = device_runs if keep == "runs" else device_summary
        with shown_progress(progress, f"{len(numbers)} runs") as tell:
            return make(agent_factory, mdp, grid, checked_seeds(numbers), tell)
    if keep == "summary":
        options: dict[str, Any] = {"checkpoints": grid, "threads": threads, "callback": callback}
        summariser = Summariser(grid, optimal_gain(mdp) if isinstance(mdp, MDP) else known_gain(mdp, None)[0])
        with shown_progress(progress, f"{len(numbers)} runs") as tell:
            total = steps * len(numbers)
            for i in range(0, len(numbers), RUNS_AT_ONCE):
                heard = None if tell is None else (lambda done, _, before=steps * i: tell(before + done, total))
                part = numbers[i : i + RUNS_AT_ONCE]
                summariser.add_runs(simulate_many(agent_factory, mdp, steps, part, progress=heard, **options))
        return summariser.summary()
    if not isinstance(mdp, MDP):
        return _one_by_one(agent_factory, mdp, steps, numbers, threads, grid, progress, callback)
    agents = [agent_for(agent_factory(seed), mdp) for seed in numbers]
    for agent in agents:
        check_fit(agent, mdp)
    gain, gaps, compiled = optimal_gain(mdp), known_gaps(mdp), (TransitionTable.of(mdp), RewardLaw.of(mdp))
    simulations = [
        simulation_class(agent)(agent, mdp, seed, grid, gain, gaps, compiled)
        for agent, seed in zip(agents, numbers, strict=True)
    ]
    cores = min(threads or available_cores(), max(1, len(simulations)))
    size = min(LANES, -(-len(simulations) // cores)) if simulations else 1
    groups = [simulations[i : i + size] for i in range(0, len(simulations), size)]
    show = one_at_a_time(checked_callback(callback))
    for simulation in simulations:
        simulation.callback = show
    with shown_progress(progress, f"{len(simulations)} runs") as tell:
        _finish_all(groups, cores, None if tell is None else _Total(tell, steps * len(simulations)).add)
    return [simulation.run() for simulation in simulations]


def _one_by_one(
    agent_factory: Callable[[int], Any],
    environment: ContinuousEnvironment,
    horizon: int,
    seeds: list[int],
    threads: int | None,
    grid: NDArray[np.int64],
    progress: Progress,
    callback: Callback,
) -> list[Run]:
    """Runs in a continuous environment, one on each core at a time."""
    from gainful.simulation.simulate import simulate  # which knows every kind of environment, and this module

    show = one_at_a_time(checked_callback(callback))
    with shown_progress(progress, f"{len(seeds)} runs") as tell:
        total = None if tell is None else _Total(tell, horizon * len(seeds))

        def run(seed: int, pause: Pause) -> Run:
            before = 0

            def heard(step: int, _: int) -> None:
                nonlocal before
                pause()
                if total is not None:
                    total.add(step - before)
                before = step

            agent = agent_factory(seed)
            return simulate(agent, environment, horizon, seed, checkpoints=grid, callback=show, progress=heard)

        return in_threads(run, seeds, min(threads or available_cores(), max(1, len(seeds))))


class _Total:
    """Adds up what the threads report, and tells it one thread at a time."""

    def __init__(self, tell: Callable[[int, int], None], total: int) -> None:
        self.tell, self.total, self.done, self._lock = tell, total, 0, threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self.done += count
            self.tell(self.done, self.total)


def _finish_all(groups: list[list[TabularSimulation]], cores: int, add: Callable[[int], None] | None) -> None:
    """Run all groups to their end, several at a time; `add` is told the steps that were made."""

    def work(group: list[TabularSimulation], pause: Pause) -> None:
        for count in _together(group, pause):
            if add is not None:
                add(count)

    in_threads(work, groups, cores)


def chosen_device(
    device: str, agent_factory: Callable[[int], Any], environment: Any, grid: NDArray[np.int64], seeds: list[int]
) -> str:
    """Where to make these runs: for "auto", on a GPU if there is one and they can be made there."""
    place = checked_device(device)
    if device == "auto" and place == "cuda" and seeds:
        from gainful.simulation.device.many import can_run_on_device  # numba-cuda is an extra

        place = "cuda" if can_run_on_device(agent_factory, environment, grid, checked_seeds(seeds)) else "cpu"
    return place


def checked_seeds(seeds: list[int]) -> NDArray[np.uint64]:
    """Seeds for a GPU, where they have 64 bits."""
    for seed in seeds:
        if not 0 <= seed < 2**64:
            raise InvalidArgumentError("seeds", seed, "integers from 0 to 2⁶⁴ - 1 on a GPU")
    return np.array(seeds, dtype=np.uint64)


def _together(group: list[TabularSimulation], pause: Pause) -> Iterator[int]:
    """Advance all runs of a group to their end, from one common step to the next; yields the number of steps made."""
    length = SliceLength()
    together = len(group) == LANES and all(type(simulation) is TabularSimulation for simulation in group)
    lanes = Lanes(group) if together and group[0].table.padding else None
    long = False
    while not group[0].finished:
        t = group[0].t
        target = min(group[0].next_checkpoint, t + length.steps)
        length.begin()
        episodes = sum(len(simulation.agent.records) for simulation in group)
        if lanes is not None and long:
            lanes.advance(target, pause)
        for simulation in group:
            while simulation.t < target:
                simulation.advance(target)
                pause()
            simulation.pass_checkpoint()
        length.end(target - t)
        made = len(group) * (target - t)
        long = made >= LONG * (sum(len(simulation.agent.records) for simulation in group) - episodes)
        yield made


class Lanes:
    """The arrays that four runs share, and how they advance together."""

    def __init__(self, group: list[TabularSimulation]) -> None:
        self.group, table, law = group, group[0].table, group[0].law
        agents, means = [simulation.agent for simulation in group], law.means
        records, touched = new_records(means, LANES), np.empty((LANES, means.size), dtype=np.int64)
        now = np.array([simulation.clock for simulation in group])
        earned = np.array([simulation.earned for simulation in group])
        keys = np.array([simulation.key for simulation in group])
        for i, simulation in enumerate(group):
            simulation.count_in(counters_in(records[i], touched[i], 0), Clock(now[i], earned[i], keys[i]))
        self.clock, counters = Clock(now, earned, keys), counters_in(records.reshape(-1), touched, 0)
        self.first_pair = np.arange(agents[0].n_states) * agents[0].n_actions
        self.plans = LanePlans(
            route=np.empty((LANES, agents[0].n_states), dtype=np.uint32),
            doubling=np.ones(LANES, dtype=bool),
            stopped=np.ones(LANES, dtype=bool),
            reward_min=np.array([a.reward_min for a in agents]),
            remaining=tuple(a.remaining for a in agents),
            reward_sum=tuple(a.statistics.reward_sum for a in agents),
            reward_squares=tuple(a.statistics.reward_squares for a in agents),
        )
        self._multipliers = [0.0] * LANES  # with which the limits of all pairs are written out
        # plain tuples: quicker arguments
        self._groups = tuple(table), tuple(law), tuple(counters), tuple(self.plans), tuple(self.clock)

    def advance(self, target: int, pause: Pause) -> None:
        """All four to step `target`, or until one of them makes a plan that only it can follow, see `_simple`."""
        plans, now = self.plans, self.clock.now
        last_step = np.zeros(LANES, dtype=np.int64)
        plans.stopped[:] = True
        try:
            while now[0, STEP] < target:
                for i in np.flatnonzero(plans.stopped | (last_step == now[0, STEP])):
                    simulation = self.group[i]
                    simulation.update_agent()
                    plan = simulation.prepare()
                    if not _simple(simulation.agent, plan):
                        return
                    np.add(self.first_pair, plan.actions, out=plans.route[i], casting="unsafe")
                    if plan.multiplier != self._multipliers[i]:
                        simulation.agent.write_limits()
                        self._multipliers[i] = plan.multiplier
                    plans.doubling[i], last_step[i] = plan.doubling, plan.last_step - simulation.steps_before
                plans.stopped[:] = False
                began = time.thread_time()
                run_lanes(*self._groups, min(target, int(last_step.min())))
                spent = (time.thread_time() - began) / LANES
                for simulation in self.group:
                    simulation.acting_seconds += spent
                pause()
        finally:
            for simulation in self.group:
                simulation.update_agent()


def _simple(agent: EpisodicAgent, plan: EpisodePlan) -> bool:
    """Whether the plan is one that `run_lanes` can follow."""
    return not isinstance(agent, StepwiseAgent) and plan.probabilities is None and not plan.stop_on_new_state
