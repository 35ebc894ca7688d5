"""Regret against S, A, Γ, c and T, one at a time.

The problems are lifted Garnets (`studies.lifted_garnet`), in which everything else stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gainful.experiments.run_statistics import Interval
from studies.study import Findings, StudyRuns, decide, draw_points, growth, panels, power, shown, steps_text, table

BONUSES = ("the paper's bonus", "the sharp bonus")
QUANTITIES = {"S": ("states", "copies"), "A": ("actions", "twins"), "Γ": ("next_states", "spread"),
              "c": ("span", "given_span")}  # fmt: skip
"""The spec of each quantity, and the column that is proportional to it."""
THEOREM = {"S": 0.5, "A": 0.5, "Γ": 0.5, "c": 1.0, "T": 0.5}
LATE = {"S": 1.0, "A": 1.0, "Γ": 0.0, "c": 2.0, "T": 0.0}
"""If every pair costs (c + r_max)²·ln T over its gap."""


def exponents(runs: StudyRuns, bonus: str, steps: Sequence[int]) -> dict[str, list[Interval]]:
    """The exponent of regret in each quantity, at each of the steps."""
    found = {}
    for quantity, (part, column) in QUANTITIES.items():
        frame = of_bonus(runs.part(part), bonus)
        reached = [t for t in steps if t <= frame["step"].max()]
        found[quantity] = [power(frame[frame["step"] == t], column, "instance") for t in reached]
    middle = of_bonus(runs.part("states"), bonus)
    middle = middle[middle["copies"] == 4]
    found["T"] = [growth(middle[middle["step"] <= t]) for t in steps]
    return found


def of_bonus(frame: pd.DataFrame, bonus: str) -> pd.DataFrame:
    """The runs with this bonus, whatever c."""
    return frame[frame["agent"].str.startswith(bonus)]


def checkpoints(runs: StudyRuns) -> list[int]:
    """Two steps per decade from 10⁵ on, or from a tenth of a shorter horizon."""
    steps = np.unique(runs.part("states")["step"])
    first = min(5.0, np.log10(steps[-1]) - 1)
    wanted = 10 ** np.arange(np.log10(steps[-1]), first - 0.01, -0.5)
    return sorted({int(steps[np.argmin(np.abs(steps - t))]) for t in wanted})


def findings(runs: StudyRuns) -> Findings:
    """Exponents over time beside the theorem's."""
    steps = checkpoints(runs)
    found = {bonus: exponents(runs, bonus, steps) for bonus in BONUSES}
    paper = found[BONUSES[0]]
    verdicts = [
        decide(f"Late in a run the exponent in {name} is at most the theorem's {power_text(theorem)}", paper[name][-1],
               (-9.0, theorem),
               f"With the paper's bonus the exponent is {shown(paper[name][-1])} after "
               f"{steps_text(steps[len(paper[name]) - 1])} steps.")
        for name, theorem in THEOREM.items()
    ]  # fmt: skip
    whole = [t for t in steps if steps_text(t).count(",") == 0]
    heads = ["", "theorem", "late", *(f"after {steps_text(t)}" for t in whole)]
    text = []
    for bonus in BONUSES:
        rows = [
            [
                name,
                power_text(THEOREM[name]),
                power_text(LATE[name]),
                *(by_step(steps, found[bonus][name]).get(t, "") for t in whole),
            ]
            for name in THEOREM
        ]
        text.append(f"Exponents with {bonus}:\n\n{table(heads, rows)}")
    figure, axes = panels([f"exponent in {name}" for name in THEOREM], columns=3, height=2.7)
    for ax, name in zip(axes, THEOREM, strict=True):
        for i, bonus in enumerate(BONUSES):
            draw_points(ax, steps[: len(found[bonus][name])], found[bonus][name], i, bonus)
        ax.axhline(THEOREM[name], color="#666666", linestyle=(0, (4, 3)), linewidth=1.2, label="the theorem's")
        ax.axhline(LATE[name], color="#666666", linestyle=(0, (1, 2)), linewidth=1.2, label="late: (c + 1)²·ln T / gap")
        ax.set(xscale="log", xlabel="steps", ylim=(-0.25, LATE["c"] * 1.15 if name == "c" else 1.25))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=10, loc="center", bbox_to_anchor=(0.84, 0.27))
    return Findings(verdicts, "\n\n".join(text), figure)


def by_step(steps: Sequence[int], found: Sequence[Interval]) -> dict[int, Interval]:
    """The exponents of a quantity by step; some runs are shorter than others."""
    return dict(zip(steps, found, strict=False))


def power_text(exponent: float) -> str:
    """½ for 0.5."""
    return "½" if exponent == 0.5 else f"{exponent:g}"
