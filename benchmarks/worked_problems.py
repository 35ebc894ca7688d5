"""Learners in four worked problems, in euros per day, against rules of thumb and the optimum.

    python benchmarks/worked_problems.py [call-centre] [stockroom] [maintenance] [two-servers] [--quick | --record]

The tables are printed to stdout. With --record they are also kept in benchmarks/measured, from where `make tables`
writes them into docs/problems/*.md, and the figures are drawn to docs/images. --quick runs 3 seeds for a hundredth of
the years and cannot be combined with --record. A year has 365 business days. Learning is simulated on the exact model
(`gf.simulate_many`), which has the same law as the simulated system. The last lines of each problem come from the
simulator's own loop.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.problems import CallCentre, Maintenance, Problem, Stockroom, TwoServers, live, live_together

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, record_document

DOCS = Path(__file__).parent.parent / "docs"
YEAR = 365
PERIODS = [("week", 7), ("month", 30), ("year", YEAR), *((f"{10**k:,} years", 10**k * YEAR) for k in range(1, 7))]
say = partial(print, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Contestant:
    name: str
    short: str
    """For the picture."""
    agent: str
    settings: dict[str, Any]
    colour: str

    def make(self, problem: Problem, seed: int, horizon: int) -> EpisodicAgent:
        told = {"horizon": horizon} if self.agent == "kl-ucrl" else {}
        return problem.learner(self.agent, seed=seed, **self.settings, **told)


KL_SCAL_PLUS = Contestant("KL-SCAL+", "KL-SCAL+", "kl-scal-plus", {}, "#d55e00")
PSRL = Contestant("PSRL, no guarantee", "PSRL", "psrl", {}, "#cc79a7")
PAPER = Contestant("SCAL+, the paper's constants", "SCAL+, the paper", "scal-plus", {}, "#0072b2")
CONTESTANTS = [
    KL_SCAL_PLUS,
    PSRL,
    Contestant("KL-UCRL, told the horizon", "KL-UCRL", "kl-ucrl", {}, "#e69f00"),
    PAPER,
    Contestant("SCAL+, sharp constants", "SCAL+, sharp", "scal-plus", {"bonus": "sharp"}, "#56b4e9"),
    Contestant(
        "SCAL+, bonus × 0.01, no guarantee", "SCAL+, bonus × 0.01", "scal-plus", {"bonus_scale": 0.01}, "#999999"
    ),
]


@dataclass(frozen=True)
class Case:
    title: str
    page: str
    problem: Problem
    years: int
    digits: int
    rules: tuple[str, ...]
    """Its rules of thumb in a word or two, for the picture."""
    own_loop: Callable[[Case], list[str]]


@dataclass(frozen=True)
class Lives:
    """Several seeds of one learner; arrays are (seeds, checkpoints)."""

    who: Contestant
    days: NDArray[np.float64]
    money: NDArray[np.float64]
    """Euros earned in total."""
    expected: NDArray[np.float64]
    """The same with mean rewards: g* t - pseudo-regret, which has less luck in it."""

    def first(self, days: int) -> NDArray[np.float64]:
        """Euros per day up to that day, by seed."""
        at = int(np.argmin(np.abs(self.days - days)))
        return np.asarray(self.money[:, at] / self.days[at])

    def since(self, days: float) -> NDArray[np.float64]:
        """Euros per day from that day to the end, by seed."""
        at = int(np.argmin(np.abs(self.days - days)))
        return np.asarray((self.expected[:, -1] - self.expected[:, at]) / (self.days[-1] - self.days[at]))

    def windows(self, per_decade: int = 4) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of consecutive windows, and the euros per day in each, mean over seeds."""
        last = np.log10(self.days[-1])
        ends = 10 ** np.arange(last, -1e-9, -1 / per_decade)  # all alike on a logarithmic scale, from the end back
        grid = np.unique(np.abs(np.log(self.days)[:, None] - np.log(ends)).argmin(axis=0))
        total = self.expected.mean(axis=0)[grid]
        return self.days[grid][1:], np.diff(total) / np.diff(self.days[grid])

    def ahead_in_total(self, rule: float) -> NDArray[np.float64]:
        """Return, by seed, the day from which the total stays above that of the rule; inf if there is none."""
        behind = self.money <= rule * self.days
        last = np.where(behind.any(axis=1), behind.shape[1] - 1 - np.argmax(behind[:, ::-1], axis=1), -1)
        after = np.append(self.days, np.inf)
        return np.asarray(after[last + 1])

    def ahead_per_day(self, rule: float) -> float:
        """The beginning of the first window from which on every window earns more than the rule."""
        ends, rates = self.windows()
        behind = np.flatnonzero(rates <= rule)
        if not behind.size:
            return 1.0
        return float(ends[behind[-1]]) if behind[-1] + 1 < ends.size else np.inf


def learn(case: Case, who: Contestant, seeds: int, years: float) -> Lives:
    problem = case.problem
    per_day = problem.steps_per_day
    n_days = int(years * YEAR)
    days = np.unique(np.append(np.rint(10 ** np.arange(0, np.log10(n_days), 1 / 40)), [d for _, d in PERIODS]))
    days = np.append(days[days < n_days], n_days)
    steps = np.rint(days * per_day).astype(np.int64)
    horizon = int(steps[-1])
    runs = gf.simulate_many(
        lambda seed: who.make(problem, seed, horizon), problem.model, horizon, range(seeds),
        checkpoints=steps, threads=2,
    )  # fmt: skip
    if who.make(problem, 0, horizon).guarantee.holds == ("no guarantee" in who.name):
        sys.exit(f"{who.name}: its name does not say what is guaranteed")
    real_days = runs[0].steps / per_day
    expected = np.array([run.gain * run.steps - run.pseudo_regret for run in runs])
    return Lives(who, real_days, np.array([run.rewards for run in runs]), expected)


# ---------------------------------------------------------------------- one run through the simulator's own loop


def single(case: Case, ends: list[int]) -> list[str]:
    """One learner, one simulated system, the days up to each of `ends`."""
    agent, system = case.problem.learner(seed=1), case.problem.system(seed=1)
    parts, began = [], 0
    for end in ends:
        money = live(agent, system, end - began).money_per_day
        parts.append(f"days {began + 1} to {end}: {euros(money, case.digits)}")
        began = end
    return [
        f"**The simulator's own loop**, one run (KL-SCAL+, seed 1, {agent.t:,} decisions), euros per day: "
        + "; ".join(parts) + "."
    ]  # fmt: skip


def fleet(case: Case, size: int, what: str, ends: list[int]) -> list[str]:
    """One learner for several systems, three times; ends in years."""
    earned = np.empty((3, len(ends)))
    for run in range(3):
        agent = case.problem.learner(seed=run)
        systems = [case.problem.system(size * run + i) for i in range(size)]
        for j, years in enumerate(np.diff([0, *ends])):
            earned[run, j] = live_together(agent, systems, int(years) * YEAR).money_per_day
    parts = []
    for j, (began, end) in enumerate(zip([0, *ends], ends, strict=False)):
        label = f"year {end}" if end == began + 1 else f"years {began + 1} to {end}"
        low, high = (euros(float(x), case.digits) for x in (earned[:, j].min(), earned[:, j].max()))
        parts.append(f"{label}: {euros(float(earned[:, j].mean()), case.digits)} ({low} … {high})")
    return [
        f"**{size} {what} that share one learner**, through the simulator's own loop (KL-SCAL+; mean, lowest "
        f"and highest of 3 runs; no theorem covers sharing), euros per day per {what[:-1]}: " + "; ".join(parts) + "."
    ]


CASES: dict[str, Case] = {
    "call-centre": Case(
        "Call centre", "call_centre", CallCentre(), 100, 0,
        ("pays for its own wait", "while a line is free", "two minutes at most"),
        partial(single, ends=[7, 30, 90]),
    ),
    "stockroom": Case(
        "Stockroom", "stockroom", Stockroom(), 10_000, 2, ("textbook (s, S)", "best (s, S)", "keep it full"),
        partial(fleet, size=30, what="shops", ends=[1, 2, 5, 10]),
    ),
    "maintenance": Case(
        "Maintenance", "maintenance", Maintenance(), 10_000, 0,
        ("best fixed interval", "until it breaks", "first sign of wear"),
        partial(fleet, size=50, what="machines", ends=[1, 2, 5, 10]),
    ),
    "two-servers": Case(
        "Two servers", "two_servers", TwoServers(), 100, 1,
        ("shortest queue", "packed soonest", "all to the fast line"),
        partial(fleet, size=20, what="depots", ends=[1, 2]),
    ),
}  # fmt: skip


# ---------------------------------------------------------------------- text


def euros(x: float, digits: int) -> str:
    return f"{x:,.{digits}f}".replace("-", "−")


def span_of_time(days: float, longest: float) -> str:
    if not np.isfinite(days):
        return f"not in {longest / YEAR:,.0f} years"
    if days <= 1.0:
        return "day 1"
    return f"day {days:,.0f}" if days < 2 * YEAR else f"year {days / YEAR:,.0f}"


def tables(case: Case, lives: list[Lives], seeds: int) -> list[str]:
    problem, d = case.problem, case.digits
    best, longest = problem.best_money_per_day, lives[0].days[-1]
    lines = [
        f"Optimum: **{euros(best, 2)}** euros per day. sp(h*) = {problem.optimum.span:,.1f}, "
        f"c = {problem.c:,.1f}, {problem.c / problem.optimum.span:.2f} times as much. {problem.model.n_states} states, "
        f"{problem.model.n_pairs} pairs of state and action, {problem.steps_per_day:,.0f} "
        f"decision{'s' if problem.steps_per_day > 1 else ''} per day.",
        "", "| | rule of thumb | euros per day | less than the optimum |", "|---|---|---|---|",
    ]  # fmt: skip
    for letter, rule in zip("ABCDEFG", problem.rules, strict=False):
        short = best - rule.money_per_day
        lines.append(
            f"| {letter} | {rule.name} | {euros(rule.money_per_day, 2)} | "
            f"{euros(max(short, 0.0), 2)} ({max(100 * short / abs(best), 0.0):.1f} %) |"
        )
    periods = [(name, days) for name, days in PERIODS if days <= longest + 0.5]
    lines += [
        "", f"Euros per day, on average over the first week, month, …; mean of {seeds} seeds ± one standard error. "
        f"*Late*: from year {longest / YEAR / 10:,.0f} to year {longest / YEAR:,.0f}.", "",
        "| | " + " | ".join(name for name, _ in periods) + " | late |", "|---|" + "---|" * (len(periods) + 1),
        f"| optimum | {' | '.join([euros(best, d)] * (len(periods) + 1))} |",
        f"| rule A | {' | '.join([euros(problem.rules[0].money_per_day, d)] * (len(periods) + 1))} |",
    ]  # fmt: skip
    for one in lives:
        cells = [one.first(days) for _, days in periods] + [one.since(longest / 10)]
        shown = [f"{euros(x.mean(), d)} ± {euros(x.std(ddof=1) / np.sqrt(seeds), d)}" for x in cells]
        lines.append(f"| {one.who.name} | {' | '.join(shown)} |")
    letters = "ABCDEFG"[: len(problem.rules)]
    strict = [
        (letter, rule.money_per_day)
        for letter, rule in zip(letters, problem.rules, strict=True)
        if rule.money_per_day < best - 1e-4
    ]
    lines += [
        "", "When the learner gets ahead of a rule and stays ahead: in euros per day (mean over seeds, in windows of a "
        "quarter of a decade) and in total since the first day (median over seeds; the slowest seed in brackets).", "",
        "| | more per day than A | " + " | ".join(f"more in total than {letter}" for letter, _ in strict) + " |",
        "|---|" + "---|" * (len(strict) + 1),
    ]  # fmt: skip
    for one in lives:
        cells_ = [span_of_time(one.ahead_per_day(strict[0][1]), longest)]
        cells_ += [catching_up(one, money) for _, money in strict]
        lines.append(f"| {one.who.name} | {' | '.join(cells_)} |")
    return [*lines, ""]


def catching_up(one: Lives, rule: float) -> str:
    """The day from which on the total is ahead: the median seed, and the slowest."""
    at, longest = np.sort(one.ahead_in_total(rule)), float(one.days[-1])
    middle = float(at[at.size // 2])  # of an even number the later one
    usual, slowest = span_of_time(middle, longest), span_of_time(float(at[-1]), longest)
    return usual if usual == slowest else f"{usual} ({slowest})"


def summary(kept: list[tuple[Case, list[Lives]]]) -> list[str]:
    """One line per problem, for the index: the first ten years, and when each learner has caught up with rule A."""
    shown = [KL_SCAL_PLUS, PSRL, PAPER]
    names = [who.name for who in shown]
    lines = [
        "Euros per day over the first ten years:", "",
        "| problem | rule of thumb (A) | earns | optimum | " + " | ".join(names) + " |", "|---|---|" + 5 * "---:|",
    ]  # fmt: skip
    ahead = ["Ahead of rule A in total:", "", "| problem | " + " | ".join(names) + " |", "|---|" + 3 * "---|"]
    for case, lives in kept:
        problem, rule, d = case.problem, case.problem.rules[0], case.digits
        found = [next(one for one in lives if one.who is who) for who in shown]
        page = f"[{case.title}]({case.page}.md)"
        earned = [euros(one.first(10 * YEAR).mean(), d) for one in found]
        lines.append(
            f"| {page} | {rule.name} | {euros(rule.money_per_day, d)} | {euros(problem.best_money_per_day, d)} | "
            f"{' | '.join(earned)} |"
        )
        ahead.append(f"| {page} | {' | '.join(catching_up(one, rule.money_per_day) for one in found)} |")
    return [*lines, "", *ahead, ""]


# ---------------------------------------------------------------------- picture


def picture(case: Case, lives: list[Lives]) -> Figure:
    problem = case.problem
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    ax: Any = figure.add_subplot(1, 1, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)
    best = problem.best_money_per_day
    ax.axhline(best, color="#009e73", linewidth=1.6, linestyle="--", label="optimum")
    styles = [(0, (5, 2)), (0, (1, 1.5)), (0, (3, 2, 1, 2))]
    shown = [rule.money_per_day for rule in problem.rules if rule.money_per_day < best - 1e-3 * abs(best)]
    for letter, rule, word, style in zip("ABC", problem.rules, case.rules, styles, strict=False):
        colour = "#222222" if letter == "A" else "#888888"
        if rule.money_per_day in shown:
            label = f"{letter}: {word}"
            ax.axhline(rule.money_per_day, color=colour, linewidth=1.4, linestyle=style, label=label)
    low = shown[:3]
    for one in lives:
        ends, rates = one.windows()
        keep = ends >= 7
        ax.plot(ends[keep] / YEAR, rates[keep], color=one.who.colour, linewidth=2, label=one.who.short)
        low.append(float(np.quantile(rates[keep], 0.1)))
    room = best - min(low)
    ax.set_ylim(min(low) - 0.1 * room, best + 0.12 * room)
    ax.set_xscale("log")
    longest = lives[0].days[-1]
    marks = [("1 month", 30), ("1 year", YEAR), *((f"{10**k:,}", 10**k * YEAR) for k in range(1, 7))]
    ax.set_xticks([days / YEAR for _, days in marks if days <= longest], [m for m, days in marks if days <= longest])
    ax.xaxis.set_minor_formatter("")
    ax.set_xlabel("time in business (from 10 on: years)", fontsize=10)
    ax.set_ylabel("euros per day", fontsize=10)
    ax.tick_params(labelsize=9)
    ax.set_title(case.title, fontsize=11, loc="left")
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="Learners in four worked problems, in euros per day.")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=f"some of {', '.join(CASES)}; default all")
    parser.add_argument("--quick", action="store_true", help="3 seeds, a hundredth of the years")
    add_record_options(parser)
    given = parser.parse_args()
    unknown = [name for name in given.problems if name not in CASES]
    if unknown:
        parser.error(f"unknown problem {unknown[0]!r}; choose from {', '.join(CASES)}")
    if given.quick and given.record:
        parser.error("--record needs the whole measurement, not --quick")
    seeds = 3 if given.quick else 8
    began = time.perf_counter()
    kept: list[tuple[Case, list[Lives]]] = []
    for name in given.problems or CASES:
        case = CASES[name]
        lives = []
        for who in CONTESTANTS:
            start = time.perf_counter()
            lives.append(learn(case, who, seeds, case.years / 100 if given.quick else case.years))
            say(f"{case.title}, {who.name}: {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        loop = case.own_loop(case)
        say(f"{case.title}, the simulator's own loop: {time.perf_counter() - start:.1f} s")
        kept.append((case, lives))
        lines = [*tables(case, lives, seeds), *loop, ""]
        print("\n".join([f"### {case.title}", "", *lines]), flush=True)
        if given.record:
            command = f"python benchmarks/worked_problems.py {name} --record"
            kept_in = record_document("worked_problems", case.page, "\n".join(lines), timed=False, command=command)
            image = DOCS / "images" / f"problem_{case.page}.png"
            picture(case, lives).savefig(image, dpi=130, facecolor="white")
            say(f"recorded in {kept_in}, drawn: docs/images/{image.name}; now: make tables")
    print("\n".join(["### Summary", "", *summary(kept)]))
    if given.record and len(kept) == len(CASES):
        command = "python benchmarks/worked_problems.py --record"
        record_document("worked_problems", "summary", "\n".join(summary(kept)), timed=False, command=command)
    say(f"done in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
