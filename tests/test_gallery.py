"""The gallery: every picture is there, and its lines draw it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def gallery() -> Any:
    spec = importlib.util.spec_from_file_location("draw_gallery", DOCS / "draw_gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_its_file_and_about_ten_lines() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    found = gallery().examples()
    assert len(found) == text.count("\n### ") == text.count("```python") >= 15
    assert len({example.file for example in found}) == len(found)
    for example in found:
        assert (DOCS / "images" / example.file).stat().st_size > 5_000, example.file
        assert len([line for line in example.code.splitlines() if line.strip()]) <= 12, example.file
    assert {p.name for p in (DOCS / "images").glob("gallery_*")} == {example.file for example in found}


@pytest.mark.slow
def test_the_lines_of_the_gallery_draw_its_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = gallery().draw(tmp_path)
    assert len(files) >= 15
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 5_000
