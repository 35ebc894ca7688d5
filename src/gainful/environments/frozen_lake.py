"""Gymnasium's FrozenLake, without end."""

from __future__ import annotations

from typing import Literal

from gainful.arguments import choice, flag
from gainful.environments.toy_text import continuing
from gainful.mdp.model import MDP


def frozen_lake(map_name: Literal["4x4", "8x8"] = "4x4", *, is_slippery: bool = True) -> MDP:
    """FrozenLake, continuing: cross the ice to the goal again and again; a hole sends you back.

    A state is a cell that is neither a hole nor the goal (11 of 16, or 53 of 64); the actions are left, down, right and
    up. On slippery ice a move goes in the intended direction with probability 1/3 and to either side with probability
    1/3 each; a move off the grid stays. Entering the goal earns 1, entering a hole earns nothing; both restart at the
    upper left cell within the same step.
    Source: the table of Gymnasium's FrozenLake-v1.

    Parameters
    ----------
    map_name : {"4x4", "8x8"}
        The map.
    is_slippery : bool
        Whether moves may slip.

    Returns
    -------
    MDP
        Communicating. Without slipping the gain is one over the length of the shortest path, 1/6 (4x4) and 1/14 (8x8).
        On slippery ice there is no closed form: 11/612 for 4x4 (rational policy iteration), .0106141438 for 8x8
        (independent linear programme).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.frozen_lake(is_slippery=False)).gain, 8)
    0.16666667
    """
    size = choice("map_name", map_name, ("4x4", "8x8"))
    slippery = flag("is_slippery", is_slippery)
    width = int(size[0])

    def label(state: int) -> str:
        row, column = divmod(state, width)
        return f"row {row}, column {column}"

    return continuing(
        "FrozenLake",
        label,
        ("left", "down", "right", "up"),
        name="frozen-lake",
        map_name=size,
        is_slippery=slippery,
    )
