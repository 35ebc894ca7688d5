"""What a reader meets first: the chart, the ranking, who loses least; and every run with its episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gainful.experiments.paired_ratios import ratio_of_means
from gainful.report.collect import collect
from gainful.report.content import Environment, Group
from gainful.report.leaderboard import lead_sentences, leaderboard
from gainful.report.ranking import leads, ranked
from tests.report.conftest import Look


def group(agent: str, values: dict[int, float], measure: str = "expected_regret", **row: Any) -> Group:
    facts = {"final_step": 1000, "guarantee": "yes", "vacuous_runs": 0, "guarantee_text": "", "runs": len(values)}
    facts |= {f"{m}_{s}": None for m in ("expected_regret", "pseudo_regret", "regret") for s in ("mean", "mean_low")}
    facts |= {f"{measure}_mean": float(np.mean(list(values.values()))), "reward_per_step": None}
    return Group(agent, facts | row, {}, {}, {}, {}, {measure: values})


def environment(*groups: Group) -> Environment:
    return Environment("E", "riverswim", {}, 6, 2, 0.4, "solve", False, list(groups))


def said(found: Environment) -> list[str]:
    return ["".join(lead.sentence) for lead in leads(found)]


LOW = {0: 10.0, 1: 11.0, 2: 9.0}
HIGH = {0: 30.0, 1: 34.0, 2: 26.0}


def test_the_best_is_compared_with_the_next_on_shared_seeds() -> None:
    found = environment(group("slow", HIGH), group("quick", LOW), group("none", {7: 1e6}))
    assert [(rank, g.agent) for rank, g in ranked(found)] == [(1, "quick"), (2, "slow"), (3, "none")]
    ratio = ratio_of_means(LOW, HIGH)
    assert said(found) == [
        f"quick loses 3.0 times less than slow (95 % interval {ratio.low:.1f} … {ratio.high:.1f}), on 3 of 3 seeds."
    ]


def test_where_no_theorem_covers_the_best_those_with_one_are_compared_too() -> None:
    found = environment(
        group("a", {s: v / 10 for s, v in LOW.items()}, guarantee="no guarantee"), group("b", LOW), group("c", HIGH)
    )
    first, second = said(found)
    assert first.startswith("a, which has no guarantee, loses 10 times less than b")
    assert second.startswith("Of those with a guarantee, b loses 3.0 times less than c")


def test_what_cannot_be_decided_is_not_claimed() -> None:
    found = environment(group("a", {0: 10.0, 1: 12.0, 2: 9.0}), group("b", {0: 9.0, 1: 13.0, 2: 12.0}))
    (sentence,) = said(found)
    assert sentence.startswith("a and b cannot be told apart: the ratio of their expected regrets is 1.1")
    assert sentence.endswith("the first is lower on 2 of 3 seeds.")
    (negative,) = said(environment(group("a", {0: -5.0, 1: -4.0}), group("b", {0: 3.0, 1: 4.0})))
    assert negative.startswith("a loses 8 less than b")
    assert "seeds" not in said(environment(group("a", {0: 1.0}), group("b", {0: 2.0})))[0].replace(
        "on the one seed", ""
    )
    assert said(environment(group("a", {0: 1.0}), group("b", {1: 2.0}))) == []
    assert lead_sentences(environment(group("a", LOW))) == (
        '<p class="winner">a lost 10.00 in 1,000 steps (expected regret).</p>'
    )


def test_rewards_are_compared_where_the_gain_is_unknown() -> None:
    rich, poor = group("rich", {0: 900.0, 1: 880.0}, "reward"), group("poor", {0: 500.0, 1: 520.0}, "reward")
    found = replace(environment(poor, rich), gain=None)
    (sentence,) = said(found)
    assert sentence.startswith("rich earns 0.38 more per step than poor")


def test_an_agent_that_stopped_earlier_has_no_rank(folder: Path) -> None:
    report = collect(folder)
    river = report.environments[0]
    river.groups[0].row["final_step"] = 100
    order = ranked(river)
    assert order[-1] == (None, river.groups[0])
    assert [rank for rank, _ in order[:-1]] == [1, 2, 3]
    assert "at step 100" in leaderboard(report, river, 0)


def test_the_runs_of_the_json_are_those_of_the_store(folder: Path) -> None:
    report = collect(folder)
    told = report.to_json()["environments"][0]
    assert len(told["runs"]) == 12
    assert told["ranking"] == [g.agent for _, g in ranked(report.environments[0])]
    assert told["leads"][0]["difference"]["pairs"] == 3
    for run in told["runs"]:
        (row,) = (r for r in told["rows"] if r["agent"] == run["agent"])
        assert run["steps"] == row["final_step"] == 5000
    first = [r["expected_regret"] for r in told["runs"] if r["agent"] == told["rows"][0]["agent"]]
    assert np.mean(first) == pytest.approx(told["rows"][0]["expected_regret_mean"], rel=1e-12)


# ---------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "rows"), [(1400, 900, 4), (390, 844, 3)], ids=["desk", "phone"])
def test_chart_and_ranking_are_on_the_first_screen(width: int, height: int, rows: int, file: Path, look: Look) -> None:
    page = look(file, width).page
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    page.wait_for_timeout(400)
    bottom = "nodes => nodes.map((n) => n.getBoundingClientRect().bottom + scrollY)"
    (chart,) = page.eval_on_selector_all("#env-0 .chart[data-chart=regret]", bottom)
    table = page.eval_on_selector_all("#env-0 .leaderboard tbody tr", bottom)
    assert chart < height
    assert sorted(table)[rows - 1] < height  # the names of this experiment take three lines each


@pytest.mark.slow
def test_the_table_of_runs_sorts_and_leads_to_the_episodes_of_a_run(file: Path, folder: Path, look: Look) -> None:
    page = look(file).page
    told = collect(folder).to_json()["environments"][0]["runs"]
    page.click("#runs-0 summary")
    page.wait_for_selector("#runs-0 tbody tr")  # filled when the fold opens, after the click has returned
    assert page.locator("#runs-0 tbody tr").count() == len(told)
    page.click('#runs-0 th:has-text("Expected regret") button')
    page.click('#runs-0 th:has-text("Expected regret") button')
    ids = page.eval_on_selector_all(
        "#runs-0 tbody tr", "nodes => nodes.map((n) => n.cells[n.cells.length - 1].innerText)"
    )
    assert ids == [r["run_id"] for r in sorted(told, key=lambda r: -r["expected_regret"])]
    page.locator("#runs-0 tbody tr a").nth(2).click()
    page.wait_for_selector("#env-0 .chart[data-chart=optimism][data-drawn]")
    page.wait_for_selector(f"#episodes-0:has-text('{ids[2]}')")
    traces = page.evaluate("document.querySelector('#env-0 .chart[data-chart=optimism]').data.length")
    assert traces == 2  # a band and a line
    assert page.evaluate("location.hash") == f"#run-{ids[2]}"
    assert page.locator("#episode-table-0 tbody tr").count() > 5
    page.click("#episodes-0 button")
    assert page.evaluate("document.querySelector('#env-0 .chart[data-chart=optimism]').data.length") == 8


@pytest.mark.slow
def test_a_chart_is_saved_as_a_picture_with_a_legend(file: Path, look: Look) -> None:
    page = look(file).page
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    with page.expect_download() as download:
        page.locator('#env-0 .chart[data-chart=regret] .modebar-btn[data-title^="Save"]').click(force=True)
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "UCRL2B" in text
