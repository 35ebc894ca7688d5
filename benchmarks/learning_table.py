"""The expected regret of every agent on three problems, compared with what theory predicts.

    python benchmarks/learning_table.py [riverswim] [toy3d] [garnet] [--agents NAME ...] [--seeds N]
                                        [--quick | --record]

Each row is one agent, and each number is a mean over seeds with its standard error. Every horizon has runs of its own;
an agent that needs a horizon is given the longest one of its row throughout. Agents that need a span are given the true
one (an oracle). The tables and the list of predictions go to stdout, progress to stderr. --record keeps them in
benchmarks/measured, from where `make tables` writes them into the page. --agents measures some agents only; --record
then replaces or adds their rows, and leaves the predictions as they were.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import inspect
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful.agents import registry
from gainful.agents.episodic import EpisodicAgent

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, record_document, record_rows

say = partial(print, file=sys.stderr, flush=True)
LONGEST = 10**7
CAPPED = {"ucbvi": 10**6, "imed-rl": 10**6}
"""They plan every H steps, or at every step, so their planning grows with T and not with ln T."""
TOLD = {"discount": 0.99, "episode_length": 50}
"""The arguments of MBIE-EB and UCBVI that no theory determines."""

VARIANTS: dict[str, list[tuple[str, Any]]] = {
    "scal-plus": [("bonus_scale", 0.1), ("bonus_scale", 0.01), ("bonus", "sharp"), ("bonus", "bernstein")],
    "kl-scal-plus": [("episodes", "vanishing"), ("episodes", "vanishing-sqrt")],
    "tucrl": [("bounds", "ucrl2b")],
}
"""Rows besides the one with the defaults: one parameter changed."""

SUBLINEAR = {
    "scal-plus", "kl-scal-plus", "optimistic-q", "opt-psrl", "psrl", "kl-ucrl", "scal", "tucrl", "ucrl2", "ucrl2b",
}  # fmt: skip
"""Regret Õ(√T), or Õ(T^⅔) for optimistic Q-learning; PSRL in the Bayesian sense, Opt-PSRL by a withdrawn proof."""
LINEAR = {"epsilon-greedy-q": "it explores for ever"}
UNCLAIMED = {
    "count-bonus": "its β does not know the span",
    "mbie-eb": "it maximises discounted reward",
    "ucbvi": "it maximises the reward of blocks of H steps",
}


# ---------------------------------------------------------------------- problems and rows


@dataclass(frozen=True)
class Problem:
    """An MDP with what an oracle knows of it."""

    title: str
    mdp: gf.MDP
    best: Any


def problem(title: str, mdp: gf.MDP, precision: float = 1e-10) -> Problem:
    return Problem(title, mdp, gf.solve(mdp, precision=precision))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "riverswim": lambda: problem("RiverSwim-6", gf.environments.riverswim(6)),
    "toy3d": lambda: problem("Toy3D(0.1)", gf.environments.toy3d(0.1)),
    "garnet": lambda: problem("Garnet(20, 3, 5)", gf.environments.garnet(20, 3, 5)),
}


@dataclass(frozen=True)
class Contestant:
    label: str
    name: str
    """In the registry."""
    options: dict[str, Any]
    longest: int

    def make(self, mdp: gf.MDP, seed: int) -> EpisodicAgent:
        return registry.agent_class(self.name)(
            mdp.n_states, mdp.n_actions, reward_min=mdp.reward_min, reward_max=mdp.reward_max, allowed=mdp.allowed,
            seed=seed, **self.options,
        )  # fmt: skip


def contestants(where: Problem, longest: int) -> list[Contestant]:
    """The optimal policy, random play, and every agent of the registry; SCAL+ with several bonuses."""
    rows = [
        Contestant("optimal policy", "fixed", {"policy": where.best}, longest),
        Contestant("random play", "fixed", {}, longest),
    ]
    for name in registry.names():
        if name == "fixed" or "n_states" not in inspect.signature(registry.agent_class(name)).parameters:
            continue  # above, or not for tables
        T = min(longest, CAPPED.get(name, longest))
        known: dict[str, Any] = {"span": where.best.span, "horizon": T, "m": T, **TOLD}
        needed = [key for key, value in registry.describe(name).parameters.items() if value == "required"]
        missing = [key for key in needed if key not in known]
        if missing:
            sys.exit(f"{name} needs {', '.join(missing)}: add a value to {Path(__file__).name}")
        options = {key: known[key] for key in needed}
        rows.append(Contestant(name, name, options, T))
        rows += [
            Contestant(f"{name}, {key} = {value}", name, {**options, key: value}, T)
            for key, value in VARIANTS.get(name, ())
        ]
    return rows


# ---------------------------------------------------------------------- results


@dataclass(frozen=True)
class Result:
    """One row: at each horizon, over seeds."""

    contestant: Contestant
    horizons: list[int]
    pseudo: NDArray[np.float64]
    """(horizons, seeds) pseudo-regret Σ (g* - r(s_t,a_t)), with the luck of the transitions."""
    lost: NDArray[np.float64]
    """(horizons, seeds) expected regret Σ gap(s_t,a_t): without the luck of the transitions, never below 0."""
    guaranteed: bool
    vacuous: bool

    def mean(self, i: int = -1) -> float:
        return float(self.lost[i].mean())

    def error(self, i: int = -1) -> float:
        return standard_error(self.lost[i])

    @property
    def exponent(self) -> float:
        """Growth of expected regret over the last decade: 1 is linear, ½ a square root, 0 no more loss."""
        late, early = self.lost[-1].mean(), self.lost[-2].mean()
        if late == 0.0:
            return 0.0
        return math.log10(late / early) if early > 0.0 else math.inf

    @property
    def sublinear(self) -> bool:
        """Whether expected regret per step fell over the last decade, by more than two standard errors."""
        late, early = (self.lost[i] / self.horizons[i] for i in (-1, -2))
        noise = math.hypot(standard_error(late), standard_error(early))
        return bool(late.mean() + 2 * noise < early.mean() or late.mean() == 0.0)


def standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def compete(where: Problem, one: Contestant, shortest: int, seeds: int) -> Result:
    horizons = [10**d for d in range(round(math.log10(shortest)), round(math.log10(one.longest)) + 1)]
    pseudo, lost = np.empty((len(horizons), seeds)), np.empty((len(horizons), seeds))
    agents: dict[int, EpisodicAgent] = {}

    def factory(seed: int) -> EpisodicAgent:
        agents[seed] = one.make(where.mdp, seed)
        return agents[seed]

    for i, T in enumerate(horizons):
        runs = gf.simulate_many(factory, where.mdp, T, range(seeds), checkpoints=[T], threads=2)
        pseudo[i] = [run.pseudo_regret[-1] for run in runs]
        lost[i] = [run.expected_regret[-1] for run in runs]
    last = list(agents.values())
    return Result(
        one, horizons, pseudo, lost, all(agent.guarantee.holds for agent in last),
        all(bool(getattr(agent, "vacuous", False)) for agent in last),
    )  # fmt: skip


# ---------------------------------------------------------------------- text


def power(T: int) -> str:
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(round(math.log10(T))))


def number(x: float) -> str:
    return f"{x:,.0f}".replace("-", "−") if abs(x) >= 10 else f"{x:.1f}".replace("-", "−")


def table(where: Problem, results: list[Result]) -> list[str]:
    best = where.best
    horizons = max((result.horizons for result in results), key=len)
    lines = [
        f"Gain {best.gain:.4f}, span {best.span:.3f}, diameter {gf.diameter(where.mdp):.2f}.", "",
        "| agent | guarantee | " + " | ".join(power(T) for T in horizons) + " | per step | exponent | pseudo-regret |",
        "|---|---|" + (len(horizons) + 3) * "---|",
    ]  # fmt: skip
    for result in results:
        cells = [
            f"{number(result.mean(i))} ± {number(result.error(i))}" if i < len(result.horizons) else ""
            for i in range(len(horizons))
        ]
        loss, T = result.mean(), result.horizons[-1]
        pseudo = f"{number(result.pseudo[-1].mean())} ± {number(standard_error(result.pseudo[-1]))}"
        label = result.contestant.label + (" (vacuous)" if result.vacuous else "")
        per_step = f"{loss / T:.2g}" if loss > 0.0 else "0"
        growth = f"{result.exponent:.2f}" if loss > 0.0 else "–"
        promise = "yes" if result.guaranteed else "no guarantee"
        if result.guaranteed and result.contestant.options.get("bonus") == "bernstein":
            promise = "of optimism"
        if result.contestant.name == "fixed":
            promise = ""
        lines.append(f"| {label} | {promise} | {' | '.join(cells)} | {per_step} | {growth} | {pseudo} |")
    return [*lines, ""]


@dataclass(frozen=True)
class Prediction:
    """A statement about several agents, and those for which it does not hold."""

    text: str
    exceptions: list[str]
    of: int = 1

    def __str__(self) -> str:
        if not self.exceptions:
            return f"true: {self.text}" + (f" ({self.of} of {self.of})" if self.of > 1 else "")
        return f"**false**: {self.text}; not {', '.join(self.exceptions)} ({len(self.exceptions)} of {self.of})"


def every(text: str, results: list[Result], holds: Callable[[Result], bool]) -> Prediction:
    wrong = [result.contestant.label + " (vacuous)" * result.vacuous for result in results if not holds(result)]
    return Prediction(text, wrong, len(results))


def predictions(where: Problem, results: list[Result]) -> list[Prediction]:
    """What theory says of these rows, and whether it is so."""
    best, chance, *learners = results
    span = where.best.span

    def at(result: Result) -> int:
        return len(result.horizons) - 1

    def not_below_the_optimum(result: Result) -> bool:
        found, optimal = result.pseudo[-1], best.pseudo[at(result)]
        noise = math.hypot(standard_error(found), standard_error(optimal))
        return bool(found.mean() >= optimal.mean() - 3 * noise - span)

    def better_than_chance(result: Result) -> bool:
        level = chance.lost[at(result)]
        noise = math.hypot(standard_error(result.lost[-1]), standard_error(level))
        return bool(result.lost[-1].mean() + 2 * noise < level.mean())

    def falling(result: Result) -> bool:
        per_step = result.lost.mean(axis=1) / np.array(result.horizons)
        return bool(np.all(np.diff(per_step) < 0.0))

    claimed = [result for result in learners if result.contestant.name in SUBLINEAR]
    rest = [result for result in learners if result.contestant.name in {*LINEAR, *UNCLAIMED}]
    linear = [result for result in learners if result.contestant.name in LINEAR]
    scal_plus = [result for result in learners if result.contestant.name == "scal-plus"]
    scaled = [result for result in scal_plus if "bonus" not in result.contestant.options]
    ours = [result for result in scal_plus if "bonus" in result.contestant.options]
    kl = [result for result in learners if result.contestant.name == "kl-scal-plus"]
    least = min((result for result in learners if result.guaranteed), key=lambda result: result.mean())
    luck = best.pseudo[-1]
    lossless = bool(np.all(best.lost == 0.0)) and abs(luck.mean()) <= 3 * standard_error(luck) + span
    cheaper = all(a.lost[-1].mean() > b.lost[-1].mean() for a, b in pairwise(scaled))
    return [
        every(
            "the optimal policy loses nothing: expected regret 0, pseudo-regret 0 up to its span and 3 errors", [best],
            lambda _: lossless,
        ),
        every("random play loses linearly", [chance], lambda result: abs(result.exponent - 1.0) < 0.02),
        every("no learner's pseudo-regret is below that of the optimal policy", learners, not_below_the_optimum),
        every("learners with a theory of sublinear regret lose less than random play", claimed, better_than_chance),
        every(
            "their loss per step fell over the last decade (exponent below 1)", claimed,
            lambda result: result.exponent < 1.0 and result.sublinear,
        ),
        every("scal-plus with the theorem's constants: loss per step falls in every decade", scaled[:1], falling),
        every(
            "scal-plus with the sharp or the Bernstein bonus loses less than with the paper's", ours,
            lambda result: bool(result.lost[-1].mean() < scaled[0].lost[-1].mean()),
        ),
        every("the others lose less than random play (no theory says so)", rest, better_than_chance),
        every("epsilon-greedy-q, which explores for ever, loses linearly", linear, lambda r: r.exponent > 0.8),
        Prediction("the smaller the bonus of scal-plus, the smaller the loss (experience, no theorem)",
                   [] if cheaper else ["here"]),
        Prediction("of the agents with a guarantee, kl-scal-plus loses least, with some episode rule (experience)",
                   [] if least.contestant.name == "kl-scal-plus" else [f"here, where {least.contestant.label} does"]),
        every("kl-scal-plus loses no more with vanishing episodes than with doubling ones (experience)", kl[1:],
              lambda result: result.mean() <= kl[0].mean() + 2 * math.hypot(result.error(), kl[0].error())),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Expected regret of every agent on three problems.")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=f"some of {', '.join(PROBLEMS)}; default all")
    parser.add_argument("--seeds", type=int, default=None, help="runs per number, at least 2 (default 8, quick 4)")
    parser.add_argument("--quick", action="store_true", help="10³ to 10⁵ steps instead of 10⁴ to 10⁷")
    parser.add_argument("--agents", nargs="+", metavar="NAME", help="measure these only, in all their variants")
    add_record_options(parser)
    given = parser.parse_args()
    unknown = [name for name in given.problems if name not in PROBLEMS]
    if unknown:
        parser.error(f"unknown problem {unknown[0]!r}; choose from {', '.join(PROBLEMS)}")
    if given.quick and given.record:
        parser.error("--record needs the whole measurement, not --quick")
    seeds = (4 if given.quick else 8) if given.seeds is None else given.seeds
    if seeds < 2:
        parser.error("a standard error needs at least 2 seeds")
    shortest, longest = (10**3, 10**5) if given.quick else (10**4, LONGEST)
    began = time.perf_counter()
    for name in given.problems or PROBLEMS:
        where = PROBLEMS[name]()
        rows = [one for one in contestants(where, longest) if not given.agents or one.name in given.agents]
        if not rows:
            parser.error(f"no agent is called {given.agents[0]!r}; `gainful list agents` has the names")
        results = competed(where, rows, shortest, seeds)
        text = "\n".join(table(where, results))
        print(f"### {where.title}\n\n{text}", flush=True)
        listed = "" if given.agents else predicted(where, results)
        print(listed, flush=True)
        if given.record:
            keep(name, text, listed)
    say(f"done in {time.perf_counter() - began:.0f} s")


def competed(where: Problem, rows: list[Contestant], shortest: int, seeds: int) -> list[Result]:
    """The runs of every row, with a line of progress each."""
    results: list[Result] = []
    for i, one in enumerate(rows):
        start = time.perf_counter()
        results.append(compete(where, one, shortest, seeds))
        say(
            f"{where.title} {i + 1}/{len(rows)} {one.label}: {time.perf_counter() - start:.1f} s, "
            f"expected regret {number(results[-1].mean())} at {power(one.longest)}"
        )
    return results


def predicted(where: Problem, results: list[Result]) -> str:
    """The list of predictions."""
    lines = [f"- {prediction}" for prediction in predictions(where, results)]
    return "\n".join([f"{where.title}, each row at its longest horizon:", "", *lines, ""])


def keep(name: str, text: str, listed: str) -> None:
    """Record a table and its predictions, or the rows of some agents."""
    command = f"python benchmarks/learning_table.py {name} --record"
    if listed:
        say(f"recorded in {record_document('learning_table', name, text, timed=False, command=command)}")
        record_document("learning_table", f"{name}_predictions", listed, timed=False, command=command)
    else:
        say(f"recorded in {record_rows('learning_table', name, text)}; now: make tables")


if __name__ == "__main__":
    main()
