"""Four rooms on a grid."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.machine import check_table_size
from gainful.mdp.model import MDP

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


def four_rooms(size: int = 11, *, slip: float = 1 / 3) -> MDP:
    """Four rooms: walk again and again between opposite corners of four equal rooms with narrow doors.

    The grid has size x size cells; the middle row and column are walls except for one door in the middle of each of
    their four halves. A move goes in the intended direction with probability 1 - slip and in each other direction with
    probability slip/3; a move into a wall stays. Every action at the goal, the lower right corner, earns 1 and leads
    back to the start, the upper left corner; all other rewards are 0.
    Source: the rooms and the slip of 1/3 of Sutton, Precup & Singh, Between MDPs and semi-MDPs, Artificial Intelligence
    112 (1999), made symmetric (with size = 11 there are 104 cells, as in the paper) and continuing.

    Parameters
    ----------
    size : int
        The width of the grid: odd, at least 5.
    slip : float
        The probability of moving in another direction, in [0, 1).

    Returns
    -------
    MDP
        Communicating. The gain is 1/(1 + h), where h is the least expected number of steps from start to goal:
        1/(2 size - 1) without slipping, and .0263837670 with the defaults (independent linear programme).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.four_rooms()).gain, 8)
    0.02638377
    """
    n = whole("size", size, 5)
    if n % 2 == 0:
        raise InvalidArgumentError("size", n, "an odd number: two rooms and the wall between them")
    q = real("slip", slip, 0.0, 1.0, high_open=True)
    check_table_size("size", n * n, 4, 480.0, "a grid")  # measured
    wall = n // 2
    doors = ((wall - 1) // 2, wall + 1 + (wall - 1) // 2)
    cells = [
        (row, column)
        for row in range(n)
        for column in range(n)
        if (row != wall and column != wall) or (row == wall and column in doors) or (column == wall and row in doors)
    ]
    index = {cell: s for s, cell in enumerate(cells)}
    S = len(cells)
    indptr, indices, probabilities = [0], [], []
    for s, (row, column) in enumerate(cells):
        around = [index.get((row + down, column + right), s) for down, right in _MOVES]
        for a in range(4):
            law = {0: 1.0} if s == S - 1 else dict.fromkeys(around, 0.0)
            if s != S - 1:
                for b, target in enumerate(around):
                    law[target] += 1.0 - q if b == a else q / 3.0
            entries = sorted((target, p) for target, p in law.items() if p > 0.0)
            indices += [target for target, _ in entries]
            probabilities += [p for _, p in entries]
            indptr.append(len(indices))
    R = np.zeros((S, 4))
    R[S - 1] = 1.0
    return MDP.from_rows(
        np.array(indptr),
        np.array(indices),
        np.array(probabilities),
        R,
        state_labels=[f"row {row}, column {column}" for row, column in cells],
        action_labels=("up", "right", "down", "left"),
        name="four-rooms",
    )
