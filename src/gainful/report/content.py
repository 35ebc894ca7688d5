"""What a report shows, as plain dataclasses, and the same as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.units import Units
from gainful.report.drawing import Drawing
from gainful.simulation.run import REGRETS

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """One measure of one group: at each step the statistics over runs, and some runs themselves."""

    steps: NDArray[np.int64]  # (k,)
    statistics: dict[str, Floats]  # each (k,), by the names in gainful.plot.centres.CURVE_COLUMNS
    seed_steps: NDArray[np.int64]  # (j,), some of steps
    seeds: list[int]  # n of them
    runs: NDArray[np.float32]  # (n, j)


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run in the table of runs; values are None if they are unknown."""

    run_id: str
    seed: int
    steps: int
    regrets: dict[str, float | None]
    """The final value of each measure."""
    reward_per_step: float | None
    episodes: int
    planning_seconds: float
    acting_seconds: float
    plans: dict[str, Floats]
    """step, gain, low and high of its episodes, as many as a page shows; empty if it has none."""


@dataclass(frozen=True, eq=False)
class Group:
    """All runs of one agent in one environment."""

    agent: str
    row: dict[str, Any]
    """A row of the headline table: plain values, None if a number is unknown."""
    curves: dict[str, Curves]
    optimism: dict[str, Floats]
    """step, gain, low and high of the episodes in the run with the lowest seed; empty if it has none."""
    bonus: dict[str, Floats]
    """visits and bonus of pairs at the end of that run; empty if it stored none."""
    last_plan: dict[str, Any]
    """actions, values and visits of that run, its seed, and the bound c as span; empty if it stored no plan."""
    finals: dict[str, dict[int, float]] = field(default_factory=dict)
    """By measure ("reward" too), the value of every seed at the last step that all runs of the group share."""
    runs: list[RunRecord] = field(default_factory=list)


@dataclass(eq=False)
class Environment:
    """One environment with its groups, in the order of the spec."""

    label: str
    name: str
    parameters: dict[str, Any]
    n_states: int
    n_actions: int
    gain: float | None
    gain_source: str
    continuous: bool
    """Whether its states are points; n_states is then the number of cells of the first agent."""
    groups: list[Group] = field(default_factory=list)
    drawing: Drawing | None = None
    no_drawing: str = ""
    """Why there is no drawing."""
    units: Units = field(default_factory=Units)
    """Of its user: costs or rewards, per step or per unit of time. Everything stored is a reward per step."""

    @property
    def per_step_factor(self) -> float:
        """What a stored reward per step is multiplied by to be in the user's units."""
        return self.units.sign / self.units.step_duration

    @property
    def shown_gain(self) -> float | None:
        """The optimal gain in the user's units."""
        return None if self.gain is None else self.gain * self.per_step_factor

    @property
    def gain_name(self) -> str:
        """What to call a gain: "gain" for rewards per step, which need no other word."""
        plain = self.units.objective == "reward" and not self.units.continuous
        return "gain" if plain else self.units.gain_name

    @property
    def measure(self) -> str:
        """The regret that tables and charts show: the first measure that is known for every agent."""
        known = (name for name in REGRETS if all(group.row[f"{name}_mean"] is not None for group in self.groups))
        return next(known, "pseudo_regret")


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on a page."""

    folder: str
    title: str
    notes: str
    spec: str
    agents: list[str]
    environments: list[Environment]
    progress: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    made_by: list[dict[str, Any]]
    """Every combination of versions, commit and platform, with its number of runs."""
    seeds: list[int]
    seconds: float
    """The time of all runs, added up."""
    first_finished: float
    last_finished: float
    audit: dict[str, Any] | None = None
    """What `gainful audit` stored in the folder."""
    comparison: dict[str, Any] | None = None
    """What `gainful run --until-decided` decided."""

    def to_json(self, *, with_curves: bool = False) -> dict[str, Any]:
        """Everything as plain values at full precision; None if a number is unknown."""
        return {
            "title": self.title,
            "notes": self.notes,
            "folder": self.folder,
            "planned": sum(row["planned"] for row in self.progress),
            "finished": sum(row["finished"] for row in self.progress),
            "environments": [_environment_json(e, with_curves) for e in self.environments],
            "provenance": {
                "made_by": self.made_by,
                "seeds": self.seeds,
                "seconds": self.seconds,
                "first_finished": self.first_finished,
                "last_finished": self.last_finished,
            },
            "progress": self.progress,
            "failures": self.failures,
            "audit": self.audit,
            "comparison": self.comparison,
            "spec": self.spec,
        }


def binding_states(values: Floats, span: float | None) -> list[int]:
    """The states where the span constraint is binding: their value is min v + c, up to 1e-9·c.

    >>> binding_states(np.array([0.0, 2.0, 1.0]), 2.0), binding_states(np.array([0.0, 1.0]), None)
    ([1], [])
    """
    if span is None or not np.isfinite(values).all():
        return []
    return [int(s) for s in np.flatnonzero(values >= values.min() + span * (1.0 - 1e-9))]


# ---------------------------------------------------------------------- plain values


def plain_value(value: Any) -> Any:
    """A Python value; None for anything that is not a finite number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):  # pandas' NA
        return None
    return number if math.isfinite(number) else None


def listed(array: NDArray[Any]) -> list[Any]:
    """An array as a list of plain values."""
    return [plain_value(x) for x in array.tolist()]


def _environment_json(environment: Environment, with_curves: bool) -> dict[str, Any]:
    from gainful.report.importance_section import effects_json
    from gainful.report.ranking import lead_json, leads, ranked

    found: dict[str, Any] = {
        "environment": environment.label,
        "name": environment.name,
        "parameters": environment.parameters,
        "n_states": environment.n_states,
        "n_actions": environment.n_actions,
        "gain": environment.gain,
        "gain_source": environment.gain_source,
        "objective": environment.units.objective,
        "gain_is": environment.units.gain_name,
        "gain_in_these_units": environment.shown_gain,
        "continuous": environment.continuous,
        "measure": environment.measure,
        "rows": [group.row for group in environment.groups],
        "ranking": [group.agent for rank, group in ranked(environment) if rank is not None],
        "leads": [lead_json(lead) for lead in leads(environment)],
        "parameter_importance": effects_json(environment),
        "runs": [_run_json(group.agent, run) for group in environment.groups for run in group.runs],
        "optimism": {g.agent: _lists(g.optimism) for g in environment.groups if g.optimism},
        "bonus": {g.agent: _lists(g.bonus) for g in environment.groups if g.bonus},
        "last_plan": {g.agent: _plan_json(g.last_plan) for g in environment.groups if g.last_plan},
        "not_drawn": environment.no_drawing,
    }
    if with_curves:
        found["curves"] = {
            g.agent: {measure: {"step": listed(c.steps), **_lists(c.statistics)} for measure, c in g.curves.items()}
            for g in environment.groups
        }
    return found


def _run_json(agent: str, run: RunRecord) -> dict[str, Any]:
    return {
        "agent": agent,
        "seed": run.seed,
        "run_id": run.run_id,
        "steps": run.steps,
        **run.regrets,
        "reward_per_step": run.reward_per_step,
        "episodes": run.episodes,
        "planning_seconds": run.planning_seconds,
        "acting_seconds": run.acting_seconds,
    }


def _lists(arrays: dict[str, Floats]) -> dict[str, list[Any]]:
    return {name: listed(array) for name, array in arrays.items()}


def _plan_json(plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "seed": plan["seed"],
        "span": plan["span"],
        "actions": listed(plan["actions"]),
        "values": listed(plan["values"]),
        "visits": [listed(row) for row in plan["visits"]],
        "constraint_bites_in": binding_states(plan["values"], plan["span"]),
    }
