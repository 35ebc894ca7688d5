"""Sphinx: `sphinx-build -W -b html docs docs/_build`. Nothing is fetched, neither by the build nor by the pages."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

from gainful.about import REPOSITORY

os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "gainful-docs-cache"))

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
VERSION = re.search(
    r'^__version__ = "(.+)"', (HERE.parent / "src/gainful/__init__.py").read_text("utf-8"), re.MULTILINE
)
assert VERSION is not None

project = "gainful"
author = "The gainful developers"
version = release = VERSION.group(1)
project_copyright = author

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += [
    "sphinx_copybutton",
    "sphinx_design",
    "api_pages",
    "exponents",
    "docstring_text",
    "long_cells",
    "wide_pictures",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # notebooks come with their outputs; `make notebooks` executes them, and so do the tests
copybutton_selector = 'div[class*="highlight-"]:not(.highlight-text):not(.highlight-none) pre'
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build", "jupyter_execute", "Thumbs.db", ".DS_Store"]
suppress_warnings = [
    "myst.header",  # tables written by benchmarks have their own level of headings
    "ref.python",  # the words of a type, such as (n_states,), are also names of attributes
]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 4  # `page.md#a-heading` works here as it does on GitHub

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
TYPE_ALIASES = ("Array", "ArrayLike", "Band", "Bonus", "Data", "Ends", "Floats", "Mixture", "NDArray", "Outside")
TYPE_ALIASES += ("Progress", "Replanning", "RewardLaw", "Start", "Stopping")
autodoc_type_aliases = {name: name for name in TYPE_ALIASES}  # signatures say ArrayLike, not what it stands for
smartquotes_action = "qe"  # two hyphens are an option, not a dash
default_role = "code"  # `name` in a docstring is code
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "gainful"
html_static_path = ["_static"]
html_css_files = ["gainful.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_domain_indices = False  # of modules: the index of names has more
html_show_sphinx = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {
    "navigation_with_keys": True,
    "light_logo": "logo.svg",
    "dark_logo": "logo_dark.svg",
    "light_css_variables": {"color-brand-primary": "#1b6ca8", "color-brand-content": "#1b6ca8"},
    "dark_css_variables": {"color-brand-primary": "#7ab8e6", "color-brand-content": "#7ab8e6"},
}
if REPOSITORY:
    html_theme_options["source_repository"] = REPOSITORY
    html_theme_options["source_branch"] = "main"
    html_theme_options["source_directory"] = "docs/"
    html_theme_options["footer_icons"] = [{"name": "Repository", "url": REPOSITORY, "html": "Repository", "class": ""}]
pygments_style = "default"  # comments and numbers have a contrast of at least 4.5
pygments_dark_style = "github-dark"
html_math_renderer = "mathml"


# ---------------------------------------------------------------------- formulas: MathML, which browsers draw


ACCENT_AND_INDEX = re.compile(
    r"<munderover>\s*(<mi>[^<]*</mi>)\s*((?:(?!<munderover>).)*?)\s*"
    r'(<mo stretchy="false">[ˆˉ~˙¨]</mo>)\s*</munderover>',
    flags=re.DOTALL,
)
"""The converter writes the index of a letter with an accent below the letter."""
SIZED = re.compile(r"\\[Bb]igg?[lrm]?(?![A-Za-z])\s*")


def paired_brackets(source: str) -> str:
    """Brackets of a given size, which the converter does not know, as pairs whose height the browser chooses."""
    sides = iter([r"\left", r"\right"] * len(SIZED.findall(source)))
    paired = len(SIZED.findall(source)) % 2 == 0
    return SIZED.sub(lambda _: next(sides) if paired else "", source)


def write_math(writer: Any, node: nodes.Element) -> None:
    """LaTeX to MathML with docutils' own converter; a formula it cannot read is a warning, and so an error."""
    block = isinstance(node, nodes.math_block)
    source = re.sub(r"\\(begin|end)\{(?:align|gather)\*?\}", r"\\\1{aligned}", node.astext().strip())
    source = re.sub(r"\\(begin|end)\{equation\*?\}", "", source)
    source = re.sub(r"(\\[dt]?frac)\s*(\d)(\d)", r"\1{\2}{\3}", source)  # TeX's arguments are single digits
    source = source.replace("^*", r"^\ast").replace("^{*}", r"^\ast")  # an asterisk is raised already
    source = paired_brackets(source)
    source = re.sub(r"\\dots(?![A-Za-z])", r"\\ldots ", source)
    try:
        found = latex2mathml.tex2mathml(source, as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", source, error, location=node)
        found = f"<code>{writer.encode(source)}</code>"
    found = ACCENT_AND_INDEX.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', found)
    found = re.sub(r"<mo>([{}])</mo>", r'<mo stretchy="false">\1</mo>', found)
    if block:
        wrapper = node.parent.get("ids", []) if node.parent is not None else []
        anchor = "".join(f' id="{name}"' for name in node.get("ids", [])[:1] if name not in wrapper)
        found = f'<div class="math-block"{anchor}>{found}</div>\n'
    writer.body.append(found)
    raise nodes.SkipNode


# ---------------------------------------------------------------------- docstrings

FORWARD_REFERENCE = re.compile(r"[\w.~]*TypeAliasForwardRef\('(\w+)'\)")
MARKED = re.compile(r"[\w.~]*Annotated\[(.+?), [\w.~]*(?:AddedLater|DefaultWas)\([^)]*\)\]")


def tidy_type_names(*event: Any) -> tuple[str | None, str | None]:
    """Unwrap the names of type aliases, which Sphinx wraps in unions, and drop marks that concern stored runs only.

    The last arguments are signature and result.
    """
    signature, result = (text and MARKED.sub(r"\1", FORWARD_REFERENCE.sub(r"\1", text)) for text in event[-2:])
    return signature, result


def escape_bars(*event: Any) -> None:
    """Keep |x| in the prose of a docstring an absolute value, which reStructuredText takes for a substitution."""
    lines, example = event[-1], False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[i] = re.sub(r"(`[^`]*`)|\|(?=\S)|(?<=\S)\|", lambda found: found[1] or r"\|", line)


# ---------------------------------------------------------------------- the list on the first page is the menu

SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", flags=re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^- \[(.+?)\]\((?!https?:)([^)#]+)\.(?:md|ipynb)\)", flags=re.MULTILINE)
DOORS = re.compile(r"^<!-- doors: begin -->\n(.*?)^<!-- doors: end -->\n", flags=re.MULTILINE | re.DOTALL)
DOOR = re.compile(r"^### (.+?)\n(.*?)(?=^### |\Z)", flags=re.MULTILINE | re.DOTALL)
CLASS = re.compile(r"^<!-- class: ([\w-]+) -->$", flags=re.MULTILINE)


def write_menu(_app: Any, docname: str, source: list[str]) -> None:
    """Every section of index.md that lists pages becomes one of the menu: on GitHub it stays a plain list of links."""
    if docname != "index":
        return
    menus = []
    for heading, text in SECTION.findall(DOORS.sub("", source[0])):
        pages = [f"{title} <{page}>" for title, page in ENTRY.findall(text) if not page.startswith("..")]
        if pages:
            menus.append("\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"]))
    source[0] += "\n\n" + "\n\n".join(menus) + "\n"


HERO = re.compile(r"^(!\[.*?\]\(images/)hero\.png\)$", flags=re.MULTILINE)


def furnish(_app: Any, _docname: str, source: list[str]) -> None:
    """Doors become cards side by side, and a comment gives the paragraph below it a class: GitHub shows neither.

    On a phone the panels of the first picture are below each other.
    """
    source[0] = DOORS.sub(lambda found: cards(found[1]), source[0])
    source[0] = CLASS.sub(r"{.\1}", source[0])
    source[0] = HERO.sub(r"{.wide-screen}\n\1hero.png)\n\n{.narrow-screen}\n\1hero_narrow.png)", source[0])


def cards(text: str) -> str:
    """One card for every heading."""
    found = [f":::{{grid-item-card}} {title}\n{content}:::\n" for title, content in DOOR.findall(text)]
    return "\n".join(["::::{grid} 1 1 3 3", ":gutter: 3", ":class-container: doors", "", *found, "::::", ""])


LONG_NAME = re.compile(r'(?<=<span class="pre">)[^<]{28,}(?=</span>)')
"""A name in the prose that may not fit on a line."""


def break_long_names(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Let a long name in the prose break where a reader would break it."""
    if "body" in context:
        context["body"] = LONG_NAME.sub(lambda name: re.sub(r"(::|[/_.])(?=\w)", r"\1<wbr>", name[0]), context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("source-read", write_menu)
    app.connect("source-read", furnish)
    app.connect("html-page-context", break_long_names)
    app.connect("autodoc-process-signature", tidy_type_names)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
