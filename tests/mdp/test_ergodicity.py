"""Ergodic MDPs: by the definition over all deterministic policies, and by the search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import TooLargeError
from gainful.mdp import ergodicity
from gainful.mdp.ergodicity import avoidable_state, is_ergodic
from gainful.mdp.structure import recurrent_classes
from gainful.planning.evaluation import chain_of


def by_definition(mdp: gf.MDP) -> bool:
    """Whether every deterministic policy has one recurrent class that is everything."""
    choices = [np.flatnonzero(mdp.allowed[s]) for s in range(mdp.n_states)]
    for policy in itertools.product(*choices):
        classes, transient = recurrent_classes(chain_of(mdp, np.array(policy))[0])
        if len(classes) > 1 or transient.size:
            return False
    return True


@st.composite
def small_mdps(draw: st.DrawFn) -> gf.MDP:
    S, A = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    row = st.lists(st.integers(0, 1), min_size=S, max_size=S).filter(any)
    P = np.array([[draw(row) for _ in range(A)] for _ in range(S)])
    return gf.MDP(P / P.sum(axis=2, keepdims=True), np.zeros((S, A)))


@settings(max_examples=60, deadline=None)
@given(small_mdps())
def test_it_is_the_definition(mdp: gf.MDP) -> None:
    assert is_ergodic(mdp) == by_definition(mdp)


def test_actions_that_are_not_allowed_do_not_count() -> None:
    P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    assert avoidable_state(gf.MDP(P, np.zeros((2, 2)))) == 1
    allowed = np.array([[True, False], [True, True]])
    assert is_ergodic(gf.MDP(P, np.zeros((2, 2)), allowed=allowed))


def test_known_environments() -> None:
    made = gf.environments.make
    assert [is_ergodic(made(name)) for name in ("riverswim", "riverswim-ergodic", "toy3d")] == [False, True, False]
    assert not is_ergodic(gf.environments.garnet(20, 3, 5))


def test_what_would_take_minutes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ergodicity, "MAX_WORK", 10)
    with pytest.raises(TooLargeError, match="would take minutes"):
        is_ergodic(gf.environments.riverswim(6))
