"""Continuous states: C-SCAL+ beside its rivals, the number of cells, and how regret grows in d = 1 and 2.

Six problems with known L and α, two without, and three (d, α) in which the exponent of regret is measured.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import gainful as gf
from gainful.experiments.run_statistics import Interval
from gainful.optimism.c_scal_plus import bins_for_horizon, regret_exponent
from studies.study import (
    Findings,
    StudyRuns,
    Verdict,
    chosen,
    decide,
    draw_points,
    draw_slope,
    exponential,
    growth,
    interval,
    mean_of,
    panels,
    power,
    shown,
    table,
)

REGRET = "pseudo_regret"
AGENTS = ("C-SCAL+", "C-SCAL+, sharp", "C-KL-SCAL+", "UCCRL", "UCRL2B on cells", "PSRL on cells")
SMOOTH: dict[str, tuple[str, dict[str, float]]] = {
    "RiverSwim": ("continuous-riverswim", {"step": 1.0, "noise": 0.5}),
    "LQG": ("lqg", {}),
    "Replacement": ("replacement", {}),
    "Inventory": ("continuous-inventory", {}),
    "Rough mixture": ("rough-mixture", {}),
    "Planar mixture": ("planar-mixture", {}),
}
SHARP_LAWS = {"Mountain Car": "mountain_car", "Ship steering": "ship_steering"}
EXPONENTS = {"d = 1, α = 1": (1.0, 1), "d = 1, α = 1/2": (0.5, 1), "d = 2, α = 1": (1.0, 2)}
BONUSES = {"appendix": "C-SCAL+", "sharp": "C-SCAL+, sharp"}
CLOSE = 2.0
"""The theorem's number of cells is close to the best one if it costs at most this factor."""


def findings(runs: StudyRuns) -> Findings:
    """Regret in eight problems, the U in the number of cells, and exponents."""
    regret, cells = per_range(runs.finals("regret")), all_cells(runs)
    grown, doubled = runs.finals("growth"), runs.part("doubling")
    figure, (by_problem, by_horizon, paper, sharp) = panels(
        ["regret in six problems", "regret against the horizon", "the number of cells", "the number of cells, sharp"],
        below=[
            f"per step and r_max, after {horizon_of(regret)} steps",
            "the theorem's cells for every T",
            "regret per step and r_max; ring: the theorem's",
            "the same with the sharp bonus",
        ],
        height=4.0,
        columns=2,
    )
    draw_problems(by_problem, regret)
    draw_growth(by_horizon, grown)
    for ax, bonus in ((paper, "appendix"), (sharp, "sharp")):
        draw_cells(ax, cells, bonus)
    text = [
        "### Regret per step, in % of the range of rewards", "", problem_table(regret), "",
        "### Rewards per 1,000 steps where no L exists", "", reward_table(runs), "",
        "### How regret grows", "", growth_table(grown, doubled), "",
        "### The number of cells per axis", "", cell_table(cells),
    ]  # fmt: skip
    verdicts = [*rival_verdicts(regret), *growth_verdicts(grown), *cell_verdicts(cells)]
    return Findings(verdicts, "\n".join(text), figure)


# ---------------------------------------------------------------------- the runs


def environment(label: str) -> Any:
    """The environment that a label of `SMOOTH` stands for."""
    name, parameters = SMOOTH[label]
    return gf.environments.make_continuous(name, **parameters)


def per_range(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with regret per step, divided by the range of rewards."""
    ranges = frame["environment"].map({label: environment(label).reward_range for label in SMOOTH})
    return frame.assign(loss=frame[REGRET] / frame["step"] / ranges)


def all_cells(runs: StudyRuns) -> pd.DataFrame:
    """C-SCAL+ with every number of cells, the theorem's among them."""
    main = runs.finals("regret")
    names = {name: bonus for bonus, name in BONUSES.items()}
    main = main[main["agent"].isin(names)].assign(bonus=main["agent"].map(names))
    parts = [runs.finals("cells_line"), runs.finals("cells_plane"), main]
    both = pd.concat([part.assign(parameters=part["parameters"].astype(str)) for part in parts], ignore_index=True)
    return per_range(both.drop_duplicates("run_id"))


def theorems_bins(label: str, steps: int) -> int:
    """The theorem's number of intervals per axis."""
    env = environment(label)
    return bins_for_horizon(steps, env.n_actions, env.lipschitz, env.holder, env.dim)


def horizon_of(frame: pd.DataFrame) -> str:
    """The number of steps, in words."""
    return f"{int(frame['step'].max()):,}"


def pairwise(frame: pd.DataFrame, first: pd.Series, second: pd.Series) -> Interval:
    """The geometric mean of first/second over shared seeds."""
    a, b = (frame[rows].groupby("seed", observed=True)["loss"].mean() for rows in (first, second))
    seeds = sorted(set(a.index) & set(b.index))
    return exponential(interval(np.log(a[seeds].to_numpy()) - np.log(b[seeds].to_numpy())))


# ---------------------------------------------------------------------- rivals


def problem_table(frame: pd.DataFrame) -> str:
    rows = []
    for label in SMOOTH:
        here = chosen(frame, environment=label)
        found = [mean_of(here, "loss", agent=agent) for agent in AGENTS]
        rows.append([label, *(Interval(100 * one.estimate, 100 * one.low, 100 * one.high) for one in found)])
    return table(["problem", *AGENTS], rows)


def reward_table(runs: StudyRuns) -> str:
    rows = []
    for label, part in SHARP_LAWS.items():
        frame = runs.finals(part)
        frame = frame.assign(rate=1000.0 * frame["reward"] / frame["step"])
        rows.append([label, *(mean_of(frame, "rate", agent=agent) for agent in AGENTS)])
    return table(["problem", *AGENTS], rows)


def rival_verdicts(frame: pd.DataFrame) -> list[Verdict]:
    """Ratios of regret in the problem where they are least."""
    found = []
    for rival, ours, claim in (
        ("UCCRL", "C-SCAL+", "C-SCAL+ loses less than UCCRL in each of the six problems"),
        ("UCRL2B on cells", "C-SCAL+", "C-SCAL+ loses less than UCRL2B on cells in each of them"),
        ("C-SCAL+", "C-SCAL+, sharp", "The sharp bonus loses less than the paper's in each of them"),
        (
            "C-KL-SCAL+",
            "PSRL on cells",
            "PSRL on cells, which promises nothing, loses less than C-KL-SCAL+ in each of them",
        ),
    ):
        ratios = {}
        for label in SMOOTH:
            here = chosen(frame, environment=label)
            ratios[label] = pairwise(here, here["agent"] == rival, here["agent"] == ours)
        worst = min(ratios, key=lambda label: ratios[label].estimate)
        best = max(ratios, key=lambda label: ratios[label].estimate)
        because = f"{rival} loses {shown(ratios[worst])} times as much in {worst}, {shown(ratios[best])} in {best}."
        found.append(decide(claim, ratios[worst], (1.0, math.inf), because))
    return found


def draw_problems(ax: Axes, frame: pd.DataFrame) -> None:
    for i, agent in enumerate(AGENTS):
        found = [mean_of(frame, "loss", environment=label, agent=agent) for label in SMOOTH]
        draw_points(ax, np.arange(len(SMOOTH)) + 0.08 * (i - 2.5), found, i, agent, linestyle="none", markersize=5)  # type: ignore[arg-type]
    ax.set(yscale="log", ylabel="regret / (steps · r_max)", ylim=(3e-5, 0.8))
    ax.set_xticks(range(len(SMOOTH)), [label.replace(" ", "\n") for label in SMOOTH], fontsize=7.5, rotation=25)
    ax.legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left")


# ---------------------------------------------------------------------- growth


def last_decade(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of the longest horizon and of the tenth of it."""
    top = float(frame["horizon"].max())
    return frame[frame["horizon"].to_numpy() >= top / 10]


def growth_table(grown: pd.DataFrame, doubled: pd.DataFrame) -> str:
    rows = []
    for label, (alpha, d) in EXPONENTS.items():
        for bonus, name in BONUSES.items():
            here = chosen(grown, environment=label, bonus=bonus)
            one_run = growth(chosen(doubled, environment=label, bonus=bonus), REGRET)
            bins = sorted(round(n ** (1 / d)) for n in set(here["n_states"]))
            rows.append([
                label, name, f"{regret_exponent(alpha, d):.3f}", f"{bins[0]} … {bins[-1]}",
                power(here, "horizon", measure=REGRET), power(last_decade(here), "horizon", measure=REGRET), one_run,
            ])  # fmt: skip
    steps = sorted(set(grown["horizon"]))
    heads = ["problem", "agent", "theorem", "n", f"measured, {steps[0]:,} to {steps[-1]:,} steps", "the last decade",
             "one run that doubles, its last decade"]  # fmt: skip
    return table(heads, rows, left=2)


def growth_verdicts(grown: pd.DataFrame) -> list[Verdict]:
    found = []
    for label, (alpha, d) in EXPONENTS.items():
        theorem = regret_exponent(alpha, d)
        for bonus, name in BONUSES.items():
            exponent = power(last_decade(chosen(grown, environment=label, bonus=bonus)), "horizon", measure=REGRET)
            claim = f"{label}: the regret of {name} grows no faster than T to the {theorem:.3f}"
            found.append(decide(claim, exponent, (-math.inf, theorem), f"Over the last decade {shown(exponent)}."))
    return found


def draw_growth(ax: Axes, grown: pd.DataFrame) -> None:
    horizons = sorted(set(grown["horizon"]))
    for i, label in enumerate(EXPONENTS):
        for bonus, style in (("appendix", "-"), ("sharp", ":")):
            here = chosen(grown, environment=label, bonus=bonus)
            found = [mean_of(here, REGRET, horizon=T) for T in horizons]
            text = label if bonus == "appendix" else f"{label}, sharp"
            draw_points(ax, horizons, found, i, text, linestyle=style)
    theorem = sorted({regret_exponent(alpha, d) for alpha, d in EXPONENTS.values()})
    top = max(mean_of(grown, REGRET, environment=label, bonus="appendix", horizon=horizons[0]).estimate
              for label in EXPONENTS)  # fmt: skip
    for exponent in theorem:
        draw_slope(ax, horizons, (horizons[0], 2.0 * top), exponent, f"slope {exponent:.3f}")
    ax.set(xscale="log", yscale="log", xlabel="steps T", ylabel="pseudo-regret", ylim=(15, None))
    ax.legend(frameon=False, fontsize=7, loc="lower right", ncols=2)


# ---------------------------------------------------------------------- cells


CELLS_OF = ("LQG", "Inventory", "Rough mixture", "Planar mixture")


def cells_of(frame: pd.DataFrame, label: str, bonus: str) -> pd.DataFrame:
    """C-SCAL+ with a bonus in a problem, with the number of intervals per axis."""
    here = frame[(frame["environment"] == label) & (frame["bonus"] == bonus)]
    return here.assign(per_axis=(here["n_states"] ** (1 / environment(label).dim)).round().astype(int))


def cells_compared(frame: pd.DataFrame, label: str, bonus: str) -> tuple[int, int, Interval]:
    """The best number of intervals, the theorem's, and what the theorem's costs as a factor."""
    here = cells_of(frame, label, bonus)
    means = here.groupby("per_axis")["loss"].mean()
    best = int(means.index.to_numpy()[int(np.argmin(means.to_numpy()))])
    told = theorems_bins(label, int(here["step"].max()))
    return best, told, pairwise(here, here["per_axis"] == told, here["per_axis"] == best)


def cell_table(frame: pd.DataFrame) -> str:
    rows = []
    for label in CELLS_OF:
        for bonus, name in BONUSES.items():
            best, told, ratio = cells_compared(frame, label, bonus)
            rows.append([label, name, best, told, ratio])
    heads = ["problem", "agent", "best n", "the theorem's n", "regret with the theorem's n / with the best"]
    return table(heads, rows, left=2)


def cell_verdicts(frame: pd.DataFrame) -> list[Verdict]:
    """What the theorem's number of cells costs, in the problem where it costs most."""
    costs = {label: cells_compared(frame, label, "appendix") for label in CELLS_OF}
    worst = max(costs, key=lambda label: costs[label][2].estimate)
    best, told, ratio = costs[worst]
    claim = f"With the theorem's number of cells C-SCAL+ loses at most {CLOSE:g} times what it loses with the best"
    because = f"In {worst} n = {told} costs {shown(ratio)} times what n = {best} does."
    return [decide(claim, ratio, (0.0, CLOSE), because)]


def draw_cells(ax: Axes, frame: pd.DataFrame, bonus: str) -> None:
    for i, label in enumerate(CELLS_OF):
        here = cells_of(frame, label, bonus)
        bins = sorted(set(here["per_axis"]))
        found = [mean_of(here, "loss", per_axis=n) for n in bins]
        draw_points(ax, bins, found, i, label)
        told = theorems_bins(label, int(here["step"].max()))
        at = [one.estimate for n, one in zip(bins, found, strict=True) if n == told]
        ax.plot([told] * len(at), at, marker="o", markersize=11, fillstyle="none", color="#222222", linestyle="none")
    ax.set(xscale="log", yscale="log", xlabel="intervals per axis n", ylabel="regret / (steps · r_max)")
    ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    ax.legend(frameon=False, fontsize=8)
