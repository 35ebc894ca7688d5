"""One MDP on a GPU, ready for sweeps: what `planning.sweeper` is on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import SIMULATED, DeviceKernel, cuda, multiprocessors, require_device
from gainful.errors import DeviceError
from gainful.mdp.model import MDP
from gainful.planning.anderson import MEMORY
from gainful.planning.arguments import lowest_allowed
from gainful.planning.bellman import SparseModel, StoppingRule, sparse_model
from gainful.planning.device.kernels import (
    CHANGED,
    HIGH,
    LARGEST,
    LOW,
    SWEEP_BLOCK,
    TOTAL,
    AndersonVectors,
    anderson_step,
    bellman_sweep,
    damped_step,
    gather_stats,
    note_difference,
    policy_residual,
    products,
    shifted,
)
from gainful.planning.device.upload import Uploader
from gainful.planning.rounding import is_narrow, longest_row, reward_scale, rounding_slack, slack_at

BLOCKS_OF_EACH = 8
"""Blocks that sweep on each multiprocessor."""


def _uploaded(model: SparseModel) -> SparseModel:
    """A model on the GPU."""
    uploader = Uploader()
    arrays = model.indptr, model.indices, model.probabilities, model.rewards
    indptr, indices, probabilities, rewards = (uploader.uploaded(array) for array in arrays)
    uploader.close()
    return SparseModel(indptr, indices, probabilities, rewards, model.n_actions)


class DeviceSweeper:
    """Bellman sweeps of one MDP on a GPU; `w` and `act` hold the last one's Lv and greedy actions."""

    def __init__(self, mdp: MDP, v: NDArray[np.float64]) -> None:
        require_device()
        if mdp.n_actions > SWEEP_BLOCK:
            raise DeviceError(
                f"{mdp.n_actions} actions cannot be swept on a GPU",
                name="device",
                found="cuda",
                expected=f"at most {SWEEP_BLOCK} actions",
                hint="leave device out",
            )
        self.n_states, self.max_reward = mdp.n_states, reward_scale(mdp)
        self.max_support = longest_row(mdp)
        self.model = _uploaded(sparse_model(mdp))
        self.blocks = 2 if SIMULATED else multiprocessors() * BLOCKS_OF_EACH
        self.v = cuda.to_device(v)
        self.w = cuda.device_array(mdp.n_states, np.float64)
        self.act = cuda.to_device(lowest_allowed(mdp).astype(np.uint32))
        self._partial = cuda.device_array((4, self.blocks), np.float64)
        self._stats = cuda.device_array(5, np.float64)
        self._pin, self._mean = cuda.device_array(1, np.float64), cuda.device_array(1, np.float64)
        self._gamma = cuda.device_array(MEMORY, np.float64)
        self._sums = cuda.device_array((2, MEMORY, self.blocks), np.float64)
        self._prepared: dict[tuple[Any, ...], Callable[[], None]] = {}
        self.slack, self.changed = 0.0, True
        self.host_values, self.host_actions = v, np.zeros(mdp.n_states, dtype=np.int64)
        """What `damped` leaves on the CPU when it returns."""

    def _launch(self, kernel: DeviceKernel, *arguments: Any, blocks: int = 0) -> None:
        """Launch a kernel; with the same arrays and numbers a second time, without looking them up."""
        key = kernel.__name__, blocks, *(a if isinstance(a, int | float) else id(a) for a in arguments)
        if key not in self._prepared:
            self._prepared[key] = kernel.prepared((blocks or self.blocks, SWEEP_BLOCK), *arguments)
        self._prepared[key]()

    def bellman(self, v: Any, damping: float = 1.0) -> tuple[float, float]:
        """Set w = Lv and act to its greedy actions; return the range of Lv - v."""
        self._launch(bellman_sweep, self.model, v, self.w, self.act, self._partial)
        self._launch(gather_stats, self._partial, v, self.w, damping, self._stats, blocks=1)
        stats = self._stats.copy_to_host()
        self.largest, self.changed = float(stats[LARGEST]), bool(stats[CHANGED])
        self.slack = rounding_slack(self.max_support, self.largest, self.max_reward)
        return float(stats[LOW]), float(stats[HIGH])

    def damped(self, rule: StoppingRule) -> tuple[int, float, float, float, bool]:
        """What `damped_sweeps` does, from `v` on."""
        done = 0
        while True:
            low, high = self.bellman(self.v, rule.damping)
            done += 1
            slack = slack_at(rule.roundoff, self.largest, rule.max_reward)
            met = is_narrow(low, high, slack, rule.target)
            if met or done == rule.max_sweeps or not high - low > 2.0 * slack:
                break
            self._launch(damped_step, self.v, self.w, rule.damping, self._stats)
        if met or not high - low > 2.0 * slack:
            self.take_home()
        else:  # the caller may go on: v is that of the last test, which has still to move
            self.take_home()
            self._launch(damped_step, self.v, self.w, rule.damping, self._stats)
        return done, low, high, slack, met

    def damped_move(self, v: Any, damping: float) -> None:
        """V ← v + τ(w - v), pinned, after a sweep at v."""
        self._launch(gather_stats, self._partial, v, self.w, damping, self._stats, blocks=1)
        self._launch(damped_step, v, self.w, damping, self._stats)

    def take_home(self) -> None:
        """Copy v and the greedy actions to the CPU."""
        self.host_values[:] = self.v.copy_to_host()
        self.host_actions[:] = self.act.copy_to_host()

    def copy(self, vector: Any) -> Any:
        """Another vector with the same numbers."""
        found = cuda.device_array(vector.shape, vector.dtype)
        found.copy_to_device(vector)
        return found

    def pinned(self, vector: Any, out: Any) -> Any:
        """Out = vector less its first number."""
        self._pin.copy_to_device(vector[:1])
        self._launch(shifted, vector, self._pin, out)
        return out

    def new_vectors(self, memory: int) -> AndersonVectors:
        """Vectors for `evaluate_policy`."""
        ones = [cuda.device_array(self.n_states, np.float64) for _ in range(4)]
        return AndersonVectors(*ones, *(cuda.device_array((memory, self.n_states), np.float64) for _ in range(2)))

    def residual(self, a: AndersonVectors) -> tuple[float, float, float]:
        """F = r_π + P_π h - h for the policy π = `act`; its range and its mean."""
        self._launch(policy_residual, self.model, self.act, a.h, a.f, self._partial)
        found = self._partial.copy_to_host()
        return float(found[LOW].min()), float(found[HIGH].max()), float(found[TOTAL].sum()) / self.n_states

    def note_difference(self, a: AndersonVectors, mean: float, j: int) -> None:
        """Take the mean off f, and keep difference j of h and f to the last ones; none if j < 0."""
        self._mean.copy_to_device(np.array([mean]))
        self._launch(note_difference, a, self._mean, j)

    def products(self, a: AndersonVectors, j: int, kept: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ΔF·ΔF(j) and ΔF·f of the first `kept` differences."""
        self._launch(products, a.changes, a.f, j, kept, self._sums)
        squares, along = self._sums.copy_to_host()[:, :kept].sum(axis=2)
        return squares, along

    def step(self, a: AndersonVectors, gamma: NDArray[np.float64], damping: float) -> None:
        """Anderson's step, or a damped one if γ is empty; h is pinned."""
        if gamma.size:
            self._gamma.copy_to_device(np.concatenate([gamma, np.zeros(MEMORY - gamma.size)]))
        self._launch(anderson_step, a, self._gamma, int(gamma.size), damping)
        self.pinned(a.h, a.h)
