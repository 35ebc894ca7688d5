"""Figures of a given width: their size, text that does not touch, fonts; final regrets and profiles."""

from __future__ import annotations

import io
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful import plot
from gainful.plot.palette import DARK_SERIES_COLOURS, SERIES_COLOURS
from tests.plot.test_curves import frame_of

pytest.importorskip("matplotlib")

NAMES = ["SCAL+, the paper's bonus", "SCAL+, sharp bonus", "KL-SCAL+", "UCRL2B", "PSRL"]
WIDTHS = {"column": 3.25, "page": 6.75, "slide": 12.0}


def named(environments: tuple[str, ...] = ("RiverSwim",)) -> Any:
    frame = frame_of(environments, agents=5)
    return frame.replace({"agent": {f"agent {i}": name for i, name in enumerate(NAMES)}})


def boxes_of(figure: Any) -> list[tuple[str, Any]]:
    """The boxes of all texts that are shown, without leaders."""
    from matplotlib.text import Text

    figure.canvas.draw()
    beyond = set()  # labels of ticks outside the axes, which are not drawn
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        beyond |= {tick.label1 for tick in ticks if not low * 0.999 <= tick.get_loc() <= high * 1.001}
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in beyond]
    return [(t.get_text(), Text.get_window_extent(t)) for t in texts]


ONE, TWO = ("RiverSwim",), ("RiverSwim", "four rooms")


@pytest.mark.parametrize(
    ("width", "environments"),
    [
        pytest.param("column", ONE, id="column-one"),
        pytest.param("page", TWO, id="page-two"),
        pytest.param("slide", ONE, id="slide-one", marks=pytest.mark.slow),
        pytest.param("page", ONE, id="page-one", marks=pytest.mark.slow),
        pytest.param("column", TWO, id="column-two", marks=pytest.mark.slow),
        pytest.param("slide", TWO, id="slide-two", marks=pytest.mark.slow),
    ],
)
def test_a_width_is_kept_and_no_text_touches_another_or_the_edge(width: Any, environments: tuple[str, ...]) -> None:
    figure = plot.regret(named(environments), width=width)
    assert figure.get_size_inches()[0] == WIDTHS[width]
    found = boxes_of(figure)
    assert set(NAMES) <= {text.replace("\n", " ") for text, _ in found}
    for (one, a), (other, b) in combinations(found, 2):
        apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, (one, other)
    wide, tall = figure.get_size_inches() * figure.dpi
    for text, box in found:
        assert min(box.x0, box.y0) >= -1, text
        assert (box.x1 <= wide + 1, box.y1 <= tall + 1) == (True, True), text
    for ax in figure.axes:
        assert float(ax.xaxis.label.get_fontsize()) > float(ax.get_xticklabels()[0].get_fontsize())


def test_a_pdf_holds_text_in_embedded_truetype_fonts() -> None:
    written = io.BytesIO()
    plot.regret(named(), width="column").savefig(written, format="pdf")
    found = written.getvalue()
    assert b"/FontFile2" in found
    assert b"/CIDFontType2" in found
    assert b"/Type3" not in found
    assert b"/Subtype /Image" not in found  # lines and bands are vectors


def test_a_width_that_is_none_or_has_no_room_is_refused() -> None:
    from matplotlib.figure import Figure

    with pytest.raises(gf.errors.InvalidArgumentError, match="width is 'poster', expected one of column, page, slide"):
        plot.regret(named(), width="poster")  # type: ignore[arg-type]
    with pytest.raises(gf.errors.InvalidArgumentError, match="width is given, and ax has its own"):
        plot.regret(named(), width="page", ax=Figure().subplots())


def test_a_band_that_reaches_zero_is_one_piece() -> None:
    frame = named()
    frame["pseudo_regret"] = np.where(frame.seed % 2 == 0, 0.0, frame.pseudo_regret)
    ax = plot.regret(frame).axes[0]
    assert [len(band.get_paths()) for band in ax.collections] == [1] * 5
    assert ax.get_ylim()[0] > 0.0


def test_the_distribution_has_every_run_the_best_agent_first() -> None:
    frame = named()
    ax = plot.distribution(frame, width="column").axes[0]
    final = frame[frame.step == 1000]
    means = final.groupby("agent").pseudo_regret.mean().sort_values()
    assert [t.get_text() for t in ax.get_yticklabels()] == list(means.index)
    for dots, agent in zip(ax.collections, means.index, strict=True):
        assert sorted(np.asarray(dots.get_offsets())[:, 0]) == sorted(final[final.agent == agent].pseudo_regret)
    with pytest.raises(gf.errors.InvalidArgumentError, match="choose one: 'E', 'F'"):
        plot.distribution(frame_of(("E", "F")))
    with pytest.raises(gf.errors.InvalidArgumentError, match="did you mean 'river'"):
        plot.distribution(frame_of(("river",)), environment="rivr")


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-4])
def test_the_numbers_of_a_short_logarithmic_axis_do_not_touch(scale: float) -> None:
    frame = frame_of(("E",))
    final = frame[frame.step == 1000]
    middle = final.agent.map({"agent 0": 200.0, "agent 1": 500.0, "agent 2": 4000.0})
    final = final.assign(pseudo_regret=scale * middle * (1.0 + 0.01 * final.seed))
    figure = plot.distribution(final, width="column")
    below = [box for text, box in boxes_of(figure) if any(c.isdigit() for c in text) and "agent" not in text]
    assert len(below) >= 2
    assert all(a.x1 < b.x0 or b.x1 < a.x0 for a, b in combinations(below, 2))


def test_a_profile_begins_with_the_share_of_wins_and_ends_at_one() -> None:
    figure = plot.profile(frame_of(("E", "F"), runs=5))
    ends = [np.asarray(line.get_ydata(), dtype=float)[[0, -1]] for line in figure.axes[0].lines]
    assert sum(first for first, _ in ends) == pytest.approx(1.0, abs=1e-12)
    assert [last for _, last in ends] == [1.0, 1.0, 1.0]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["agent 0", "agent 1", "agent 2"]
    with pytest.raises(gf.errors.InvalidArgumentError, match="no two agents share a problem"):
        plot.profile(frame_of(agents=1))
    with pytest.raises(gf.errors.InvalidArgumentError, match="less is better"):
        plot.profile(frame_of(), value="reward")


# Machado, Oliveira and Fernandes (2009): what full protanopia and deuteranopia make of linear RGB
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


@pytest.mark.parametrize("blindness", list(BLINDNESS))
@pytest.mark.parametrize("colours", [SERIES_COLOURS, DARK_SERIES_COLOURS], ids=["light", "dark"])
def test_colours_stay_apart_for_colour_blind_readers(blindness: str, colours: tuple[str, ...]) -> None:
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(BLINDNESS[blindness]).T, 0.0, 1.0)
    xyz = seen @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    lab = np.stack([116 * f[:, 1], 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    # 2.3 is a just noticeable difference in CIELAB
    assert min(np.linalg.norm(a - b) for a, b in combinations(lab, 2)) > 4 * 2.3
