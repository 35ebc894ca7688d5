"""Learning with continuous states: C-SCAL+ and its competitors, the number of cells, the growth of regret.

    python benchmarks/continuous_study.py [regret] [cells] [slope] [--quick | --record] [--seeds N] [--jobs N]
                                          [--plot FOLDER] [--results FILE]

regret  C-SCAL+, discretised UCRL2B and SCAL, and UCCRL in four environments: regret over time
cells   regret at a fixed horizon against the number of cells n
slope   regret at growing horizons T with the theorem's n for each, and of one run that doubles its horizon

Regret is divided by r_max, the range of rewards, and measured against the oracle's gain; it is the pseudo-regret, as
rewards are functions of state and action. The span c is the oracle's too. Tables go to stdout and with --record to
benchmarks/measured, from where `make tables` writes them into the page; progress goes to stderr. With --results every
finished run is kept in a file (JSON lines), and a run found there is not made again.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.optimism.c_scal_plus import bins_for_horizon, regret_exponent

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, record_document

Array = NDArray[np.float64]
say = partial(print, file=sys.stderr, flush=True)

# ---------------------------------------------------------------------- environments


ENVIRONMENTS: dict[str, tuple[str, Callable[[], ContinuousEnvironment]]] = {
    "riverswim": ("RiverSwim, step 1", lambda: gf.environments.continuous_riverswim(step=1.0, noise=0.5)),
    "lqg": ("LQG", gf.environments.lqg),
    "replacement": ("Replacement", gf.environments.replacement),
    "inventory": ("Inventory", gf.environments.continuous_inventory),
}
"""RiverSwim with steps ten times the default: c falls from 80 to 6 and L from 100 to 14; 10⁷ steps teach something."""


@dataclass(frozen=True)
class Problem:
    """An environment with what an oracle knows of it."""

    name: str
    title: str
    env: ContinuousEnvironment
    gain: float
    span: float

    def bins(self, horizon: int) -> int:
        """The theorem's number of cells."""
        env = self.env
        assert env.lipschitz is not None
        assert env.holder is not None
        return bins_for_horizon(horizon, env.n_actions, env.lipschitz, env.holder)


@lru_cache
def environment(name: str) -> ContinuousEnvironment:
    return ENVIRONMENTS[name][1]()


@lru_cache
def problem(name: str) -> Problem:
    found = gf.environments.oracle_gain(environment(name))
    return Problem(name, ENVIRONMENTS[name][0], environment(name), found.gain, found.span)


# ---------------------------------------------------------------------- runs


AGENTS = {"c-scal-plus": "C-SCAL+", "ucrl2b": "UCRL2B, discretised", "scal": "SCAL, discretised", "uccrl": "UCCRL"}
RANDOM = "random play"


@dataclass(frozen=True)
class Task:
    """One run: what is needed to make it again anywhere."""

    environment: str
    agent: str
    scale: float
    """Of the bonus (C-SCAL+) or of the widths of the confidence sets; 1 is the theorem's."""
    bins: int
    """0: without a horizon, the cells of a horizon that doubles."""
    checkpoints: tuple[int, ...]
    seed: int
    gain: float
    span: float

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def make(self) -> Any:
        env = environment(self.environment)
        common: dict[str, Any] = {
            "n_actions": env.n_actions, "reward_min": env.reward_min, "reward_max": env.reward_max, "seed": self.seed,
        }  # fmt: skip
        smooth: dict[str, Any] = {"lipschitz": env.lipschitz, "holder": env.holder}
        part = gf.Partition.uniform(bins=self.bins) if self.bins else None
        if self.agent == "c-scal-plus":
            return gf.CSCALPlus(partition=part, span=self.span, bonus_scale=self.scale, **smooth, **common)
        assert part is not None
        if self.agent == "uccrl":
            return gf.UCCRL(partition=part, span=self.span, width_scale=self.scale, **smooth, **common)
        if self.agent == "scal":
            return gf.Discretized(gf.SCAL, part, span=self.span, width_scale=self.scale, **common)
        if self.agent == "ucrl2b":
            return gf.Discretized(gf.UCRL2B, part, width_scale=self.scale, **common)
        return gf.Discretized("fixed", part, **common)


def regret_of(task: Task) -> list[float]:
    """At the checkpoints, divided by r_max."""
    env, T = environment(task.environment), task.checkpoints[-1]
    run = gf.simulate(task.make(), env, T, seed=task.seed, checkpoints=task.checkpoints, gain=task.gain)
    return [float(x) for x in run.pseudo_regret / env.reward_range]


class Laboratory:
    """Runs tasks on several processes, and remembers what is done."""

    def __init__(self, jobs: int, file: Path | None) -> None:
        self.file = file
        self.pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
        self.known: dict[str, list[float]] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                stored = json.loads(line)
                self.known[stored["task"]] = stored["regret"]

    def run(self, title: str, tasks: Iterable[Task]) -> None:
        """Make the runs that are missing, the long ones first."""
        missing = [task for task in dict.fromkeys(tasks) if task.key not in self.known]
        missing.sort(key=lambda task: (-task.checkpoints[-1], -task.bins))
        if not missing:
            return
        for task in {(t.environment, t.agent, t.bins == 0): t for t in missing}.values():
            regret_of(Task(**{**asdict(task), "checkpoints": (10,)}))  # compiled here, once, and cached
        began = said = time.perf_counter()
        waiting = {self.pool.submit(regret_of, task): task for task in missing}
        for done, future in enumerate(as_completed(waiting), 1):
            self._keep(waiting[future], future.result())
            now = time.perf_counter()
            if now - said > 5.0 or done == len(missing):
                said = now
                steps = sum(task.checkpoints[-1] for f, task in waiting.items() if not f.done())
                say(f"{title}: {done}/{len(missing)} runs, {now - began:.0f} s, {steps / 1e6:.0f} M steps left")

    def _keep(self, task: Task, regret: list[float]) -> None:
        self.known[task.key] = regret
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"task": task.key, "regret": regret}) + "\n")

    def table(self, tasks: Iterable[Task]) -> Array:
        """(runs, checkpoints)."""
        return np.array([self.known[task.key] for task in tasks])


def seeds_of(where: Problem, agent: str, scale: float, bins: int, checkpoints: Iterable[int], seeds: int) -> list[Task]:
    grid = tuple(int(t) for t in checkpoints)
    return [
        Task(where.name, agent, scale, bins, grid, seed, where.gain, where.span) for seed in range(seeds)
    ]  # fmt: skip


def spaced(first: int, last: int, per_decade: int) -> list[int]:
    """Whole numbers from first to last, equally spaced on a logarithmic scale."""
    n = round(math.log10(last / first) * per_decade)
    return [round(first * (last / first) ** (i / n)) for i in range(n + 1)]


# ---------------------------------------------------------------------- text


def number(x: float) -> str:
    return (f"{x:,.0f}" if abs(x) >= 10 else f"{x:.2g}").replace("-", "−")


def measured(values: Array) -> str:
    """Mean ± one standard error."""
    return f"{number(float(values.mean()))} ± {number(error(values))}"


def error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def power(T: float) -> str:
    exponent = math.floor(math.log10(T) + 1e-9)
    digits = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))
    lead = T / 10**exponent
    return f"10{digits}" if abs(lead - 1.0) < 1e-3 else f"{lead:.3g}·10{digits}"


def promise(task: Task) -> str:
    if task.agent == RANDOM:
        return ""
    return "yes" if task.make().guarantee.holds else "no guarantee"


# ---------------------------------------------------------------------- figures


INK, QUIET = "#222222", "#8a8a8a"
COLOURS = {"c-scal-plus": "#0072b2", "ucrl2b": "#d55e00", "scal": "#009e73", "uccrl": "#cc79a7", RANDOM: QUIET}
"""Okabe & Ito's, which the colour-blind can tell apart."""
BY_SCALE = {1.0: "#0072b2", 0.1: "#d55e00", 0.03: "#009e73"}
STYLES: dict[str, Any] = {
    "c-scal-plus": "-",
    "ucrl2b": (0, (5, 1.5)),
    "scal": (0, (3, 1.2, 1, 1.2)),
    "uccrl": (0, (1, 1)),
}


def canvas(rows: int, columns: int, **options: Any) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "legend.fontsize": 8.5, "axes.edgecolor": QUIET,
            "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6",
            "grid.linewidth": 0.6, "axes.axisbelow": True, "xtick.color": INK, "ytick.color": INK, "text.color": INK,
            "axes.labelcolor": INK, "legend.frameon": False, "savefig.dpi": 150, "xtick.minor.size": 0,
            "ytick.minor.size": 0, "xtick.major.size": 3, "ytick.major.size": 3,
        }
    )  # fmt: skip
    return pyplot.subplots(rows, columns, layout="constrained", squeeze=False, **options)


def band(axes: Any, x: Any, runs: Array, colour: str, **style: Any) -> None:
    """The median over runs, and its quartiles as a band."""
    low, middle, high = np.quantile(runs, (0.25, 0.5, 0.75), axis=0)
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x, middle, color=colour, **style)


def save(figure: Any, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"continuous_{name}.png")
    say(f"written: {folder / f'continuous_{name}.png'}")


# ---------------------------------------------------------------------- regret over time


@dataclass(frozen=True)
class Settings:
    quick: bool
    seeds: int
    plot: Path | None


SCALES = (1.0, 0.1, 0.01)
LONGEST = {"riverswim": 10**7, "lqg": 10**7, "replacement": 10**7, "inventory": 10**6}


def regret_part(lab: Laboratory, given: Settings) -> list[str]:
    lines = ["## Regret over time", ""]
    panels: list[tuple[Problem, dict[tuple[str, float], list[Task]]]] = []
    for name, longest in LONGEST.items():
        where, T = problem(name), min(longest, 10**5) if given.quick else longest
        grid = spaced(100, T, 8)
        rows = {
            (agent, scale): seeds_of(where, agent, scale, where.bins(T), grid, given.seeds)
            for scale in SCALES
            for agent in AGENTS
        }
        rows[RANDOM, 1.0] = seeds_of(where, RANDOM, 1.0, where.bins(T), grid, given.seeds)
        lab.run(where.title, [task for tasks in rows.values() for task in tasks])
        panels.append((where, rows))
        lines += regret_table(lab, where, rows)
    if given.plot is not None:
        regret_figure(lab, panels, given.plot)
    return lines


def regret_table(lab: Laboratory, where: Problem, rows: dict[tuple[str, float], list[Task]]) -> list[str]:
    env, first = where.env, next(iter(rows.values()))[0]
    grid, model = first.checkpoints, first.make()
    shown = [i for i, t in enumerate(grid) if t >= 10**4 and abs(math.log10(t) % 1.0) < 1e-9]
    chance = float(lab.table(rows[RANDOM, 1.0])[:, -1].mean())
    lines = [
        f"### {where.title}", "",
        f"{env.n_actions} actions, r_max {env.reward_range:.4g}, L = {env.lipschitz:.4g}, α = {env.holder:g}; from the "
        f"oracle gain {where.gain:.5g} and c = {where.span:.4g}; T = {power(grid[-1])}, n = {first.bins} cells, "
        f"Hölder term {model.model_error / env.reward_range:.3g}·r_max.", "",
        "| agent | scale | guarantee | " + " | ".join(power(grid[i]) for i in shown) + " | of random play |",
        "|---|---|---|" + (len(shown) + 1) * "---|",
    ]  # fmt: skip
    for (agent, scale), tasks in rows.items():
        runs = lab.table(tasks)
        cells = " | ".join(measured(runs[:, i]) for i in shown)
        label = AGENTS.get(agent, agent)
        size = "" if agent == RANDOM else f"{scale:g}"
        lines.append(
            f"| {label} | {size} | {promise(tasks[0])} | {cells} | {percent(float(runs[:, -1].mean()) / chance)} |"
        )
    return [*lines, ""]


def regret_figure(lab: Laboratory, panels: list[Any], folder: Path) -> None:
    shown = (1.0, 0.1)
    figure, axes = canvas(len(shown), len(panels), figsize=(11.5, 5.6), sharex="col", sharey="col")
    for j, (where, rows) in enumerate(panels):
        for i, scale in enumerate(shown):
            ax = axes[i, j]
            grid = next(iter(rows.values()))[0].checkpoints
            chance = np.median(lab.table(rows[RANDOM, 1.0]), axis=0)
            ax.plot(grid, chance, color=QUIET, linewidth=1.0, label=RANDOM)
            for agent, label in AGENTS.items():
                runs = lab.table(rows[agent, scale])
                wide = 2.0 if agent == "c-scal-plus" else 1.4
                band(ax, grid, runs, COLOURS[agent], linewidth=wide, linestyle=STYLES[agent], label=label)
            ax.set(xscale="log", yscale="log")
            if i == 0:
                ax.set_title(f"{where.title}\nn = {rows[RANDOM, 1.0][0].bins} cells, c = {where.span:.3g}")
            else:
                ax.set_xlabel("steps")
        axes[0, j].set_ylim(bottom=10.0)
    axes[0, 0].set_ylabel("theorem's constants\nregret / r_max")
    axes[1, 0].set_ylabel("a tenth of them (no guarantee)\nregret / r_max")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    order = [*range(1, len(labels)), 0]
    figure.legend(
        [handles[k] for k in order], [labels[k] for k in order], loc="outside lower center", ncols=5, handlelength=3.2
    )
    save(figure, folder, "regret")


# ---------------------------------------------------------------------- the number of cells


CELLS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 30, 40, 54, 67, 100, 150, 220, 330)
CELL_SCALES = (1.0, 0.1, 0.03)
MOVING_SCALE = 0.03


def cells_part(lab: Laboratory, given: Settings) -> list[str]:
    T = 10**5 if given.quick else 10**6
    counts = CELLS[::3] if given.quick else CELLS
    Sweep = dict[int, list[Task]]

    def sweep(where: Problem, scale: float, horizon: int) -> Sweep:
        return {n: seeds_of(where, "c-scal-plus", scale, n, [horizon], given.seeds) for n in counts}

    lines = ["## The number of cells", ""]
    by_scale: list[tuple[Problem, dict[float, Sweep]]] = []
    for name in ("inventory", "lqg"):
        where = problem(name)
        sweeps = {scale: sweep(where, scale, T) for scale in CELL_SCALES}
        lab.run(f"cells, {where.title}", [t for s in sweeps.values() for tasks in s.values() for t in tasks])
        by_scale.append((where, sweeps))
        lines += [
            f"### {where.title}, T = {power(T)}: regret of C-SCAL+ by the number of cells", "",
            f"The formula's n is {where.bins(T)}.", "",
            "| n | " + " | ".join(f"scale {s:g}" + ("" if s == 1.0 else " (no guarantee)") for s in sweeps) + " |",
            "|---|" + len(sweeps) * "---|",
        ]  # fmt: skip
        best = {s: min(counts, key=lambda n: float(lab.table(sweeps[s][n]).mean())) for s in sweeps}
        for n in counts:
            texts = [measured(lab.table(sweeps[s][n])[:, 0]) for s in sweeps]
            cells = [f"**{text}**" if n == best[s] else text for s, text in zip(sweeps, texts, strict=True)]
            lines.append(f"| {n} | " + " | ".join(cells) + " |")
        lines.append("")
    where = problem("inventory")
    horizons = (10**4, 10**5) if given.quick else (10**5, 10**6, 10**7)
    moving = {horizon: sweep(where, MOVING_SCALE, horizon) for horizon in horizons}
    lab.run("cells, longer", [t for s in moving.values() for tasks in s.values() for t in tasks])
    lines += [
        f"### {where.title}, scale {MOVING_SCALE:g} (no guarantee), the best n as T grows", "",
        "| T | best n | regret / r_max there | the formula's n | regret / r_max there |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for horizon, found in moving.items():
        best_n = min(counts, key=lambda n: float(lab.table(found[n]).mean()))
        formula = where.bins(horizon)
        there = seeds_of(where, "c-scal-plus", MOVING_SCALE, formula, [horizon], given.seeds)
        lab.run("cells, the formula's n", there)
        lines.append(
            f"| {power(horizon)} | {best_n} | {measured(lab.table(found[best_n])[:, 0])} | {formula} | "
            f"{measured(lab.table(there)[:, 0])} |"
        )
    if given.plot is not None:
        cells_figure(lab, by_scale, where, moving, T, given.plot)
    return [*lines, ""]


def cells_figure(
    lab: Laboratory, by_scale: list[Any], where: Problem, moving: dict[int, Any], T: int, folder: Path
) -> None:
    figure, axes = canvas(1, 3, figsize=(11.5, 3.7), sharey=True)

    def curve(ax: Any, sweep: Any, horizon: int, colour: str, label: str, marker: str) -> None:
        runs = np.concatenate([lab.table(tasks) for tasks in sweep.values()], axis=1) / horizon
        band(ax, list(sweep), runs, colour, linewidth=1.5, marker=marker, markersize=3.5, label=label)

    def mark(ax: Any, n: int, colour: str) -> None:
        ax.axvline(n, color=colour, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)

    markers = ("o", "s", "^")
    for ax, (one, sweeps) in zip(axes[0], by_scale, strict=False):
        mark(ax, one.bins(T), QUIET)
        for (scale, sweep), marker in zip(sweeps.items(), markers, strict=True):
            label = "theorem's constants" if scale == 1.0 else f"scale {scale:g} (no guarantee)"
            curve(ax, sweep, T, BY_SCALE[scale], label, marker)
        ax.set_title(f"{one.title}, T = {power(T)}")
        ax.text(
            one.bins(T) * 1.06, 0.99, "formula", color=INK, fontsize=8, va="top", transform=ax.get_xaxis_transform()
        )
    ax = axes[0, 2]
    for (horizon, sweep), colour, marker in zip(
        moving.items(), ("#56b4e9", "#009e73", "#222222"), markers, strict=False
    ):
        mark(ax, where.bins(horizon), colour)
        curve(ax, sweep, horizon, colour, f"T = {power(horizon)}", marker)
    ax.set_title(f"{where.title}, scale {MOVING_SCALE:g} (no guarantee)")
    for ax in axes[0]:
        ax.set(xscale="log", yscale="log", xlabel="cells n")
        ax.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axes[0, 0].set_ylabel("regret / (r_max · T)")
    for ax, place in ((axes[0, 0], "outside lower left"), (axes[0, 2], "outside lower right")):
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc=place, ncols=3, handlelength=2.6)
    save(figure, folder, "cells")


# ---------------------------------------------------------------------- the growth of regret


SLOPE_SCALES = (1.0, 0.1)


def slope_part(lab: Laboratory, given: Settings) -> list[str]:
    longest = {1.0: 10**5, 0.1: 10**5} if given.quick else {1.0: 32 * 10**6, 0.1: 10**7}
    doubling_to = 10**5 if given.quick else 2**23
    lines = [
        "## The growth of regret", "",
        f"Slope of ln regret against ln T, mean over seeds ± one standard error; the theorem's exponent is "
        f"{regret_exponent(1.0):g}.", "",
        "| environment | scale | guarantee | n | horizons | slope, all | slope, last decade | of random play, last |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    panels = []
    for name in LONGEST:
        where = problem(name)
        curves: dict[tuple[float, bool], tuple[list[int], Array]] = {}
        every: list[Task] = []
        plans: dict[tuple[float, bool], list[list[Task]]] = {}
        chance = seeds_of(where, RANDOM, 1.0, 10, [10**5], given.seeds)
        every += chance
        for scale in SLOPE_SCALES:
            horizons = [T for T in spaced(10**3 if given.quick else 10**4, 10**8, 2) if longest[scale] >= T]
            plans[scale, False] = [
                seeds_of(where, "c-scal-plus", scale, where.bins(T), [T], given.seeds) for T in horizons
            ]
            grid = [2**k for k in range(10, 30) if 2**k <= doubling_to]  # the ends of its stages
            plans[scale, True] = [seeds_of(where, "c-scal-plus", scale, 0, grid, given.seeds)]
            every += [t for tasks in (*plans[scale, False], *plans[scale, True]) for t in tasks]
        lab.run(f"slope, {where.title}", every)
        per_step = float(lab.table(chance)[:, -1].mean()) / 10**5
        for (scale, doubling), groups in plans.items():
            T = list(groups[0][0].checkpoints) if doubling else [tasks[0].checkpoints[0] for tasks in groups]
            runs = np.concatenate([lab.table(tasks) for tasks in groups], axis=1)
            curves[scale, doubling] = T, runs
            first = groups[0][0]
            shown = "doubling" if doubling else f"{groups[0][0].bins} … {groups[-1][0].bins}"
            late = [i for i, t in enumerate(T) if t >= 0.99 * T[-1] / (8 if doubling else 10)]
            usual = [i for i, t in enumerate(T) if t >= (10**3 if given.quick else 10**4)]
            lines.append(
                f"| {where.title} | {scale:g} | {promise(first)} | {shown} | {power(T[usual[0]])} … {power(T[-1])} | "
                f"{slope(T, runs, usual)} | {slope(T, runs, late)} | "
                f"{percent(float(runs[:, -1].mean()) / (per_step * T[-1]))} |"
            )
        panels.append((where, curves, per_step))
    if given.plot is not None:
        slope_figure(panels, given.plot)
    return [*lines, "", "The last decade of doubling runs is a factor of 8: three stages.", ""]


def slope(T: list[int], runs: Array, chosen: list[int]) -> str:
    """Least squares of ln regret on ln T for each seed; their mean and its standard error."""
    if np.any(runs[:, chosen] <= 0.0):
        return "regret not above 0"
    x = np.log(np.array(T, dtype=np.float64)[chosen])
    found = np.array([np.polyfit(x, np.log(run[chosen]), 1)[0] for run in runs])
    return f"{found.mean():.3f} ± {error(found):.3f}"


def slope_figure(panels: list[Any], folder: Path) -> None:
    figure, axes = canvas(1, len(panels), figsize=(11.5, 3.7))
    for ax, (where, curves, per_step) in zip(axes[0], panels, strict=True):
        ends = np.array([curves[1.0, False][0][0], curves[1.0, False][0][-1]], dtype=np.float64)
        ax.plot(ends, per_step * ends, color=QUIET, linewidth=1.0, label=RANDOM)
        for (scale, doubling), (T, runs) in curves.items():
            keep = [i for i, t in enumerate(T) if t >= ends[0] / 1.3]
            name = "theorem's constants" if scale == 1.0 else f"scale {scale:g} (no guarantee)"
            name += ", one doubling run" if doubling else ", n for each T"
            style: dict[str, Any] = {"linestyle": (0, (1, 1)), "linewidth": 1.6} if doubling else {"marker": "o"}
            if not doubling:
                style |= {"markersize": 3.5, "linewidth": 1.6}
            band(ax, np.array(T)[keep], runs[:, keep], BY_SCALE[scale], label=name, **style)
        T, runs = curves[0.1, False]
        theorem = regret_exponent(1.0)
        x = np.array([T[0], T[-1]], dtype=np.float64)
        start = 0.35 * float(np.median(runs[:, -1])) / x[1] ** theorem
        ax.plot(x, start * x**theorem, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), label=f"slope {theorem:g}")
        ax.set(xscale="log", yscale="log", xlabel="steps T", title=where.title)
    axes[0, 0].set_ylabel("regret / r_max")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.2)
    save(figure, folder, "slope")


# ---------------------------------------------------------------------- the command


PARTS: dict[str, Callable[[Laboratory, Settings], list[str]]] = {
    "regret": regret_part,
    "cells": cells_part,
    "slope": slope_part,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="C-SCAL+ and its rivals in continuous environments.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--seeds", type=int, default=None, help="runs per number, at least 2 (default 8, quick 4)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--quick", action="store_true", help="horizons up to 10⁵: a minute")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw continuous_*.png there")
    add_record_options(parser)
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep finished runs there and use those in it")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    seeds = (4 if given.quick else 8) if given.seeds is None else given.seeds
    if given.quick and given.record:
        parser.error("--record needs the whole measurement, not --quick")
    if seeds < 2 or given.jobs < 1:
        parser.error("a standard error needs at least 2 seeds, and the runs at least 1 job")
    lab = Laboratory(given.jobs, given.results)
    began = time.perf_counter()
    for name in given.parts or PARTS:
        title, *part = PARTS[name](lab, Settings(given.quick, seeds, given.plot))
        print("\n".join([title, *part]), flush=True)
        if given.record:
            kept = record_document("continuous_study", name, "\n".join(part), timed=False)
            say(f"recorded in {kept}; now: make tables")
    say(f"done in {time.perf_counter() - began:.0f} s, {seeds} seeds")


if __name__ == "__main__":
    main()
