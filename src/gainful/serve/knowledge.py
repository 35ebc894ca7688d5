"""What an agent knows, as plain values for JSON: gain, policy, visits, how sure it is, the regret bound so far."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import GainfulError
from gainful.live import DurableAgent
from gainful.theory.regret import regret_bound

POINTS = 500
"""Episodes that one answer holds."""


def number(x: float) -> float | None:
    """JSON knows no NaN."""
    return float(x) if math.isfinite(x) else None


def finite(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that JSON can hold."""
    return {name: number(value) if isinstance(value, float) else value for name, value in settings.items()}


def knowledge(agent: DurableAgent, first: int, states: int) -> dict[str, Any]:
    """All of it, and the tables of `states` states from `first` on."""
    status = agent.status()
    settings, statistics = status["settings"], agent.statistics
    low = float(settings.get("reward_min", 0.0))
    bonus = agent.bonuses()
    t = agent.t
    bounds = agent.gain_bounds
    gain = None
    if bounds is not None and all(map(math.isfinite, bounds)):
        gain = {"estimate": (bounds[0] + bounds[1]) / 2, "low": float(bounds[0]), "high": float(bounds[1])}
    return {
        "agent": status["agent"], "settings": finite(settings), "observations": t, "pending": status["pending"],
        "episodes": status["episodes"], "sequence": status["sequence"],
        "planning_under_way": status["planning_under_way"], "gain": gain,
        "mean_reward": number(low + float(statistics.reward_sum.sum()) / t) if t else None,
        "confidence": confidence(agent, bonus), "regret_bound": regret_so_far(agent, status["agent"], settings),
        "guarantee": {"holds": status["guarantee_holds"], "text": status["guarantee"]}, "changes": status["changes"],
        "notices": [text.replace(str(agent.path), "its folder") for text in status["notices"]],
        "trouble": status["trouble"].replace(str(agent.path), "its folder"),
        "tables": tables(agent, bonus, first, states),
    }  # fmt: skip


def tables(agent: DurableAgent, bonus: NDArray[np.float64] | None, first: int, states: int) -> dict[str, Any]:
    """Policy, visits and bonus of some states."""
    S, A = agent.n_states, agent.n_actions
    some = slice(min(first, S), min(first + states, S))
    actions = agent.actions
    return {
        "first": some.start, "n_states": S, "n_actions": A,
        "policy": None if actions is None else actions[some].tolist(),
        "visits": agent.statistics.visits.reshape(S, A)[some].tolist(),
        "bonus": None if bonus is None else bonus[some].tolist(),
    }  # fmt: skip


def confidence(agent: DurableAgent, bonus: NDArray[np.float64] | None) -> dict[str, Any]:
    """How much has been seen, and how wide the bonus still is."""
    S, A = agent.n_states, agent.n_actions
    has = agent.allowed
    visits = agent.statistics.visits.reshape(S, A)
    found: dict[str, Any] = {
        "pairs": int(has.sum()), "pairs_visited": int((visits[has] > 0).sum()),
        "states_visited": int((visits.sum(axis=1) > 0).sum()), "vacuous": agent.vacuous, "pairs_vacuous": None,
        "bonus_least": None, "bonus_median": None, "bonus_greatest": None,
    }  # fmt: skip
    if bonus is not None:
        settings = agent.settings
        cap = float(settings["span"]) + float(settings["reward_max"]) - float(settings["reward_min"])
        theirs = bonus[has]
        found |= {
            "pairs_vacuous": int((theirs >= cap).sum()), "bonus_least": number(theirs.min()),
            "bonus_median": number(float(np.median(theirs))), "bonus_greatest": number(theirs.max()),
        }  # fmt: skip
    return found


def regret_so_far(agent: DurableAgent, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`theory.regret_bound` after all observations, every pair supposed to reach every state; or why there is none.

    It takes every observation for a step of the agent's own, on one trajectory.
    """
    t, value = agent.t, None
    spread = float(settings.get("reward_max", 1.0)) - float(settings.get("reward_min", 0.0))
    guarantee = agent.guarantee
    if kind not in ("SCALPlus", "CSCALPlus"):
        reason = f"no explicit bound is known for {kind}"
    elif not guarantee.holds:
        reason = guarantee.reason_void
    elif settings.get("mixture") == "min-action" and settings.get("bonus") != "appendix":
        reason = "the min-action mixture is bounded with the appendix's bonus only"
    elif "stage" in settings:
        reason = "the cells become finer as it goes on; the bound is for cells that stay"
    elif t < 1:
        reason = "nothing has been observed"
    else:
        cells: dict[str, Any] = {}
        if kind == "CSCALPlus":
            cells = {"lipschitz": settings["lipschitz"], "holder": settings["holder"], "bins": bins(agent, settings)}
        try:
            value = number(
                regret_bound(
                    t, agent.n_states, agent.n_actions, span=settings["span"], reward_max=spread,
                    delta=settings["delta"], mixture=settings["mixture"], **cells,
                )
            )  # fmt: skip
            reason = str(guarantee)
        except GainfulError as error:
            reason = str(error)
    return {
        "value": value, "reason": reason, "steps": t, "trivial": t * spread,
        "probability": 1.0 - float(settings["delta"]) if value is not None else None,
    }  # fmt: skip


def bins(agent: DurableAgent, settings: dict[str, Any]) -> int:
    """Intervals of the coarsest axis. An agent that was given no partition cuts every axis of its box alike."""
    if settings["partition"] is not None:
        return int(min(settings["partition"]["bins"]))
    per_axis: float = agent.n_states ** (1.0 / agent.dim)
    return round(per_axis)


def episodes(agent: DurableAgent, points: int) -> dict[str, Any]:
    """The gain over time, at most `points` episodes: the last ones of equal stretches of their numbers' logarithm."""
    records = agent.episodes
    n = len(records)
    if n > points:
        chosen = np.unique(np.geomspace(1, n, points).astype(np.int64)) - 1
        records = records[chosen]
    return {
        "of": n, "step": records["step"].tolist(), "gain": [number(x) for x in records["gain"]],
        "low": [number(x) for x in records["gain_low"]], "high": [number(x) for x in records["gain_high"]],
    }  # fmt: skip


def summary(agent: DurableAgent) -> dict[str, Any]:
    """The line of an agent in the list; waits for nothing."""
    bounds = agent.gain_bounds or (math.nan, math.nan)
    return {
        "agent": agent.kind, "observations": agent.t, "episodes": agent.n_episodes,
        "sequence": agent.sequence, "pending": agent.n_pending, "gain_low": number(bounds[0]),
        "gain_high": number(bounds[1]),
    }  # fmt: skip
