"""`MDP.from_function`: models written as functions, on their reachable states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import GainfulError, InvalidArgumentError, InvalidMDPError, MemoryLimitError, TooLargeError

Outcome = tuple[Any, float, float]


def queue(length: int, action: str) -> list[Outcome]:
    served = 0.6 if action == "fast" else 0.3
    cost = length + (2.0 if action == "fast" else 0.0)
    return [(max(length - 1, 0), served, cost), (min(length + 1, 4), 1.0 - served, cost)]


def test_the_model_is_that_of_the_functions() -> None:
    mdp = gf.MDP.from_function(0, ["slow", "fast"], queue, objective="cost", name="queue")
    assert (mdp.n_states, mdp.action_labels, mdp.state_labels, mdp.name) == (5, ("slow", "fast"), None, "queue")
    rows = [(s, a, *outcome) for s in range(5) for a in ("slow", "fast") for outcome in queue(s, a)]
    columns = zip(*rows, strict=True)
    table = dict(zip(("state", "action", "next_state", "probability", "cost"), columns, strict=True))
    assert gf.solve(mdp).gain == pytest.approx(gf.solve(gf.MDP.from_table(table)).gain, rel=0, abs=2e-8)
    assert mdp.reward_law == "deterministic"


def test_only_reachable_states_are_there_and_keep_their_names() -> None:
    def actions(state: tuple[str, int]) -> Iterator[str]:
        yield "stay"
        if state[1] < 2:
            yield "up"

    def outcomes(state: tuple[str, int], action: str) -> list[Outcome]:
        return [((state[0], state[1] + 1), 1.0, 5.0)] if action == "up" else [(state, 0.5, 1.0), (("a", 0), 0.5, 0.0)]

    mdp = gf.MDP.from_function({("a", 0): 0.25, ("b", 1): 0.75}, actions, outcomes)
    assert mdp.state_labels == ("('a', 0)", "('b', 1)", "('a', 1)", "('b', 2)", "('a', 2)")
    assert mdp.start.tolist() == [0.25, 0.75, 0.0, 0.0, 0.0]
    assert mdp.allowed[:, 1].tolist() == [True, True, True, False, False]
    assert mdp.reward_law == "transition"
    assert mdp.transition("('b', 1)", "stay") == {0: 0.5, 1: 0.5}


def test_actions_in_any_order_and_labels_that_would_collide() -> None:
    order: dict[Any, list[str]] = {1: ["b", "a"], "1": ["a", "b"]}
    mdp = gf.MDP.from_function(1, lambda s: order[s], lambda s, a: [("1" if s == 1 else 1, 1.0, float(a == "a"))])
    assert mdp.state_labels == ("1", "'1'")
    assert mdp.action_labels == ("b", "a")
    assert mdp.rewards.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_labels_may_be_left_out_or_made_by_a_function() -> None:
    def ring(state: str, action: int) -> list[Outcome]:
        return [("b" if state == "a" else "a", 1.0, 0.0)]

    assert gf.MDP.from_function("a", [0], ring, labels=False).state_labels is None
    assert gf.MDP.from_function("a", [0], ring, labels=str.upper).state_labels == ("A", "B")


def test_progress_counts_states() -> None:
    seen: list[tuple[int, int]] = []
    gf.MDP.from_function(0, [0], lambda s, _: [((s + 1) % 3000, 1.0, 0.0)], progress=lambda *x: seen.append(x))
    assert seen[0] == (0, 1)
    assert seen[-1] == (3000, 3000)


@pytest.mark.parametrize(
    ("actions", "outcomes", "match"),
    [
        (lambda s: [], queue, "state 0 has no action"),
        (["a", "a"], queue, "has the action 'a' twice"),
        (["a"], lambda s, a: [(0, 0.5, 0.0)], "sums to 0.5"),
        (["a"], lambda s, a: [(0, float("nan"), 0.0)], "probability nan"),
        (["a"], lambda s, a: [(0, 1.0, float("inf"))], "is inf"),
        (["a"], lambda s, a: [(0, 1.0)], r"outcomes of state 0, action 'a' cannot be read.*\(next state, probability"),
        (["a"], lambda s, a: [(0, "1", 0.0)], "cannot be read"),
        (["a"], lambda s, a: None, "cannot be read"),
        (["a"], lambda s, a: [([0], 1.0, 0.0)], "cannot be read|not hashable"),
        (["a"], lambda s, a: [], "has no outcome"),
        ("ab", queue, "a sequence of actions"),
        (["a"], 7, "outcomes is 7"),
    ],
)
def test_functions_that_describe_no_process(actions: Any, outcomes: Any, match: str) -> None:
    with pytest.raises(GainfulError, match=match):
        gf.MDP.from_function(0, actions, outcomes)


def test_a_start_that_cannot_be() -> None:
    for start in ([0], {}, {0: 0.5}):
        with pytest.raises((InvalidArgumentError, InvalidMDPError), match="start"):
            gf.MDP.from_function(start, ["a"], lambda s, a: [(s, 1.0, 0.0)])


def test_an_infinite_state_space_is_stopped() -> None:
    with pytest.raises(TooLargeError, match="more than 500 states can be reached; the last one is 500"):
        gf.MDP.from_function(0, [0], lambda s, _: [(s + 1, 1.0, 0.0)], max_states=500)


def test_more_than_memory_should_hold_is_stopped() -> None:
    gf.set_max_memory("1 MB")
    try:
        with pytest.raises(MemoryLimitError, match=r"states and .* transitions would take about"):
            gf.MDP.from_function(0, [0], lambda s, _: [(s + 1, 1.0, 0.0)])
    finally:
        gf.set_max_memory(None)


# ---------------------------------------------------------------------- graphs


def test_a_graph_has_every_transition_with_its_numbers() -> None:
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    mdp = gf.MDP.from_function(0, ["slow", "fast"], queue, objective="cost")
    graph = mdp.to_networkx()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (5, mdp.n_transitions)
    edges = {data["action"]: data for data in graph.get_edge_data(2, 3).values()}
    assert edges["fast"] == {"action": "fast", "probability": pytest.approx(0.4), "cost": 4.0}
    assert networkx.is_strongly_connected(graph)
    total = np.zeros(5)
    for s, _, data in graph.edges(data=True):
        total[s] += data["probability"]
    assert total == pytest.approx([2.0] * 5, rel=0, abs=1e-12)
    with pytest.raises(TooLargeError, match="more than 3 edges"):
        mdp.to_networkx(max_edges=3)
