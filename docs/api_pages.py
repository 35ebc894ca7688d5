"""A page for every public object, a page for every group of them, and an index with one-line summaries.

`reference/api.md` lists the names, in blocks of code whose language is `{api}`. A line is a dotted name; `NAME: a, b`
shows only the members a and b of a class, `NAME:` none; `MODULE.*` stands for all public names of a module. The pages
are written to `reference/api` when a build begins, and are not kept in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INDEX = HERE / "reference" / "api.md"
PAGES = HERE / "reference" / "api"
GROUP = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)^```\{api\}\n(?P<names>.*?)^```\n", re.MULTILINE | re.DOTALL)
CARD = re.compile(r"^## (\S+)\n.*?^- \*\*Class:\*\* `\S+\.(\w+)`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A public object and the name of its page."""

    name: str
    target: Any
    page: str
    members: str | None

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def shown(self) -> str:
        """What a user types: gf.solve after `import gainful as gf`."""
        public = importlib.import_module("gainful").__all__
        short = self.name.split(".")[1] in public
        return self.name.replace("gainful.", "gf.", 1) if short else self.name

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        text = inspect.getdoc(self.target) if not isinstance(self.target, tuple) else ""
        first = (text or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
        return re.sub(r"\s+", " ", first)

    @property
    def directive(self) -> str:
        """The directive of autodoc that describes it."""
        if inspect.ismodule(self.target):
            return f".. automodule:: {self.name}"
        if not inspect.isclass(self.target):
            return f".. auto{'function' if callable(self.target) else 'data'}:: {self.name}"
        lines = [f".. autoclass:: {self.name}"]
        if self.members != "":
            lines.append(f"   :members: {self.members or ''}".rstrip())
        bases = [base for base in self.target.__bases__ if base.__module__.startswith("gainful")]
        if bases:
            lines.append("   :show-inheritance:")
        if self.members is None and not all(base in pages() for base in bases):
            lines.append("   :inherited-members:")
        return "\n".join(lines)


@dataclass(frozen=True)
class Group:
    """A heading of the index, the prose below it, and its entries."""

    title: str
    text: str
    entries: list[Entry]

    @property
    def page(self) -> str:
        """The name of the group's page."""
        return "group_" + re.sub(r"\W+", "_", self.title.lower())

    def table(self, folder: str) -> str:
        """Names, linked, and what they are in one line."""
        rows = [f"| [`{e.shown}`]({folder}{e.page}.md) | {e.summary} |" for e in self.entries]
        return "\n".join([":::{div} summaries", "| name | what it is |", "|---|---|", *rows, ":::"]) + "\n"


def resolve(name: str) -> Any:
    """The object that a dotted name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise LookupError(name)


def names_of_module(module: str) -> list[str]:
    """The functions and classes of its `__all__`, or those that it defines; functions first."""
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None)
    if listed is None:
        own = {n: v for n, v in vars(found).items() if getattr(v, "__module__", "") == module}
        listed = [name for name in own if not name.startswith("_")]
    objects = {name: getattr(found, name) for name in listed}
    names = [name for name, value in objects.items() if inspect.isclass(value) or inspect.isfunction(value)]
    return [f"{module}.{name}" for name in sorted(names, key=lambda name: not inspect.isfunction(objects[name]))]


@cache
def groups() -> list[Group]:
    """What the index lists, in its order; a name that is listed twice belongs to its first group."""
    taken: set[str] = set()
    seen: set[int] = set()
    found = []
    for group in GROUP.finditer(INDEX.read_text("utf-8")):
        entries = []
        for line in group["names"].split("\n"):
            name, colon, members = (part.strip() for part in line.partition(":"))
            for one in names_of_module(name[:-2]) if name.endswith(".*") else [name] if name else []:
                target = resolve(one)
                if id(target) not in seen:
                    entries.append(Entry(one, target, page_name(one, taken), members if colon else None))
                    seen.add(id(target))
        found.append(Group(group["title"], group["text"].strip(), entries))
    return found


@cache
def pages() -> set[Any]:
    """The classes that have a page of their own; members that are inherited from others belong on the heir's page."""
    return {entry.target for group in groups() for entry in group.entries if inspect.isclass(entry.target)}


def page_name(name: str, taken: set[str]) -> str:
    """A file name that differs from all others in more than its case: `structure` and `Structure` are two objects."""
    page = name.removeprefix("gainful.")
    while page.lower() in taken:
        page += "_"
    taken.add(page.lower())
    return page


def text_of_entry(entry: Entry, group: Group, cards: dict[str, str]) -> str:
    """One page, with the way back to its group; it is in no menu, which with all of them would fill every page."""
    way = f"[API](../api.md) › [{group.title}]({group.page}.md)"
    lines = ["---", "orphan: true", "---", "", "{.breadcrumb}", way, "", f"# {entry.shown}", ""]
    if entry.short in cards:
        lines += [f"Assumptions, bound, cost and measurements: [its card](../agents.md#{cards[entry.short]}).", ""]
    defined = ".".join([str(getattr(entry.target, "__module__", "")), str(getattr(entry.target, "__qualname__", ""))])
    if defined != entry.name and defined.startswith("gainful."):  # the page of the source code may lead to this name
        lines += [f'<span id="{defined}"></span>', ""]
    return "\n".join([*lines, "```{eval-rst}", entry.directive, "```", ""])


def text_of_group(group: Group) -> str:
    """The page of a group."""
    text = re.sub(r"\]\((?!https?:)", "](../", group.text)
    return "\n\n".join([f"# {group.title}", text, group.table("")]) + "\n"


def write_pages(_app: Any) -> None:
    """Write what has changed, and remove what is listed no longer."""
    PAGES.mkdir(exist_ok=True)
    cards = {name: card for card, name in CARD.findall((HERE / "reference" / "agents.md").read_text("utf-8"))}
    texts = {group.page: text_of_group(group) for group in groups()}
    texts |= {entry.page: text_of_entry(entry, group, cards) for group in groups() for entry in group.entries}
    for stale in {file.stem for file in PAGES.glob("*.md")} - set(texts):
        (PAGES / f"{stale}.md").unlink()
    for page, text in texts.items():
        file = PAGES / f"{page}.md"
        if not file.is_file() or file.read_text("utf-8") != text:
            file.write_text(text, encoding="utf-8")


def write_index(_app: Any, docname: str, source: list[str]) -> None:
    """Replace the lists of names by tables, and add the menu."""
    if docname != "reference/api":
        return
    tables = iter(groups())
    source[0] = GROUP.sub(
        lambda found: f"## {found['title']}\n{found['text']}{next(tables).table('api/')}\n", source[0]
    )
    menu = [f"{group.title} <api/{group.page}>" for group in groups()]
    source[0] += "\n".join(["", "```{toctree}", ":hidden:", "", *menu, "```", ""])


# ---------------------------------------------------------------------- parameters as a table

SECTION = re.compile(r"^(?:Other )?Parameters\n-{3,}$")
PARAMETER = re.compile(r"^(?P<names>[*\w][\w*, ]*?)(?: : (?P<type>.+))?$")


def tabulate_parameters(*event: Any) -> None:
    """Turn the section Parameters of a NumPy docstring into a table below its first paragraph.

    The other sections are left to napoleon.
    """
    _, what, _, target, _, lines = event
    for i in range(len(lines) - 1):
        if SECTION.match(f"{lines[i]}\n{lines[i + 1]}"):
            end = next((j - 1 for j in range(i + 3, len(lines)) if re.match(r"^-{3,}$", lines[j])), len(lines))
            rows = parameters(lines[i + 2 : end])
            del lines[i:end]
            first = lines.index("", 0) if "" in lines else len(lines)
            lines[first:first] = table_of_parameters(rows, defaults_of(target) if what != "module" else {})
            return


def parameters(lines: list[str]) -> list[tuple[str, str, list[str]]]:
    """Names, type and meaning of each entry."""
    rows: list[tuple[str, str, list[str]]] = []
    for line in lines:
        if line and not line[0].isspace() and (found := PARAMETER.match(line)):
            rows.append((found["names"], found["type"] or "", []))
        elif rows:
            rows[-1][2].append(line.strip() if line.strip() else "")
    return rows


def defaults_of(target: Any) -> dict[str, str]:
    """The defaults of a function or class, as Python writes them, where that is short."""
    try:
        arguments = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return {}
    shown = {a.name: repr(a.default) for a in arguments if a.default is not inspect.Parameter.empty}
    return {name: text for name, text in shown.items() if len(text) <= 24 and "<" not in text}


def table_of_parameters(rows: list[tuple[str, str, list[str]]], defaults: dict[str, str]) -> list[str]:
    """A list-table, which a narrow screen shows as a list (see gainful.css)."""
    head = [".. list-table::", "   :class: parameters", "   :header-rows: 1", ""]
    lines = [*head, "   * - parameter", "     - type", "     - default", "     - meaning"]
    for names, kind, meaning in rows:
        given = list(dict.fromkeys(defaults[n.strip("* ")] for n in names.split(",") if n.strip("* ") in defaults))
        lines.append(f"   * - {', '.join(f'``{n.strip()}``' for n in names.split(','))}")
        lines.append(f"     - {cell(kind.removesuffix(', optional'))}")
        lines.append(f"     - {', '.join(f'``{text}``' for text in given)}".rstrip())
        first, *rest = meaning or [""]
        lines.append(f"     - {first}".rstrip())
        lines += [f"       {line}".rstrip() for line in rest]
    return ["", *lines, ""]


def cell(text: str) -> str:
    """A type as reStructuredText: `*` and `_` mean themselves."""
    return re.sub(r"([*_|\\])", r"\\\1", text)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", write_index)
    app.connect("autodoc-process-docstring", tabulate_parameters, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
