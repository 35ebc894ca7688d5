"""Hypothesis strategies: random small MDPs, shared by the tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from gainful.mdp.model import MDP, RewardLaw


@st.composite
def mdps(
    draw: st.DrawFn,
    max_states: int = 6,
    max_actions: int = 3,
    *,
    min_states: int = 1,
    min_actions: int = 1,
    communicating: bool = False,
    disallowed: bool = False,
    labels: bool = False,
    costs: bool = False,
    laws: Sequence[RewardLaw] = ("deterministic",),
    reward_low: float = 0.0,
    reward_high: float = 1.0,
    max_support: int = 4,
    random_start: bool = False,
) -> MDP:
    """A random MDP: sparse supports, probabilities k/n of small integers, rewards in [reward_low, reward_high].

    `communicating`: some action of each state reaches the next state of a random cycle through all states.
    `disallowed`: states may lack some actions, never all. `labels`: states and actions may have names.
    `costs`: the objective may be "cost". `laws`: the reward laws to choose from.
    """
    S = draw(st.integers(min_states, max_states))
    A = draw(st.integers(min_actions, max_actions))
    allowed = np.ones((S, A), dtype=bool)
    if disallowed:
        masks = st.integers(1, 2**A - 1)  # at least one action each
        for s in range(S):
            mask = draw(masks)
            allowed[s] = [bool(mask >> a & 1) for a in range(A)]
    supports = st.dictionaries(st.integers(0, S - 1), st.integers(1, 8), min_size=1, max_size=min(S, max_support))
    cycle = draw(st.permutations(range(S))) if communicating else list(range(S))
    following = {s: cycle[(i + 1) % S] for i, s in enumerate(cycle)}
    P = np.zeros((S, A, S))
    for s in range(S):
        actions = [int(a) for a in np.flatnonzero(allowed[s])]
        bridge = draw(st.sampled_from(actions)) if communicating else -1
        for a in actions:
            for target, weight in draw(supports).items():
                P[s, a, target] = weight
            if a == bridge and P[s, a, following[s]] == 0.0:
                P[s, a, following[s]] = 1.0
            P[s, a] /= P[s, a].sum()
    law = draw(st.sampled_from(list(laws)))
    low, high = (0.0, 1.0) if law == "bernoulli" else (reward_low, reward_high)
    reward = st.floats(low, high, allow_nan=False, allow_subnormal=False)
    shape = (S, A, S) if law == "transition" else (S, A)
    size = int(np.prod(shape))
    R = np.array(draw(st.lists(reward, min_size=size, max_size=size))).reshape(shape)
    start: int | np.ndarray = 0
    if random_start:
        weights = np.array(draw(st.lists(st.integers(0, 5), min_size=S, max_size=S)), dtype=float)
        weights[draw(st.integers(0, S - 1))] += 1.0
        start = weights / weights.sum()
    named = labels and draw(st.booleans())
    return MDP(
        P, R, reward_law=law, start=start, allowed=allowed,
        state_labels=[f"s{s}" for s in range(S)] if named else None,
        action_labels=[f"a{a}" for a in range(A)] if named else None,
        objective=draw(st.sampled_from(["reward", "cost"])) if costs else "reward",
    )  # fmt: skip
