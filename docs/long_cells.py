"""Cells of tables with a sentence in them keep a width at which it can be read; a table that is too wide scrolls."""

from __future__ import annotations

from typing import Any

from docutils import nodes

LONG = 40
"""In characters."""


def mark_long_cells(_app: Any, document: nodes.document) -> None:
    """Called for every page when it has been read: gainful.css does the rest."""
    for cell in document.findall(nodes.entry):
        if len(cell.astext()) > LONG:
            cell["classes"].append("long")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", mark_long_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
