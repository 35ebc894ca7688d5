"""Exponents and indices of the prose as such: u^α and r_max in the Markdown become raised and lowered on the site.

Code, formulas, links, headings and HTML stay as they are. In tables an interval or an error stays on one line.
"""

from __future__ import annotations

import re
from typing import Any

KEPT = re.compile(
    r"(```.*?```|~~~.*?~~~|\$\$.*?\$\$|::::?\{.*?\n|^:\w.*?$|^#.*?$|``.*?``|`[^`]*`|\$[^$\n]*\$|\]\([^)\s]*\)|</?[A-Za-z!][^>]*>|\\.)",
    flags=re.DOTALL | re.MULTILINE,
)
"""What is not prose."""
PLAIN = r"[^{}()\n]*"
NESTED = rf"{PLAIN}(?:[{{(]{PLAIN}[)}}]{PLAIN})*"
INNER = rf"{PLAIN}(?:[{{(]{NESTED}[)}}]{PLAIN})*"
EXPONENT = re.compile(rf"(?<=[\w)\]|‖′])\^(?:\{{({INNER})\}}|\(({INNER})\)|([−-]?[\d.]*\d|[−-]?\w+|[⅓⅔½]))")
INDEX = re.compile(
    rf"(?<![a-z_.-])(?<![A-Za-z][A-Z])([A-Za-zĤα-ωΑ-Ωℓ][\u0300-\u036f]?)_(?:\{{({INNER})\}}|(max|min|sa|ss'|[A-Za-zα-ωΑ-Ω]|\d+))(?![a-z\d_]|\.\w)"
)


def raised(text: str) -> str:
    """Return the Markdown with exponents and indices as HTML.

    >>> raised("r_max·n^(−α) of `a_b^c`")
    'r<sub>max</sub>·n<sup>−α</sup> of `a_b^c`'
    """
    parts = KEPT.split(text)
    parts[::2] = [one_part(part) for part in parts[::2]]
    return "".join(parts)


def one_part(prose: str) -> str:
    """Raise and lower what is in a piece of prose."""
    lowered = prose
    for _ in range(2):  # in f_kN_k the second letter follows the first index
        lowered = INDEX.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", lowered)
    return EXPONENT.sub(lambda found: f"<sup>{next(filter(None, found.groups()))}</sup>", lowered)


ROW = re.compile(r"^\|.*\|$", flags=re.MULTILINE)
INTERVAL = re.compile(r"\[([−\d.,]+), ([−\d.,]+)\]")


def unbroken(text: str) -> str:
    """Return the Markdown with spaces that do not break a line inside the numbers of its tables.

    >>> unbroken("| 24.8 [24.3, 25.3] | 448 ± 10 |").replace(chr(160), "~")
    '| 24.8 [24.3,~25.3] | 448~±~10 |'
    """
    return ROW.sub(lambda row: INTERVAL.sub("[\\1,\u00a0\\2]", row[0]).replace(" ± ", "\u00a0±\u00a0"), text)


def raise_exponents(app: Any, docname: str, source: list[str]) -> None:
    """Every page that is written in Markdown; notebooks have formulas."""
    if str(app.env.doc2path(docname)).endswith(".md"):
        source[0] = unbroken(raised(source[0]))


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", raise_exponents, priority=900)  # after api_pages, which writes some pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
