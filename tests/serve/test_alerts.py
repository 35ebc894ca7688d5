"""What the owner of an agent is told to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gainful.serve.alerts import alerts

QUIET = {"trouble": "", "pending": 0, "objective": "reward", "guarantee_holds": True, "guarantee": ""}


def steady(n: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(0.5, 0.1, n)


def test_nothing_is_said_of_an_agent_that_works() -> None:
    said = sum(len(alerts(QUIET, steady(200, seed))) for seed in range(200))
    assert said == 0
    assert alerts(QUIET, np.zeros(0)) == []
    assert alerts(QUIET, np.zeros(100)) == []


@pytest.mark.parametrize(("objective", "change"), [("reward", -0.3), ("cost", 0.3)])
def test_a_lasting_worsening_is_told_and_an_improvement_is_not(objective: str, change: float) -> None:
    averages = steady(200)
    averages[-25:] += change
    (told,) = alerts(QUIET | {"objective": objective}, averages)
    assert "has the process changed?" in told
    averages[-25:] -= 2 * change
    assert alerts(QUIET | {"objective": objective}, averages) == []


def test_what_is_most_urgent_comes_first() -> None:
    status = {
        "trouble": "disk full",
        "pending": 1000,
        "objective": "reward",
        "guarantee_holds": False,
        "guarantee": "no",
    }
    told = alerts(status, np.zeros(0))
    assert [text.split()[0] for text in told] == ["The", "1,000", "On"]
    assert "disk full" in told[0]
