"""The notebooks of the docs run from their beginning and print what they are committed with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
COURSE = sorted((DOCS / "course").glob("*.ipynb"))
NOTEBOOKS = [DOCS / "own_process.ipynb", DOCS / "tutorial.ipynb", *COURSE]


def tool() -> Any:
    """docs/notebooks.py, which executes them."""
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebooks_of_the_course_have_exercises_with_answers() -> None:
    assert len(COURSE) == 4
    for file in COURSE:
        text = file.read_text(encoding="utf-8")
        assert [text.count(f'"**{number}.**') for number in (1, 2, 3)] == [1, 1, 1], file
        assert text.count("hide-cell") == 3, file


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_was_committed_with(file: Path) -> None:
    notebooks = tool()
    assert notebooks.notebooks() == sorted(NOTEBOOKS)
    committed = notebooks.texts(notebooks.read(file))
    assert notebooks.texts(notebooks.execute(file)) == committed
