"""The exact numbers on the pages of the worked problems, recomputed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gainful.problems import CallCentre, Maintenance, Problem, Stockroom, TwoServers

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES: dict[str, Problem] = {
    "call_centre": CallCentre(),
    "stockroom": Stockroom(),
    "maintenance": Maintenance(),
    "two_servers": TwoServers(),
}

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "KL-SCAL+": ("kl-scal-plus", {}),
    "PSRL, no guarantee": ("psrl", {}),
    "KL-UCRL, told the horizon": ("kl-ucrl", {"horizon": 10**6}),
    "SCAL+, the paper's constants": ("scal-plus", {}),
    "SCAL+, sharp constants": ("scal-plus", {"bonus": "sharp"}),
    "SCAL+, bonus × 0.01, no guarantee": ("scal-plus", {"bonus_scale": 0.01}),
}


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


@pytest.mark.parametrize("page", PAGES)
def test_optimum_span_and_c_are_those_of_the_problem(page: str) -> None:
    problem, text = PAGES[page], (DOCS / "problems" / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(r"^Optimum: \*\*(\S+)\*\* euros per day\. sp\(h\*\) = (\S+), c = (\S+), (\S+) times", text, re.M)
    assert found is not None
    best, span, c, ratio = (number(x) for x in found.groups())
    assert best == pytest.approx(problem.best_money_per_day, rel=0, abs=0.00501)
    assert span == pytest.approx(problem.optimum.span, rel=0, abs=0.0501)
    assert c == pytest.approx(problem.c, rel=0, abs=0.0501)
    assert ratio == pytest.approx(problem.c / problem.optimum.span, rel=0, abs=0.00501)


@pytest.mark.parametrize("page", PAGES)
def test_the_rules_of_thumb_earn_what_the_page_says(page: str) -> None:
    problem, text = PAGES[page], (DOCS / "problems" / f"{page}.md").read_text(encoding="utf-8")
    text = text.replace("\u00a0", " ")  # which keeps a number and its unit on one line
    rows = re.findall(r"^\| ([A-G]) \| (.+?) \| (\S+) \| (\S+) \((\S+) %\) \|$", text, re.M)
    assert [name for _, name, *_ in rows] == [rule.name for rule in problem.rules]
    for rule, (_, _, money, short, per_cent) in zip(problem.rules, rows, strict=True):
        missing = problem.best_money_per_day - rule.money_per_day
        assert number(money) == pytest.approx(rule.money_per_day, rel=0, abs=0.00501)
        assert number(short) == pytest.approx(missing, rel=0, abs=0.00501)
        assert number(per_cent) == pytest.approx(100 * missing / abs(problem.best_money_per_day), rel=0, abs=0.0501)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_its_picture_and_is_in_the_index(page: str) -> None:
    text = (DOCS / "problems" / f"{page}.md").read_text(encoding="utf-8")
    assert f"../images/problem_{page}.png" in text
    assert (DOCS / "images" / f"problem_{page}.png").stat().st_size > 10_000
    index = (DOCS / "problems" / "index.md").read_text(encoding="utf-8")
    assert f"({page}.md)" in index
    assert re.search(rf"^{page}$", index, re.M)


@pytest.mark.parametrize("page", PAGES)
def test_a_learner_without_a_guarantee_is_marked(page: str) -> None:
    problem, text = PAGES[page], (DOCS / "problems" / f"{page}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:KL-)?SCAL\+.*?|PSRL.*?|KL-UCRL.*?) \|", text, re.M)
    assert len(rows) == 2 * len(LEARNERS)
    for row in rows:
        name, settings = LEARNERS[row]
        assert problem.learner(name, **settings).guarantee.holds == (not row.endswith("no guarantee"))
