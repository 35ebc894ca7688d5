"""Cards for notebooks: a title, facts and tables as plain HTML, with every text escaped and no colours of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

MOST_ROWS = 30
"""Rows of a table that a card shows."""


def card(title: str, facts: Mapping[str, str], *parts: str) -> str:
    """A card with a title, a table of facts, and further HTML made by the functions below.

    >>> card("Run", {"seed": "<1>"})
    '<div><strong>Run</strong><table><tr><th>seed</th><td>&lt;1&gt;</td></tr></table></div>'
    """
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items())
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table>{''.join(parts)}</div>"


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line of headings.

    >>> rows_table(["state"], [["a & b"]])
    '<table><thead><tr><th>state</th></tr></thead><tbody><tr><td>a &amp; b</td></tr></tbody></table>'
    """
    first = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def left_out(shown: int, total: int, of: str, where: str = "") -> str:
    """A line that says how many rows were left out, and where they are; empty if none were.

    >>> left_out(30, 31, "states", "plan.to_frame()")
    '<p>… and 1 more states; <code>plan.to_frame()</code> has all of them</p>'
    """
    if shown >= total:
        return ""
    source = f"; <code>{escape(where)}</code> has all of them" if where else ""
    return f"<p>… and {total - shown:,} more {escape(of)}{source}</p>"
