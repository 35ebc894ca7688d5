"""`gainful report`: what an experiment found, as a page, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures

if TYPE_CHECKING:
    from gainful.report.content import Report


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an experiment.", show_default=False)],
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the page goes; by default DIR/report.html.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object on stdout.")] = False,
    curves: Annotated[bool, typer.Option("--curves", help="With --json: the curves too.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables as Markdown on stdout.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write figures for a paper there: PDF, PNG, SVG.", show_default=False),
    ] = None,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """One HTML page with everything an experiment found; it opens in any browser, without a network.

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
    from gainful.report.page import save_page
    from gainful.report.tables import markdown as as_markdown
    from gainful.report.writing import REPORT_FILE

    if as_json and markdown:
        raise InvalidArgumentError("--json and --markdown both write to stdout, expected one of them")
    if curves and not as_json:
        raise InvalidArgumentError("--curves adds to --json, expected both")
    kept = folder_of(folder)
    if not (kept / STORE_FILE).exists() and (audit := read_audits(kept)) is not None:
        if curves or markdown or figures is not None:
            raise InvalidArgumentError(f"{kept} holds an audit and no runs; --html and --json are for that")
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
            problem = error  # only what was asked for on stdout, or elsewhere, has to succeed
        if figures is not None:
            from gainful.plot.files import figures as write_figures

            notes.append(f"figures: {len(write_figures(folder, figures))} files in {figures}")
    if as_json:
        console.write(
            [json.dumps(found.to_json(with_curves=curves), indent=2, ensure_ascii=False, allow_nan=False), "\n"]
        )
    elif markdown:
        console.write([as_markdown(found.environments, found.title)])
    else:
        console.show(*_tables(found))
    for note in notes:
        typer.echo(console.printable(note), err=True)
    if problem is not None:
        typer.echo(console.printable(f"no page: {problem}"), err=True)
    if found.failures:
        typer.echo(f"{len(found.failures):,} runs failed; the page has their tracebacks", err=True)


def folder_of(path: Path) -> Path:
    """The experiment's folder, also where its store was named."""
    return path if path.is_dir() else path.parent


def _tables(found: Report) -> list[Any]:
    """The headline tables for a terminal."""
    from rich.table import Table
    from rich.text import Text

    from gainful.report.tables import headline, subtitle

    parts: list[Any] = []
    for environment in found.environments:
        columns = headline(environment)
        grid = Table(box=None, pad_edge=False, header_style="bold")
        for c in columns:
            grid.add_column(c.head, justify="right" if c.numeric else "left")
        for r in range(len(environment.groups)):
            grid.add_row(*(Text(console.printable(c.texts[r])) for c in columns))
        name = Text(console.printable(f"{environment.label}: {subtitle(environment)}"), style="bold")
        parts += [name, grid, Text("")]
    return parts[:-1]
