"""The picture of docs/gpu.md, from the histograms that `python benchmarks/gpu.py million` wrote on an H200."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Draw the distributions of regret at five steps."""
    mpl.use("Agg")
    rows = defaultdict(list)
    with (IMAGES / "regret_of_a_million_runs.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[int(row["steps"])].append((float(row["from"]), float(row["to"]), int(row["runs"])))
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    colours = plt.get_cmap("viridis")
    for i, (step, bins) in enumerate(sorted(rows.items())):
        edges = [bins[0][0], *(high for _, high, _ in bins)]
        exponent = len(str(step)) - 1
        runs = [n for *_, n in bins]
        axes.stairs(runs, edges, fill=True, color=colours(i / 5), alpha=0.8, label=f"after $10^{exponent}$ steps")
    axes.set(xscale="log", yscale="log", ylim=(0.7, None), xlabel="expected regret", ylabel="runs in a bin of 2.2 %")
    axes.legend(loc=(0.12, 0.5), fontsize="small")
    figure.savefig(IMAGES / "regret_of_a_million_runs.png", dpi=110)


if __name__ == "__main__":
    main()
