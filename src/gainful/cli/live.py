"""`gainful recover`, and the part of `gainful export` that reads journals: durable agents on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gainful.cli import console, failures, options

_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


def recover(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a durable agent.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder for the result.", show_default=False)],
    allow: options.Allow = None,
    as_json: _AsJson = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Recover what is intact of a durable agent with a damaged journal, into a new folder.

    \b
    gainful recover agents/pump agents/pump-recovered
    """  # noqa: D301
    from gainful.live.journal_table import is_live
    from gainful.live.recovery import recover as save

    if not is_live(folder) and (folder / "journal").is_dir():  # an agent of `gainful serve`
        folder = folder / "journal"
    found = save(folder, out, allow=options.allowed(allow))
    if as_json:
        facts = {
            "out": str(found.out),
            "observations": found.observations,
            "sequence": found.sequence,
            "snapshot": found.snapshot,
            "gaps": found.gaps,
            "lost": found.lost,
            "salvaged": found.salvaged,
            "problems": found.problems,
            "in_use": found.in_use,
        }
        console.write([json.dumps(facts, indent=2, ensure_ascii=False), "\n"])
    if found.in_use:
        _note(
            f"warning: {folder} is open in another process, which is still writing to it: only what had been written "
            "by now was recovered. Close the agent and run this again to recover everything"
        )
    for problem in found.problems:
        _note(f"found: {problem}")
    _note(
        f"{found.out}: an agent with {found.observations:,} observations, up to record {found.sequence:,} (from "
        f"the snapshot at record {found.snapshot:,})"
    )
    if found.gaps:
        _note(f"records {_ranges(found.gaps)} are missing from its table, but counted in its statistics")
    if found.lost:
        _note(f"lost: records {_ranges(found.lost)}")
    if found.salvaged:
        _note(f"{found.salvaged:,} intact records after the lost ones were not applied: {found.out / 'salvaged.csv'}")
    table = f"gainful export {found.out} --csv FILE"
    _note(f"{folder} was not changed. Next: gf.open_agent('{found.out}') in Python, or {table}")


def _ranges(stretches: list[list[int]]) -> str:
    shown = [f"{first:,}" if first == last else f"{first:,} … {last:,}" for first, last in stretches[:10]]
    return ", ".join(shown) + (f" and {len(stretches) - 10} more ranges" if len(stretches) > 10 else "")


def export_journal(folder: Path, csv: Path | None, parquet: Path | None, as_json: bool) -> None:
    """Write the journal of a durable agent as a table: `gainful export` for the folder of an agent."""
    from gainful.live.journal_table import export_table, read_journal

    frame = read_journal(folder)
    written = {str(file): export_table(frame, file) for file in (csv, parquet) if file is not None}
    if as_json:
        console.write([json.dumps({"rows": written}, indent=2), "\n"])
        return
    for name, rows in written.items():
        _note(f"written: {name}, {rows:,} rows")


def _note(text: str) -> None:
    console.note(console.printable(text, keep="\n"))
