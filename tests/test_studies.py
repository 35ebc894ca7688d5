"""The studies of the paper's claims: specs that can be run, pages with their pictures, and the whole way once."""

from __future__ import annotations

import importlib
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.experiments.run_statistics import Interval
from gainful.experiments.spec import read_spec
from studies import STUDIES
from studies.lifted_garnet import lifted_garnet
from studies.make import INDEX_MARK, MARKS, PAGES, Study, between, make, smaller
from studies.study import decide, power, ratio_of

WORDS = ("holds", "does not hold with these constants", "not decided")


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_of_a_study_is_whole(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text("utf-8")
    assert all(between(page, mark) for mark in MARKS)
    assert f"]({name}.png)" in text
    assert (PAGES / f"{name}.png").stat().st_size < 300_000
    verdicts = re.findall(r"^- .+?: \*\*(.+?)\*\*\. .+", between(page, "verdict"), flags=re.MULTILINE)
    assert verdicts
    assert set(verdicts) <= set(WORDS)
    for spec in Study(name).specs:
        assert f"studies/specs/{name}/{spec.name}" in text
    for heading in ("The claim", "What was predicted", "What was seen", "Reproduce it"):
        assert f"\n## {heading}\n" in text


def test_the_index_has_every_study_with_its_verdicts() -> None:
    text = (PAGES / "index.md").read_text("utf-8")
    for name in STUDIES:
        assert f"]({name}.md)" in between(PAGES / "index.md", INDEX_MARK)
        assert f"\n{name}\n" in text.split("{toctree}")[1]
        for line in between(PAGES / f"{name}.md", "verdict").splitlines():
            assert line.split("**. ")[0] + "**" in text


@pytest.mark.parametrize(
    "spec", [spec for name in STUDIES for spec in Study(name).specs], ids=lambda spec: f"{spec.parent.name}-{spec.stem}"
)
def test_a_spec_can_be_run(spec: Path) -> None:
    assert read_spec(spec).title


def test_there_is_no_study_without_specs() -> None:
    assert all(Study(name).specs for name in STUDIES)


def test_a_smaller_spec_asks_for_less() -> None:
    text = 'horizon = 1e6\nseeds = [3, 4, 5]\n[[environments]]\nname = "riverswim"\nhorizon = 1_000\n'
    assert smaller(text) == 'horizon = 3000\nseeds = 2\n[[environments]]\nname = "riverswim"\nhorizon = 1000\n'


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.2, 0.4, WORDS[0]), (0.6, 0.7, WORDS[1]), (0.4, 0.6, WORDS[2]), (0.0, 0.5, WORDS[0])]
)
def test_a_verdict_needs_the_whole_interval(low: float, high: float, word: str) -> None:
    assert decide("", Interval((low + high) / 2, low, high), (-1.0, 0.5), "").word == word


def test_exponents_and_ratios_are_those_of_exact_laws() -> None:
    rows = [
        {"instance": i, "x": x, "agent": agent, "expected_regret": (1 + i) * factor * x**1.5}
        for i in range(3)
        for x in (1, 2, 4)
        for agent, factor in (("a", 1.0), ("b", 4.0))
    ]
    frame = pd.DataFrame(rows)
    found = power(frame[frame["agent"] == "a"], "x", "instance")
    assert (found.estimate, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5), rel=0, abs=1e-12)
    assert ratio_of(frame, {"agent": "b"}, {"agent": "a"}, "instance").estimate == pytest.approx(4.0, rel=1e-12, abs=0)


def test_copies_twins_and_spread_change_nothing_but_the_sizes() -> None:
    small, large = lifted_garnet(instance=3), lifted_garnet(4, 3, 2, instance=3)
    assert (large.n_states, large.n_actions) == (20, 6)
    assert np.diff(large.indptr).max() == 4
    a, b = gf.solve(small), gf.solve(large)
    assert (b.gain, b.span) == pytest.approx((a.gain, a.span), rel=0, abs=1e-8)


def test_a_smaller_spec_keeps_different_horizons_different() -> None:
    assert (
        smaller("horizon = 1e5\n\nhorizon = 1e4\nhorizon = 1e5\n")
        == "horizon = 6000\n\nhorizon = 3000\nhorizon = 6000\n"
    )


@pytest.mark.slow
def test_the_agent_of_smooth_laws_is_scal_plus_without_smoothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Study("smooth_laws").specs[0].parent))
    made, env = importlib.import_module("kernel_density").KernelScalPlus, gf.environments.lqg()
    runs = []
    for core, options in ((gf.SCALPlus, {}), (made, {}), (made, {"smoothing": 0.4})):
        agent = gf.Discretized(core, gf.Partition.uniform(bins=10), n_actions=5, span=1.32, **options)
        runs.append(gf.simulate(agent, env, 3000, seed=1, gain=0.0).rewards)
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.slow
def test_a_small_study_goes_from_its_specs_to_its_page(tmp_path: Path) -> None:
    pages = tmp_path / "claims"
    shutil.copytree(PAGES, pages)
    (pages / "unreachable.png").unlink()
    make(["unreachable"], tmp_path / "results", pages, ["--jobs", "1"], stored=False, small=True)
    assert "3·10³" in between(pages / "unreachable.md", "runs")
    assert (pages / "unreachable.png").exists()
    before = (pages / "unreachable.md").read_text("utf-8")
    make(["unreachable"], tmp_path / "results", pages, [], stored=True, small=True)
    assert (pages / "unreachable.md").read_text("utf-8") == before
