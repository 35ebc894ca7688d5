"""What every agent of the field loses on thirteen problems.

    python benchmarks/field.py [PROBLEM ...] [--jobs N] [--seeds N] [--agents LABEL,LABEL] [--quick] [--record]

Expected regret (the sum of the optimality gaps of the pairs played) at 10⁵, 10⁶ and 10⁷ steps of the same runs: mean,
standard error, median and 90 % quantile over seeds. Agents that need a span are given the true one, and those that need
a horizon the longest of their row. --record keeps what is found beside what was recorded of other problems and agents;
it is written after every row, so that a run that is stopped loses one row at the most.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.conditions import guarantee_in
from gainful.problems import CallCentre, Stockroom

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.learning_table import Contestant, Problem, problem
from benchmarks.records import record, recorded

say = partial(print, file=sys.stderr, flush=True)
make = gf.environments

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "riverswim-6": lambda: problem("RiverSwim-6, Osband's", make.riverswim(6)),
    "riverswim-25": lambda: problem("RiverSwim-25, Osband's", make.riverswim(25)),
    "maillard-6": lambda: problem("RiverSwim-6, Maillard's", make.riverswim_maillard(6)),
    "maillard-25": lambda: problem("RiverSwim-25, Maillard's", make.riverswim_maillard(25)),
    "bourel-6": lambda: problem("RiverSwim-6, Bourel's", make.riverswim_bourel(6)),
    "bourel-25": lambda: problem("RiverSwim-25, Bourel's", make.riverswim_bourel(25)),
    "ergodic-6": lambda: problem("ergodic RiverSwim-6", make.riverswim_ergodic(6)),
    "garnet-20": lambda: problem("Garnet(20, 3, 5)", make.garnet(20, 3, 5, instance=7, reward_law="bernoulli")),
    "garnet-50": lambda: problem("Garnet(50, 3, 5)", make.garnet(50, 3, 5, instance=3)),
    "four-rooms": lambda: problem("four rooms", make.four_rooms()),
    "unreachable": lambda: problem("unreachable states", make.weakly_communicating_toy()),
    "call-centre": lambda: problem("call centre", CallCentre().model, 1e-8),
    "stockroom": lambda: problem("stockroom", Stockroom().model, 1e-8),
}

HORIZONS = [10**5, 10**6, 10**7]
CHUNK = 5
"""Seeds of one task."""


@dataclass(frozen=True)
class Row:
    """An agent of the table."""

    label: str
    name: str
    """In the registry."""
    options: dict[str, Any] = field(default_factory=dict)
    told: str = "nothing"
    """What it is told beyond the range of the rewards: c, the horizon, or c only where states are unreachable."""
    longest: Mapping[str, int] = field(default_factory=dict)
    """The longest runs where longer ones take hours, by problem; with "" for all other problems."""

    def horizons(self, name: str) -> list[int]:
        """The steps after which it is looked at in this problem."""
        longest = self.longest.get(name, self.longest.get("", HORIZONS[-1]))
        return [T for T in HORIZONS if longest >= T]


C_IF_NEEDED = "c, where states are unreachable"
ROWS = [
    Row("KL-SCAL+", "kl-scal-plus", told=C_IF_NEEDED),
    Row("KL-SCAL+, vanishing", "kl-scal-plus", {"episodes": "vanishing"}, C_IF_NEEDED),
    Row(
        "KL-SCAL+, vanishing, variance",
        "kl-scal-plus",
        {"episodes": "vanishing", "reward_bound": "variance"},
        C_IF_NEEDED,
    ),
    Row("UCRL3", "ucrl3"),
    Row("UCRL3, as published", "ucrl3", {"published_code": True}, longest={"unreachable": 10**5}),
    Row("Balanced KL-SCAL+", "balanced-kl-scal-plus"),
    Row("PMEVI-DT on UCRL2B", "pmevi-dt", {"base": "ucrl2b"}, "the horizon", {"four-rooms": 10**5}),
    Row("PMEVI-DT on KL-SCAL+", "pmevi-dt", {"base": "kl-scal-plus"}, "the horizon", {"four-rooms": 10**5}),
    Row("KL-UCRL", "kl-ucrl", told="the horizon"),
    Row("UCRL2B", "ucrl2b"),
    Row("UCRL2", "ucrl2"),
    Row("TUCRL", "tucrl"),
    Row("SCAL+, sharp", "scal-plus", {"bonus": "sharp"}, "c"),
    Row("SCAL+, the paper's bonus", "scal-plus", told="c"),
    Row("PSRL", "psrl"),
    Row("IMED-RL", "imed-rl", longest={"": 10**6, "four-rooms": 10**5}),
]


@cache
def built(name: str) -> Problem:
    return PROBLEMS[name]()


@cache
def communicating(name: str) -> bool:
    return gf.structure(built(name).mdp) == "communicating"


def contestant(row: Row, name: str) -> Contestant:
    """The agent with what it is told of this problem."""
    given = dict(row.options)
    if row.told == "c" or (row.told == C_IF_NEEDED and not communicating(name)):
        given["span"] = built(name).best.span
    if row.told == "the horizon":
        given["horizon"] = row.horizons(name)[-1]
    return Contestant(row.label, row.name, given, row.horizons(name)[-1])


def has_theorem(row: Row, name: str) -> bool:
    """Whether the agent has a guarantee and the problem meets its conditions."""
    mdp, best = built(name).mdp, built(name).best
    return guarantee_in(contestant(row, name).make(mdp, 0), mdp, best.span).holds


@dataclass(frozen=True)
class Lost:
    """What some seeds lost, at each horizon."""

    name: str
    row: Row
    seeds: list[int]
    losses: NDArray[np.float64]
    """(horizons, seeds)"""
    seconds: float
    guaranteed: bool


def lives(name: str, row: Row, seeds: list[int], horizons: list[int]) -> Lost:
    """Run one agent on one problem."""
    one, mdp = contestant(row, name), built(name).mdp
    gf.simulate(one.make(mdp, 0), mdp, 1000, seed=0)  # compiles, or loads
    began = time.process_time()
    runs = [gf.simulate(one.make(mdp, seed), mdp, horizons[-1], seed=seed, checkpoints=horizons) for seed in seeds]
    seconds = (time.process_time() - began) / len(seeds)
    losses = np.array([run.expected_regret for run in runs]).T
    return Lost(name, row, seeds, losses, seconds, has_theorem(row, name))


def summary(parts: list[Lost], horizons: list[int]) -> dict[str, Any]:
    """A row of the table, from all its tasks."""
    losses = np.concatenate([part.losses for part in sorted(parts, key=lambda part: part.seeds)], axis=1)
    shown = {
        str(T): {
            "mean": float(lost.mean()),
            "error": float(lost.std(ddof=1) / math.sqrt(lost.size)),
            "median": float(np.median(lost)),
            "q90": float(np.quantile(lost, 0.9)),
            "largest": float(lost.max()),
        }
        for T, lost in zip(horizons, losses, strict=True)
    }
    return {
        "told": parts[0].row.told,
        "theorem": parts[0].guaranteed,
        "seeds": losses.shape[1],
        "seconds": float(np.mean([part.seconds for part in parts])),
        "lost": shown,
    }


def tasks(
    names: list[str], rows: list[Row], seeds: int, shorter: int
) -> Iterator[tuple[str, Row, list[int], list[int]]]:
    """Row by row, the long ones last."""
    for row in sorted(rows, key=lambda row: row.name == "imed-rl"):
        for name in names:
            horizons = [T // shorter for T in row.horizons(name)]
            for first in range(0, seeds, CHUNK):
                yield name, row, list(range(first, min(first + CHUNK, seeds))), horizons


def kept() -> dict[str, Any]:
    """What was recorded before."""
    try:
        found: dict[str, Any] = recorded("field_regret")["values"]
    except FileNotFoundError:
        return {}
    return found


def in_order(found: dict[str, Any]) -> dict[str, Any]:
    """Problems and agents in the order of this file."""
    titles, labels = [built(name).title for name in PROBLEMS], [row.label for row in ROWS]
    return {
        title: {label: found[title][label] for label in labels if label in found[title]}
        for title in titles
        if title in found
    }


def compete(names: list[str], rows: list[Row], seeds: int, shorter: int, jobs: int, keep: bool) -> None:
    waiting: dict[tuple[str, str], list[Lost]] = {}
    found = kept()
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures: list[Future[Lost]] = [pool.submit(lives, *task) for task in tasks(names, rows, seeds, shorter)]
        for number, future in enumerate(as_completed(futures), 1):
            part = future.result()
            parts = waiting.setdefault((part.name, part.row.label), [])
            parts.append(part)
            if sum(len(one.seeds) for one in parts) < seeds:
                continue
            row = summary(parts, [T // shorter for T in part.row.horizons(part.name)])
            found.setdefault(built(part.name).title, {})[part.row.label] = row
            means = ", ".join(f"{lost['mean']:,.0f} ({lost['median']:,.0f})" for lost in row["lost"].values())
            where = f"{number}/{len(futures)} {built(part.name).title}, {part.row.label}"
            say(f"{where}: {means}; {row['seconds']:.1f} s a run")
            if keep:
                record("field", "regret", in_order(found), timed=False, command="python benchmarks/field.py --record")


def main() -> None:
    parser = argparse.ArgumentParser(description="What every agent of the field loses on thirteen problems.")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=f"some of {', '.join(PROBLEMS)}; default all")
    parser.add_argument("--agents", default="", help="labels separated by semicolons (default all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--seeds", type=int, default=30, help="runs per row, at least 2 (default 30)")
    parser.add_argument("--quick", action="store_true", help="3 seeds and a hundredth of the steps")
    parser.add_argument("--record", action="store_true", help="keep what is found in benchmarks/measured")
    given = parser.parse_args()
    unknown = [name for name in given.problems if name not in PROBLEMS]
    if unknown or given.seeds < 2:
        parser.error(f"choose problems from {', '.join(PROBLEMS)}, and at least 2 seeds")
    if given.quick and given.record:
        parser.error("--record needs the whole measurement, not --quick")
    labels = [label.strip() for label in given.agents.split(";") if label.strip()]
    wrong = [label for label in labels if label not in {row.label for row in ROWS}]
    if wrong:
        parser.error(f"unknown agent {wrong[0]!r}; choose from {'; '.join(row.label for row in ROWS)}")
    rows = [row for row in ROWS if not labels or row.label in labels]
    seeds, shorter = (3, 100) if given.quick else (given.seeds, 1)
    compete(given.problems or list(PROBLEMS), rows, seeds, shorter, given.jobs, given.record)


if __name__ == "__main__":
    main()
