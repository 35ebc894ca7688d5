"""The equations of the theory against those the agents are compiled with, and against THEORY by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.optimism.scal_plus import APPENDIX, MAIN_TEXT, bonus, confidence_log, deviation


@pytest.mark.parametrize("variant", ["appendix", "main text"])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_bonus_is_that_of_the_agents(variant: Any, scale: float) -> None:
    visits = np.array([0, 1, 2, 7, 100, 10**6, 10**12])
    found = gf.theory.scal_plus_bonus(
        visits,
        12345,
        6,
        2,
        span=7.0,
        reward_max=2.0,
        delta=0.1,
        variant=variant,
        scale=scale,
    )
    kind = APPENDIX if variant == "appendix" else MAIN_TEXT
    log = confidence_log(6, 2, 12345, 0.1)
    told = [bonus(kind, deviation(log, int(n), scale), int(n), 7.0, 2.0) for n in visits]
    np.testing.assert_allclose(found, told, rtol=1e-13, atol=0)


def test_phi_and_d_by_hand() -> None:
    log = math.log(3 * 6 * 2 * 50 / 0.05)
    phi = math.sqrt(7 * 2 * log / 400) + 14 * 6 * log / 400
    assert gf.theory.scal_plus_phi(400, 50, 6, 2, 0.05, 3) == pytest.approx(phi, rel=1e-14, abs=0)
    beta = math.sqrt(7 * math.log(2 * 6 * 2 * 50 / 0.05) / 400)
    d = gf.theory.scal_plus_deviation(400, 50, 6, 2, span=7.0, support=3)
    assert d == pytest.approx(7.0 * min(phi + 1 / 401, 2) + min(beta, 1), rel=1e-14, abs=0)


def test_d_may_lie_below_b_where_every_transition_is_sure() -> None:
    """The paper says d ≥ b; with Γ = 1 and many visits that is not so, and nothing here relies on it."""
    many = 10**9
    d = gf.theory.scal_plus_deviation(many, many, 6, 2, span=7.0, support=1)
    assert d < gf.theory.scal_plus_bonus(many, many, 6, 2, span=7.0)
