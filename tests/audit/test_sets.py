"""The audit of the agents with confidence sets: against slow dense recomputations, and against sets made wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.audit import audit, audit_run
from gainful.audit.episodes import episode_rule
from gainful.audit.sets import SetsAuditor, within_reach
from gainful.audit.truth import Truth
from gainful.planning.confidence import Intervals, L1Ball
from gainful.simulation.simulate import new_simulation
from gainful.simulation.tabular import TabularSimulation

NAMES = ("UCRL2", "UCRL2B", "SCAL", "TUCRL", "KLUCRL")
IN_EVERY_TEST = {("KLUCRL", "river")}
HORIZON = 2000


def maker(name: str, mdp: gf.MDP, horizon: int = HORIZON, **options: Any) -> Callable[[int], Any]:
    """seed -> an agent of this kind for the MDP."""
    given: dict[str, Any] = {"allowed": mdp.allowed, **options}
    if name == "SCAL":
        given.setdefault("span", 1.1 * Truth.of(mdp).span)
    if name == "KLUCRL":
        given["horizon"] = horizon
    return lambda seed: getattr(gf, name)(mdp.n_states, mdp.n_actions, seed=seed, **given)


def begun(agent: Any, mdp: gf.MDP, horizon: int, seed: int) -> TabularSimulation:
    simulation = new_simulation(agent, mdp, horizon, seed)
    assert isinstance(simulation, TabularSimulation)
    return simulation


def garnet() -> gf.MDP:
    return gf.environments.garnet(5, 2, 3, reward_law="bernoulli")


# ---------------------------------------------------------------------- the slow audit


class SlowAudit:
    """Whether the true model lies in the set of every episode, with loops over a dense model."""

    def __init__(self, agent: Any, mdp: gf.MDP) -> None:
        self.agent = agent
        self.P, self.R = mdp.to_dense()
        self.rewards: list[tuple[float, float, int, int, int]] = []
        self.rows: list[tuple[float, float, int, int, int]] = []
        self.forbidden: list[bool] = []

    def widths(self, variance: float, N: int, t: int, unit: float) -> float:
        """Of a reward or an entry."""
        S, A, d, name = self.agent.n_states, self.agent.n_actions, self.agent.delta, type(self.agent).__name__
        if name == "SCAL" or getattr(self.agent, "bounds", "") == "published":  # SCAL, TUCRL
            b = math.log(2 * S * A * t / d)
            return math.sqrt(14 * variance * b / N) + 49 / 3 * unit * b / max(1, N - 1)
        log = math.log(6 * S * A * N / d)
        return 2 * math.sqrt(variance * log / N) + 6 * unit * log / N

    def see(self, view: EpisodeView) -> None:
        agent, s, t = self.agent, view.statistics, view.step
        S, A, d, name, scale = agent.n_states, agent.n_actions, agent.delta, type(agent).__name__, agent.width_scale
        rewards, rows = [], []
        for k in range(S * A):
            N = int(s.visits[k])
            if N == 0:
                continue
            p_bar = np.zeros(S)
            states, counts = s.row(k)
            p_bar[states] = counts / N
            p = self.P[k // A, k % A]
            mean = s.reward_sum[k] / N
            variance = max(0.0, s.reward_squares[k] / N - mean**2)
            if name == "UCRL2":
                width = math.sqrt(3.5 * math.log(2 * S * A * t / d) / N)
                row = np.abs(p - p_bar).sum(), min(2.0, scale * math.sqrt(14 * S * math.log(2 * A * t / d) / N))
            elif name == "KLUCRL":
                log_T = math.log(agent.horizon)
                B = math.log(2 * math.e * S * S * A * log_T / d)
                x = B + 1 / log_T
                width = math.sqrt(math.log(4 * S * A * log_T / d) / 1.99 / N)
                inside = p_bar > 0
                row = (
                    (p_bar[inside] * np.log(p_bar[inside] / p[inside])).sum(),
                    scale * S * (B + math.log(x) * (1 + 1 / x)) / N,
                )
            else:
                width = self.widths(variance, N, t, 1.0)
                each = [
                    (abs(p[y] - p_bar[y]), scale * self.widths(p_bar[y] * (1 - p_bar[y]), N, t, 1.0)) for y in range(S)
                ]
                row = max(each, key=lambda x: x[0] / x[1])
            rewards.append((abs(self.R[k // A, k % A] - mean), scale * width, t, k // A, k % A))
            rows.append((*row, t, k // A, k % A))
        if rewards:
            self.rewards.append(max(rewards, key=lambda x: x[0] / x[1]))
            self.rows.append(max(rows, key=lambda x: x[0] / x[1]))
        if name == "TUCRL":
            used = view.plan.details["confidence"]
            self.forbidden.append(
                any(
                    used.truncated[x, a] and self.P[x, a, y] > 0 and not used.reachable[y]
                    for x in range(S)
                    for a in range(A)
                    for y in range(S)
                )
            )


@pytest.mark.parametrize("scale", [pytest.param(1.0, marks=pytest.mark.slow), 0.02])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "SCAL" else pytest.mark.slow) for name in [*NAMES, "TUCRL ucrl2b"]]
)
def test_the_nearest_miss_is_that_of_a_slow_dense_audit(name: str, scale: float) -> None:
    mdp = garnet()
    name, *bounds = name.split()
    options: dict[str, Any] = {"bounds": bounds[0]} if bounds else {}
    agent = maker(name, mdp, width_scale=scale, **options)(3)
    slow = SlowAudit(agent, mdp)
    simulation = begun(agent, mdp, HORIZON, 3)
    fast = SetsAuditor(agent, Truth.of(mdp), simulation)

    def both(view: EpisodeView) -> None:
        slow.see(view)
        fast.see(view)

    agent.on_episode = both
    simulation.finish(None)
    found, _ = fast.findings()
    for statement, expected in (("rewards-in-set", slow.rewards), ("rows-in-set", slow.rows)):
        finding = found[statement]
        worst = max(expected, key=lambda x: x[0] / x[1])
        assert finding.checks == len(expected)
        assert finding.failures == sum(x[0] > x[1] for x in expected)
        assert finding.worst is not None
        assert (finding.worst.step, finding.worst.state, finding.worst.action) == worst[2:]
        assert finding.worst.found == pytest.approx(worst[0], rel=1e-9, abs=1e-12)
        assert finding.worst.allowed == pytest.approx(worst[1], rel=1e-12, abs=0)
    if scale < 1.0:
        assert found["rows-in-set"].failures > 0
    if name == "TUCRL":
        assert found["optimism"].checks == slow.forbidden.count(False) < len(slow.forbidden)


# ---------------------------------------------------------------------- with the theorem's constants all holds


@pytest.mark.parametrize(
    ("name", "which"),
    [
        pytest.param(name, which, marks=() if (name, which) in IN_EVERY_TEST else pytest.mark.slow)
        for name in NAMES
        for which in ("river", "garnet")
    ],
)
def test_every_statement_is_certified_by_sixty_runs(name: str, which: str) -> None:
    mdp = gf.environments.riverswim(3) if which == "river" else garnet()
    found = audit(maker(name, mdp, 1000), mdp, 1000, runs=60)
    assert {v.verdict for v in found.verdicts.values()} <= {"certified", "implied", "cannot fail here"}
    assert ("span" in found.verdicts) == (name == "SCAL")
    assert found.ok


@pytest.mark.parametrize("name", NAMES)
def test_narrow_sets_miss_the_true_model_and_the_place_is_named(name: str) -> None:
    mdp = garnet()
    found = audit(maker(name, mdp, width_scale=0.01), mdp, HORIZON, runs=10)
    for statement in ("rewards-in-set", "rows-in-set"):
        verdict = found[statement]
        assert verdict.verdict == "violated"
        assert not verdict.promised
        assert verdict.worst is not None
        assert verdict.worst.found > verdict.worst.allowed
        assert verdict.worst.state is not None
    assert found["set-formula"].verdict == "certified"  # small, but what was asked for
    assert found.ok  # nothing was promised


# ---------------------------------------------------------------------- a wrong set is caught


def shrunk_radius(plan: dict[str, Any]) -> dict[str, Any]:
    used = plan["confidence"]
    return {"confidence": replace(used, radius=np.where(used.radius < 2, 0.999, 1) * used.radius)}


def shrunk_upper(plan: dict[str, Any]) -> dict[str, Any]:
    used = plan["confidence"]
    return {"confidence": replace(used, upper=np.maximum(used.lower, used.upper - 1e-6))}


def shrunk_unseen(plan: dict[str, Any]) -> dict[str, Any]:
    used = plan["confidence"]
    if isinstance(used, L1Ball):  # TUCRL while there are states never visited
        return {}
    return {"confidence": replace(used, unseen=0.999 * used.unseen)}


def lower_rewards(plan: dict[str, Any]) -> dict[str, Any]:
    return {"rewards": plan["rewards"] - 1e-6}


def no_floor(plan: dict[str, Any]) -> dict[str, Any]:
    return {"confidence": replace(plan["confidence"], floor=0.0)}


def no_truncation(plan: dict[str, Any]) -> dict[str, Any]:
    used = plan["confidence"]
    return {"confidence": replace(used, truncated=np.zeros_like(used.truncated))}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, lower_rewards) for name in NAMES),
        ("UCRL2", shrunk_radius),
        ("KLUCRL", shrunk_radius),
        ("UCRL2B", shrunk_upper),
        pytest.param("SCAL", shrunk_upper, marks=pytest.mark.slow),
        ("TUCRL", shrunk_unseen),
        ("UCRL2B", shrunk_unseen),
        ("SCAL", no_floor),
        ("TUCRL", no_truncation),
    ],
)
def test_a_set_that_is_not_the_equations_is_caught(name: str, change: Callable[..., dict[str, Any]]) -> None:
    mdp = garnet()
    parent = getattr(gf, name)

    def plan(self: Any, statistics: Any, t: int) -> EpisodePlan:
        made: EpisodePlan = parent.plan(self, statistics, t)
        return replace(made, details=made.details | change(made.details))

    wrong = type(name, (parent,), {"plan": plan})
    own: dict[str, dict[str, Any]] = {"SCAL": {"span": 2.0}, "KLUCRL": {"horizon": 4000}}
    run = audit_run(wrong(5, 2, seed=1, width_scale=0.1, **own.get(name, {})), mdp, 4000, seed=1)
    assert run.findings["set-formula"].failures > 0
    assert (
        audit_run(maker(name, mdp, 4000, width_scale=0.1)(1), mdp, 4000, seed=1).findings["set-formula"].failures == 0
    )


def unchanged(_: dict[str, Any]) -> dict[str, Any]:
    return {}


def intervals_in_place_of_balls(plan: dict[str, Any]) -> dict[str, Any]:
    rows, used = plan["rows"], plan["confidence"]
    ones = np.ones(rows.p.size)
    options = {"reachable": used.reachable, "truncated": used.truncated}
    return {"confidence": Intervals(0.0 * ones, ones, np.ones_like(used.radius), **options)}


@pytest.mark.parametrize("change", [unchanged, shrunk_radius, no_truncation, intervals_in_place_of_balls])
def test_tucrls_relaxed_balls_are_those_of_the_equation(change: Callable[..., dict[str, Any]]) -> None:
    mdp = gf.environments.weakly_communicating_toy(2)

    class Wrong(gf.TUCRL):
        def plan(self, statistics: Any, t: int) -> EpisodePlan:
            made = super().plan(statistics, t)
            assert isinstance(made.details["confidence"], L1Ball)
            return replace(made, details=made.details | change(made.details))

    finding = audit_run(Wrong(4, 2, seed=1), mdp, 20_000, seed=1).findings["set-formula"]
    assert (finding.failures > 0) == (change is not unchanged)


def test_a_wrong_width_for_many_visits_only_is_caught_where_it_is() -> None:
    mdp = garnet()

    class UCRL2(gf.UCRL2):  # named as its parent: the audit goes by the name
        def plan(self, statistics: Any, t: int) -> EpisodePlan:
            made = super().plan(statistics, t)
            radius = made.details["confidence"].radius.copy()
            radius[2, 1] *= 0.5
            return replace(made, details=made.details | {"confidence": L1Ball(radius)})

    finding = audit_run(UCRL2(5, 2), mdp, HORIZON).findings["set-formula"]
    assert finding.failures == finding.checks
    assert finding.worst is not None
    assert (finding.worst.state, finding.worst.action) == (2, 1)


def test_scal_where_its_lower_bounds_are_shrunk() -> None:
    """With a tiny c and narrow sets the lower bounds leave no room for η_k; the audit knows what then is right."""
    mdp = gf.environments.riverswim(3)
    agent = gf.SCAL(3, 2, span=0.01, width_scale=1e-4, seed=0)
    shrunk = 0

    simulation = begun(agent, mdp, HORIZON, 0)
    auditor = SetsAuditor(agent, Truth.of(mdp), simulation)

    def see(view: EpisodeView) -> None:
        nonlocal shrunk
        used: Intervals = view.plan.details["confidence"]
        rows = view.plan.details["rows"]
        for k in range(6):
            here = slice(rows.indptr[k], rows.indptr[k + 1])
            if view.statistics.visits[k] and not (rows.indices[here] == 0).any():
                shrunk += bool(np.isclose(used.lower[here].sum(), 1 - used.floor, rtol=1e-12, atol=0))
        auditor.see(view)

    agent.on_episode = see
    simulation.finish(None)
    found, _ = auditor.findings()
    assert shrunk > 0
    assert found["set-formula"].failures == 0
    assert found["optimism"].reason.startswith("the optimal bias has span")


# ---------------------------------------------------------------------- optimism


def test_scal_may_lose_what_its_perturbation_costs() -> None:
    mdp = gf.environments.riverswim(3)
    run = audit_run(maker("SCAL", mdp)(0), mdp, HORIZON)
    agent = maker("SCAL", mdp)(0)
    gf.simulate(agent, mdp, HORIZON, seed=0)
    worst = run.findings["optimism"].worst
    assert worst is not None
    record = agent.episodes[worst.episode - 1]
    assert record["step"] == worst.step
    assert worst.allowed == pytest.approx(record["gain_high"] + 1.0 / worst.step, rel=1e-12, abs=0)


def test_states_out_of_reach_do_not_keep_tucrl_from_being_judged() -> None:
    mdp = gf.environments.weakly_communicating_toy(2)
    found = audit_run(maker("TUCRL", mdp)(0), mdp, 20_000).findings
    assert found["optimism"].checks == found["precision"].checks
    assert found["optimism"].failures == 0
    rows = Truth.of(mdp).rows
    assert within_reach(0, rows, 4, 2).tolist() == [True, True, False, False]
    assert within_reach(3, rows, 4, 2).all()


def test_kl_ucrl_is_judged_up_to_its_horizon() -> None:
    mdp = garnet()
    agent = maker("KLUCRL", mdp, 500)(0)
    run = audit_run(agent, mdp, HORIZON)
    early = int(np.sum(agent.episodes["step"] <= 500))
    assert 0 < early < run.episodes
    assert run.findings["optimism"].checks == early
    assert run.findings["precision"].checks == run.episodes


def test_units_do_not_matter() -> None:
    mdp = garnet()
    P, R = mdp.to_dense()
    moved = gf.MDP(P, 4.0 * R - 1.0)
    plain = gf.MDP(P, R)
    for name in NAMES:
        span: dict[str, Any] = {"span": 2.0} if name == "SCAL" else {}
        wide: dict[str, Any] = {"span": 8.0} if name == "SCAL" else {}
        one = audit_run(maker(name, plain, width_scale=0.05, **span)(0), plain, HORIZON).findings
        two = audit_run(
            maker(name, moved, width_scale=0.05, reward_min=-1.0, reward_max=3.0, **wide)(0), moved, HORIZON
        ).findings
        for statement in one:
            assert (one[statement].checks, one[statement].failures) == (two[statement].checks, two[statement].failures)


def test_a_next_state_listed_twice_counts_once() -> None:
    table = [
        ("a", "x", "a", 0.25, 1.0),
        ("a", "x", "a", 0.25, 0.0),
        ("a", "x", "b", 0.5, 0.0),
        ("b", "x", "a", 1.0, 0.0),
    ]
    mdp = gf.MDP.from_table(pd.DataFrame(table, columns=["state", "action", "next_state", "probability", "reward"]))
    ptr, idx, p = Truth.of(mdp).rows
    assert (ptr.tolist(), idx.tolist(), p.tolist()) == ([0, 2, 3], [0, 1, 0], [0.5, 0.5, 1.0])
    for name in NAMES:
        run = audit_run(maker(name, mdp)(0), mdp, 20_000)
        assert run.failed == []
        worst = run.findings["rows-in-set"].worst
        assert worst is not None
        if worst.step > 1000:
            assert worst.found < 0.2


# ---------------------------------------------------------------------- episodes


def test_episode_rule() -> None:
    step, pairs = np.array([1.0, 2.0, 4.0]), np.array([0.0, 3.0, 2.0])
    one, full = np.ones(3), np.array([1.0, 1.0, 0.0])
    assert episode_rule(step, one, pairs, full, 2).failures == 0  # the last one was cut by the horizon
    over = episode_rule(step, np.array([1.0, 1.5, 1.0]), pairs, full, 2)
    assert over.failures == 1
    assert over.worst is not None
    assert (over.worst.episode, over.worst.state, over.worst.action) == (2, 1, 1)
    early = episode_rule(step, one, pairs, np.array([1.0, 0.0, 0.0]), 2)
    assert early.failures == 1
    assert episode_rule(step, one, pairs, np.array([1.0, 0.0, 0.0]), 2, [0, 1, 0]).failures == 0  # TUCRL, a new state
    assert episode_rule(step, one, pairs, full, 2, [0, 2, 0]).failures == 1  # it should have ended at the first


# ---------------------------------------------------------------------- tightness


def slow_maximum(view: EpisodeView, k: int, h: np.ndarray[Any, Any], S: int, A: int) -> float:
    """max p·h over the set of pair k, by hand: mass goes to the best states first."""
    used, rows = view.plan.details["confidence"], view.plan.details["rows"]
    here = slice(rows.indptr[k], rows.indptr[k + 1])
    if isinstance(used, L1Ball):
        p = np.zeros(S)
        p[rows.indices[here]] = rows.p[here]
        moved = min(used.radius[k // A, k % A] / 2, 1 - p[np.argmax(h)])
        p[np.argmax(h)] += moved
        for y in np.argsort(h):
            if y != np.argmax(h):
                taken = min(moved, p[y])
                p[y] -= taken
                moved -= taken
        return float(p @ h)
    low, high = np.zeros(S), np.full(S, used.unseen[k // A, k % A])
    low[rows.indices[here]], high[rows.indices[here]] = used.lower[here], used.upper[here]
    if used.floor_state is not None:
        low[used.floor_state], high[used.floor_state] = np.maximum(
            [low[used.floor_state], high[used.floor_state]], used.floor
        )
    p = low.copy()
    for y in np.argsort(-h):
        p[y] += min(high[y] - low[y], 1 - p.sum())
    return float(p @ h)


@pytest.mark.parametrize("name", ["UCRL2", "UCRL2B", "SCAL"])
def test_tightness_is_shown_at_most_sixty_times_and_at_the_end(name: str) -> None:
    mdp = garnet()
    truth = Truth.of(mdp)
    agent = maker(name, mdp, width_scale=0.1)(0)
    simulation = begun(agent, mdp, 50_000, 0)
    auditor = SetsAuditor(agent, truth, simulation)
    expected: dict[int, tuple[float, float]] = {}

    def see(view: EpisodeView) -> None:
        auditor.see(view)
        q = np.array([slow_maximum(view, k, truth.bias, 5, 2) for k in range(10)]).reshape(5, 2)
        gap = (view.plan.details["rewards"] + q).max(axis=1) - truth.bias - truth.gain
        expected[view.step] = float(gap.mean()), float(gap.max())

    agent.on_episode = see
    simulation.finish(None)
    shown = auditor.findings()[1]["tightness"]
    assert 10 < len(shown["step"]) <= 60
    assert shown["step"][-1] == max(expected)
    assert shown["step"] == sorted(set(shown["step"]))
    for step, mean, largest in zip(shown["step"], shown["mean"], shown["largest"], strict=True):
        assert (mean, largest) == pytest.approx(expected[step], rel=0, abs=1e-8)
