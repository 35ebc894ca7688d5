"""`tune`: search an agent's parameters; every trial is stored, and the best one is run again on fresh seeds.

The folder of a tuning holds `tuning.json` (the trials that were chosen) and two experiments: `trials`, on the tuning
seeds, and `confirmation`, on the confirmation seeds. Trials are chosen by Optuna's TPE, a batch at a time. A batch is
written to `tuning.json` before it runs, and depends on nothing but the spec and the results of the batches before. So
a tuning that was killed continues with the same trials.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.atomic_files import write_file
from gainful.cards import MOST_ROWS, card, left_out, rows_table
from gainful.checked_json import from_checked_json, to_checked_json
from gainful.errors import ExperimentError, InvalidArgumentError, InvalidSpecError, describe
from gainful.experiments.aggregates import Comparison, Interval, bootstrap_interval, compare, default_measure, mean
from gainful.experiments.configuration import hash_of
from gainful.experiments.results import results
from gainful.experiments.run_values import format_ends, format_number
from gainful.experiments.sweep import SweepWatcher, run_experiment
from gainful.experiments.tune_spec import GIVEN, Choice, SearchSpace, TuneSpec, read_tune_spec
from gainful.simulation.run import MEASURE_NAMES, REGRETS

if TYPE_CHECKING:
    import pandas as pd

TUNING_FILE = "tuning.json"
TUNING_VERSION = 1
RANDOM_TRIALS = 10
"""Trials chosen at random before TPE has seen enough to choose by."""
MOST_ASKED = 50
"""How often a new trial is asked for before the search space counts as exhausted."""


@dataclass(frozen=True)
class TuningTrial:
    """One set of parameters, and how it did on the tuning seeds.

    Attributes
    ----------
    number : int
        Counted from 1; 0 is the agent as given.
    parameters : dict
        The parameters that were searched.
    score : float
        What is minimised; NaN if some run failed, or has not been made.
    means : dict
        The mean over the tuning seeds of the measure at the horizon, by environment.
    problem : str
        Why there is no score; usually empty.
    """

    number: int
    parameters: dict[str, Any]
    score: float = math.nan
    means: Mapping[str, float] | None = None
    problem: str = ""

    @property
    def label(self) -> str:
        """The name of its agent in the stored experiments."""
        return f"trial {self.number}" if self.number else GIVEN


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tune` found.

    Attributes
    ----------
    folder : Path
        Where everything is stored; `folder / "trials"` and `folder / "confirmation"` are experiments.
    agent : str
        The name of the agent.
    given : dict
        The parameters of the spec.
    measure : str
        What was compared at the horizon, such as "expected_regret".
    trials : tuple of TuningTrial
        All trials, the agent as given first.
    best : TuningTrial
        The best trial of the search, by its score on the tuning seeds.
    seeds, confirmation_seeds : tuple of int
        The seeds on which trials were compared, and the fresh ones on which the best was run again.
    """

    folder: Path
    agent: str
    given: dict[str, Any]
    measure: str
    trials: tuple[TuningTrial, ...]
    best: TuningTrial
    seeds: tuple[int, ...]
    confirmation_seeds: tuple[int, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters given, with those of the best trial."""
        return {**self.given, **self.best.parameters}

    @cached_property
    def _confirmed(self) -> pd.DataFrame:
        return results(self.folder / "confirmation")

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the trials, the best first.

        Returns
        -------
        pandas.DataFrame
            One row per trial: trial, score, the parameters searched, the mean in each environment, problem.
        """
        import pandas as pd

        rows = [
            {"trial": t.label, "score": t.score, **t.parameters, **(t.means or {}), "problem": t.problem}
            for t in self.trials
        ]
        return pd.DataFrame(rows).sort_values("score", kind="stable").reset_index(drop=True)

    def confirmation(self, confidence: float = 0.95) -> pd.DataFrame:
        """Tabulate the runs on the fresh seeds, of which nothing was chosen: the numbers to report.

        Parameters
        ----------
        confidence : float
            The confidence of Student's intervals.

        Returns
        -------
        pandas.DataFrame
            One row per environment and agent (as given, and the best trial): runs, and mean with low and high.
        """
        import pandas as pd

        rows = []
        for environment in dict.fromkeys(self._confirmed["environment"]):
            for label in (GIVEN, self.best.label):
                final = _finals(self._confirmed, self.measure, label).get(str(environment), np.empty(0))
                found = Interval(math.nan, math.nan, math.nan, confidence)
                if final.size:
                    found = bootstrap_interval(final, mean, confidence, method="student")
                numbers = {"mean": found.estimate, "low": found.low, "high": found.high}
                rows.append({"environment": environment, "agent": label, "runs": final.size, **numbers})
        return pd.DataFrame(rows)

    def guarantee_holds(self, label: str) -> bool:
        """Tell whether the guarantee of the agent's theorem holds with the constants of a confirmed agent.

        Parameters
        ----------
        label : str
            "as given", or the label of the best trial.

        Returns
        -------
        bool
        """
        mine = self._confirmed[self._confirmed["agent"] == label]
        return bool(len(mine) and mine["guarantee_holds"].all())

    def comparison(self) -> Comparison | None:
        """Compare the best trial with the agent as given, on the fresh seeds that both ran.

        Returns
        -------
        Comparison or None
            None if the measure is the reward, which `aggregates.compare` does not take.
        """
        if self.measure not in REGRETS:
            return None
        return compare(self._confirmed, self.best.label, GIVEN, self.measure)

    def __repr__(self) -> str:
        best = ", ".join(f"{name}={value!r}" for name, value in self.best.parameters.items())
        return f"Tuning({self.agent}, {len(self.trials) - 1:,} trials, best: {best})"

    def _repr_html_(self) -> str:
        """For notebooks: the best parameters, the fresh seeds, and the first trials."""
        facts = {
            "best": ", ".join(f"{name} = {value}" for name, value in self.best.parameters.items()),
            "chosen by": f"{MEASURE_NAMES[self.measure]} on {len(self.seeds)} tuning seeds",
            "folder": str(self.folder),
        }
        fresh = [
            (r["environment"], r["agent"], f"{r['runs']}", format_number(r["mean"]), format_ends(r["low"], r["high"]))
            for r in self.confirmation().to_dict("records")
        ]
        names = list(self.best.parameters)
        first = self.to_frame().head(MOST_ROWS)
        tried = [
            [str(row["trial"]), format_number(row["score"]), *(str(row[n]) for n in names)]
            for row in first.to_dict("records")
        ]
        return card(
            f"Tuning of {self.agent}",
            facts,
            rows_table(["environment", "agent", "fresh runs", "mean", "95 % interval"], fresh),
            rows_table(["trial", "score", *names], tried),
            left_out(len(tried), len(self.trials), "trials", "tuning.to_frame()"),
        )


def tune(
    spec: TuneSpec | str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    timeout: float | None = None,
    watcher: SweepWatcher | None = None,
) -> Tuning:
    """Search the parameters of an agent; every trial is stored, and the same call again resumes.

    The agent as given and every trial run in every environment with every tuning seed; the measure at the horizon,
    averaged over the seeds, is what Optuna's TPE minimises. With several environments it is the mean of the relative
    changes from the agent as given, because regrets in two environments are not on one scale. The best of many trials
    looks better on the tuning seeds than it is: so it runs again, with the agent as given, on fresh confirmation seeds,
    and these are the numbers to report.

    Parameters
    ----------
    spec : TuneSpec, str, Path or Mapping
        A TOML file, a TOML text or a dict of the same shape: see `gainful.experiments.tune_spec`.
    out : str or Path, optional
        The folder of results; by default `results/NAME`. Trials that it holds are not run again. More trials may be
        asked for later; anything else in the spec must stay.
    jobs : int, optional
        Runs at a time. Neither results nor the choice of trials depend on it.
    timeout : float, optional
        Seconds that one run may take. A trial with a run that takes longer has failed.
    watcher : SweepWatcher, optional
        Receives the progress of each batch.

    Returns
    -------
    Tuning
        The trials, the best one, and its comparison with the agent as given on fresh seeds.

    Raises
    ------
    InvalidSpecError
        If the spec has problems; the error lists all of them.
    ExperimentError
        If the folder holds the tuning of another spec, or all trials failed.
    InvalidArgumentError
        If Optuna is not installed.

    Notes
    -----
    The method is the tree-structured Parzen estimator of Bergstra, Bardenet, Bengio & Kégl (2011), "Algorithms for
    hyper-parameter optimization", NeurIPS 24, as Optuna implements it.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> spec = {"horizon": 50, "seeds": 1, "environments": [{"name": "toy3d"}], "agents": [{"name": "ucrl2b"}]}
    >>> search = {"trials": 1, "confirm": 1, "search": {"width_scale": [0.1, 0.3]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tuning = gf.tune({**spec, "tune": search}, folder, jobs=1)
    >>> [trial.label for trial in tuning.trials]
    ['as given', 'trial 1']
    """
    _check_that_optuna_is_installed()
    asked = spec if isinstance(spec, TuneSpec) else read_tune_spec(spec)
    folder = Path(out) if out is not None else Path("results") / asked.name
    search = _TuningRun(asked, folder, {"jobs": jobs, "timeout": timeout, "watcher": watcher})
    return search.run()


def _check_that_optuna_is_installed() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise InvalidArgumentError(
            "optuna", hint="pip install 'gainful[tune]'", problem="tuning needs Optuna, which is not installed"
        ) from error


class _TuningRun:
    """One call of `tune`."""

    def __init__(self, spec: TuneSpec, folder: Path, options: dict[str, Any]) -> None:
        self.spec, self.folder, self.options = spec, folder, options
        self.plan = TuningPlan.opened(folder, spec)

    def run(self) -> Tuning:
        self._run_trials()
        while len(self.plan.trials) < self.spec.trials:
            scored = self._scored()
            room = self.spec.trials - len(self.plan.trials)
            size = min(room, self.spec.batch - len(self.plan.trials) % self.spec.batch)
            new = next_trials(self.spec, self.plan, scored, size)
            if not new:
                break
            self.plan.add(new)
            self._run_trials()
        scored = self._scored()
        best = min((t for t in scored[1:] if t.score == t.score), key=lambda t: t.score, default=None)
        if best is None:
            raise ExperimentError(
                f"{self.folder}: no trial has a score",
                name=str(self.folder),
                hint=f"gainful status {self.folder / 'trials'} shows why runs failed",
            )
        self._confirm(best)
        return Tuning(
            self.folder,
            str(self.spec.agent["name"]),
            self.spec.parameters,
            self.measure,
            tuple(scored),
            best,
            self.spec.seeds,
            self.spec.confirmation_seeds,
        )

    def _run_trials(self) -> None:
        """Make the missing runs of the trials chosen so far."""
        n = len(self.plan.trials)
        title = f"{self.spec.experiment.get('title') or self.spec.name}, {n} of {self.spec.trials} trials"
        agents = {GIVEN: self.spec.parameters}
        agents |= {t.label: {**self.spec.parameters, **t.parameters} for t in self.plan.trials if not t.problem}
        self._run(self.spec.spec(agents, self.spec.seeds, title), "trials")

    def _confirm(self, best: TuningTrial) -> None:
        """Run the best trial and the agent as given on the confirmation seeds, with all that were confirmed before."""
        self.plan.confirm(best.number)
        agents = {GIVEN: self.spec.parameters}
        for trial in self.plan.trials:
            if trial.number in self.plan.confirmed:
                agents[trial.label] = {**self.spec.parameters, **trial.parameters}
        title = f"{self.spec.experiment.get('title') or self.spec.name}, confirmation on fresh seeds"
        self._run(self.spec.spec(agents, self.spec.confirmation_seeds, title), "confirmation")

    def _run(self, spec: Any, name: str) -> None:
        outcome = run_experiment(spec, self.folder / name, **self.options)
        if outcome.stopped:
            raise KeyboardInterrupt

    @cached_property
    def measure(self) -> str:
        """What is minimised: as asked, or the first measure that is known of the agent as given."""
        if self.spec.measure is not None:
            return self.spec.measure
        frame = results(self.folder / "trials")
        given = frame[frame["agent"] == GIVEN]
        if given.empty:
            raise ExperimentError(
                f"{self.folder}: the agent as given failed, so there is nothing to compare with",
                name=str(self.folder),
                hint=f"gainful status {self.folder / 'trials'} shows why",
            )
        found = default_measure(given)
        return found if given[found].notna().any() else "reward"

    def _scored(self) -> list[TuningTrial]:
        """All trials with their scores, the agent as given first."""
        frame = results(self.folder / "trials")
        found = [TuningTrial(0, {}), *self.plan.trials]
        means = [_means(frame, self.measure, t.label, len(self.spec.seeds)) for t in found]
        environments = list(dict.fromkeys(map(str, frame["environment"])))
        sign = -1.0 if self.measure == "reward" else 1.0
        return [_with_score(t, m, means[0], environments, sign) for t, m in zip(found, means, strict=True)]


def _finals(frame: pd.DataFrame, measure: str, label: str) -> dict[str, Any]:
    """The values of the measure at the horizon, one per run, by environment."""
    mine = frame[(frame["agent"] == label) & (frame["step"] == frame["horizon"])]
    return {
        str(name): rows[measure].to_numpy(dtype=np.float64)
        for name, rows in mine.groupby("environment", sort=False, observed=True)
    }


def _means(frame: pd.DataFrame, measure: str, label: str, seeds: int) -> dict[str, float]:
    """The mean over the seeds by environment; NaN where a run is missing."""
    return {
        name: float(final.mean()) if final.size == seeds else math.nan
        for name, final in _finals(frame, measure, label).items()
    }


def _with_score(
    trial: TuningTrial, means: dict[str, float], given: dict[str, float], environments: list[str], sign: float
) -> TuningTrial:
    """The trial with its score: the mean, or with several environments the mean of relative changes."""
    values = [sign * means.get(name, math.nan) for name in environments]
    score = values[0] if values else math.nan
    if len(environments) > 1:
        before = [sign * given.get(name, math.nan) for name in environments]
        scale = [abs(b) or 1.0 for b in before]
        score = float(np.mean([(v - b) / s for v, b, s in zip(values, before, scale, strict=True)]))
    problem = trial.problem or ("" if score == score else "a run failed, or its value is unknown")
    return TuningTrial(trial.number, trial.parameters, score, means, problem)


# ---------------------------------------------------------------------- which trials


class TuningPlan:
    """The trials that were chosen and confirmed, in the file `tuning.json`."""

    def __init__(self, path: Path, identity: str, trials: list[TuningTrial], confirmed: list[int]) -> None:
        self.path, self.identity, self.trials, self.confirmed = path, identity, trials, confirmed

    @classmethod
    def opened(cls, folder: Path, spec: TuneSpec) -> TuningPlan:
        """The plan of this folder, an empty one if it is new; an error if it belongs to another spec."""
        path, identity = folder / TUNING_FILE, hash_of(json.loads(json.dumps(spec.identity(), default=str)))
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            return cls(path, identity, [], [])
        try:
            kept, has_checksum = from_checked_json(path.read_bytes())
            if not has_checksum:
                raise ValueError("its checksum is missing")
            if (kept["format"], kept["version"]) != ("gainful-tuning", TUNING_VERSION):
                raise ValueError(f"it is {kept['format']!r}, version {kept['version']!r}")
            ours = kept["identity"] == identity
            trials = [_trial_from(i, one, spec.search) for i, one in enumerate(kept["trials"], 1)] if ours else []
            confirmed = [int(n) for n in kept["confirmed"]]
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ExperimentError(
                f"{path} cannot be read: {error}",
                name=str(path),
                hint="delete it, and the same trials are chosen again from the stored runs",
            ) from error
        if not ours:
            raise ExperimentError(
                f"{folder} holds a tuning of another spec",
                name=str(folder),
                expected="the same environments, agent, horizon, seeds and search",
                hint="only trials and confirm may change; choose another folder (--out)",
            )
        return cls(path, identity, trials, confirmed)

    def add(self, trials: list[TuningTrial]) -> None:
        """Keep trials that were chosen, before they run."""
        self.trials += trials
        self._write()

    def confirm(self, number: int) -> None:
        """Keep the number of a trial that is going to be confirmed."""
        if number not in self.confirmed:
            self.confirmed.append(number)
            self._write()

    def _write(self) -> None:
        kept = [{"parameters": t.parameters, "problem": t.problem} for t in self.trials]
        members = {
            "format": "gainful-tuning",
            "version": TUNING_VERSION,
            "identity": self.identity,
            "trials": kept,
            "confirmed": self.confirmed,
        }
        write_file(self.path, to_checked_json(members))


def _trial_from(number: int, kept: Any, search: SearchSpace) -> TuningTrial:
    """A trial of the file; ValueError unless the search space holds its parameters."""
    parameters, problem = kept["parameters"], kept["problem"]
    sound = isinstance(parameters, dict) and isinstance(problem, str) and set(parameters) == set(search)
    if not sound or not all(search[name].contains(value) for name, value in parameters.items()):
        raise ValueError(f"trial {number} is {describe(kept)}, outside the search space")
    return TuningTrial(number, parameters, problem=problem)


def next_trials(spec: TuneSpec, plan: TuningPlan, scored: list[TuningTrial], size: int) -> list[TuningTrial]:
    """The next trials: up to `size` sets of parameters that have not been tried; none if there are no more.

    The sampler begins anew with every batch, from a seed of its own, so what it chooses depends on the results alone.
    """
    study, distributions = _study(spec, scored)
    tried = {_key(spec, t.parameters) for t in [TuningTrial(0, {}), *plan.trials] if not t.problem}
    found: list[TuningTrial] = []
    for _ in range(MOST_ASKED * size):
        if len(found) == size:
            break
        raw = study.ask(distributions).params
        parameters = {name: spec.search[name].rounded(raw[name]) for name in spec.search}
        number = len(plan.trials) + len(found) + 1
        try:
            key = _key(spec, parameters)
        except InvalidSpecError as error:
            if not any(t.parameters == parameters for t in [*plan.trials, *found]):
                found.append(TuningTrial(number, parameters, problem=str(error)))
            continue
        if key not in tried:
            tried.add(key)
            found.append(TuningTrial(number, parameters))
    return found


def _key(spec: TuneSpec, parameters: Mapping[str, Any]) -> str:
    """What identifies the runs of these parameters, however they are spelled."""
    one = spec.spec({"trial": {**spec.parameters, **parameters}}, spec.seeds[:1])
    return hash_of({"runs": [c.key for c in one.configurations()]})


def _study(spec: TuneSpec, scored: list[TuningTrial]) -> tuple[Any, dict[str, Any]]:
    """An Optuna study that knows the results so far, and the distributions to ask it with."""
    import warnings

    import optuna

    distributions = _distributions(spec.search)
    known = [t for t in scored[1:] if t.score == t.score]
    seed = int(hash_of({"seed": spec.seed, "trials": len(scored)})[:8], 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls two options experimental
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=RANDOM_TRIALS, multivariate=True, constant_liar=True
        )
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(sampler=sampler)
        for t in known:
            study.add_trial(optuna.trial.create_trial(params=t.parameters, distributions=distributions, value=t.score))
    finally:
        optuna.logging.set_verbosity(before)
    return study, distributions


def _distributions(search: SearchSpace) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, Any] = {}
    for name, space in search.items():
        if isinstance(space, Choice):
            found[name] = CategoricalDistribution(space.values)
        elif space.whole:
            found[name] = IntDistribution(int(space.low), int(space.high), log=space.log)
        else:
            found[name] = FloatDistribution(space.low, space.high, log=space.log)
    return found
