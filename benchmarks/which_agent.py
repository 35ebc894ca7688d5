"""What each agent loses on small and large problems, on four businesses and on cells: docs/which_agent.md.

    python benchmarks/which_agent.py [--jobs N] [--seeds N] [--quick] [--docs]

Every number is an expected regret (the sum of the optimality gaps of the pairs played), a mean over seeds ± one
standard error; on continuous states, where gaps are unknown, it is the pseudo-regret. Agents that need c are given the
span of the true model, which only an oracle knows, and in the worked problems the bound from business facts. The tables
go to stdout, progress to stderr. --docs writes the tables into docs/which_agent.md, between the "measured" marks.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import datetime
import math
import re
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful.experiments.agent_factory import AgentFactory, own_span
from gainful.problems import CallCentre, Maintenance, Problem, Stockroom, TwoServers

PAGE = Path(__file__).parent.parent / "docs" / "which_agent.md"
TEN_YEARS = 3650
CELLS = 20
say = partial(print, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------- problems


@dataclass(frozen=True)
class Case:
    title: str
    environment: Any
    steps: int
    span: float
    """c for the agents that need one, and for all where some states cannot be reached from others."""
    communicating: bool = True
    digits: int = 0


def case(title: str, mdp: gf.MDP, steps: int) -> Case:
    return Case(title, mdp, steps, gf.solve(mdp).span, gf.structure(mdp) == "communicating")


def problems(shorter: int) -> list[Case]:
    """The finite problems; horizons are divided by `shorter`."""
    make = gf.environments
    return [
        case("RiverSwim-6, 10⁵", make.riverswim(6), 10**5 // shorter),
        case("Toy3D(0.1), 10⁵", make.toy3d(0.1), 10**5 // shorter),
        case("Garnet(20, 3, 5), 10⁵", make.garnet(20, 3, 5, instance=7, reward_law="bernoulli"), 10**5 // shorter),
        case("RiverSwim-25, Bourel's, 10⁶", make.riverswim_bourel(25), 10**6 // shorter),
        case("four rooms, 10⁶", make.four_rooms(), 10**6 // shorter),
        case("Garnet(50, 3, 5), 10⁶", make.garnet(50, 3, 5, instance=3), 10**6 // shorter),
        case("unreachable states, 10⁵", make.weakly_communicating_toy(), 10**5 // shorter),
    ]


def businesses(shorter: int) -> list[Case]:
    """The worked problems, for ten years."""
    made: dict[str, Problem] = {
        "call centre": CallCentre(),
        "stockroom": Stockroom(),
        "maintenance": Maintenance(),
        "two servers": TwoServers(),
    }
    return [Case(name, one.model, round(TEN_YEARS * one.steps_per_day / shorter), one.c) for name, one in made.items()]


def on_cells(shorter: int) -> list[Case]:
    made = {"LQG": gf.environments.lqg(), "replacement": gf.environments.replacement()}
    return [Case(f"{name}, 10⁶", env, 10**6 // shorter, own_span(env) or 0.0) for name, env in made.items()]


# ---------------------------------------------------------------------- agents


@dataclass(frozen=True)
class Contestant:
    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    told: str = "nothing"
    """What it is told beyond the range of the rewards: c, the horizon, or c only where states are unreachable."""
    theorem: str = "yes"
    """What the column says if the guarantee holds."""
    seeds: int = 30

    def knows_span(self, where: Case) -> bool:
        return self.told == "c" or (self.told == C_IF_NEEDED and not where.communicating)

    def proven(self, where: Case) -> bool:
        """Whether the assumptions of its theorem hold in this problem."""
        return where.communicating or self.knows_span(where) or self.name not in NEED_COMMUNICATING


NEED_COMMUNICATING = ("kl-scal-plus", "ucrl2b", "kl-ucrl")
C_IF_NEEDED = "nothing; c in the last"
KL, SCAL_PLUS = "kl-scal-plus", "scal-plus"
WITHOUT_C, WITH_RULE = "KL-SCAL+, without c", "KL-SCAL+, TUCRL's rule"
"""Rows for the problem with unreachable states only."""
AGENTS = [
    Contestant("KL-SCAL+", KL, told=C_IF_NEEDED),
    Contestant("KL-SCAL+, vanishing", KL, {"episodes": "vanishing"}, C_IF_NEEDED),
    Contestant(
        "KL-SCAL+, vanishing-sqrt", KL, {"episodes": "vanishing-sqrt"}, C_IF_NEEDED, "of a larger order", seeds=10
    ),
    Contestant(WITHOUT_C, KL),
    Contestant(WITH_RULE, KL, {"unreachable": "tucrl"}),
    Contestant("SCAL+, the paper's bonus", SCAL_PLUS, told="c"),
    Contestant("SCAL+, sharp", SCAL_PLUS, {"bonus": "sharp"}, "c"),
    Contestant("SCAL+, Bernstein", SCAL_PLUS, {"bonus": "bernstein"}, "c", "of optimism only"),
    Contestant("SCAL", "scal", told="c", seeds=10),
    Contestant("UCRL2B", "ucrl2b"),
    Contestant("TUCRL", "tucrl"),
    Contestant("KL-UCRL", "kl-ucrl", told="the horizon"),
    Contestant("PSRL", "psrl"),
]
ON_CELLS = [
    Contestant("C-KL-SCAL+, without c", "c-kl-scal-plus", seeds=8),
    Contestant("C-KL-SCAL+", "c-kl-scal-plus", told="c", seeds=8),
    Contestant("C-SCAL+, the paper's bonus", "c-scal-plus", told="c", seeds=8),
    Contestant("C-SCAL+, sharp", "c-scal-plus", {"bonus": "sharp"}, "c", seeds=8),
    Contestant("UCRL2B on cells", "ucrl2b", seeds=8),
    Contestant("PSRL on cells", "psrl", seeds=8),
]


@dataclass(frozen=True)
class Cell:
    """One agent on one problem."""

    losses: NDArray[np.float64]
    seconds: float
    """CPU seconds per run, compilation left out."""
    guaranteed: bool

    def __str__(self) -> str:
        mean, error = self.losses.mean(), self.losses.std(ddof=1) / math.sqrt(self.losses.size)
        return f"{number(mean)} ± {number(error)}"


def measure(one: Contestant, where: Case, seeds: int, jobs: int) -> Cell:
    env, points = where.environment, not isinstance(where.environment, gf.MDP)
    c = where.span if one.knows_span(where) else None

    def agent(seed: int) -> Any:
        given = dict(one.options)
        return AgentFactory(one.name, env, c, seed, where.steps, CELLS if points else None, given).make()

    gf.simulate(agent(0), env, horizon=min(where.steps, 1000), seed=0)  # compiles
    began = time.process_time()
    if points:
        runs = [gf.simulate(agent(seed), env, horizon=where.steps, seed=seed, checkpoints=[where.steps])
                for seed in range(seeds)]  # fmt: skip
        losses = np.array([run.pseudo_regret[-1] for run in runs])
    else:
        runs = gf.simulate_many(agent, env, where.steps, range(seeds), checkpoints=[where.steps], threads=jobs)
        losses = np.array([run.expected_regret[-1] for run in runs])
    seconds = (time.process_time() - began) / seeds
    return Cell(losses, seconds, agent(0).guarantee.holds)


# ---------------------------------------------------------------------- text


def number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 10 or abs(x) < 0.05 else f"{x:.1f}"


Row = list[Cell | None]


def table(agents: list[Contestant], cases: list[Case], rows: list[Row], seeds: int | None, timed: int | None) -> str:
    """One row per agent; `timed` is the problem whose seconds are shown."""
    heads = ["agent", "is told", "theorem", "runs", *(where.title for where in cases)]
    heads += [] if timed is None else ["seconds"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---|" + "---:|" * (len(heads) - 3)]
    for one, row in zip(agents, rows, strict=True):
        theorem = next(cell.guaranteed for cell in row if cell is not None)
        told = one.told if len(cases) > 6 else one.told.split(";")[0]
        cells = [one.label, told, one.theorem if theorem else "no", str(seeds or one.seeds)]
        for where, cell in zip(cases, row, strict=True):
            note = "" if cell is None or one.proven(where) or not cell.guaranteed else " (*)"
            cells.append("" if cell is None else f"{cell}{note}")
        if timed is not None:
            there = row[timed]
            cells.append("" if there is None else f"{there.seconds:.2g}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def compete(
    agents: list[Contestant], cases: list[Case], seeds: int | None, jobs: int, skip: set[tuple[str, str]]
) -> list[Row]:
    rows: list[Row] = []
    for one in agents:
        row: Row = []
        for where in cases:
            if (one.label, where.title) in skip:
                row.append(None)
                continue
            found = measure(one, where, seeds or one.seeds, jobs)
            say(f"{where.title}, {one.label}: {found}, {found.seconds:.2g} s a run")
            row.append(found)
        rows.append(row)
    return rows


ANSWERS = [
    ("that every state can be reached from every other", "KLSCALPlus(S, A)", "KL-SCAL+"),
    ("the same, and plans may be made more often", 'KLSCALPlus(S, A, episodes="vanishing")', "KL-SCAL+, vanishing"),
    ("the same, and no theorem is needed", "PSRL(S, A)", "PSRL"),
    ("c, and some states may be unreachable", "KLSCALPlus(S, A, span=c)", "KL-SCAL+"),
    ("that some states may be unreachable, but not c", "TUCRL(S, A)", "TUCRL"),
    ("the same, and no theorem is needed", 'KLSCALPlus(S, A, unreachable="tucrl")', WITH_RULE),
    ("c, and you want an explicit bonus", 'SCALPlus(S, A, span=c, bonus="sharp")', "SCAL+, sharp"),
    ("c, and you want what the paper proves", "SCALPlus(S, A, span=c)", "SCAL+, the paper's bonus"),
]
"""What the user knows, the agent to take, and its row in the table."""


def answers(cases: list[Case], rows: list[Row]) -> str:
    """The agent for what the user knows, with what it lost in three problems."""
    labels = [one.label for one in AGENTS]
    without_c = rows[labels.index(WITHOUT_C)][-1]
    assert without_c is not None
    shown = [0, [where.title for where in cases].index("four rooms, 10⁶"), len(cases) - 1]
    lines = [
        "| you know | take | theorem | " + " | ".join(f"{cases[i].title}" for i in shown) + " |",
        "|---|---|---|" + "---:|" * len(shown),
    ]
    for knows, code, label in ANSWERS:
        one, row = AGENTS[labels.index(label)], rows[labels.index(label)]
        found = [row[i] for i in shown]
        theorem = one.theorem if any(cell is not None and cell.guaranteed for cell in found) else "no"
        losses = ["" if cell is None else number(float(cell.losses.mean())) for cell in found]
        if one.told == C_IF_NEEDED:  # with c in the last problem, and there only
            losses = ["", "", losses[-1]] if "span" in code else [*losses[:-1], ""]
        if code == "KLSCALPlus(S, A)":
            losses[-1] = number(float(without_c.losses.mean()))
        lines.append(f"| {knows} | `{code}` | {theorem} | {' | '.join(losses)} |")
    return "\n".join(lines)


def put(name: str, text: str) -> None:
    """Replace what stands between two marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    marks = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    inside = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), flags=re.DOTALL)
    if not inside.search(page):
        sys.exit(f"{PAGE} has no marks {marks[0]} … {marks[1]}")
    body = "\n\n".join([marks[0], text, marks[1]])
    PAGE.write_text(inside.sub(lambda _: body, page, count=1), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="What each agent loses, on problems of every kind.")
    parser.add_argument("--jobs", type=int, default=2, help="threads (default 2)")
    parser.add_argument(
        "--seeds", type=int, help="runs per number, for every agent (default 30, fewer for slow agents)"
    )
    parser.add_argument("--quick", action="store_true", help="3 seeds and a hundredth of the steps")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/which_agent.md")
    given = parser.parse_args()
    if given.quick and given.docs:
        parser.error("--docs needs the whole measurement, not --quick")
    seeds, shorter = (given.seeds or 3, 100) if given.quick else (given.seeds, 1)
    began = time.process_time()
    finite, business, cells = problems(shorter), businesses(shorter), on_cells(shorter)
    special = (WITHOUT_C, WITH_RULE)
    skip = {(label, where.title) for label in special for where in finite if where.communicating}
    trades = [one for one in AGENTS if one.label not in special]
    found = compete(AGENTS, finite, seeds, given.jobs, skip)
    earned = compete(trades, business, seeds, given.jobs, set())
    pointed = compete(ON_CELLS, cells, seeds, given.jobs, set())
    spent = time.process_time() - began
    command = " ".join(["python benchmarks/which_agent.py", *sys.argv[1:]])
    rooms = [where.title for where in finite].index("four rooms, 10⁶")
    text = "\n\n".join(
        [
            f"Measured on {datetime.datetime.now(tz=datetime.UTC):%-d %B %Y} by `{command}`, {spent:,.0f} s "
            "of one core.",
            "**Expected regret** on small problems, and the CPU seconds that a run of 10⁶ steps takes in four rooms:",
            table(AGENTS, finite, found, seeds, rooms),
            "(*) The agent's theorem does not apply: it needs every state to be reachable from every other.",
            "**Euros lost in ten years** against the optimal policy, in the [worked problems](problems/index.md):",
            table(trades, business, earned, seeds, None),
            f"**Pseudo-regret on continuous states**, {CELLS} cells:",
            table(ON_CELLS, cells, pointed, seeds, None),
        ]
    )
    print("\n\n".join([answers(finite, found), text]))
    if given.docs:
        put("answers", answers(finite, found))
        put("measured", text)
        say(f"written: {PAGE}")


if __name__ == "__main__":
    main()
