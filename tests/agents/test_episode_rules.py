"""Shorter episodes of every agent that plans in doubling ones: the rule, the audit of it, files, and what is proven."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry
from gainful.agents.planning_agent import PlanningAgent
from gainful.audit import audit_run
from gainful.audit.kinds import AUDITED
from gainful.errors import DeviceError
from gainful.simulation.device.planners import device_planner

NEEDED: dict[str, dict[str, Any]] = {
    "scal-plus": {"span": 8.0},
    "scal": {"span": 8.0},
    "kl-ucrl": {"horizon": 2000},
    "opt-psrl": {"horizon": 2000},
    "pmevi-dt": {"horizon": 2000},
    "mbie-eb": {"discount": 0.9, "m": 100},
}
PLANNERS = [n for n in registry.names() if issubclass(registry.agent_class(n), PlanningAgent)]
WITHOUT = ("optimistic-q", "epsilon-greedy-q", "fixed", "ucbvi", "imed-rl")
"""Agents whose episodes, if they have any, do not depend on visits."""


def made(name: str, **options: Any) -> Any:
    return registry.agent_class(name)(6, 2, **{**NEEDED.get(name, {}), **options})


def test_every_agent_with_doubling_episodes_has_a_choice_of_them() -> None:
    with_a_choice = {n for n in registry.names() if "episodes" in inspect.signature(registry.agent_class(n)).parameters}
    assert with_a_choice == {*PLANNERS}
    assert {*registry.names()} == {*PLANNERS, *WITHOUT}
    assert all("episodes" in inspect.signature(made).parameters for made in (gf.CSCALPlus, gf.CKLSCALPlus, gf.UCCRL))


def test_a_rule_of_another_name_is_refused_and_none_but_doubling_runs_on_a_gpu() -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match="episodes"):
        gf.UCRL2(2, 2, episodes="tripling")  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="episodes is 'vanishing'"):
        device_planner(gf.UCRL2(2, 2, episodes="vanishing"))


def test_guarantees_say_what_shorter_episodes_change() -> None:
    assert "34·" in gf.UCRL2(2, 2).guarantee.bound
    assert "34·" not in gf.UCRL2(2, 2, episodes="vanishing").guarantee.bound
    for agent in (gf.UCRL2B, gf.TUCRL, gf.UCRL2):
        assert "·S·A·sqrt(T)" in agent(2, 2, episodes="vanishing-sqrt").guarantee.bound
        assert "shorter episodes" in agent(2, 2, episodes="vanishing").guarantee.source
        assert "shorter episodes" not in agent(2, 2).guarantee.source


def limits_of(agent: PlanningAgent, horizon: int) -> tuple[list[tuple[int, float, float]], gf.Run]:
    """t_k, f_k and sp(v_k) of every episode of a run on RiverSwim."""
    seen: list[tuple[int, float, float]] = []
    agent.on_episode = lambda view: seen.append((view.step, view.plan.multiplier, float(np.ptp(view.plan.values))))
    return seen, gf.simulate(agent, gf.environments.riverswim(6), horizon, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNERS)
def test_vanishing_episodes_are_those_of_the_equation_audited_and_continued_from_a_file(
    name: str, tmp_path: Path
) -> None:
    mdp = gf.environments.riverswim(6)
    seen, run = limits_of(made(name, episodes="vanishing"), 2000)
    most = 0.0
    for step, f, span in seen:
        most = max(most, span)
        rule_says = 1.0 if step < 2 else min(1.0, np.sqrt(12 * max(1.0, most) / step))
        assert f == pytest.approx(rule_says, rel=1e-12, abs=0)
    shorter, _ = limits_of(made(name, episodes="vanishing-sqrt"), 2000)
    assert all(f == (1.0 if t < 2 else pytest.approx(np.sqrt(np.log(t) / t), rel=1e-12, abs=0)) for t, f, _ in shorter)
    for rule in ("vanishing", "vanishing-sqrt"):
        if name not in AUDITED:
            continue
        found = audit_run(made(name, episodes=rule), mdp, 1500, seed=4)
        assert set(found.failed) <= {"optimism"}
        wanted = {"episode-rule", "episode-count"}
        if name == "balanced-kl-scal-plus":
            wanted = {"episode-rule"}  # balancing ends episodes too, and no number of them is claimed
        assert wanted <= {n for n, finding in found.findings.items() if finding.checks}
    agent = made(name, episodes="vanishing")
    gf.simulate(agent, mdp, 700, seed=3)
    agent.save(tmp_path / "agent")
    again = gf.load_agent(tmp_path / "agent")
    for one in (agent, again):
        for t in range(300):
            one.observe(t % 6, one.act(t % 6), (t % 3) / 2, (t * 7) % 6)
    assert np.array_equal(agent.episodes["step"], again.episodes["step"])
    assert run.episodes.size == len(seen)
