"""Exponents and indices of the prose as such: u^α and r_max in the Markdown become raised and lowered on the site.

Code, formulas, links, headings and HTML stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

KEPT = re.compile(
    r"(```.*?```|~~~.*?~~~|\$\$.*?\$\$|::::?\{.*?\n|^:\w.*?$|^#.*?$|``.*?``|`[^`]*`|\$[^$\n]*\$|\]\([^)\s]*\)|</?[A-Za-z!][^>]*>|\\.)",
    flags=re.DOTALL | re.MULTILINE,
)
"""What is not prose."""
INNER = r"[^{}()\n]*(?:[{(][^{}()\n]*[)}][^{}()\n]*)*"
EXPONENT = re.compile(rf"(?<=[\w)\]|‖′])\^(?:\{{({INNER})\}}|\(({INNER})\)|([−-]?[\d.]*\d|[−-]?\w+|[⅓⅔½]))")
INDEX = re.compile(
    rf"(?<![a-z_/.-])(?<![A-Za-z][A-Z])([A-Za-zα-ωΑ-Ωℓ][\u0300-\u036f]?)_(?:\{{({INNER})\}}|(max|min|[A-Za-zα-ωΑ-Ω]|\d+))(?![a-z\d_])"
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
    lowered = INDEX.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", prose)
    return EXPONENT.sub(lambda found: f"<sup>{next(filter(None, found.groups()))}</sup>", lowered)


def raise_exponents(app: Any, docname: str, source: list[str]) -> None:
    """Every page that is written in Markdown; notebooks have formulas."""
    if str(app.env.doc2path(docname)).endswith(".md"):
        source[0] = raised(source[0])


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", raise_exponents, priority=900)  # after api_pages, which writes some pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
