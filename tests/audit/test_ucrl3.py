"""The audit of UCRL3: nothing is violated, sets without a proof are seen to fail, and distances are those of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.audit import audit, audit_run
from gainful.audit.rows import TrueRows
from gainful.audit.seen import Seen
from gainful.audit.set_plans import EntryBounds
from gainful.audit.ucrl3 import distances_to_ends

STATEMENTS = {
    *("set-formula", "rewards-in-set", "rows-in-set", "optimism", "support", "certificate", "precision", "greedy"),
    *("episode-rule", "episode-count", "clock", "execution", "data"),
}


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_end_of_each_row_is_that_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, pairs = 5, 6
    true, counts = rng.dirichlet(np.full(S, 0.4), size=pairs), rng.integers(0, 3, size=(pairs, S))
    true[true < 0.05] = 0.0
    counts[0] = 0  # a pair never visited
    visits = counts.sum(axis=1)
    pair, state = np.nonzero(counts)
    p = counts[pair, state] / visits[pair]
    ptr = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    seen = Seen(visits, ptr, state.astype(np.uint32), p, pair, np.zeros(pairs), np.zeros(pairs))
    below, above, unseen = rng.random(p.size), rng.random(p.size), rng.random(pairs)
    bounds = EntryBounds(p - below, p + above, unseen, 0.0, -1)
    rows, columns = np.nonzero(true)
    indptr = np.concatenate([[0], np.cumsum((true > 0).sum(axis=1))])
    found, allowed = distances_to_ends(seen, bounds, TrueRows(indptr, columns, true[rows, columns]), S)
    for k in range(pairs):
        cases = []
        for y in range(S):
            entry = np.flatnonzero((pair == k) & (state == y))
            if entry.size:
                j = int(entry[0])
                cases.append((abs(true[k, y] - p[j]), above[j] if true[k, y] > p[j] else below[j]))
            elif true[k, y] > 0.0 and visits[k] > 0:
                cases.append((true[k, y], unseen[k]))
        if cases:
            expected = max(cases, key=lambda case: case[0] / case[1])
            assert (found[k], allowed[k]) == pytest.approx(expected, rel=0, abs=1e-15)
        else:
            assert (found[k], allowed[k]) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"tails": "printed"}, {"published_code": True}, {"width_scale": 0.02}], ids=str
)
def test_what_follows_from_the_definition_holds_with_any_constants(options: dict[str, Any]) -> None:
    for mdp in (gf.environments.riverswim(6), gf.environments.garnet(5, 2, 3, reward_law="bernoulli")):
        agent = gf.UCRL3.for_mdp(mdp, seed=1, **options)
        run = audit_run(agent, mdp, 4000, seed=1)
        assert set(run.findings) == STATEMENTS
        assert set(run.failed) <= {"rewards-in-set", "rows-in-set", "optimism"}
        assert bool(run.failed) == bool(options.keys() & {"published_code", "width_scale"})
        plain = gf.simulate(gf.UCRL3.for_mdp(mdp, seed=1, **options), mdp, 4000, seed=1)
        assert np.array_equal(plain.episodes["gain_high"], agent.episodes["gain_high"])


def almost_certain() -> gf.MDP:
    """Three states in a circle: one action stays, one moves on, and both fail in one of a hundred cases."""
    P = np.zeros((3, 2, 3))
    for s in range(3):
        P[s, 0, [s, (s + 1) % 3]] = 0.99, 0.01
        P[s, 1, [s, (s + 1) % 3]] = 0.01, 0.99
    return gf.MDP(P, [[0.2, 0.0], [0.0, 0.0], [0.0, 1.0]])


@pytest.mark.slow
def test_the_printed_tails_are_seen_to_miss_the_true_model_and_the_proven_ones_not() -> None:
    mdp = almost_certain()
    proven = audit(lambda seed: gf.UCRL3.for_mdp(mdp, seed=seed), mdp, 300, runs=25)
    printed = audit(lambda seed: gf.UCRL3.for_mdp(mdp, seed=seed, tails="printed"), mdp, 300, runs=25)
    assert proven["rows-in-set"].failed_runs == 0
    assert proven.ok
    assert printed["rows-in-set"].verdict == "violated"
    assert not printed["rows-in-set"].promised
    assert printed["set-formula"].verdict == "certified"
