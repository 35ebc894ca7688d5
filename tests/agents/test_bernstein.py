"""SCAL+ with the Bernstein bonus: what its proof says of the operator, on random counts and values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.audit import audit
from gainful.errors import InvalidArgumentError
from gainful.planning.bernstein_scopt import KAPPA_RANGE, KAPPA_VARIANCE, bernstein_bonuses
from gainful.planning.estimated import estimated_mdp
from gainful.testing import check_agent

S, A, C = 5, 2, 1.5
Floats = NDArray[np.float64]


class Case:
    """Random counts of a few to a few thousand visits, and the functions f of the bonus on them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        agent = gf.SCALPlus(S, A, span=C)
        self.N = np.zeros((S, A, S))
        for s, a in np.ndindex(S, A):
            states, n = rng.permutation(S)[: rng.integers(1, S + 1)], int(3.0 ** rng.uniform(0.0, 7.0)) - 1
            for to in states[rng.integers(0, states.size, n)]:
                agent.observe(s, a, 0.5, int(to))
                self.N[s, a, to] += 1
        self.n = self.N.sum(axis=2)
        many = np.maximum(2.0, self.n)
        x = np.log(4 * S * many * (many + 1) / 0.05) / (many - 1)
        self.x = np.where(self.n < 2, np.inf, x)
        self._model = tuple(estimated_mdp(agent.statistics, np.zeros(S * A)))
        self.p_hat = (self.N + np.eye(S)[0]) / (self.n + 1)[:, :, None]
        self.p_bar = self.N / np.maximum(1, self.n)[:, :, None]

    def f(self, v: Floats) -> Floats:
        """As compiled."""
        bonus = np.empty(S * A)
        bernstein_bonuses(self._model, self.x.reshape(-1), C, v, bonus)
        return np.asarray(self.p_hat @ v + bonus.reshape(S, A))

    def variance(self, v: Floats) -> Floats:
        return np.asarray((self.p_bar * (v - (self.p_bar @ v)[:, :, None]) ** 2).sum(axis=2))


def of_span(rng: np.random.Generator, most: float = C) -> Floats:
    """A random vector of span at most c, often with values at both ends."""
    v = np.clip(rng.uniform(-0.5, 1.5, S), 0.0, 1.0)
    return np.asarray(most * v + rng.normal())


CASES = [Case(seed) for seed in range(6)]


def test_the_constants_meet_the_conditions_of_the_proof() -> None:
    theta = 2 / 3
    assert math.sqrt(2) / theta <= KAPPA_VARIANCE * (1 + 1e-15)
    assert 7 / 3 / (1 - theta) <= KAPPA_RANGE * (1 + 1e-15)
    assert KAPPA_VARIANCE**2 <= KAPPA_RANGE * 2 / 3  # n/(n+1) for n = 2, the least


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_bonus_is_the_equation(case: Case) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        v = of_span(rng)
        _, bonus = gf.theory.bernstein_bonus(case.n, np.zeros((S, A)), case.variance(v), S, span=C)
        np.testing.assert_allclose(case.f(v), case.p_hat @ v + bonus, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_it_dominates_the_inequality_of_maurer_and_pontil(case: Case) -> None:
    rng = np.random.default_rng(1)
    some = case.n >= 2
    for _ in range(50):
        v = of_span(rng)
        x = case.x[some]
        mean, variance = (case.p_bar @ v)[some], case.variance(v)[some]
        least = np.minimum(v.max(), mean + np.sqrt(2 * variance * x) + 7 / 3 * C * x)  # no p·v is above max v
        assert np.all(case.f(v)[some] >= least - 1e-12)
        assert np.all(case.f(v)[~some] >= v.max() - 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_it_is_monotone_and_contracts_spans_but_the_plug_in_bonus_is_not(case: Case) -> None:
    rng = np.random.default_rng(2)
    gamma = 1 - 1 / (case.n.max() + 1)
    plug_in_falls = False
    for _ in range(400):
        v = of_span(rng)
        # one step up that stays in {sp ≤ c}
        w = np.minimum(v + rng.uniform(0, C, S) * (rng.random(S) < 0.5), v.min() + C)
        f, g = case.f(v), case.f(w)
        assert np.all(g >= f - 1e-12)
        assert np.all(g <= f + (w - v).max() + 1e-12)
        u = of_span(rng)
        difference = case.f(u) - f
        assert np.ptp(difference) <= gamma * np.ptp(u - v) + 1e-12
        plug_in = [case.p_hat @ y + np.sqrt(2 * case.variance(y) * np.minimum(case.x, 1.0)) for y in (v, w)]
        plug_in_falls = plug_in_falls or bool(np.any(plug_in[1] < plug_in[0] - 1e-9))
    assert plug_in_falls


def learner(seed: int = 0, **options: Any) -> gf.SCALPlus:
    return gf.SCALPlus(6, 2, span=6.4, bonus="bernstein", seed=seed, **options)


def test_runs_are_audited_and_nothing_is_violated() -> None:
    found = audit(learner, gf.environments.riverswim(6), 1_000, runs=60)
    assert found.ok
    words = {name: verdict.verdict for name, verdict in found.verdicts.items()}
    assert words.pop("mean-regret-bound") == "not applicable"
    assert set(words.values()) <= {"certified", "implied", "cannot fail here"}
    small = audit(lambda seed: learner(seed, bonus_scale=0.003), gf.environments.riverswim(6), 10_000, runs=10)
    assert small["bias-domination"].verdict == "violated"
    assert small.ok


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp, agent = gf.environments.riverswim(6), learner()
    gf.simulate(agent, mdp, 3210, seed=1)
    agent.save(tmp_path / "it.agent")
    again = gf.load_agent(tmp_path / "it.agent")
    assert again.settings() == agent.settings()
    assert np.array_equal(again.bonuses(), agent.bonuses())
    first, second = gf.simulate(agent, mdp, 5000, seed=2), gf.simulate(again, mdp, 5000, seed=2)
    assert np.array_equal(first.rewards, second.rewards)
    assert np.array_equal(first.episodes["gain_high"], second.episodes["gain_high"])


def test_it_passes_the_conformance_kit() -> None:
    def made(mdp: gf.MDP) -> gf.SCALPlus:
        given: dict[str, Any] = {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max, "allowed": mdp.allowed}
        return gf.SCALPlus(mdp.n_states, mdp.n_actions, span=3.0, bonus="bernstein", **given)

    check_agent(made)


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="bonus is 'bernstein' and replanning is 'local'"):
        learner(replanning="local")
    with pytest.raises(InvalidArgumentError, match="not for cells"):
        gf.CSCALPlus(partition=gf.Partition.uniform(bins=5), n_actions=2, span=1.0, bonus="bernstein")
    assert gf.SCALPlus(10_000, 2, span=1.0, bonus="bernstein").replanning == "full"


def test_the_guarantee_says_what_is_only_sketched() -> None:
    agent = learner()
    assert agent.vacuous
    assert "sketched only" in str(agent.guarantee)
    assert "no published proof" in str(agent.guarantee)
    assert not learner(mixture="min-action").guarantee.holds
    gf.simulate(agent, gf.environments.riverswim(6), 20_000, seed=1)
    assert not agent.vacuous
