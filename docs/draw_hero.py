"""The picture docs/images/hero.png of the README, from the runs of `gainful run quickstart` in results/quickstart.

The site shows hero_narrow.png, the same panels below each other, on a phone.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
from PIL import Image

import gainful as gf

IMAGES = Path(__file__).parent / "images"
FIRST_STEP = 100
"""Up to it, the learners hardly differ."""
WORDS = {
    "KL-SCAL+": "KL-SCAL+",
    "PSRL": "PSRL, which has no theorem",
    "UCRL2B": "UCRL2B",
    "SCAL+, sharp bonus": "SCAL+, sharp constants",
    "SCAL+, the paper's bonus": "SCAL+, its paper's constants",
}
"""The names in the picture, the flagship first."""


def curves(folder: Path) -> pd.DataFrame:
    """The runs from the step on at which the learners differ, the flagship first."""
    runs = gf.results(folder)
    shown = runs[runs["step"] >= FIRST_STEP].assign(agent=runs["agent"].astype(str).map(WORDS))
    order = {name: i for i, name in enumerate(WORDS.values())}
    return shown.sort_values("agent", key=lambda names: names.map(order), kind="stable")


def hero(shown: pd.DataFrame) -> None:
    """Two panels of expected regret under a heading."""
    figure = gf.plot.regret(shown, width="page")
    for ax in figure.axes:
        ax.lines[0].set_linewidth(2.8)  # the flagship
    width, height = figure.get_size_inches()
    more = 0.44
    figure.set_size_inches(width, height + more)
    for ax in figure.axes:
        box = ax.get_position()
        scale = height / (height + more)
        ax.set_position((box.x0, box.y0 * scale, box.width, box.height * scale))
    figure.text(0.012, 0.985, "What learning costs: lower is better", fontsize=11.5, weight="bold", va="top")
    words = "Reward lost by not knowing the best policy from the start. A flat curve has learned it."
    words += " Four of five have a theorem."
    figure.text(0.012, 0.985 - 0.2 / (height + more), words, fontsize=8, color="#555555", va="top")
    figure.savefig(IMAGES / "hero.png", dpi=220, facecolor="white")


def narrow(shown: pd.DataFrame) -> None:
    """The panels below each other, in the width of a column."""
    panels = []
    for environment in shown["environment"].astype(str).unique():
        figure = gf.plot.regret(shown, environment=environment, width="column")
        figure.axes[0].lines[0].set_linewidth(2.8)
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=220, facecolor="white", format="png")
        panels.append(Image.open(drawn))
    width = max(panel.width for panel in panels)
    whole = Image.new("RGB", (width, sum(panel.height for panel in panels)), "white")
    top = 0
    for panel in panels:
        whole.paste(panel, (0, top))
        top += panel.height
    whole.save(IMAGES / "hero_narrow.png", optimize=True)


if __name__ == "__main__":
    learners = curves(Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart"))
    hero(learners)
    narrow(learners)
