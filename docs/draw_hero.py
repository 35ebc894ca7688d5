"""The picture docs/images/hero.png of the README, from the runs of `gainful run quickstart` in results/quickstart."""

from __future__ import annotations

import sys
from pathlib import Path

import gainful as gf

IMAGE = Path(__file__).parent / "images" / "hero.png"
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


def hero(folder: Path) -> None:
    """Two panels of expected regret, from the step on at which the learners differ, under a heading."""
    runs = gf.results(folder)
    shown = runs[runs["step"] >= FIRST_STEP].assign(agent=runs["agent"].astype(str).map(WORDS))
    order = {name: i for i, name in enumerate(WORDS.values())}
    shown = shown.sort_values("agent", key=lambda names: names.map(order), kind="stable")
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
    figure.savefig(IMAGE, dpi=220, facecolor="white")


if __name__ == "__main__":
    hero(Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart"))
