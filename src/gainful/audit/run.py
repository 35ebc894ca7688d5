"""One audited run: an agent lives, and every episode of it is held against the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gainful.agents.c_scal_plus import CSCALPlus
from gainful.agents.episodic import EpisodeView
from gainful.agents.kl_ucrl import KLUCRL
from gainful.agents.scal import SCAL
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.audit.findings import Finding
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.simulation.run import checked_horizon
from gainful.simulation.simulate import new_simulation

if TYPE_CHECKING:
    from gainful.audit.cells import CellsTruth

AUDITED = ("scal-plus", "ucrl2", "ucrl2b", "scal", "tucrl", "kl-ucrl")
"""The agents whose theorems are audited in a finite MDP; among points it is c-scal-plus."""


class Auditor(Protocol):
    """What looks at the episodes of a run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The statements it checks."""

    def see(self, view: EpisodeView) -> None:
        """One episode begins."""

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Once the run is over: each statement's finding, and numbers worth showing (plain values)."""


@dataclass(frozen=True)
class RunAudit:
    """What was found in one run; plain values all through."""

    seed: int
    horizon: int
    episodes: int
    regret: float
    findings: dict[str, Finding] = field(repr=False)
    shown: dict[str, Any] = field(repr=False)
    seconds: float

    @property
    def failed(self) -> list[str]:
        """The statements that failed somewhere in this run."""
        return [name for name, finding in self.findings.items() if finding.failures]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "seed": self.seed, "horizon": self.horizon, "episodes": self.episodes, "regret": self.regret,
            "findings": {name: finding.to_dict() for name, finding in self.findings.items()}, "shown": self.shown,
            "seconds": self.seconds,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunAudit:
        """What `to_dict` gave."""
        found = {name: Finding.from_dict(finding) for name, finding in values["findings"].items()}
        return cls(**{**values, "findings": found})


def truth_of(environment: Any) -> Truth | CellsTruth:
    """The environment solved: what an audit holds a run against. Solve once, audit many runs."""
    from gainful.environments.continuous.environment import ContinuousEnvironment

    if isinstance(environment, MDP):
        return Truth.of(environment)
    if isinstance(environment, ContinuousEnvironment):
        from gainful.audit.cells import CellsTruth

        return CellsTruth.of(environment)
    raise InvalidArgumentError(
        f"an audit needs the true model, and {type(environment).__name__} has none; audit an MDP or one of gainful's "
        "continuous environments"
    )


def auditor_class(agent: Any, truth: Any) -> Callable[[Any, Any, Any], Auditor]:
    """What makes the auditor of this kind of agent; an error for an agent of whom no theorem is audited."""
    name, finite = type(agent).__name__, isinstance(truth, Truth)
    if isinstance(agent, SCALPlus) and finite:
        from gainful.audit.scal_plus import ScalPlusAuditor

        return ScalPlusAuditor
    if isinstance(agent, CSCALPlus) and not finite:
        from gainful.audit.c_scal_plus import CellsAuditor

        return CellsAuditor
    if isinstance(agent, (UCRL2, UCRL2B, SCAL, KLUCRL)) and finite:
        from gainful.audit.sets import SetsAuditor

        return SetsAuditor
    raise InvalidArgumentError(
        f"{name} in {'an MDP' if finite else 'a continuous environment'}: no theorem of it is audited there; expected "
        + (f"one of {', '.join(AUDITED)}" if finite else "c-scal-plus")
    )


def audit_run(
    agent: Any, environment: Any, horizon: float, seed: int = 0, *, truth: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunAudit:  # fmt: skip
    """Let `agent` live as `simulate` would, to the same bits, and check every statement in every episode.

    The agent must not have lived before. `truth` is `truth_of(environment)`, for many runs of one environment.
    """
    steps = checked_horizon(horizon)
    if agent.t:
        raise InvalidArgumentError(f"the agent has lived {agent.t} steps, expected a new one: every episode is audited")
    known = truth_of(environment) if truth is None else truth
    if known.environment is not environment:
        raise InvalidArgumentError("truth is that of another environment, expected truth_of(environment)")
    began = time.process_time()
    life = new_simulation(agent, environment, steps, seed, gain=known.gain)
    log = agent.log
    auditor = auditor_class(agent, known)(agent, known, life)
    agent.on_episode = auditor.see
    try:
        life.finish(progress)
        found, shown = auditor.findings()
    finally:  # an agent whose run was stopped is an agent like any other
        agent.on_episode = None
        agent.log = log
    run = life.run()
    shown |= {"steps": run.steps.tolist(), "regret": np.asarray(run.regret).tolist()}
    return RunAudit(
        seed=seed, horizon=steps, episodes=len(run.episodes), regret=float(run.regret[-1]), findings=found,
        shown=shown, seconds=time.process_time() - began,
    )  # fmt: skip
