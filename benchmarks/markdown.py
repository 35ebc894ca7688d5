"""Markdown as data: paragraphs are texts, tables have columns, alignments and rows.

What a benchmark prints is recorded in this form (`benchmarks/records.py`) and written again by `benchmarks/tables.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

Table: TypeAlias = dict[str, Any]
"""columns: texts; align: "left", "center" or "right" for each; rows: lists of texts."""
Document: TypeAlias = list[str | Table]

RULES = {"left": "---", "center": ":-:", "right": "---:"}
SPACE_OF_NUMBER = re.compile(
    r"(?<=\d) (?=\d{3}\b)"  # thousands
    r"|(?<=[\d%s]) (?=±)|(?<=±) (?=\d)"
    r"|(?<=\S) (?==)|(?<==) (?=\S)"
    r"|(?<=\d) (?=(?:%|s|ms|µs|ns|min|kB|MB|GB|M)(?:\W|$))"
)
RULE = re.compile(r"^\|(\s*:?-+:?\s*\|)+$")


def cells(line: str) -> list[str]:
    """The cells of a line of a table; an escaped bar is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def alignment(rule: str) -> str:
    if rule.startswith(":") and rule.endswith(":"):
        return "center"
    return "right" if rule.endswith(":") else "left"


def parsed(text: str) -> Document:
    """Paragraphs and tables, in order.

    >>> parsed("Two:\\n\\n| n | loss |\\n|---|---:|\\n| 1 | 2.5 |\\n")
    ['Two:', {'columns': ['n', 'loss'], 'align': ['left', 'right'], 'rows': [['1', '2.5']]}]
    """
    found: Document = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip("\n").splitlines()
        at = next((i for i, line in enumerate(lines) if RULE.match(line.strip())), None)
        if at is None or at == 0:
            found += ["\n".join(lines)] if lines else []
            continue
        if at > 1:  # a line of text directly above the table
            found.append("\n".join(lines[: at - 1]))
        rows = [cells(line) for line in lines[at + 1 :]]
        columns = cells(lines[at - 1])
        if any(len(row) != len(columns) for row in rows):
            raise ValueError(f"a row of the table below {lines[at - 1]!r} has another number of cells")
        found.append({"columns": columns, "align": [alignment(c) for c in cells(lines[at])], "rows": rows})
    return found


def written(document: Iterable[str | Table]) -> str:
    """The Markdown of a document."""
    return "\n\n".join(item if isinstance(item, str) else written_table(item) for item in document)


def written_table(table: Table) -> str:
    lines = [table["columns"], [RULES[side] for side in table["align"]], *table["rows"]]
    return "\n".join("| " + " | ".join(map(unbroken, line)) + " |" for line in lines)


def unbroken(cell: str) -> str:
    """The cell with spaces inside of numbers, and between a number and its unit, at which no line ends."""
    return SPACE_OF_NUMBER.sub("\N{NO-BREAK SPACE}", cell)


def tables_of(document: Iterable[str | Table]) -> list[Table]:
    return [item for item in document if not isinstance(item, str)]


def merged(old: Document, new: Document) -> Document:
    """The old document with the rows of the new tables: in place of those that begin alike, others at the end.

    Both have the same tables in the same order, with the same columns; texts stay the old ones.
    """
    added = tables_of(new)
    if [table["columns"] for table in tables_of(old)] != [table["columns"] for table in added]:
        raise ValueError("the tables of the record have other columns; measure everything")
    found: Document = []
    for item in old:
        if isinstance(item, str):
            found.append(item)
            continue
        rows = {row[0]: row for row in item["rows"]} | {row[0]: row for row in added.pop(0)["rows"]}
        found.append({**item, "rows": list(rows.values())})
    return found
