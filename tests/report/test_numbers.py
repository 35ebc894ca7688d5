"""The numbers of the page and of --json against plain NumPy on gf.results."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gainful.errors import ExperimentError, StoreError
from gainful.experiments.results import results
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.sweep import run_experiment
from gainful.experiments.wire_format import pack, unpack
from gainful.report.collect import collect
from gainful.report.drawing import drawing_of
from gainful.report.page import save_page
from gainful.report.tables import headline
from tests.experiments.sweeps import edited
from tests.report.conftest import RIVER, Look, Reporter


def recomputed(folder: Path, environment: str, agent: str) -> dict[str, float]:
    """The headline numbers from the tidy table, with nothing of gainful.experiments.aggregates."""
    frame = results(folder)
    frame = frame[(frame.environment == environment) & (frame.agent == agent)]
    y = frame.pivot(index="seed", columns="step", values="expected_regret")
    steps, runs = y.columns.to_numpy(dtype=float), y.to_numpy()
    final, n = runs[:, -1], len(runs)
    half = stats.t.ppf(0.975, n - 1) * final.std(ddof=1) / np.sqrt(n)
    one = frame.drop_duplicates("run_id")
    found = {
        "runs": n,
        "final_step": steps[-1],
        "expected_regret_mean": final.mean(),
        "expected_regret_mean_low": final.mean() - half,
        "expected_regret_mean_high": final.mean() + half,
        "expected_regret_median": np.median(final),
        "expected_regret_per_step": final.mean() / steps[-1],
        "pseudo_regret_mean": frame[frame.step == steps[-1]].pseudo_regret.mean(),
        "planning_share": (one.planning_seconds / (one.planning_seconds + one.acting_seconds)).mean(),
        "episodes": one.episodes.mean(),
        "planning_seconds": one.planning_seconds.mean(),
        "acting_seconds": one.acting_seconds.mean(),
    }
    window = steps >= steps[-1] / 10
    if (runs[:, window] > 0).all():
        slopes = np.array([np.polyfit(np.log(steps[window]), np.log(run[window]), 1)[0] for run in runs])
        half = stats.t.ppf(0.975, n - 1) * slopes.std(ddof=1) / np.sqrt(n)
        found |= {
            "growth_exponent": slopes.mean(),
            "growth_low": slopes.mean() - half,
            "growth_high": slopes.mean() + half,
        }
    return found


@pytest.mark.parametrize("environment", [RIVER, "Toy3D"])
def test_page_and_json_agree_with_plain_numpy(
    environment: str, folder: Path, file: Path, look: Look, reporter: Reporter
) -> None:
    data = reporter(folder, "--json").data
    (told,) = (e for e in data["environments"] if e["environment"] == environment)
    number = data["environments"].index(told)
    page = look(file).page
    shown = page.eval_on_selector_all(
        f"#env-{number} table.sortable tbody tr",
        """rows => rows.map((row) => Object.fromEntries(Array.from(row.cells).map(
            (c) => [c.dataset.column, [c.dataset.value, c.innerText.trim()]])))""",
    )
    rows = {row["agent"]: row for row in told["rows"]}
    assert len(rows) == 4
    seen: dict[str, dict[str, Any]] = {}
    for row in shown:
        seen.setdefault(row["agent"][0], {}).update(row)
    for agent, row in rows.items():
        for key, value in recomputed(folder, environment, agent).items():
            assert row[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key
        cells = seen[agent]
        for key in (
            "runs",
            "expected_regret_mean",
            "expected_regret_per_step",
            "pseudo_regret_mean",
            "growth_exponent",
            "planning_share",
            "episodes",
            "planning_seconds",
            "acting_seconds",
            "sweeps_per_episode",
        ):
            value, text = cells[key]
            if row[key] is None:
                assert (value, text) in (("", "–"), ("", "unknown"))
                continue
            assert float(value) == row[key]  # the page holds the same number, to the bit
            assert close(text, row[key]), (key, text, row[key])
        low, high = (number_of(t) for t in cells["expected_regret_mean_low"][1].split(" … "))
        assert close_to(low, row["expected_regret_mean_low"])
        assert close_to(high, row["expected_regret_mean_high"])


def number_of(text: str) -> float:
    plain = text.replace("−", "-").replace(",", "")
    return float(plain.removesuffix(" %")) / (100 if text.endswith("%") else 1)


def close(text: str, value: float) -> bool:
    """Whether a text is the value, rounded to the digits it shows."""
    return abs(value) < 0.005 if text == "< 1 %" else close_to(number_of(text), value)


def close_to(shown: float, value: float) -> bool:
    return shown == pytest.approx(value, rel=0.06, abs=0.06)


def test_curves_in_json_are_those_of_the_results(folder: Path, reporter: Reporter) -> None:
    data = reporter(folder, "--json", "--curves").data
    frame = results(folder)
    for environment in data["environments"][:2]:
        for agent, measures in environment["curves"].items():
            part = frame[(frame.environment == environment["environment"]) & (frame.agent == agent)]
            for measure, curve in measures.items():
                y = part.pivot(index="seed", columns="step", values=measure)
                assert curve["step"] == y.columns.tolist()
                np.testing.assert_allclose(curve["mean"], y.mean(axis=0), rtol=1e-12, atol=1e-9)
                np.testing.assert_allclose(curve["low"], np.quantile(y, 0.25, axis=0), rtol=1e-12, atol=1e-9)
    assert "curves" not in reporter(folder, "--json").data["environments"][0]


def test_an_unknown_gain_is_unknown_everywhere(folder: Path, reporter: Reporter) -> None:
    ship = reporter(folder, "--json", "--curves").data["environments"][2]
    assert ship["gain"] is None
    (row,) = ship["rows"]
    assert row["pseudo_regret_mean"] is None
    assert row["growth_exponent"] is None
    final = results(folder).query("environment == 'Ship' and step == 500").reward
    assert row["reward_per_step"] == pytest.approx(final.mean() / 500, rel=1e-12, abs=0)
    assert list(ship["curves"][row["agent"]]) == ["reward"]
    columns = {c.head: c.texts for c in headline(collect(folder).environments[2])}
    assert columns["Pseudo-regret"] == ["unknown"]


def test_the_guarantee_is_marked(folder: Path) -> None:
    words = {g.agent: g.row["guarantee"] for g in collect(folder).environments[0].groups}
    assert list(words.values()) == ["yes, c from an oracle", "no guarantee", "no guarantee", "yes"]
    vacuous = [g.row["vacuous_runs"] for g in collect(folder).environments[0].groups]
    frame = results(folder).query("environment == @RIVER").drop_duplicates("run_id")
    assert vacuous == frame.groupby("agent", observed=True, sort=False).vacuous.sum().tolist()


def test_many_seeds_are_thinned_and_statistics_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = collect(folder)
    monkeypatch.setattr("gainful.report.collect.SHOWN_RUN_VALUES", 9 * 3 * 15)
    monkeypatch.setattr("gainful.report.collect.SHOWN_RUN_STEPS", 5)
    few = collect(folder)
    a, b = (r.environments[0].groups[0].curves["pseudo_regret"] for r in (whole, few))
    assert a.runs.shape == (3, a.steps.size)
    assert b.runs.shape == (3, 5)
    assert b.seed_steps[-1] == 5000
    np.testing.assert_array_equal(a.statistics["mean"], b.statistics["mean"])
    np.testing.assert_array_equal(a.runs[:, np.isin(a.seed_steps, b.seed_steps)], b.runs)


# ---------------------------------------------------------------------- stores of another kind


def test_an_experiment_without_a_finished_run_says_so(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    with sqlite3.connect(tmp_path / "copy" / STORE_FILE) as store:
        store.execute("DELETE FROM runs")
    with pytest.raises(ExperimentError, match=r"no run has finished \(27 planned\)"):
        collect(tmp_path / "copy")


def test_a_damaged_run_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    with sqlite3.connect(tmp_path / "copy" / STORE_FILE) as store:
        store.execute("UPDATE runs SET data = x'00' WHERE rowid = (SELECT min(rowid) FROM runs)")
    with pytest.raises(StoreError, match=r"run .* is damaged"):
        collect(tmp_path / "copy")


def test_two_horizons_of_one_label_are_two_lines(tmp_path: Path) -> None:
    text = 'horizon = 500\nseeds = 2\n[[environments]]\nname = "toy3d"\n[[agents]]\nname = "psrl"\nlabel = "P"\n'
    run_experiment(text, tmp_path / "out", jobs=1)
    more = text + '[[agents]]\nname = "psrl"\nlabel = "Q"\nhorizon = 800\n'
    run_experiment(more, tmp_path / "out", jobs=1)
    with edited(tmp_path / "out") as store:
        store.execute("UPDATE configurations SET agent_label = 'P'")
    (environment,) = collect(tmp_path / "out").environments
    assert [g.agent for g in environment.groups] == ["P (T = 500)", "P (T = 800)"]
    assert [g.row["final_step"] for g in environment.groups] == [500, 800]
    assert "Steps" in [c.head for c in headline(environment)]


def test_runs_without_plans_or_episodes_still_make_a_page(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    with Store.read(tmp_path / "copy") as opened:
        rows = [(*unpack(row["data"]), row["run_id"]) for row in opened.runs()]
    with edited(tmp_path / "copy") as store:
        for values, arrays, run_id in rows:
            kept = {name: arrays[name] for name in ("steps", "rewards", "pseudo_regret")}
            store.execute("UPDATE runs SET data = ? WHERE run_id = ?", (pack(values, kept), run_id))
    found = collect(tmp_path / "copy")
    group = found.environments[0].groups[0]
    assert (group.optimism, group.bonus, group.last_plan) == ({}, {}, {})
    assert group.row["sweeps_per_episode"] is None
    from gainful.report.page import page

    text = page(found)
    for reason in ("No run stored the gain", "No agent here stores a bonus", "no run stored its last plan"):
        assert reason in text


def test_a_gain_that_no_plan_computed_is_not_drawn(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    with Store.read(tmp_path / "copy") as opened:
        rows = [(*unpack(row["data"]), row["run_id"]) for row in opened.runs()]
    assert all(group.optimism for group in collect(folder).environments[0].groups)
    with edited(tmp_path / "copy") as store:
        for values, arrays, run_id in rows:
            made = {**arrays, "episode_sweeps": 0 * arrays["episode_sweeps"]}
            store.execute("UPDATE runs SET data = ? WHERE run_id = ?", (pack(values, made), run_id))
    assert not any(group.optimism for group in collect(tmp_path / "copy").environments[0].groups)


def without_expected_regret(folder: Path, seeds: tuple[int, ...]) -> None:
    """Make the runs of these seeds what earlier versions stored."""
    with Store.read(folder) as opened:
        rows = [(*unpack(row["data"]), row["run_id"]) for row in opened.runs() if row["seed"] in seeds]
    with edited(folder) as store:
        for values, arrays, run_id in rows:
            kept = {name: array for name, array in arrays.items() if name != "expected_regret"}
            store.execute("UPDATE runs SET data = ? WHERE run_id = ?", (pack(values, kept), run_id))


@pytest.mark.parametrize(("seeds", "told"), [((1,), "4 of 12 runs (SCAL+"), ((0, 1, 2), "12 of 12 runs, which")])
def test_runs_stored_before_expected_regret_existed_show_pseudo_regret_and_say_so(
    seeds: tuple[int, ...], told: str, folder: Path, tmp_path: Path, look: Look, reporter: Reporter
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    without_expected_regret(tmp_path / "copy", seeds)
    found = collect(tmp_path / "copy")
    river = found.environments[0]
    assert river.measure == "pseudo_regret"
    assert "expected_regret_mean" not in [c.key for c in headline(river)]
    assert [g.row["runs_without_expected_regret"] for g in river.groups] == [len(seeds)] * 4
    words = reporter(tmp_path / "copy", "--markdown").out.replace("\\", "")
    assert f"The regret shown is pseudo-regret: expected regret is unknown for {told}" in words
    sight = look(save_page(found, tmp_path / "page.html"))
    sight.draw_all()
    (said,) = (t for t in sight.page.locator("#env-0 .caption").all_inner_texts() if "expected regret" in t)
    assert said.startswith(f"The regret shown is pseudo-regret: expected regret is unknown for {told}")
    assert said.endswith("which were stored before gainful computed it.")
    title = "() => document.querySelector('.chart[data-chart=regret]')._fullLayout.yaxis.title.text"
    assert sight.page.evaluate(title) == "pseudo-regret"
    assert sight.page.locator(".tools button[data-value=expected_regret]").count() == 0


# ---------------------------------------------------------------------- drawings


@pytest.mark.parametrize(
    ("name", "parameters", "n_states", "shape"),
    [
        ("riverswim", {}, 6, "chain"),
        ("toy3d", {}, 3, "circle"),
        ("four-rooms", {"size": 7}, 40, "grid"),
        ("garnet", {"n_states": 50, "n_actions": 4, "branching": 40}, 50, ""),
    ],
)
def test_a_small_problem_gets_the_shape_it_has(
    name: str, parameters: dict[str, Any], n_states: int, shape: str
) -> None:
    drawing, reason = drawing_of(name, parameters, n_states)
    assert drawing is not None
    assert reason == ""
    assert drawing.shape == shape
    assert len(drawing.positions) == (n_states if shape else 0)


@pytest.mark.parametrize(
    ("name", "parameters", "n_states", "reason"),
    [
        ("lqg", {}, 10, "states are points"),
        ("riverswim", {"n_states": 61}, 61, "61 states"),
        ("no-such-thing", {}, 3, "could not be created again"),
        ("riverswim", {"bogus": 1}, 6, "could not be created again"),
        ("riverswim", {"n_states": 7}, 6, "now has 7 states"),
    ],
)
def test_what_cannot_be_drawn_says_why(name: str, parameters: dict[str, Any], n_states: int, reason: str) -> None:
    drawing, found = drawing_of(name, parameters, n_states)
    assert drawing is None
    assert reason in found
