"""`solve` on a GPU: value iteration, accelerated policy iteration and damped value iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP
from gainful.planning.anderson import DAMPING, MEMORY, PERIOD, combination
from gainful.planning.device.anderson_kernels import AndersonVectors
from gainful.planning.device.sweeper import DeviceSweeper
from gainful.planning.device.transfer import downloaded
from gainful.planning.plan import Plan, make_plan
from gainful.planning.solve import (
    DAMPED_SWEEPS,
    DAMPING_WHEN_SLOW,
    EVALUATION_SWEEPS,
    IDLE_ROUNDS,
    PATIENCE,
    ROUNDS_AT_MOST,
    ROUNDS_SHARE,
    SolveSearch,
)


def solve_on_device(
    mdp: MDP,
    start: NDArray[np.float64] | None,
    target: float,
    precision: float,
    max_sweeps: int,
    tell: Callable[[int, float], None] | None,
) -> Plan:
    """Solve as `solve` does, on a GPU and without exact policy iteration."""
    search = DeviceSearch(mdp, DeviceSweeper(mdp, start), target, precision, max_sweeps)
    search.tell = tell
    plan = search.value_iteration_on_device()
    sweeps = DAMPED_SWEEPS
    while plan is None:  # both methods alternate, and each continues where it stopped
        first = sweeps == DAMPED_SWEEPS
        plan = search.policy_rounds(search.first_rounds if first else min(sweeps // ROUNDS_SHARE, ROUNDS_AT_MOST))
        if plan is None:
            search.check_structure()
            plan = search.damped(sweeps)
            sweeps *= 4
    return plan


class DeviceSearch(SolveSearch):
    """The stages of `solve` with all vectors on a GPU: v, the best v so far, and its actions."""

    sweeper: Any
    v: Any
    best: Any
    actions: Any
    damped_values: Any

    def __init__(self, mdp: MDP, sweeper: DeviceSweeper, target: float, precision: float, max_sweeps: int) -> None:
        self.device = sweeper
        super().__init__(mdp, sweeper, target, precision, max_sweeps)
        self.v, self.best = sweeper.v, sweeper.copy(sweeper.v)
        self._vectors: AndersonVectors | None = None  # made when needed: they can be larger than the model

    def sweep_and_judge(self, damping: float = 1.0) -> bool:
        """Sweep once, and keep v if its bracket is the narrowest so far; returns whether it is narrow enough."""
        low, high = self.device.bellman(damping)
        return self.judge(low, high, self.device.slack)

    def first_actions(self) -> Any:
        """(S,) the lowest allowed action of each state."""
        return self.device.copy(self.device.act)

    def keep_best(self) -> None:
        """Keep the present v as the best one."""
        self.device.keep(self.best, self.actions)

    def plan(self) -> Plan:
        """The plan of the best v."""
        low, high = self.bounds
        values, actions = downloaded((self.best, np.float64), (self.actions, np.int64))
        return make_plan(
            self.mdp,
            low=low,
            high=high,
            values=values,
            actions=actions,
            sweeps=self.sweeps,
            method=self.stage,
            own_values=True,
        )

    def value_iteration_on_device(self) -> Plan | None:
        """Plain value iteration for as long as it contracts fast, or still changes the policy."""
        widths: list[float] = []
        unchanged = 0
        while not self.sweep_and_judge():
            widths.append(self.width)
            unchanged = 0 if self.device.changed else unchanged + 1
            stable = unchanged >= 3 * PATIENCE or len(widths) > 3 * PATIENCE
            if len(widths) > PATIENCE and stable and self.is_slow(widths):
                return None
            self.device.advance()
        return self.plan()

    def greedy(self) -> NDArray[np.int64]:
        """(S,) the greedy actions of the last sweep."""
        return np.asarray(self.device.act.copy_to_host(), dtype=np.int64)

    def policy_rounds(self, most: int) -> Plan | None:
        """Inexact policy iteration, see `SolveSearch.policy_rounds`."""
        self.stage = "accelerated policy iteration"
        vectors = self._vectors = self._vectors or self.device.new_vectors(MEMORY)
        idle, width, end = 0, self.width, self.sweeps + most
        while idle < IDLE_ROUNDS and self.sweeps < end:
            tolerance = max(0.1 * width, 0.4 * self.target)
            before = self.width
            self.sweeps += self._evaluate(vectors, tolerance)
            if self.sweep_and_judge():
                return self.plan()
            low, high = self.range_of_last
            width = high - low
            idle = 0 if self.width < 0.9 * before else idle + 1
        return None

    def judge(self, low: float, high: float, slack: float) -> bool:
        """See `SolveSearch.judge`; the range is kept for the next round."""
        self.range_of_last = low, high
        return super().judge(low, high, slack)

    def _evaluate(self, a: AndersonVectors, tolerance: float) -> int:
        """Evaluate the policy as `evaluate_by_anderson` does, starting from Lv; v becomes the best vector found."""
        device = self.device
        device.pinned(device.w, a.h)
        best_width, stored = math.inf, 0
        gram = np.zeros((MEMORY, MEMORY))
        for sweep in range(1, EVALUATION_SWEEPS + 1):
            low, high, mean = device.residual(a)
            width = high - low
            if width < best_width:
                best_width = width
                device.replace(a.h)
            if width <= tolerance or not width <= 1e3 * best_width:
                return sweep
            j = stored % MEMORY if sweep > 1 else -1
            device.note_difference(a, mean, j)
            along = np.zeros(0)
            if sweep > 1:
                stored += 1
                kept = min(stored, MEMORY)
                squares, along = device.products(a, j, kept)
                gram[j, :kept] = gram[:kept, j] = squares
            gamma = combination(gram, along, along.size) if sweep % PERIOD == 0 else None
            device.step(a, np.zeros(0) if gamma is None else gamma, DAMPING)
        return EVALUATION_SWEEPS

    def damped(self, sweeps: int) -> Plan | None:
        """Damped value iteration, from the best v, or from where it stopped the last time."""
        self.stage = "damped value iteration"
        device = self.device
        device.replace(self.best if self.damped_values is None else self.damped_values)
        for _ in range(sweeps):
            if self.sweep_and_judge(DAMPING_WHEN_SLOW):
                return self.plan()
            device.damped_move(DAMPING_WHEN_SLOW)
        if self.damped_values is None:
            self.damped_values = device.copy(device.v)
        else:
            self.damped_values.copy_to_device(device.v)
        return None
