"""The auditor of SCAL+ against a slow, dense recomputation of everything it says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.episodic import EpisodePlan, EpisodeView, EpisodicAgent
from gainful.audit.run import audit_run
from gainful.audit.scal_plus import ScalPlusAuditor
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError
from gainful.simulation.simulate import new_simulation
from gainful.simulation.tabular import TabularSimulation


def dense(mdp: gf.MDP) -> NDArray[np.float64]:
    P = np.asarray(mdp.matrix().toarray())
    return P.reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


class Slow:
    """One episode in dense arrays, straight from the equations."""

    def __init__(self, agent: gf.SCALPlus, truth: Truth, view: EpisodeView) -> None:
        S, A, c, r_max = agent.n_states, agent.n_actions, agent.span, agent.reward_range
        N = view.statistics.visits.reshape(S, A).copy()
        counts = np.zeros((S, A, S))
        for k in range(S * A):
            to, n = view.statistics.row(k)
            counts[k // A, k % A, to] = n
        p_hat = counts / (N + 1)[:, :, None]
        p_hat[:, :, 0] += 1 / (N + 1)
        r_bar = view.statistics.reward_sum.reshape(S, A) / np.maximum(1, N)
        given: dict[str, Any] = {"span": c, "reward_max": r_max, "delta": agent.delta}
        assert agent.bonus == "appendix" or agent.bonus == "main text"
        b = gf.theory.scal_plus_bonus(N, view.step, S, A, variant=agent.bonus, scale=agent.bonus_scale, **given)
        d = gf.theory.scal_plus_deviation(N, view.step, S, A, support=truth.support, **given)
        P, r, h = dense(truth.mdp), truth.rewards.reshape(S, A) - agent.reward_min, truth.bias
        v = view.plan.values
        self.a = np.abs(r_bar - r + (p_hat - P) @ h)
        self.v = np.abs(r_bar - r + (p_hat - P) @ v)
        self.all = np.abs(r_bar - r) + c / 2 * np.abs(p_hat - P).sum(axis=2)
        self.b, self.d, self.N = b, d, N
        q = np.where(agent.allowed, r_bar + b + p_hat @ v, -np.inf)
        w = q.max(axis=1)
        cut = np.minimum(w, w.min() + c) - v
        self.low, self.high, self.cuts = cut.min(), cut.max(), bool(w.max() > w.min() + c)
        self.bracket = view.plan.gain_bounds
        gain = sum(view.plan.gain_bounds) / 2 - agent.reward_min
        self.two_sided = np.abs(gain - cut).max()
        self.one_sided = (gain - q[np.arange(S), view.plan.actions] + v).max()
        gaps = np.where(agent.allowed, r_bar + b + p_hat @ h, -np.inf).max(axis=1) - h - (truth.gain - agent.reward_min)
        self.gap_mean, self.gap_max = gaps.mean(), gaps.max()
        rows = p_hat[agent.allowed]
        self.gamma = max(0.5 * np.abs(x - y).sum() for x in rows for y in rows)
        self.gamma_bound = 1 - rows[:, 0].min()

    def worst(self, found: NDArray[np.float64], allowed: NDArray[np.float64], possible: Any) -> tuple[float, float]:
        ratio = np.where(possible & ((self.N > 0) | (found > allowed)), found / allowed, -1.0)
        if ratio.max() < 0:
            return 0.0, math.nan
        at = np.unravel_index(ratio.argmax(), ratio.shape)
        return float(found[at]), float(allowed[at])


@pytest.mark.parametrize("bonus", ["appendix", "main text"])
@pytest.mark.parametrize("name", ["riverswim", "machine_replacement", "admission_control"])
def test_every_number_is_that_of_dense_arrays(name: str, bonus: Any) -> None:
    mdp = getattr(gf.environments, name)()
    truth = Truth.of(mdp)
    agent = gf.SCALPlus(
        mdp.n_states,
        mdp.n_actions,
        span=0.3 * truth.span,
        reward_min=mdp.reward_min,
        reward_max=mdp.reward_max,
        allowed=mdp.allowed,
        bonus_scale=0.1,
        bonus=bonus,
    )
    simulation = new_simulation(agent, mdp, 20_000, 3, gain=truth.gain)
    assert isinstance(simulation, TabularSimulation)
    auditor = ScalPlusAuditor(agent, truth, simulation)
    slow: list[Slow] = []

    def see(view: EpisodeView) -> None:
        slow.append(Slow(agent, truth, view))
        auditor.see(view)

    agent.on_episode = see
    simulation.finish()
    _, shown = auditor.findings()
    cases, tightness = auditor.cases, shown["tightness"]
    assert len(slow) == cases["optimism"].found.size > 20
    near: dict[str, Any] = {"rel": 1e-9, "abs": 1e-9}
    for k, expected in enumerate(slow):
        low, high = (end - agent.reward_min for end in expected.bracket)
        assert cases["optimism"].allowed[k] == pytest.approx(expected.high, **near)
        outside = max(low - expected.low, expected.high - high)
        assert cases["certificate"].found[k] == pytest.approx(outside, **near)
        bellman = max(expected.one_sided, expected.two_sided)
        assert cases["bellman-error"].found[k] == pytest.approx(bellman, **near)
        assert tightness["mean"][k] == pytest.approx(expected.gap_mean, **near)
        assert tightness["largest"][k] == pytest.approx(expected.gap_max, **near)
        gamma, most = cases["contraction"].found[k], cases["contraction"].allowed[k]
        assert most == pytest.approx(expected.gamma_bound, **near)
        if mdp.n_states * mdp.n_actions <= 12:
            assert gamma == pytest.approx(expected.gamma, rel=1e-9, abs=1e-12)
        else:  # Doeblin's bound
            assert expected.gamma - 1e-12 <= gamma <= expected.gamma_bound + 1e-12
        for name, theirs, limit in (
            ("bonus-bias", expected.a, expected.b),
            ("bonus-values", expected.v, expected.d),
            ("bonus-all-values", expected.all, expected.d),
        ):
            value, most = expected.worst(theirs, limit, agent.allowed)
            if not math.isnan(most):
                ratio = cases[name].found[k] / cases[name].allowed[k]
                assert ratio == pytest.approx(value / most, rel=1e-9, abs=1e-12)
    assert any(expected.cuts for expected in slow)


def test_sums_are_those_of_the_steps_one_by_one() -> None:
    """Σν·b, Σν·d, luck and telescoping, against a life in single steps."""
    mdp = gf.environments.riverswim(4)
    truth = Truth.of(mdp)
    S, A, T, c = 4, 2, 5000, 1.01 * truth.span
    shown = audit_run(gf.SCALPlus(S, A, span=c), mdp, T, seed=5, truth=truth).shown["sums"]

    from gainful.simulation.transition_table import TabularStepper

    agent, world, P = gf.SCALPlus(S, A, span=c), TabularStepper(mdp, 5), dense(mdp)
    r, totals = truth.rewards.reshape(S, A), dict.fromkeys(("bonus", "deviation", "precision", "martingale"), 0.0)
    tele, state, v = 0.0, world.first_state, np.zeros(S)
    episode: tuple[Any, ...] = ()

    def see(view: EpisodeView) -> None:
        nonlocal episode
        N = view.statistics.visits.reshape(S, A).copy()
        b = gf.theory.scal_plus_bonus(N, view.step, S, A, span=c)
        d = gf.theory.scal_plus_deviation(N, view.step, S, A, span=c, support=truth.support)
        episode = b, d, view.plan.values.copy(), 1 / math.sqrt(view.step)

    agent.on_episode = see
    for t in range(T):
        a = agent.act(state)
        b, d, v, epsilon = episode
        reward, to = world.step(t, state, a)
        totals["bonus"] += b[state, a]
        totals["deviation"] += d[state, a]
        totals["precision"] += epsilon
        totals["martingale"] += P[state, a] @ v - v[to] + r[state, a] - reward
        tele += v[to] - v[state]
        agent.observe(state, a, reward, to)
        state = to
    for name, value in {**totals, "telescoping": tele}.items():
        assert shown[name][-1] == pytest.approx(value, rel=1e-9, abs=1e-7), name


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("riverswim", {"n_states": 4}),
        ("toy3d", {"delta": 0.1}),
        ("machine_replacement", {"n_states": 5}),
        ("weakly_communicating_toy", {}),
    ],
)
def test_with_the_theorems_constants_everything_holds(name: str, parameters: dict[str, Any]) -> None:
    mdp = getattr(gf.environments, name)(**parameters)
    c = 1.01 * gf.solve(mdp).span

    def make(seed: int) -> gf.SCALPlus:
        return gf.SCALPlus(
            mdp.n_states,
            mdp.n_actions,
            span=c,
            reward_min=mdp.reward_min,
            reward_max=mdp.reward_max,
            allowed=mdp.allowed,
            seed=seed,
        )

    found = gf.audit.audit(make, mdp, 3000, runs=60)
    assert {v.verdict for v in found.verdicts.values()} <= {"certified", "implied", "cannot fail here"}, [
        v for v in found.verdicts.values() if v.verdict not in {"certified", "implied", "cannot fail here"}
    ]
    assert found.ok


@pytest.mark.slow
def test_plans_that_are_repaired_are_audited() -> None:
    mdp = gf.environments.four_rooms(17)  # more than 10³ pairs
    agent = gf.SCALPlus.for_mdp(mdp, span=5.0, bonus_scale=0.05, replanning="local")
    found = audit_run(agent, mdp, 5_000)
    assert found.shown["plans"]["repaired"] > 10 * found.shown["plans"]["swept"]
    judged = ("bonus-formula", "span", "certificate", "precision", "bellman-error", "execution", "data")
    assert [name for name in judged if found.findings[name].failures or not found.findings[name].checks] == []


@pytest.mark.parametrize(
    "options", [{"mixture": "min-action"}, {"bonus": "main text"}, {"bonus": "authors"}, {"replanning": "local"}]
)
def test_every_kind_of_scal_plus_holds(options: dict[str, Any]) -> None:
    mdp = gf.environments.riverswim(6)
    found = gf.audit.audit(
        lambda seed: gf.SCALPlus(6, 2, span=6.4, seed=seed, bonus_scale=0.05, **options), mdp, 20_000, runs=3
    )
    certain = [v for v in found.verdicts.values() if not v.allowed]
    assert [v for v in certain if v.verdict not in ("certified", "implied", "cannot fail here")] == []


def test_an_audited_run_is_the_run_itself() -> None:
    mdp = gf.environments.riverswim(6)
    plain = gf.simulate(gf.SCALPlus(6, 2, span=7.0, seed=4), mdp, 50_000, seed=4)
    found = audit_run(gf.SCALPlus(6, 2, span=7.0, seed=4), mdp, 50_000, seed=4)
    assert found.shown["regret"] == plain.regret.tolist()
    assert found.episodes == len(plain.episodes)


def test_a_small_bonus_breaks_the_inequality_at_a_place_that_is_named() -> None:
    found = gf.audit.audit(
        lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed, bonus_scale=0.005),
        gf.environments.riverswim(6),
        30_000,
        runs=20,
    )
    verdict = found["bonus-bias"]
    assert (verdict.verdict, verdict.promised, verdict.broken) == ("violated", False, False)
    assert found.ok
    worst = verdict.worst
    assert worst is not None
    assert worst.found > worst.allowed
    agent = gf.SCALPlus(6, 2, span=7.0, seed=worst.seed or 0, bonus_scale=0.005)
    truth = Truth.of(gf.environments.riverswim(6))
    places: list[Slow] = []
    agent.on_episode = lambda view: places.append(Slow(agent, truth, view))
    gf.simulate(agent, gf.environments.riverswim(6), 30_000, seed=worst.seed or 0)
    at = places[worst.episode - 1]
    assert at.a[worst.state, worst.action] == pytest.approx(worst.found, rel=1e-9)
    assert at.b[worst.state, worst.action] == pytest.approx(worst.allowed, rel=1e-9)


def test_a_span_below_the_models_own_is_outside_the_theorem() -> None:
    found = audit_run(gf.SCALPlus(6, 2, span=2.0), gf.environments.riverswim(6), 2000)
    for name in ("bonus-bias", "optimism", "decomposition", "regret-bound"):
        assert "6.31" in found.findings[name].reason
    assert found.findings["span"].applicable


def test_an_agent_that_is_not_new_is_refused() -> None:
    agent = gf.SCALPlus(6, 2, span=7.0)
    agent.observe(0, 0, 0.0, 0)
    with pytest.raises(InvalidArgumentError, match="has already made 1 steps"):
        audit_run(agent, gf.environments.riverswim(6), 100)


class _OnesOwn(EpisodicAgent):
    """An agent about which nothing is known."""

    def plan(self, statistics: Any, t: int) -> EpisodePlan:
        raise NotImplementedError


def test_an_agent_without_a_theorem_is_refused_and_told_what_can_be_done() -> None:
    with pytest.raises(InvalidArgumentError, match="_OnesOwn in an MDP: no theorem") as raised:
        audit_run(_OnesOwn(6, 2), gf.environments.riverswim(6), 100)
    assert "scal-plus" in str(raised.value)
    assert "check_agent" in str(raised.value)


def test_the_bound_is_never_below_the_regret() -> None:
    """Where it says something: S·A = 4, after 10⁷ steps, far below T·g*, and still above every run's regret."""
    mdp = gf.environments.two_state_toy()
    c = 1.01 * gf.solve(mdp).span
    found = gf.audit.audit(lambda seed: gf.SCALPlus(2, 2, span=c, seed=seed), mdp, 10**7, runs=5)
    curves = found.regret_curves()
    assert curves["bound"][-1] < 0.2 * 10**7 * found.facts["gain"]
    assert np.all(np.array(curves["largest"]) <= np.array(curves["bound"]))


def test_a_next_state_listed_twice_counts_once() -> None:
    """A table may list a transition with two rewards: Γ is the number of next states."""
    import pandas as pd

    lines = [
        ("a", "go", "a", 0.25, 0.0),
        ("a", "go", "b", 0.25, 0.0),
        ("a", "go", "b", 0.5, 1.0),
        ("b", "go", "a", 1, 0),
    ]
    mdp = gf.MDP.from_table(pd.DataFrame(lines, columns=["state", "action", "next_state", "probability", "reward"]))
    truth = Truth.of(mdp)
    assert truth.support == 2
    assert truth.rows[2].tolist() == [0.25, 0.75, 1.0]
    found = audit_run(gf.SCALPlus(2, 1, span=1.1 * truth.span), mdp, 2000, truth=truth)
    assert found.failed == []
    worst = found.findings["bonus-all-values"].worst
    assert worst is not None
    assert worst.found <= 1.1 * truth.span + 1.0  # ‖p̂ − p‖₁ ≤ 2


def test_rewards_that_never_vary_are_no_violation() -> None:
    """The bracket is moved by reward_min and back: that rounding is allowed for."""
    mdp = gf.MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [1.0]])
    agent = gf.SCALPlus(2, 1, span=0.0, reward_min=1.0, reward_max=1.0 + 1e-9)
    assert audit_run(agent, mdp, 2000).failed == []


def test_rewards_far_from_zero_are_audited() -> None:
    river = gf.environments.riverswim(4)
    mdp = gf.MDP.from_rows(river.indptr, river.indices, river.probabilities, river.rewards + 1e7)
    agent = gf.SCALPlus(4, 2, span=20.0, reward_min=1e7, reward_max=1e7 + 1.0)
    assert audit_run(agent, mdp, 2000).failed == []


def test_a_planner_that_pads_its_bracket_is_not_more_optimistic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimism is judged by T_c v - v computed anew, not by what the planner says."""
    truth = Truth.of(gf.environments.riverswim(6))
    agent = gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.005)
    plan = agent.plan

    def padded(statistics: Any, t: int) -> Any:
        made = plan(statistics, t)
        low, high = made.gain_bounds
        return replace(made, gain_bounds=(low, high + 10.0))

    honest = audit_run(gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.005), truth.mdp, 30_000, 3, truth=truth)
    monkeypatch.setattr(agent, "plan", padded)
    found = audit_run(agent, truth.mdp, 30_000, 3, truth=truth)
    assert found.findings["optimism"] == honest.findings["optimism"]
    assert "precision" in found.failed


def test_the_truth_of_another_environment_is_refused() -> None:
    truth = Truth.of(gf.environments.riverswim(6))
    with pytest.raises(InvalidArgumentError, match="truth is that of another environment"):
        audit_run(gf.SCALPlus(6, 2, span=7.0), gf.environments.riverswim(6), 100, truth=truth)
