"""Chain structure: small examples by hand, and all deterministic policies enumerated on random ones."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gainful.mdp.model import MDP
from gainful.mdp.structure import Structure, recurrent_classes, structure
from tests.strategies import mdps


def lists(arrays: tuple[NDArray[np.int64], ...] | list[NDArray[np.int64]]) -> list[list[int]]:
    return [[int(x) for x in a] for a in arrays]


def from_moves(moves: list[list[list[int]]], labels: list[str] | None = None) -> MDP:
    """moves[s][a] lists the next states, equally likely; an empty list is an action the state does not have."""
    S, A = len(moves), max(len(m) for m in moves)
    P, allowed = np.zeros((S, A, S)), np.zeros((S, A), dtype=bool)
    for s, a in itertools.product(range(S), range(A)):
        if a < len(moves[s]) and moves[s][a]:
            allowed[s, a] = True
            P[s, a, moves[s][a]] = 1.0 / len(moves[s][a])
    return MDP(P, np.zeros((S, A)), allowed=allowed, state_labels=labels)


@pytest.mark.parametrize(
    ("moves", "label", "unichain", "classes", "transient"),
    [
        ([[[0]]], "communicating", True, [[0]], []),
        ([[[1]], [[0]]], "communicating", True, [[0, 1]], []),  # periodic
        ([[[0], [1]], [[1], [0]]], "communicating", False, [[0, 1]], []),  # staying in both: two classes
        ([[[0, 1], [1]], [[0]]], "communicating", True, [[0, 1]], []),  # state 0 cannot be avoided
        ([[[1]], [[1]]], "unichain", True, [[1]], [0]),
        ([[[1, 2]], [[2]], [[1, 2], [2]]], "unichain", True, [[1, 2]], [0]),
        ([[[1, 2]], [[1], [2]], [[2], [1]]], "weakly communicating", False, [[1, 2]], [0]),
        ([[[0]], [[0, 2]], [[2]]], "multichain", False, [[0], [2]], [1]),
        ([[[0], [1]], [[1]]], "multichain", False, [[0], [1]], []),
        ([[[1]], [[0], [0, 2]], [[2]]], "multichain", False, [[0, 1], [2]], []),
    ],
)
def test_small_examples(
    moves: list[list[list[int]]], label: str, unichain: bool, classes: list[list[int]], transient: list[int]
) -> None:
    found = structure(from_moves(moves))
    assert found == label
    assert found.unichain is unichain
    assert lists(found.classes) == classes
    assert found.transient.tolist() == transient


def test_a_state_that_only_leads_out_drags_its_predecessors_along() -> None:
    # 0 <-> 1 <-> 2 is one strong component, but state 2 can only leave to 3 as well: then 1, then 0 lose their pairs
    found = structure(from_moves([[[1]], [[0, 2]], [[1, 3]], [[3]]]))
    assert found == "unichain"
    assert lists(found.classes) == [[3]]
    assert found.transient.tolist() == [0, 1, 2]


def test_a_long_chain_is_undone_in_one_round() -> None:
    S = 20_000
    moves = [[[1]]] + [[[s - 1, s + 1]] for s in range(1, S - 1)] + [[[S - 1]]]
    indptr = np.concatenate([[0], np.cumsum([len(m[0]) for m in moves])])
    indices = np.concatenate([m[0] for m in moves])
    mdp = MDP.from_rows(indptr, indices, np.repeat(1.0 / np.diff(indptr), np.diff(indptr)), np.zeros((S, 1)))
    found = structure(mdp)
    assert found == "unichain"
    assert lists(found.classes) == [[S - 1]]
    assert found.transient.size == S - 1


def test_text_uses_labels_and_cuts_long_lists() -> None:
    found = structure(from_moves([[[0]], [[0, 2]], [[2]]], labels=["win", "play", "lose"]))
    text = found.describe([1.5, -2.0])
    assert "class 1 (1 state, gain 1.5): win" in text
    assert "class 2 (1 state, gain -2): lose" in text
    assert "transient (1 state): play" in text
    many = structure(from_moves([[[s]] for s in range(30)]))
    assert "… and 22 more classes" in many.describe()
    wide = structure(from_moves([[[(s + 1) % 30]] for s in range(30)]))
    assert "… (30 in all)" in wide.describe()


def test_a_structure_is_a_word_read_only_and_survives_pickling() -> None:
    found = structure(from_moves([[[1]], [[1]]]))
    assert isinstance(found, str)
    assert f"{found}" == "unichain"
    with pytest.raises(AttributeError):
        found.unichain = False  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.transient[0] = 3
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, Structure)
    assert again == found
    assert lists(again.classes) == [[1]]


def test_recurrent_classes_of_one_chain_ignore_stored_zeros() -> None:
    P = sp.csr_array((np.array([1.0, 0.0, 0.5, 0.5, 1.0]), np.array([0, 1, 0, 2, 2]), np.array([0, 2, 4, 5])))
    classes, transient = recurrent_classes(P)
    assert lists(classes) == [[0], [2]]
    assert transient.tolist() == [1]


def chain_classes(P: NDArray[np.float64]) -> list[frozenset[int]]:
    """Recurrent classes from reachability, by powers of the graph."""
    reach = np.linalg.matrix_power((P > 0) + np.eye(len(P)), len(P)) > 0
    both = reach & reach.T
    return list({frozenset(np.flatnonzero(both[s]).tolist()) for s in range(len(P)) if (reach[s] == both[s]).all()})


@given(mdps(max_states=4, max_actions=3, max_support=3, disallowed=True))
def test_structure_agrees_with_all_deterministic_policies(mdp: MDP) -> None:
    dense, _ = mdp.to_dense()
    choices = [np.flatnonzero(row) for row in mdp.allowed]
    per_policy = [
        chain_classes(dense[np.arange(mdp.n_states), list(actions)]) for actions in itertools.product(*choices)
    ]
    found = structure(mdp)
    unichain = all(len(classes) == 1 for classes in per_policy)
    recurrent = set().union(*(c for classes in per_policy for c in classes))
    assert set(found.transient.tolist()) == set(range(mdp.n_states)) - recurrent
    # maximal end components: recurrent classes of policies, joined while one can go back and forth surely
    for classes in per_policy:
        for c in classes:
            assert sum(c <= set(m.tolist()) for m in found.classes) == 1
    for m in found.classes:
        inside = np.zeros(mdp.n_states, dtype=bool)
        inside[m] = True
        stays = mdp.allowed & (dense[:, :, ~inside].sum(axis=2) == 0)  # pairs that cannot leave m
        assert stays[m].any(axis=1).all()
        graph = np.where(stays[:, :, None], dense, 0.0).sum(axis=1)[np.ix_(m, m)]
        assert connected_components(graph, connection="strong")[0] == 1
    connected = connected_components(dense.sum(axis=1), connection="strong")[0] == 1
    assert (found == "communicating") == connected
    if len(found.classes) > 1:
        assert found == "multichain"
    assert found.unichain is unichain  # at most 81 policies, so never undecided
    if found == "unichain":
        assert unichain
        assert not connected
