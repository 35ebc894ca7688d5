"""The sweeps of PMEVI over KL-SCAL+'s balls: those of `planning.kl_on_counts`, with Γ and β (Boone & Zhang 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.kl_dual import DualRows, DualSpace, KLPairs, measure, solve_pairs
from gainful.planning.kl_on_counts import (
    GIVE_UP_SHARE,
    ROUNDING_CHECK,
    TRIAL_SHARE,
    KLPlanner,
    KLProblem,
    KLState,
    choose_best,
    kl_sweeps,
    largest_slack,
    limits_of,
    listed_greedy,
    listed_rivals,
    lower_values,
    may_be_best,
    step,
)
from gainful.planning.order_projection import BiasConstraint, mitigated, order_projection, project_onto
from gainful.planning.rounding import UNIT_ROUNDOFF
from gainful.planning.truncation import truncated_range


@inlined
def mitigate_pair(within: BiasConstraint, pairs: KLPairs, v: Any, k: int) -> None:
    """Cut both bounds of the value of a pair at r̃ + p̄·v + β."""
    most = mitigated(within, pairs.rewards, v, k)
    if most < pairs.value[k]:
        least = min(pairs.value[k] - pairs.gap[k], most - 1e-12 * (abs(most) + 1.0))  # most was rounded up
        pairs.value[k] = most
        pairs.gap[k] = most - least


@kernel
def mitigated_sweep(
    rows: DualRows, pairs: KLPairs, space: DualSpace, state: KLState, problem: KLProblem, within: BiasConstraint
) -> float:
    """𝓛v from above, and its greedy actions; returns sp(v)."""
    v, n_actions = state.values, problem.n_actions
    span: float = measure(v, state.reachable, space)
    limits = limits_of(state, problem.precision, span, False)
    solve_pairs(rows, pairs, space, limits, listed_greedy(space, state, n_actions))
    for s in range(v.size):
        mitigate_pair(within, pairs, v, s * n_actions + state.actions[s])
    solve_pairs(rows, pairs, space, limits, listed_rivals(pairs, space, state, n_actions))
    for s in range(v.size):
        mine = s * n_actions + state.actions[s]
        for k in range(s * n_actions, (s + 1) * n_actions):
            if k != mine and may_be_best(pairs, k, state.rise[0], pairs.value[mine]):
                mitigate_pair(within, pairs, v, k)
    choose_best(pairs, state, n_actions)
    return span


@kernel
def projected_kl_sweeps(
    rows: DualRows,
    pairs: KLPairs,
    space: DualSpace,
    state: KLState,
    problem: KLProblem,
    within: BiasConstraint,
    max_sweeps: int,
) -> tuple[int, float, float, float, bool]:
    """`kl_sweeps` with Γ and β in place of the cut at c."""
    rows, pairs, space, state = DualRows(*rows), KLPairs(*pairs), DualSpace(*space), KLState(*state)
    problem, within = KLProblem(*problem), BiasConstraint(*within)
    v, room = state.values, np.empty(state.values.size)
    low, high, span = -np.inf, np.inf, 0.0
    for n in range(max_sweeps):
        span = mitigated_sweep(rows, pairs, space, state, problem, within)
        project_onto(state.best, within.differences, room)
        low, high = truncated_range(state.best, v, np.inf)
        rounding = 8.0 * UNIT_ROUNDOFF * (span + 2.0)
        if high - low <= TRIAL_SHARE * problem.precision:
            widest = lower_values(rows, pairs, space, state, problem, span)
            for s in range(v.size):
                k = s * problem.n_actions + state.actions[s]
                most = mitigated(within, pairs.rewards, v, k)
                state.lower[s] = min(state.lower[s], most - 1e-12 * (abs(most) + 1.0))
            project_onto(state.lower, within.differences, room)
            low, _ = truncated_range(state.lower, v, np.inf)
            low, high = low - rounding, high + rounding
            if high - low <= problem.precision:
                return n + 1, low, high, span, True
            if widest > GIVE_UP_SHARE * problem.precision:
                return -n - 1, low, high, span, False
        elif n == ROUNDING_CHECK and largest_slack(rows, pairs, state, problem, span) > problem.precision:
            return -n - 1, low, high, span, False
        step(state, problem.damping, np.inf)
    return max_sweeps, low, high, span, False


class ProjectedKLPlanner(KLPlanner):
    """The planner of KL-SCAL+ within a constraint on the bias, if there is one."""

    within: BiasConstraint | None = None
    """In units of r_max."""

    def begin(self, pairs: tuple[Any, ...], state: tuple[Any, ...]) -> None:
        """Project the values to start from, too."""
        super().begin(pairs, state)
        if self.within is not None:
            v: NDArray[np.float64] = self.state.values
            v[:] = order_projection(v, self.within.differences)

    def sweeps(
        self, rows: tuple[Any, ...], groups: tuple[Any, ...], problem: tuple[Any, ...], max_sweeps: int
    ) -> tuple[int, float, float, float, bool]:
        """Sweep with Γ and β."""
        found: tuple[int, float, float, float, bool]
        if self.within is None:
            found = kl_sweeps(rows, *groups, problem, max_sweeps)
        else:
            found = projected_kl_sweeps(rows, *groups, problem, tuple(self.within), max_sweeps)
        return found
