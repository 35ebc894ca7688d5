"""C-SCAL+ audited: against slow sums in plain NumPy, over many runs, and where something is made wrong on purpose."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import gainful as gf
from gainful.audit import audit, audit_run
from gainful.audit.c_scal_plus import CellsAuditor
from gainful.audit.cells import CellsTruth, right_closed_edges
from gainful.audit.interval_law import SHARES, IntervalTables
from gainful.audit.points import POINTS
from gainful.audit.run import RunAudit
from gainful.audit.trace import STATEMENTS_ABOUT_THE_TRACE
from gainful.environments.continuous.oracle import OracleSolution, oracle_gain, oracle_solution
from gainful.simulation.continuous import LOGGED_PAUSE
from gainful.simulation.simulate import new_simulation
from gainful.theory.equations import scal_plus_bonus, scal_plus_deviation

GRID = 60
"""Intervals of the oracle's coarser grid: the audit is exact for the bias of any grid."""
SPANS = {"lqg": 1.4, "replacement": 1.6, "continuous-inventory": 23.5, "continuous-riverswim": 81.0}
OF_THE_LEMMA = {
    *("bonus-rewards", "bonus-transitions", "bonus-bias", "bonus-values", "bonus-all-values"),
    *("optimism", "decomposition", "regret-bound"),
}


@cache
def truth_for(name: str) -> CellsTruth:
    return CellsTruth.of(gf.environments.make_continuous(name), bins=GRID)


def learner(env: Any, bins: int | None = 10, **options: Any) -> gf.CSCALPlus:
    given: dict[str, Any] = {
        "n_actions": env.n_actions,
        "span": SPANS.get(env.name, 1.0),
        "lipschitz": env.lipschitz,
        "holder": env.holder,
        "reward_min": env.reward_min,
        "reward_max": env.reward_max,
    }
    if bins is not None:
        given["partition"] = gf.Partition.uniform(bins=bins)
    return gf.CSCALPlus(**{**given, **options})


def audited(agent: gf.CSCALPlus, truth: CellsTruth, horizon: int, seed: int = 0) -> CellsAuditor:
    """An auditor after the run, with what it has seen."""
    simulation = new_simulation(agent, truth.environment, horizon, seed, gain=truth.gain)
    auditor = CellsAuditor(agent, truth, simulation)  # type: ignore[arg-type]
    agent.on_episode = auditor.see
    simulation.finish()
    return auditor


# ---------------------------------------------------------------------- slow and plain


def slow_law(truth: CellsTruth, x: float, a: int, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """p(J|x,a), J = (e_j, e_{j+1}] in the unit interval, from the distribution function alone."""
    law = truth.environment.law
    assert law is not None
    cdf = [0.0]
    for e in edges[1:-1]:
        cdf.append(float(law(np.array([[x]]), a, np.array([[e]]))[0][0, 0]))
    return np.diff([*cdf, 1.0])


def slow_expectation(truth: CellsTruth, x: float, a: int) -> float:
    """E h(X') = h(1) - ∫ h'·F, by Gauss and Legendre between nodes and kinks of F: not by the law's own integral."""
    env, solved = truth.environment, truth.solution
    assert env.law is not None
    assert isinstance(solved, OracleSolution)
    kinks = [x, min(x + a / (env.n_actions - 1), 1.0)]  # wear as it is; stock with the order
    z = np.unique([*solved.nodes, *kinks])
    s, w = np.polynomial.legendre.leggauss(6)
    y = z[:-1, None] + np.diff(z)[:, None] * (1.0 + s) / 2.0
    mean = env.law(np.array([[x]]), a, y.reshape(1, -1))[0].reshape(y.shape) @ w / 2.0
    return float(solved.bias[-1] - np.sum(np.diff(np.interp(z, solved.nodes, solved.bias)) * mean))


class Watcher:
    """Steps an agent by `act` and `observe`, and keeps everything."""

    def __init__(self, agent: gf.CSCALPlus, truth: CellsTruth, horizon: int, seed: int) -> None:
        env = truth.environment
        self.agent, self.truth = agent, truth
        self.plans: list[tuple[int, NDArray[np.float64], gf.Partition]] = []
        agent.on_episode = lambda view: self.plans.append((view.step, view.plan.values.copy(), agent.partition))
        self.moves: list[tuple[float, int, float, float]] = []
        x = env.start.copy()
        for t in range(horizon):
            a = agent.act(x)
            r, to = env.step(t, x, a, seed)
            agent.observe(x, a, r, to)
            self.moves.append((float(x[0]), a, r, float(to[0])))
            x = to

    def events(self, k: int) -> dict[str, tuple[float, float, Any]]:
        """(a), (b) with v_k and (b) for all v as episode k begins: found, allowed, found/allowed per pair; and gaps."""
        agent, solved, env = self.agent, self.truth.solution, self.truth.environment
        assert isinstance(solved, OracleSolution)
        step, v, part = self.plans[k]
        S, A, c, r_max = part.n_cells, env.n_actions, agent.span, agent.reward_range
        added = (c + r_max) * (agent.lipschitz or 0.0) * S ** -(agent.holder or 1.0)
        edges = np.arange(S + 1) / S
        z = np.linspace(0.0, 1.0 / S, 200_001)
        first = float(np.mean(np.interp((z[1:] + z[:-1]) / 2.0, solved.nodes, solved.bias)))
        n, total, h_sum = np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
        N = np.zeros((S, A, S))
        for x, a, r, y in self.moves[: step - 1]:
            i, j = part.index(x), part.index(y)
            n[i, a] += 1
            total[i, a] += r - agent.reward_min
            h_sum[i, a] += np.interp(y, solved.nodes, solved.bias)
            N[i, a, j] += 1
        b = added + scal_plus_bonus(n, step, S, A, span=c, reward_max=r_max, delta=agent.delta, scale=agent.bonus_scale)
        d = added + scal_plus_deviation(n, step, S, A, span=c, support=S + 1, reward_max=r_max, delta=agent.delta)
        worst: dict[str, tuple[float, float, Any]] = {n: (-1.0, 1.0, np.zeros(S * A)) for n in ("a", "v", "all")}
        gaps = []
        for i in range(S):
            points = edges[i] + (edges[i + 1] - edges[i]) * SHARES
            lifted = -math.inf
            best = np.full(POINTS, -math.inf)
            for a in range(A):
                p_hat = N[i, a].copy()
                p_hat[0] += 1.0
                p_hat /= n[i, a] + 1.0
                r_bar = total[i, a] / max(1.0, n[i, a])
                of_h = (h_sum[i, a] + first) / (n[i, a] + 1.0)
                lifted = max(lifted, r_bar + b[i, a] + of_h)
                for j, x in enumerate(points):
                    r = float(env.rewards(np.array([x]), a)[0]) - agent.reward_min
                    p, expected = slow_law(self.truth, x, a, edges), slow_expectation(self.truth, x, a)
                    best[j] = max(best[j], r + expected)
                    for name, found, allowed in (
                        ("a", abs(r_bar - r + of_h - expected), b[i, a]),
                        ("v", abs(r_bar - r + (p_hat - p) @ v), d[i, a]),
                        ("all", abs(r_bar - r) + c / 2.0 * np.abs(p_hat - p).sum(), d[i, a]),
                    ):
                        parts = worst[name][2]
                        parts[i * A + a] = max(parts[i * A + a], found / allowed)
                        if found / allowed > worst[name][0] / worst[name][1]:
                            worst[name] = (found, allowed, parts)
            gaps += (lifted - best).tolist()
        return {**worst, "gap": (float(np.mean(gaps)), float(np.max(gaps)), -1)}

    def luck(self) -> tuple[float, float]:
        """Σ p(·|x_t,a_t)·v - v(x_{t+1}), and Σ v_k(end) - v_k(begin), over the whole run."""
        luck = telescoping = 0.0
        for k, (step, v, part) in enumerate(self.plans):
            until = self.plans[k + 1][0] - 1 if k + 1 < len(self.plans) else len(self.moves)
            edges = np.arange(part.n_cells + 1) / part.n_cells
            for x, a, _, y in self.moves[step - 1 : until]:
                luck += float(slow_law(self.truth, x, a, edges) @ v) - v[part.index(y)]
            telescoping += v[part.index(self.moves[until - 1][3])] - v[part.index(self.moves[step - 1][0])]
        return luck, float(telescoping)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bins", "horizon", "options"),
    [
        ("lqg", 5, 700, {}),
        ("lqg", 16, 400, {"bonus_scale": 0.001, "lipschitz": 7.0}),
        pytest.param("replacement", 12, 800, {"bonus": "appendix", "bonus_scale": 0.2}, marks=pytest.mark.slow),
        pytest.param("continuous-inventory", 7, 600, {}, marks=pytest.mark.slow),
        pytest.param("continuous-riverswim", 9, 600, {}, marks=pytest.mark.slow),
        ("replacement", None, 2100, {}),  # cells refined on the way
    ],
)
def test_events_are_those_of_slow_sums_over_the_raw_points(
    name: str, bins: int | None, horizon: int, options: dict[str, Any]
) -> None:
    truth = truth_for(name)
    auditor = audited(learner(truth.environment, bins, seed=3, **options), truth, horizon, seed=5)
    slow = Watcher(learner(truth.environment, bins, seed=3, **options), truth, horizon, seed=5)
    n, A = len(slow.plans), truth.environment.n_actions
    _, shown = auditor.findings()
    cases, tightness = auditor.cases, shown["tightness"]
    assert n == cases["optimism"].found.size
    picked = [0, n // 3, n - 1]
    if bins is None:
        sizes = [part.n_cells for _, _, part in slow.plans]
        assert len(set(sizes)) > 1
        picked = [sizes.index(sizes[-1]), n - 1]
    for k in picked:
        events = slow.events(k)
        for event, name in (("a", "bonus-bias"), ("v", "bonus-values"), ("all", "bonus-all-values")):
            found, allowed, parts = events[event]
            case = cases[name]
            assert case.found[k] / case.allowed[k] == pytest.approx(found / allowed, rel=1e-8, abs=1e-8)
            assert case.found[k] == pytest.approx(found, rel=1e-8, abs=1e-8 * truth.environment.reward_range)
            assert case.allowed[k] == pytest.approx(allowed, rel=1e-12, abs=0)
            assert case.states is not None
            assert case.actions is not None
            pair = case.states[k] * A + case.actions[k]
            assert parts[pair] == pytest.approx(parts.max(), rel=1e-8, abs=0)  # ties
        assert tightness["mean"][k] == pytest.approx(events["gap"][0], rel=1e-8, abs=1e-8)
        assert tightness["largest"][k] == pytest.approx(events["gap"][1], rel=1e-8, abs=1e-8)
    luck, telescoping = slow.luck()
    c = slow.agent.span
    assert shown["sums"]["martingale"][-1] == pytest.approx(luck, rel=0, abs=1e-9 * c * horizon)
    assert shown["sums"]["telescoping"][-1] == pytest.approx(telescoping, rel=0, abs=1e-9 * c * n)
    assert shown["sums"]["steps"][-1] == horizon


def test_the_law_at_points_is_that_of_the_steps() -> None:
    """Frequencies of 6,000 steps from a point: each within 5 standard deviations."""
    truth = truth_for("continuous-inventory")
    env, part = truth.environment, gf.Partition.uniform(bins=6)
    tables, n = truth.on(part), 6_000
    assert isinstance(tables, IntervalTables)
    for row, a in ((0, 2), (14, 0), (29, 4)):
        to = np.array([env.step(t, tables.places[row], a, seed=1)[1][0] for t in range(n)])
        p = np.zeros(6)
        at = row * env.n_actions + a
        first, ptr, values = tables.laws
        p[first[at] : first[at] + ptr[at + 1] - ptr[at]] = values[ptr[at] : ptr[at + 1]]
        assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-12)
        seen = np.bincount(part.index_many(to), minlength=6) / n
        assert np.all(np.abs(seen - p) <= 5.0 * np.sqrt(p * (1.0 - p) / n) + 1e-12)


# ---------------------------------------------------------------------- the theorem's constants


@pytest.mark.slow
@pytest.mark.parametrize(("name", "bins", "horizon"), [("lqg", 8, 3000), ("replacement", 25, 3000)])
def test_every_statement_is_certified_with_the_theorems_constants(name: str, bins: int, horizon: int) -> None:
    env = truth_for(name).environment
    found = audit(lambda seed: learner(env, bins, seed=seed), env, horizon, runs=60)
    assert found.ok
    assert {verdict.verdict for verdict in found.verdicts.values()} <= {"certified", "implied", "cannot fail here"}
    assert set(found.verdicts) == {*CellsAuditor.names, *STATEMENTS_ABOUT_THE_TRACE}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SPANS))
def test_a_longer_run_holds_in_every_environment_with_a_law(name: str) -> None:
    truth = truth_for(name)
    found = audit_run(learner(truth.environment, 16), truth.environment, 10**5, 1, truth=truth)
    assert found.failed == []
    assert all(finding.applicable for finding in found.findings.values())
    assert found.shown["tightness"]["mean"][-1] > 0.0
    assert len(found.shown["bound"]) == len(found.shown["steps"])


def test_the_audited_run_is_that_of_simulate_to_the_bit() -> None:
    truth = truth_for("lqg")
    env = truth.environment
    for bins, horizon in ((20, 3 * 10**5), (None, 5000)):
        plain, watched = learner(env, bins, seed=2), learner(env, bins, seed=2)
        run = gf.simulate(plain, env, horizon, seed=7, gain=truth.gain)
        auditor = audited(watched, truth, horizon, seed=7)
        log = watched.log
        assert log is not None
        assert bins is None or log.action.size <= LOGGED_PAUSE
        auditor.findings()
        again = auditor.simulation.run()
        for name in ("rewards", "regret", "final_point"):
            assert np.array_equal(getattr(run, name), getattr(again, name)), name
        names = [n for n in run.episodes.dtype.names or () if n != "planning_seconds"]
        assert np.array_equal(run.episodes[names], again.episodes[names])
        for name, array in plain.statistics.to_arrays().items():
            assert np.array_equal(array, watched.statistics.to_arrays()[name]), name
        assert (watched.log is None) == (plain.log is None)
        assert set(watched.own_arrays()) == set(plain.own_arrays())
        if plain.log is not None and watched.log is not None:
            assert watched.log.n == plain.log.n == horizon


def audited_while_refined(agent: Any, truth: CellsTruth) -> RunAudit:
    """The audit of a run in which cells are halved: all holds but what is proven for fixed cells, which says so."""
    found = audit_run(agent, truth.environment, 20_000, 1, truth=truth)
    assert agent.stage >= 4
    assert found.failed == []
    silent = {n for n, finding in found.findings.items() if not finding.applicable}
    assert silent == {"term-bonus", "term-deviation", "term-precision", "regret-bound"}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lqg", "replacement"])
def test_cells_refined_in_life_are_audited(name: str) -> None:
    truth = truth_for(name)
    found = audited_while_refined(learner(truth.environment, None), truth)
    assert "the agent refines its cells" in found.findings["regret-bound"].reason
    assert "bound" not in found.shown


def test_units_of_the_environment_change_nothing() -> None:
    truth = truth_for("lqg")
    env = truth.environment
    unit = audit_run(learner(env, 10, seed=1), env, 4000, 1, truth=truth)
    part = gf.Partition.uniform(bins=10, low=-2.0, high=2.0)
    own = audit_run(learner(env, None, seed=1, partition=part), env, 4000, 1, truth=truth)
    assert own.failed == []
    for name, finding in unit.findings.items():
        other = own.findings[name]
        assert (finding.checks, finding.failures) == (other.checks, other.failures) or name == "cells"
        if finding.worst is not None and other.worst is not None and name.startswith(("bonus-b", "bonus-v", "term")):
            assert other.worst.found == pytest.approx(finding.worst.found, rel=1e-6, abs=1e-6)
    for name in ("bonus-bias", "bonus-values", "bonus-all-values"):
        assert own.shown["points"][name] == pytest.approx(4.0 * unit.shown["points"][name] - 2.0, rel=0, abs=1e-6)


def test_a_box_wider_than_the_environment_needs_a_larger_constant() -> None:
    truth = truth_for("lqg")
    env = truth.environment
    part = gf.Partition.uniform(bins=12, low=-3.0, high=5.0)  # twice as wide: cells are farther apart in unit terms
    assert env.lipschitz is not None
    told = audit_run(learner(env, None, partition=part, lipschitz=2.0 * env.lipschitz), env, 3000, 0, truth=truth)
    assert told.failed == []
    assert all(finding.applicable for finding in told.findings.values())
    small = audit_run(learner(env, None, partition=part), env, 3000, 0, truth=truth)
    assert {n for n, finding in small.findings.items() if not finding.applicable} == OF_THE_LEMMA


# ---------------------------------------------------------------------- what is wrong is found


@pytest.mark.slow
def test_a_small_bonus_breaks_the_lemma_and_optimism_and_says_where() -> None:
    truth = truth_for("lqg")
    agent = learner(truth.environment, 200, bonus_scale=0.001)
    found = audit_run(agent, truth.environment, 6000, 0, truth=truth)
    assert found.failed == ["bonus-transitions", "bonus-bias", "optimism"]
    worst = found.findings["bonus-bias"].worst
    assert worst is not None
    assert worst.found > worst.allowed
    assert worst.state is not None
    x = found.shown["points"]["bonus-bias"]
    assert worst.state / 200 <= x <= (worst.state + 1) / 200
    slow = Watcher(learner(truth.environment, 200, bonus_scale=0.001), truth, worst.step, 0)
    here = next(k for k, (step, _, _) in enumerate(slow.plans) if step == worst.step)
    assert here == worst.episode - 1
    visits = sum(a == worst.action and slow.agent.partition.index(y) == worst.state for y, a, _, _ in slow.moves[:-1])
    c, L = agent.span, agent.lipschitz
    assert L is not None
    b = scal_plus_bonus(visits, worst.step, 200, 5, span=c, scale=0.001) + (c + 1.0) * L / 200
    assert worst.allowed == pytest.approx(float(b), rel=1e-12, abs=0)
    verdicts = audit(
        lambda seed: learner(truth.environment, 200, bonus_scale=0.001, seed=seed), truth.environment, 1000, runs=2
    )
    assert verdicts.ok  # nothing was promised
    assert not verdicts["bonus-bias"].promised


def test_an_environment_that_states_too_small_a_constant_is_caught() -> None:
    env = replace(truth_for("lqg").environment, reward_lipschitz=1e-3, transition_lipschitz=1e-3)
    truth = replace(truth_for("lqg"), environment=env)
    found = audit_run(learner(env, 2), env, 10**5, 0, truth=truth)
    assert set(found.failed) == OF_THE_LEMMA - {"optimism", "decomposition", "regret-bound"}
    for name in found.failed:
        assert min(abs(found.shown["points"][name] - end) for end in (0.0, 0.5, 1.0)) < 1e-6  # far from the data's mean


def test_a_wrong_term_of_the_cells_is_caught() -> None:
    truth = truth_for("lqg")
    agent = learner(truth.environment, 8)
    agent.core.model_error /= 8  # as if n were the number of cells squared
    found = audit_run(agent, truth.environment, 300, 0, truth=truth)
    assert found.failed[0] == "bonus-formula"
    assert found.findings["bonus-formula"].failures == found.episodes


class LeftClosed(gf.Partition):
    """Cells [k/n, (k+1)/n): wrong at every inner edge."""

    def index(self, point: ArrayLike) -> int:
        return int(self.index_many(np.asarray(point, dtype=float).reshape(1, -1))[0])

    def index_many(self, points: ArrayLike) -> NDArray[np.int64]:
        x = np.asarray(points, dtype=float).reshape(-1)
        return np.clip(np.searchsorted(self.edges(), x, "right") - 1, 0, self.n_cells - 1)


def test_cells_closed_at_the_left_are_caught_at_edges_and_in_the_counts() -> None:
    truth = truth_for("lqg")
    env = truth.environment
    part = LeftClosed((10,), (0.0,), (1.0,))
    found = audit_run(learner(env, None, partition=part), env, 500, 0, truth=truth).findings["cells"]
    assert found.failures >= 9  # every inner edge, by index and by index_many
    assert found.worst is not None
    assert found.worst.state is not None
    agent = learner(env, None, partition=part)
    simulation = new_simulation(agent, env, 50, 0, gain=truth.gain)
    simulation.compiled = False  # type: ignore[union-attr]
    auditor = CellsAuditor(agent, truth, simulation)  # type: ignore[arg-type]
    agent.on_episode = auditor.see
    simulation.finish()
    assert auditor.miscounted[0] == 0
    assert auditor.miscounted[-1] > 0  # the run began at 0.5, an edge


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 49, 100])
def test_edges_are_the_doubles_nearest_to_fractions(bins: int) -> None:
    part = gf.Partition.uniform(bins=bins)
    assert np.array_equal(right_closed_edges(part, 0), part.edges())
    assert right_closed_edges(gf.Partition.uniform(bins=100), 0)[7] == 0.07


# ---------------------------------------------------------------------- where nothing is promised


@pytest.mark.parametrize(
    ("options", "names", "reason"),
    [
        ({"lipschitz": None}, OF_THE_LEMMA, "lipschitz not given"),
        ({"lipschitz": 6.0}, OF_THE_LEMMA, "given L = 6, α = 1, the environment has 6.38308"),
        (
            {"span": 0.5},
            {"bonus-transitions", "bonus-bias", "optimism", "decomposition", "regret-bound"},
            "more than c = 0.5",
        ),
        ({"partition": gf.Partition.uniform(bins=8, outside="clip")}, OF_THE_LEMMA, "outside is 'clip'"),
        ({"mixture": "min-action"}, {"decomposition"}, "draws its actions"),
        ({"bonus_scale": 2.0}, {"term-bonus"}, "bonus_scale is 2"),
        (
            {"allowed": np.arange(40).reshape(8, 5) % 7 > 0},
            {"optimism", "decomposition", "regret-bound"},
            "may not take every action",
        ),
    ],
)
def test_statements_that_do_not_apply_say_why(options: dict[str, Any], names: set[str], reason: str) -> None:
    truth = truth_for("lqg")
    found = audit_run(learner(truth.environment, 8, **options), truth.environment, 2000, 0, truth=truth)
    assert {n for n, finding in found.findings.items() if not finding.applicable} == names
    assert all(reason in found.findings[n].reason for n in names)
    assert found.failed == []


@pytest.mark.parametrize("bins", [4, None])
def test_without_a_law_the_plans_are_audited_all_the_same(bins: int | None) -> None:
    env = gf.environments.ship_steering()
    truth = CellsTruth.of(env)
    assert truth.gain is None
    options: dict[str, Any] = {"lipschitz": 3.0, "holder": 1.0, "dim": 3}
    if bins is not None:
        options = {"partition": gf.Partition.uniform(bins=[4, 5, 3])}
    agent = learner(env, None, **options)
    found = audit_run(agent, env, 5000, 0, truth=truth)
    assert found.failed == []
    silent = {n for n, finding in found.findings.items() if not finding.applicable}
    more = {"term-bonus", "term-deviation", "term-precision"} if bins is None else set()
    assert silent == OF_THE_LEMMA | {"term-martingale"} | more
    assert found.findings["cells"].checks > found.episodes
    assert "tightness" not in found.shown
    assert found.shown["sums"]["regret"] is None


def test_the_gain_of_a_plane_is_an_estimate() -> None:
    env = gf.environments.mountain_car()
    truth = CellsTruth.of(env, bins=8)
    assert truth.gain == oracle_gain(env, 8).gain
    assert math.isnan(truth.gain_low)
    assert truth.solution is None


def test_the_solution_is_the_one_behind_the_gain() -> None:
    env = gf.environments.lqg()
    gain, solution = oracle_gain(env, 50), oracle_solution(env, 50)
    assert (solution.gain, solution.bounds, solution.span) == (gain.gain, gain.bounds, gain.span)
    assert oracle_solution(gf.environments.lqg(), 50) is solution
    best = solution.q.max(axis=1) - solution.bias
    assert gain.bounds is not None
    assert gain.bounds[0] <= best.min() <= best.max() <= gain.bounds[1]
    with pytest.raises(gf.errors.InvalidArgumentError, match="the law of its steps is unknown"):
        oracle_solution(gf.environments.mountain_car())
