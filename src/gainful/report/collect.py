"""Everything a report shows, gathered from a store in one pass over its runs.

The numbers are those of `gainful.experiments.aggregates`, made group by group (all runs of one agent in one
environment), so that memory does not grow with the number of runs.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.environments import registry
from gainful.errors import ExperimentError, StoreError
from gainful.experiments.aggregates import curves, summary
from gainful.experiments.auditing import read_audits
from gainful.experiments.execution import evenly_in_log
from gainful.experiments.store import Store
from gainful.experiments.wire_format import unpack
from gainful.report.drawing import Drawing, drawing_of

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

MOST_SEED_VALUES = 300_000
"""Numbers of single runs kept for all curves together; of more, runs and steps are thinned."""
MOST_SEED_STEPS = 40
MOST_EPISODES = 150
"""Episodes of a run shown, spread evenly over the logarithm of the step."""
MOST_PAIRS = 400
"""Pairs of state and action whose bonus is shown, spread evenly over the order of visits."""
MEASURES = ("pseudo_regret", "regret", "reward")
STATISTICS = ("mean", "median", "iqm", "low", "high")


@dataclass(frozen=True, eq=False)
class Curves:
    """One measure of one group: at each step the statistics over runs, and some runs themselves."""

    steps: NDArray[np.int64]  # (k,)
    statistics: dict[str, Floats]  # each (k,): STATISTICS
    seed_steps: NDArray[np.int64]  # (j,), some of steps
    seeds: list[int]  # n of them
    runs: NDArray[np.float32]  # (n, j)


@dataclass(frozen=True, eq=False)
class Group:
    """All runs of one agent in one environment."""

    agent: str
    row: dict[str, Any]
    """A line of the headline table: plain values, None where a number is unknown."""
    curves: dict[str, Curves]
    optimism: dict[str, Floats]
    """step, gain, low and high of the episodes of the run with the lowest seed; empty if it has none."""
    bonus: dict[str, Floats]
    """visits and bonus of pairs at the end of that run; empty if it stored none."""
    last_plan: dict[str, Any]
    """actions, values, visits of that run, and span, the bound c; empty if it stored none."""


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
    """Whether its states are points; then n_states is the number of cells of the first agent."""
    groups: list[Group] = field(default_factory=list)
    drawing: Drawing | None = None
    no_drawing: str = ""
    """Why there is none."""


@dataclass(frozen=True, eq=False)
class Report:
    """What a page shows."""

    folder: str
    title: str
    notes: str
    spec: str
    agents: list[str]
    environments: list[Environment]
    progress: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    made_by: list[dict[str, Any]]
    """Versions, commit and platform, each combination once, with its number of runs."""
    seeds: list[int]
    seconds: float
    """Of all runs together."""
    first_finished: float
    last_finished: float
    audit: dict[str, Any] | None = None
    """What `gainful audit` left in the folder."""

    def to_json(self, *, with_curves: bool = False) -> dict[str, Any]:
        """Everything as plain values at full precision; None where a number is unknown."""
        return {
            "title": self.title, "notes": self.notes, "folder": self.folder,
            "planned": sum(row["planned"] for row in self.progress),
            "finished": sum(row["finished"] for row in self.progress),
            "environments": [_environment_json(e, with_curves) for e in self.environments],
            "provenance": {
                "made_by": self.made_by, "seeds": self.seeds, "seconds": self.seconds,
                "first_finished": self.first_finished, "last_finished": self.last_finished,
            },
            "progress": self.progress, "failures": self.failures, "audit": self.audit, "spec": self.spec,
        }  # fmt: skip


def collect(folder: str | Path) -> Report:
    """Read the finished runs of an experiment; ExperimentError if there is none yet."""
    with Store.read(folder) as store:
        places, known = _places(store)
        if not known:
            planned = sum(row["planned"] for row in store.progress())
            raise ExperimentError(
                f"{folder}: no run has finished ({planned:,} planned), so there is nothing to report; gainful run "
                "makes them"
            )
        groups = len(set(known.values()))
        budget = MOST_SEED_VALUES // (groups * (len(MEASURES) - 1))
        environments: dict[str, Environment] = {}
        found: dict[tuple[str, str], Group] = {}
        facts = _Facts()
        for (environment, agent), runs in _grouped(store, places, known):
            first = runs[0].row
            if environment not in environments:
                environments[environment] = _environment(environment, first)
            found[environment, agent] = _group(environment, agent, runs, budget)
            for run in runs:
                facts.add(run.row)
        agents = list(dict.fromkeys(agent for _, agent in places.values()))
        for label in dict.fromkeys(environment for environment, _ in places.values()):
            environments[label].groups = [found[label, a] for a in agents if (label, a) in found]
        ordered = [environments[label] for label in dict.fromkeys(e for e, _ in places.values())]
        text = store.spec_text
        return Report(
            str(folder), store.title, _notes(text), text, agents, ordered, store.progress(), store.failures(),
            facts.made_by, sorted(facts.seeds), facts.seconds, facts.first, facts.last, read_audits(store.path.parent),
        )  # fmt: skip


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class _Run:
    """A stored run: its row without the data, and the curves; all arrays where the seed is the lowest of a group."""

    row: dict[str, Any]
    steps: NDArray[np.int64]
    rewards: Floats
    pseudo_regret: Floats
    sweeps: float
    arrays: dict[str, NDArray[Any]]


def _places(store: Store) -> tuple[dict[int, tuple[str, str]], dict[str, int]]:
    """Environment and agent label of each configuration with finished runs, and the configuration of each run.

    Two configurations of the same labels (one asked for with two horizons) are one group, unless they share a seed:
    then each is one of its own, and its label says the horizon.
    """
    labels: dict[int, tuple[str, str, int]] = {}
    seeds: dict[int, set[int]] = {}
    known: dict[str, int] = {}
    for row in store.runs(data=False):
        number = row["configuration"]
        labels.setdefault(number, (row["environment_label"], row["agent_label"], row["horizon"]))
        seeds.setdefault(number, set()).add(row["seed"])
        known[row["run_id"]] = number
    alike: dict[tuple[str, str], list[int]] = {}
    for number, (environment, agent, _) in labels.items():
        alike.setdefault((environment, agent), []).append(number)
    places: dict[int, tuple[str, str]] = {}
    taken: set[tuple[str, str]] = set(alike)
    for (environment, agent), numbers in alike.items():
        shared = sum(len(seeds[n]) for n in numbers) > len(set[int]().union(*(seeds[n] for n in numbers)))
        for number in numbers:
            name = agent
            if shared:
                name = f"{agent} (T = {labels[number][2]:,})"
                while (environment, name) in taken:
                    name += " again"
                taken.add((environment, name))
            places[number] = environment, name
    return {number: places[number] for number in labels}, known


def _grouped(
    store: Store, places: dict[int, tuple[str, str]], known: dict[str, int]
) -> Iterator[tuple[tuple[str, str], list[_Run]]]:
    """The runs of each group, as soon as all of them have been read; runs stored meanwhile are left out."""
    left: dict[tuple[str, str], int] = {}
    for number in known.values():
        left[places[number]] = left.get(places[number], 0) + 1
    waiting: dict[tuple[str, str], list[_Run]] = {}
    for row in store.runs():
        if row["run_id"] not in known:
            continue
        place = places[known[row["run_id"]]]
        runs = waiting.setdefault(place, [])
        lowest = not runs or row["seed"] < min(run.row["seed"] for run in runs if run.arrays)
        runs.append(_unpacked(row, store.path, keep_all=lowest))
        left[place] -= 1
        if left[place] == 0:
            yield place, sorted(waiting.pop(place), key=lambda run: run.row["seed"])


def _unpacked(row: dict[str, Any], path: Path, keep_all: bool) -> _Run:
    try:
        _, arrays = unpack(row.pop("data"))
        steps, rewards, pseudo_regret = (arrays[name] for name in ("steps", "rewards", "pseudo_regret"))
    except (ValueError, KeyError) as error:
        raise StoreError(
            f"{path}: run {row['run_id']}: damaged: {error}; delete it from runs, and run again"
        ) from error
    sweeps = arrays.get("episode_sweeps", np.empty(0))
    # copies: the arrays are views of everything that was unpacked
    return _Run(
        row, steps.copy(), rewards.copy(), pseudo_regret.copy(), float(sweeps.mean()) if sweeps.size else math.nan,
        arrays if keep_all else {},
    )  # fmt: skip


def _environment(label: str, row: dict[str, Any]) -> Environment:
    parameters = json.loads(row["environment_parameters"])
    drawing, reason = drawing_of(row["environment"], parameters, row["n_states"])
    return Environment(
        label, row["environment"], parameters, row["n_states"], row["n_actions"], row["gain"], row["gain_source"],
        row["environment"] in registry.continuous_names(), [], drawing, reason,
    )  # fmt: skip


class _Facts:
    """Where and when the runs were made."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Any, ...], int] = {}
        self.seeds: set[int] = set()
        self.seconds, self.first, self.last = 0.0, math.inf, -math.inf

    _NAMES = ("version", "commit", "results_version", "python", "platform", "packages")

    def add(self, row: dict[str, Any]) -> None:
        """One more run."""
        key = tuple(row[name] for name in self._NAMES)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seeds.add(row["seed"])
        self.seconds += row["seconds"]
        self.first, self.last = min(self.first, row["finished_at"]), max(self.last, row["finished_at"])

    @property
    def made_by(self) -> list[dict[str, Any]]:
        """Each combination, with its number of runs."""
        return [dict(zip(self._NAMES, key, strict=True)) | {"runs": n} for key, n in self.counts.items()]


def _notes(text: str) -> str:
    """The notes of a spec in TOML, or in JSON if it was made in Python; empty if there are none."""
    found: Any
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        try:
            found = json.loads(text)
        except ValueError:
            return ""
    notes = found.get("notes", "") if isinstance(found, dict) else ""
    return notes.strip() if isinstance(notes, str) else ""


# ---------------------------------------------------------------------- groups


def _group(environment: str, agent: str, runs: list[_Run], budget: int) -> Group:
    frame = _frame(environment, agent, runs)
    row: dict[str, Any] = {str(name): _plain(value) for name, value in summary(frame).iloc[0].items()}
    unknown = any(run.row["gain"] is None for run in runs)
    reward = curves(frame, "reward")
    row |= _extra(runs, reward)
    found = {"reward": reward} if unknown else {name: curves(frame, name) for name in MEASURES[:2]}
    by_measure = {name: _curves(table, name, runs, budget) for name, table in found.items()}
    first = runs[0]
    return Group(
        agent, row, {name: c for name, c in by_measure.items() if c.steps.size}, _optimism(first), _bonus(first),
        _last_plan(first),
    )  # fmt: skip


def _frame(environment: str, agent: str, runs: list[_Run]) -> pd.DataFrame:
    """The runs as `results` gives them, with the columns that aggregates need."""
    import pandas as pd

    lengths = [run.steps.size for run in runs]
    which = np.repeat(np.arange(len(runs)), lengths)

    def label(text: str) -> Any:
        return pd.Categorical.from_codes(np.zeros(which.size, dtype=np.int8), categories=pd.Index([text]))

    def repeated(name: str, kind: type) -> NDArray[Any]:
        found: NDArray[Any] = np.array([run.row[name] for run in runs], dtype=kind)[which]
        return found

    step, reward = (np.concatenate([getattr(run, name) for run in runs]) for name in ("steps", "rewards"))
    gains = np.array([np.nan if run.row["gain"] is None else run.row["gain"] for run in runs])
    return pd.DataFrame(
        {
            "environment": label(environment), "agent": label(agent), "seed": repeated("seed", np.int64),
            "run_id": pd.Categorical.from_codes(which, categories=pd.Index([run.row["run_id"] for run in runs])),
            "step": step, "reward": reward, "regret": step * gains[which] - reward,
            "pseudo_regret": np.concatenate([run.pseudo_regret for run in runs]),
            "planning_seconds": repeated("planning_seconds", np.float64),
            "acting_seconds": repeated("acting_seconds", np.float64),
        }
    )  # fmt: skip


def _extra(runs: list[_Run], reward: pd.DataFrame) -> dict[str, Any]:
    """What the table shows beyond `summary`."""
    rows = [run.row for run in runs]
    holds, told = all(r["guarantee_holds"] for r in rows), any(r["span_is_oracle"] for r in rows)
    last = reward.iloc[-1] if len(reward) else None
    return {
        "guarantee": ("yes, c from an oracle" if told else "yes") if holds else "no guarantee",
        "guarantee_text": next((r["guarantee"] for r in rows if not r["guarantee_holds"]), rows[0]["guarantee"]),
        "vacuous_runs": sum(1 for r in rows if r["vacuous"]), "span": rows[0]["span"],
        "episodes": _plain(np.mean([r["episodes"] for r in rows])),
        "sweeps_per_episode": _plain(np.mean([run.sweeps for run in runs])),
        "planning_seconds": _plain(np.mean([r["planning_seconds"] for r in rows])),
        "acting_seconds": _plain(np.mean([r["acting_seconds"] for r in rows])),
        "reward_per_step": None if last is None or not last["step"] else _plain(last["mean"] / last["step"]),
        "name": rows[0]["agent"], "parameters": json.loads(rows[0]["agent_parameters"]),
    }  # fmt: skip


def _curves(table: pd.DataFrame, measure: str, runs: list[_Run], budget: int) -> Curves:
    steps = table["step"].to_numpy(dtype=np.int64)
    statistics = {name: table[name].to_numpy(dtype=np.float64) for name in STATISTICS}
    k, n = steps.size, len(runs)
    points = np.arange(k) if n * k <= budget else np.unique(np.linspace(0, k - 1, min(k, MOST_SEED_STEPS)).astype(int))
    most = max(5, budget // max(1, points.size))
    chosen = runs if n <= most else [runs[i] for i in np.unique(np.linspace(0, n - 1, most).astype(int))]
    kept = steps[points]
    values = np.empty((len(chosen), kept.size), dtype=np.float32)
    for i, run in enumerate(chosen):
        at = np.searchsorted(run.steps, kept)
        values[i] = _measured(run, measure)[at]
    return Curves(steps, statistics, kept, [run.row["seed"] for run in chosen], values)


def _measured(run: _Run, measure: str) -> Floats:
    if measure == "pseudo_regret":
        return run.pseudo_regret
    if measure == "reward":
        return run.rewards
    regret: Floats = run.steps * run.row["gain"] - run.rewards
    return regret


def _optimism(run: _Run) -> dict[str, Floats]:
    names = ("step", "gain", "gain_low", "gain_high")
    if any(f"episode_{name}" not in run.arrays for name in names):
        return {}
    arrays = [np.asarray(run.arrays[f"episode_{name}"], dtype=np.float64) for name in names]
    known = np.isfinite(arrays[1])
    if not known.any():
        return {}
    step, gain, low, high = (a[known] for a in arrays)
    low, high = np.where(np.isfinite(low), low, gain), np.where(np.isfinite(high), high, gain)
    kept = evenly_in_log(step.astype(np.int64), MOST_EPISODES)
    return {"step": step[kept], "gain": gain[kept], "low": low[kept], "high": high[kept]}


def _bonus(run: _Run) -> dict[str, Floats]:
    bonus, visits = run.arrays.get("bonus"), run.arrays.get("visits")
    if bonus is None or visits is None or bonus.size != visits.size:
        return {}
    n, b = visits.reshape(-1).astype(np.float64), bonus.reshape(-1).astype(np.float64)
    order = np.argsort(n, kind="stable")
    order = order[(n[order] > 0.0) & np.isfinite(b[order]) & (b[order] > 0.0)]
    if order.size == 0:
        return {}
    kept = order[np.unique(np.linspace(0, order.size - 1, min(order.size, MOST_PAIRS)).astype(int))]
    return {"visits": n[kept], "bonus": b[kept]}


def _last_plan(run: _Run) -> dict[str, Any]:
    if any(name not in run.arrays for name in ("actions", "values", "visits")):
        return {}
    found = {name: run.arrays[name] for name in ("actions", "values", "visits")}
    return {**found, "span": run.row["span"], "seed": run.row["seed"]}


def bites(values: Floats, span: float | None) -> list[int]:
    """The states whose value is at min v + c, up to 1e-9·c: where the span constraint holds v down.

    >>> bites(np.array([0.0, 2.0, 1.0]), 2.0), bites(np.array([0.0, 1.0]), None)
    ([1], [])
    """
    if span is None or not np.isfinite(values).all():
        return []
    return [int(s) for s in np.flatnonzero(values >= values.min() + span * (1.0 - 1e-9))]


# ---------------------------------------------------------------------- plain values


def _plain(value: Any) -> Any:
    """A Python value; None for what is no finite number."""
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
    return [_plain(x) for x in array.tolist()]


def _environment_json(environment: Environment, with_curves: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "environment": environment.label, "name": environment.name, "parameters": environment.parameters,
        "n_states": environment.n_states, "n_actions": environment.n_actions, "gain": environment.gain,
        "gain_source": environment.gain_source, "continuous": environment.continuous,
        "rows": [group.row for group in environment.groups],
        "optimism": {g.agent: _lists(g.optimism) for g in environment.groups if g.optimism},
        "bonus": {g.agent: _lists(g.bonus) for g in environment.groups if g.bonus},
        "last_plan": {g.agent: _plan_json(g.last_plan) for g in environment.groups if g.last_plan},
        "not_drawn": environment.no_drawing,
    }  # fmt: skip
    if with_curves:
        found["curves"] = {
            g.agent: {
                measure: {"step": listed(c.steps), **_lists(c.statistics)} for measure, c in g.curves.items()
            }
            for g in environment.groups
        }  # fmt: skip
    return found


def _lists(arrays: dict[str, Floats]) -> dict[str, list[Any]]:
    return {name: listed(array) for name, array in arrays.items()}


def _plan_json(plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "seed": plan["seed"], "span": plan["span"], "actions": listed(plan["actions"]),
        "values": listed(plan["values"]), "visits": [listed(row) for row in plan["visits"]],
        "constraint_bites_in": bites(plan["values"], plan["span"]),
    }  # fmt: skip
