"""Which class audits which agent, and what its constants leave of the theorems that it checks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from gainful.agents.adaptive_kl_scal_plus import AdaptiveKLSCALPlus
from gainful.agents.balanced_grids import BalancedGrids
from gainful.agents.balanced_kl_scal_plus import BalancedKLSCALPlus
from gainful.agents.c_kl_scal_plus import CKLSCALPlus
from gainful.agents.c_scal_plus import CSCALPlus
from gainful.agents.count_bonus import CountBonus
from gainful.agents.discretized import Discretized
from gainful.agents.episodic import EpisodeView
from gainful.agents.epsilon_greedy_q import EpsilonGreedyQ
from gainful.agents.fixed import Fixed
from gainful.agents.imed_rl import IMEDRL
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.agents.kl_ucrl import KLUCRL
from gainful.agents.mbie_eb import MBIEEB
from gainful.agents.opt_psrl import OptPSRL
from gainful.agents.optimistic_q import OptimisticQ
from gainful.agents.pmevi_dt import PMEVIDT
from gainful.agents.psrl import PSRL
from gainful.agents.scal import SCAL
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.agents.tucrl import TUCRL
from gainful.agents.ucbvi import UCBVI
from gainful.agents.uccrl import UCCRL
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.agents.ucrl3 import UCRL3
from gainful.audit.findings import Finding
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError

IN_AN_MDP: dict[type, str] = {
    SCALPlus: "scal_plus.ScalPlusAuditor",
    KLSCALPlus: "kl_scal_plus.KLScalPlusAuditor",
    BalancedKLSCALPlus: "balanced_kl_scal_plus.BalancedKLScalPlusAuditor",
    UCRL2: "sets.SetsAuditor",
    UCRL2B: "sets.SetsAuditor",
    UCRL3: "ucrl3.UCRL3Auditor",
    SCAL: "sets.SetsAuditor",
    TUCRL: "sets.SetsAuditor",
    KLUCRL: "sets.SetsAuditor",
    PMEVIDT: "pmevi_dt.PMEVIAuditor",
    PSRL: "psrl.PSRLAuditor",
    OptPSRL: "opt_psrl.OptPSRLAuditor",
    MBIEEB: "mbie_eb.MBIEEBAuditor",
    CountBonus: "count_bonus.CountBonusAuditor",
    UCBVI: "ucbvi.UCBVIAuditor",
    OptimisticQ: "learners.OptimisticQAuditor",
    EpsilonGreedyQ: "learners.LearnerAuditor",
    Fixed: "learners.FixedAuditor",
    IMEDRL: "imed_rl.IMEDRLAuditor",
}
"""The auditor of each agent on numbered states, by its place in this package."""
BY_BONUS = {"sharp": "sharp.SharpAuditor", "bernstein": "sharp.BernsteinAuditor"}
"""Those of SCAL+ with another bonus than the paper's."""
AMONG_POINTS: dict[type, str] = {
    CSCALPlus: "c_scal_plus.CellsAuditor",
    CKLSCALPlus: "c_kl_scal_plus.CKLScalPlusAuditor",
    AdaptiveKLSCALPlus: "adaptive_cells.AdaptiveCellsAuditor",
    BalancedGrids: "balanced_grids.BalancedGridsAuditor",
    UCCRL: "cell_sets.UCCRLAuditor",
}
"""The auditors of agents that are made for continuous states."""
ON_CELLS: dict[type, str] = {
    **{
        kind: IN_AN_MDP[kind]
        for kind in (PSRL, OptPSRL, MBIEEB, CountBonus, UCBVI, OptimisticQ, EpsilonGreedyQ, Fixed, IMEDRL)
    },
    **dict.fromkeys((UCRL2, UCRL2B, SCAL, TUCRL, KLUCRL), "cell_sets.CellSetsAuditor"),
    PMEVIDT: IN_AN_MDP[PMEVIDT],
    UCRL3: "ucrl3.DiscretizedUCRL3Auditor",
    SCALPlus: "plans_on_cells.DiscretizedScalPlusAuditor",
    KLSCALPlus: "plans_on_cells.DiscretizedKLAuditor",
    BalancedKLSCALPlus: "balanced_kl_scal_plus.BalancedKLOnCellsAuditor",
}
"""The auditors of tabular agents on cells."""
AUDITED = (
    *("scal-plus", "kl-scal-plus", "balanced-kl-scal-plus", "ucrl2", "ucrl2b", "ucrl3", "scal", "tucrl", "kl-ucrl"),
    *("psrl", "opt-psrl", "mbie-eb", "count-bonus", "ucbvi", "optimistic-q", "epsilon-greedy-q", "fixed"),
    *("imed-rl", "pmevi-dt"),
)
"""The agents that are audited in a finite MDP."""
AUDITED_AMONG_POINTS = ("c-scal-plus", "c-kl-scal-plus", "adaptive-kl-scal-plus", "balanced-grids", "uccrl", *AUDITED)
"""Those that are audited on continuous states; a tabular one is discretised."""


class Auditor(Protocol):
    """An object that checks the episodes of a run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The statements it checks."""

    def see(self, view: EpisodeView) -> None:
        """Record an episode that begins."""

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding once the run is over, and numbers to show (plain values)."""


def repeats_the_run(agent: Any) -> bool:
    """Whether its auditor repeats the run by itself, because the agent learns at every step."""
    return isinstance(agent.core, StepwiseAgent)


def auditor_class(agent: Any, truth: Any) -> Callable[[Any, Any, Any], Auditor]:
    """What makes the auditor of this agent from the agent, the truth and the simulation.

    Raises
    ------
    InvalidArgumentError
        If nothing about this kind of agent is audited there: a user's own class, for instance.
    """
    name, finite = type(agent).__name__, isinstance(truth, Truth)
    if finite:
        home = _home(IN_AN_MDP, agent)
        if isinstance(agent, SCALPlus) and home is not None:
            home = BY_BONUS.get(agent.bonus, home)
        if home is not None:
            return _loaded(home)
    elif (home := _home(AMONG_POINTS, agent)) is not None:
        return _loaded(home)
    elif isinstance(agent, Discretized):
        name = f"{name}({type(agent.core).__name__})"
        home = _home(ON_CELLS, agent.core)
        if home is not None:
            made, in_an_mdp = _loaded(home), home in IN_AN_MDP.values()  # that knows no truth about cells
            return lambda agent, truth, simulation: made(agent, None if in_an_mdp else truth, simulation)
    where = "an MDP" if finite else "a continuous environment"
    known = AUDITED if finite else AUDITED_AMONG_POINTS
    raise InvalidArgumentError(
        "agent",
        name,
        f"one of {', '.join(known)}",
        "the audit compares gainful's own agents with the equations of their papers; gainful.testing.check_agent "
        "checks an agent of your own",
        problem=f"{name} in {where}: no theorem about it is audited there",
    )


def _home(homes: dict[type, str], agent: Any) -> str | None:
    """The place of the auditor of an agent, or of the nearest class that it is derived from; None if there is none."""
    return next((homes[kind] for kind in type(agent).__mro__ if kind in homes), None)


def _loaded(home: str) -> Callable[[Any, Any, Any], Auditor]:
    module, name = home.split(".")
    found: Callable[[Any, Any, Any], Auditor] = getattr(import_module(f"gainful.audit.{module}"), name)
    return found


def reason_void(agent: Any) -> str:
    """Why the statements that depend on an agent's constants are not guaranteed; empty if they are.

    Of agents whose regret bound does not hold for the average reward, or for the variant that is implemented, what the
    audit checks is proven nevertheless.
    """
    core = agent.core
    if isinstance(agent, Discretized):
        return str(agent.guarantee.reason_void)
    if isinstance(core, (MBIEEB, UCBVI, OptimisticQ)):
        small = core.bonus_scale < 1.0
        return f"bonus_scale is {core.bonus_scale:g}, the theorem needs 1" if small else ""
    if isinstance(agent, BalancedGrids):
        return ""
    if isinstance(agent, AdaptiveKLSCALPlus):
        return agent.not_optimistic
    if isinstance(core, BalancedKLSCALPlus):
        scaled = core.width_scale != 1.0
        return f"width_scale is {core.width_scale:g}, what is proven needs 1" if scaled else ""
    if isinstance(agent, UCCRL):
        return agent.core.scaled or agent.smoothness.reason_void
    if isinstance(core, (PSRL, OptPSRL, CountBonus, EpsilonGreedyQ, Fixed, IMEDRL)):
        return ""
    return str(agent.guarantee.reason_void)
