"""Derivatives of the gain, and the changes at which the policy changes, against solving again."""

from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError, PlanningError

STEP = 1e-5
"""Of the finite differences; the gain is smooth in it, so they are off by its size times a curvature of order 1."""


def queue() -> gf.MDP:
    """Costs, labels, rewards of transitions, steps that last 1/Λ."""
    rates = np.zeros((3, 2, 3))
    rates[:2, :, 1:] += np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rates[1:, 0, 0] += [1.5, 0.0]
    rates[1:, 1, 0] += [4.0, 0.5]
    rates[2, :, 1] += [1.5, 4.0]
    return gf.MDP.from_rates(
        rates, costs=[[0.0, 0.0], [1.0, 3.0], [3.0, 5.0]], jump_costs=np.full((3, 2, 3), 0.25),
        action_labels=["slow", "fast"], state_labels=["empty", "one", "two"], allowed=[[1, 0], [1, 1], [1, 1]],
    )  # fmt: skip


def changed_reward(mdp: gf.MDP, s: int, a: int, change: float) -> gf.MDP:
    P, rewards = mdp.to_dense()
    rewards = mdp.units.sign * rewards
    rewards[s, a] += change
    return gf.MDP(P, rewards, allowed=mdp.allowed, objective=mdp.units.objective)


@pytest.mark.parametrize("model", [gf.environments.riverswim(6), queue()])
def test_the_effect_of_a_reward_is_that_of_solving_again(model: gf.MDP) -> None:
    found = gf.sensitivity(model)
    for s in range(model.n_states):
        for a in np.flatnonzero(model.allowed[s]):
            ends = [gf.solve(changed_reward(model, s, int(a), x), precision=1e-12).gain for x in (-STEP, STEP)]
            slope = (ends[1] - ends[0]) / (2 * STEP) / model.units.step_duration
            assert found.reward_effect[s, a] == pytest.approx(slope, rel=0, abs=1e-5)


def test_the_effect_of_a_transition_is_that_of_solving_again() -> None:
    mdp = gf.environments.riverswim(6)
    found = gf.sensitivity(mdp)
    P, rewards = mdp.to_dense()
    for k in range(mdp.indptr.size - 1):
        s, a = divmod(k, 2)
        for j in range(mdp.indptr[k], mdp.indptr[k + 1]):
            x, p = int(mdp.indices[j]), float(mdp.probabilities[j])
            if p == 1.0:
                continue
            gains = []
            for move in (-STEP, STEP):
                moved = P.copy()
                moved[s, a] *= (1.0 - p - move) / (1.0 - p)
                moved[s, a, x] = p + move
                gains.append(gf.solve(gf.MDP(moved, rewards), precision=1e-12).gain)
            slope = (gains[1] - gains[0]) / (2 * STEP)
            assert found.transition_effect[j] == pytest.approx(slope, rel=0, abs=1e-4)


@pytest.mark.parametrize("model", [gf.environments.riverswim(6), queue()])
def test_the_policy_changes_where_it_is_said_to_change(model: gf.MDP) -> None:
    found = gf.sensitivity(model)
    checked = 0
    for s in range(model.n_states):
        for a in range(model.n_actions):
            if np.isfinite(found.change_at[s, a]) and abs(found.change_at[s, a]) < 100.0:
                again = found.check(s, a)
                assert again["before"] != again["beyond"]
                checked += 1
    assert checked >= model.n_states


def test_costs_keep_their_sign_and_labels_their_words() -> None:
    found = gf.sensitivity(queue())
    table = found.to_frame()
    assert set(table.state) == {"empty", "one", "two"}
    assert (table.gain_per_unit >= 0.0).all()  # what costs more makes the average cost rise
    assert (table.changes_at[~table.optimal] <= 0.0).all()  # a worse action has to become cheaper
    assert list(found.transitions_to_frame().columns) == [
        "state",
        "action",
        "next_state",
        "probability",
        "gain_per_unit",
    ]


def test_what_has_no_derivative_or_is_no_mdp_is_refused() -> None:
    two_classes = gf.MDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [1.0]])
    with pytest.raises(PlanningError, match="2 recurrent classes"):
        gf.sensitivity(two_classes)
    with pytest.raises(InvalidArgumentError, match="expected an MDP"):
        gf.sensitivity("riverswim")  # type: ignore[arg-type]
    one = gf.sensitivity(gf.MDP([[[1.0]]], [[1.0]]))
    with pytest.raises(PlanningError, match="no known change"):
        one.check(0, 0)
