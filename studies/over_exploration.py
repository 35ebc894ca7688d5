"""Over-exploration: SCAL+ against SCAL and UCRL2 as Γ grows, and the authors' own study."""

from __future__ import annotations

import pandas as pd

from studies.study import (
    Findings,
    StudyRuns,
    chosen,
    decide,
    draw_curves,
    draw_points,
    draw_slope,
    growth,
    legend_below,
    mean_of,
    panels,
    power,
    ratio_of,
    shown,
    table,
)

SPREADS = (1, 2, 4, 8, 16)
WIDTHS = [2 * spread for spread in SPREADS]
"""Γ."""
NAMES = ("SCAL+", "SCAL", "UCRL2", "UCRL2B")
AUTHORS, PAPER = "SCAL+, the authors' constants", "SCAL+, the paper's constants"
GARNET = (AUTHORS, PAPER, "SCAL", "UCRL2", "UCRL2B")


def label(name: str, scale: float) -> str:
    """As the spec writes it."""
    return f"{name}, scale {scale:g}"


def relative(frame: pd.DataFrame, name: str, scale: float) -> pd.DataFrame:
    """What an agent loses over what SCAL+ loses, one row for each instance and Γ."""
    keys = ["instance", "spread"]
    both = [chosen(frame, agent=label(one, scale)).groupby(keys)["expected_regret"].mean() for one in (name, "SCAL+")]
    return (both[0] / both[1]).rename("ratio").reset_index()


def findings(runs: StudyRuns) -> Findings:
    """Regret over Γ at two scales, and regret in the authors' Garnet."""
    wide, garnet = runs.finals("next_states"), runs.finals("authors")
    grown = {(name, scale): power(chosen(wide, agent=label(name, scale)), "spread", "instance")
             for name in NAMES for scale in (1.0, 0.1)}  # fmt: skip
    ratio = {(name, scale): relative(wide, name, scale) for name in NAMES[1:] for scale in (1.0, 0.1)}
    trend = {key: power(frame, "spread", "instance", "ratio") for key, frame in ratio.items()}
    widest = chosen(wide, spread=16)
    most = {(name, scale): ratio_of(widest, {"agent": label(name, scale)}, {"agent": label("SCAL+", scale)}, "instance")
            for name, scale in ratio}  # fmt: skip
    authors = ratio_of(garnet, {"agent": AUTHORS}, {"agent": "SCAL"}, "instance")
    paper = ratio_of(garnet, {"agent": PAPER}, {"agent": "SCAL"}, "instance")
    verdicts = [
        decide("SCAL loses more and more against SCAL+ as Γ grows", trend["SCAL", 1.0], (0.02, 9.0),
               f"SCAL's regret over SCAL+'s grows like Γ to the power {shown(trend['SCAL', 1.0])} and is "
               f"{shown(most['SCAL', 1.0])} at Γ = 32; with all widths a tenth the power is "
               f"{shown(trend['SCAL', 0.1])} and the ratio {shown(most['SCAL', 0.1])}."),
        decide("UCRL2 does, too", trend["UCRL2", 1.0], (0.02, 9.0),
               f"The power is {shown(trend['UCRL2', 1.0])}, with a tenth of the widths {shown(trend['UCRL2', 0.1])}: "
               f"its radius has S in it and not Γ. At Γ = 32 it loses {shown(most['UCRL2', 1.0])} times as much as "
               f"SCAL+ (with a tenth of the widths {shown(most['UCRL2', 0.1])})."),
        decide("UCRL2B, whose sets do depend on Γ, does, too", trend["UCRL2B", 1.0], (0.02, 9.0),
               f"The power is {shown(trend['UCRL2B', 1.0])}, and at Γ = 32 it loses {shown(most['UCRL2B', 1.0])} times "
               f"as much (with a tenth of the widths {shown(most['UCRL2B', 0.1])})."),
        decide("In the authors' Garnet, with their constants, SCAL+ loses less than SCAL", authors, (0.0, 1.0),
               f"{shown(authors)} times as much; with the paper's constants {shown(paper)} times."),
    ]  # fmt: skip
    rows = [
        [f"{name}, scale {scale:g}", grown[name, scale],
         *(mean_of(wide, agent=label(name, scale), spread=spread) for spread in SPREADS)]
        for scale in (1.0, 0.1) for name in NAMES
    ]  # fmt: skip
    heads = ["agent", "power of Γ", *(f"Γ = {2 * spread}" for spread in SPREADS)]
    text = "**As Γ grows**, everything else the same; expected regret:\n\n" + table(heads, rows)
    curves = runs.part("authors")
    own = [[name, mean_of(garnet, agent=name), growth(chosen(curves, agent=name))] for name in GARNET]
    text += "\n\n**The authors' Garnet**, c = 3.5:\n\n"
    text += table(["agent", "expected regret", "growth exponent, last decade"], own)
    figure, axes = panels(
        ["Γ grows", "Γ grows, scale 0.1", "the authors' Garnet"],
        below=["the theorems' constants", "a tenth of the constants", "mean and range of the instances"],
        height=4.3,
    )
    for ax, scale in zip(axes, (1.0, 0.1), strict=False):
        for i, name in enumerate(NAMES):
            frame = chosen(wide, agent=label(name, scale))
            means = [ratio_of(frame, {"spread": spread}, {"spread": 1}, "instance") for spread in SPREADS]
            draw_points(ax, WIDTHS, means, i, name)
        draw_slope(ax, WIDTHS, (2.0, 1.0), 0.5, "√Γ")
        ax.set(xscale="log", yscale="log", xlabel="Γ", ylabel="regret over regret at Γ = 2", ylim=(0.7, 8))
        ax.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
        ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        ax.minorticks_off()
        legend_below(ax)
    late = curves[curves["step"] >= 1e4] if curves["step"].max() > 1e5 else curves
    draw_curves(axes[2], late.assign(per_step=late["expected_regret"] / late["step"]), GARNET, "per_step")
    axes[2].set(xscale="log", xlabel="steps", ylabel="expected regret per step", ylim=(0, None))
    legend_below(axes[2], 1)
    return Findings(verdicts, text, figure)
