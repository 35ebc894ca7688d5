"""What each agent loses on small and large problems, on four businesses and on cells: docs/which_agent.md.

    python benchmarks/which_agent.py [--agents LABEL ...] [--jobs N] [--seeds N] [--quick | --record]

Every number is an expected regret (the sum of the optimality gaps of the pairs played), a mean over seeds ± one
standard error; on continuous states, where gaps are unknown, it is the pseudo-regret. Agents that need c are given the
span of the true model, which only an oracle knows, and in the worked problems the bound from business facts. The tables
go to stdout, progress to stderr. --record keeps them in benchmarks/measured, from where `make tables` writes them into
the page, together with the short answers at its top. --agents measures some agents only; --record then replaces or adds
their rows.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import math
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

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, check_quiet, record_document, record_rows
from benchmarks.which_agent_answers import BY_VARIANCE, C_IF_NEEDED, WITH_RULE, WITHOUT_C

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
KL, SCAL_PLUS = "kl-scal-plus", "scal-plus"
AGENTS = [
    Contestant("KL-SCAL+", KL, told=C_IF_NEEDED),
    Contestant("KL-SCAL+, vanishing", KL, {"episodes": "vanishing"}, C_IF_NEEDED),
    Contestant(
        "KL-SCAL+, vanishing-sqrt", KL, {"episodes": "vanishing-sqrt"}, C_IF_NEEDED, "of a larger order", seeds=10
    ),
    Contestant(BY_VARIANCE, KL, {"episodes": "vanishing", "reward_bound": "variance"}, C_IF_NEEDED),
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
    Contestant("C-KL-SCAL+, variance", "c-kl-scal-plus", {"reward_bound": "variance"}, "c", seeds=8),
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


def main() -> None:
    parser = argparse.ArgumentParser(description="What each agent loses, on problems of every kind.")
    parser.add_argument(
        "--agents", nargs="+", metavar="LABEL", help="measure these only, as they are called in the tables"
    )
    parser.add_argument("--jobs", type=int, default=2, help="threads (default 2)")
    parser.add_argument(
        "--seeds", type=int, help="runs per number, for every agent (default 30, fewer for slow agents)"
    )
    parser.add_argument("--quick", action="store_true", help="3 seeds and a hundredth of the steps")
    add_record_options(parser)
    given = parser.parse_args()
    if given.quick and given.record:
        parser.error("--record needs the whole measurement, not --quick")
    labels = [one.label for one in (*AGENTS, *ON_CELLS)]
    unknown = [label for label in given.agents or () if label not in labels]
    if unknown:
        parser.error(f"no agent is called {unknown[0]!r}; there are {'; '.join(labels)}")
    if given.record and not given.agents:
        check_quiet("which_agent", "measured")
    chosen = [one for one in AGENTS if one.label in (given.agents or labels)]
    on_points = [one for one in ON_CELLS if one.label in (given.agents or labels)]
    seeds, shorter = (given.seeds or 3, 100) if given.quick else (given.seeds, 1)
    finite, business, cells = problems(shorter), businesses(shorter), on_cells(shorter)
    special = (WITHOUT_C, WITH_RULE)
    skip = {(label, where.title) for label in special for where in finite if where.communicating}
    trades = [one for one in chosen if one.label not in special]
    found = compete(chosen, finite, seeds, given.jobs, skip)
    earned = compete(trades, business, seeds, given.jobs, set())
    pointed = compete(on_points, cells, seeds, given.jobs, set())
    rooms = [where.title for where in finite].index("four rooms, 10⁶")
    text = "\n\n".join(
        [
            "**Expected regret** on small problems, and the CPU seconds that a run of 10⁶ steps takes in four rooms:",
            table(chosen, finite, found, seeds, rooms),
            "(*) The agent's theorem does not apply: it needs every state to be reachable from every other.",
            "**Euros lost in ten years** against the optimal policy, in the [worked problems](problems/index.md):",
            table(trades, business, earned, seeds, None),
            f"**Pseudo-regret on continuous states**, {CELLS} cells:",
            table(on_points, cells, pointed, seeds, None),
        ]
    )
    print(text)
    if given.record:
        command = "python benchmarks/which_agent.py --record"
        keep = record_rows if given.agents else partial(record_document, command=command)
        say(f"recorded in {keep('which_agent', 'measured', text)}; now: make tables")


if __name__ == "__main__":
    main()
