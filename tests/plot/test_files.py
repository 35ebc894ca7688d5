"""Figures of an experiment, and the promises of the package as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful import plot

pytest.importorskip("matplotlib")

SPEC = """
title = "small"
horizon = 300
seeds = 2

[[environments]]
name = "riverswim"
label = "a_$b \\\\ <c>"

[[environments]]
name = "toy3d"
label = "A $B <C>"

[[agents]]
name = "psrl"

[[agents]]
name = "ucrl2b"
label = "$UCRL_"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("figures")
    (place / "spec.toml").write_text(SPEC, encoding="utf-8")
    outcome = gf.run_experiment(place / "spec.toml", place / "out", jobs=1)
    assert outcome.complete
    return outcome.folder


@pytest.mark.slow
def test_every_environment_and_all_together_in_every_format(folder: Path, tmp_path: Path) -> None:
    paths = plot.figures(folder, tmp_path / "made")
    stems = ["regret", "regret-a-b-c", "regret-a-b-c-2"]
    assert [p.name for p in paths] == [f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png", "svg")]
    starts = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for path in paths:
        assert path.read_bytes().startswith(starts[path.suffix[1:]])


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first, second = (plot.figures(folder, tmp_path / name) for name in "ab")
    assert [a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True)] == [True] * 9


def test_a_folder_is_drawn_as_its_table(folder: Path) -> None:
    one, other = plot.regret(folder), plot.regret(gf.results(folder))
    assert [len(ax.lines) for ax in one.axes] == [2, 2]
    for a, b in zip(one.axes, other.axes, strict=True):
        assert [line.get_ydata().tolist() for line in a.lines] == [line.get_ydata().tolist() for line in b.lines]  # type: ignore[union-attr]


@pytest.mark.parametrize("formats", [("pdf", "doc"), (), (".png",)])
def test_unknown_formats_are_refused(folder: Path, tmp_path: Path, formats: Any) -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match=r"expected at least one of .*pdf.*without a dot"):
        plot.figures(folder, tmp_path, formats)


def test_a_place_that_cannot_be_written_is_an_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(gf.errors.InvalidArgumentError, match="cannot be created"):
        plot.figures(folder, tmp_path / "file" / "below")


@pytest.mark.slow
def test_pyplot_and_global_settings_are_left_alone() -> None:
    code = """
import sys
import gainful
assert not {"matplotlib", "plotly", "pandas"} & set(sys.modules), "import gainful"
from gainful import plot
assert not {"matplotlib", "plotly", "pandas"} & set(sys.modules), "import gainful.plot"
import matplotlib
before = matplotlib.rcParams.copy()  # dict() would resolve the backend, and import pyplot
mdp = gainful.environments.riverswim(6)
plan = gainful.solve(mdp)
run = gainful.simulate(gainful.PSRL(6, 2), mdp, 1000)
for figure in (plot.mdp(mdp, plan), plot.regret(run), plot.episodes(run),
               plot.partition(gainful.Partition.uniform(bins=3))):
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure._repr_png_().startswith(b"\\x89PNG")
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams.copy() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_without_matplotlib_one_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    calls: list[Any] = [
        lambda: plot.regret(tmp_path),
        lambda: plot.mdp(gf.environments.toy3d()),
        lambda: plot.partition(gf.Partition.uniform()),
        lambda: plot.episodes(None),
        lambda: plot.figures(tmp_path, tmp_path),
    ]
    for call in calls:
        with pytest.raises(gf.errors.InvalidArgumentError, match=r"pip install 'gainful\[figures\]'"):
            call()
