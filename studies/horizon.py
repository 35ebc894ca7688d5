"""No horizon: what an agent loses that must be told one, when told wrongly.

MBIE-EB must be told a discount γ, optimistic Q-learning and UCBVI a number of steps H; SCAL+ a span, KL-SCAL+ nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from gainful.experiments.run_statistics import Interval
from gainful.plot.style import look
from studies.study import (
    Findings,
    StudyRuns,
    Verdict,
    chosen,
    decide,
    draw_points,
    interval,
    mean_of,
    number,
    panels,
    ratio_of,
    shown,
    table,
)

PROBLEMS = ("RiverSwim-6", "RiverSwim-12", "Toy3D", "Garnet")
TOLD = {"mbie-eb": "MBIE-EB", "optimistic-q": "optimistic Q"}
BLOCK_PROBLEMS = ("RiverSwim-6",)
WRONG_SPANS = ("0.1*auto", "10*auto")


def horizons(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the horizon that each run was told: 1/(1-γ), H, or the length of blocks."""
    told = pd.Series(float("nan"), index=frame.index)
    for name, of in (("discount", lambda x: 1.0 / (1.0 - x)), ("effective_horizon", float), ("episode_length", float)):
        if name in frame:
            given = pd.to_numeric(frame[name], errors="coerce")
            told = told.where(given.isna(), given.map(of).round(6))
    return frame.assign(told=told)


def best_horizon(final: pd.DataFrame) -> float:
    """The horizon with the least mean regret."""
    means = final.groupby("told")["expected_regret"].mean()
    return float(means.index[int(means.to_numpy().argmin())])


def family(frame: pd.DataFrame, title: str) -> pd.DataFrame:
    """The runs of one kind of agent, whatever it was told."""
    return frame[frame["agent"].str.startswith(title)]


def factors(final: pd.DataFrame, title: str, problem: str) -> tuple[float, Interval, Interval]:
    """The best horizon of an agent in a problem, and by what the shortest and the longest multiply its regret."""
    runs = chosen(family(final, title), environment=problem)
    best, told = best_horizon(runs), sorted(runs["told"].unique())
    least = {"told": best}
    return best, ratio_of(runs, {"told": told[0]}, least), ratio_of(runs, {"told": told[-1]}, least)


# ---------------------------------------------------------------------- tables


def regret_table(final: pd.DataFrame) -> str:
    """Mean regret of every agent in every problem."""
    rows = []
    for agent in final["agent"].unique():
        rows.append([agent, *(mean_of(final, agent=agent, environment=problem) for problem in PROBLEMS)])
    return table(["agent", *PROBLEMS], rows)


def factor_table(final: pd.DataFrame) -> str:
    """What being told wrongly costs: the shortest and the longest horizon against the best in hindsight."""
    rows = []
    for title in TOLD.values():
        for problem in PROBLEMS:
            best, short, long = factors(final, title, problem)
            rows.append([title, problem, number(best), short, long])
    for problem in PROBLEMS:
        runs = chosen(family(final, "SCAL+"), environment=problem)
        small, large = (ratio_of(runs, {"agent": f"SCAL+, c = {c}"}, {"agent": "SCAL+, c = auto"}) for c in WRONG_SPANS)
        rows.append(["SCAL+", problem, "c = span", small, large])
    heads = ["agent", "problem", "best horizon", "regret if far too short (c/10)", "if far too long (10c)"]
    return table(heads, rows, left=3)


def block_table(final: pd.DataFrame) -> str:
    """UCBVI's regret for each length of its blocks."""
    agents, problems = final["agent"].unique(), BLOCK_PROBLEMS
    rows = [[agent, *(mean_of(final, agent=agent, environment=problem) for problem in problems)] for agent in agents]
    return table(["agent", *problems], rows)


# ---------------------------------------------------------------------- the study


def findings(runs: StudyRuns) -> Findings:
    """Regret against the horizon that an agent is told."""
    final, blocks = horizons(runs.finals("told")), horizons(runs.finals("blocks"))
    tables = [
        "Regret:",
        regret_table(final),
        "The regret of being told wrongly, in multiples of the least:",
        factor_table(final),
        "UCBVI, with fewer steps:",
        block_table(blocks),
    ]
    figure, axes = panels(
        [f"{title} in four problems" for title in TOLD.values()],
        below=["the ring is its best horizon"] * 2,
        height=3.8,
    )
    for ax, title in zip(axes, TOLD.values(), strict=True):
        draw_family(ax, final, title)
    axes[0].legend(frameon=False, fontsize=8)
    return Findings(verdicts(final, blocks), "\n\n".join(tables), figure)


def verdicts(final: pd.DataFrame, blocks: pd.DataFrame) -> list[Verdict]:
    """Whether being told wrongly costs, whether one number suits all, and how KL-SCAL+ compares."""
    found = [wrong(final, title) for title in TOLD.values()]
    found.append(wrong_blocks(blocks))
    return [*found, one_for_all(final), nothing_to_tell(final)]


def wrong(final: pd.DataFrame, title: str) -> Verdict:
    """The least of the factors by which the two extreme horizons multiply regret, over all problems."""
    every = [factors(final, title, problem)[1:] for problem in PROBLEMS]
    worse = [max(two, key=lambda one: one.low) for two in every]
    least = min(worse, key=lambda one: one.low)
    texts = "; ".join(f"{problem} {shown(short)} and {shown(long)}"
                      for problem, (short, long) in zip(PROBLEMS, every, strict=True))  # fmt: skip
    name = title[0].upper() + title[1:]
    return decide(f"{name} loses several times as much if its horizon is told wrongly, in every problem",
                  least, (2.0, float("inf")),
                  f"Multiples of the least regret for the shortest and the longest horizon: {texts}.")  # fmt: skip


def wrong_blocks(blocks: pd.DataFrame) -> Verdict:
    """UCBVI's worst block against its best, in the problem where this matters least."""
    worst = []
    for problem in BLOCK_PROBLEMS:
        runs = chosen(family(blocks, "UCBVI"), environment=problem)
        best = best_horizon(runs)
        ratios = [ratio_of(runs, {"told": told}, {"told": best}) for told in runs["told"].unique() if told != best]
        worst.append(max(ratios, key=lambda one: one.low))
    least = min(worst, key=lambda one: one.low)
    return decide("UCBVI loses several times as much if H is told wrongly", least, (2.0, float("inf")),
                  f"Its worst H of three multiplies the least regret by {' and '.join(map(shown, worst))} in "
                  f"{' and '.join(BLOCK_PROBLEMS)}.")  # fmt: skip


def one_for_all(final: pd.DataFrame) -> Verdict:
    """The best single horizon for all problems: what it costs in the problem that it suits least."""
    parts, smallest = [], None
    for title in TOLD.values():
        runs = family(final, title)
        costs = {}
        for told in sorted(runs["told"].unique()):
            costs[told] = max((_over_best(runs, told, problem) for problem in PROBLEMS), key=lambda one: one.estimate)
        told = min(costs, key=lambda one: costs[one].estimate)
        parts.append(f"{title}'s best compromise, horizon {number(told)}, loses {shown(costs[told])} times its least "
                     "in the problem that it suits least")  # fmt: skip
        smallest = costs[told] if smallest is None or costs[told].low < smallest.low else smallest
    assert smallest is not None
    return decide("No one horizon suits all four problems", smallest, (1.25, float("inf")), "; ".join(parts) + ".")


def _over_best(runs: pd.DataFrame, told: float, problem: str) -> Interval:
    here = chosen(runs, environment=problem)
    best = best_horizon(here)
    return Interval(1.0, 1.0, 1.0) if told == best else ratio_of(here, {"told": told}, {"told": best})


def nothing_to_tell(final: pd.DataFrame) -> Verdict:
    """KL-SCAL+ against the agents with a horizon, each at its best in hindsight."""
    found: list[Interval] = []
    for problem in PROBLEMS:
        here = chosen(final, environment=problem)
        for title in TOLD.values():
            best = best_horizon(family(here, title))
            rival = family(here, title)[lambda rows, best=best: rows["told"] == best]["agent"].iloc[0]
            found.append(ratio_of(here, {"agent": "KL-SCAL+"}, {"agent": rival}))
    texts = ", ".join(shown(one) for one in found)
    return decide("KL-SCAL+, told nothing, loses at most twice what they lose at their best in hindsight",
                  max(found, key=lambda one: one.high), (0.0, 2.0),
                  f"Ratios to MBIE-EB and optimistic Q, problem by problem: {texts}.")  # fmt: skip


# ---------------------------------------------------------------------- the picture


def draw_family(ax: Axes, final: pd.DataFrame, title: str) -> None:
    """Regret over the horizon told, one curve per problem; a ring at the best, a short line for KL-SCAL+."""
    for i, problem in enumerate(PROBLEMS):
        runs = chosen(family(final, title), environment=problem)
        x: Sequence[float] = sorted(runs["told"].unique())
        found = [mean_of(runs, told=told) for told in x]
        draw_points(ax, x, found, i, problem)
        colour, _ = look(i)
        best = best_horizon(runs)
        ax.plot([best], [mean_of(runs, told=best).estimate], "o", markersize=10, fillstyle="none", color=colour)
        untold = interval(chosen(final, agent="KL-SCAL+", environment=problem)["expected_regret"]).estimate
        ax.plot([x[-1] * 2.2, x[-1] * 3.5], [untold, untold], color=colour, linewidth=2.5)
    ax.set(xscale="log", yscale="log", xlabel="horizon told, 1/(1 − γ) or H", ylabel="expected regret")
    ax.annotate("KL-SCAL+", (0.99, 0.02), xycoords="axes fraction", ha="right", fontsize=8)
