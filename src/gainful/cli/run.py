"""`gainful run`, `gainful status` and `gainful export`: experiments from the command line."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import completion, console, failures, numbers, options
from gainful.cli.decided import NARROW_TERMINAL, decisions, look_words

if TYPE_CHECKING:
    import pandas as pd

    from gainful.cli.sweep_progress import SweepProgressLine
    from gainful.experiments.sequential_comparison import SequentialComparison
    from gainful.experiments.sweep import ExperimentOutcome

_Kept = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of an experiment, or of a durable agent.", show_default=False)
]


def run(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            autocompletion=completion.specs,
            help="A TOML file, or a shipped spec (gainful list specs).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder for the runs; by default results/NAME.", show_default=False),
    ] = None,
    jobs: options.Jobs = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address of a running Dask scheduler, such as tcp://head:8786, or local.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The time limit for one run.", show_default=False)
    ] = None,
    tries: Annotated[int, typer.Option(min=1, metavar="N", help="How often to try a run whose worker is lost.")] = 3,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first run that fails.")] = False,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between checkpoints: the work that a killed run may lose.")
    ] = 15.0,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|auto",
            autocompletion=completion.devices,
            help="cuda: on this machine's GPU, or with --dask on those of the workers, all seeds at once; auto: what "
            "cannot run there on the CPU.",
        ),
    ] = "cpu",
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Add seeds, as many at a time as the spec says, until it is decided which of every two agents is "
            "better.",
        ),
    ] = False,
    error: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="With --until-decided: the probability of any wrong decision about equal agents; 0.05 by default.",
            show_default=False,
        ),
    ] = None,
    max_seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --until-decided: seeds after which the rest stays undecided; by default ten times the spec's.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> int:
    """Run an experiment; the same command again resumes where it stopped.

    \b
    gainful run quickstart
    gainful run study.toml --out results/study --jobs 8
    gainful run study.toml --until-decided --error 0.01
    """  # noqa: D301
    from gainful.cli.sweep_progress import SweepProgressLine
    from gainful.errors import InvalidArgumentError
    from gainful.experiments.sweep import run_experiment
    from gainful.experiments.until_decided import run_until_decided

    for name, value in (("--error", error), ("--max-seeds", max_seeds)):
        if value is not None and not until_decided:
            raise InvalidArgumentError(
                name, value, hint="add --until-decided", problem=f"{name} has an effect only with --until-decided"
            )
    watcher = SweepProgressLine()
    given: dict[str, Any] = {
        "jobs": jobs,
        "dask": dask,
        "timeout": timeout,
        "tries": tries,
        "fail_fast": fail_fast,
        "checkpoint_every": checkpoint_every,
        "watcher": watcher,
        "device": device,
    }
    comparison = None
    try:
        if until_decided:
            level = 0.05 if error is None else error
            tell = partial(_tell_look, watcher)
            found = run_until_decided(spec, out, error=level, max_seeds=max_seeds, on_look=tell, **given)
            outcome, comparison = found.experiment, found.to_json()
        else:
            outcome = run_experiment(spec, out, **given)
    finally:
        watcher.end()
    _report(outcome, as_json, comparison)
    if outcome.stopped and not outcome.failures:
        return failures.INTERRUPTED
    return failures.FAILED if outcome.failures else 0


def _tell_look(watcher: SweepProgressLine, comparison: SequentialComparison) -> None:
    watcher.end()
    _note(look_words(comparison))


def _report(outcome: ExperimentOutcome, as_json: bool, comparison: dict[str, Any] | None) -> None:
    from gainful.experiments.aggregates import summary
    from gainful.experiments.log_slopes import with_log_slopes
    from gainful.experiments.results import results
    from gainful.progress import duration

    frame = results(outcome.folder)
    table = with_log_slopes(_with_guarantees(summary(frame), outcome.folder), frame) if len(frame) else None
    if as_json:
        facts = {
            "folder": str(outcome.folder),
            "planned": outcome.planned,
            "finished": outcome.finished,
            "ran": outcome.ran,
            "stopped": outcome.stopped,
            "seconds": outcome.seconds,
            "failures": list(outcome.failures),
            "summary": [] if table is None else records(table),
            "comparison": comparison,
        }
        console.write([json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    elif table is not None:
        console.show(summary_table(table), *not_shown(table), *([] if comparison is None else decisions(comparison)))
        _tell_constants(table)
        _tell_reasons(table)
    _print_failures(list(outcome.failures))
    which = "all" if outcome.ran == outcome.finished else f"{outcome.ran:,} of them"
    made = f"{which} made by this call in {duration(outcome.seconds)}" if outcome.ran else "none new"
    _note(f"{outcome.finished:,} of {outcome.planned:,} runs are stored in {outcome.folder}, {made}")
    if outcome.complete:
        _note(f"Next: gainful report {outcome.folder} writes a page of it; in Python, gf.results('{outcome.folder}')")
    else:
        _tell_what_is_missing(outcome.folder, list(outcome.failures), "the command")


def _tell_what_is_missing(folder: Path, failed: list[dict[str, Any]], command: str) -> None:
    """Say how to make the missing runs: those that failed for a reason of their own need more than another call."""
    if failed and all(failure["kind"] not in TRANSIENT_FAILURES for failure in failed):
        _note(f"Next: fix what failed (gainful status {folder} --json shows the tracebacks), then repeat {command}")
    else:
        _note(f"Next: repeat {command} to make the missing runs")


def _tell_constants(table: pd.DataFrame) -> None:
    """Say which C the column slope/C divides by, if it is there."""
    from gainful.experiments.log_slopes import constants_in_words

    for name, rows in table.groupby("environment", observed=True, sort=False):
        words = constants_in_words(rows.to_dict("records"))
        if words:
            _note(f"C of {name}: {'; '.join(words)} (docs/experiments.md)")


GUARANTEE_WORDS = ("yes", "oracle c", "no")
"""Of the column guarantee."""
MOST_REASONS = 8
"""Reasons for no guarantee that are printed."""
TRANSIENT_FAILURES = ("WorkerLost", "KilledWorker", "TimeoutError", "MemoryError")
"""Kinds of failures that may not occur again in another call."""


def _print_failures(found: list[dict[str, Any]]) -> None:
    """Print failures, those of the same kind together."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for failure in found:
        place = (failure["agent"], failure["environment"], failure["kind"], failure["message"])
        groups.setdefault(place, []).append(failure["seed"])
    for (agent, environment, kind, message), seeds in list(groups.items())[:20]:
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        _note(f"failed: {agent} in {environment}, {which}: {kind}: {message}")
    if len(groups) > 20:
        _note(f"… and {len(groups) - 20} more kinds of failures")


def _with_guarantees(table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Add the columns guarantee and guarantee_text.

    guarantee is "yes", "oracle c" (yes, but the agent was given the model's own span), or "no".
    """
    from gainful.experiments.store import Store

    found: dict[tuple[str, str], tuple[str, str]] = {}
    with Store.read(folder) as store:
        for row in store.runs(data=False):
            key = row["environment_label"], row["agent_label"]
            word = ("oracle c" if row["span_is_oracle"] else "yes") if row["guarantee_holds"] else "no"
            worst_yet = found[key][0] if key in found else None
            if worst_yet is None or GUARANTEE_WORDS.index(word) > GUARANTEE_WORDS.index(worst_yet):
                found[key] = word, str(row["guarantee"])
    places = [found[key] for key in zip(table["environment"], table["agent"], strict=True)]
    return table.assign(guarantee=[word for word, _ in places], guarantee_text=[text for _, text in places])


def _tell_reasons(table: pd.DataFrame) -> None:
    """Say why agents have no guarantee, once for every reason."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    for row in table[table["guarantee"] == "no"].to_dict("records"):
        reasons.setdefault(row["guarantee_text"], []).append((str(row["agent"]), str(row["environment"])))
    everywhere = table["environment"].nunique()
    for text, places in list(reasons.items())[:MOST_REASONS]:
        agents = list(dict.fromkeys(agent for agent, _ in places))
        where = dict.fromkeys(environment for _, environment in places)
        of = ", ".join(agents) if len(where) == everywhere else f"{', '.join(agents)} in {', '.join(where)}"
        _note(f"{of}: {text}")
    if len(reasons) > MOST_REASONS:
        _note(f"… and {len(reasons) - MOST_REASONS} more reasons (gainful run --json, or the report)")


def _note(text: str) -> None:
    console.note(console.printable(text, keep="\n").replace("\n", "\n    "))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain values; NaN is null."""
    return [
        {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
        for row in json.loads(table.to_json(orient="records", double_precision=15))
    ]


def summary_table(table: pd.DataFrame) -> Any:
    """The regret of every agent in every environment as a table.

    A narrow terminal gets fewer columns, and the environments as lines above their agents.
    """
    from rich.table import Table
    from rich.text import Text

    from gainful.simulation.run import MEASURE_NAMES

    narrow = console.is_narrow(NARROW_TERMINAL)
    rows = table.to_dict("records")
    measures = _measures(rows)
    one = len(set(measures.values())) == 1
    name_of_all = MEASURE_NAMES[next(iter(measures.values()))] if one else "regret"
    heads = ["agent"] if narrow else ["environment", "agent", "runs", "steps"]
    known = any(row[f"{m}_mean_low"] == row[f"{m}_mean_low"] for row in rows for m in measures.values())
    heads += [*([] if one else ["measure"]), name_of_all, *(["95 % interval"] if known else [])]
    ergodic = any(_slope_ratio(row) for row in rows)
    grid = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=narrow and ergodic)
    growth = ["growth", *(["slope/C"] if ergodic else [])]
    heads += [*growth, "guarantee"] if narrow else ["per step", *growth, "planning", "guarantee"]
    for head in heads:
        words = head in ("environment", "agent", "measure", "guarantee")
        grid.add_column(head, justify="left" if words else "right", no_wrap=not words)
    last = None
    for row in rows:
        name = str(row["environment"])
        measure = measures[name]
        low, high = row[f"{measure}_mean_low"], row[f"{measure}_mean_high"]
        cells: dict[str, Any] = {
            "environment": Text("" if name == last else console.printable(name)),
            "agent": Text(console.printable(str(row["agent"]))),
            "runs": f"{row['runs']:,}",
            "steps": f"{row['final_step']:,}",
            "measure": MEASURE_NAMES[measure],
            name_of_all: _number(row[f"{measure}_mean"]),
            "95 % interval": "" if low != low else f"{_number(low)} … {_number(high)}",
            "per step": numbers.digits(float(row[f"{measure}_per_step"]), 2),
            "growth": _exponent(row["growth_exponent"]),
            "slope/C": _slope_ratio(row),
            "planning": f"{row['planning_share']:.0%}",
            "guarantee": str(row["guarantee"]),
        }
        if narrow and name != last:
            grid.add_row(Text(console.printable(name), style="bold"))
        grid.add_row(*(cells[head] for head in heads))
        last = name
    return grid


def not_shown(table: pd.DataFrame) -> list[Any]:
    """What a narrow terminal has no room for: runs and steps in words, and the names of the other columns."""
    from rich.text import Text

    if not console.is_narrow(NARROW_TERMINAL):
        return []
    runs, steps = (_range(table[name]) for name in ("runs", "final_step"))
    words = (
        f"{runs} run{'' if runs == '1' else 's'} of {steps} steps; per step and planning: a wider terminal, or --json"
    )
    return [Text(words, style="dim")]


def _range(values: pd.Series[int]) -> str:
    """One number if all are the same, or the least and the greatest."""
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _slope_ratio(row: dict[Any, Any]) -> str:
    """Slope/C of an ergodic environment; empty where it is unknown."""
    ratio = row.get("slope_ratio", math.nan)
    return "" if ratio != ratio else f"{ratio:.2f}"


def _measures(rows: list[dict[Any, Any]]) -> dict[str, str]:
    """The measure of regret of each environment: the first that is known for all its agents."""
    from gainful.simulation.run import REGRETS

    found = {}
    for name in dict.fromkeys(str(row["environment"]) for row in rows):
        here = [row for row in rows if str(row["environment"]) == name]
        known = (m for m in REGRETS if all(row[f"{m}_mean"] == row[f"{m}_mean"] for row in here))
        found[name] = next(known, "pseudo_regret")
    return found


def _exponent(x: float) -> str:
    return "?" if x != x else f"{0.0 if abs(x) < 0.005 else x:.2f}"


def _number(x: float) -> str:
    return "?" if x != x else f"{x:,.0f}" if abs(x) >= 9.95 else f"{x:#.2g}".rstrip(".")


def status(folder: options.ExperimentFolder, as_json: options.AsJson = False, debug: failures.Debug = False) -> None:  # noqa: ARG001
    """Show how far an experiment is, also while it runs, and why runs failed."""
    from gainful.experiments.store import Store

    with Store.read(folder) as store:
        title, progress, failed = store.title, store.progress(), store.failures()
    if as_json:
        facts = {"title": title, "configurations": progress, "failures": failed}
        console.write([json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    older = any(row["older"] for row in progress)
    heads = ("environment", "agent", "steps", "planned", "finished", "failed", *(["older results"] if older else []))
    for head in heads:
        grid.add_column(head, justify="left" if head in ("environment", "agent") else "right")
    for row in progress:
        counts = [f"{row[name]:,}" for name in ("horizon", "planned", "finished", "failed")]
        grid.add_row(
            Text(console.printable(row["environment"])),
            Text(console.printable(row["agent"])),
            *counts,
            *([f"{row['older']:,}"] if older else []),
        )
    planned, finished = (sum(row[name] for row in progress) for name in ("planned", "finished"))
    console.show(Text(console.printable(title), style="bold"), grid, Text(f"{finished:,} of {planned:,} runs finished"))
    _print_failures(failed)
    if older:
        _note(
            "older results have another results version; they are kept, and never mixed with others "
            "(gf.results(older=True))"
        )
    if finished < planned:
        _tell_what_is_missing(folder, failed, "the gainful run command")


def export(
    folder: _Kept,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write CSV (.csv, .csv.gz).")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write Parquet.")] = None,
    as_json: options.AsJson = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Write all runs of an experiment as a tidy table (a row per run and checkpoint), or a durable agent's journal."""
    from gainful.cli.live import export_journal
    from gainful.errors import InvalidArgumentError
    from gainful.experiments.results import export as write
    from gainful.live.journal_table import is_live

    if csv is None and parquet is None:
        raise InvalidArgumentError(
            "--csv", hint="give --csv FILE, --parquet FILE, or both", problem="there is no file to write to"
        )
    for file, suffix in ((csv, ".csv"), (parquet, ".parquet")):
        if file is not None and suffix not in file.name.lower():
            raise InvalidArgumentError("file", str(file), f"a name that ends in {suffix}")
    if not is_live(folder) and is_live(folder / "journal"):  # an agent of `gainful serve`
        folder = folder / "journal"
    if is_live(folder):
        export_journal(folder, csv, parquet, as_json)
        return
    written = {str(file): write(folder, file) for file in (csv, parquet) if file is not None}
    if as_json:
        console.write([json.dumps({"rows": written}, indent=2), "\n"])
        return
    for name, rows in written.items():
        _note(f"written: {name}, {rows:,} rows")
