"""KL-SCAL+'s plans on a GPU, with one thread per plan, which calls the functions of the CPU.

Exponentials and logarithms of a GPU may differ from the CPU's in the last bit. So runs have the same distribution as on
the CPU, but not always the same rewards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel, device_zeros
from gainful.optimism.kl_scal_plus import KLConstants, kl_scal_plus_sets
from gainful.optimism.reward_variance import rewards_by_variance
from gainful.planning.kl_dual import LOG_BLOCK
from gainful.planning.kl_on_counts import kl_sweeps, renew_keys
from gainful.simulation.device.episodes import PlanResult, fail_run, record_episode, set_policy_action
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns, TodoList

KL_SWEEPS_PER_LAUNCH = 512
"""The most sweeps of a plan in one launch; more than the CPU makes before it checks whether rounding is too large."""


class KLDeviceConstants(NamedTuple):
    """What plans depend on, besides counts and step."""

    sets: KLConstants
    span: float
    """c in units of r_max, or inf."""
    damping: float
    reward_range: float
    base: float
    """What is added to every gain: the least reward, and the error of a model of cells."""
    uninformative: float
    """The radius from which on a ball ignores the data."""


class KLMemory(NamedTuple):
    """What runs keep from plan to plan: one row per run, (pairs,) unless it says otherwise."""

    rewards: Any
    radius: Any
    level: Any
    x: Any
    key: Any
    value: Any
    gap: Any
    actions: Any
    """(S,)."""
    rise: Any
    """(1,)."""
    planned: Any
    """The visits from which the sets were made."""


class KLThreadSpace(NamedTuple):
    """The working arrays of all threads: one row per thread."""

    distance: Any
    """(2, S)."""
    highest: Any
    """(2,)."""
    d: Any
    logs: Any
    inverses: Any
    todo: Any
    """(pairs,)."""
    best: Any
    """(S,)."""
    lower: Any
    """(S,)."""
    begin: Any
    """(pairs,) where a row of counts begins."""
    length: Any
    next_state: Any
    count: Any
    reachable: Any
    """(S,) True; all threads share it."""


def new_kl_memory(n_runs: int, n_states: int, allowed: Any) -> KLMemory:
    """The arrays of new runs: those of a new `KLPlanner` of the CPU."""
    n_pairs = allowed.size

    def rows(row: Any) -> Any:
        array = cuda.device_array((n_runs, row.size), row.dtype)
        fill_rows_of_runs[(n_runs * row.size + 255) // 256, 256](cuda.to_device(row), array)
        return array

    return KLMemory(
        rewards=rows(np.where(allowed.reshape(-1), 1.0, -np.inf)),
        radius=rows(np.full(n_pairs, np.inf)),
        level=device_zeros((n_runs, n_pairs), np.uint8),
        x=device_zeros((n_runs, n_pairs), np.float64),
        key=rows(np.full(n_pairs, np.inf)),
        value=device_zeros((n_runs, n_pairs), np.float64),
        gap=device_zeros((n_runs, n_pairs), np.float64),
        actions=rows(allowed.reshape(n_states, -1).argmax(axis=1).astype(np.int64)),
        rise=device_zeros((n_runs, 1), np.float64),
        planned=rows(np.full(n_pairs, -1, dtype=np.int64)),
    )


def new_kl_space(n_threads: int, n_states: int, n_pairs: int, width: int) -> KLThreadSpace:
    """The arrays of `n_threads` threads, for rows of at most `width` entries."""
    size = LOG_BLOCK + n_states

    def array(*shape: int, kind: Any = np.float64) -> Any:
        return cuda.device_array((n_threads, *shape), kind)

    return KLThreadSpace(
        array(2, n_states),
        array(2),
        array(size),
        array(size),
        array(size),
        array(n_pairs, kind=np.int64),
        array(n_states),
        array(n_states),
        array(n_pairs, kind=np.int64),
        array(n_pairs, kind=np.int64),
        array(n_pairs * width, kind=np.uint32),
        array(n_pairs * width, kind=np.int64),
        cuda.to_device(np.ones(n_states, dtype=bool)),
    )


@device_kernel()
def fill_rows_of_runs(row: Any, out: Any) -> None:
    """Copy one row into all rows of `out`."""
    i = cuda.grid(1)
    if i < out.size:
        out[i // row.size, i % row.size] = row[i % row.size]


@inlined
def gather_rows(rows: DeviceRows, transitions: Any, space: KLThreadSpace, thread: int) -> None:
    """Write the next states seen from every pair and their counts; repeated next states of the model are merged."""
    n_pairs = rows.length.size
    width = transitions.size // n_pairs
    for k in range(n_pairs):
        n, last = 0, np.int64(-1)
        for j in range(rows.length[k]):
            count = np.int64(transitions[k * width + j])
            if count > 0:
                to = np.int64(rows.next_state[j * np.int64(rows.stride) + k])
                if to == last:
                    space.count[thread, k * width + n - 1] += count
                else:
                    space.next_state[thread, k * width + n], space.count[thread, k * width + n] = to, count
                    n += 1
                last = to
        space.begin[thread, k], space.length[thread, k] = k * width, n


@inlined
def ignores_data(radius: Any, allowed: Any, limit: float) -> bool:
    """Whether every ball is so large that it ignores the data."""
    wide = True
    for k in range(radius.size):
        wide = wide and (radius[k] >= limit or not allowed[k])
    return wide


@inlined
def list_changed(visits: Any, planned: Any, out: Any) -> int:
    """List the pairs whose visits have changed since the last plan; returns their number."""
    n = 0
    for k in range(visits.size):
        if np.int64(visits[k]) != planned[k]:
            out[n] = k
            n += 1
    return n


@device_kernel()
def plan_kl_scal_plus(
    todo: TodoList,
    rows: DeviceRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    work: tuple[KLMemory, KLThreadSpace],
    c: KLDeviceConstants,
) -> None:
    """Plan the next episode of each listed run, with one thread per run; `values` are in units of r_max."""
    memory, space = work
    thread = cuda.grid(1)
    n_states, n_actions = values.shape[1], rows.length.size // values.shape[1]
    i = thread
    while thread < space.highest.shape[0] and i < todo.n[0]:
        run = todo.run[i]
        t, visits, sweeps = runs.step[run] + 1, counts.visits[run], runs.sweeps[run]
        gather_rows(rows, counts.transitions[run], space, thread)
        own = (space.begin[thread], space.length[thread], space.next_state[thread], space.count[thread], visits)
        pairs = (
            memory.rewards[run],
            memory.radius[run],
            memory.level[run],
            memory.x[run],
            memory.key[run],
            memory.value[run],
            memory.gap[run],
        )
        state = (
            values[run],
            space.best[thread],
            space.lower[thread],
            memory.actions[run],
            space.reachable,
            memory.rise[run],
        )
        scratch = (
            space.distance[thread],
            space.highest[thread],
            space.d[thread],
            space.logs[thread],
            space.inverses[thread],
            space.todo[thread],
        )
        if sweeps == 0:
            sums = (visits, counts.reward_sum[run], rows.allowed, memory.planned[run])
            n_changed = list_changed(visits, memory.planned[run], space.todo[thread])
            kl_scal_plus_sets(sums, c.sets, pairs)
            if counts.reward_squares.size > 0:
                changed = space.todo[thread, :n_changed]
                rewards_by_variance(changed, sums, counts.reward_squares[run], c.sets, pairs)
            renew_keys(pairs, state, c.span)
        problem = (n_actions, c.span, 1.0 / math.sqrt(t), c.damping)
        done, low, high, span, met = kl_sweeps(own, pairs, scratch, state, problem, KL_SWEEPS_PER_LAUNCH)
        runs.sweeps[run] = 0 if met else sweeps + abs(done)
        if met:
            for s in range(n_states):
                set_policy_action(counts, run, s, memory.actions[run, s], n_actions)
            vacuous = ignores_data(memory.radius[run], rows.allowed, c.uninformative)
            r = c.reward_range
            found = PlanResult(c.base + r * low, c.base + r * high, r * span, sweeps + done, vacuous)
            record_episode(runs, episodes, found, 0.0, run)
        elif done < 0:
            fail_run(runs, c.reward_range * (high - low), run)
        i += cuda.gridDim.x * cuda.blockDim.x
