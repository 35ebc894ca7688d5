from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.optimism.scal import log_term, perturbation, width
from tests.agents.extended_runs import planned


@pytest.mark.parametrize(("visits", "n", "less"), [(0, 1, 1), (1, 1, 1), (2, 2, 1), (40, 40, 39)])
def test_the_width_is_the_equation(visits: int, n: int, less: int) -> None:
    log = log_term(6, 2, 100, 0.05)
    assert log == pytest.approx(math.log(48_000), rel=1e-15, abs=0)
    expected = math.sqrt(14 * 0.21 * log / n) + 49 / 3 * 3.0 * log / less
    assert width(0.21, log, visits, 3.0, 1.0) == pytest.approx(expected, rel=1e-14, abs=0)
    assert width(0.21, log, visits, 3.0, 0.25) == pytest.approx(expected / 4, rel=1e-14, abs=0)


def test_the_perturbation() -> None:
    assert perturbation(7.0, 2.0, 100) == pytest.approx(2 / 700, rel=1e-15, abs=0)
    assert perturbation(0.5, 1.0, 1) == 1.0


def test_the_plan_uses_the_sets_of_the_equations() -> None:
    agent = gf.SCAL(2, 2, span=3.0)
    assert np.all(planned(agent).details["confidence"].unseen == 1.0)
    assert planned(agent).details["confidence"].floor == pytest.approx(1 / 3, rel=1e-15, abs=0)
    assert agent.vacuous
    for i in range(5000):
        agent.observe(0, 1, 0.25, int(i % 4 == 0))
    agent.begin_episode()
    plan = planned(agent)
    sets, log = plan.details["confidence"], math.log(2 * 2 * 2 * 5001 / 0.05)
    w = math.sqrt(14 * 0.25 * 0.75 * log / 5000) + 49 / 3 * log / 4999
    assert sets.lower[1:3] == pytest.approx([0.75 - w, 0.25 - w], rel=1e-13, abs=0)
    assert sets.upper[1:3] == pytest.approx([0.75 + w, 0.25 + w], rel=1e-13, abs=0)
    assert sets.unseen[0, 1] == pytest.approx(49 / 3 * log / 4999, rel=1e-14, abs=0)
    assert plan.details["rewards"][0, 1] == pytest.approx(0.25 + 49 / 3 * log / 4999, rel=1e-13, abs=0)
    assert (sets.floor_state, sets.floor) == (0, pytest.approx(1 / (3 * 5001), rel=1e-15, abs=0))
    assert not agent.vacuous


@pytest.mark.parametrize("span", [1e-3, 0.1, 1.0])
def test_the_span_is_kept_also_where_the_sets_are_narrower_than_the_perturbation(span: float) -> None:
    agent = gf.SCAL(3, 2, span=span, width_scale=1e-9)
    run = gf.simulate(agent, gf.environments.riverswim(3), 3000, seed=1)
    assert np.all(run.episodes["span"] <= span)
    assert agent.current is not None
    for plan in (agent.current, planned(agent)):
        rows = plan.details["optimistic_rows"]
        for s in range(3):
            here = slice(rows.indptr[s], rows.indptr[s + 1])
            p, to = rows.probabilities[here], rows.indices[here]
            assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-12)
            assert p[to == 0].sum() >= plan.details["confidence"].floor * (1 - 1e-12)


def test_a_span_too_small_is_obeyed_and_costs_regret() -> None:
    mdp = gf.environments.riverswim(3)
    enough, small = (
        gf.simulate(gf.SCAL(n_states=3, n_actions=2, span=c, width_scale=0.1), mdp, 20_000) for c in (3, 0.01)
    )
    assert small.pseudo_regret[-1] > 3 * enough.pseudo_regret[-1]


@pytest.mark.parametrize("span", [0.0, -1.0, math.inf, math.nan])
def test_bad_spans(span: float) -> None:
    with pytest.raises(InvalidArgumentError, match="span is"):
        gf.SCAL(3, 2, span=span)
