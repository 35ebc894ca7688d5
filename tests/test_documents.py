"""The Python examples of the README and of every page of the docs, executed in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MADE_BY_A_BUILD = ("_build", "api", "jupyter_execute")
FOUND = (page for page in sorted((ROOT / "docs").rglob("*.md")) if not set(page.parts) & set(MADE_BY_A_BUILD))
PAGES = [ROOT / "README.md", *(page for page in FOUND if page.name != "gallery.md")]
"""The gallery is executed by `tests/test_gallery.py`, which looks at its figures too."""
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page.name == "README.md" else pytest.mark.slow) for page in PAGES],
    ids=lambda page: page.name,
)
def test_the_examples_of_a_page_work_as_written(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), str(page), "exec"), names)  # line numbers are those of the page


def test_there_are_examples_to_run() -> None:
    assert sum(len(BLOCK.findall(page.read_text(encoding="utf-8"))) for page in PAGES) >= 13
