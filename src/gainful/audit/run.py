"""One audited run: every episode of an agent is compared with the true model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.audit.findings import Finding
from gainful.audit.kinds import auditor_class, repeats_the_run
from gainful.audit.trace import TraceAuditor
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.simulation.run import checked_horizon
from gainful.simulation.simulate import new_simulation

if TYPE_CHECKING:
    from gainful.audit.cells import CellsTruth


@dataclass(frozen=True)
class RunAudit:
    """What was found in one run, in plain values.

    Attributes
    ----------
    seed : int
        The seed of the agent and of the environment.
    horizon : int
        The number of steps.
    episodes : int
        Episodes begun.
    regret : float
        T·g* less the rewards, at the end.
    findings : dict of str to Finding
        The finding on each statement, by its name.
    shown : dict
        Numbers to show: checkpoints, regret, sums of the terms, tightness of optimism.
    seconds : float
        CPU time of the run and the audit together.

    Examples
    --------
    >>> finding = Finding(checks=12, failures=1, worst=None)
    >>> run = RunAudit(0, horizon=1000, episodes=12, regret=55.0, findings={"span": finding}, shown={}, seconds=0.1)
    >>> run.failed
    ['span']
    """

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
        """Give plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name, every finding as a dictionary of its own.
        """
        return {
            "seed": self.seed,
            "horizon": self.horizon,
            "episodes": self.episodes,
            "regret": self.regret,
            "findings": {name: finding.to_dict() for name, finding in self.findings.items()},
            "shown": self.shown,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunAudit:
        """Make the audit that `to_dict` gave the values of.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, possibly by way of JSON.

        Returns
        -------
        RunAudit
            An equal audit.
        """
        found = {name: Finding.from_dict(finding) for name, finding in values["findings"].items()}
        return cls(**{**values, "findings": found})


def truth_of(environment: Any) -> Truth | CellsTruth:
    """Solve an environment: what an audit compares runs with. Solve once, audit many runs.

    Parameters
    ----------
    environment : MDP or ContinuousEnvironment
        An environment whose model is known.

    Returns
    -------
    Truth or CellsTruth
        Gain, bias and model. Of a continuous environment as far as its law is known.

    Raises
    ------
    InvalidArgumentError
        For anything else: an audit needs the true model.

    Examples
    --------
    >>> from gainful.environments.riverswim import riverswim
    >>> truth = truth_of(riverswim(6))
    >>> round(truth.gain, 4), round(truth.span, 2), truth.support
    (0.4286, 6.31, 3)
    """
    from gainful.environments.continuous.environment import ContinuousEnvironment

    if isinstance(environment, MDP):
        return Truth.of(environment)
    if isinstance(environment, ContinuousEnvironment):
        from gainful.audit.cells import CellsTruth

        return CellsTruth.of(environment)
    raise InvalidArgumentError(
        "environment",
        environment,
        "an MDP or one of gainful's continuous environments",
        problem=f"an audit needs the true model, and {type(environment).__name__} has none",
    )


def audit_run(
    agent: Any,
    environment: Any,
    horizon: float,
    seed: int = 0,
    *,
    truth: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunAudit:
    """Simulate an agent, to the same bits as `simulate`, and check every statement in every episode.

    Parameters
    ----------
    agent : Agent
        A new agent of gainful's own. In an MDP any tabular one; on continuous states C-SCAL+, C-KL-SCAL+, UCCRL, or a
        tabular one on cells.
    environment : MDP or ContinuousEnvironment
        Its model must be known.
    horizon : float
        The number of steps.
    seed : int
        The seed of the environment.
    truth : Truth or CellsTruth, optional
        `truth_of(environment)`, to solve it once for many runs.
    progress : callable, optional
        Called with the steps made and the horizon.

    Returns
    -------
    RunAudit
        A finding per statement, and numbers to show.

    Raises
    ------
    InvalidArgumentError
        For an agent that is not new, or about which no theorem is audited.

    Examples
    --------
    >>> from gainful.agents.scal_plus import SCALPlus
    >>> from gainful.environments.riverswim import riverswim
    >>> found = audit_run(SCALPlus(6, 2, span=7.0), riverswim(6), 1000)
    >>> found.failed
    []
    >>> found.findings["precision"].checks == found.episodes
    True
    """
    steps = checked_horizon(horizon)
    if agent.t:
        raise InvalidArgumentError(
            "agent",
            agent.t,
            "a new agent",
            "every episode is audited, from the first",
            problem=f"the agent has already made {agent.t} steps",
        )
    known = truth_of(environment) if truth is None else truth
    if known.environment is not environment:
        raise InvalidArgumentError(
            "truth", known.environment, "truth_of(environment)", problem="truth is that of another environment"
        )
    began = time.process_time()
    simulation = new_simulation(agent, environment, steps, seed, gain=known.gain)
    log = agent.log
    auditor = auditor_class(agent, known)(agent, known, simulation)
    trace = None if repeats_the_run(agent) else TraceAuditor(agent, simulation)

    def see(view: EpisodeView) -> None:
        if trace is not None:
            trace.see(view)
        auditor.see(view)

    agent.on_episode = see
    try:
        simulation.finish(progress)
        found, shown = auditor.findings()
        if trace is not None:
            found = found | trace.findings()
    finally:  # an agent whose run was stopped can be used like any other
        agent.on_episode = None
        agent.log = log
    run = simulation.run()
    shown |= {"steps": run.steps.tolist(), "regret": np.asarray(run.regret).tolist()}
    return RunAudit(
        seed=seed,
        horizon=steps,
        episodes=len(run.episodes),
        regret=float(run.regret[-1]),
        findings=found,
        shown=shown,
        seconds=time.process_time() - began,
    )
