"""The page as a browser shows it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.experiments.results import results
from gainful.experiments.store import STORE_FILE, Store
from gainful.report.collect import collect
from gainful.report.page import page as page_of
from gainful.report.page import save_page, write_report
from gainful.report.writing import plotly_bundle
from tests.report.conftest import LATEX, QUOTES, RIVER, TITLE, Look

AGENTS = [QUOTES, "SCAL+, bonus_scale = 0.1", LATEX, "UCRL2B"]

LINES = """(env) => {
    const node = document.querySelector(`.chart[data-chart=regret][data-env="${env}"]`);
    return node.data.filter((t) => t.showlegend !== false).map((t) => ({
        name: t.name, x: Array.from(t.x), y: Array.from(t.y), shown: t.visible !== "legendonly"}));
}"""
AXES = """() => {
    const l = document.querySelector(".chart[data-chart=regret]")._fullLayout;
    return [l.xaxis.type, l.yaxis.type, l.yaxis.title.text];
}"""


def press(page: Any, key: str, value: str | None = None) -> None:
    which = f'[data-value="{value}"]' if value else ""
    page.click(f'.tools button[data-key="{key}"]{which}')


def test_every_chart_is_drawn(file: Path, look: Look) -> None:
    sight = look(file)
    sight.draw_all()
    kinds = sight.page.eval_on_selector_all(".chart", "nodes => nodes.map((n) => n.dataset.chart)")
    tabular = ["regret", "distribution", "optimism", "bonus", "visits", "values"]
    assert kinds == tabular * 2 + ["regret", "distribution", "optimism"] + ["profile"]
    drawn = sight.page.eval_on_selector_all(
        ".chart",
        """nodes => nodes.map((n) => n.querySelectorAll(
            '.scatterlayer .trace path, .heatmaplayer image, .trace.boxes path').length)""",
    )
    assert min(drawn) > 0
    lines = sight.page.eval_on_selector_all(
        ".chart[data-chart=regret]",
        "nodes => nodes.map((n) => n.querySelectorAll('.scatterlayer path.js-line').length)",
    )
    assert lines == [8, 8, 2]  # a line and a band each
    assert sight.page.locator(".graph svg circle").count() == 6 + 3
    assert sight.page.locator("#env-2 .why").all_inner_texts()[-1].startswith("Not drawn: its states are points")


def test_no_button_offers_to_send_a_chart_anywhere(file: Path, look: Look) -> None:
    page = look(file).page
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    titles = page.eval_on_selector_all(".chart .modebar-btn", "nodes => nodes.map((n) => n.getAttribute('data-title'))")
    assert set(titles) == {"Zoom", "Pan", "Reset axes", "Save as a picture (SVG)"}


def test_curves_are_those_of_the_results(file: Path, folder: Path, look: Look) -> None:
    sight = look(file)
    frame = results(folder)
    frame = frame[frame.environment == RIVER]
    for key, value, column, centre in (
        ("measure", "expected_regret", "expected_regret", np.mean),
        ("measure", "pseudo_regret", "pseudo_regret", np.mean),
        ("measure", "regret", "regret", np.mean),
        ("centre", "median", "regret", np.median),
    ):
        press(sight.page, key, value)
        press(sight.page, "y", "linear")
        lines = sight.page.evaluate(LINES, 0)
        assert len(lines) == 4
        for agent, line in zip(AGENTS, lines, strict=True):
            table = frame[frame.agent == agent].pivot(index="step", columns="seed", values=column)
            assert line["x"] == table.index.tolist()
            np.testing.assert_allclose(line["y"], centre(table.to_numpy(), axis=1), rtol=1e-6, atol=1e-6)
    press(sight.page, "step")
    one = sight.page.evaluate(LINES, 0)[0]
    table = frame[frame.agent == AGENTS[0]].pivot(index="step", columns="seed", values="regret")
    np.testing.assert_allclose(one["y"], np.median(table, axis=1) / table.index, rtol=1e-6, atol=1e-9)


def test_switches_change_the_axes(file: Path, look: Look) -> None:
    page = look(file).page
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    assert page.evaluate(AXES) == ["log", "log", "expected regret"]
    press(page, "x", "linear")
    press(page, "measure", "regret")
    assert page.evaluate(AXES) == ["linear", "log", "realised regret"]
    press(page, "y", "linear")
    press(page, "step")
    assert page.evaluate(AXES) == ["linear", "linear", "realised regret per step"]
    pressed = page.eval_on_selector_all(
        ".tools button[aria-pressed=true]", "nodes => nodes.map((n) => n.dataset.key + (n.dataset.value || ''))"
    )
    assert pressed == ["measureregret", "centremean", "xlinear", "ylinear", "step", "bands"]


@pytest.mark.slow
def test_single_runs_are_drawn_on_demand(file: Path, look: Look) -> None:
    page = look(file).page
    count = "() => document.querySelector('.chart[data-chart=regret]').data.length"
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    assert page.evaluate(count) == 8
    press(page, "seeds")
    assert page.evaluate(count) == 12
    press(page, "bands")
    assert page.evaluate(count) == 8


@pytest.mark.slow
def test_a_key_hides_one_agent_and_isolates_another(file: Path, look: Look) -> None:
    page = look(file).page
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    page.click('.key[data-env="0"][data-agent="1"]')
    page.wait_for_selector('.key[data-env="0"][data-agent="1"][aria-pressed=false]')
    assert [line["shown"] for line in page.evaluate(LINES, 0)] == [True, False, True, True]
    press(page, "y", "linear")  # what was hidden stays hidden
    assert [line["shown"] for line in page.evaluate(LINES, 0)] == [True, False, True, True]
    page.dblclick('.key[data-env="0"][data-agent="3"]')
    page.wait_for_selector('.key[data-env="0"][data-agent="0"][aria-pressed=false]')
    assert [line["shown"] for line in page.evaluate(LINES, 0)] == [False, False, False, True]


@pytest.mark.slow
def test_the_key_in_the_table_hides_an_agent_from_the_keyboard(file: Path, look: Look) -> None:
    page = look(file).page
    page.focus('.key[data-env="0"][data-agent="2"]')
    page.keyboard.press("Enter")
    page.wait_for_selector('.key[data-env="0"][data-agent="2"][aria-pressed=false]')
    assert [line["shown"] for line in page.evaluate(LINES, 0)] == [True, True, False, True]
    assert page.get_attribute('.key[data-env="1"][data-agent="2"]', "aria-pressed") == "true"


@pytest.mark.slow
def test_tables_sort_by_click_and_by_keyboard(file: Path, folder: Path, look: Look) -> None:
    page = look(file).page
    column = "#env-0 table.headline td[data-column=pseudo_regret_mean]"
    head = page.locator("#env-0 table.headline th", has_text="Pseudo-regret")

    def values() -> list[float]:
        return [float(v) for v in page.eval_on_selector_all(column, "nodes => nodes.map((n) => n.dataset.value)")]

    before = values()
    head.locator("button").click()
    assert (values(), head.get_attribute("aria-sort")) == (sorted(before), "ascending")
    head.locator("button").focus()
    page.keyboard.press("Space")
    assert (values(), head.get_attribute("aria-sort")) == (sorted(before, reverse=True), "descending")
    page.locator("#env-0 table.headline th", has_text="Agent").locator("button").click()
    names = page.eval_on_selector_all("#env-0 table.headline tbody th", "nodes => nodes.map((n) => n.dataset.value)")
    assert sorted(names) == sorted(AGENTS)
    assert head.get_attribute("aria-sort") == "none"


@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(width: int, scheme: str, file: Path, look: Look) -> None:
    sight = look(file, width, scheme)
    sight.draw_all()
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= width
    assert sight.page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.slow
def test_colours_change_with_the_switch_and_charts_follow(file: Path, look: Look) -> None:
    page = look(file, scheme="light").page
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    colours = """() => [getComputedStyle(document.body).backgroundColor,
        document.querySelector(".chart[data-chart=regret]")._fullLayout.font.color]"""
    light = page.evaluate(colours)
    page.click("#theme")
    dark = page.evaluate(colours)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert page.inner_text("#theme") == "Light"


@pytest.mark.slow
def test_printing_draws_everything_light_and_without_switches(file: Path, look: Look) -> None:
    page = look(file, scheme="dark").page
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert len(page.pdf(format="A4")) > 20_000
    page.emulate_media(media="print")
    page.wait_for_selector("html[data-theme=light]", state="attached")
    assert page.locator(".chart:not([data-drawn])").count() == 0
    assert not page.locator(".tools").is_visible()
    page.emulate_media(media="screen")
    page.wait_for_selector("html[data-theme=dark]", state="attached")


def test_hostile_names_are_shown_as_text_and_run_nothing(file: Path, look: Look) -> None:
    sight = look(file)
    sight.draw_all()
    page = sight.page
    assert page.title() == TITLE
    assert page.inner_text("h1") == TITLE
    assert page.inner_text("#env-0 h2") == RIVER
    heads = page.eval_on_selector_all("#env-0 table.headline tbody th", "nodes => nodes.map((n) => n.innerText.trim())")
    assert heads == AGENTS
    ranked = page.eval_on_selector_all("#env-0 .leaderboard tbody th", "nodes => nodes.map((n) => n.innerText.trim())")
    assert sorted(ranked) == sorted(AGENTS)
    legend = page.eval_on_selector_all("#profile .legendtext", "nodes => nodes.map((n) => n.textContent)")
    assert [text.rstrip("…") for text in legend] == [a[:40] if len(a) > 42 else a for a in AGENTS]
    sides = page.eval_on_selector_all(
        '.chart[data-chart=distribution][data-env="0"] .ytick text', "nodes => nodes.map((n) => n.textContent)"
    )
    assert sorted(text.rstrip("…") for text in sides) == sorted(a[:28] if len(a) > 30 else a for a in AGENTS)
    assert page.locator("main img, main i, main b, a[href^=javascript]").count() == 0
    assert page.locator("script").count() == 3
    assert page.locator(".notes p").all_text_contents() == ["First <i>note</i>.", "Second note & more."]


@pytest.mark.slow
def test_the_chosen_agent_is_the_one_drawn(file: Path, folder: Path, look: Look) -> None:
    sight = look(file)
    sight.draw_all()
    page = sight.page
    plans = collect(folder).to_json()["environments"][1]["last_plan"]
    for agent in AGENTS:
        page.select_option("#plan-1", label=agent)
        shown = page.evaluate("document.querySelector('.chart[data-chart=values][data-env=\"1\"]').data[0].y")
        assert list(shown) == plans[agent]["values"]
        assert page.locator("#graph-1 circle.binding").count() == len(plans[agent]["constraint_bites_in"])


@pytest.mark.slow
def test_buttons_have_names_and_headings_are_in_order(file: Path, look: Look) -> None:
    page = look(file).page
    names = page.eval_on_selector_all("button", "nodes => nodes.map((n) => n.ariaLabel || n.innerText)")
    assert all(name.strip() for name in names)
    levels = page.eval_on_selector_all("h1, h2, h3", "nodes => nodes.map((n) => Number(n.tagName[1]))")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    labels = page.eval_on_selector_all(".chart", "nodes => nodes.map((n) => n.getAttribute('aria-label'))")
    assert all(labels)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


@pytest.mark.slow
def test_every_agent_has_a_look_of_its_own(file: Path, look: Look) -> None:
    page = look(file).page
    looks = page.eval_on_selector_all(
        "#env-0 .key line", "nodes => nodes.map((n) => n.getAttribute('stroke') + n.getAttribute('stroke-dasharray'))"
    )
    assert len(set(looks)) == 4


@pytest.mark.slow
def test_failures_are_shown_with_their_tracebacks(folder: Path, tmp_path: Path, look: Look) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with sqlite3.connect(copy / STORE_FILE) as store:
        run_id, key = store.execute("SELECT run_id, key FROM runs ORDER BY seed DESC LIMIT 1").fetchone()
        store.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
    with Store.open(copy) as opened:
        opened.keep_failure(
            run_id, key, 1, "ValueError", "<script>alert(4)</script>", "Traceback </pre><script>alert(5)</script>"
        )
    page = look(write_report(copy)).page
    page.click("#failures details summary")
    assert "ValueError: <script>alert(4)</script>" in page.inner_text("#failures")
    assert page.inner_text("#failures pre") == "Traceback </pre><script>alert(5)</script>"
    assert page.inner_text(".lead").startswith("26 of 27 runs")


# ---------------------------------------------------------------------- without a browser


def test_the_page_is_one_file_that_names_no_other(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    ours = re.sub(r"<script>/\*\*\n\* plotly.*?</script>", "", text, flags=re.DOTALL)
    assert len(ours) < len(text) - 1_000_000
    assert text.count("* plotly.js (cartesian") == 1
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", ours.replace(" src=x ", " "))
    assert "url(http" not in ours
    assert "@import" not in ours
    assert "default-src &#x27;none&#x27;" in ours


def test_the_bundle_is_the_published_one_with_its_licence() -> None:
    vendor = Path(gf.__file__).parent / "_vendor" / "plotly"
    (line,) = (vendor / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    checksum, name = line.split()
    assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == checksum
    assert "MIT" in (vendor / "LICENSE").read_text(encoding="utf-8").splitlines()[0]
    assert plotly_bundle() == (vendor / name).read_text(encoding="utf-8")  # nothing in it ends a script element


def test_embedded_data_cannot_end_its_script(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    assert not set("<>&") & set(data)
    names = [a["name"] for a in json.loads(data)["environments"][0]["agents"]]
    assert names == AGENTS


def test_a_page_that_cannot_be_written_leaves_what_was_there(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    found, target = collect(folder), tmp_path / "page.html"
    target.write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(Exception, match="No space left"):
        save_page(found, target)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert target.read_text() == "before"


def test_the_same_store_gives_the_same_page(folder: Path) -> None:
    made = re.compile(r"Made [\d:. -]+ UTC")
    assert made.sub("", page_of(collect(folder))) == made.sub("", page_of(collect(folder)))
