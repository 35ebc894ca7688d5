"""The measured tables of the docs are those that the benchmarks' records give, and no other tables are measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import makers, records, tables
from benchmarks.markdown import merged, parsed, written
from benchmarks.records import RESULTS

QUIET = {"cpu": "a processor", "cores": 2, "load": 0.5, "python": "3.11.7"}


def text_of(page: str) -> str:
    return (tables.DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in tables.pages() if tables.blocks(page, text_of(page))])
def test_a_page_has_what_was_measured(page: str) -> None:
    assert tables.filled(page, text_of(page)) == text_of(page), "run: make tables"


def test_a_number_that_was_typed_is_replaced() -> None:
    text = text_of("speed.md")
    begin = text.index("<!-- sweep: begin -->")
    forged = text[:begin] + re.sub(r"\d\.\d\d", "0.01", text[begin:], count=3)
    assert forged != text
    assert tables.filled("speed.md", forged) == text


def test_records_say_when_and_on_which_kind_of_machine() -> None:
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        facts = json.loads(file.read_text(encoding="utf-8"))
        assert file.stem == f"{facts['benchmark']}_{facts['part']}"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["date"])
        if "taken_over" in facts:
            assert re.fullmatch(r"[0-9a-f]{10}", facts["taken_over"]["commit"])
        else:
            assert set(facts["machine"]) == set(QUIET)


def test_every_record_is_on_some_page() -> None:
    shown = {name.partition("/")[0] for page in tables.pages() for name in tables.blocks(page, text_of(page))}
    code = Path(makers.__file__).read_text(encoding="utf-8")
    for file in RESULTS.glob("*.json"):
        used = file.stem in shown or re.search(rf"['\"]{file.stem}['\"]", code) or file.stem.startswith("studies_")
        assert used, f"{file.name}: no page shows it"


# ---------------------------------------------------------------------- tables that were typed


def test_no_measured_table_stands_outside_of_what_is_made_from_records() -> None:
    for page in tables.pages():
        for line, head in tables.typed_tables(page, text_of(page)):
            pytest.fail(
                f"docs/{page}:{line}: the table {head!r} has numbers that look measured. Record them (see "
                "benchmarks/records.py), or write <!-- not measured: WHY --> above the table"
            )


@pytest.mark.parametrize(
    ("cell", "looks_measured"),
    [("3.4", True), ("12 ms", True), ("45 %", True), ("1,234", True), ("5 ± 1", True), ("−0.02", True),
     ("2.1 · 10⁹", True), ("1 125", True),
     ("yes", False), ("`bonus_scale=0.1`", False), ("4", False), ("[a page](a-1.5.md)", False)],
)  # fmt: skip
def test_what_looks_measured(cell: str, looks_measured: bool) -> None:
    text = f"Text.\n\n| what | found |\n|---|---|\n| a thing | {cell} |\n"
    assert bool(tables.typed_tables("page.md", text)) == looks_measured


def test_a_table_is_left_alone_if_it_is_made_from_a_record_or_says_that_it_is_not_measured() -> None:
    table = "| what | found |\n|---|---|\n| a thing | 3.4 ms |\n"
    assert tables.typed_tables("page.md", table)
    assert not tables.typed_tables("page.md", f"<!-- name: begin -->\n\n{table}\n<!-- name: end -->\n")
    assert not tables.typed_tables("page.md", f"<!-- not measured: a limit of the code -->\n\n{table}")
    assert tables.typed_tables("page.md", f"<!-- not measured: a limit -->\n\nText.\n\n{table}")
    assert tables.typed_tables("page.md", f"```text\ncode\n```\n\n{table}")


# ---------------------------------------------------------------------- records


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(records, "RESULTS", tmp_path / "benchmarks" / "measured")
    (tmp_path / "benchmarks" / "measured").mkdir(parents=True)
    return tmp_path / "benchmarks" / "measured"


def measured_at(monkeypatch: pytest.MonkeyPatch, load: float) -> None:
    monkeypatch.setattr(records, "machine", lambda: QUIET | {"load": load})


@pytest.mark.parametrize(
    ("before", "now", "refused"), [(1.0, 0.5, False), (0.5, 1.9, False), (1.5, 2.5, True), (6.0, 5.0, False)]
)
def test_times_of_a_quiet_machine_are_not_replaced_by_those_of_a_busy_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: float, now: float, refused: bool
) -> None:
    measured_at(monkeypatch, before)
    records.record("speed", "part", 1)
    measured_at(monkeypatch, now)
    if refused:
        with pytest.raises(SystemExit, match="--even-if-busy"):
            records.record("speed", "part", 2)
    else:
        records.record("speed", "part", 2)
    assert json.loads((folder / "speed_part.json").read_text("utf-8"))["values"] == (1 if refused else 2)


def test_a_busy_machine_may_be_recorded_if_one_says_so_or_nothing_is_timed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_at(monkeypatch, 0.5)
    records.record("speed", "part", 1)
    measured_at(monkeypatch, 9.0)
    records.record("speed", "part", 2, timed=False)
    assert json.loads((folder / "speed_part.json").read_text("utf-8"))["values"] == 2
    measured_at(monkeypatch, 11.0)
    monkeypatch.setattr("sys.argv", ["speed.py", "--record", records.EVEN_IF_BUSY])
    records.record("speed", "part", 3)
    assert json.loads((folder / "speed_part.json").read_text("utf-8"))["machine"]["load"] == 11.0


def test_rows_that_are_measured_alone_replace_and_join_those_of_the_record(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_at(monkeypatch, 0.5)
    head = "Text.\n\n| agent | lost |\n|---|---:|\n"
    records.record_document("agents", "table", head + "| a | 1.5 |\n| b | 2.5 |\n")
    records.record_rows("agents", "table", head + "| b | 2.4 |\n| c | 3.5 |\n")
    facts: Any = json.loads((folder / "agents_table.json").read_text("utf-8"))
    assert (
        written(facts["values"]) == "Text.\n\n| agent | lost |\n| --- | ---: |\n| a | 1.5 |\n| b | 2.4 |\n| c | 3.5 |"
    )
    assert set(facts["rows"]) == {"b", "c"}
    monkeypatch.setattr(makers, "recorded", lambda _: facts)
    assert makers.origin("agents_table").count("; b and c: ") == 1


def test_rows_of_another_table_are_refused() -> None:
    with pytest.raises(ValueError, match="other columns"):
        merged(parsed("| a | b |\n|---|---|\n| 1 | 2 |"), parsed("| a | c |\n|---|---|\n| 1 | 2 |"))


def test_markdown_is_written_as_it_was_read() -> None:
    text = "One.\n\n| a \\| b | n |\n| --- | :-: |\n| x |  |\n\n- two\n- three"
    assert written(parsed(text)) == text
    with pytest.raises(ValueError, match="number of cells"):
        parsed("| a | b |\n|---|---|\n| 1 |")


@pytest.mark.parametrize(
    ("n", "as_power"), [(300, "300"), (1000, "10³"), (29_588, "3·10⁴"), (99_600, "10⁵"), (10**6, "10⁶")]
)
def test_powers_of_ten(n: int, as_power: str) -> None:
    assert makers.power(n) == as_power


@pytest.mark.parametrize(
    ("page", "text", "problem"),
    [("speed.md", "no marks here", "the marks of .*sweep.* are missing"),
     ("page.md", "<!-- no_such_record: begin -->\n<!-- no_such_record: end -->\n", "no record"),
     ("page.md", "<!-- serve_rates: begin -->\n", "missing or appear twice")],
)  # fmt: skip
def test_a_page_without_its_marks_or_records_is_an_error(page: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tables.filled(page, text)
