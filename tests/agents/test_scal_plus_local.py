"""Local re-planning, judged from outside: every plan's bracket is recomputed by a full sweep of the true M̂_k⁺."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodeView
from gainful.errors import InvalidArgumentError
from gainful.optimism.scal_plus import APPENDIX, AUTHORS, MAIN_TEXT, BonusConstants, BonusRewards, bonuses
from gainful.planning.local_scopt import LOCAL_FROM_PAIRS, LocalScOpt
from gainful.testing import check_agent

PROBLEMS: dict[str, tuple[Any, float]] = {
    "garnet": (lambda: gf.environments.garnet(60, 3, 5), 1.0),
    "narrow": (lambda: gf.environments.garnet(60, 3, 5), 0.2),  # the span constraint cuts
    "rooms": (lambda: gf.environments.four_rooms(11), 5.0),
    "river": (lambda: gf.environments.riverswim(40), 10.0),
    "taxi": (lambda: gf.environments.taxi(), 8.0),
    "toy": (lambda: gf.environments.toy3d(0.1), 2.0),
}


def made(mdp: gf.MDP, span: float, **more: Any) -> gf.SCALPlus:
    return gf.SCALPlus(
        mdp.n_states, mdp.n_actions, span=span, reward_min=mdp.reward_min, reward_max=mdp.reward_max,
        allowed=mdp.allowed, **({"replanning": "local"} | more),
    )  # fmt: skip


class Judge:
    """Recomputes T_c v - v with dense NumPy rows and the exact bonus of step t_k."""

    def __init__(self, agent: gf.SCALPlus) -> None:
        self.agent, self.episodes, self.widest = agent, 0, 0.0

    def __call__(self, view: EpisodeView) -> None:
        agent, S, A = self.agent, self.agent.n_states, self.agent.n_actions
        P = np.zeros((S, A, S))
        P[:, :, 0] = 1.0
        N = view.statistics.visits.reshape(S, A)
        for k in np.flatnonzero(view.statistics.visits):
            states, counts = view.statistics.row(int(k))
            P[divmod(k, A)][states] += counts
        P /= (N + 1)[:, :, None]
        beta = agent.bonus_scale * np.sqrt(7 * math.log(2 * S * A * view.step / agent.delta) / np.maximum(1, N))
        r_max, c = agent.reward_range, agent.span
        means = view.statistics.reward_sum.reshape(S, A) / np.maximum(1, N)
        if agent.bonus == "sharp":
            given: dict[str, Any] = {"span": c, "reward_max": r_max, "delta": agent.delta, "scale": agent.bonus_scale}
            bonus = np.sum(gf.theory.sharp_bonus(N, means, S, **given), axis=0) - means
        elif agent.bonus == "authors":
            given = {"span": c, "reward_max": r_max, "scale": agent.bonus_scale}
            bonus = np.minimum(means + gf.theory.authors_bonus(N, view.step, S, A, **given), 3 * (c + r_max)) - means
        elif agent.bonus == "appendix":
            bonus = c * np.minimum(beta + 1 / (N + 1), 2) + r_max * np.minimum(beta, 1)
        else:
            bonus = (c + r_max) * beta + c / (N + 1)
        v = view.plan.values
        q = np.where(agent.allowed, means + bonus + P @ v, -np.inf)
        Lv = q.max(axis=1)
        gaps = np.minimum(Lv, Lv.min() + c) - v + agent.reward_min
        low, high = view.plan.gain_bounds
        assert low <= gaps.min() + 1e-12
        assert gaps.max() <= high + 1e-12
        assert high - low <= r_max / math.sqrt(view.step)
        assert np.ptp(v) <= c + 1e-12
        assert view.plan.span == pytest.approx(np.ptp(v), rel=0, abs=1e-12)
        # the policy earns at least the lower end everywhere: what the proof uses of ε_k-optimality
        chosen = q[np.arange(S), view.plan.actions] - v + agent.reward_min
        assert np.all(chosen >= low - 1e-12)
        self.episodes += 1
        self.widest = max(self.widest, float(gaps.max() - gaps.min()) * math.sqrt(view.step) / r_max)


@pytest.mark.parametrize(
    "bonus", ["appendix", *(pytest.param(b, marks=pytest.mark.slow) for b in ("main text", "sharp", "authors"))]
)
@pytest.mark.parametrize("scale", [0.1, *(pytest.param(scale, marks=pytest.mark.slow) for scale in (1.0, 0.01))])
@pytest.mark.parametrize("problem", [pytest.param(p, marks=pytest.mark.slow if p == "taxi" else ()) for p in PROBLEMS])
def test_every_local_plan_is_confirmed_by_a_full_sweep(problem: str, scale: float, bonus: Any) -> None:
    build, span = PROBLEMS[problem]
    mdp = build()
    agent = made(mdp, span, bonus_scale=scale, bonus=bonus)
    agent.on_episode = judge = Judge(agent)
    gf.simulate(agent, mdp, 800 if problem == "taxi" else 4_000, seed=1)
    assert judge.episodes == len(agent.records) > 5
    if (problem, bonus) == ("taxi", "authors") and scale < 1:
        assert judge.widest < 1e-12  # most values are at the cut, where T_c v - v is one number
    else:
        assert 0 < judge.widest <= 1.0


def test_most_plans_are_repairs_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = gf.environments.four_rooms(31)
    agent = made(mdp, 5.0)
    refreshed = []
    refresh = LocalScOpt.refresh

    def counted(self: LocalScOpt, *rest: Any) -> bool:
        refreshed.append(self)
        return refresh(self, *rest)

    monkeypatch.setattr(LocalScOpt, "refresh", counted)
    run = gf.simulate(agent, mdp, 20_000, seed=1)
    assert len(run.episodes) > 500
    assert len(refreshed) < len(run.episodes) / 10


def test_a_run_saved_in_the_middle_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = gf.environments.four_rooms(11)
    straight, broken = made(mdp, 5.0, bonus_scale=0.1), made(mdp, 5.0, bonus_scale=0.1)
    whole = gf.simulate(straight, mdp, 9_000, seed=2)
    world = gf.simulation.transition_table.TabularStepper(mdp, 2)
    state = world.first_state
    for t in range(9_000):
        if t % 1_777 == 1_000:
            broken.save(tmp_path / "agent")
            broken = gf.load_agent(tmp_path / "agent")
            assert broken.replanning == "local"
        action = broken.act(state)
        reward, to = world.step(t, state, action)
        broken.observe(state, action, reward, to)
        state = to
    assert state == whole.final_state
    assert np.array_equal(broken.statistics.visits, straight.statistics.visits)
    for name in ("step", "gain", "gain_low", "gain_high", "span", "sweeps"):
        assert np.array_equal(broken.episodes[name], whole.episodes[name]), name


def test_local_and_full_plans_learn_alike() -> None:
    mdp = gf.environments.garnet(60, 3, 5)
    runs = [
        gf.simulate(made(mdp, 1.0, bonus_scale=0.05, replanning=r), mdp, 200_000, seed=1) for r in ("full", "local")
    ]
    worst = gf.simulate(gf.Fixed(60, 3, policy=np.full((60, 3), 1 / 3)), mdp, 200_000, seed=1).pseudo_regret[-1]
    assert all(run.pseudo_regret[-1] < worst / 4 for run in runs)


def test_the_default_is_fixed_by_the_number_of_pairs() -> None:
    assert gf.SCALPlus(10, 2, span=1.0).replanning == "full"
    assert gf.SCALPlus(LOCAL_FROM_PAIRS, 1, span=1.0).replanning == "local"
    assert gf.SCALPlus(LOCAL_FROM_PAIRS, 1, span=1.0, replanning="full").replanning == "full"
    with pytest.raises(InvalidArgumentError, match="replanning is 'lazy', expected 'full' or 'local'"):
        gf.SCALPlus(2, 2, span=1.0, replanning="lazy")  # type: ignore[arg-type]


@pytest.mark.parametrize("bonus", ["appendix", "sharp", "authors"])
def test_an_agent_that_plans_locally_passes_the_conformance_kit(bonus: Any) -> None:
    check_agent(lambda mdp: made(mdp, 3.0, bonus=bonus))


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.003])
@pytest.mark.parametrize("variant", [APPENDIX, MAIN_TEXT, AUTHORS])
def test_no_bonus_moves_by_more_than_its_class_allows(variant: int, scale: float) -> None:
    visits = np.unique(np.append(np.arange(300), np.rint(np.logspace(2, 6, 300)).astype(np.int64)))
    classes = np.frexp(np.maximum(1, visits))[1] - 1
    constants = BonusConstants(50, 4, 0.05, scale, 3.0, 1.0, variant)
    for since, t in ((1, 2), (1, 10**6), (500, 505), (10**5, 10**6)):
        seen = visits[visits <= t]
        rewards = BonusRewards(seen, np.zeros(seen.size), np.ones(seen.size, dtype=bool), t, constants)
        moved = bonuses(seen, t, constants) - bonuses(seen, since, constants)
        drift = rewards.growth(np.full(63, since))
        assert np.all(moved >= 0)
        assert np.all(moved <= drift[classes[visits <= t]] + 1e-12)
        if variant in (MAIN_TEXT, AUTHORS):
            assert moved.max() == pytest.approx(drift.max(), rel=1e-9, abs=1e-12)  # and the bound is reached
