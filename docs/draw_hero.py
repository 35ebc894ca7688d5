"""The picture docs/images/hero.png of the README, from the runs of `gainful run quickstart` in results/quickstart."""

from __future__ import annotations

import sys
from pathlib import Path

import gainful as gf

IMAGE = Path(__file__).parent / "images" / "hero.png"
FIRST_STEP = 100
"""Up to it, the learners hardly differ."""


def hero(folder: Path) -> None:
    """Two panels of expected regret, from the step on at which the learners differ."""
    runs = gf.results(folder)
    figure = gf.plot.regret(runs[runs["step"] >= FIRST_STEP])
    figure.savefig(IMAGE, dpi=180, facecolor="white", bbox_inches="tight", pad_inches=0.1)


if __name__ == "__main__":
    hero(Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart"))
