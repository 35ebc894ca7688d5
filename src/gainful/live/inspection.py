"""The present state of a durable agent, in plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.live.agent_config import plain_settings
from gainful.live.labels import LabelTranslation
from gainful.live.session import JournalSession


def greedy_actions(core: Any) -> NDArray[np.int64] | None:
    """(S,) the greedy actions of an agent's present plan; None before the first plan, or if it makes none."""
    plan = core.current
    if plan is None or isinstance(core, StepwiseAgent):
        return None
    actions: NDArray[np.int64] = (
        plan.actions.copy() if plan.probabilities is None else plan.probabilities.argmax(axis=1)
    )
    return actions


def pair_bonuses(core: Any) -> NDArray[np.float64] | None:
    """(S,A) the bonuses of SCAL+ if it planned now, without what a cell adds; NaN for actions that a state lacks.

    None for other agents.
    """
    return np.where(core.allowed, core.bonuses() - core.model_error, np.nan) if isinstance(core, SCALPlus) else None


def status_of(session: JournalSession, translation: LabelTranslation) -> dict[str, Any]:
    """The present state of an agent, in plain types for JSON."""
    machine, core = session.machine, session.machine.core
    bounds = None if core.current is None else translation.bounds(*core.current.gain_bounds)
    guarantee = machine.guarantee
    return {
        "agent": type(machine.agent).__name__,
        "settings": plain_settings(machine.agent.settings()),
        "observations": core.t,
        "sequence": session.sequence,
        "episodes": len(core.records),
        "pending": len(machine.ledger.pending),
        "planning_under_way": machine.plan_under_way,
        "objective": "reward" if translation.labels is None else translation.labels.objective,
        "gain_bounds": None if bounds is None else list(bounds),
        "guarantee": str(guarantee),
        "guarantee_holds": guarantee.holds,
        "changes": [asdict(change) for change in machine.changes],
        "notices": list(session.notices),
        "trouble": session.journal.trouble,
    }
