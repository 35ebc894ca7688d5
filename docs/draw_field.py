"""The picture of docs/field.md, from what `python benchmarks/field.py --record` recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
RECORD = HERE.parent / "benchmarks" / "measured" / "field_regret.json"
WORST = 10**4
"""Ratios above it have the darkest colour."""


def ratio(rows: dict[str, Any], agent: str) -> tuple[float, bool]:
    """How many times more than the best it lost after its longest runs, and whether these were the longest of all."""
    lost = rows[agent]["lost"]
    horizon = max(lost, key=int)
    least = min(row["lost"][horizon]["mean"] for row in rows.values() if horizon in row["lost"])
    longest = max(int(T) for row in rows.values() for T in row["lost"])
    return lost[horizon]["mean"] / least, int(horizon) == longest


def written(x: float) -> str:
    """Two digits: 1, 1.4, 12, 340, 2e4."""
    if x < 9.95:
        return f"{x:.1f}".removesuffix(".0")
    return f"{float(f'{x:.2g}'):.0f}" if x < 9950 else f"{x:.0e}".replace("e+0", "e")


def named(agent: str, values: dict[str, dict[str, Any]]) -> str:
    """The agent, with a word if no theorem is about it in any of the problems."""
    proven = any(rows[agent]["theorem"] for rows in values.values() if agent in rows)
    return agent if proven else f"{agent} (no theorem)"


def main() -> None:
    """Draw a cell for each agent in each problem."""
    mpl.use("Agg")
    values = json.loads(RECORD.read_text(encoding="utf-8"))["values"]
    problems = list(values)
    agents = list(max(values.values(), key=len))
    found = {(a, p): ratio(values[p], a) for p in problems for a in agents if a in values[p]}
    agents.sort(key=lambda a: float(np.mean([np.log(found[a, p][0]) for p in problems if (a, p) in found])))
    figure, axes = plt.subplots(figsize=(9.6, 6.2), layout="constrained")
    colours = plt.get_cmap("YlGnBu")
    shades = np.full((len(agents), len(problems)), np.nan)
    for (agent, problem), (times, longest) in found.items():
        i, j = agents.index(agent), problems.index(problem)
        shades[i, j] = np.log10(min(times, WORST)) / np.log10(WORST)
        text = written(times) + ("" if longest else "*")
        dark = shades[i, j] > 0.5
        weight = "bold" if times == 1 else "normal"
        axes.text(j, i, text, ha="center", va="center", fontsize=9, weight=weight, color="white" if dark else "black")
    axes.imshow(shades, cmap=colours, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(problems)), problems, rotation=40, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(agents)), [named(agent, values) for agent in agents])
    axes.set_xticks(np.arange(len(problems) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(agents) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("how many times more than the best agent of the column it lost (mean over 30 seeds)", labelpad=8)
    figure.savefig(HERE / "images" / "field.png", dpi=110)


if __name__ == "__main__":
    main()
