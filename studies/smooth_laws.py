"""Smooth transitions: a kernel density estimate in place of the histogram of next cells.

The paper's closing remark on Lakshmanan, Ortner & Ryabko (2015), tried with an agent that is not part of the library.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from gainful.experiments.run_statistics import Interval
from studies.study import (
    Findings,
    StudyRuns,
    Verdict,
    decide,
    draw_points,
    exponential,
    interval,
    mean_of,
    panels,
    shown,
    table,
)

REGRET = "pseudo_regret"
KINDS = {
    ("appendix", 1.0): "the paper's bonus",
    ("sharp", 1.0): "the sharp bonus",
    ("appendix", 0.1): "a tenth of the paper's",
}
GOOD = 0.13
"""The bandwidth that fits the noise."""
LITTLE = (0.9, 1.1)


def findings(runs: StudyRuns) -> Findings:
    """Regret with and without smoothing, for three bonuses and two numbers of cells."""
    frame = with_settings(runs.finals("lqg"))
    bins, widths = sorted(set(frame["bins"])), sorted(set(frame["smoothing"]))
    rows, verdicts = [], []
    figure, axes = panels([f"{n} cells" for n in bins], below=["LQG; left: the histogram of C-SCAL+"] * len(bins))
    for ax, n in zip(axes, bins, strict=True):
        for i, (kind, title) in enumerate(KINDS.items()):
            here = of_kind(frame, kind, n)
            found = [mean_of(here, REGRET, smoothing=width) for width in widths]
            ratios = [ratio(here, width) for width in widths[1:]]
            rows.append([n, title, *found, *ratios])
            draw_points(ax, list(range(len(widths))), found, i, title)
            verdicts.append(verdict(n, title, ratios[widths[1:].index(GOOD)]))
        ax.set(yscale="log", ylabel="pseudo-regret", xlabel="bandwidth s of s·N^(-1/5)")
        ax.set_ylim(frame[REGRET].min() / 1.5, frame[REGRET].max() * 5)
        ax.set_xticks(range(len(widths)), ["none", *(f"{width:g}" for width in widths[1:])])
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    heads = ["cells", "bonus", *(f"s = {width:g}" for width in widths), *(f"s = {w:g} / s = 0" for w in widths[1:])]
    return Findings(verdicts, table(heads, rows, left=2), figure)


def with_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of what the agent was given."""
    given: list[dict[str, Any]] = [json.loads(str(text))["agent"] for text in frame["parameters"]]
    names = {"bins": 1, "smoothing": 0.0, "bonus": "appendix", "bonus_scale": 1.0}
    return frame.assign(**{name: [one.get(name, default) for one in given] for name, default in names.items()})


def of_kind(frame: pd.DataFrame, kind: tuple[str, float], bins: int) -> pd.DataFrame:
    """The runs with this bonus and number of cells."""
    bonus, scale = kind
    return frame[(frame["bonus"] == bonus) & (frame["bonus_scale"] == scale) & (frame["bins"] == bins)]


def ratio(frame: pd.DataFrame, width: float) -> Interval:
    """The regret with smoothing over that without, seed by seed."""
    smooth, plain = (frame[frame["smoothing"] == w].groupby("seed", observed=True)[REGRET].mean() for w in (width, 0.0))
    return exponential(interval(np.log(smooth.to_numpy()) - np.log(plain.to_numpy())))


def verdict(bins: int, title: str, found: Interval) -> Verdict:
    """Whether smoothing changes little."""
    claim = f"{bins} cells, {title}: smoothing changes the regret by less than a tenth"
    return decide(claim, found, LITTLE, f"It multiplies it by {shown(found)}.")
