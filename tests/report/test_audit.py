"""The audit as a section of the report, and as a page of its own, in a real browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gainful.cli.main import run
from gainful.errors import StoreError
from gainful.experiments.auditing import AUDIT_FILE, Audits, audit_all, audit_requests, save_audits
from gainful.experiments.spec import read_spec
from gainful.report.audit_section import audit_section, save_audit_page
from gainful.report.page import write_report
from tests.report.conftest import QUOTES, RIVER, SPEC, Look, Reporter


@pytest.fixture(scope="module")
def audits() -> Audits:
    wanted = [one for one in audit_requests(read_spec(SPEC), 2000) if one.environment == RIVER]
    return audit_all(wanted, title="river", runs=3, jobs=2)


@pytest.fixture(scope="module")
def audited(folder: Path, audits: Audits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("audited") / "out"
    shutil.copytree(folder, copy)
    save_audits(audits, copy)
    return copy


@pytest.mark.slow
def test_the_section_has_every_verdict_and_hostile_names_stay_text(audited: Path, look: Look) -> None:
    page = look(write_report(audited)).page
    section = page.locator("#audit")
    assert section.locator("h3").all_inner_texts()[0] == f"{QUOTES} in {RIVER}"
    told = json.loads((audited / AUDIT_FILE).read_text())
    for i, one in enumerate(told["audits"]):
        table = section.locator("table.audit").nth(i)
        assert table.locator("tbody tr").count() == len(one["verdicts"])
        words = [text.split(" ", 1)[1] for text in table.locator("td.verdict").all_text_contents()]
        assert [word.split(",")[0].split(" by ")[0] for word in words] == [v["verdict"] for v in one["verdicts"]]
    assert section.locator("svg polyline").count() >= 3 * len(told["audits"])
    assert section.locator("details", has_text="Not audited").count() == 0
    assert "it held in" in section.locator("td.no-theorem + td + td + td").first.text_content()
    assert page.locator("nav a", has_text="Audit").count() == 1


@pytest.mark.parametrize("width", [375, 1400])
def test_nothing_is_wider_than_the_window(audited: Path, look: Look, width: int) -> None:
    page = look(write_report(audited), width=width, scheme="dark").page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_json_and_the_page_say_the_same(audited: Path, reporter: Reporter) -> None:
    found = reporter(audited, "--json")
    assert found.code == 0
    assert found.data["audit"] == json.loads((audited / AUDIT_FILE).read_text())


def test_a_page_of_its_own_runs_no_script_and_asks_for_nothing(
    tmp_path: Path, browser: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "audit.html"
    assert run(["audit", "toy3d", "--runs", "2", "--horizon", "500", "--html", str(file)]) == 0
    capsys.readouterr()
    page = browser.new_page(color_scheme="dark")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert page.inner_text("h1") == "Audit"
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    )  # dark without a script
    assert page.locator("table.audit tbody tr").count() > 15
    assert "<script" not in file.read_text()
    assert asked == [file.as_uri()]
    page.close()


def test_several_audits_are_a_summary_and_folds_that_open_by_its_links_and_on_paper(
    audits: Audits, tmp_path: Path, browser: Any
) -> None:
    told = audits.to_dict()
    assert len(told["audits"]) > 1
    told["audits"][0]["verdicts"][0] |= {"verdict": "violated", "failed_runs": 3, "promised": True}
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(save_audit_page(told, tmp_path / "audit.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    lines = page.locator("table.audits tbody tr").all_inner_texts()
    assert len(lines) == len(told["audits"])
    assert "✗ 1 violated" in lines[0]
    assert "✓ nothing violated" in lines[1]
    assert "3 of 3 runs" in page.inner_text("ul.failures li")
    tables = page.locator("table.audit")
    assert tables.count() == len(told["audits"])
    assert not tables.first.is_visible()
    page.click("table.audits tbody tr:nth-child(2) a")
    assert page.evaluate("[...document.querySelectorAll('.audit-fold')].map((fold) => fold.open).indexOf(true)") == 1
    assert page.locator("details[open]").count() == 1
    page.emulate_media(media="print")
    assert all(tables.nth(i).is_visible() for i in range(tables.count()))
    page.close()


@pytest.mark.slow
def test_a_violation_is_told_in_words(audits: Audits) -> None:
    told = audits.to_dict()
    told["audits"][0]["ok"] = False
    told["audits"][0]["verdicts"][0] |= {"verdict": "violated", "failed_runs": 3}
    section = audit_section(told)
    assert f"1 of {len(told['audits'])} audits found a violation of a statement that should hold." in section
    assert "✗" in section


@pytest.mark.parametrize("text", ["{", '{"format": "other", "version": 1}', '{"format": "gainful-audit"}', "[]"])
def test_a_damaged_audit_is_named(folder: Path, tmp_path: Path, text: str) -> None:
    copy = tmp_path / "out"
    shutil.copytree(folder, copy)
    (copy / AUDIT_FILE).write_text(text)
    with pytest.raises(StoreError, match=r"audit\.json is not an audit of this version"):
        write_report(copy)
