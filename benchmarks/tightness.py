"""By how much is the optimism of SCAL+ tighter than that of SCAL, UCRL2B and UCRL2? The paper says: by √Γ.

    python benchmarks/tightness.py [--quick] [--plot FILE]

For each family of problems with S = 64 and A = 2, and each support Γ: every pair is visited N times, next states drawn
from the true rows; each agent plans once on these counts with its theorem's constants, δ = 0.05, r_max = 1 and
c = sp(h*), and the operator of that plan is applied to the true h*. Printed is the mean over states of L̂h* − Lh*,
divided by max{r_max, c}, and the slope of its logarithm against log Γ: 0 says that Γ does not matter, 1/2 that the
excess grows like √Γ.

even split   h* is 0 or c = 1, every row uniform on Γ states, half of each kind: the worst case for intervals
garnet       random rows, Bernoulli rewards; c falls as Γ grows
lazy         h* evenly spread over [0, 5]; every pair stays with probability 0.9

Last, Γ = 8 in even splits of 16 to 256 states: the slope against log S.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gainful as gf
from gainful.audit.tightness import MEASURED_AGENTS, Family, even_split, fitted_slopes, fixed_bias, measured_tightness

S, A = 64, 2
SUPPORTS = (2, 4, 8, 16, 32, 64)
VISITS = tuple(10**k for k in range(3, 9))
FAMILIES: dict[str, Family] = {
    "even split": lambda support, seed: even_split(S, A, support, instance=seed),
    "garnet": lambda support, seed: gf.environments.garnet(S, A, support, instance=seed, reward_law="bernoulli"),
    "lazy": lambda support, seed: fixed_bias(S, A, support, span=5.0, stay=0.9, instance=seed),
}
NAMES = {"SCALPlus": "SCAL+", "SCAL": "SCAL", "UCRL2B": "UCRL2B", "UCRL2": "UCRL2"}
SIZES = (16, 32, 64, 128, 256)
LARGE = 8
"""The slope is fitted again from this Γ on: SCAL's widths hold sqrt(Γ - 1), which is steeper at first."""


def show(name: str, table: pd.DataFrame) -> None:
    """What was measured, in numbers."""
    print(f"\n{name}: mean excess / max{{r_max, c}}, mean of {table['seed'].nunique()} problems")
    means = table.pivot_table(index=["visits", "agent"], columns="support", values="relative", sort=False)
    print(f"{'visits':>10} {'agent':<8}" + "".join(f"{f'Γ = {g}':>10}" for g in SUPPORTS))
    for where, row in zip(means.index, means.to_numpy(), strict=True):
        print(f"{where[0]:>10.0e} {NAMES[where[1]]:<8}" + "".join(f"{x:>10.3g}" for x in row))
    last = table[table["visits"] == table["visits"].max()]
    at_last = last.pivot_table(index="support", columns="agent", values="relative")
    print("\nas a multiple of SCAL+'s, at the most visits")
    for agent in MEASURED_AGENTS[1:]:
        print(f"{'':>10} {NAMES[agent]:<8}" + "".join(f"{x:>10.3g}" for x in at_last[agent] / at_last["SCALPlus"]))
    print("\nslope of log excess against log Γ (standard error); in brackets from Γ = 8 on")
    every, upper = fitted_slopes(table), fitted_slopes(table[table["support"] >= LARGE])
    visits = list(dict.fromkeys(every["visits"]))
    print(f"{'':>10} {'':<8}" + "".join(f"{f'N = {n:.0e}':>24}" for n in visits))
    for agent in MEASURED_AGENTS:
        cells = []
        for n in visits:
            one = every[(every["agent"] == agent) & (every["visits"] == n)].iloc[0]
            two = upper[(upper["agent"] == agent) & (upper["visits"] == n)].iloc[0]
            cells.append(f"{one['slope']:>6.2f} ({one['error']:.2f}) [{two['slope']:.2f}]")
        print(f"{'':>10} {NAMES[agent]:<8}" + "".join(f"{cell:>24}" for cell in cells))


def states(visits: tuple[int, ...], seeds: tuple[int, ...]) -> None:
    """The excess against the number of states, at Γ = 8."""
    parts = [
        measured_tightness(lambda g, seed, size=size: even_split(size, A, g, instance=seed), (8,), visits, seeds=seeds)  # type: ignore[misc]
        for size in SIZES
    ]
    slopes = fitted_slopes(pd.concat(parts), against="n_states")
    print("\neven split, Γ = 8, S = 16 … 256: slope of log excess against log S")
    for agent in MEASURED_AGENTS:
        cells = slopes[slopes["agent"] == agent]
        print(
            f"{NAMES[agent]:<8}"
            + "".join(f"   N = {n:.0e}: {x:5.2f}" for n, x in zip(cells["visits"], cells["slope"], strict=True))
        )


def draw(tables: dict[str, pd.DataFrame], path: Path) -> None:
    """Above, the excess against Γ at the most visits; below, how the slope comes with the visits."""
    from gainful.plot.palette import SERIES_COLOURS
    from gainful.plot.style import PALE, calm, new_figure

    figure = new_figure(10.2, 6.4)
    panels: Any = figure.subplots(2, len(tables), sharex="row", sharey="row")
    figure.subplots_adjust(left=0.1, right=0.955, top=0.89, bottom=0.085, wspace=0.08, hspace=0.36)
    colours = dict(zip(MEASURED_AGENTS, SERIES_COLOURS, strict=False))
    for column, (name, table) in enumerate(tables.items()):
        top, bottom = panels[:, column]
        most = table[table["visits"] == table["visits"].max()]
        for agent in MEASURED_AGENTS:
            one = most[most["agent"] == agent].groupby("support")["relative"].mean()
            top.plot(one.index, one, "o-", color=colours[agent], markersize=4.5, linewidth=1.8, label=NAMES[agent])
            slope = fitted_slopes(table[table["agent"] == agent])
            bottom.plot(slope["visits"], slope["slope"], "o-", color=colours[agent], markersize=4.5, linewidth=1.8)
        scal = most[most["agent"] == "SCAL"].groupby("support")["relative"].mean()
        x = np.array(SUPPORTS, dtype=float)
        top.plot(x, scal.iloc[-1] * np.sqrt(x / x[-1]), linestyle=":", color=PALE, linewidth=1.4, label="∝ √Γ")
        top.set(xscale="log", yscale="log", xlabel="support Γ")
        top.set_xticks(SUPPORTS, [str(g) for g in SUPPORTS])
        top.set_yticks([1e-4, 3e-4, 1e-3, 3e-3, 1e-2], ["0.0001", "0.0003", "0.001", "0.003", "0.01"])
        top.set_ylim(1e-4, 1.3e-2)
        top.minorticks_off()
        top.set_title(name, fontsize=11, loc="left")
        for level, text in ((0.0, "no Γ"), (0.5, "√Γ")):
            bottom.axhline(level, color=PALE, linestyle=":", linewidth=1.2)
            if column == len(tables) - 1:
                bottom.annotate(text, (1.01, level), xycoords=("axes fraction", "data"), va="center", color=PALE)
        bottom.set(xscale="log", xlabel="visits N of every pair")
        for ax in (top, bottom):
            calm(ax)
    panels[0, 0].set_ylabel(f"(L̂h* − Lh*) / max{{r_max, c}}\nat N = 10{exponent(VISITS[-1])}")
    panels[1, 0].set_ylabel("slope of log excess\nagainst log Γ")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=5, frameon=False, fontsize=9.5)
    figure.savefig(path)
    print(f"\ndrawn: {path}")


def exponent(n: int) -> str:
    """10⁸ as its superscript."""
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(str(n)) - 1))


def main() -> None:
    quick = "--quick" in sys.argv
    visits, seeds = (VISITS[1::2], (0,)) if quick else (VISITS, (0, 1, 2, 3, 4))
    began, tables = time.perf_counter(), {}
    for name, family in FAMILIES.items():
        tables[name] = measured_tightness(family, SUPPORTS, visits, seeds=seeds)
        assert (tables[name]["least"] > -1e-7).all(), f"{name}: some operator is not optimistic"
        show(name, tables[name])
    states(visits[-2:], seeds)
    if "--plot" in sys.argv:
        draw(tables, Path(sys.argv[sys.argv.index("--plot") + 1]))
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
