"""Many audited runs of one agent in one environment, summed up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gainful.agents.conditions import guarantee_in
from gainful.arguments import whole
from gainful.audit.kinds import reason_void
from gainful.audit.run import RunAudit, audit_run, truth_of
from gainful.audit.truth import Truth
from gainful.audit.verdicts import Verdict, judge, with_implications
from gainful.errors import InvalidArgumentError
from gainful.theory.regret import lower_bound, lower_bound_needs


@dataclass(frozen=True)
class Audit:
    """One agent in one environment: a verdict per statement, over all runs.

    Index it with the name of a statement to get its verdict: `audit["optimism"]`.

    Attributes
    ----------
    environment, agent : str
        Their names.
    settings : dict
        The arguments that make the agent.
    guarantee : str
        The guarantee of the agent.
    void : str
        Why statements that depend on the agent's constants are not guaranteed; empty if they are.
    delta : float
        The probability with which the guarantee may fail.
    horizon : int
        Steps of each run.
    facts : dict
        About the environment, None if unknown: gain (in its own units), gain_per_step, span, support, diameter.
    runs : tuple of RunAudit
        The runs, by seed.

    Examples
    --------
    >>> import gainful as gf
    >>> found = audit(lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), gf.environments.riverswim(6), 100, runs=2)
    >>> found.horizon, len(found.runs), found["span"].verdict
    (100, 2, 'certified')
    """

    environment: str
    agent: str
    settings: dict[str, Any] = field(repr=False)
    guarantee: str
    void: str
    delta: float
    horizon: int
    facts: dict[str, Any] = field(repr=False)
    runs: tuple[RunAudit, ...] = field(repr=False)

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each statement, by name."""
        return with_implications(
            {
                name: judge(name, [(run.seed, run.findings[name]) for run in self.runs], self.delta, self.void)
                for name in self.runs[0].findings
            }
        )

    @property
    def ok(self) -> bool:
        """Whether no guaranteed statement is violated."""
        return not any(verdict.broken for verdict in self.verdicts.values())

    def __getitem__(self, statement: str) -> Verdict:
        return self.verdicts[statement]

    def __repr__(self) -> str:
        words = [verdict.verdict for verdict in self.verdicts.values()]
        counts = ", ".join(f"{words.count(w)} {w}" for w in dict.fromkeys(words))
        return f"Audit({self.agent} in {self.environment}, {len(self.runs)} runs of {self.horizon:,} steps: {counts})"

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name, with the verdicts, the regret curves, the terms and the tightness, and a summary of
            each run in place of the run.
        """
        return {
            "environment": self.environment,
            "agent": self.agent,
            "settings": self.settings,
            "guarantee": self.guarantee,
            "void": self.void,
            "delta": self.delta,
            "horizon": self.horizon,
            "facts": self.facts,
            "ok": self.ok,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts.values()],
            "note": self.note,
            "regret": self.regret_curves(),
            "terms": self.terms(),
            "tightness": self.tightness(),
            "runs": [
                {
                    "seed": run.seed,
                    "episodes": run.episodes,
                    "regret": run.regret,
                    "failed": run.failed,
                    "seconds": run.seconds,
                }
                for run in self.runs
            ],
        }

    def regret_curves(self) -> dict[str, Any]:
        """Regret at the checkpoints, with its bounds.

        Returns
        -------
        dict
            `steps`, `mean` and `largest` regret over runs; `bound`, the explicit bound, None if the theorem does not
            apply; `lower_bound`, 0.015·sqrt(DSAT), None if D is unknown; `lower_bound_needs`, which condition of
            the lower bound is not met here, empty if all are.
        """
        steps = self.runs[0].shown["steps"]
        regret = np.array([run.shown["regret"] for run in self.runs])
        verdict = self.verdicts.get("regret-bound") or self.verdicts.get("mean-regret-bound")
        speaks = verdict is not None and verdict.promised and verdict.verdict != "not applicable"
        bound = self.runs[0].shown.get("bound") if speaks else None
        D = self.facts.get("diameter")
        size = self.facts["n_states"], self.facts["n_actions"]
        least = (
            None if D is None else [lower_bound(T, *size, diameter=D, reward_max=self.facts["range"]) for T in steps]
        )
        return {
            "steps": steps,
            "mean": regret.mean(axis=0).tolist(),
            "largest": regret.max(axis=0).tolist(),
            "bound": bound,
            "lower_bound": least,
            "lower_bound_needs": "" if D is None else lower_bound_needs(steps[-1], *size, D),
        }

    def terms(self) -> dict[str, dict[str, float]]:
        """Compare the terms of the regret at the horizon with what the bound allows each.

        Returns
        -------
        dict of str to dict
            For each term `measured`, the mean over runs, and `allowed`. Empty if the bound does not apply.
        """
        allowed = self.runs[0].shown.get("terms")
        if allowed is None or self.regret_curves()["bound"] is None:
            return {}
        shares = {"bonus": "cells", "deviation": "cells"}  # C-SCAL+: each has half of the cells' term
        found = {}
        for name in ("bonus", "deviation", "precision", "martingale", "telescoping"):
            measured = [run.shown["sums"][name][-1] for run in self.runs if name in run.shown["sums"]]
            if measured:
                found[name] = {
                    "measured": math.fsum(measured) / len(measured),
                    "allowed": allowed[name] + (allowed["cells"] / 2.0 if name in shares else 0.0),
                }
        return found

    @property
    def note(self) -> str:
        """A limitation of the verdicts, if there is one."""
        return str(self.runs[0].shown.get("points", {}).get("note", ""))

    def tightness(self) -> dict[str, Any] | None:
        """Measure how far L̂h* lies above Lh* at the last plan.

        Returns
        -------
        dict or None
            `mean` over states and runs, and `largest`; None if it was not measured.
        """
        last = [run.shown["tightness"] for run in self.runs if "tightness" in run.shown]
        if not last:
            return None
        return {
            "mean": math.fsum(t["mean"][-1] for t in last) / len(last),
            "largest": max(t["largest"][-1] for t in last),
        }


def gathered(
    runs: Sequence[RunAudit], agent: Any, environment: str, truth: Any, *, agent_name: str | None = None
) -> Audit:
    """The Audit of finished runs; `agent` is an agent with the same settings as theirs."""
    if not runs:
        raise InvalidArgumentError("runs", runs, "at least one", problem="no run was audited")
    guarantee = guarantee_in(agent, truth.environment, truth.span)
    return Audit(
        environment=environment,
        agent=agent_name or type(agent).__name__,
        settings={k: v for k, v in agent.settings().items() if k != "seed"},
        guarantee=str(guarantee),
        void=reason_void(agent),
        delta=agent.delta,
        horizon=runs[0].horizon,
        facts=facts_of(truth, agent),
        runs=tuple(sorted(runs, key=lambda run: run.seed)),
    )


def facts_of(truth: Any, agent: Any) -> dict[str, Any]:
    """Facts about the environment, to be shown with the verdicts."""
    finite = isinstance(truth, Truth)
    units = truth.mdp.units if finite else None
    gain = truth.gain if units is None else units.sign * truth.gain / units.step_duration
    return {
        "n_states": agent.n_states,
        "n_actions": agent.n_actions,
        "range": agent.reward_range,
        "gain": gain,
        "gain_per_step": truth.gain,
        "span": truth.span,
        "support": truth.support if finite else None,
        "diameter": truth.diameter if finite else None,
    }


def audit(
    make: Callable[[int], Any],
    environment: Any,
    horizon: float,
    *,
    runs: int = 100,
    first_seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Run an agent many times, and judge every statement of the theorems about it.

    A run is one trial: a statement fails in it if it fails in any episode. 59 runs without a failure certify a
    statement that may fail with probability 0.05 (see `clopper_pearson`).

    Parameters
    ----------
    make : callable
        `make(seed)` returns a new agent.
    environment : MDP or ContinuousEnvironment
        Its model must be known.
    horizon : float
        Steps of each run.
    runs : int
        Number of runs.
    first_seed : int
        Seeds are counted from here; each is that of an agent and of its environment.
    progress : callable, optional
        Called as `progress(done, runs)` after each run.

    Returns
    -------
    Audit
        A verdict per statement.

    Raises
    ------
    InvalidArgumentError
        For an agent about which no theorem is audited, or an environment whose model is unknown.

    Examples
    --------
    >>> from gainful.agents.scal_plus import SCALPlus
    >>> from gainful.environments.riverswim import riverswim
    >>> found = audit(lambda seed: SCALPlus(6, 2, span=7.0, seed=seed), riverswim(6), 1000, runs=3)
    >>> found.ok, found["span"].verdict, found["optimism"].verdict
    (True, 'certified', 'inconclusive')
    """
    n = whole("runs", runs, 1)
    truth = truth_of(environment)
    made = []
    for i in range(n):
        seed = first_seed + i
        made.append(audit_run(make(seed), environment, horizon, seed, truth=truth))
        if progress is not None:
            progress(i + 1, n)
    name = str(getattr(environment, "name", "") or type(environment).__name__)
    return gathered(made, make(first_seed), name, truth)
