"""Gymnasium's FrozenLake, without end."""

from __future__ import annotations

from typing import Literal

from gainful.arguments import choice, flag
from gainful.environments._toy_text import continuing
from gainful.mdp.model import MDP


def frozen_lake(map_name: Literal["4x4", "8x8"] = "4x4", *, is_slippery: bool = True) -> MDP:
    """FrozenLake, continuing: cross the ice to the goal, again and again; a hole sends you back.

    A state is a cell that is neither hole nor goal (11 of 16, or 53 of 64); left, down, right, up. On slippery ice a
    move goes where it was meant to with probability 1/3 and to either side with 1/3 each; off the grid it stays.
    Entering the goal pays 1, entering a hole nothing; both restart at the upper left cell within the same step.
    Source: Gymnasium, FrozenLake-v1, whose table this is.

    Without slipping the gain is one over the shortest path, 1/6 (4x4) and 1/14 (8x8). On slippery ice no closed form:
    11/612 for 4x4 (rational policy iteration), .0106141438 for 8x8 (independent linear programme). Communicating.
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
