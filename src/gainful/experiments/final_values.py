"""The final regret of every run, by environment, agent and seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gainful.errors import InvalidArgumentError
from gainful.experiments.aggregates import default_measure
from gainful.simulation.run import MEASURE_NAMES

if TYPE_CHECKING:
    import pandas as pd

FinalValues = dict[str, dict[str, dict[int, float]]]


def final_values(frame: pd.DataFrame, value: str | None = None) -> tuple[str, FinalValues]:
    """The measure, and its value for every run at the last step that all runs of the environment share.

    Parameters
    ----------
    frame : pandas.DataFrame
        The tidy table of `gainful.results`.
    value : str, optional
        "expected_regret", "pseudo_regret", "regret" or "reward"; by default what `default_measure` names.

    Returns
    -------
    tuple of str and dict
        The measure, and values[environment][agent][seed]; runs whose value is unknown are left out.

    Raises
    ------
    InvalidArgumentError
        If the measure is unknown for every run, or is no measure.
    """
    if value is not None and value not in MEASURE_NAMES:
        raise InvalidArgumentError("value", value, f"one of {', '.join(MEASURE_NAMES)}")
    measure = value or default_measure(frame)
    if measure not in frame.columns:
        raise InvalidArgumentError("value", measure, problem=f"the data have no column {measure!r}")
    found: FinalValues = {}
    for where, here in frame.groupby("environment", sort=False, observed=True):
        runs = here["run_id"].nunique()
        counts = here.groupby("step", sort=True)["run_id"].nunique()
        shared = counts.index[counts == runs]
        if not len(shared):
            continue
        last = here[here["step"] == shared[-1]]
        for who, seed, number in zip(last["agent"], last["seed"], last[measure], strict=True):
            if np.isfinite(number):
                found.setdefault(str(where), {}).setdefault(str(who), {})[int(seed)] = float(number)
    if not found:
        raise InvalidArgumentError(
            "value",
            measure,
            hint="draw value='reward', or simulate with gain=",
            problem=f"{MEASURE_NAMES[measure]} is unknown for every run",
        )
    return measure, found
