"""The cost of a plan: SCAL+ against SCAL, UCRL2B and UCCRL as Γ and S grow."""

from __future__ import annotations

import pandas as pd

from gainful.experiments.run_statistics import Interval
from studies.study import (
    Findings,
    StudyRuns,
    chosen,
    decide,
    draw_points,
    legend_below,
    mean_of,
    panels,
    power,
    ratio_of,
    shown,
    table,
)

STATES, BRANCHINGS = (50, 150, 450), (2, 8, 32)
BINS = (10, 20, 40, 80, 160)
FINITE, CELLS = ("SCAL+", "SCAL", "UCRL2B"), ("C-SCAL+", "UCCRL", "SCAL", "UCRL2B")
PLAN = "seconds_per_plan"


def timed(frame: pd.DataFrame) -> pd.DataFrame:
    """With the CPU seconds of a plan, the mean over the plans of a run, without the first seed or instance.

    Compiled code is loaded in these, which would count as planning.
    """
    first = frame["instance"] if "instance" in frame.columns else frame["seed"]
    frame = frame[first > 0] if first.max() > 1 else frame
    return frame.assign(**{PLAN: frame["planning_seconds"] / frame["episodes"]})


def plan_text(found: Interval) -> str:
    """In milliseconds."""
    return f"{1e3 * found.estimate:.3g} ms"


def findings(runs: StudyRuns) -> Findings:
    """CPU time per plan, and the ratio to SCAL+'s."""
    finite, cells = timed(runs.finals("finite")), timed(runs.finals("cells"))
    cells = cells.assign(name=cells["agent"].str.split(",").str[0], bins=cells["bins"].astype(int))

    def finite_ratio(name: str, S: int, branching: int) -> Interval:
        here = chosen(finite, n_states=S, branching=branching)
        return ratio_of(here, {"agent": name}, {"agent": "SCAL+"}, "instance", PLAN)

    def cell_ratio(name: str, bins: int) -> Interval:
        return ratio_of(chosen(cells, bins=bins), {"name": name}, {"name": "C-SCAL+"}, "seed", PLAN)

    def trend(name: str) -> Interval:
        """The power of Γ in the ratio, at the largest S."""
        here = chosen(finite, n_states=STATES[-1])
        keys = ["instance", "branching"]
        sides = [chosen(here, agent=one).groupby(keys)[PLAN].mean() for one in (name, "SCAL+")]
        return power((sides[0] / sides[1]).rename("ratio").reset_index(), "branching", "instance", "ratio")

    dearest = {name: finite_ratio(name, STATES[-1], BRANCHINGS[-1]) for name in FINITE[1:]}
    on_cells = {name: cell_ratio(name, BINS[-1]) for name in CELLS[1:]}
    verdicts = [
        decide(f"A plan of SCAL+ is cheaper than one of {name}", dearest[name], (1.0, 1e9),
               f"At S = {STATES[-1]}, Γ = {BRANCHINGS[-1]} one of {name} takes {shown(dearest[name])} times as long.")
        for name in FINITE[1:]
    ]  # fmt: skip
    verdicts += [
        decide(f"Against {name} the advantage grows with Γ", trend(name), (0.0, 9.0),
               f"The ratio grows like Γ to the power {shown(trend(name))} at S = {STATES[-1]}.")
        for name in FINITE[1:]
    ]  # fmt: skip
    verdicts.append(
        decide("A plan of C-SCAL+ is cheaper than one of UCCRL", on_cells["UCCRL"], (1.0, 1e9),
               f"With {BINS[-1]} cells one of UCCRL takes {shown(on_cells['UCCRL'])} times as long, with {BINS[0]} "
               f"cells {shown(cell_ratio('UCCRL', BINS[0]))} times.")
    )  # fmt: skip
    rows = [
        [S, branching, plan_text(mean_of(chosen(finite, n_states=S, branching=branching), PLAN, agent="SCAL+")),
         *(finite_ratio(name, S, branching) for name in FINITE[1:])]
        for S in STATES for branching in BRANCHINGS
    ]  # fmt: skip
    text = "**Finite problems**, Garnets with 3 actions; CPU time of a plan, mean over the plans of a run:\n\n"
    text += table(["S", "Γ", "SCAL+", *(f"{name} / SCAL+" for name in FINITE[1:])], rows, left=2)
    rows = [[bins, plan_text(mean_of(cells, PLAN, name="C-SCAL+", bins=bins)),
             *(cell_ratio(name, bins) for name in CELLS[1:])] for bins in BINS]  # fmt: skip
    text += "\n\n**Cells**, LQG with 5 actions, where S and Γ grow together:\n\n"
    text += table(["cells", "C-SCAL+", *(f"{name} / C-SCAL+" for name in CELLS[1:])], rows)
    figure, (left, right) = panels(
        ["Garnets: time of a plan over SCAL+'s", "cells of LQG: CPU time of a plan"],
        below=["one line for each S", "S = Γ = the number of cells, nearly"],
        height=4.4,
    )
    for i, name in enumerate(FINITE[1:], start=1):
        for S, width in zip(STATES, (0.7, 1.3, 2.2), strict=True):
            means = [finite_ratio(name, S, branching) for branching in BRANCHINGS]
            draw_points(left, BRANCHINGS, means, i, f"{name}, S = {S}", linewidth=width)
    left.axhline(1.0, color="#0072B2", linewidth=1.6, label="SCAL+")
    left.set(xscale="log", yscale="log", xlabel="Γ", ylabel="ratio to SCAL+")
    left.set_xticks(BRANCHINGS, [str(b) for b in BRANCHINGS])
    for i, name in enumerate(CELLS):
        series = {"C-SCAL+": 0, "SCAL": 1, "UCRL2B": 2, "UCCRL": 3}[name]
        draw_points(
            right, BINS, [mean_of(cells, PLAN, name=name, bins=bins) for bins in BINS], series, name, zorder=2 + i
        )
    right.set(xscale="log", yscale="log", xlabel="cells", ylabel="CPU seconds")
    right.set_xticks(BINS, [str(b) for b in BINS])
    for ax in (left, right):
        ax.minorticks_off()
        legend_below(ax)
    return Findings(verdicts, text, figure)
