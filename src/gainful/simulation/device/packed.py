"""Runs packed into few bytes each, so that many of them fit into shared memory while they step.

Of each state a packed run has a *card*, 16 bits with the action of the policy and how often it may still be executed.
What happens goes to a log in global memory, 16 bits a step. `settle_runs` adds the log to the agent's counts when the
episode ends, a checkpoint is reached or the log is nearly full, and `deal_runs` deals the cards of the next policy.
SCAL+'s plans do both themselves at the end of an episode, if the vectors of a plan fit shared memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint32

from gainful._compiled import inlined
from gainful.cuda_device import SIMULATED, cuda, device_function, device_kernel, device_zeros
from gainful.simulation.device.runs import (
    MOST_HALF,
    NEEDS_BOTH,
    NEEDS_PLAN,
    NEEDS_SETTLING,
    RUNNING,
    DeviceCounts,
    DeviceCurves,
    DeviceRuns,
)
from gainful.simulation.device.steps import (
    StepRule,
    pass_checkpoint,
    record_checkpoint,
    steps_of_launch,
    sum_with_wins,
)
from gainful.simulation.device.teams import TodoList
from gainful.simulation.repeated_sum import repeated_sum
from gainful.simulation.transition_table import RewardLaw

MOST_LOGGED = 16 if SIMULATED else 1 << 15
"""Steps that the log of a run holds; few in the simulator, so that its short runs fill it too."""
NEARLY_FULL = MOST_LOGGED * 3 // 4
"""Steps from which on a log is settled at the end of a launch: the next one could have to stop early."""
MOST_ACTIONS = 64
"""Actions that cards can have: six bits, which leave ten for executions."""
SETTLING_BLOCK = 2 if SIMULATED else 64
"""Threads that settle or deal one run."""
SETTLING_REGISTERS = 64
"""Registers of a thread that settles."""
IN_FLIGHT = 8
"""Words that a thread asks for before it waits for the first."""
ENTRIES = 4
"""Steps in a word of the log."""


class PackedLayout(NamedTuple):
    """Where the arrays of a packed run are, and what its numbers mean."""

    words: Any
    """Words of 32 bits that a run takes."""
    squares: Any
    """Where the squares of rewards begin, float64 (S,) like the sums before them; neither may be there."""
    cards: Any
    """Where the cards begin, half words (S,)."""
    one: Any
    """One execution on a card; below are the bits of its action."""
    most: Any
    """Executions that are dealt at a time, at most; the others wait in `DeviceCounts.left`."""
    pitch: Any
    """From the entries of one state in the log to those of the next."""
    inverse: Any
    """⌊2³²/pitch⌋ + 1, for `state_of_entry`."""


class PackedRuns(NamedTuple):
    """R packed runs, one after the other, and their logs."""

    sums: tuple[int, ...]
    """As long as there are sums of rewards and of their squares; a constant to the compiler."""
    wins: tuple[int, ...]
    """Not empty if entries of the log say, in their lowest bit, whether the reward was 1."""
    layout: PackedLayout
    words: Any
    reals: Any
    halves: Any
    """The same memory, as numbers of each type."""
    log: Any
    """(R, words of four entries): state * pitch + rank of the next state. A last word that is not full is filled from
    its high end."""
    logged: Any
    """(R,) steps in the log."""
    waiting: TodoList
    """The runs to settle."""
    by_plans: tuple[int, ...]
    """Not empty if the kernel that plans adds logs and deals cards itself, for the runs that it plans for."""


class LogPlan(NamedTuple):
    """What is logged of runs in one environment."""

    n_states: int
    width: int
    """The most next states of a pair."""
    n_actions: int
    n_sums: int
    """Sums of rewards that do not follow from the log: of rewards, and of their squares."""
    wins: bool
    """Whether rewards are 0 or 1 at random."""

    @property
    def pitch(self) -> int:
        """From the entries of one state to those of the next: odd, so that states begin in other banks."""
        return self.width | 1

    @property
    def n_entries(self) -> int:
        """Different entries."""
        return self.n_states * self.pitch * (1 + self.wins)

    @property
    def run_bytes(self) -> int:
        """Bytes of a packed run in shared memory."""
        size = self.n_states * (8 * self.n_sums + 2)
        return 8 * -(-size // 8) if self.n_sums else 4 * (-(-size // 4) | 1)

    @property
    def log_bytes(self) -> int:
        """Bytes of the log of a run."""
        return 2 * MOST_LOGGED

    @property
    def counting_bytes(self) -> int:
        """Bytes of shared memory in which the log of a run is counted, beside the actions."""
        return 4 * (self.n_entries + self.n_states)

    def fits(self, shared: int) -> bool:
        """Whether entries and cards have bits enough, and logs are counted in a fourth of `shared` bytes."""
        return self.n_entries <= MOST_HALF + 1 and self.n_actions <= MOST_ACTIONS and 4 * self.counting_bytes <= shared

    def layout(self) -> PackedLayout:
        """The layout of a run: numbers of 8 bytes first, then cards."""
        one = 1 << max(1, (self.n_actions - 1).bit_length())
        most = min(8, MOST_HALF // one) if SIMULATED else MOST_HALF // one
        squares, cards = self.n_states * (self.n_sums > 1), 4 * self.n_sums * self.n_states
        return PackedLayout(
            words=np.uint64(self.run_bytes // 4),
            squares=np.uint64(squares),
            cards=np.uint64(cards),
            one=np.uint32(one),
            most=np.uint32(most),
            pitch=np.uint32(self.pitch),
            inverse=np.uint64((1 << 32) // self.pitch + 1),
        )


def new_packed_runs(n_runs: int, plan: LogPlan) -> PackedRuns:
    """Packed runs that have logged nothing."""
    layout = plan.layout()
    memory = device_zeros(n_runs * int(layout.words), np.uint32)
    halves = memory.view(np.uint16)
    reals = memory.view(np.float64) if plan.n_sums else device_zeros(0, np.float64)
    log = cuda.device_array((n_runs, MOST_LOGGED // ENTRIES), np.uint64)
    waiting = TodoList(cuda.device_array(n_runs, np.int64), device_zeros(1, np.int64))
    return PackedRuns(
        sums=(0,) * plan.n_sums,
        wins=(0,) * plan.wins,
        layout=layout,
        words=memory,
        reals=reals,
        halves=halves,
        log=log,
        logged=device_zeros(n_runs, np.uint32),
        waiting=waiting,
        by_plans=(),
    )


def no_packed_runs() -> PackedRuns:
    """What a kernel is given where runs are not packed."""
    return new_packed_runs(0, LogPlan(1, 1, 1, 0, False))


class Settled(NamedTuple):
    """What the log of a run says about the action of state s."""

    run: Any
    s: Any
    done: Any
    """How often it was executed."""
    wins: Any
    """Rewards of 1."""


@device_function
def copy_words(source: Any, first: Any, n: Any, out: Any, at: Any) -> None:
    """Copy n words by all threads of a block, each of which waits for several at a time."""
    i, team = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x)
    while i + np.uint64(IN_FLIGHT - 1) * team < n:
        a, b = source[first + i], source[first + i + team]
        c, d = source[first + i + np.uint64(2) * team], source[first + i + np.uint64(3) * team]
        e, f = source[first + i + np.uint64(4) * team], source[first + i + np.uint64(5) * team]
        g, h = source[first + i + np.uint64(6) * team], source[first + i + np.uint64(7) * team]
        out[at + i], out[at + i + team] = a, b
        out[at + i + np.uint64(2) * team], out[at + i + np.uint64(3) * team] = c, d
        out[at + i + np.uint64(4) * team], out[at + i + np.uint64(5) * team] = e, f
        out[at + i + np.uint64(6) * team], out[at + i + np.uint64(7) * team] = g, h
        i += np.uint64(IN_FLIGHT) * team
    while i < n:
        out[at + i] = source[first + i]
        i += team


@device_function
def words_of_block(runs: DeviceRuns, layout: PackedLayout) -> Any:
    """Where the words of a block's runs begin in `PackedRuns.words`, and how many they are."""
    block = np.uint64(cuda.blockDim.x)
    first_run = np.uint64(cuda.blockIdx.x) * block
    n_runs = min(block, np.uint64(runs.state.size) - first_run)
    return first_run * layout.words, n_runs * layout.words


@inlined
def dealt(counts: DeviceCounts, layout: PackedLayout, run: int, state: Any) -> Any:
    """Take executions of the action of a state from those left, as many as a card holds; 0 if the episode is over."""
    left = np.uint32(counts.left[run, state])
    now = min(left, layout.most)
    counts.left[run, state] = left - now
    return now


@inlined
def valid_card(counts: DeviceCounts, layout: PackedLayout, run: int, state: Any, card: Any) -> Any:
    """The card of a state, with further executions if it has none; without any if the episode is over."""
    if card < layout.one:
        card = np.uint32(card + dealt(counts, layout, run, state) * layout.one)
    return card


@inlined
def card_place(packed: PackedRuns, run: int, s: Any) -> Any:
    """Where the card of state s is among the half words."""
    return np.uint64(2) * np.uint64(run) * packed.layout.words + packed.layout.cards + np.uint64(s)


@inlined
def real_place(packed: PackedRuns, run: int, s: Any) -> Any:
    """Where the sum of rewards of state s is among the real numbers."""
    return np.uint64(run) * packed.layout.words // np.uint64(2) + np.uint64(s)


@inlined
def deal_card(counts: DeviceCounts, packed: PackedRuns, run: int, s: int, n_actions: int) -> None:
    """Deal the card of state s for a new plan, and give the run the sums of rewards that it goes on from."""
    action = np.uint32(counts.act[run, s])
    packed.halves[card_place(packed, run, s)] = action + dealt(counts, packed.layout, run, s) * packed.layout.one
    pair = s * n_actions + np.int64(action)
    if len(packed.sums) > 0:
        packed.reals[real_place(packed, run, s)] = counts.reward_sum[run, pair]
    if len(packed.sums) > 1:
        packed.reals[real_place(packed, run, s) + packed.layout.squares] = counts.reward_squares[run, pair]


@device_kernel()
def deal_runs(todo: TodoList, runs: DeviceRuns, counts: DeviceCounts, packed: PackedRuns) -> None:
    """Deal the cards of every run of the list that has a new plan: a block of threads for each."""
    n_states, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        run = todo.run[i]
        s = cuda.threadIdx.x if runs.status[run] == RUNNING else n_states
        while s < n_states:
            deal_card(counts, packed, run, s, n_actions)
            s += cuda.blockDim.x
        i += cuda.gridDim.x


@inlined
def open_log(packed: PackedRuns, run: int) -> tuple[Any, Any]:
    """How many steps of a run are in the log, and its last word."""
    n = np.uint32(packed.logged[run])
    return n, packed.log[run, n // np.uint32(ENTRIES)] if n % np.uint32(ENTRIES) > 0 else np.uint64(0)


@inlined
def steps_to_log(runs: DeviceRuns, curves: DeviceCurves, rule: StepRule, run: int, n_logged: Any) -> Any:
    """How many steps a run makes in this launch, if its episode lasts."""
    n = steps_of_launch(runs.step[run], curves.checkpoints[np.int64(runs.passed[run])], rule.part)
    return np.uint32(min(n, np.int64(MOST_LOGGED) - np.int64(n_logged)))


@inlined
def logged(packed: PackedRuns, run: int, n: Any, word: Any, entry: Any) -> Any:
    """Log entry number n of a run; returns the word that is not yet full."""
    word = (word >> np.uint64(16)) | (np.uint64(entry) << np.uint64(48))
    if n % np.uint32(ENTRIES) == np.uint32(ENTRIES - 1):
        packed.log[run, n // np.uint32(ENTRIES)] = word
    return word


@inlined
def close_log(packed: PackedRuns, run: int, n: Any, word: Any) -> None:
    """Note that the log has n entries, the last of them in a word that may not be full."""
    packed.logged[run] = n
    if n % np.uint32(ENTRIES) > 0:
        packed.log[run, n // np.uint32(ENTRIES)] = word


@inlined
def state_of_entry(layout: PackedLayout, entry: Any) -> Any:
    """Entry // pitch, exact for 16 bits: a product takes less than a division."""
    return np.uint32((np.uint64(entry) * layout.inverse) >> np.uint64(32))


@inlined
def word_of_log(packed: PackedRuns, run: int, n: Any, i: Any) -> tuple[Any, Any]:
    """Word i of a log of n entries, from its first entry on in the low bits, and how many entries it has."""
    word, rest = packed.log[run, i], np.uint32(n - i * np.uint32(ENTRIES))
    if rest < ENTRIES:  # not full
        return word >> np.uint64(16) * np.uint64(np.uint32(ENTRIES) - rest), rest
    return word, np.uint32(ENTRIES)


@device_function
def count_log(packed: PackedRuns, run: int, found: Any, n_found: Any) -> None:
    """Count how often each entry stands in the log of a run."""
    n = np.uint32(packed.logged[run])
    team = np.uint32(cuda.blockDim.x)
    i = np.uint32(cuda.threadIdx.x)
    while i < n_found:
        found[i] = 0
        i = np.uint32(i + team)
    cuda.syncthreads()
    i = np.uint32(cuda.threadIdx.x)
    while i * np.uint32(ENTRIES) < n:
        word, j = word_of_log(packed, run, n, i)
        while j > 0:
            cuda.atomic.add(found, np.int64(word & np.uint64(MOST_HALF)), np.uint32(1))
            word >>= np.uint64(16)
            j = np.uint32(j - np.uint32(1))
        i = np.uint32(i + team)
    cuda.syncthreads()


@device_function
def settle_transitions(counts: DeviceCounts, packed: PackedRuns, run: int, found: Any, act: Any) -> None:
    """Add the transitions that were counted in shared memory to those of the agent: a counter has one thread."""
    n_actions, width = counts.visits.shape[1] // counts.act.shape[1], counts.seen.shape[1] // counts.visits.shape[1]
    pitch, team, n_states = packed.layout.pitch, np.uint32(cuda.blockDim.x), np.uint32(counts.act.shape[1])
    s = np.uint32(cuda.threadIdx.x) // pitch
    j, further = np.uint32(np.uint32(cuda.threadIdx.x) - s * pitch), team // pitch
    more = np.uint32(team - further * pitch)
    while s < n_states:
        i = np.uint32(s * pitch + j)
        if len(packed.wins) > 0:
            n = np.uint32(found[np.uint32(i + i)] + found[np.uint32(i + i + np.uint32(1))])
        else:
            n = np.uint32(found[i])
        if n > 0:
            counts.seen[run, (np.int64(s) * n_actions + np.int64(act[s])) * width + np.int64(j)] += n
        s, j = np.uint32(s + further), np.uint32(j + more)
        if j >= pitch:
            s, j = np.uint32(s + np.uint32(1)), np.uint32(j - pitch)


@inlined
def executions(packed: PackedRuns, found: Any, s: Any) -> tuple[Any, Any]:
    """How often the action of state s was executed, and how often its reward was 1."""
    done, wins, i = np.uint32(0), np.uint32(0), np.uint32(s) * packed.layout.pitch
    for _ in range(packed.layout.pitch):
        if len(packed.wins) > 0:
            won = found[np.uint32(i + i + np.uint32(1))]
            done, wins = np.uint32(done + found[np.uint32(i + i)] + won), np.uint32(wins + won)
        else:
            done = np.uint32(done + found[i])
        i = np.uint32(i + np.uint32(1))
    return done, wins


@inlined
def sum_before(counts: DeviceCounts, packed: PackedRuns, run: int, s: Any, pair: Any) -> float:
    """The sum of the rewards of a pair: the agent's, or the packed run's, which is already that after the steps."""
    total: float = packed.reals[real_place(packed, run, s)] if len(packed.sums) > 0 else counts.reward_sum[run, pair]
    return total


@inlined
def mean_before(law: RewardLaw, packed: PackedRuns, pair: Any) -> float:
    """The reward of a pair, if the sum of rewards follows from it."""
    mean: float = law.means[pair] if len(packed.sums) == 0 and len(packed.wins) == 0 else 0.0
    return mean


@inlined
def settled_sum(law: RewardLaw, packed: PackedRuns, seen: Settled, total: float, mean: float, low: float) -> float:
    """The sum of the rewards of a pair, from `sum_before` and `mean_before`."""
    if len(packed.sums) > 0:
        return total
    if len(packed.wins) > 0:
        wins, losses = np.float64(seen.wins), np.float64(seen.done - seen.wins)
        return sum_with_wins(total, wins, losses, law.success - low, 0.0 - low)
    after: float = repeated_sum(total, mean - low, np.int64(seen.done))
    return after


@inlined
def settled_squares(law: RewardLaw, packed: PackedRuns, seen: Settled, total: float, mean: float, low: float) -> float:
    """The same for the squares of rewards, of which the agent has the sum `total`."""
    if len(packed.sums) > 1:
        found: float = packed.reals[real_place(packed, seen.run, seen.s) + packed.layout.squares]
        return found
    if len(packed.wins) > 0:
        wins, losses, hit, miss = np.float64(seen.wins), np.float64(seen.done - seen.wins), law.success - low, 0.0 - low
        return sum_with_wins(total, wins, losses, hit * hit, miss * miss)
    after: float = repeated_sum(total, (mean - low) * (mean - low), np.int64(seen.done))
    return after


@device_function
def settle_log(law: RewardLaw, counts: DeviceCounts, packed: PackedRuns, run: int, low: float) -> None:
    """Add the log of a run to what its agent knows, by all threads of a block."""
    n_states, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    n_found = np.uint32(n_states) * packed.layout.pitch * np.uint32(1 + len(packed.wins))
    found = cuda.shared.array(0, uint32)
    act = found[np.int64(n_found) : np.int64(n_found) + n_states]
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        act[s] = packed.halves[card_place(packed, run, s)] & (packed.layout.one - np.uint32(1))
        s += cuda.blockDim.x
    count_log(packed, run, found, n_found)
    settle_transitions(counts, packed, run, found, act)
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        done, wins = executions(packed, found, s)
        if done > 0:
            pair = s * n_actions + np.int64(act[s])
            visits, total = counts.visits[run, pair], sum_before(counts, packed, run, s, pair)
            mean = mean_before(law, packed, pair)
            seen = Settled(run, s, done, wins)
            counts.visits[run, pair] = np.uint32(visits + done)
            counts.reward_sum[run, pair] = settled_sum(law, packed, seen, total, mean, low)
            if counts.reward_squares.size > 0:
                squares = counts.reward_squares[run, pair]
                counts.reward_squares[run, pair] = settled_squares(law, packed, seen, squares, mean, low)
        s += cuda.blockDim.x


@inlined
def note_checkpoint(
    law: RewardLaw, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, packed: PackedRuns, run: int, i: Any
) -> None:
    """Record checkpoint i of a run."""
    if len(packed.sums) > 0:
        curves.rewards[i, run] = runs.earned[run]
    else:
        record_checkpoint(law, curves, counts.visits[run], i, run, runs.earned[run])
    pass_checkpoint(runs, curves, run, i)


@device_kernel(registers=SETTLING_REGISTERS)
def settle_runs(
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    packed: PackedRuns,
    todo: TodoList,
    low: float,
) -> None:
    """Give agents what was logged since the last time, and record checkpoints: a block of threads for each run.

    Those whose episode is over are listed in `todo`, to be planned for; `low` is the agents' least reward.
    """
    i, x = cuda.blockIdx.x, cuda.threadIdx.x
    while i < packed.waiting.n[0]:
        run = packed.waiting.run[i]
        passed, plans = np.int64(runs.passed[run]), runs.status[run] == NEEDS_BOTH
        due = runs.step[run] == curves.checkpoints[passed]
        settle_log(law, counts, packed, run, low)
        cuda.syncthreads()
        if x == 0:
            packed.logged[run], runs.status[run] = 0, NEEDS_PLAN if plans else RUNNING
            if due:
                note_checkpoint(law, runs, counts, curves, packed, run, passed)
            if runs.status[run] == NEEDS_PLAN:
                todo.run[cuda.atomic.add(todo.n, 0, 1)] = run
        i += cuda.gridDim.x


@inlined
def note_launch(
    runs: DeviceRuns, curves: DeviceCurves, packed: PackedRuns, run: int, t: Any, n_logged: Any, over: bool
) -> None:
    """Note where a run is at the end of a launch, and what it waits for."""
    due = t == curves.checkpoints[np.int64(runs.passed[run])]
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_BOTH if due or len(packed.by_plans) == 0 else NEEDS_PLAN
    elif due or n_logged >= NEARLY_FULL:
        runs.status[run] = NEEDS_SETTLING


@inlined
def is_stepping(runs: DeviceRuns, run: Any) -> bool:
    """Whether there is such a run, and it has a plan."""
    found: bool = run < runs.state.size and runs.status[run] == RUNNING
    return found
