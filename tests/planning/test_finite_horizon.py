from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.mdp.model import MDP
from gainful.planning.finite_horizon import finite_horizon_value_iteration
from tests.planning.rows import Array, random_mdp
from tests.strategies import mdps

light = settings(max_examples=30, deadline=None, derandomize=True)


def best_total(mdp: MDP, rewards: Array, terminal: Array, caps: Array, h: int, s: int) -> float:
    """By plain recursion over all actions, in the units of `mdp.rewards`."""
    if h == caps.size:
        return float(terminal[s])
    P = mdp.to_dense()[0]
    totals = []
    for a in np.flatnonzero(mdp.allowed[s]):
        after = sum(
            P[s, a, x] * best_total(mdp, rewards, terminal, caps, h + 1, int(x)) for x in np.flatnonzero(P[s, a])
        )
        totals.append(min(rewards[s, a] + after, caps[h]))
    return float(max(totals))


@light
@given(mdps(max_states=3, disallowed=True, costs=True), st.integers(1, 4), st.booleans(), st.booleans())
def test_values_match_the_recursion_in_the_users_units(mdp: MDP, H: int, with_end: bool, capped: bool) -> None:
    end = np.linspace(-1.0, 2.0, mdp.n_states) if with_end else np.zeros(mdp.n_states)
    sign = mdp.units.sign
    cap = 0.4 * sign if capped else None  # below many rewards
    caps = np.full(H, np.inf) if cap is None else cap * np.arange(H, 0, -1) + (sign * end).max()
    exact = [best_total(mdp, mdp.rewards, sign * end, caps, 0, s) for s in range(mdp.n_states)]
    for version in (mdp, mdp.normalised()):
        found = finite_horizon_value_iteration(version, H, terminal=end, value_cap=cap)
        assert found.values.shape == (H + 1, mdp.n_states)
        assert found.values[H] == pytest.approx(end, rel=0, abs=1e-15)
        assert found.values[0] == pytest.approx(sign * np.array(exact), rel=0, abs=1e-13)
        assert mdp.allowed[np.arange(mdp.n_states), found.actions].all()


def test_following_the_actions_earns_the_values() -> None:
    mdp = random_mdp(np.random.default_rng(0), 30, 3, 4)
    found = finite_horizon_value_iteration(mdp, 50)
    P, r = mdp.to_dense()
    states = np.arange(30)
    earned = np.zeros(30)
    for h in range(49, -1, -1):
        a = found.actions[h]
        earned = r[states, a] + P[states, a] @ earned
        assert found.values[h] == pytest.approx(earned, rel=0, abs=found.rounding)
    assert found.rounding < 1e-11
    assert found.horizon == 50
    assert found.value == found.values[0, 0]


def test_a_cap_keeps_optimistic_values_within_what_the_steps_can_give() -> None:
    mdp = random_mdp(np.random.default_rng(1), 6, 2, 3)
    bonus = mdp.rewards + 3.0
    H = 5
    found = finite_horizon_value_iteration(mdp, H, rewards=bonus, value_cap=1.0)
    assert np.all(found.values[:H] == np.arange(H, 0, -1)[:, None])
    published = finite_horizon_value_iteration(mdp, H, rewards=bonus, value_cap=np.full(H, float(H)))
    assert np.all(published.values[:H] <= H)
    assert np.all(published.values[0] == H)
    assert np.all(found.actions == 0)  # ties at the cap


def test_labels_name_the_actions() -> None:
    mdp = MDP([[[1.0], [1.0]]], [[0.0, 1.0]], state_labels=["only"], action_labels=["rest", "work"])
    found = finite_horizon_value_iteration(mdp, 2)
    assert found.action(1, "only") == "work"
    assert repr(found) == "FiniteHorizonPlan(value=2, horizon=2, 1 states)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 1.5}, "horizon is 1.5"),
        ({"horizon": 2, "terminal": [0.0]}, "terminal has shape"),
        ({"horizon": 2, "value_cap": [1.0]}, "value_cap has shape"),
        ({"horizon": 2, "value_cap": float("nan")}, "value_cap"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    mdp = random_mdp(np.random.default_rng(3), 2, 2, 2)
    with pytest.raises(InvalidArgumentError, match=message):
        finite_horizon_value_iteration(mdp, **options)


def test_a_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TooLargeError, match="GiB"):
        finite_horizon_value_iteration(random_mdp(np.random.default_rng(3), 2, 2, 2), 10**9)
