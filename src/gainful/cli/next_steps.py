"""What a finished run of `gainful learn` suggests to do next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gainful.cli import numbers
from gainful.cli.console import printable

if TYPE_CHECKING:
    from gainful.cli.learned import LearnedRun

WHICH_AGENT = "'Which agent, which constants' (docs/which_agent.md)"
"""The page that says which agent to use, and with which constants."""
NAMES_SHOWN = 3
"""How many unsettled states are named."""


def next_steps(found: LearnedRun, saved: bool = False, saved_agent: bool = False) -> list[str]:
    """The suggestions, the most urgent first; at least one. What is saved already is not suggested."""
    if not found.is_learner:
        return ["a fixed policy does not learn; leave out --agent for one that does"]
    steps = [*_about_the_bounds(found), *_about_the_policy(found)]
    if math.isnan(found.run.gain):
        steps.append("no model gives the optimal gain: --gain NUMBER measures regret against a number that you know")
    return steps or [_about_a_settled_policy(saved, saved_agent)]


def _about_a_settled_policy(saved: bool, saved_agent: bool) -> str:
    if saved_agent:
        return "the policy is settled: gf.open_agent takes the saved agent live (docs/live.md)"
    keep = "" if saved else "keep it with --save FILE, or "
    return f"the policy is settled: {keep}take the agent live with --save-agent FILE, then gf.open_agent (docs/live.md)"


def _longer(found: LearnedRun) -> str:
    return f"--horizon {10 * found.run.horizon:.0e}".replace("e+0", "e").replace("e+", "e")


def _about_the_bounds(found: LearnedRun) -> list[str]:
    if found.run.vacuous:
        words = "the agent's bounds are so wide that its plan ignores the data: run longer"
        return [f"{words} ({_longer(found)}), or take other constants; see {WHICH_AGENT}"]
    if found.still_linear:
        return [f"it is still exploring: run longer ({_longer(found)}), or take another agent; see {WHICH_AGENT}"]
    return []


def _about_the_policy(found: LearnedRun) -> list[str]:
    learned = found.learned
    if learned is None:
        return []
    steps, visits = [], learned.state_visits
    place = "cell" if found.factory.among_points else "state"
    against = (learned.lead < 0.0) & (learned.sure < 0.05)
    if against.any():
        n = numbers.count(int(against.sum()), place)
        steps.append(f"in {n} the agent still tries an action that the data speak against")
    unsettled = found.unsettled()
    if unsettled.size:
        named = "" if found.factory.among_points else f" ({_names(found, unsettled.tolist())})"
        seen = numbers.count(int((visits > 0).sum()), f"visited {place}")
        steps.append(
            f"{unsettled.size:,} of {seen} {'is' if unsettled.size == 1 else 'are'} not settled{named}: "
            f"{_longer(found)} tells more"
        )
    never = int((visits == 0).sum())
    if never:
        was = (
            "was never visited: its action is a guess"
            if never == 1
            else "were never visited: their actions are guesses"
        )
        steps.append(f"{numbers.count(never, place)} {was}")
    return steps


def _names(found: LearnedRun, states: list[int]) -> str:
    names = ", ".join(printable(found.state_name(s)) for s in states[:NAMES_SHOWN])
    return names + (", …" if len(states) > NAMES_SHOWN else "")
