from __future__ import annotations

import numpy as np
import pytest

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.confidence import L1Ball
from gainful.planning.extended import extended_value_iteration
from tests.planning.rows import Array, dense, linear_maximum, maxima, random_mdp, random_values


def linear_programme(p: Array, radius: float, v: Array, reachable: Array | None = None) -> float:
    """Variables p̃ and e >= |p̃ - p̄|, Σe <= radius."""
    n = p.size
    eye = np.eye(n)
    A = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.concatenate([np.zeros(n), np.ones(n)])])
    b = np.concatenate([p, -p, [min(radius, 4.0)]])
    most = np.ones(n) if reachable is None else reachable
    return linear_maximum(v, [(0.0, float(m)) for m in most] + [(0.0, 2.0)] * n, A, b)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_row_of_the_ball_matches_a_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 7))
    mdp = random_mdp(rng, S, 2, 4)
    v = random_values(rng, S)
    radius = rng.choice([0.0, 0.05, 0.4, 1.0, 2.0, np.inf], size=(S, 2))
    q, rows = maxima(mdp, L1Ball(radius), v)
    P = mdp.to_dense()[0].reshape(S * 2, S)
    for k in range(S * 2):
        assert q[k] == pytest.approx(linear_programme(P[k], radius.flat[k], v), rel=0, abs=1e-9)
        p = dense(rows, k, S)
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-14)
        assert np.abs(p - P[k]).sum() <= radius.flat[k] + 1e-14
        assert p @ v == pytest.approx(q[k], rel=0, abs=1e-14)


def test_truncated_pairs_stay_on_the_reachable_states() -> None:
    rng = np.random.default_rng(3)
    S = 6
    reachable = np.array([True, True, True, True, False, False])
    P = np.zeros((S, 2, S))
    P[:, :, :4] = rng.dirichlet(np.ones(4), size=(S, 2))
    mdp = MDP(P, rng.random((S, 2)))
    v = np.array([0.3, 0.1, 0.7, 0.2, 1.0, 0.9])
    truncated = rng.random((S, 2)) < 0.5
    q, rows = maxima(mdp, L1Ball(np.full((S, 2), 0.6), reachable, truncated), v)
    for k in range(2 * S):
        cut = truncated.flat[k]
        wanted = linear_programme(P.reshape(-1, S)[k], 0.6, v, reachable.astype(float) if cut else None)
        assert q[k] == pytest.approx(wanted, rel=0, abs=1e-9)
        assert not cut or dense(rows, k, S)[4:].sum() == 0.0


def test_a_truncated_row_that_lists_an_unreachable_state_is_an_error() -> None:
    mdp = random_mdp(np.random.default_rng(0), 3, 1, 3)
    ball = L1Ball(np.ones((3, 1)), np.array([True, False, False]), np.ones((3, 1), dtype=bool))
    with pytest.raises(InvalidArgumentError, match="which is not reachable"):
        extended_value_iteration(mdp, ball)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (np.array([[0.1], [np.nan]]), r"radius\[1, 0\] is nan"),
        (np.array([[-0.1], [0.1]]), r"radius\[0, 0\] is -0.1"),
        (np.array([0.1, 0.1]), r"radius has shape \(2,\), expected \(S, A\)"),
    ],
)
def test_bad_radii_are_named(radius: Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        L1Ball(radius)


def test_masks_come_together_and_have_the_right_shape() -> None:
    with pytest.raises(InvalidArgumentError, match="both or neither"):
        L1Ball(np.ones((2, 1)), reachable=np.ones(2, dtype=bool))
    with pytest.raises(InvalidArgumentError, match="reachable has shape"):
        L1Ball(np.ones((2, 1)), reachable=np.ones(3, dtype=bool), truncated=np.ones((2, 1), dtype=bool))
    with pytest.raises(InvalidArgumentError, match="no state"):
        L1Ball(np.ones((2, 1)), reachable=np.zeros(2, dtype=bool), truncated=np.ones((2, 1), dtype=bool))
