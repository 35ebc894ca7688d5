"""A bound c that is too large, and one that is too small."""

from __future__ import annotations

import pandas as pd

import gainful as gf
from studies.study import (
    Findings,
    StudyRuns,
    chosen,
    decide,
    draw_points,
    growth,
    legend_below,
    mean_of,
    panels,
    power,
    ratio_of,
    shown,
    table,
)

WIDE = (6.4, 10.0, 14.7, 30.0, 60.0, 120.0)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
PROBLEMS = ("RiverSwim-6", "Toy3D(0.05)", "access control", "two states")


def share(given: object) -> float:
    """0.1 of "0.1*auto"."""
    return float(str(given).removesuffix("*auto")) if str(given) != "auto" else 1.0


def of_agent(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The runs of SCAL+ or SCAL, whatever c."""
    return frame[frame["agent"].str.startswith(f"{name}, c")]


def findings(runs: StudyRuns) -> Findings:
    """Regret over c, above the diameter and below the span."""
    wide, narrow, curves = runs.finals("wide"), runs.finals("narrow"), runs.part("narrow")
    narrow = narrow.assign(share=narrow["given_span"].map(share))
    river = gf.environments.riverswim(6)
    diameter, span = gf.diameter(river), gf.solve(river).span
    plus, scal, ucrl = of_agent(wide, "SCAL+"), of_agent(wide, "SCAL"), chosen(wide, agent="UCRL2")
    above = power(plus[plus["given_span"] >= 14.7], "given_span")
    same = ratio_of(scal, {"given_span": 120.0}, {"given_span": 6.4})
    worse = ratio_of(wide, {"agent": "SCAL+, c = 14.7"}, {"agent": "UCRL2"})
    told = ratio_of(wide, {"agent": "SCAL+, c = 6.4"}, {"agent": "UCRL2"})
    half = ratio_of(of_agent(chosen(narrow, environment="RiverSwim-6"), "SCAL+"), {"share": 0.5}, {"share": 1.0})
    stuck = growth(chosen(curves, environment="access control", agent="SCAL+, c = 0.05*auto"))
    toy = growth(chosen(curves, environment="two states", agent="SCAL+, c = 0.35*auto"))
    verdicts = [
        decide("SCAL+'s regret goes on growing where c is above the diameter", above, (0.05, 2.0),
               f"For c from 14.7 to 120 it grows like c to the power {shown(above)}, and comes close to what a policy "
               "that learns nothing would lose."),
        decide("SCAL's does not", same, (0.95, 1.05),
               f"With c = 120 it loses {shown(same)} times what it loses with c = 6.4: the plans are the same."),
        decide("With c ≥ D, SCAL+ loses more than UCRL2", worse, (1.0, 1e9),
               f"{shown(worse)} times as much with c = D. With c = 6.4, near the true span, it still is "
               f"{shown(told)} times."),
        decide("The theorem needs c ≥ sp(h*)", stuck, (0.95, 1.2),
               f"In access control a c of 0.05·sp(h*) makes SCAL+ lose for ever: its regret grows like steps to the "
               f"power {shown(stuck)}. In RiverSwim-6 half of sp(h*) is better than all of it: {shown(half)} times the "
               "regret."),
        decide("In the two-state toy, regret is linear for c < ½·sp(h*)", toy, (0.95, 1.2),
               f"For c = 0.35·sp(h*) the power is {shown(toy)}: the prediction was wrong."),
    ]  # fmt: skip
    rows = [[f"{c:g}", mean_of(plus, given_span=c), mean_of(scal, given_span=c)] for c in WIDE]
    rows += [["UCRL2, not told c", mean_of(ucrl), ""]]
    text = f"**c above the diameter**, RiverSwim-6, sp(h\\*) = {span:.2f}, D = {diameter:.2f}; expected regret:\n\n"
    text += table(["c", "SCAL+", "SCAL"], rows)
    heads = ["c / sp(h\\*)", *(f"{where}, {agent}" for where in PROBLEMS for agent in ("SCAL+", "SCAL"))]
    below = [
        [
            f"{part:g}",
            *(
                mean_of(of_agent(chosen(narrow, environment=where, share=part), agent))
                for where in PROBLEMS
                for agent in ("SCAL+", "SCAL")
            ),
        ]
        for part in SHARES
    ]
    text += "\n\n**c below the span** of the optimal bias; expected regret:\n\n" + table(heads, below)
    figure, (left, right) = panels(
        ["c above the diameter: RiverSwim-6", "c below the span: four problems"],
        below=["sp(h*) = 6.3, D = 14.7", "solid: SCAL+, open circles: SCAL"],
        height=4.3,
    )
    for i, (name, frame) in enumerate((("SCAL+", plus), ("SCAL", scal))):
        draw_points(left, WIDE, [mean_of(frame, given_span=c) for c in WIDE], i, name)
    left.axhline(mean_of(ucrl).estimate, color="#009E73", linewidth=1.6, label="UCRL2")
    left.axvline(diameter, color="#666666", linestyle=(0, (4, 3)), linewidth=1, label="D")
    left.set(xscale="log", yscale="log", xlabel="c", ylabel="expected regret after 10⁷ steps", xticks=WIDE)
    left.set_xticklabels([f"{c:g}" for c in WIDE])
    left.minorticks_off()
    legend_below(left)
    for i, where in enumerate(PROBLEMS):
        for agent, style in (("SCAL+", {}), ("SCAL", {"markerfacecolor": "white", "linewidth": 0.8})):
            frame = of_agent(chosen(narrow, environment=where), agent)
            means = [mean_of(frame, share=part) for part in SHARES]
            draw_points(right, SHARES, means, i, where if agent == "SCAL+" else "_", **style)
    right.set(xscale="log", yscale="log", xlabel="c / sp(h*)", ylabel="expected regret after 10⁷ steps")
    legend_below(right)
    return Findings(verdicts, text, figure)
