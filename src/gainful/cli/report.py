"""`gainful report`: the results of an experiment as a page, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, options
from gainful.cli.decided import decisions

if TYPE_CHECKING:
    from gainful.report.content import Report
    from gainful.report.tables import Column

DISPENSABLE = ("Episodes", "Planning", "95 % interval", "Pseudo-regret", "Per step", "Runs")
"""Columns that a narrow terminal does without, in this order; of two with the same head the last one."""


def report(
    folder: options.ExperimentFolder,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page to FILE; by default to DIR/report.html.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    curves: Annotated[bool, typer.Option("--curves", help="With --json, include the curves.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write figures for a paper to DIR, as PDF, PNG and SVG.", show_default=False),
    ] = None,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Write one self-contained HTML page with all results of an experiment; it needs no network.

    \b
    gainful report results/quickstart
    gainful report results/quickstart --markdown > table.md
    gainful report results/quickstart --html page.html --figures figures/
    """  # noqa: D301
    from gainful.errors import InvalidArgumentError, StoreError
    from gainful.experiments.auditing import read_audits
    from gainful.experiments.store import STORE_FILE
    from gainful.report.audit_section import save_audit_page
    from gainful.report.collect import collect
    from gainful.report.comparison_section import comparison_markdown
    from gainful.report.page import save_page
    from gainful.report.tables import markdown as as_markdown
    from gainful.report.writing import REPORT_FILE

    if as_json and markdown:
        raise InvalidArgumentError("--json", hint="choose one", problem="--json and --markdown both write to stdout")
    if curves and not as_json:
        raise InvalidArgumentError("--curves", hint="add --json", problem="--curves has an effect only with --json")
    kept = folder_of(folder)
    if not (kept / STORE_FILE).exists() and (audit := read_audits(kept)) is not None:
        if curves or markdown or figures is not None:
            raise InvalidArgumentError(
                "DIR", str(kept), hint="use --html or --json", problem=f"{kept} holds an audit and no runs"
            )
        page = save_audit_page(audit, html or kept / REPORT_FILE)
        if as_json:
            console.write([json.dumps(audit, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        typer.echo(console.printable(f"page: {page}"), err=True)
        return
    with console.progress("reading the runs") as tell:
        found = collect(folder)
        tell("writing")
        notes: list[str] = []
        problem: Exception | None = None
        try:
            notes.append(f"page: {save_page(found, html or kept / REPORT_FILE)}")
        except (StoreError, InvalidArgumentError) as error:
            if html is not None or not (as_json or markdown or figures):
                raise
            problem = error  # the default page may fail if other output was requested
        if figures is not None:
            from gainful.plot.files import figures as write_figures

            notes.append(f"figures: {len(write_figures(folder, figures))} files in {figures}")
    if as_json:
        console.write(
            [json.dumps(found.to_json(with_curves=curves), indent=2, ensure_ascii=False, allow_nan=False), "\n"]
        )
    elif markdown:
        decided = "" if found.comparison is None else "\n".join(comparison_markdown(found.comparison))
        console.write([as_markdown(found.environments, found.title), decided])
    else:
        console.show(*_tables(found), *([] if found.comparison is None else decisions(found.comparison)))
    for note in notes:
        typer.echo(console.printable(note), err=True)
    if problem is not None:
        typer.echo(console.printable(f"no page: {problem}"), err=True)
    if found.failures:
        typer.echo(f"{len(found.failures):,} runs failed; the page shows their tracebacks", err=True)


def folder_of(path: Path) -> Path:
    """The folder of an experiment, given the folder itself or its store."""
    return path if path.is_dir() else path.parent


def _tables(found: Report) -> list[Any]:
    """The headline tables for a terminal."""
    from rich.text import Text

    from gainful.report.ranking import leads
    from gainful.report.tables import about_measure, headline, subtitle

    parts: list[Any] = []
    for environment in found.environments:
        grid, absent = _fitted(headline(environment))
        name = Text(console.printable(f"{environment.label}: {subtitle(environment)}"), style="bold")
        why = about_measure(environment)
        parts += [name, grid, *(Text(console.printable("".join(lead.sentence))) for lead in leads(environment))]
        parts += [*([Text(console.printable(why), style="dim")] if why else [])]
        if absent:
            parts.append(Text(f"not shown, for lack of room: {', '.join(absent)}; --markdown has all", style="dim"))
        parts.append(Text(""))
    return parts[:-1]


def _fitted(columns: list[Column]) -> tuple[Any, list[str]]:
    """The table, on a terminal without the least important columns if it is too wide, and their names."""
    from rich.console import Console

    width, absent = console.terminal_width(), []
    kept = list(columns)
    for head in DISPENSABLE:
        if width is None or Console(width=10_000).measure(_grid(kept)).maximum <= width:
            break
        places = [i for i, c in enumerate(kept) if c.head == head]
        if places:
            of_growth = head == "95 % interval"
            absent.append("95 % interval of the growth" if of_growth else head.lower())
            kept.pop(places[-1])
    return _grid(kept), absent


def _grid(columns: list[Column]) -> Any:
    """The columns as a table."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for c in columns:
        grid.add_column(c.head, justify="right" if c.numeric else "left", no_wrap=c.numeric, overflow="fold")
    for row in zip(*(c.texts for c in columns), strict=True):
        grid.add_row(*(Text(console.printable(text)) for text in row))
    return grid
