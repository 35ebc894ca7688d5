"""The measured tables of the docs are those that the benchmarks' records give."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import tables
from benchmarks.records import RESULTS


@pytest.mark.parametrize("page", list(tables.PAGES))
def test_a_page_has_what_was_measured(page: str) -> None:
    text = (tables.DOCS / page).read_text(encoding="utf-8")
    assert tables.filled(text, tables.PAGES[page]) == text, "run: make tables"


def test_a_number_that_was_typed_is_replaced() -> None:
    page, parts = "speed.md", tables.PAGES["speed.md"]
    text = (tables.DOCS / page).read_text(encoding="utf-8")
    begin = text.index("<!-- sweep: begin -->")
    forged = text[:begin] + re.sub(r"\d\.\d\d", "0.01", text[begin:], count=3)
    assert forged != text
    assert tables.filled(forged, parts) == text


def test_records_say_when_and_on_which_kind_of_machine() -> None:
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        facts = json.loads(file.read_text(encoding="utf-8"))
        assert file.stem == f"{facts['benchmark']}_{facts['part']}"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["date"])
        assert set(facts["machine"]) == {"cpu", "cores", "load", "python"}


@pytest.mark.parametrize(
    ("n", "written"), [(300, "300"), (1000, "10³"), (29_588, "3·10⁴"), (99_600, "10⁵"), (10**6, "10⁶")]
)
def test_powers_of_ten(n: int, written: str) -> None:
    assert tables.power(n) == written


def test_a_page_without_its_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="'sweep'"):
        tables.filled("no marks here", {"sweep": tables.sweep})
