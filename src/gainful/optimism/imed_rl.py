r"""The index of IMED-RL, exactly: what the visits of a pair tell against its being optimal (Pesquerel & Maillard 2022).

H(s,a) = N·K + ln N. With γ = max_b [r̂(s,b) + p̂(·|s,b)·h], M = r_max + max h and z = (R + h(Y) - γ)/(M - γ) ≤ 1,
K(s,a) = max over 0 ≤ λ ≤ 1 of E ln(1 - λz), R and Y drawn from the reward law and the next states that were seen
(proposition 2 there). K is 0 for a pair whose value is γ.

The laws count one sample that was never seen, of reward r_max/2 and a uniform next state, as `planning.skeleton` does.
The reward law of a pair is kept exactly up to `MOST_ATOMS` different rewards, of which three are there from the
beginning: 0, r_max/2 and r_max. A further reward is divided between its two neighbours, so that the mean stays what it
is; ln is concave, so that this only makes K smaller.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.skeleton import CountedModel, estimated_value, mean_of

MOST_ATOMS = 32
"""Different rewards of a pair that are kept apart."""
MOST_DUAL_STEPS = 100
"""Steps of the search for λ; about eight are usual."""
DUAL_PRECISION = 1e-13
"""The length of a step at which λ is found. K is flat there, so that its own error is of the order of its square."""


class RewardAtoms(NamedTuple):
    """The reward laws of all pairs: different rewards in increasing order, how often each was seen, their number."""

    value: Any
    """(S*A, MOST_ATOMS) in [0, r_max]."""
    weight: Any
    """(S*A, MOST_ATOMS) their sum is N + 1."""
    number: Any
    """(S*A,)"""


class IndexRoom(NamedTuple):
    """Room for the numbers of one decision."""

    law: Any
    """(S,) p̂ of one pair."""
    value: Any
    """(A,) r̂ + p̂·h."""
    index: Any
    """(A,) H."""


def new_atoms(pairs: int, reward_range: float) -> RewardAtoms:
    """The laws before anything was seen: one reward of r_max/2, and room for 0 and r_max."""
    value, weight = np.zeros((pairs, MOST_ATOMS)), np.zeros((pairs, MOST_ATOMS))
    value[:, :3] = 0.0, 0.5 * reward_range, reward_range
    weight[:, 1] = 1.0
    number: NDArray[np.int64] = np.full(pairs, 3, dtype=np.int64)
    return RewardAtoms(value, weight, number)


@inlined
def count_reward(atoms: RewardAtoms, pair: int, reward: float) -> None:
    """Count one reward, in [0, r_max], in the law of a pair."""
    n = atoms.number[pair]
    at = 0
    while at < n - 1 and atoms.value[pair, at] < reward:
        at += 1
    above = atoms.value[pair, at]
    if above == reward:
        atoms.weight[pair, at] += 1.0
    elif n < MOST_ATOMS:
        for j in range(n, at, -1):
            atoms.value[pair, j], atoms.weight[pair, j] = atoms.value[pair, j - 1], atoms.weight[pair, j - 1]
        atoms.value[pair, at], atoms.weight[pair, at] = reward, 1.0
        atoms.number[pair] = n + 1
    else:
        below = atoms.value[pair, at - 1]
        share = (reward - below) / (above - below)
        atoms.weight[pair, at] += share
        atoms.weight[pair, at - 1] += 1.0 - share


@kernel
def count_rewards(atoms: RewardAtoms, pairs: Any, rewards: Any) -> None:
    """Count many rewards in turn."""
    atoms = RewardAtoms(*atoms)
    for i in range(pairs.size):
        count_reward(atoms, pairs[i], rewards[i])


@inlined
def write_law(model: CountedModel, pair: int, law: Any) -> None:
    """p̂ of a pair."""
    share = 1.0 / (model.visits[pair] + 1)
    for y in range(law.size):
        law[y] = share / law.size
    for j in range(model.begin[pair], model.begin[pair] + model.length[pair]):
        law[model.next_state[j]] += share * model.count[j]


@inlined
def slopes(
    values: Any, weights: Any, law: Any, bias: Any, shift: float, scale: float, dual: float
) -> tuple[float, float]:
    """The first two derivatives of E ln(1 - λz) at λ = `dual`, z = (R + h(Y) - shift)·scale."""
    first, second = 0.0, 0.0
    for i in range(values.size):
        if weights[i] > 0.0:
            for y in range(law.size):
                z = (values[i] + bias[y] - shift) * scale
                ratio = z / (1.0 - dual * z)
                first -= weights[i] * law[y] * ratio
                second -= weights[i] * law[y] * ratio * ratio
    return first, second


@inlined
def mean_logarithm(values: Any, weights: Any, law: Any, bias: Any, shift: float, scale: float, dual: float) -> float:
    """Σ weight·p̂·ln(1 - λz) at λ = `dual`."""
    total = 0.0
    for i in range(values.size):
        if weights[i] > 0.0:
            for y in range(law.size):
                total += weights[i] * law[y] * math.log1p(-dual * ((values[i] + bias[y] - shift) * scale))
    return total


@inlined
def divergence(values: Any, weights: Any, law: Any, bias: Any, needed: float, top: float) -> float:
    """N + 1 times K of a pair whose value is below γ = `needed`; M is `top`, and `weights` add up to N + 1.

    The derivative in λ decreases from a positive number at 0. Its root is found by Newton's method inside a bracket. If
    r_max was never seen, the derivative may be positive up to λ = 1, and the maximum is then there.
    """
    scale, closed = 1.0 / (top - needed), weights[values.size - 1] == 0.0
    low, high, dual, step, steps = 0.0, 1.0, 0.0, 1.0, 0
    while abs(step) > DUAL_PRECISION and steps < MOST_DUAL_STEPS:
        first, second = slopes(values, weights, law, bias, needed, scale, dual)
        if first > 0.0:
            low = dual
        else:
            high = dual
        following = dual - first / second
        if following >= 1.0 and high == 1.0 and closed:
            following, closed = 1.0, False
        elif not low < following < high:
            following = 1.0 if low == 1.0 else 0.5 * (low + high)
        step = following - dual
        dual = following
        steps += 1
    return max(0.0, mean_logarithm(values, weights, law, bias, needed, scale, dual))


@inlined
def write_indices(model: CountedModel, atoms: RewardAtoms, bias: Any, s: int, room: IndexRoom) -> None:
    """H of every action of a state, all of which were tried; infinite for those that it does not have."""
    n_actions = model.allowed.shape[1]
    average, top, needed = mean_of(bias), -math.inf, -math.inf
    for h in bias:
        top = max(top, h)
    for a in range(n_actions):
        room.value[a] = -math.inf
        if model.allowed[s, a]:
            room.value[a] = estimated_value(model, s * n_actions + a, bias, average)
            needed = max(needed, room.value[a])
    for a in range(n_actions):
        room.index[a] = math.inf
        if model.allowed[s, a]:
            k = s * n_actions + a
            n, seen, against = model.visits[k], atoms.number[k], 0.0
            if room.value[a] < needed:
                write_law(model, k, room.law)
                values, weights = atoms.value[k, :seen], atoms.weight[k, :seen]
                total = divergence(values, weights, room.law, bias, needed, top + model.reward_range)
                against = total * (n / (n + 1.0))  # N·K
            room.index[a] = against + math.log(n)


@inlined
def untried_actions(model: CountedModel, s: int, index: Any) -> bool:
    """Whether s has actions that were never tried; `index` is then 0 for them, and infinite for all others."""
    n_actions, found = model.allowed.shape[1], False
    for a in range(n_actions):
        untried = model.allowed[s, a] and model.visits[s * n_actions + a] == 0
        index[a] = 0.0 if untried else math.inf
        found = found or untried
    return found


@inlined
def least_index(index: Any, u: float) -> int:
    """The action of the least index; among equal ones that to which u, uniform in [0, 1), leads."""
    least, ties = math.inf, 0
    for x in index:
        if x < least:
            least, ties = x, 0
        ties += x == least
    rank, chosen = int(u * ties), -1
    for a in range(index.size):
        if index[a] == least:
            if rank == 0:
                chosen = a
            rank -= 1
    return chosen
