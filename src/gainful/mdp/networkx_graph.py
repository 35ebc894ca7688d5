"""An MDP as a graph of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError, TooLargeError

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

MOST_EDGES = 1_000_000
"""Transitions up to which a graph is made: one takes about a kilobyte."""


def to_networkx(mdp: MDP, max_edges: int = MOST_EDGES) -> Any:
    """A MultiDiGraph with one node per state and one edge per transition; see `MDP.to_networkx`."""
    try:
        import networkx
    except ImportError as error:
        raise InvalidArgumentError(
            "networkx", hint="pip install 'gainful[graph]'", problem="graphs need networkx, which is not installed"
        ) from error
    if mdp.n_transitions > max_edges:
        raise TooLargeError(
            f"a graph of {mdp.n_transitions:,} transitions has more than {max_edges:,} edges",
            name="max_edges",
            found=mdp.n_transitions,
            hint="raise max_edges (an edge takes about 1 kB), or use mdp.matrix()",
        )
    graph = networkx.MultiDiGraph(name=mdp.name or "", objective=mdp.units.objective)
    names = [s if mdp.state_labels is None else mdp.state_labels[s] for s in range(mdp.n_states)]
    for s, name in enumerate(names):
        graph.add_node(name, index=s, start=float(mdp.start[s]))
    pair = np.repeat(np.arange(mdp.n_states * mdp.n_actions), np.diff(mdp.indptr))
    rewards = mdp.units.reward(mdp.pair_rewards[pair] if mdp.entry_rewards is None else mdp.entry_rewards)
    state, action = np.divmod(pair, mdp.n_actions)
    columns = (state.tolist(), action.tolist(), mdp.indices.tolist(), mdp.probabilities.tolist(), rewards.tolist())
    for s, a, target, p, reward in zip(*columns, strict=True):
        word = a if mdp.action_labels is None else mdp.action_labels[a]
        graph.add_edge(names[s], names[target], action=word, probability=p, **{mdp.units.objective: reward})
    return graph
