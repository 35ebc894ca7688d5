"""Random sparse problems."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import choice, real, whole
from gainful.machine import check_table_size
from gainful.mdp.model import MDP

_PAIRS_AT_ONCE = 1 << 20  # bounds the temporary arrays; changing it changes every instance


def garnet(
    n_states: int = 100,
    n_actions: int = 3,
    branching: int = 5,
    *,
    instance: int = 0,
    rewards: Literal["uniform", "states"] = "uniform",
    n_rewarded: int = 10,
    reset_probability: float = 0.0,
    reward_law: Literal["deterministic", "bernoulli"] = "deterministic",
) -> MDP:
    """Garnet: random transitions to `branching` next states per pair, one random problem per `instance`.

    Each pair has `branching` distinct next states, drawn uniformly without replacement; their probabilities are the
    spacings of branching - 1 sorted uniforms. The problem is determined by the arguments: PCG64 seeded by
    SeedSequence(instance), in a fixed order of draws.
    Source: Archibald, McKinnon & Thomas, On the generation of Markov decision processes, JORS 46 (1995).

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    branching : int
        The number of next states of each pair, at most `n_states`.
    instance : int
        Which random problem, at least 0.
    rewards : {"uniform", "states"}
        r(s,a) uniform on [0, 1]; or 1 in `n_rewarded` random states whatever the action, and 0 elsewhere.
    n_rewarded : int
        The number of rewarded states, for rewards="states".
    reset_probability : float
        If positive, every pair moves to state 0 with this probability and otherwise as drawn, so that all policies
        share a recurrent state.
    reward_law : {"deterministic", "bernoulli"}
        How rewards are drawn.

    Returns
    -------
    MDP
        There is no closed form for the gain. The problem is communicating with overwhelming probability once
        branching * n_actions is well above log(n_states).

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.garnet(50, 2, 4, instance=7)
    MDP('garnet', 50 states, 2 actions, 400 transitions)
    """
    S = whole("n_states", n_states, 1, 2**31 - 1)
    A = whole("n_actions", n_actions, 1)
    b = whole("branching", branching, 1, S)
    check_table_size("n_states", S, A, 75.0 + 25.0 * (b + 1), "a Garnet")  # measured
    m = real("reset_probability", reset_probability, 0.0, 1.0)
    kind = choice("rewards", rewards, ("uniform", "states"))
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    rewarded = whole("n_rewarded", n_rewarded, 1, S) if kind == "states" else 0
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(whole("instance", instance, 0))))

    n_pairs = S * A
    width = b if m == 0.0 else b + 1
    indices = np.empty((n_pairs, width), dtype=np.uint32)
    probabilities = np.empty((n_pairs, width))
    for begin in range(0, n_pairs, _PAIRS_AT_ONCE):
        rows = slice(begin, min(begin + _PAIRS_AT_ONCE, n_pairs))
        n = rows.stop - begin
        indices[rows, :b] = _subsets(rng, n, S, b)
        probabilities[rows, :b] = _spacings(rng, n, b)
    if m > 0.0:
        probabilities[:, :b] *= 1.0 - m
        indices[:, b], probabilities[:, b] = 0, m
    if kind == "uniform":
        R = rng.random((S, A))
    else:
        R = np.zeros((S, A))
        R[rng.choice(S, size=rewarded, replace=False)] = 1.0
    return MDP.from_rows(
        np.arange(n_pairs + 1, dtype=np.int64) * width,
        indices.reshape(-1),
        probabilities.reshape(-1),
        R,
        reward_law="bernoulli" if law == "bernoulli" else "deterministic",
        name="garnet",
    )


def _subsets(rng: np.random.Generator, n: int, S: int, b: int) -> NDArray[Any]:
    """Uniform b-subsets of range(S), n of them, each sorted; shape (n, b)."""
    if b == S:
        return np.broadcast_to(np.arange(S, dtype=np.uint32), (n, S))
    if b * b > 8 * S:  # the b smallest of S random keys, in pieces of bounded size
        out = np.empty((n, b), dtype=np.uint32)
        step = max(1, 2**22 // S)
        for begin in range(0, n, step):
            keys = rng.random((min(step, n - begin), S))
            out[begin : begin + step] = np.argpartition(keys, b - 1, axis=1)[:, :b]
        out.sort(axis=1)
        return out
    # Floyd: the k-th draw is uniform on 0..j and replaced by j if already taken, for j = S-b .. S-1
    chosen = np.empty((b, n), dtype=np.uint32)
    for k, j in enumerate(range(S - b, S)):
        draw = rng.integers(0, j + 1, size=n, dtype=np.uint32)
        taken = np.zeros(n, dtype=bool)
        for earlier in chosen[:k]:
            taken |= earlier == draw
        draw[taken] = j
        chosen[k] = draw
    chosen = np.ascontiguousarray(chosen.T)
    chosen.sort(axis=1)
    return chosen


def _spacings(rng: np.random.Generator, n: int, b: int) -> NDArray[np.float64]:
    """The b gaps that b - 1 sorted uniforms leave in [0, 1], uniform on the simplex; shape (n, b)."""
    cuts = np.empty((n, b + 1))
    cuts[:, 0], cuts[:, b] = 0.0, 1.0
    inner = rng.random((n, b - 1))
    inner.sort(axis=1)
    cuts[:, 1:b] = inner
    return np.diff(cuts, axis=1)
