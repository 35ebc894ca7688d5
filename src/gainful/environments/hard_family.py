"""The problems behind the lower bound on the regret."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.machine import check_table_size
from gainful.mdp.model import MDP


def hard_family(
    diameter: float = 40.0,
    n_actions: int = 5,
    *,
    n_pieces: int = 4,
    advantage: float = 0.25,
    good_piece: int | None = None,
    good_arm: int | None = None,
) -> MDP:
    """Jaksch, Ortner & Auer's hard problems: one arm in one of many two-state pieces is slightly better.

    Each of the `n_pieces` pieces has a state "low" without reward and a state "high". With A' = (n_actions - 1)/2 and
    δ = 4/diameter, the A' "arms" move from low to high with probability δ (reward 0) and from high to low with
    probability δ (reward 1); only the good arm of the good piece moves up with probability δ + ε, ε = advantage · δ.
    The other A' + 1 actions are deterministic and earn 0: in a high state they stay; the low states form an A'-ary
    tree, in which piece j has the children A'j + 1 … A'j + A', and "to root" and "to branch i" move along it (they stay
    if there is no such piece). The start is the low state of the root.
    Source: Jaksch, Ortner & Auer, Near-optimal regret bounds for reinforcement learning, JMLR 11 (2010), section 6.

    Parameters
    ----------
    diameter : float
        A bound on the diameter: at least 8, and at least 4 times the depth of the tree.
    n_actions : int
        An odd number of at least 5.
    n_pieces : int
        The number of two-state pieces.
    advantage : float
        ε/δ, in (0, 1).
    good_piece, good_arm : int, optional
        Which piece and which arm are better; by default the last piece, a leaf, and the last arm.

    Returns
    -------
    MDP
        Communicating, with gain (1 + advantage)/(2 + advantage) in the good piece, against 1/2 in any other. The true
        diameter is diameter/4 for one piece, otherwise at most diameter/2 + 2 · (depth of the tree).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.hard_family()).gain, 8)  # 5/9
    0.55555556
    """
    A = whole("n_actions", n_actions, 5)
    if A % 2 == 0:
        raise InvalidArgumentError("n_actions", A, "an odd number: A' arms, A' branches and one way back")
    arms = (A - 1) // 2
    k = whole("n_pieces", n_pieces, 1)
    check_table_size("n_pieces", 2 * k, A, 1000.0, "a model")
    parent = [(piece - 1) // arms if piece else 0 for piece in range(k)]
    depth, piece = 0, k - 1
    while piece:
        depth, piece = depth + 1, parent[piece]
    D = real("diameter", diameter, max(8.0, 4.0 * depth))
    gap = real("advantage", advantage, 0.0, 1.0, low_open=True, high_open=True)
    best_piece = k - 1 if good_piece is None else whole("good_piece", good_piece, 0, k - 1)
    best_arm = arms - 1 if good_arm is None else whole("good_arm", good_arm, 0, arms - 1)
    delta = 4.0 / D

    rows: list[dict[int, float]] = []
    R = np.zeros((2 * k, A))
    for piece in range(k):
        low, high = 2 * piece, 2 * piece + 1
        for arm in range(arms):
            up = delta * (1.0 + gap) if (piece, arm) == (best_piece, best_arm) else delta
            rows.append({low: 1.0 - up, high: up})
        rows.append({2 * parent[piece]: 1.0})
        for child in range(arms * piece + 1, arms * piece + arms + 1):
            rows.append({2 * child if child < k else low: 1.0})
        R[high, :arms] = 1.0
        rows += [{low: delta, high: 1.0 - delta}] * arms + [{high: 1.0}] * (arms + 1)
    return MDP.from_rows(
        np.cumsum([0, *(len(row) for row in rows)]),
        np.array([target for row in rows for target in row]),
        np.array([p for row in rows for p in row.values()]),
        R,
        state_labels=[f"piece {piece} {level}" for piece in range(k) for level in ("low", "high")],
        action_labels=(
            *(f"arm {arm}" for arm in range(arms)),
            "to root",
            *(f"to branch {branch}" for branch in range(arms)),
        ),
        name="hard-family",
    )
