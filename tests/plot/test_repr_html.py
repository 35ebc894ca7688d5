"""What notebooks show: escaped, without scripts, without colours of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import gainful as gf
from gainful.experiments.sweep import ExperimentOutcome

EVIL = "<script>alert('x')</script>&\"$"


def checked(thing: Any) -> ElementTree.Element:
    """Well-formed, and nothing that runs, loads or paints."""
    html = thing._repr_html_()
    for word in ("<script", "http", "src=", "background", "color:", "onerror"):
        assert word not in html
    return ElementTree.fromstring(html)


def cells(tree: ElementTree.Element, table: int = 0) -> list[list[str]]:
    return [["".join(c.itertext()) for c in row] for row in tree.findall(".//table")[table].iter("tr")]


def test_a_plan_shows_gain_bracket_span_and_states() -> None:
    plan = gf.solve(gf.environments.riverswim(6))
    tree = checked(plan)
    facts = dict(cells(tree))
    assert facts["average reward per step"] == f"{plan.gain:.10g}"
    assert facts["span of the bias"] == f"{plan.span:.6g}"
    assert f"[{plan.gain_bounds[0]:.12g}, {plan.gain_bounds[1]:.12g}]" in facts["certified"]
    assert f"{plan.sweeps:,} sweep" in facts["found by"]
    rows = cells(tree, 1)
    assert rows[0] == ["state", "action", "bias"]
    assert rows[1] == ["left bank", "right", "0"]
    assert len(rows) == 7


def test_a_large_plan_shows_thirty_states() -> None:
    tree = checked(gf.solve(gf.environments.taxi()))
    assert len(cells(tree, 1)) == 31
    assert "370 more states" in "".join(tree.itertext())


def test_hostile_names_are_escaped() -> None:
    mdp = gf.MDP([[[1.0]]], [[1.0]], state_labels=[EVIL], action_labels=[EVIL], name=EVIL)
    tree = checked(gf.solve(mdp))
    assert cells(tree, 1)[1] == [EVIL, EVIL, "0"]
    assert EVIL in "".join(tree.itertext())
    failed = ExperimentOutcome(Path(EVIL), 3, 1, 1, ({"run_id": "x"},), False, 1.0)
    assert dict(cells(checked(failed)))["folder"] == str(Path(EVIL))


def test_a_run_shows_its_numbers_and_its_curve() -> None:
    run = gf.simulate(gf.PSRL(6, 2), gf.environments.riverswim(6), 1000, seed=3)
    tree = checked(run)
    facts = dict(cells(tree))
    assert facts["horizon"] == "1,000 steps"
    assert facts["optimal gain per step"] == f"{run.gain:.10g}"
    assert facts["expected regret"].startswith(f"{run.expected_regret[-1]:.6g}, ")
    assert facts["episodes"] == f"{len(run.episodes):,}"
    line = tree.find(".//polyline")
    assert line is not None
    points = np.array([[float(x) for x in p.split(",")] for p in line.attrib["points"].split()])
    assert len(points) == (run.expected_regret > 0).sum()
    assert (points >= 0).all()
    assert (points <= [360, 180]).all()
    assert line.attrib["stroke"] == "currentColor"


def test_an_agent_shows_parameters_life_guarantee_and_policy_and_changes_nothing() -> None:
    agent = gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.1)
    before = dict(cells(checked(agent)))
    assert agent.current is None
    assert before["learned from"] == "0 steps, 0 episodes"
    assert "gain of the present plan" not in before
    gf.simulate(agent, gf.environments.riverswim(6), 1000, seed=3)
    tree, episodes = checked(agent), len(agent.records)
    facts = dict(cells(tree))
    assert facts["parameters"] == "span = 7, bonus_scale = 0.1"
    assert facts["learned from"] == f"1,000 steps, {episodes} episodes"
    assert facts["guarantee"] == str(agent.guarantee)
    rows = cells(tree, 1)
    assert rows[0] == ["state", "action", "visits"]
    assert [int(row[1]) for row in rows[1:]] == [agent.predict(s) for s in range(6)]
    assert sum(int(row[2]) for row in rows[1:]) == 1000
    assert (agent.t, len(agent.records)) == (1000, episodes)


def test_an_agent_with_labels_shows_them_and_costs_stay_costs() -> None:
    moves, costs = [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 5.0], [3.0, 5.0]]
    labels = [EVIL, "worn"], ["run", EVIL]
    mdp = gf.MDP(moves, costs, objective="cost", state_labels=labels[0], action_labels=labels[1])
    agent = gf.UCRL2.for_mdp(mdp)
    agent.act("worn")
    tree = checked(agent)
    facts = dict(cells(tree))
    assert facts["costs"] == "in [0, 5]"
    low, high = (float(x) for x in facts["cost per step of the present plan"][4:-1].split(", "))
    assert -1e-9 <= low <= high <= 5.0 + 1e-9
    assert [row[0] for row in cells(tree, 1)[1:]] == [EVIL, "worn"]
    assert {row[1] for row in cells(tree, 1)[1:]} <= {"run", EVIL}


def test_an_agent_on_cells_and_a_guarantee_show_what_they_are() -> None:
    agent = gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=20), n_actions=3)
    tree = checked(agent)
    assert tree[0].text == "Discretized[UCRL2B]"
    assert dict(cells(tree))["size"] == "20 cells on 1 axis, 3 actions"
    facts = dict(cells(checked(gf.SCALPlus(2, 2, span=1.0).guarantee)))
    assert facts["holds for these constants"] == "yes"
    evil = replace(agent.guarantee, bound=EVIL, source=EVIL, assumptions=(EVIL,), reason_void="")
    assert dict(cells(checked(evil)))["assumes"] == EVIL


def test_an_evaluation_shows_gain_classes_and_states() -> None:
    mdp = gf.MDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [2.0]], state_labels=[EVIL, "b"], name=EVIL)
    found = gf.evaluate(mdp, [0, 0])
    tree = checked(found)
    facts = dict(cells(tree))
    assert facts["average reward per step, from the start"] == "1"
    assert facts["recurrent classes"] == "1 states with gain 1, 1 states with gain 2"
    assert cells(tree, 1)[1:] == [[EVIL, "1", "0", "1"], ["b", "2", "0", "0"]]


def test_reprs_are_one_short_line() -> None:
    mdp, agent = gf.environments.riverswim(6), gf.SCALPlus(6, 2, span=7.0)
    run = gf.simulate(agent, mdp, 1000, seed=3)
    regret = f"expected regret {run.expected_regret[-1]:.6g}"
    assert repr(agent) == f"SCALPlus(6 states, 2 actions, span=7, 1,000 steps, {len(agent.records)} episodes)"
    assert repr(run) == f"Run(1,000 steps, {regret}, gain 0.428622, {len(run.episodes)} episodes, seed 3)"
    assert repr(gf.evaluate(mdp, [1] * 6)).startswith("Evaluation(gain=0.4286224337")
    assert repr(agent.guarantee) == f"Guarantee({agent.guarantee.bound})"
    void = gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.1).guarantee
    assert repr(void) == "Guarantee(no guarantee: bonus_scale is 0.1, the theorem needs 1)"
    long = gf.Fixed(300, 2, policy=[0] * 300)
    assert len(repr(long)) < 120


@pytest.mark.parametrize("value", [np.nan, 0.0, -1.0])
def test_a_run_without_a_positive_regret_has_no_curve(value: float) -> None:
    run = gf.simulate(gf.PSRL(6, 2), gf.environments.riverswim(6), 100)
    flat = np.full(run.steps.size, value)
    regrets = {"regret": flat.copy(), "pseudo_regret": flat, "expected_regret": np.full(run.steps.size, np.nan)}
    odd = replace(run, **regrets, gain=value, planning_seconds=0.0, acting_seconds=0.0)  # type: ignore[arg-type]
    tree = checked(odd)
    assert tree.find(".//polyline") is None
    if np.isnan(value):
        assert dict(cells(tree))["regret"] == "unknown"
    else:
        assert dict(cells(tree))["pseudo-regret"].startswith(f"{value:.6g}, ")


@pytest.mark.parametrize(
    ("finished", "failures", "stopped", "title", "following"),
    [
        (3, (), False, "complete", "gf.plot.regret('out')"),
        (2, (), True, "stopped early", "repeat the call"),
        (2, ({"run_id": "x"},), False, "incomplete", "gainful status out"),
    ],
)
def test_an_outcome_says_what_to_do_next(
    finished: int, failures: Any, stopped: bool, title: str, following: str
) -> None:
    tree = checked(ExperimentOutcome(Path("out"), 3, finished, 1, failures, stopped, 2.0))
    assert tree[0].text == f"Experiment, {title}"
    facts = dict(cells(tree))
    assert facts["planned"] == "3 runs"
    assert facts["failed"] == str(len(failures))
    assert following in facts["next"]
