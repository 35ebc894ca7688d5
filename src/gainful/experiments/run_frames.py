"""Runs in memory as the tidy table that stored runs have, and the report's statistics of either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gainful.errors import InvalidArgumentError, describe
from gainful.experiments import aggregates
from gainful.experiments.results import results
from gainful.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd

Data: TypeAlias = "str | Path | pd.DataFrame | Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]]"


def summary(data: Data, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """The statistics of the report, for runs in memory or stored ones: one row per agent (and environment).

    Parameters
    ----------
    data : path, DataFrame, Run, list of Run, or dict
        The folder of an experiment, the table of `gf.results`, one Run, a list of Runs of one agent, or a dictionary
        from labels to Runs or lists of Runs.
    confidence : float
        The confidence of all intervals, between 0 and 1.
    resamples : int
        Resamples of each bootstrap interval.
    seed : int
        The seed of the resampling.

    Returns
    -------
    pandas.DataFrame
        agent, runs, final_step; for each of expected_regret, pseudo_regret and regret at that step the `_mean`,
        `_median` and `_iqm` with the ends `_low` and `_high` of their intervals, and `_per_step`; growth_exponent with
        its interval and the measure it is of; planning_share; note. With stored runs, environment comes first. The
        numbers and their definitions are those of `gainful.experiments.aggregates.summary`, which the report shows.

    Raises
    ------
    InvalidArgumentError
        If there are no runs, or the data are something else.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> runs = gf.simulate_many(lambda seed: gf.PSRL(6, 2, seed=seed), river, horizon=1000, seeds=range(4))
    >>> table = gf.summary({"PSRL": runs})
    >>> table["agent"].tolist(), table["runs"].tolist(), table["final_step"].tolist()
    (['PSRL'], [4], [1000])
    """
    frame = frame_of(data)
    found = aggregates.summary(frame, confidence=confidence, resamples=resamples, seed=seed)
    return found.drop(columns="environment") if (found["environment"] == "").all() else found


def frame_of(data: Any) -> pd.DataFrame:
    """Anything that `summary` and `gainful.plot.regret` accept, as one tidy table; runs in memory have environment "".

    A run has its own seed, or its place in the list if two runs of one agent have the same.
    """
    import pandas as pd

    if isinstance(data, str | Path):
        return _stored(data)
    if isinstance(data, pd.DataFrame):
        return data
    groups = data if isinstance(data, Mapping) else {"": data}
    parts = []
    for name, given in groups.items():
        label = str(name).encode("utf-8", "backslashreplace").decode("utf-8")  # no file can hold lone surrogates
        runs = _checked_runs(label, [given] if isinstance(given, Run) else given)
        different = len({run.seed for run in runs}) == len(runs)
        for i, run in enumerate(runs):
            frame = run.to_frame().assign(environment="", agent=label, run_id=f"{label}/{i}")
            parts.append(frame if different else frame.assign(seed=i))
    if not parts:
        raise InvalidArgumentError("data", data, "at least one Run", problem="the data are an empty dictionary")
    return pd.concat(parts, ignore_index=True)


def _stored(folder: str | Path) -> pd.DataFrame:
    found = results(folder)
    if found.empty:
        raise InvalidArgumentError(
            "data",
            folder,
            "at least one finished run",
            "run the experiment first",
            problem=f"{folder} holds no finished run",
        )
    return found


def _checked_runs(label: str, runs: Any) -> Sequence[Run]:
    if isinstance(runs, list | tuple) and runs and all(isinstance(run, Run) for run in runs):
        return runs
    of = f" of {label!r}" if label else ""
    kind = f"{type(runs).__name__} {describe(runs)[:40]}"
    if isinstance(runs, list | tuple):
        kind = f"a {type(runs).__name__} of {', '.join(sorted({type(r).__name__ for r in runs})) or 'nothing'}"
    raise InvalidArgumentError(
        "data",
        runs,
        "a folder, the table of gf.results, a Run, a list of Runs, or a dictionary from labels to Runs",
        problem=f"the data{of} are {kind}",
    )
