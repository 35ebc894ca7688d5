"""Docstrings of gainful for Sphinx: plain text with `names`, **stress**, lists and examples becomes reStructuredText.

An extension: with the folder of conf.py on sys.path, extensions = [..., "sphinx.ext.autodoc",
"reference.autodoc_plain"]; or, where conf.py has no `setup` of its own, `from reference.autodoc_plain import setup`.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

# a name in backticks (one or two), or **stress**, or *stress*
_MARKS = re.compile(
    r"(``[^`]+``|`[^`\n]+`|\*\*[^*\s](?:[^*]*[^*\s])?\*\*|(?<![\w*])\*[^*\s](?:[^*]*[^*\s])?\*(?![\w*]))"
)
_ALIASES = ("ArrayLike", "Array", "Floats", "Bonus", "Mixture", "Replanning", "Stopping", "Outside", "Ends")
_WRAPPED = re.compile(r"[\w.~]*TypeAliasForwardRef\('(\w+)'\)")
_SPECIAL = re.compile(r"([\\*`|_])")
_ITEM = re.compile(r"^(?:- |\d+\. )")
_COLUMNS = re.compile(r"^\S+ {2,}\S")


def setup(app: Any) -> dict[str, bool]:
    """Register the conversion with Sphinx."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("config-inited", _keep_names_of_types)
    app.connect("autodoc-process-signature", _tidy_names_of_types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _keep_names_of_types(_app: Any, config: Any) -> None:
    """Signatures say ArrayLike, not what it stands for."""
    config.autodoc_type_aliases = {**{name: name for name in _ALIASES}, **config.autodoc_type_aliases}


def _tidy_names_of_types(*event: Any) -> tuple[str | None, str | None]:
    """In unions Sphinx shows its own wrapper around such a name; the last two arguments are signature and result."""
    signature, result = (text and _WRAPPED.sub(r"\1", text) for text in event[-2:])
    return signature, result


def _process(*event: Any) -> None:
    """Replace the lines of one docstring, the last argument."""
    event[-1][:] = converted(event[-1])


def converted(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText, one paragraph after the other."""
    out: list[str] = []
    for paragraph in _paragraphs(lines):
        first = paragraph[0]
        if first.startswith(">>>"):
            out += [".. code-block:: pycon", "", *(f"   {line}" for line in paragraph), ""]
        elif first.startswith(" ") or _COLUMNS.match(first):
            kept = textwrap.dedent("\n".join(paragraph)).split("\n")
            out += [".. code-block:: text", "", *(f"   {line}" for line in kept), ""]
        elif _ITEM.match(first):
            for item in _items(paragraph):
                out += [f"- {plain(' '.join(item))}"]
            out += [""]
        else:
            text = "\n".join(line.strip() for line in paragraph)
            out += [*plain(re.sub("::$", ":", text)).split("\n"), ""]
    return out


def plain(text: str) -> str:
    """`names` as literals and stress kept; everything else means itself."""
    parts = _MARKS.split(text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = _escaped(part)
        elif part.startswith("*"):
            stars = "**" if part.startswith("**") else "*"
            inner = part.strip("*").replace("`", "")
            parts[i] = f"\\ {stars}{_escaped(inner)}{stars}\\ "
        else:
            parts[i] = f"\\ ``{part.strip('`')}``\\ "
    found = "".join(parts)
    return f"\\{found}" if re.match(r"[-+.:>=~^\"'#]", found) else found


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Blocks of lines between empty ones; text that turns into indented text or an example begins a new one."""
    found: list[list[str]] = []
    block: list[str] = []
    for line in [*lines, ""]:
        turns = bool(block) and line.strip() != "" and _kind(line) != _kind(block[0]) and not _continues(block, line)
        if block and (not line.strip() or turns):
            found.append(block)
            block = []
        if line.strip():
            block.append(line.rstrip())
    return found


def _kind(line: str) -> str:
    if line.startswith(">>>"):
        return "example"
    return "indented" if line.startswith(" ") else "text"


def _continues(block: list[str], line: str) -> bool:
    """Output of an example, and further lines of an item or of text in columns, belong to what they follow."""
    if block[0].startswith(">>>") or _COLUMNS.match(block[0]):
        return True
    return bool(_ITEM.match(block[0])) and line.startswith(" ")


def _items(paragraph: list[str]) -> list[list[str]]:
    """The items of a list, each as its lines without the marks."""
    found: list[list[str]] = []
    for line in paragraph:
        mark = _ITEM.match(line)
        if mark or not found:
            found.append([line[mark.end() :] if mark else line])
        else:
            found[-1].append(line.strip())
    return found
