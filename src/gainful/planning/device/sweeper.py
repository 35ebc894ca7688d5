"""One MDP on a GPU, ready for sweeps: what `planning.sweeper` is on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import SIMULATED, DeviceKernel, cuda, device_zeros, multiprocessors, require_device
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.planning.anderson import MEMORY
from gainful.planning.bellman import SparseModel, StoppingRule, sparse_model
from gainful.planning.device.anderson_kernels import (
    AndersonVectors,
    anderson_step,
    inner_products,
    policy_residual,
    store_difference,
)
from gainful.planning.device.kernels import (
    CHANGED,
    CONTESTED,
    HIGH,
    LARGEST,
    LONGEST_ROW,
    LOW,
    PIN,
    REWARD_SCALE,
    SWEEP_BLOCK,
    TOTAL,
    ContestedStates,
    GreedyVectors,
    bellman_sweep,
    copy_vectors,
    damped_step,
    reduce_stats,
    subtract_first,
    survey_model,
    sweep_incumbents,
)
from gainful.planning.device.transfer import downloaded, uploaded
from gainful.planning.rounding import (
    UNIT_ROUNDOFF,
    elimination_margin,
    is_narrow,
    rounding_slack,
    slack_at,
    transition_reward_scale,
)

VECTOR_BLOCKS_PER_MULTIPROCESSOR = 8
"""Blocks of a kernel for vectors."""
SWEEP_BLOCKS_PER_MULTIPROCESSOR = 32
"""Blocks of a Bellman sweep: several times what a multiprocessor runs at a time, to balance the load."""
MAX_CONTESTED_SHARE = 0.75
"""Incumbents are read first if at most this share of states was contested in the last sweep."""
SHORT_INDEX = 2**32
"""Below this number of transitions, row pointers have 32 bits on the GPU: half the bytes."""


def model_on_device(model: SparseModel) -> SparseModel:
    """Copy a model to the GPU."""
    indptr, indices, probabilities, rewards = uploaded(
        (model.indptr, np.uint32 if model.indices.size < SHORT_INDEX else np.uint64),
        (model.indices, np.uint32),
        (model.probabilities, np.float64),
        (model.rewards, np.float64),
    )
    return SparseModel(indptr, indices, probabilities, rewards, model.n_actions)


class RisingValues:
    """Bounds how much v has risen since all rows were read, which proves that most rows need not be read again."""

    def __init__(self, n_states: int) -> None:
        self._n_states, self._few = n_states, True
        self._since, self._risen, self._size = 0, 0.0, 0.0
        self._rise, self._reach = 0.0, 0.0
        self.stepped = False
        """Whether v has changed since the last sweep only by the step of which `after` was told."""

    def before(self, max_support: int, max_reward: float) -> tuple[float, float]:
        """Before a sweep: the rise so far and the margin for rounding, which is inf if all rows must be read."""
        known, self.stepped = self.stepped and self._few, False
        self._since, self._risen, self._size = self._since + 1, self._risen + self._rise, max(self._size, self._reach)
        slack = rounding_slack(max_support, self._size, max_reward)
        margin = elimination_margin(slack, self._size, self._since, self._risen)
        if known and margin < math.inf:
            return self._risen, margin
        self._since, self._risen, self._size = 0, 0.0, 0.0
        return 0.0, math.inf

    def after(self, stats: NDArray[np.float64], damping: float) -> None:
        """After a sweep: the step v + τ(w - v) - pin would change v by τ·low - pin to τ·high - pin."""
        low, high, pin, largest = (float(stats[i]) for i in (LOW, HIGH, PIN, LARGEST))
        down, up = damping * low - pin, damping * high - pin
        room = (
            16 * UNIT_ROUNDOFF * (abs(low) + abs(high) + abs(pin) + largest)
        )  # for rounding, in the step and in this bound
        self._rise, self._reach = max(up, 0.0) + room, largest + max(abs(down), abs(up)) + room
        self._size = max(self._size, largest)
        self._few = bool(stats[CONTESTED] <= MAX_CONTESTED_SHARE * self._n_states)


class DeviceSweeper:
    """Bellman sweeps of one MDP on a GPU; `w` and `act` hold the last one's Lv and greedy actions.

    `v` begins as `start`, or as zeros.
    """

    def __init__(self, mdp: MDP, start: NDArray[np.float64] | None) -> None:
        require_device()
        if mdp.n_actions > SWEEP_BLOCK:
            raise DeviceError(
                f"{mdp.n_actions} actions cannot be swept on a GPU",
                name="device",
                found="cuda",
                expected=f"at most {SWEEP_BLOCK} actions",
                hint="leave device out",
            )
        self.n_states, self.model = mdp.n_states, model_on_device(sparse_model(mdp))
        self.blocks = 2 if SIMULATED else multiprocessors() * VECTOR_BLOCKS_PER_MULTIPROCESSOR
        self.v = device_zeros(mdp.n_states, np.float64) if start is None else uploaded((start, np.float64))[0]
        vectors = [cuda.device_array(mdp.n_states, kind) for kind in (np.float64, np.uint32, np.float64, np.uint32)]
        self.w, self.act, runner_up, contested = vectors
        self._out = GreedyVectors(self.w, self.act, runner_up)
        self._contested = ContestedStates(contested, device_zeros(1, np.int64))
        self._partial = cuda.device_array((4, self.blocks), np.float64)
        self._mean, self._gamma = cuda.device_array(1, np.float64), cuda.device_array(MEMORY, np.float64)
        self._sums = cuda.device_array((2, MEMORY, self.blocks), np.float64)
        self._prepared: dict[tuple[Any, ...], Callable[[], None]] = {}
        self.max_support, self.max_reward = self._surveyed(mdp)
        most, states_of_a_block = multiprocessors() * SWEEP_BLOCKS_PER_MULTIPROCESSOR, SWEEP_BLOCK // mdp.n_actions
        self._lazy_blocks, self._full_blocks = (
            min(most, -(-mdp.n_states // n)) for n in (SWEEP_BLOCK, states_of_a_block)
        )
        self._ranges = cuda.device_array((4, self._lazy_blocks + self._full_blocks), np.float64)
        self._known, self._stats = cuda.device_array(3, np.float64), cuda.device_array(6, np.float64)
        self.largest, self.slack, self.changed, self.contested = 0.0, 0.0, True, 0
        """Of the last sweep: max|v|, rounding, whether an action has changed, how many states were contested."""
        self._history, self._at_zero = RisingValues(mdp.n_states), start is None

    def _surveyed(self, mdp: MDP) -> tuple[int, float]:
        """Compute what `longest_row` and `reward_scale` do, and set `act` to what `lowest_allowed` returns."""
        self._launch(survey_model, self.model, self.act, self._partial)
        found = self._partial.copy_to_host()
        return int(found[LONGEST_ROW].max()), max(float(found[REWARD_SCALE].max()), transition_reward_scale(mdp))

    def _launch(self, kernel: DeviceKernel, *arguments: Any, blocks: int = 0) -> None:
        """Launch a kernel; launches are prepared once for the same arrays and numbers."""
        key = kernel.__name__, blocks, *(a if isinstance(a, int | float) else id(a) for a in arguments)
        if key not in self._prepared:
            self._prepared[key] = kernel.prepared((blocks or self.blocks, SWEEP_BLOCK), *arguments)
        self._prepared[key]()

    def bellman(self, damping: float = 1.0) -> tuple[float, float]:
        """Set w = Lv and act to its greedy actions; return the range of Lv - v.

        If only `advance` or `damped_move` changed v since the last sweep, pairs that are proven not to be the best are
        skipped (`bellman.lazy_sweep`). After any other change of v all rows are read.
        """
        risen, margin = self._history.before(self.max_support, self.max_reward)
        self._known.copy_to_device(np.array([risen, margin, self._at_zero]))
        self._at_zero = False
        first, sweep = self._lazy_blocks, (self.model, self.v, self._out, self._known, self._contested, self._ranges)
        if margin < math.inf:
            first = 0
            self._launch(sweep_incumbents, *sweep, blocks=self._lazy_blocks)
        self._launch(bellman_sweep, *sweep, blocks=self._full_blocks)
        self._launch(reduce_stats, self._ranges, first, self._contested, self.v, self.w, damping, self._stats, blocks=1)
        stats = self._stats.copy_to_host()
        self._history.after(stats, damping)
        self.largest, self.changed = float(stats[LARGEST]), bool(stats[CHANGED])
        self.contested = int(stats[CONTESTED]) if margin < math.inf else self.n_states
        self.slack = rounding_slack(self.max_support, self.largest, self.max_reward)
        return float(stats[LOW]), float(stats[HIGH])

    def damped(self, rule: StoppingRule, resumes: bool) -> tuple[int, float, float, float, bool]:
        """Sweep as `damped_sweeps` does."""
        done = 0
        while True:
            if resumes or done > 0:
                self.damped_move(rule.damping)
            low, high = self.bellman(rule.damping)
            done += 1
            slack = slack_at(rule.roundoff, self.largest, rule.max_reward)
            met = is_narrow(low, high, slack, rule.target)
            if met or done == rule.max_sweeps or not high - low > 2.0 * slack:
                return done, low, high, slack, met

    def damped_move(self, damping: float) -> None:
        """Set v to v + τ(w - v), less its value at state 0, after a sweep with this damping."""
        self._launch(damped_step, self.v, self.w, damping, self._stats)
        self._history.stepped = True

    def advance(self) -> None:
        """Set v to w - w(0), after a sweep at v."""
        self.pinned(self.w, self.v)
        self._history.stepped = True

    def vectors(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The last v and its greedy actions, in the CPU's memory."""
        values, actions = downloaded((self.v, np.float64), (self.act, np.int64))
        return values, actions

    def keep(self, best: Any, actions: Any) -> None:
        """Copy v and its greedy actions to `best` and `actions`."""
        self._launch(copy_vectors, self.v, self.act, best, actions)

    def replace(self, vector: Any) -> None:
        """Set v to another vector."""
        self.v.copy_to_device(vector)
        self._history.stepped = self._at_zero = False

    def copy(self, vector: Any) -> Any:
        """A copy of a vector on the GPU."""
        found = cuda.device_array(vector.shape, vector.dtype)
        found.copy_to_device(vector)
        return found

    def pinned(self, vector: Any, out: Any) -> None:
        """Set out to the vector less its first number; it must be another array."""
        self._launch(subtract_first, vector, out)

    def new_vectors(self, memory: int) -> AndersonVectors:
        """Vectors for the evaluation of a policy."""
        ones = [cuda.device_array(self.n_states, np.float64) for _ in range(4)]
        return AndersonVectors(*ones, *(cuda.device_array((memory, self.n_states), np.float64) for _ in range(2)))

    def residual(self, a: AndersonVectors) -> tuple[float, float, float]:
        """Set f = r_π + P_π h - h for the policy π = `act`; returns its range and its mean."""
        self._launch(policy_residual, self.model, self.act, a.h, a.f, self._partial)
        found = self._partial.copy_to_host()
        return float(found[LOW].min()), float(found[HIGH].max()), float(found[TOTAL].sum()) / self.n_states

    def note_difference(self, a: AndersonVectors, mean: float, j: int) -> None:
        """Subtract the mean from f, and store difference j of h and f to the last ones, if j ≥ 0."""
        self._mean.copy_to_device(np.array([mean]))
        self._launch(store_difference, a, self._mean, j)

    def products(self, a: AndersonVectors, j: int, kept: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The inner products ΔF·ΔF(j) and ΔF·f for the first `kept` differences."""
        self._launch(inner_products, a.changes, a.f, j, kept, self._sums)
        squares, along = self._sums.copy_to_host()[:, :kept].sum(axis=2)
        return squares, along

    def step(self, a: AndersonVectors, gamma: NDArray[np.float64], damping: float) -> None:
        """An Anderson step, or a damped one if γ is empty, less the value at state 0."""
        if gamma.size:
            self._gamma.copy_to_device(np.concatenate([gamma, np.zeros(MEMORY - gamma.size)]))
        self._launch(anderson_step, a, self._gamma, int(gamma.size), damping)
