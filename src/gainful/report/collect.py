"""Everything a report shows, gathered from a store in one pass over its runs.

The numbers are those of `gainful.experiments.aggregates`, made group by group (all runs of one agent in one
environment), so that memory does not grow with the number of runs.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import ExperimentError, StoreError
from gainful.experiments.aggregates import curves, summary
from gainful.experiments.auditing import read_audits
from gainful.experiments.environment_facts import stored_units
from gainful.experiments.execution import evenly_in_log
from gainful.experiments.foreign_names import on_points
from gainful.experiments.log_slopes import constant_of, model_class, slope_columns
from gainful.experiments.store import Store
from gainful.experiments.until_decided import stored_comparison
from gainful.experiments.wire_format import unpack
from gainful.plot.centres import CURVE_COLUMNS
from gainful.report.content import Curves, Environment, Group, Report, RunRecord, plain_value
from gainful.report.drawing import drawing_of
from gainful.simulation.run import REGRETS

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

SHOWN_RUN_VALUES = 300_000
"""Values of single runs kept for all curves together; beyond that, runs and steps are thinned."""
SHOWN_RUN_STEPS = 40
"""Steps of a single run that are kept when curves are thinned."""
SHOWN_EPISODES = 150
"""Episodes of a run that are shown, spread evenly over the logarithm of the step."""
SHOWN_EPISODE_VALUES = 400_000
"""Values kept of the episodes of all runs together; beyond that, fewer episodes are kept of each run."""
FEWEST_EPISODES = 8
"""Episodes that are kept of a run at least, or none: where there is no room, some runs keep theirs."""
SHOWN_PAIRS = 400
"""Pairs of state and action whose bonus is shown, spread evenly over the order of visits."""


def collect(folder: str | Path) -> Report:
    """Read the finished runs of an experiment.

    Parameters
    ----------
    folder : path
        The folder of the experiment, or its store.

    Returns
    -------
    Report
        Everything that a page shows; `to_json()` gives it as plain values.

    Raises
    ------
    ExperimentError
        If no run has finished yet.
    """
    with Store.read(folder) as store:
        progress = store.progress()  # before the runs, of which more may be stored meanwhile
        labels, known = _group_labels(store)
        if not known:
            planned = sum(row["planned"] for row in progress)
            raise ExperimentError(
                f"{folder}: no run has finished ({planned:,} planned), so there is nothing to report",
                name=str(folder),
                found=0,
                hint="gainful run makes the runs",
            )
        groups = len(set(known.values()))
        budget = SHOWN_RUN_VALUES // (groups * len(REGRETS))
        kept_episodes = _kept_episodes(list(known))
        environments: dict[str, Environment] = {}
        found: dict[tuple[str, str], Group] = {}
        facts, known_facts = _Provenance(), store.facts()
        for (environment, agent), runs in _grouped(store, labels, known, kept_episodes):
            first = runs[0].row
            if environment not in environments:
                environments[environment] = _environment(environment, first, known_facts)
            found[environment, agent] = _group(environment, agent, runs, budget)
            for run in runs:
                facts.add(run.row)
        agents = list(dict.fromkeys(agent for _, agent in labels.values()))
        for label in dict.fromkeys(environment for environment, _ in labels.values()):
            environments[label].groups = [found[label, a] for a in agents if (label, a) in found]
        ordered = [environments[label] for label in dict.fromkeys(e for e, _ in labels.values())]
        text = store.spec_text
        return Report(
            str(folder),
            store.title,
            _notes(text),
            text,
            agents,
            ordered,
            progress,
            store.failures(),
            facts.made_by,
            sorted(facts.seeds),
            facts.seconds,
            facts.first,
            facts.last,
            read_audits(store.path.parent),
            stored_comparison(store),
        )


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class _Run:
    """A stored run: its row and its curves; only the run with the lowest seed of a group keeps all its arrays."""

    row: dict[str, Any]
    steps: NDArray[np.int64]
    rewards: Floats
    pseudo_regret: Floats
    expected_regret: Floats
    sweeps: float
    plans: dict[str, Floats]
    arrays: dict[str, NDArray[Any]]


def _group_labels(store: Store) -> tuple[dict[int, tuple[str, str]], dict[str, int]]:
    """Environment and agent label of each configuration with finished runs, and the configuration of each run.

    Two configurations with the same labels (one experiment with two horizons) form one group, unless they share a
    seed: then each is a group of its own, and its label names the horizon.
    """
    configured: dict[int, tuple[str, str, int]] = {}
    seeds: dict[int, set[int]] = {}
    known: dict[str, int] = {}
    for row in store.runs(data=False):
        number = row["configuration"]
        configured.setdefault(number, (row["environment_label"], row["agent_label"], row["horizon"]))
        seeds.setdefault(number, set()).add(row["seed"])
        known[row["run_id"]] = number
    alike: dict[tuple[str, str], list[int]] = {}
    for number, (environment, agent, _) in configured.items():
        alike.setdefault((environment, agent), []).append(number)
    labels: dict[int, tuple[str, str]] = {}
    taken: set[tuple[str, str]] = set(alike)
    for (environment, agent), numbers in alike.items():
        shared = sum(len(seeds[n]) for n in numbers) > len(set[int]().union(*(seeds[n] for n in numbers)))
        for number in numbers:
            name = agent
            if shared:
                name = f"{agent} (T = {configured[number][2]:,})"
                while (environment, name) in taken:
                    name += " again"
                taken.add((environment, name))
            labels[number] = environment, name
    return {number: labels[number] for number in configured}, known


def _kept_episodes(run_ids: list[str]) -> dict[str, int]:
    """How many episodes a page keeps of each run: of all runs equally many, or the fewest of some, evenly spread."""
    fair = SHOWN_EPISODE_VALUES // (len(_PLAN_FIELDS) * len(run_ids))
    if fair >= FEWEST_EPISODES:
        return dict.fromkeys(run_ids, min(SHOWN_EPISODES, fair))
    room = SHOWN_EPISODE_VALUES // (len(_PLAN_FIELDS) * FEWEST_EPISODES)
    chosen = np.linspace(0, len(run_ids) - 1, room).astype(int)
    return dict.fromkeys((run_ids[i] for i in chosen), FEWEST_EPISODES)


def _grouped(
    store: Store, labels: dict[int, tuple[str, str]], known: dict[str, int], kept_episodes: dict[str, int]
) -> Iterator[tuple[tuple[str, str], list[_Run]]]:
    """The runs of each group as soon as all of them have been read; runs stored in the meantime are left out."""
    left: dict[tuple[str, str], int] = {}
    for number in known.values():
        left[labels[number]] = left.get(labels[number], 0) + 1
    waiting: dict[tuple[str, str], list[_Run]] = {}
    for row in store.runs():
        if row["run_id"] not in known:
            continue
        group = labels[known[row["run_id"]]]
        runs = waiting.setdefault(group, [])
        lowest = not runs or row["seed"] < min(run.row["seed"] for run in runs if run.arrays)
        runs.append(_unpacked(row, store.path, lowest, kept_episodes.get(row["run_id"], 0)))
        left[group] -= 1
        if left[group] == 0:
            yield group, sorted(waiting.pop(group), key=lambda run: run.row["seed"])


def _unpacked(row: dict[str, Any], path: Path, keep_all: bool, kept_episodes: int) -> _Run:
    try:
        _, arrays = unpack(row.pop("data"))
        steps, rewards, pseudo_regret = (arrays[name] for name in ("steps", "rewards", "pseudo_regret"))
    except (ValueError, KeyError) as error:
        raise StoreError(
            f"{path}: run {row['run_id']} is damaged: {error}",
            name=str(path),
            found=row["run_id"],
            hint="delete it from the table runs, and run the experiment again",
        ) from error
    sweeps = arrays.get("episode_sweeps", np.empty(0))
    # copies: the arrays are views of everything that was unpacked
    return _Run(
        row,
        steps.copy(),
        rewards.copy(),
        pseudo_regret.copy(),
        arrays.get("expected_regret", np.full(steps.size, np.nan)).copy(),
        float(sweeps.mean()) if sweeps.size else math.nan,
        _plans(arrays, SHOWN_EPISODES if keep_all else kept_episodes),
        arrays if keep_all else {},
    )


def _environment(label: str, row: dict[str, Any], facts: dict[str, dict[str, Any]]) -> Environment:
    parameters = json.loads(row["environment_parameters"])
    drawing, reason = drawing_of(row["environment"], parameters, row["n_states"])
    return Environment(
        label,
        row["environment"],
        parameters,
        row["n_states"],
        row["n_actions"],
        row["gain"],
        row["gain_source"],
        on_points(row["environment"], parameters),
        [],
        drawing,
        reason,
        stored_units(facts, row["environment"], parameters),
    )


class _Provenance:
    """Where and when the runs were made, counted run by run."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Any, ...], int] = {}
        self.seeds: set[int] = set()
        self.seconds, self.first, self.last = 0.0, math.inf, -math.inf

    _NAMES = ("version", "commit", "results_version", "python", "platform", "packages")

    def add(self, row: dict[str, Any]) -> None:
        """Count one more run."""
        key = tuple(row[name] for name in self._NAMES)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seeds.add(row["seed"])
        self.seconds += row["seconds"]
        self.first, self.last = min(self.first, row["finished_at"]), max(self.last, row["finished_at"])

    @property
    def made_by(self) -> list[dict[str, Any]]:
        """Every combination of versions and platform, with its number of runs."""
        return [dict(zip(self._NAMES, key, strict=True)) | {"runs": n} for key, n in self.counts.items()]


def _notes(text: str) -> str:
    """The notes of a spec, which is TOML, or JSON if it was made in Python; empty if it has none."""
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
    row: dict[str, Any] = {str(name): plain_value(value) for name, value in summary(frame).iloc[0].items()}
    reward = curves(frame, "reward")
    row |= _extra(runs, reward) | _slopes(frame, runs[0].row)
    shown = [name for name in REGRETS if row[f"{name}_mean"] is not None]
    if any(run.row["gain"] is None for run in runs):
        shown = []
    found = {name: curves(frame, name) for name in shown} or {"reward": reward}
    by_measure = {name: _curves(table, name, runs, budget) for name, table in found.items()}
    first = runs[0]
    return Group(
        agent,
        row,
        {name: c for name, c in by_measure.items() if c.steps.size},
        first.plans,
        _bonus(first),
        _last_plan(first),
        _finals(runs, row["final_step"]),
        [_record(run) for run in runs],
    )


def _slopes(frame: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    """How fast expected regret grows over ln T, beside the constant C of an ergodic environment for this agent."""
    table, unknown = curves(frame, "expected_regret"), model_class(row["agent"])
    constant = constant_of(row["environment"], json.loads(row["environment_parameters"]), unknown)
    found = slope_columns(table["step"], table["mean"], constant, unknown)
    return {name: plain_value(value) for name, value in found.items()}


def _finals(runs: list[_Run], step: int | None) -> dict[str, dict[int, float]]:
    """The value of each measure at `step` by seed; a measure that is unknown for some run is left out."""
    if step is None:
        return {}
    found = {}
    for measure in (*REGRETS, "reward"):
        if measure == "regret" and any(run.row["gain"] is None for run in runs):
            continue
        values = {
            int(run.row["seed"]): float(_measured(run, measure)[np.searchsorted(run.steps, step)]) for run in runs
        }
        if all(math.isfinite(value) for value in values.values()):
            found[measure] = values
    return found


def _record(run: _Run) -> RunRecord:
    known = [name for name in REGRETS if name != "regret" or run.row["gain"] is not None]
    steps = int(run.steps[-1]) if run.steps.size else 0
    last = {name: float(_measured(run, name)[-1]) for name in known} if steps else {}
    return RunRecord(
        run.row["run_id"],
        int(run.row["seed"]),
        steps,
        {name: plain_value(last.get(name, math.nan)) for name in REGRETS},
        plain_value(run.rewards[-1] / steps) if steps else None,
        int(run.row["episodes"]),
        float(run.row["planning_seconds"]),
        float(run.row["acting_seconds"]),
        run.plans,
    )


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
            "environment": label(environment),
            "agent": label(agent),
            "seed": repeated("seed", np.int64),
            "run_id": pd.Categorical.from_codes(which, categories=pd.Index([run.row["run_id"] for run in runs])),
            "step": step,
            "reward": reward,
            "regret": step * gains[which] - reward,
            "pseudo_regret": np.concatenate([run.pseudo_regret for run in runs]),
            "expected_regret": np.concatenate([run.expected_regret for run in runs]),
            "planning_seconds": repeated("planning_seconds", np.float64),
            "acting_seconds": repeated("acting_seconds", np.float64),
        },
    )


def _extra(runs: list[_Run], reward: pd.DataFrame) -> dict[str, Any]:
    """What the table shows in addition to `summary`."""
    rows = [run.row for run in runs]
    holds, oracle = all(r["guarantee_holds"] for r in rows), any(r["span_is_oracle"] for r in rows)
    last = reward.iloc[-1] if len(reward) else None
    return {
        "guarantee": ("yes, c from an oracle" if oracle else "yes") if holds else "no guarantee",
        "guarantee_text": next((r["guarantee"] for r in rows if not r["guarantee_holds"]), rows[0]["guarantee"]),
        "vacuous_runs": sum(1 for r in rows if r["vacuous"]),
        "runs_without_expected_regret": sum(1 for run in runs if np.isnan(run.expected_regret[-1])),
        "span": rows[0]["span"],
        "episodes": plain_value(np.mean([r["episodes"] for r in rows])),
        "sweeps_per_episode": plain_value(np.mean([run.sweeps for run in runs])),
        "planning_seconds": plain_value(np.mean([r["planning_seconds"] for r in rows])),
        "acting_seconds": plain_value(np.mean([r["acting_seconds"] for r in rows])),
        "reward_per_step": None if last is None or not last["step"] else plain_value(last["mean"] / last["step"]),
        "name": rows[0]["agent"],
        "parameters": json.loads(rows[0]["agent_parameters"]),
    }


def _curves(table: pd.DataFrame, measure: str, runs: list[_Run], budget: int) -> Curves:
    steps = table["step"].to_numpy(dtype=np.int64)
    statistics = {name: table[name].to_numpy(dtype=np.float64) for name in CURVE_COLUMNS}
    k, n = steps.size, len(runs)
    points = np.arange(k) if n * k <= budget else np.unique(np.linspace(0, k - 1, min(k, SHOWN_RUN_STEPS)).astype(int))
    most = max(5, budget // max(1, points.size))
    chosen = runs if n <= most else [runs[i] for i in np.unique(np.linspace(0, n - 1, most).astype(int))]
    kept = steps[points]
    values = np.empty((len(chosen), kept.size), dtype=np.float32)
    for i, run in enumerate(chosen):
        at = np.searchsorted(run.steps, kept)
        values[i] = _measured(run, measure)[at]
    return Curves(steps, statistics, kept, [run.row["seed"] for run in chosen], values)


def _measured(run: _Run, measure: str) -> Floats:
    if measure == "expected_regret":
        return run.expected_regret
    if measure == "pseudo_regret":
        return run.pseudo_regret
    if measure == "reward":
        return run.rewards
    regret: Floats = run.steps * run.row["gain"] - run.rewards
    return regret


def plans_of(folder: str | Path, run_id: str) -> dict[str, Floats]:
    """Read step, gain, low and high of the episodes of one run; empty if it has none, or is not stored.

    A page of many runs has room for the episodes of some of them only.
    """
    with Store.read(folder) as store:
        for row in store.runs(only=run_id):
            return _unpacked(row, store.path, keep_all=True, kept_episodes=SHOWN_EPISODES).plans
    return {}


_PLAN_FIELDS = ("step", "gain", "gain_low", "gain_high")


def _plans(arrays_of_run: dict[str, NDArray[Any]], most: int) -> dict[str, Floats]:
    """Step and gain with its bracket of up to `most` episodes, or nothing if that is too few to show.

    Nothing, too, if no plan took a sweep: what such an agent stores as its gain is not that of a plan.
    """
    if most < FEWEST_EPISODES or any(f"episode_{name}" not in arrays_of_run for name in _PLAN_FIELDS):
        return {}
    if not np.any(arrays_of_run.get("episode_sweeps", 1)):
        return {}
    arrays = [np.asarray(arrays_of_run[f"episode_{name}"], dtype=np.float64) for name in _PLAN_FIELDS]
    known = np.isfinite(arrays[1])
    if not known.any():
        return {}
    step, gain, low, high = (a[known] for a in arrays)
    low, high = np.where(np.isfinite(low), low, gain), np.where(np.isfinite(high), high, gain)
    kept = evenly_in_log(step.astype(np.int64), most)
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
    kept = order[np.unique(np.linspace(0, order.size - 1, min(order.size, SHOWN_PAIRS)).astype(int))]
    return {"visits": n[kept], "bonus": b[kept]}


def _last_plan(run: _Run) -> dict[str, Any]:
    if any(name not in run.arrays for name in ("actions", "values", "visits")):
        return {}
    found = {name: run.arrays[name] for name in ("actions", "values", "visits")}
    return {**found, "span": run.row["span"], "seed": run.row["seed"]}
