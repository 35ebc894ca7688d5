"""The optimal bias of an estimated MDP restricted to the actions that were tried often enough, as IMED-RL plans.

The estimate counts one sample that was never seen in every pair, of reward r_max/2 and a uniform next state:
r̂(s,a) = (Σr + r_max/2)/(N+1) and p̂(y|s,a) = (N(s,a,y) + 1/S)/(N+1). So every policy of it visits every state, and each
has one gain and one bias. The skeleton of state s has the actions with N(s,a) ≥ ln²(max_b N(s,b)) (Pesquerel &
Maillard 2022, IMED-RL, algorithm 1).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gainful._compiled import inlined, kernel

MOST_EXACT_STATES = 64
"""States up to which policies are evaluated exactly, by elimination; above it, values are iterated."""
MOST_ROUNDS = 100
"""Improvements of a policy after which the last one is kept: rounding might go round in circles."""
TIE_SHARE = 1e-12
"""An action replaces another if it is better by more than this share of the largest value."""
ITERATED_PRECISION = 1e-7
"""The span of the last change, in units of r_max, at which iterated values are good enough."""
MOST_SWEEPS = 3_000
SKELETON_DAMPING = 0.9
ANY_DIFFERENCE = 1e300
"""More than any difference of two values."""


class CountedModel(NamedTuple):
    """What was counted, and what makes an estimated MDP of it."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any
    reward_sum: Any
    allowed: Any
    """(S, A) the actions that each state has."""
    reward_range: float
    """r_max; rewards are in [0, r_max]."""


class SkeletonPlan(NamedTuple):
    """The plan in force, which the next one starts from."""

    actions: Any
    """(S,) the actions of an optimal policy of the skeleton."""
    bias: Any
    """(S,) its bias, 0 in state 0."""
    gain: Any
    """(2,) a bracket on its gain, for rewards in [0, r_max]."""
    system: Any
    """(S, S + 1) room for a linear system."""


@inlined
def estimated_value(model: CountedModel, pair: int, values: Any, average: float) -> float:
    """r̂ + p̂·v of a pair, if `average` is the mean of v."""
    total = model.reward_sum[pair] + 0.5 * model.reward_range + average
    for j in range(model.begin[pair], model.begin[pair] + model.length[pair]):
        total += model.count[j] * values[model.next_state[j]]
    return total / (model.visits[pair] + 1)  # type: ignore[no-any-return]


@inlined
def least_visits(model: CountedModel, s: int) -> float:
    """ln²(max_b N(s,b)): the visits from which an action of s is in the skeleton; 0 if the state was never left."""
    n_actions = model.allowed.shape[1]
    most = 1
    for k in range(s * n_actions, (s + 1) * n_actions):
        most = max(most, model.visits[k])
    return math.log(most) ** 2


@inlined
def best_of_skeleton(
    model: CountedModel, s: int, values: Any, average: float, tie: float, kept: int
) -> tuple[int, float]:
    """The best action of the skeleton of s and its value; `kept` unless another is better by more than `tie`."""
    n_actions, least = model.allowed.shape[1], least_visits(model, s)
    chosen, best, to_beat = -1, -math.inf, -math.inf
    for i in range(n_actions):
        a = (kept + i) % n_actions  # the one kept comes first
        if model.allowed[s, a] and model.visits[s * n_actions + a] >= least:
            value = estimated_value(model, s * n_actions + a, values, average)
            if value > to_beat:
                chosen, best = a, value
                to_beat = value + tie if a == kept else value
    return chosen, best


@inlined
def mean_of(values: Any) -> float:
    """The mean, added up in order."""
    total = 0.0
    for v in values:
        total += v
    return total / values.size  # type: ignore[no-any-return]


@inlined
def largest_size(values: Any) -> float:
    """The largest |v|."""
    largest = 0.0
    for v in values:
        largest = max(largest, abs(v))
    return largest


@inlined
def write_evaluation(model: CountedModel, actions: Any, system: Any) -> None:
    """The equations g + h(s) - p̂·h = r̂ of a policy, with g in the place of h(0) = 0; right sides in the last column."""
    S, n_actions = model.allowed.shape
    for s in range(S):
        k = s * n_actions + actions[s]
        share = 1.0 / (model.visits[k] + 1)
        for j in range(S):
            system[s, j] = -share / S
        for j in range(model.begin[k], model.begin[k] + model.length[k]):
            system[s, model.next_state[j]] -= share * model.count[j]
        system[s, s] += 1.0
        system[s, 0] = 1.0
        system[s, S] = share * (model.reward_sum[k] + 0.5 * model.reward_range)


@inlined
def eliminate(system: Any, solution: Any) -> None:
    """Solve the system by Gaussian elimination with partial pivoting."""
    n = solution.size
    for i in range(n):
        pivot = i
        for j in range(i + 1, n):
            if abs(system[j, i]) > abs(system[pivot, i]):
                pivot = j
        if pivot != i:
            for j in range(i, n + 1):
                system[i, j], system[pivot, j] = system[pivot, j], system[i, j]
        for k in range(i + 1, n):
            factor = system[k, i] / system[i, i]
            if factor != 0.0:
                for j in range(i + 1, n + 1):
                    system[k, j] -= factor * system[i, j]
    for i in range(n - 1, -1, -1):
        total = system[i, n]
        for j in range(i + 1, n):
            total -= system[i, j] * solution[j]
        solution[i] = total / system[i, i]


@kernel
def improve(model: CountedModel, plan: SkeletonPlan, tie: float, residual: Any) -> bool:
    """Replace actions that are not in the skeleton, or worse than another by more than `tie`; whether any were.

    `residual` gets max_a [r̂ + p̂·h] - h, and the plan a bracket on its gain.
    """
    bias, changed, low, high = plan.bias, False, math.inf, -math.inf
    average = mean_of(bias)
    for s in range(bias.size):
        chosen, value = best_of_skeleton(model, s, bias, average, tie, plan.actions[s])
        changed = changed or chosen != plan.actions[s]
        plan.actions[s] = chosen
        residual[s] = value - bias[s]
        low, high = min(low, residual[s]), max(high, residual[s])
    plan.gain[0], plan.gain[1] = low, high
    return changed


@kernel
def plan_on_skeleton(model: CountedModel, plan: SkeletonPlan) -> None:
    """Write an optimal policy of the skeleton, its bias and its gain into `plan`, from the plan before.

    Few states: Howard's policy iteration, each policy evaluated exactly. Many: damped value iteration.
    """
    model, plan = CountedModel(*model), SkeletonPlan(*plan)
    bias, residual, exact = plan.bias, plan.system[0], plan.bias.size <= MOST_EXACT_STATES
    tie = ANY_DIFFERENCE if exact else 0.0  # the actions kept are those of the last plan that are still in the skeleton
    again, rounds = True, 0
    improve(model, plan, tie, residual)
    while again and rounds < (MOST_ROUNDS if exact else MOST_SWEEPS):
        if exact:
            write_evaluation(model, plan.actions, plan.system)
            eliminate(plan.system, bias)
            bias[0] = 0.0
            tie = TIE_SHARE * (largest_size(bias) + model.reward_range)
        else:
            for s in range(bias.size):
                bias[s] += SKELETON_DAMPING * (residual[s] - residual[0])
        changed = improve(model, plan, tie, residual)
        again = changed if exact else plan.gain[1] - plan.gain[0] > ITERATED_PRECISION * model.reward_range
        rounds += 1
