"""What the script of a page reads: curves, plans, drawings and the palette, as one JSON object."""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.experiments.performance_profiles import factors_of_best, profile_curve, profile_end
from gainful.number_text import four_digits
from gainful.plot.centres import CENTRES, CURVE_COLUMNS, DEFAULT_CENTRE
from gainful.plot.palette import DARK_SERIES_COLOURS, DASH_PATTERNS, SERIES_COLOURS
from gainful.report.content import Curves, Environment, Group, Report, binding_states, listed
from gainful.report.ranking import compared_measure, ranked
from gainful.simulation.run import MEASURE_NAMES, REGRETS

READABLE_BANDS = 12
"""Agents up to which bands are shown at first; more of them hide each other."""


def page_data(report: Report) -> dict[str, Any]:
    """Everything the script needs; arrays are packed as float32."""
    grids = _Grids()
    environments = [_environment_data(report, i, e, grids) for i, e in enumerate(report.environments)]
    return {
        "grids": grids.steps,
        "environments": environments,
        "profile": _profile_data(report),
        "bands": max(len(e.groups) for e in report.environments) <= READABLE_BANDS,
        "measure": next(iter(shown_measures(report)), "reward"),
        "measures": {name: MEASURE_NAMES[name] for name in REGRETS},
        "centre": DEFAULT_CENTRE,
        "centres": {name: centre._asdict() for name, centre in CENTRES.items()},
        "columns": CURVE_COLUMNS,
        "palette": {"light": SERIES_COLOURS, "dark": DARK_SERIES_COLOURS, "dashes": DASH_PATTERNS},
    }


def shown_measures(report: Report) -> list[str]:
    """The measures of regret with a curve of every agent in some environment, the preferred one first."""
    drawn = [[g.curves for g in e.groups if g.curves] for e in report.environments]
    return [name for name in REGRETS if any(curves and all(name in c for c in curves) for curves in drawn)]


class _Grids:
    """The different lists of steps, each stored once."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self._known: dict[bytes, int] = {}

    def index(self, steps: NDArray[np.int64]) -> int:
        """Where a list of steps is stored."""
        key = steps.tobytes()
        if key not in self._known:
            self._known[key] = len(self.steps)
            self.steps.append([int(x) for x in steps])
        return self._known[key]


def _environment_data(report: Report, i: int, environment: Environment, grids: _Grids) -> dict[str, Any]:
    measure = compared_measure(environment)
    agents = [
        {
            "name": g.agent,
            "index": report.agents.index(g.agent),
            "curves": {measure: _curve_data(c, grids) for measure, c in g.curves.items()},
            "bonus": _packed(list(g.bonus.values())) if g.bonus else None,
            "runs": _runs_data(g, environment.per_step_factor),
            "finals": _packed(_final_values(environment, g)),
        }
        for g in environment.groups
    ]
    plans = {str(j): _plan_data(environment, g) for j, g in enumerate(drawable_groups(environment))}
    return {
        "index": i,
        "label": environment.label,
        "finals_name": MEASURE_NAMES[measure] if measure != "reward" else "reward per step",
        "order": [environment.groups.index(g) for _, g in ranked(environment)],
        "gain": environment.shown_gain,
        "gain_name": environment.gain_name,
        "earned_name": environment.units.gain_name.removeprefix("average ").capitalize(),
        "factor": environment.per_step_factor,
        "horizon": max((int(c.steps[-1]) for g in environment.groups for c in g.curves.values()), default=1),
        "agents": agents,
        "plans": plans,
        "chosen": "0" if plans else None,
        "drawing": _drawing_data(environment) if plans else None,
    }


def _curve_data(curves: Curves, grids: _Grids) -> dict[str, Any]:
    return {
        "grid": grids.index(curves.steps),
        "statistics": _packed([curves.statistics[name] for name in CURVE_COLUMNS]),
        "run_steps": np.searchsorted(curves.steps, curves.seed_steps).tolist(),
        "seeds": curves.seeds,
        "runs": _packed(curves.runs),
    }


def _final_values(environment: Environment, group: Group) -> list[float]:
    """What is compared of every run, in the order of the seeds; a reward per step."""
    measure = compared_measure(environment)
    steps = float(group.row["final_step"] or 1) if measure == "reward" else 1.0
    return [value / steps for value in group.finals.get(measure, {}).values()]


RUN_COLUMNS = ("expected_regret", "pseudo_regret", "regret", "reward_per_step", "planning_seconds", "acting_seconds")
"""What is packed of every run, beside its id, seed, steps and number of episodes."""


def _runs_data(group: Group, factor: float) -> dict[str, Any]:
    """Every run; what it earned per step is multiplied by `factor`."""
    steps = [r.steps for r in group.runs]
    values = [
        [
            *(r.regrets[name] for name in REGRETS),
            None if r.reward_per_step is None else factor * r.reward_per_step,
            r.planning_seconds,
            r.acting_seconds,
        ]
        for r in group.runs
    ]
    return {
        "ids": [r.run_id for r in group.runs],
        "seeds": [r.seed for r in group.runs],
        "steps": steps[:1] if len(set(steps)) == 1 else steps,  # one for all
        "episodes": [r.episodes for r in group.runs],
        "values": _packed([[np.nan if x is None else x for x in row] for row in values]),
        "plans": {str(i): packed_plans(r.plans) for i, r in enumerate(group.runs) if r.plans},
    }


def packed_plans(plans: Mapping[str, NDArray[np.float64]]) -> str:
    """Step, gain, low and high of the episodes of a run, one after the other."""
    return _packed(list(plans.values()))


def _profile_data(report: Report) -> dict[str, Any] | None:
    """For every agent the corners of its performance profile; None if no two agents share a problem."""
    factors = profile_factors(report)
    if len(factors) < 2:
        return None
    end = profile_end(factors)
    curves = {agent: profile_curve(f, end) for agent, f in factors.items()}
    return {
        "end": end,
        "agents": [
            {
                "name": agent,
                "index": report.agents.index(agent),
                "problems": int(factors[agent].size),
                "curve": _packed(list(curve)),
            }
            for agent, curve in curves.items()
        ],
    }


def profile_factors(report: Report) -> dict[str, NDArray[np.float64]]:
    """Every agent's factors of the best one, over all environments and seeds; an environment compares one measure."""
    values: dict[str, dict[Hashable, float]] = {}
    for i, environment in enumerate(report.environments):
        for rank, group in ranked(environment):
            if rank is not None and environment.measure in group.finals:
                mine = values.setdefault(group.agent, {})
                mine |= {(i, seed): value for seed, value in group.finals[environment.measure].items()}
    found = factors_of_best(values)
    return {agent: found[agent] for agent in report.agents if agent in found}


def drawable_groups(environment: Environment) -> list[Group]:
    """The groups whose last plan fits the drawing of the environment."""
    return [g for g in environment.groups if _drawable(environment, g)]


def _drawable(environment: Environment, group: Group) -> bool:
    if environment.drawing is None or not group.last_plan:
        return False
    shape = len(environment.drawing.states), len(environment.drawing.actions)
    plan = group.last_plan
    return (
        plan["visits"].shape == shape
        and plan["values"].shape == shape[:1]
        and plan["actions"].shape == shape[:1]
        and bool(np.isfinite(plan["values"]).all())
    )


def _plan_data(environment: Environment, group: Group) -> dict[str, Any]:
    plan = group.last_plan
    binding = binding_states(plan["values"], plan["span"])
    drawing = environment.drawing
    assert drawing is not None
    spread = float(plan["values"].max() - plan["values"].min())
    sentence = f"sp(v) = {four_digits(spread)}"
    if plan["span"] is None:
        sentence += "; this agent does not constrain the span."
    else:
        names = ", ".join(drawing.states[s] for s in binding[:8]) + (", …" if len(binding) > 8 else "")
        where = f"binding in {names}" if binding else "not binding in any state"
        sentence += f" and c = {four_digits(plan['span'])}: the span constraint is {where}."
    return {
        "actions": listed(plan["actions"]),
        "values": listed(plan["values"]),
        "visits": [listed(row) for row in plan["visits"]],
        "span": plan["span"],
        "binding": binding,
        "story": f"Seed {plan['seed']}, last plan: {sentence}",
    }


def _drawing_data(environment: Environment) -> dict[str, Any]:
    drawing = environment.drawing
    assert drawing is not None
    return {
        "states": drawing.states,
        "actions": drawing.actions,
        "allowed": drawing.allowed.tolist(),
        "shape": drawing.shape,
        "positions": drawing.positions,
        "arrows": [
            [arrow.origin, arrow.target, arrow.control, round(arrow.angle, 3), arrow.transitions]
            for arrow in drawing.arrows
        ],
    }


def _packed(values: ArrayLike) -> str:
    """float32, little-endian, in base64."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii")
