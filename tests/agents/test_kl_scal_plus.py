from __future__ import annotations

import math
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodeView
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.optimism.kl_scal_plus import deviation_level, kl_upper
from gainful.planning.confidence import KLBall
from gainful.theory import klmax


def divergence(x: float, y: Decimal) -> Decimal:
    """The binary relative entropy, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        p = Decimal(x)
        return sum((a * (a / b).ln() for a, b in ((p, y), (1 - p, 1 - y)) if a > 0), Decimal(0))


def iota(S: int, n: int, delta: float = 0.05) -> float:
    return math.log(S * (S + 1) / delta) + 0.5 * math.log(n) + math.log(2)


# ---------------------------------------------------------------------- the equations


def test_the_deviation_level_by_hand() -> None:
    # S = 6, δ = .05, n = 100: ln 840 + ln 10 + ln 2 = ln 16800
    assert deviation_level(math.log(42 / 0.05), 100) == pytest.approx(math.log(16800), rel=1e-15, abs=0)


@pytest.mark.parametrize("radius", [1e-9, 1e-4, 0.1, 2.0, 30.0])
@pytest.mark.parametrize("mean", [0.0, 1e-12, 0.01, 0.5, 0.99, 1 - 1e-9])
def test_the_optimistic_mean_is_the_root_from_above(mean: float, radius: float) -> None:
    found = float(kl_upper(mean, radius))
    assert found == 1.0 or divergence(mean, Decimal(found)) >= radius
    below = Decimal(found) - Decimal("1e-10") * Decimal(found - mean) - Decimal("4e-15")
    assert below <= mean or divergence(mean, below) <= radius


def test_the_optimistic_mean_has_its_limits() -> None:
    assert kl_upper(1.0, 0.1) == 1.0
    assert kl_upper(0.3, math.inf) == 1.0
    assert kl_upper(5e-324, 0.1) == pytest.approx(-math.expm1(-0.1), rel=1e-9, abs=0)


def shown(agent: gf.KLSCALPlus) -> dict[str, Any]:
    """The details of a plan made now."""
    views: list[EpisodeView] = []
    agent.on_episode = views.append
    agent.begin_episode()
    return views[-1].plan.details


def shown_again(agent: gf.KLSCALPlus) -> dict[str, Any]:
    """The details of the present plan, made again by an agent in the same state."""
    arrays = {name: array.copy() for name, array in agent.own_arrays().items()}
    agent.on_episode = lambda view: None
    plan = agent.plan(agent.statistics, agent.t + 1)
    agent.on_episode = None
    agent.restore(arrays)
    return plan.details


def test_the_plan_uses_the_sets_of_the_equations() -> None:
    agent = gf.KLSCALPlus(2, 2, reward_min=-1.0, reward_max=3.0)
    assert np.all(np.isinf(shown(agent)["radius"]))
    assert agent.vacuous
    for i in range(400):
        agent.observe(0, 1, 0.0, int(i % 4 == 0))
    found = shown(agent)
    assert found["radius"][1] == pytest.approx(iota(2, 400) / 400, rel=1e-14, abs=0)
    assert found["rewards"][1] == pytest.approx(4.0 * kl_upper(0.25, iota(2, 400) / 400), rel=1e-14, abs=0)
    assert found["rewards"][0] == 4.0
    assert not agent.vacuous


def test_one_state_is_a_bandit_with_kl_ucb_and_these_radii() -> None:
    mdp = gf.MDP(np.ones((1, 3, 1)), [[0.2, 0.5, 0.45]], reward_law="bernoulli")
    agent, rng = gf.KLSCALPlus(1, 3), np.random.default_rng(0)
    episode = 0
    for _ in range(500):
        action = agent.act(0)
        if len(agent.episodes) > episode:
            episode = len(agent.episodes)
            n, total = agent.statistics.visits, agent.statistics.reward_sum
            index = [
                kl_upper(total[a] / n[a], (math.log(2 / 0.05) + 0.5 * math.log(n[a]) + math.log(2)) / n[a])
                if n[a]
                else 1.0
                for a in range(3)
            ]
            assert action == int(np.argmax(index))
            assert agent.episodes["gain_low"][-1] - 1e-12 <= max(index) <= agent.episodes["gain_high"][-1] + 1e-12
        agent.observe(0, action, float(rng.random() < mdp.rewards[0, action]), 0)


def test_optimism_and_the_span_by_the_diameter_on_riverswim() -> None:
    mdp = gf.environments.riverswim(6)
    gain, diameter = gf.solve(mdp).gain, gf.diameter(mdp)
    for seed in range(3):
        agent = gf.KLSCALPlus(6, 2)
        gf.simulate(agent, mdp, 20_000, seed=seed)
        found = agent.episodes
        eps = 1.0 / np.sqrt(found["step"])
        assert np.all(found["gain_high"] >= gain)
        assert np.all(found["gain_high"] - found["gain_low"] <= eps)
        assert np.all(found["span"] <= (1.0 + eps) * diameter + eps)


@pytest.mark.parametrize("options", [{}, {"episodes": "vanishing"}, {"span": 1.5}])
def test_every_plan_brackets_the_exact_operator(options: dict[str, Any]) -> None:
    """With the exact maximum in place of bounds: min and max of Tv - v lie in the bracket, and the actions suffice."""
    agent, span = gf.KLSCALPlus(4, 2, **options), options.get("span", np.inf)

    def check(view: EpisodeView) -> None:
        v, details = view.plan.values, view.plan.details
        q = details["rewards"].copy()
        for k in range(8):
            to, counts = view.statistics.row(k)
            p = np.zeros(4)
            p[to] = counts / max(1, counts.sum())
            q[k] += klmax(p, v, details["radius"][k]) if to.size else v.max()
        best = q.reshape(4, 2).max(axis=1)
        change = np.minimum(best, best.min() + span) - v
        low, high = view.plan.gain_bounds
        assert low - 1e-9 <= change.min() <= change.max() <= high + 1e-9
        played = q.reshape(4, 2)[np.arange(4), view.plan.actions]
        assert np.all(played >= v + high - 1.0 / math.sqrt(view.step) - 1e-9)

    agent.on_episode = check
    gf.simulate(agent, gf.environments.riverswim(4), 3_000, seed=4)
    assert len(agent.episodes) > 20


def test_a_span_that_never_binds_changes_nothing() -> None:
    mdp = gf.environments.garnet(8, 2, 3, instance=1)
    runs = []
    for span in (None, 1e6):
        agent = gf.KLSCALPlus(8, 2, span=span)
        gf.simulate(agent, mdp, 5_000, seed=1)
        runs.append((agent.statistics.visits.tolist(), agent.episodes["gain"].tolist()))
    assert runs[0] == runs[1]


def test_a_span_keeps_the_values_within_it_where_states_are_unreachable() -> None:
    mdp = gf.environments.weakly_communicating_toy()
    span = gf.solve(mdp).span
    agent = gf.KLSCALPlus(mdp.n_states, mdp.n_actions, span=span, allowed=mdp.allowed)
    gf.simulate(agent, mdp, 20_000, seed=0)
    assert np.all(agent.episodes["span"] <= span * (1 + 1e-12))
    regret = 20_000 * gf.solve(mdp).gain - float(agent.statistics.reward_sum.sum())
    assert regret < 500


def test_units_of_reward_do_not_matter() -> None:
    mdp = gf.environments.riverswim(4)
    P, r = mdp.to_dense()
    plain, costs = gf.KLSCALPlus(4, 2), gf.KLSCALPlus(4, 2, reward_min=-512.0, reward_max=512.0)
    gf.simulate(plain, gf.MDP(P, r), 3_000, seed=2)
    gf.simulate(costs, gf.MDP(P, 1024.0 * r - 512.0), 3_000, seed=2)
    assert np.array_equal(plain.statistics.visits, costs.statistics.visits)
    assert costs.episodes["gain"] == pytest.approx(1024.0 * plain.episodes["gain"] - 512.0, rel=1e-12, abs=1e-9)
    assert costs.episodes["span"] == pytest.approx(1024.0 * plain.episodes["span"], rel=1e-12, abs=0)


# ---------------------------------------------------------------------- episodes


def multipliers(agent: gf.KLSCALPlus, horizon: int) -> list[tuple[int, float, float]]:
    found: list[tuple[int, float, float]] = []
    agent.on_episode = lambda view: found.append((view.step, view.plan.multiplier, float(np.ptp(view.plan.values))))
    gf.simulate(agent, gf.environments.riverswim(4), horizon, seed=0)
    return found


def test_vanishing_episodes_follow_the_largest_span_so_far() -> None:
    most = 1.0
    found = multipliers(gf.KLSCALPlus(4, 2, episodes="vanishing"), 3_000)
    for step, f, span in found:
        most = max(most, span)
        assert f == pytest.approx(min(1.0, math.sqrt(8 * most / step)), rel=1e-12, abs=0)
    assert len(found) > len(multipliers(gf.KLSCALPlus(4, 2), 3_000))


def test_the_square_root_rule() -> None:
    for step, f, _ in multipliers(gf.KLSCALPlus(4, 2, episodes="vanishing-sqrt"), 2_000):
        assert f == (1.0 if step == 1 else pytest.approx(math.sqrt(math.log(step) / step), rel=1e-15, abs=0))


# ---------------------------------------------------------------------- unreachable states


def test_with_tucrls_rule_an_unreachable_state_loses_its_attraction() -> None:
    mdp = gf.environments.weakly_communicating_toy()
    agent = gf.KLSCALPlus(mdp.n_states, mdp.n_actions, unreachable="tucrl", allowed=mdp.allowed)
    gf.simulate(agent, mdp, 20_000, seed=0)
    assert 20_000 * gf.solve(mdp).gain - float(agent.statistics.reward_sum.sum()) < 2_000
    assert not agent.guarantee.holds
    assert "TUCRL" in str(agent.guarantee)


def test_the_truncated_plan_agrees_with_extended_value_iteration() -> None:
    """After any number of steps, with lazy keys that outlive a change of the truncation."""
    P = np.zeros((4, 2, 4))
    P[0, :, 1], P[1, 0, 0], P[1, 1, 1], P[2:, :, 0] = 1.0, 1.0, 1.0, 1.0  # states 2 and 3 are never reached
    mdp = gf.MDP(P, [[0.0, 0.1], [0.3, 0.2], [1.0, 1.0], [1.0, 1.0]])
    agent, state = gf.KLSCALPlus(4, 2, unreachable="tucrl"), 0
    for t in range(600):
        before = len(agent.episodes)
        action = agent.act(state)
        if len(agent.episodes) > before and t > 0:
            details = shown_again(agent)
            n = agent.statistics.visits.reshape(4, 2)
            truncated = np.maximum(1, n - 1) > math.sqrt((t + 1) / 8)
            if truncated[agent.visited].all():
                truncated[:] = True
            rows = np.where(n[:, :, None] > 0, P, np.eye(4)[0])
            found = gf.extended_value_iteration(
                gf.MDP(rows, details["rewards"].reshape(4, 2)),
                KLBall(details["radius"].reshape(4, 2), agent.visited.copy(), truncated),
                precision=1e-9,
            )
            record = agent.episodes[-1]
            assert record["gain_low"] - 1e-8 <= found.gain <= record["gain_high"] + 1e-8
        to = int(np.argmax(mdp.to_dense()[0][state, action]))
        agent.observe(state, action, float(mdp.rewards[state, action]), to)
        state = to
    assert len(agent.episodes) > 20


def test_reaching_a_new_state_ends_the_episode() -> None:
    agent = gf.KLSCALPlus(3, 1, unreachable="tucrl")
    agent.observe(0, agent.act(0), 0.5, 1)
    agent.act(1)
    assert len(agent.episodes) == 2


# ---------------------------------------------------------------------- guarantee and files


def test_what_is_proven() -> None:
    assert "probability 0.85" in str(gf.KLSCALPlus(2, 2).guarantee)
    assert "communicating, of finite diameter" in str(gf.KLSCALPlus(2, 2).guarantee)
    assert "span at most c = 3" in str(gf.KLSCALPlus(2, 2, span=3.0).guarantee)
    assert not gf.KLSCALPlus(2, 2, width_scale=0.1).guarantee.holds
    assert not gf.KLSCALPlus(2, 2, delta=0.5).guarantee.holds
    assert "S·A·sqrt(T)" in gf.KLSCALPlus(2, 2, episodes="vanishing-sqrt").guarantee.bound
    assert "docs/kl_scal_plus.md" in gf.KLSCALPlus(2, 2, episodes="vanishing").guarantee.source


@pytest.mark.parametrize(
    "options",
    [
        {"span": -1.0},
        {"span": math.inf},
        {"span": "auto"},
        {"episodes": "halving"},
        {"unreachable": "yes"},
        {"width_scale": 0.0},
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{next(iter(options))} is"):
        gf.KLSCALPlus(2, 2, **options)


@pytest.mark.parametrize(
    "options", [{"span": 2.0}, {"episodes": "vanishing"}, {"unreachable": "tucrl", "reward_max": 2.0}]
)
def test_a_saved_agent_goes_on_to_the_same_bits(options: dict[str, Any], tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(5)
    agent = gf.KLSCALPlus(5, 2, **options)
    gf.simulate(agent, mdp, 1_500, seed=1)
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    assert again.settings() == agent.settings()
    assert again.vacuous == agent.vacuous
    for one in (agent, again):
        gf.simulate(one, mdp, 4_000, seed=2)
    assert np.array_equal(agent.statistics.visits, again.statistics.visits)
    assert np.array_equal(agent.episodes["gain"], again.episodes["gain"])
    for name, array in agent.own_arrays().items():
        assert np.array_equal(array, again.own_arrays()[name]), name


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("values", np.nan), ("x", -1.0), ("key", np.nan), ("actions", 7), ("planned_visits", 10**6), ("level", 3)],
)
def test_a_damaged_file_is_refused(name: str, wrong: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = gf.KLSCALPlus(3, 2)
    gf.simulate(agent, gf.environments.riverswim(3), 100, seed=1)
    arrays = {key: array.copy() for key, array in agent.own_arrays().items()}
    arrays[name][0] = wrong
    monkeypatch.setattr(gf.KLSCALPlus, "own_arrays", lambda _: arrays)
    agent.save(tmp_path / "it")
    with pytest.raises(InvalidAgentError):
        gf.load_agent(tmp_path / "it")
