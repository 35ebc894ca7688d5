"""Every stored run as one tidy table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.atomic_files import table_suffix, write_table
from gainful.errors import StoreError
from gainful.experiments.store import Store, damaged_run
from gainful.experiments.wire_format import unpack

if TYPE_CHECKING:
    import pandas as pd

_PER_RUN = (
    "seed",
    "horizon",
    "gain",
    "span",
    "n_states",
    "n_actions",
    "episodes",
    "vacuous",
    "guarantee_holds",
    "span_is_oracle",
    "tries",
    "seconds",
    "planning_seconds",
    "acting_seconds",
    "results_version",
    "version",
    "run_id",
)


def results(folder: str | Path, *, older: bool = False) -> pd.DataFrame:
    """Every stored run as one tidy table, with one row per run and checkpoint.

    Parameters
    ----------
    folder : str or Path
        The folder of an experiment; it may still be running.
    older : bool
        Return the runs of other results versions instead. They are never mixed with current ones.

    Returns
    -------
    pandas.DataFrame
        `environment` and `agent` are the labels of the spec, `parameters` both sets of parameters as JSON; then seed,
        step, reward, regret and pseudo_regret (NaN if the optimal gain is unknown), expected_regret (NaN for continuous
        states and for runs of versions without it), horizon, gain, span, sizes, episodes, guarantee, seconds, versions
        and run_id.

    Raises
    ------
    StoreError
        If there is no experiment in the folder, or its file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> from gainful.experiments.spec import read_spec
    >>> entries = {"environments": [{"name": "toy3d"}], "agents": [{"name": "fixed"}]}
    >>> spec = read_spec({"horizon": 100, "seeds": 2, **entries})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gf.run_experiment(spec, folder, jobs=1)
    ...     table = gf.results(folder)
    >>> table["seed"].nunique(), int(table["step"].max())
    (2, 100)
    """
    import pandas as pd

    with Store.read(folder) as store:
        title = store.title
        rows, curves, lengths = [], [], []
        for row in store.runs(older=older):
            rows.append(row)
            curves.append(_curve(folder, row))
            lengths.append(len(curves[-1][0]))
    repeated = np.repeat(np.arange(len(rows)), lengths)

    def labels(texts: list[str]) -> Any:
        codes, names = pd.factorize(np.array(texts, dtype=object))
        return pd.Categorical.from_codes(codes[repeated], categories=pd.Index(names))

    columns: dict[str, Any] = {
        "experiment": labels([title] * len(rows)),
        "environment": labels([row["environment_label"] for row in rows]),
        "agent": labels([row["agent_label"] for row in rows]),
        "parameters": labels([_parameters(row) for row in rows]),
    }
    names = ("step", "reward", "regret", "pseudo_regret", "expected_regret")
    for i, name in enumerate(names):
        kind = np.int64 if name == "step" else np.float64
        columns[name] = np.concatenate([curve[i] for curve in curves]) if curves else np.empty(0, dtype=kind)
    for name in _PER_RUN:
        values = [row[name] for row in rows]
        if name in ("version", "run_id"):
            columns[name] = labels(values)
        else:
            array = np.array(values, dtype=np.float64 if name in ("gain", "span") or "seconds" in name else np.int64)
            columns[name] = (array.astype(bool) if name in ("vacuous", "guarantee_holds", "span_is_oracle") else array)[
                repeated
            ]
    order = ["experiment", "environment", "agent", "parameters", "seed", *names]
    return pd.DataFrame({name: columns[name] for name in [*order, *(n for n in _PER_RUN if n not in order)]})


def _curve(folder: str | Path, row: dict[str, Any]) -> tuple[NDArray[Any], ...]:
    """Steps, rewards, and regret by its three measures of a stored run; its packed result is dropped from the row."""
    try:
        _, arrays = unpack(row.pop("data"))
    except ValueError as error:
        raise damaged_run(folder, row["run_id"], str(error)) from error
    gain = np.nan if row["gain"] is None else row["gain"]
    steps, rewards = arrays["steps"].copy(), arrays["rewards"].copy()
    expected = arrays.get("expected_regret", np.full(steps.size, np.nan))
    return steps, rewards, steps * gain - rewards, arrays["pseudo_regret"].copy(), expected.copy()


def _parameters(row: dict[str, Any]) -> str:
    both = {"environment": json.loads(row["environment_parameters"]), "agent": json.loads(row["agent_parameters"])}
    return json.dumps({"names": [row["environment"], row["agent"]], **both}, sort_keys=True, ensure_ascii=False)


def export(folder: str | Path, file: str | Path, *, older: bool = False) -> int:
    """Write the table of `results` to a file, which is complete or, if anything fails, as it was before.

    Parameters
    ----------
    folder : str or Path
        The folder of an experiment.
    file : str or Path
        The file to write; its suffix decides the format: .csv, .csv.gz or .parquet.
    older : bool
        Write the runs of other results versions instead.

    Returns
    -------
    int
        The number of rows written.

    Raises
    ------
    StoreError
        If the experiment cannot be read, or the file cannot be written.
    """
    table_suffix(file)  # before the long work
    frame = results(folder, older=older)
    try:
        return write_table(frame, file)
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}",
            name="file",
            found=str(file),
            hint="check space and permissions",
        ) from error
