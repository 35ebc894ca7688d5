"""`gainful fit`: a log of transitions to an estimated model, with how sure each number is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gainful.cli import console, failures, options

if TYPE_CHECKING:
    from gainful.estimation.fit import LogFit


def fit(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A log (.csv, .tsv, .parquet, also compressed): state, action, reward or cost, next_state, one "
            "transition per row in order of time; or unit, time, state, action, reward or cost, where the next state "
            "is in the unit's next row.",
            show_default=False,
        ),
    ],
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the estimated model: a table with counts and intervals (.csv, .csv.gz, .parquet), Storm's "
            "format (.drn), or, under any other name, the format of mdp.save. 'gainful solve FILE' reads it.",
            show_default=False,
        ),
    ] = None,
    columns: options.LogColumns = None,
    ends: options.LogEnds = "auto",
    confidence: options.Confidence = "0.95",
    replicates: options.Replicates = 200,
    seed: options.ResamplingSeed = 0,
    states_shown: options.StatesShown = 20,
    rows: Annotated[
        bool, typer.Option("--rows", help="List every transition with its count, probability and interval, too.")
    ] = False,
    as_json: options.AsJson = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Estimate a decision process from a log, with counts, intervals and what was never tried.

    Then solve it: the best gain and policy of the estimate, with a bootstrap interval. For example:

    \b
    gainful fit log.csv
    gainful fit machines.parquet --column unit=machine --save model.csv
    gainful fit episodes.csv --ends restart --json
    """  # noqa: D301
    from gainful.cli.fit_page import as_data, page
    from gainful.cli.source import read_number, read_settings
    from gainful.estimation.fit import fit as fit_model

    level = read_number("--confidence", confidence, "0.95")
    names = {name: str(value) for name, value in read_settings(columns or (), "--column").items()}
    with console.progress("reading and resampling the log"):
        fitted = fit_model(log, columns=names, ends=ends, confidence=level, replicates=replicates, seed=seed)  # type: ignore[arg-type]
    if save is not None:
        save_model(fitted, save)
    if as_json:
        console.write([json.dumps(as_data(fitted), indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    else:
        console.show(*page(fitted, states_shown, rows))
    if save is not None:
        print(f"wrote {save}; next: gainful solve {save}", file=sys.stderr)


def save_model(fitted: LogFit, path: Path) -> None:
    """Write the model in the format that the name asks for."""
    from gainful.atomic_files import TABLE_SUFFIXES, write_table
    from gainful.mdp.drn import SUFFIXES

    if path.name.lower().endswith(TABLE_SUFFIXES):
        write_table(fitted.transitions, path)
    elif path.name.lower().endswith(SUFFIXES):
        fitted.mdp.to_drn(path)
    else:
        fitted.mdp.save(path)
