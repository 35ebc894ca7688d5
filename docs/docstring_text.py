"""The text of docstrings and cards on the pages of the reference.

Exponents and indices are shown as such, and pages of the docs as links. A docstring says r_max·n^{-α} and
docs/pmevi.md, which reads well in a terminal. Code, formulas and signatures stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from exponents import one_part
from sphinx import addnodes

AS_WRITTEN = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.math, nodes.math_block, nodes.title)
SIGNATURES = (addnodes.desc_signature, addnodes.pending_xref)
LOWERED_OR_RAISED = re.compile(r"<(sub|sup)>(.*?)</\1>")
KINDS = {"sub": nodes.subscript, "sup": nodes.superscript}
PAGE = re.compile(r"docs/([\w/]+)\.md")


def mend_texts(_app: Any, document: nodes.document) -> None:
    """Called for every page when it has been read."""
    page = str(document.settings.env.docname)
    if not page.startswith("reference/"):
        return
    for literal in list(document.findall(nodes.literal)):
        if found := PAGE.fullmatch(literal.astext()):
            literal.parent.replace(literal, link(found[1], page))
    for text in list(document.findall(nodes.Text)):
        if not within(text, (*AS_WRITTEN, *SIGNATURES)):
            new = list(parts(str(text), page))
            if len(new) > 1 or not isinstance(new[0], nodes.Text):
                text.parent.replace(text, new)


def within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Whether the node is inside one of these."""
    above = node.parent
    while above is not None and not isinstance(above, kinds):
        above = above.parent
    return above is not None


def parts(text: str, page: str) -> Iterator[nodes.Node]:
    """The text in pieces: plain, links to pages, and what is lowered or raised."""
    end = 0
    for found in PAGE.finditer(text):
        yield from lowered_and_raised(one_part(text[end : found.start()]))
        yield link(found[1], page)
        end = found.end()
    yield from lowered_and_raised(one_part(text[end:]))


def lowered_and_raised(marked: str) -> Iterator[nodes.Node]:
    """Nodes in place of the tags <sub> and <sup>."""
    end = 0
    for found in LOWERED_OR_RAISED.finditer(marked):
        yield nodes.Text(marked[end : found.start()])
        yield KINDS[found[1]]("", "", *lowered_and_raised(found[2]))
        end = found.end()
    yield nodes.Text(marked[end:])


def link(target: str, page: str) -> addnodes.pending_xref:
    """A link to a page of the docs, by its title."""
    found = addnodes.pending_xref("", refdomain="std", reftype="doc", reftarget=f"/{target}", refdoc=page, refwarn=True)
    found["refexplicit"] = False
    found += nodes.inline("", target, classes=["xref", "std", "std-doc"])
    return found


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", mend_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
