"""The optimum a run is measured against is solved once per MDP, and forgotten with it."""

from __future__ import annotations

import gc
import weakref

import gainful as gf
from gainful.simulation.optimum import known_gaps, once_per_mdp, optimal_gain


def test_each_mdp_is_solved_once_and_equal_ones_apart() -> None:
    asked: list[int] = []

    @once_per_mdp
    def size(mdp: gf.MDP) -> int:
        asked.append(id(mdp))
        return mdp.n_states

    first, second = gf.environments.riverswim(6), gf.environments.riverswim(6)
    assert [size(first), size(second), size(first), size(second)] == [6, 6, 6, 6]
    assert asked == [id(first), id(second)]


def test_an_mdp_is_not_kept_alive_and_its_number_may_be_used_again() -> None:
    gains, references = set(), []
    for n in range(2, 30):
        mdp = gf.environments.riverswim(n)
        gains.add(optimal_gain(mdp))
        assert known_gaps(mdp).size == 2 * n
        references.append(weakref.ref(mdp))
        del mdp
    gc.collect()
    assert [reference() for reference in references] == [None] * 28
    assert len(gains) > 10
