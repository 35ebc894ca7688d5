"""Run an experiment with more and more seeds until it is decided who is better than whom.

Nothing is remembered between two looks but the runs themselves: the decisions are a function of what is stored, so a
comparison that was killed and resumed comes to the same ones. What was decided is kept in the store for the report.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gainful.errors import ExperimentError, InvalidArgumentError, StoreError
from gainful.experiments.results import results
from gainful.experiments.sequential_comparison import SequentialComparison, compare_sequentially
from gainful.experiments.sequential_test import SequentialDesign, flips_for
from gainful.experiments.spec import Spec, read_spec
from gainful.experiments.spec_resolution import Labels
from gainful.experiments.staged_spec import StagedSpec
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.sweep import (
    CHECKPOINT_EVERY,
    ExperimentOutcome,
    SweepWatcher,
    locked_folder,
    run_experiment,
)
from gainful.simulation.run import REGRETS

if TYPE_CHECKING:
    import pandas as pd

COMPARISON_FACT = "comparison"
"""Where a store keeps what was decided."""
DEFAULT_INTERIMS = 10
"""Looks at the data if no number of seeds is given."""

Values = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class DecidedOutcome:
    """What `run_until_decided` did.

    Attributes
    ----------
    experiment : ExperimentOutcome
        The runs, as `run_experiment` says it; `planned` counts those that were asked for until now.
    comparison : SequentialComparison or None
        Who is better than whom; None if the runs of the first look are incomplete.
    measures : dict
        What was compared in each environment: "expected_regret", another regret, or "reward".
    """

    experiment: ExperimentOutcome
    comparison: SequentialComparison | None
    measures: dict[str, str]

    def to_json(self) -> dict[str, Any] | None:
        """The comparison as plain values; None if there is none yet."""
        return None if self.comparison is None else comparison_json(self.comparison, self.measures)


def comparison_json(comparison: SequentialComparison, measures: dict[str, str]) -> dict[str, Any]:
    """A comparison and what was compared, as plain values."""
    return {**comparison.to_json(), "measures": measures}


def run_until_decided(
    spec: Spec | str | Path,
    out: str | Path | None = None,
    *,
    error: float = 0.05,
    max_seeds: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    timeout: float | None = None,
    tries: int = 3,
    fail_fast: bool = False,
    checkpoint_every: float = CHECKPOINT_EVERY,
    watcher: SweepWatcher | None = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
    on_look: Callable[[SequentialComparison], None] | None = None,
) -> DecidedOutcome:
    """Add seeds until it is decided, for every two agents in every environment, which is better.

    The spec's `seeds` is how many seeds are added before each look at the results. An agent gets more seeds as long as
    one of its comparisons is undecided. The probability that two equal agents are called different, in any comparison
    at any look, is at most `error` (`gainful.experiments.sequential_comparison`).

    Parameters
    ----------
    spec : Spec, str or Path
        As for `run_experiment`, with a number of seeds rather than a list.
    out : str or Path, optional
        The folder of results; by default `results/NAME`. The same call again resumes, to the same decisions.
    error : float
        The probability of any wrong decision among equal agents.
    max_seeds : int, optional
        Seeds after which what is undecided stays undecided, a multiple of the spec's; by default ten times the spec's.
    jobs, dask, timeout, tries, fail_fast, checkpoint_every, watcher, device
        As for `run_experiment`.
    on_look : callable, optional
        Receives the `SequentialComparison` after every look.

    Returns
    -------
    DecidedOutcome
        The decisions, and what was run.

    Raises
    ------
    InvalidArgumentError
        If there are not two agents in one environment, the spec lists its seeds, or `max_seeds` cannot decide anything.
    ExperimentError
        If the folder holds a comparison that was begun with another error, other seeds or other agents.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> from gainful.experiments.spec import read_spec
    >>> agents = [{"name": "fixed", "label": "at random"}, {"name": "fixed", "label": "stay"}]
    >>> agents[1]["parameters"] = {"policy": [0, 0, 0]}
    >>> spec = {"horizon": 100, "seeds": 8, "environments": [{"name": "toy3d"}], "agents": agents}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = gf.run_until_decided(read_spec(spec), folder, max_seeds=16, jobs=1)
    >>> [pair.sentence for pair in found.comparison.pairs]
    ['at random is better than stay (8 seeds)']
    """
    asked = spec if isinstance(spec, Spec) else read_spec(spec)
    folder = Path(out) if out is not None else Path("results") / asked.name
    design = _design(asked, error, max_seeds)
    _check_design(folder, asked, design)
    found, measures = _decided_so_far(folder, asked, design)
    ran, seconds = 0, 0.0
    while True:
        staged = StagedSpec.of(asked, _wanted(asked, folder, design, found))
        outcome = run_experiment(
            staged,
            folder,
            jobs=jobs,
            dask=dask,
            timeout=timeout,
            tries=tries,
            fail_fast=fail_fast,
            checkpoint_every=checkpoint_every,
            watcher=watcher,
            device=device,
        )
        ran, seconds = ran + outcome.ran, seconds + outcome.seconds
        found, measures = _decided_so_far(folder, asked, design)
        if found is not None:
            _keep(folder, asked, comparison_json(found, measures))
            if on_look is not None:
                on_look(found)
        if outcome.stopped or not outcome.complete or (found is not None and found.finished):
            break
    return DecidedOutcome(replace(outcome, ran=ran, seconds=seconds), found, measures)


# ---------------------------------------------------------------------- the design


def _design(spec: Spec, error: float, max_seeds: int | None) -> SequentialDesign:
    n = len(spec.seeds)
    if spec.seeds != tuple(range(n)):
        raise InvalidArgumentError(
            "seeds",
            list(spec.seeds),
            "a number, such as seeds = 10",
            problem="a list of seeds cannot be continued until the ranking is decided",
        )
    family = _family(spec)
    comparisons = sum(len(agents) * (len(agents) - 1) // 2 for agents in family.values())
    if not comparisons:
        raise InvalidArgumentError(
            "agents",
            spec.agent_labels,
            "two agents in one environment",
            "add an agent to the spec, or run it without until-decided",
            problem="no environment of the spec has two agents to compare",
        )
    if max_seeds is None:
        interims = DEFAULT_INTERIMS
    elif max_seeds < n or max_seeds % n:
        raise InvalidArgumentError(
            "max_seeds", max_seeds, f"a multiple of {n}, the seeds that the spec adds before each look"
        )
    else:
        interims = max_seeds // n
    SequentialDesign(error, n, interims)  # checks each number by itself
    design = SequentialDesign(error, n, interims, flips_for(comparisons, interims, error))
    design.check_decidable(comparisons)
    return design


def _family(spec: Spec) -> dict[str, list[str]]:
    """The agents of every environment."""
    found: dict[str, list[str]] = {}
    for environment, agent in dict.fromkeys(spec.labels):
        found.setdefault(environment, []).append(agent)
    return found


def _check_design(folder: Path, spec: Spec, design: SequentialDesign) -> None:
    """What was fixed before the first look stays as it was."""
    before = read_comparison(folder) if (folder / STORE_FILE).exists() else None
    if before is None:
        return
    now = {"design": design.to_json(), "family": _family(spec)}
    then = {name: before[name] for name in now}
    if then != now:
        changed = _changes(then, now)
        raise ExperimentError(
            f"{folder} holds a comparison that was begun differently: {'; '.join(changed)}. What is fixed before the "
            "first look cannot be changed after it without more error. Repeat the first command, or choose another "
            "folder (--out)",
            name=str(folder),
        )


def _changes(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    old, new = ({**one["design"], "most": _most_seeds(one["design"])} for one in (then, now))
    names = {"error": "error", "seeds_per_interim": "seeds per look", "most": "max_seeds"}
    found = [f"{word} {old.get(name)} -> {new[name]}" for name, word in names.items() if old.get(name) != new[name]]
    return found + (["other agents or environments"] if then["family"] != now["family"] else [])


def _most_seeds(design: dict[str, Any]) -> int:
    return int(design["seeds_per_interim"]) * int(design["max_interims"])


# ---------------------------------------------------------------------- values and decisions


def _stored_values(folder: Path, spec: Spec) -> tuple[Values, dict[str, str]]:
    """The values of every agent on seeds 0, 1, 2 and so on, as far as they are stored, and what they measure."""
    family = _family(spec)
    values: Values = {environment: {agent: [] for agent in agents} for environment, agents in family.items()}
    measures: dict[str, str] = {}
    frame = results(folder) if (folder / STORE_FILE).exists() else None
    if frame is None or not len(frame):
        return values, measures
    for environment, here in frame.groupby("environment", sort=False, observed=True):
        name = str(environment)
        if name in family:
            last = _at_last_shared_step(here)
            measures[name] = _measure(last)
            for agent, of_agent in last.groupby("agent", sort=False, observed=True):
                by_seed = dict(zip(of_agent["seed"], of_agent[measures[name]], strict=True))
                if str(agent) in values[name]:
                    values[name][str(agent)] = _prefix(by_seed)
    return values, measures


def _at_last_shared_step(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run of an environment, at the last step that all of them have."""
    counts = runs.groupby("step", sort=True)["run_id"].nunique()
    shared = counts.index[counts == runs["run_id"].nunique()]
    if not len(shared):
        raise ExperimentError(
            "agents whose runs share no checkpoint cannot be compared", hint="give them the same horizon"
        )
    found: pd.DataFrame = runs[runs["step"] == shared[-1]]
    return found


def _measure(last: pd.DataFrame) -> str:
    """The first regret that is known for all runs, or the reward."""
    known = (name for name in REGRETS if name in last.columns and np.isfinite(last[name]).all())
    return next(known, "reward")


def _prefix(by_seed: dict[int, float]) -> list[float]:
    """The values of seeds 0, 1, 2, … up to the first that is missing."""
    found: list[float] = []
    while len(found) in by_seed:
        found.append(float(by_seed[len(found)]))
    return found


def _decided_so_far(
    folder: Path, spec: Spec, design: SequentialDesign
) -> tuple[SequentialComparison | None, dict[str, str]]:
    """The decisions that follow from what is stored, and what they compare."""
    values, measures = _stored_values(folder, spec)
    several = {environment: agents for environment, agents in values.items() if len(agents) > 1}
    if any(len(found) < design.seeds_per_interim for agents in several.values() for found in agents.values()):
        return None, measures
    rewards = [environment for environment in several if measures[environment] == "reward"]
    return compare_sequentially(several, design, larger_is_better=rewards), measures


def _wanted(
    spec: Spec, folder: Path, design: SequentialDesign, found: SequentialComparison | None
) -> dict[Labels, int]:
    """How many seeds each pair of environment and agent should have now; never fewer than were asked for before."""
    counts = dict.fromkeys(spec.labels, design.seeds_per_interim)
    if (folder / STORE_FILE).exists():
        with Store.read(folder) as store:
            for row in store.progress():
                labels = Labels(row["environment"], row["agent"])
                if labels in counts:
                    counts[labels] = max(counts[labels], row["planned"])
    if found is not None and not found.finished:
        for environment in found.seeds_used:
            for agent in found.open_agents(environment):
                labels = Labels(environment, agent)
                counts[labels] = max(counts[labels], (found.interims + 1) * design.seeds_per_interim)
    return counts


# ---------------------------------------------------------------------- what is kept


def read_comparison(folder: str | Path) -> dict[str, Any] | None:
    """What `run_until_decided` has decided in this folder, as plain values; None if there is no comparison.

    Raises
    ------
    StoreError
        If there is no experiment in the folder, or what it says is not a comparison.
    """
    with Store.read(folder) as store:
        return stored_comparison(store)


def stored_comparison(store: Store) -> dict[str, Any] | None:
    """The same, of a store that is open."""
    text = store.fact(COMPARISON_FACT)
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{store.path}: its comparison is damaged: {error}", name=str(store.path)) from error
    expected = {"design", "pairs", "seeds", "interims", "measures", "family", "decided", "finished"}
    if not isinstance(found, dict) or not expected <= set(found):
        raise StoreError(f"{store.path}: its comparison is incomplete", name=str(store.path))
    return found


def _keep(folder: Path, spec: Spec, facts: dict[str, Any]) -> None:
    text = json.dumps({**facts, "family": _family(spec)}, ensure_ascii=False, allow_nan=False)
    with locked_folder(folder), Store.open(folder) as store:
        if store.fact(COMPARISON_FACT) != text:
            store.keep_fact(COMPARISON_FACT, text)
