"""The pictures of docs/gpu.md, from what `python benchmarks/gpu.py million speed` wrote on an H200."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent / "images"
MEASURED = Path(__file__).parent.parent / "benchmarks" / "measured"


def draw_speed() -> None:
    """Draw the steps per second of every agent, the fastest on top."""
    record = json.loads((MEASURED / "gpu_speed.json").read_text("utf-8"))["values"]
    rates = {row["what"]: row["runs"] * row["steps"] / row["seconds"] for row in record["rows"]}
    names = sorted(rates, key=rates.__getitem__)
    figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
    axes.plot([rates[name] for name in names], names, "o", color=plt.get_cmap("viridis")(0.4))
    for name in names:
        label = f"{rates[name] / 1e9:.0f} · 10⁹"
        axes.annotate(label, (rates[name], name), (8, -3), textcoords="offset points", size=8)
    axes.set(xscale="log", xlim=(1e10, 1e12), xlabel=f"steps per second on one {record['card']}")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "gpu_speed.png", dpi=110)


def draw_distributions() -> None:
    """Draw the distributions of regret at five steps."""
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


def main() -> None:
    """Draw both."""
    mpl.use("Agg")
    draw_distributions()
    draw_speed()


if __name__ == "__main__":
    main()
