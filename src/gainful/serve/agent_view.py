"""What an agent has learned: gain, policy, visits, confidence, the regret bound; `json_text.encode` writes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.labels import AgentLabels
from gainful.agents.registry import registered_name
from gainful.errors import GainfulError
from gainful.live import DurableAgent
from gainful.serve.alerts import alerts
from gainful.theory.known_bounds import why_no_bound
from gainful.theory.regret import regret_bound

BOUNDED = {
    "SCALPlus": "scal-plus",
    "CSCALPlus": "scal-plus",
    "KLSCALPlus": "kl-scal-plus",
    "CKLSCALPlus": "c-kl-scal-plus",
    "PMEVIDT": "pmevi-dt",
}
"""Agents that have an explicit bound, and what `theory.regret_bound` calls it."""
FAILING_EVENTS = {"SCALPlus": 1, "CSCALPlus": 1, "KLSCALPlus": 3, "CKLSCALPlus": 3, "PMEVIDT": 4}
"""The number of events, each of probability δ at most, in which their bounds may fail; 3 with the sharp bonus."""


def finite_or_none(x: float) -> float | None:
    """A number, or None if JSON has no number for it."""
    return float(x) if math.isfinite(x) else None


def json_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with only such numbers as JSON can hold."""
    return {name: finite_or_none(value) if isinstance(value, float) else value for name, value in settings.items()}


def agent_view(agent: DurableAgent, first: int, states: int) -> dict[str, Any]:
    """Everything about an agent, with the tables of `states` states from `first` on."""
    status = agent.status()
    settings, statistics = status["settings"], agent.statistics
    low = float(settings.get("reward_min", 0.0))
    bonus = agent.bonuses()
    t = agent.t
    mean = finite_or_none(low + float(statistics.reward_sum.sum()) / t) if t else None
    costs = status["objective"] == "cost"
    bounds = agent.gain_bounds
    gain = None
    if bounds is not None and all(map(math.isfinite, bounds)):
        gain = {"estimate": (bounds[0] + bounds[1]) / 2, "low": float(bounds[0]), "high": float(bounds[1])}
    return {
        "agent": status["agent"],
        "settings": json_settings(settings),
        "observations": t,
        "pending": status["pending"],
        "episodes": status["episodes"],
        "sequence": status["sequence"],
        "planning_under_way": status["planning_under_way"],
        "objective": status["objective"],
        "gain": gain,
        "mean_reward": None if costs else mean,
        "mean_cost": 0.0 - mean if costs and mean is not None else None,
        "confidence": confidence(agent, bonus),
        "regret_bound": regret_so_far(agent, status["agent"], settings),
        "guarantee": {"holds": status["guarantee_holds"], "text": status["guarantee"]},
        "changes": status["changes"],
        "alerts": [text.replace(str(agent.path), "its folder") for text in alerts(status, agent.earnings().averages)],
        "notices": [text.replace(str(agent.path), "its folder") for text in status["notices"]],
        "trouble": status["trouble"].replace(str(agent.path), "its folder"),
        "tables": tables(agent, bonus, first, states),
    }


def tables(agent: DurableAgent, bonus: NDArray[np.float64] | None, first: int, states: int) -> dict[str, Any]:
    """Policy, visits and bonuses of `states` states from `first` on, as copies."""
    S, A = agent.n_states, agent.n_actions
    rows = slice(min(first, S), min(first + states, S))
    actions, allowed, labels = agent.actions, agent.allowed[rows], agent.labels or AgentLabels()
    return {
        "first": rows.start,
        "n_states": S,
        "n_actions": A,
        "policy": None if actions is None else actions[rows].copy(),
        "visits": agent.statistics.visits.reshape(S, A)[rows].copy(),
        "bonus": None if bonus is None else _with_gaps(bonus[rows], allowed),
        "allowed": None if agent.allowed.all() else allowed.copy(),
        "state_labels": None if labels.states is None else list(labels.states[rows]),
        "action_labels": None if labels.actions is None else list(labels.actions),
    }


def _with_gaps(bonus: NDArray[np.float64], allowed: NDArray[np.bool_]) -> NDArray[Any]:
    """The bonuses, with None for actions that a state does not have."""
    return bonus.copy() if allowed.all() else np.where(allowed, bonus, None)  # type: ignore[call-overload]


def confidence(agent: DurableAgent, bonus: NDArray[np.float64] | None) -> dict[str, Any]:
    """How much has been seen, and how wide the bonuses still are."""
    S, A = agent.n_states, agent.n_actions
    allowed = agent.allowed
    visits = agent.statistics.visits.reshape(S, A)
    found: dict[str, Any] = {
        "pairs": int(allowed.sum()),
        "pairs_visited": int((visits[allowed] > 0).sum()),
        "states_visited": int((visits.sum(axis=1) > 0).sum()),
        "vacuous": agent.vacuous,
        "pairs_vacuous": None,
        "bonus_least": None,
        "bonus_median": None,
        "bonus_greatest": None,
    }
    if bonus is not None:
        settings = agent.settings
        cap = float(settings["span"]) + float(settings["reward_max"]) - float(settings["reward_min"])
        bonuses = bonus[allowed]
        found |= {
            "pairs_vacuous": int((bonuses >= cap).sum()),
            "bonus_least": finite_or_none(bonuses.min()),
            "bonus_median": finite_or_none(float(np.median(bonuses))),
            "bonus_greatest": finite_or_none(bonuses.max()),
        }
    return found


def regret_so_far(agent: DurableAgent, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`theory.regret_bound` after all observations, or the reason why there is no bound.

    The bound assumes that every pair can reach every state, and that every observation is a step of the agent's own, on
    one trajectory.
    """
    t, value = agent.t, None
    spread = float(settings.get("reward_max", 1.0)) - float(settings.get("reward_min", 0.0))
    reason = _why_no_bound(agent, kind, settings)
    if not reason:
        more: dict[str, Any] = {"agent": BOUNDED[kind]}
        if agent.dim:
            more |= {
                "lipschitz": settings["lipschitz"],
                "holder": settings["holder"],
                "bins": _bins_of_coarsest_axis(agent, settings),
            }
        more |= {name: settings[name] for name in ("mixture", "episodes", "bonus", "base") if name in settings}
        try:
            value = finite_or_none(
                regret_bound(
                    t,
                    agent.n_states,
                    agent.n_actions,
                    span=agent.guarantee.span,
                    reward_max=spread,
                    delta=settings["delta"],
                    **more,
                )
            )
            reason = str(agent.guarantee)
        except GainfulError as error:
            reason = str(error)
    return {
        "value": value,
        "reason": reason,
        "steps": t,
        "trivial": t * spread,
        "probability": 1.0 - _failing_events(kind, settings) * float(settings["delta"]) if value is not None else None,
    }


def _failing_events(kind: str, settings: dict[str, Any]) -> int:
    """The number of events in which the bound of this agent may fail."""
    if settings.get("bonus") == "sharp" or settings.get("bias") == "none":
        return 3
    return FAILING_EVENTS[kind]


def _why_no_bound(agent: DurableAgent, kind: str, settings: dict[str, Any]) -> str:
    """Why the theory gives no regret bound for this agent; empty if it does."""
    if kind not in BOUNDED:
        return f"no explicit bound is known for {kind}{_theory_says(kind)}"
    if not agent.guarantee.holds:
        return agent.guarantee.reason_void
    if settings.get("mixture") == "min-action" and settings.get("bonus") != "appendix":
        return "the min-action mixture has a bound only with the bonus of the appendix"
    if settings.get("bonus") == "bernstein":
        return "the regret of the Bernstein bonus is sketched, and has no explicit bound"
    if settings["span"] is None and kind != "PMEVIDT":
        return "without a span the bound needs the diameter, which is unknown"
    if "stage" in settings:
        return "the cells are refined over time; the bound is for fixed cells"
    if agent.t < 1:
        return "nothing has been observed"
    return ""


def _theory_says(kind: str) -> str:
    """Why there is no bound, after a colon; nothing for a class that is not gainful's own."""
    name = registered_name(kind)
    if name is None:
        return ""
    return f": {why_no_bound(name) or 'it needs the diameter, which is unknown'}"


def _bins_of_coarsest_axis(agent: DurableAgent, settings: dict[str, Any]) -> int:
    """Intervals of the coarsest axis; without a given partition all axes are divided alike."""
    if settings["partition"] is not None:
        return int(min(settings["partition"]["bins"]))
    per_axis: float = agent.n_states ** (1.0 / agent.dim)
    return round(per_axis)


def episodes(agent: DurableAgent, points: int) -> dict[str, Any]:
    """The gain over time: at most `points` episodes, evenly spaced in the logarithm of their number."""
    records, costs = agent.episodes, agent.labels is not None and agent.labels.objective == "cost"
    n = len(records)
    if n > points:
        chosen = np.unique(np.geomspace(1, n, points).astype(np.int64)) - 1
        records = records[chosen]
    gain, low, high = (records[name] for name in ("gain", "gain_low", "gain_high"))
    if costs:
        gain, low, high = 0.0 - gain, 0.0 - high, 0.0 - low
    return {
        "of": n,
        "step": records["step"].tolist(),
        "gain": [finite_or_none(x) for x in gain],
        "low": [finite_or_none(x) for x in low],
        "high": [finite_or_none(x) for x in high],
    }


def earnings(agent: DurableAgent) -> dict[str, Any]:
    """The average earned over time, block by block, and the last outcomes."""
    earned = agent.earnings()
    return {
        "objective": "reward" if agent.labels is None else agent.labels.objective,
        "before": earned.before,
        "length": earned.length,
        "average": earned.averages,
        "outcomes": [outcome._asdict() for outcome in earned.outcomes],
    }


def summary(agent: DurableAgent) -> dict[str, Any]:
    """The row of an agent in the list; this never waits for the agent."""
    bounds = agent.gain_bounds or (math.nan, math.nan)
    return {
        "agent": agent.kind,
        "observations": agent.t,
        "episodes": agent.n_episodes,
        "sequence": agent.sequence,
        "pending": agent.n_pending,
        "objective": "reward" if agent.labels is None else agent.labels.objective,
        "gain_low": finite_or_none(bounds[0]),
        "gain_high": finite_or_none(bounds[1]),
    }
