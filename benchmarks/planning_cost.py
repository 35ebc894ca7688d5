"""The cost of one planning call of SCAL+ against SCAL and UCRL2B, on the same data, in this one run.

    python benchmarks/planning_cost.py [grid] [data] [inside] [warm] [kl] [kl_runs] [balls]
                                       [--quick | --record] [--plot FILE]

grid    over the number of states S and the branching Γ of a Garnet with 4 actions
data    over the visits per pair, S = 1000, Γ = 32
inside  the single sweeps of SCAL's planner, S = 1000: what they have to sort
warm    the same call repeated by the same agent: the minimum cost of re-planning with full sweeps
kl      a sweep over Kullback-Leibler balls in units of a plain sweep, over Γ
kl_runs whole runs of KL-SCAL+ and SCAL+
balls   UCCRL's ℓ₁ balls too, over S and Γ, with a million visits per pair: below that its balls are everything

The data are the counts of T uniformly random steps: visits follow the stationary distribution of uniform play, next
states are drawn from the model. All three agents plan from one and the same Statistics, at t = T + 1, to precision
1/√t, from v = 0 (a cold start: a new agent each time), given the true span if they need one. Times are CPU times, the
best of several rounds in which the agents take turns. `--plot FILE` draws the ratios of `grid` (needs matplotlib).
--record keeps the tables in benchmarks/measured, from where `make tables` writes them into docs/planning_cost.md.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.statistics import Statistics
from gainful.planning import batches, inner_maximum, kl_on_counts, scopt_on_counts
from gainful.planning.confidence import KLBall

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import EVEN_IF_BUSY, printed

A = 4
VISITS = 10_000
"""Steps per pair: enough for the sets of SCAL and UCRL2B to be narrower than the simplex."""
PLAN = "SCAL+", "SCAL", "UCRL2B"
BALL_VISITS = 1_000_000
"""Steps per pair where UCCRL takes part: its radius sqrt(56·S·ln(2At/δ)/N) is then below 2, up to about S = 2000."""


# ---------------------------------------------------------------------- data


@dataclass(frozen=True)
class Data:
    """What three agents plan from."""

    statistics: Statistics
    t: int
    span: float

    @property
    def seen(self) -> float:
        """Distinct next states seen per pair."""
        return float(self.statistics.length.mean())


def data_of(S: int, branching: int, visits: int = VISITS, instance: int = 0) -> Data:
    """The counts of T = SA·visits uniformly random steps in Garnet(S, A, branching)."""
    mdp = gf.environments.garnet(S, A, branching, instance=instance)
    span = gf.solve(mdp, precision=1e-6).span
    rng = np.random.default_rng(instance)
    matrix, mu = mdp.matrix(), np.full(S, 1.0 / S)
    for _ in range(100):
        mu = 0.5 * mu + 0.5 * (np.repeat(mu / A, A) @ matrix)
    n = np.maximum(np.rint(np.repeat(mu, A) * S * visits), 1).astype(np.int64)
    p = mdp.probabilities.reshape(S * A, branching)
    pieces = max(1, p.size >> 20)
    counts = np.concatenate([
        rng.multinomial(some, rows)
        for some, rows in zip(np.array_split(n, pieces), np.array_split(p, pieces), strict=True)
    ])  # fmt: skip
    seen = counts > 0
    r = mdp.pair_rewards
    statistics = Statistics(S, A)
    statistics.from_arrays({
        "visits": n, "reward_sum": n * r, "reward_squares": n * r * r, "length": seen.sum(axis=1),
        "next_state": mdp.indices.reshape(p.shape)[seen], "count": counts[seen],
    })  # fmt: skip
    return Data(statistics, int(n.sum()) + 1, span)


def new_agent(name: str, data: Data) -> EpisodicAgent:
    S = data.statistics.n_states
    if name == "SCAL+":
        full: dict[str, Any] = (
            {"replanning": "full"} if "replanning" in inspect.signature(gf.SCALPlus).parameters else {}
        )
        return gf.SCALPlus(S, A, span=data.span, **full)
    if name == "UCCRL":
        return gf.UCCRL(partition=gf.Partition.uniform(bins=S), n_actions=A, span=data.span).core
    return gf.SCAL(S, A, span=data.span) if name == "SCAL" else gf.UCRL2B(S, A)


# ---------------------------------------------------------------------- one planning call, part by part


@dataclass
class Watch:
    """The calls of the compiled sweeps during one planning call: CPU time at their begin and end."""

    began: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    def around(self, sweeps: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self.began.append(time.process_time())
            answer = sweeps(*arguments)
            self.ended.append(time.process_time())
            return answer

        return watched


@dataclass(frozen=True)
class Cost:
    """Seconds of one planning call, and its sweeps."""

    before: float
    """Rows, radii or bonuses, checks."""
    sweeping: float
    after: float
    """The policy and, for extended value iteration, the rows it was promised."""
    sweeps: int

    @property
    def total(self) -> float:
        return self.before + self.sweeping + self.after

    @property
    def setup(self) -> float:
        return self.before + self.after

    @property
    def per_sweep(self) -> float:
        return self.sweeping / self.sweeps

    def best(self, other: Cost) -> Cost:
        """The better of two timings, part by part."""
        assert self.sweeps == other.sweeps
        return Cost(
            min(self.before, other.before), min(self.sweeping, other.sweeping), min(self.after, other.after),
            self.sweeps,
        )  # fmt: skip


@contextmanager
def watching() -> Iterator[Watch]:
    watch = Watch()
    with ExitStack() as stack:
        for module, name in (
            (scopt_on_counts, "scopt_on_counts"),
            (inner_maximum, "set_sweeps"),
            (kl_on_counts, "kl_sweeps"),
        ):
            stack.enter_context(patch.object(module, name, watch.around(getattr(module, name))))
        yield watch


def plan_once(name: str, data: Data, again: bool = False) -> tuple[Cost, Watch]:
    """One cold planning call, or the second one; its bracket is checked to be as narrow as asked."""
    agent = new_agent(name, data)
    if again:
        agent.plan(data.statistics, data.t)
    with watching() as watch:
        begin = time.process_time()
        plan = agent.plan(data.statistics, data.t)
        end = time.process_time()
    assert plan.gain_bounds[1] - plan.gain_bounds[0] <= data.t**-0.5 * (1 + 1e-9), (name, plan.gain_bounds)
    sweeping = sum(watch.ended) - sum(watch.began)
    return Cost(watch.began[0] - begin, sweeping, end - begin - sweeping - (watch.began[0] - begin), plan.sweeps), watch


def costs(
    data: Data, seconds: float, rounds: int = 3, again: bool = False, names: Sequence[str] = PLAN
) -> dict[str, Cost]:
    """Best of at least `rounds` calls each, for about `seconds` in all."""
    found: dict[str, Cost] = {}
    spent, done = 0.0, 0
    while done < rounds or spent < seconds:
        for name in names:
            cost, _ = plan_once(name, data, again)
            found[name] = cost.best(found.get(name, cost))
            spent += cost.total
        done += 1
    return found


def compile_all() -> None:
    small = data_of(20, 3, 1000)
    for name in PLAN:
        plan_once(name, small)


# ---------------------------------------------------------------------- tables


def time_of(seconds: float) -> str:
    """Three digits with a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def heading(first: str) -> None:
    print(
        f"| {first} | seen | SCAL+ sweep | SCAL / SCAL+ | UCRL2B / SCAL+ | sweeps | set-up | total SCAL+ "
        "| SCAL / SCAL+ | UCRL2B / SCAL+ |\n|" + (first.count("|") + 10) * "---|"
    )


def line(first: str, seen: float, cost: dict[str, Cost]) -> None:
    """Ratios per sweep, then sweeps and set-up of all three, then ratios of the total."""
    plus = cost["SCAL+"]
    per_sweep = " | ".join(f"{cost[name].per_sweep / plus.per_sweep:.1f}" for name in PLAN[1:])
    total = " | ".join(f"{cost[name].total / plus.total:.1f}" for name in PLAN[1:])
    sweeps = ", ".join(str(cost[name].sweeps) for name in PLAN)
    setup = ", ".join(time_of(cost[name].setup) for name in PLAN)
    print(
        f"| {first} | {seen:.0f} | {time_of(plus.per_sweep)} | {per_sweep} | {sweeps} | {setup} "
        f"| {time_of(plus.total)} | {total} |",
        flush=True,
    )


def grid(quick: bool, plot: str | None) -> None:
    print(
        f"\none planning call over S and Γ, A = {A}, {VISITS:,} random steps per pair "
        "(per sweep; sweeps and set-up of SCAL+, SCAL, UCRL2B; in total)\n"
    )
    heading("S | Γ")
    found: dict[int, list[tuple[int, dict[str, Cost]]]] = {}
    for S in (100, 300) if quick else (100, 300, 1000, 3000):
        for branching in sorted({b for b in (2, 8, 32, 144, S) if b <= S}):
            data = data_of(S, branching)
            cost = costs(data, 0.5 if quick else 2.0)
            line(f"{S} | {branching}", data.seen, cost)
            found.setdefault(S, []).append((branching, cost))
    grows(found)
    if plot is not None:
        draw(found, plot)


def grows(found: dict[int, list[tuple[int, dict[str, Cost]]]]) -> None:
    """Whether each ratio grows from every Γ to the next (1 % of noise allowed), and from the first to the last."""
    print()
    for S, rows in found.items():
        for what in ("per_sweep", "total"):
            for name in PLAN[1:]:
                ratio = [getattr(c[name], what) / getattr(c["SCAL+"], what) for _, c in rows]
                always = all(b > 0.99 * a for a, b in pairwise(ratio))
                print(
                    f"S = {S}, {name} / SCAL+ {what.replace('_', ' ')}: {' '.join(f'{r:.1f}' for r in ratio)}; "
                    f"last over first {ratio[-1] / ratio[0]:.2f}{'' if always else ', not monotone'}"
                )


def draw(found: dict[int, list[tuple[int, dict[str, Cost]]]], path: str) -> None:
    """Log-log: time per sweep and total against Γ, one panel per S."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError:
        print(f"\n{path} not drawn: matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(2, len(found), figsize=(3.4 * len(found), 6), sharex=True, squeeze=False)
    for column, (S, rows) in enumerate(found.items()):
        for row, what in enumerate(("per_sweep", "total")):
            ax = axes[row, column]
            for name, style in zip(PLAN, ("o-", "s--", "^:"), strict=True):
                ax.loglog([b for b, _ in rows], [getattr(c[name], what) for _, c in rows], style, label=name)
            ax.set_title(f"S = {S}, {what.replace('_', ' ')}")
            ax.set_xlabel("Γ")
            ax.set_ylabel("CPU seconds")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"\ndrawn: {path}", file=sys.stderr)


def data(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    S, branching = (300, 32) if quick else (1000, 32)
    print(f"\none planning call over the steps per pair, S = {S}, A = {A}, Γ = {branching}\n")
    heading("steps per pair")
    for visits in (100, 10_000) if quick else (10, 100, 1000, 10_000, 100_000, 1_000_000):
        made = data_of(S, branching, visits)
        line(f"{visits:,}", made.seen, costs(made, 0.5 if quick else 2.0))


@kernel
def order_by_rank(
    order: NDArray[Any], begin: NDArray[Any], row: NDArray[Any], entry: NDArray[Any], load: NDArray[Any],
    at: NDArray[Any], indices: NDArray[Any], sorted_load: NDArray[Any],
) -> None:  # fmt: skip
    """All rows in decreasing order of v at once, states taken by rank: linear time, but it needs the transpose."""
    for i in range(order.size):
        state = order[i]
        for j in range(begin[state], begin[state + 1]):
            to = at[row[j]]
            indices[to], at[row[j]] = state, to + 1
            sorted_load[to, 0], sorted_load[to, 1] = load[entry[j], 0], load[entry[j], 1]


def ordering_seconds(made: Data, rounds: int) -> float:
    """`order_by_rank` on the rows of `made` in a random order of states; the transpose itself is not timed."""
    arrays = made.statistics.to_arrays()
    lengths, to = arrays["length"], arrays["next_state"]
    starts = np.cumsum(lengths) - lengths
    entry = np.argsort(to, kind="stable")
    row = np.repeat(np.arange(lengths.size), lengths)[entry]
    begin = np.concatenate([[0], np.cumsum(np.bincount(to, minlength=made.statistics.n_states))])
    order = np.random.default_rng(0).permutation(made.statistics.n_states)
    load = np.ones((to.size, 2))
    best = np.inf
    for _ in range(rounds + 1):  # the first one compiles
        at, indices, sorted_load = starts.copy(), np.zeros_like(to), np.zeros_like(load)
        start = time.process_time()
        order_by_rank(order, begin, row, entry, load, at, indices, sorted_load)
        best = min(best, time.process_time() - start)
    assert np.array_equal(at, starts + lengths)
    return best


def inside(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    """One kernel call per sweep: the time of each, for SCAL against the mean of SCAL+."""
    S, rounds = (300, 3) if quick else (1000, 10)
    print(
        f"\nsweeps of SCAL in units of one of SCAL+, S = {S}, A = {A}, {VISITS:,} steps per pair; last column: what "
        "ordering all rows at once by rank takes in the same unit (a prototype, not what the planner does)\n"
    )
    print(
        "| Γ | sweeps | first (v = 0, in order) | second (sorts all) | median | last | mean | order by rank |\n|"
        + 8 * "---|"
    )
    for branching in sorted({b for b in (2, 8, 32, 144, S) if b <= S}):
        made = data_of(S, branching)
        plus = costs(made, 0.0)["SCAL+"].per_sweep
        best: NDArray[np.float64] | None = None
        for _ in range(rounds):
            with patch.object(batches, "RESUMED_TRANSITIONS", 1):
                _, watch = plan_once("SCAL", made)
            each = np.subtract(watch.ended, watch.began)
            best = each if best is None else np.minimum(best, each)
        assert best is not None
        units = best / plus
        print(
            f"| {branching} | {units.size} | {units[0]:.1f} | {units[1]:.1f} | {np.median(units):.1f} "
            f"| {units[-1]:.1f} | {units.mean():.1f} | {ordering_seconds(made, rounds) / plus:.1f} |",
            flush=True,
        )


def warm(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    S = 300 if quick else 1000
    print(f"\nthe call made again, from the values it found: S = {S}, A = {A}, {VISITS:,} steps per pair\n")
    heading("Γ")
    for branching in sorted({b for b in (2, 8, 32, 144, S) if b <= S}):
        made = data_of(S, branching)
        line(f"{branching}", made.seen, costs(made, 0.5 if quick else 1.0, again=True))


def balls(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    names = (*PLAN, "UCCRL")
    print(f"\none planning call with UCCRL's ℓ₁ balls too, A = {A}, {BALL_VISITS:,} random steps per pair\n")
    per_sweep, total = (" | ".join(f"{name} / SCAL+" for name in names[1:]) for _ in range(2))
    print(f"| S | Γ | SCAL+ sweep | {per_sweep} | sweeps | total SCAL+ | {total} |\n|" + 11 * "---|")
    plan_once("UCCRL", data_of(20, 3, BALL_VISITS))  # compiles
    for S in (100, 300) if quick else (100, 300, 1000):
        for branching in sorted({b for b in (2, 8, 32, 144, S) if b <= S}):
            cost = costs(data_of(S, branching, BALL_VISITS), 0.2 if quick else 1.0, names=names)
            plus = cost["SCAL+"]
            sweep = " | ".join(f"{cost[name].per_sweep / plus.per_sweep:.1f}" for name in names[1:])
            whole = " | ".join(f"{cost[name].total / plus.total:.1f}" for name in names[1:])
            sweeps = ", ".join(str(cost[name].sweeps) for name in names)
            cells = S, branching, time_of(plus.per_sweep), sweep, sweeps, time_of(plus.total), whole
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---------------------------------------------------------------------- Kullback-Leibler balls


@dataclass(frozen=True)
class WholeRun:
    """CPU seconds of a run, of its plans, and of their sweeps; the plans and their sweeps."""

    seconds: float
    planning: float
    sweeping: float
    plans: int
    sweeps: int


def whole_run(agent: EpisodicAgent, mdp: gf.MDP, horizon: int, gain: float) -> WholeRun:
    with watching() as watch:
        begin = time.process_time()
        gf.simulate(agent, mdp, horizon, seed=0, gain=gain)
        seconds, records = time.process_time() - begin, agent.episodes
    planning, sweeping = float(records["planning_seconds"].sum()), sum(watch.ended) - sum(watch.began)
    return WholeRun(seconds, planning, sweeping, len(records), int(records["sweeps"].sum()))


def best_runs(mdp: gf.MDP, horizon: int, rounds: int) -> tuple[WholeRun, WholeRun, gf.KLSCALPlus]:
    """The fastest of several runs of SCAL+ and of KL-SCAL+, in turns, and one of the agents."""
    S, n_actions, best = mdp.n_states, mdp.n_actions, gf.solve(mdp)
    found: list[tuple[WholeRun, WholeRun]] = []
    for i in range(rounds + 1):  # the first one compiles
        steps = horizon if i else 1000
        plus = gf.SCALPlus(S, n_actions, span=best.span, allowed=mdp.allowed)
        kl = gf.KLSCALPlus(S, n_actions, allowed=mdp.allowed)
        both = whole_run(plus, mdp, steps, best.gain), whole_run(kl, mdp, steps, best.gain)
        found += [both] if i else []
    fastest = min((a for a, _ in found), key=lambda r: r.seconds), min((b for _, b in found), key=lambda r: r.seconds)
    return *fastest, kl


def plain_sweep(statistics: Statistics, n_actions: int, rounds: int) -> float:
    """Seconds of a sweep of SCAL+'s planner on these counts."""
    found = np.inf
    for _ in range(rounds):
        with watching() as watch:
            plan = gf.SCALPlus(statistics.n_states, n_actions, span=10.0, replanning="full").plan(statistics, 10**6)
        found = min(found, (sum(watch.ended) - sum(watch.began)) / plan.sweeps)
    return found


def exact_kl_sweep(agent: gf.KLSCALPlus, rounds: int) -> float:
    """Seconds of a sweep of `extended_value_iteration` over the balls of the agent, with their exact maximum."""
    statistics, S = agent.statistics, agent.n_states
    views: list[Any] = []
    agent.on_episode = views.append
    agent.begin_episode()
    details, found = views[-1].plan.details, np.inf
    rows = empirical_rows(statistics, agent.allowed)
    mdp = gf.MDP.from_rows(*rows, details["rewards"].reshape(S, agent.n_actions))
    for _ in range(rounds):
        with watching() as watch:
            ball = KLBall(details["radius"].reshape(S, agent.n_actions))
            plan = gf.extended_value_iteration(mdp, ball, precision=1e-3)
        found = min(found, (sum(watch.ended) - sum(watch.began)) / plan.sweeps)
    return found


def kl(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    horizon, rounds = (10**5, 2) if quick else (10**6, 5)
    print(
        f"\na sweep over KL balls in units of a plain sweep of SCAL+ on the same counts: Garnet(200, {A}, Γ), "
        f"{horizon:,} steps\n"
    )
    print(
        "| Γ | plain sweep | exact maximum | KL-SCAL+ in the run | with all of a plan | plans | sweeps |\n|"
        + 7 * "---|"
    )
    for branching in (3, 8, 32, 128):
        mdp = gf.environments.garnet(200, A, branching)
        _, run, agent = best_runs(mdp, horizon, rounds)
        plain, exact = plain_sweep(agent.statistics, A, 300), exact_kl_sweep(agent, rounds)
        units = f"{run.sweeping / run.sweeps / plain:.1f} | {run.planning / run.sweeps / plain:.1f}"
        print(
            f"| {branching} | {time_of(plain)} | {exact / plain:.0f} | {units} | {run.plans} | {run.sweeps} |",
            flush=True,
        )


def kl_runs(quick: bool, plot: str | None) -> None:  # noqa: ARG001
    horizon, rounds = (10**5, 2) if quick else (10**6, 5)
    print("\nwhole runs, the fastest of several\n")
    print("| | steps | SCAL+ | KL-SCAL+ | KL-SCAL+ / SCAL+ | planning (SCAL+, KL-SCAL+) |\n|" + 6 * "---|")
    for title, made, steps in (
        ("RiverSwim-6", gf.environments.riverswim(6), 10 * horizon),
        ("Garnet(200, 4, 8)", gf.environments.garnet(200, 4, 8), horizon),
        ("four rooms", gf.environments.four_rooms(), horizon),
    ):
        plus, run, _ = best_runs(made, steps, rounds)
        print(
            f"| {title} | {steps:,} | {time_of(plus.seconds)} | {time_of(run.seconds)} "
            f"| {run.seconds / plus.seconds:.2f} | {time_of(plus.planning)}, {time_of(run.planning)} |",
            flush=True,
        )


PARTS: dict[str, Callable[[bool, str | None], None]] = {
    "grid": grid,
    "data": data,
    "inside": inside,
    "warm": warm,
    "balls": balls,
    "kl": kl,
    "kl_runs": kl_runs,
}


def main(arguments: list[str]) -> None:
    rest, plot = list(arguments), None
    if "--plot" in rest:
        at = rest.index("--plot")
        if at + 1 == len(rest):
            sys.exit("--plot needs a file")
        plot = rest[at + 1]
        if not Path(plot).resolve().parent.is_dir():
            sys.exit(f"--plot: {Path(plot).parent} is not a folder")
        del rest[at : at + 2]
    quick, keep = "--quick" in rest, "--record" in rest
    unknown = [a for a in rest if a not in PARTS and a not in ("--quick", "--record", EVEN_IF_BUSY)]
    if unknown:
        sys.exit(f"unknown argument {unknown[0]!r}; choose from {', '.join(PARTS)}, --quick, --record, --plot FILE")
    if quick and keep:
        sys.exit("--record needs the whole measurement, not --quick")
    compile_all()
    for part in [a for a in rest if a in PARTS] or list(PARTS):
        with printed("planning_cost", part, keep=keep):
            PARTS[part](quick, plot)


if __name__ == "__main__":
    main(sys.argv[1:])
