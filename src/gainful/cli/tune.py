"""`gainful tune`: search the parameters of an agent, and confirm the best on fresh seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, options

if TYPE_CHECKING:
    from gainful.experiments.tune import Tuning

SHOWN_TRIALS = 10
"""Trials that the table shows."""


def tune(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="A TOML file of an experiment with one agent and a table [tune].", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder for the runs; by default results/NAME.", show_default=False),
    ] = None,
    jobs: options.Jobs = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The time limit for one run.", show_default=False)
    ] = None,
    as_json: options.AsJson = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Search an agent's parameters with Optuna; the same command again resumes.

    Trials are compared on the seeds of the spec. The best one then runs on fresh seeds, beside the agent as given:
    these are the numbers to report, because the best of many trials looks better on its own seeds than it is.

    \b
    gainful tune tune.toml
    gainful tune tune.toml --out results/tuned --jobs 8
    """  # noqa: D301
    from gainful.cli.sweep_progress import SweepProgressLine
    from gainful.experiments.tune import tune as search
    from gainful.report.collect import collect
    from gainful.report.page import save_page
    from gainful.report.writing import REPORT_FILE

    watcher = SweepProgressLine()
    try:
        found = search(spec, out, jobs=jobs, timeout=timeout, watcher=watcher)
    finally:
        watcher.end()
    folder = found.folder / "confirmation"
    page = save_page(collect(folder), folder / REPORT_FILE)
    if as_json:
        facts = {**to_json(found), "page": str(page)}
        console.write([json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    else:
        console.show(*_tables(found))
    typer.echo(console.printable(f"page: {page}"), err=True)
    shown = f"gainful report {found.folder / 'trials'} shows all trials"
    console.note(console.printable(f"Next: {shown}; a larger number of trials in the spec continues the search"))


def to_json(found: Tuning) -> dict[str, Any]:
    """Everything that was found, as plain values; NaN is null."""

    def known(value: float) -> float | None:
        return None if value != value else float(value)

    comparison = found.comparison()
    return {
        "folder": str(found.folder),
        "agent": found.agent,
        "measure": found.measure,
        "parameters": found.parameters,
        "seeds": list(found.seeds),
        "confirmation_seeds": list(found.confirmation_seeds),
        "best": found.best.number,
        "guarantee_holds": found.guarantee_holds(found.best.label),
        "trials": [
            {
                "number": t.number,
                "parameters": t.parameters,
                "score": known(t.score),
                "means": {name: known(value) for name, value in (t.means or {}).items()},
                "problem": t.problem,
            }
            for t in found.trials
        ],
        "confirmation": [
            {name: known(value) if isinstance(value, float) else value for name, value in row.items()}
            for row in found.confirmation().to_dict("records")
        ],
        "comparison": None if comparison is None else str(comparison),
    }


def _tables(found: Tuning) -> list[Any]:
    from rich.text import Text

    from gainful.simulation.run import MEASURE_NAMES

    measure = MEASURE_NAMES[found.measure]
    many = len(found.best.means or {}) > 1
    goal = f"mean relative change of {measure} from the agent as given" if many else f"mean {measure}"
    n, seeds, fresh = len(found.trials) - 1, len(found.seeds), len(found.confirmation_seeds)
    chosen = f"{found.agent}: {n:,} trials by {goal} on {seeds} tuning seed{'' if seeds == 1 else 's'}"
    confirmed = f"On {fresh} fresh seed{'' if fresh == 1 else 's'}, of which nothing was chosen ({measure}):"
    comparison = found.comparison()
    parts: list[Any] = [Text(console.printable(chosen), style="bold"), _trials(found), Text("")]
    parts += [Text(confirmed, style="bold"), _confirmation(found), Text("")]
    if comparison is not None:
        parts += [Text(console.printable(str(comparison), keep="\n")), Text("")]
    return [*parts, Text(console.printable(_advice(found), keep="\n"))]


def _trials(found: Tuning) -> Any:
    """The best trials, and the agent as given wherever it stands."""
    from rich.table import Table
    from rich.text import Text

    from gainful.report.tables import amounts

    names = list(found.best.parameters)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", "trial", "score", *names):
        grid.add_column(head, justify="left" if head in ("", "trial") else "right")
    ranked = sorted(found.trials, key=lambda t: (t.score != t.score, t.score))
    shown = [(i, trial) for i, trial in enumerate(ranked, 1) if i <= SHOWN_TRIALS or trial.number == 0]
    scores = amounts([None if trial.score != trial.score else trial.score for _, trial in shown])
    for (i, trial), number in zip(shown, scores, strict=True):
        score = trial.problem[:40] if trial.score != trial.score else number
        values = [str({**found.given, **trial.parameters}.get(name, "default")) for name in names]
        grid.add_row(*(Text(console.printable(text)) for text in (f"{i}.", trial.label, score, *values)))
    return grid


def _confirmation(found: Tuning) -> Any:
    from rich.table import Table
    from rich.text import Text

    from gainful.report.tables import amounts

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("environment", "agent", "runs", "mean", "95 % interval"):
        grid.add_column(head, justify="left" if head in ("environment", "agent") else "right")
    rows = found.confirmation().to_dict("records")
    for environment in dict.fromkeys(row["environment"] for row in rows):
        here = [row for row in rows if row["environment"] == environment]
        known = [None if row[name] != row[name] else row[name] for row in here for name in ("mean", "low", "high")]
        texts = iter(amounts(known))  # the same decimals for all agents in one environment
        for row in here:
            mean, low, high = next(texts), next(texts), next(texts)
            interval = "" if row["low"] != row["low"] else f"{low} … {high}"
            cells = (str(environment), str(row["agent"]), f"{row['runs']:,}", mean, interval)
            grid.add_row(*(Text(console.printable(text)) for text in cells))
    return grid


def _advice(found: Tuning) -> str:
    """What to write into a spec, or that nothing was gained."""
    from gainful.experiments.tune_spec import GIVEN

    sign = -1.0 if found.measure == "reward" else 1.0
    means = found.confirmation().pivot(index="environment", columns="agent", values="mean") * sign
    worse = [str(name) for name, row in means.iterrows() if not row[found.best.label] < row[GIVEN]]
    if len(worse) == len(means):
        return f"{found.best.label} is no better than the agent as given on fresh seeds: keep the parameters as given."
    parameters = ", ".join(f"{name} = {json.dumps(value)}" for name, value in found.parameters.items())
    notes = [f"In {', '.join(worse)} the agent as given is better."] if worse else []
    if found.guarantee_holds(GIVEN) and not found.guarantee_holds(found.best.label):
        notes.append("The agent as given has a guarantee; with these parameters it has none.")
    return "\n".join([f"parameters = {{ {parameters} }}", *notes])
