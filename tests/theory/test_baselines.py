"""Equations of MBIE-EB, UCBVI, optimistic Q-learning, Opt-PSRL and UCCRL: by hand, and against what the agents use."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful import theory


def test_bonuses_by_hand() -> None:
    found = theory.mbie_eb_bonus([0, 1, 100], 6, 2, discount=0.9, m=500, delta=0.1, reward_max=2.0)
    beta = 20.0 * math.sqrt(math.log(2 * 12 * 500 / 0.1) / 2)
    np.testing.assert_allclose(found, [beta, beta, beta / 10], rtol=1e-14, atol=0)
    found = theory.ucbvi_bonus([0, 49], 6, 2, episode_length=20, horizon=1e4, delta=0.1, reward_max=3.0)
    first = 7 * 60 * math.log(5 * 12 * 1e4 / 0.1)
    np.testing.assert_allclose(found, [first, first / 7], rtol=1e-14, atol=0)


def test_the_constants_are_those_of_the_agents() -> None:
    agent = gf.OptPSRL(6, 2, horizon=10_000)
    assert theory.opt_psrl_samples(6, 2, 0.05) == agent.samples
    assert theory.opt_psrl_threshold(6, 2, horizon=10_000, delta=0.05) == pytest.approx(
        agent.threshold, rel=1e-14, abs=0
    )
    learner = gf.OptimisticQ(6, 2, span=6.4, horizon=10**6)
    H = theory.optimistic_q_horizon(6, 2, span=6.4, horizon=1e6, delta=0.05)
    assert learner.effective_horizon == pytest.approx(H, rel=1e-14, abs=0)
    bonus = theory.optimistic_q_bonus([1, 9], H, span=6.4, horizon=1e6, delta=0.05)
    assert bonus[0] == pytest.approx(4 * learner.numbers[1], rel=1e-14, abs=0)
    assert bonus[1] == pytest.approx(bonus[0] / 3, rel=1e-14, abs=0)


def test_widths_of_uccrl_are_those_of_ucrl2_but_for_the_constant_and_the_widening() -> None:
    radius = theory.uccrl_radius([7], 100, 5, 3, widening=0.25, delta=0.1)
    np.testing.assert_allclose(radius - 0.25, 2 * theory.ucrl2_radius([7], 100, 5, 3, 0.1), rtol=1e-14, atol=0)
    width = theory.uccrl_reward_width([7], 100, 5, 3, widening=0.25, delta=0.1, reward_max=2.0)
    np.testing.assert_allclose(width - 0.5, theory.ucrl2_reward_width([7], 100, 5, 3, 0.1, 2.0), rtol=1e-14, atol=0)
