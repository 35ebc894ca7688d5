from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.planning.discounted import discounted_value_iteration
from tests.planning.rows import Array, random_mdp
from tests.strategies import mdps

light = settings(max_examples=30, deadline=None, derandomize=True)


def policy_value(mdp: MDP, actions: NDArray[np.int64], discount: float) -> Array:
    """(I - γP)⁻¹ r in the units of `mdp.rewards`."""
    P, r = mdp.to_dense()
    s = np.arange(mdp.n_states)
    values = np.linalg.solve(np.eye(mdp.n_states) - discount * P[s, actions], r[s, actions])
    return np.asarray(values, dtype=np.float64)


def best_by_enumeration(mdp: MDP, discount: float) -> Array:
    choices = [np.flatnonzero(row) for row in mdp.allowed]
    return np.asarray(
        np.max([policy_value(mdp, np.array(a), discount) for a in itertools.product(*choices)], axis=0),
        dtype=np.float64,
    )


@light
@given(mdps(max_states=4, disallowed=True, costs=True), st.sampled_from([0.0, 0.3, 0.9, 0.99]))
def test_values_match_enumeration_in_the_users_units(mdp: MDP, discount: float) -> None:
    exact = mdp.units.sign * best_by_enumeration(mdp, discount)
    for version in (mdp, mdp.normalised()):  # the offset must not show
        found = discounted_value_iteration(version, discount, precision=1e-9)
        low, high = found.value_bounds
        assert np.all(low <= exact + 1e-12)
        assert np.all(exact <= high + 1e-12)
        assert np.all(high - low <= 1e-9)
        assert found.values == pytest.approx(exact, rel=0, abs=1e-9)
        own = mdp.units.sign * policy_value(mdp, found.actions, discount)
        assert own == pytest.approx(exact, rel=0, abs=1e-9)
        assert found.policy.sum() == mdp.n_states
        assert mdp.allowed[np.arange(mdp.n_states), found.actions].all()


def test_a_large_mdp_matches_its_own_linear_system() -> None:
    mdp = random_mdp(np.random.default_rng(0), 200, 3, 5)
    found = discounted_value_iteration(mdp, 0.999, precision=1e-7)
    assert found.values == pytest.approx(policy_value(mdp, found.actions, 0.999), rel=0, abs=1e-7)
    again = discounted_value_iteration(mdp, 0.999, precision=1e-7, start_values=found.values)
    assert again.sweeps <= 2
    assert again.values == pytest.approx(found.values, rel=0, abs=1e-7)


def test_a_periodic_chain_needs_few_sweeps() -> None:
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], state_labels=["a", "b"], action_labels=["go"])
    found = discounted_value_iteration(mdp, 0.9999, precision=1e-6)
    assert found.values[0] == pytest.approx(1 / (1 - 0.9999**2), rel=0, abs=1e-6)
    assert found.sweeps < 200  # undamped: ln(1e-6·1e-4)/ln 0.9999, over 200 000
    assert found.action("b") == "go"
    assert found.value == found.values[0]
    assert "discount=0.9999" in repr(found)


def test_rewards_can_be_replaced_by_optimistic_ones() -> None:
    mdp = random_mdp(np.random.default_rng(1), 5, 2, 3)
    bonus = np.random.default_rng(2).random((5, 2))
    optimistic = MDP(mdp.to_dense()[0], mdp.rewards + bonus)
    found = discounted_value_iteration(mdp, 0.9, rewards=mdp.rewards + bonus)
    assert found.values == pytest.approx(discounted_value_iteration(optimistic, 0.9).values, rel=0, abs=1e-8)


def test_ties_go_to_the_lowest_action() -> None:
    mdp = MDP(np.full((2, 3, 2), 0.5), np.ones((2, 3)), allowed=[[True, True, True], [False, True, True]])
    assert discounted_value_iteration(mdp, 0.9).actions.tolist() == [0, 1]


def test_not_converged_carries_valid_bounds() -> None:
    mdp = random_mdp(np.random.default_rng(3), 5, 2, 2)
    with pytest.raises(NotConvergedError, match="after 2 sweeps") as caught:
        discounted_value_iteration(mdp, 0.99, max_sweeps=2)
    exact = discounted_value_iteration(mdp, 0.99).values
    low, high = caught.value.plan.value_bounds
    assert np.all((low <= exact + 1e-8) & (exact <= high + 1e-8))


def test_a_precision_below_rounding_is_refused() -> None:
    mdp = random_mdp(np.random.default_rng(3), 5, 2, 2)
    with pytest.raises(PrecisionError, match="rounding alone"):
        discounted_value_iteration(mdp, 0.9999, precision=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 1.0}, "discount is 1"),
        ({"discount": float("nan")}, "discount is nan"),
        ({"discount": 0.9, "precision": 0.0}, "precision is 0"),
        ({"discount": 0.9, "max_sweeps": 0}, "max_sweeps is 0"),
        ({"discount": 0.9, "damping": 0.0}, "damping is 0"),
        ({"discount": 0.9, "start_values": [1.0]}, "start_values have shape"),
        ({"discount": 0.9, "rewards": [[1.0]]}, "rewards have shape"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    mdp = random_mdp(np.random.default_rng(3), 2, 2, 2)
    with pytest.raises(InvalidArgumentError, match=message):
        discounted_value_iteration(mdp, **options)
