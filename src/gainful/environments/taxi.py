"""Gymnasium's Taxi, without end."""

from __future__ import annotations

from gainful.environments.toy_text import continuing
from gainful.mdp.model import MDP

STANDS = ("red", "green", "yellow", "blue")
ACTIONS = ("south", "north", "east", "west", "pick up", "drop off")


def taxi() -> MDP:
    """Taxi, continuing: a cab on a 5 x 5 grid with walls; each delivery is followed by the next fare.

    A state is the cell of the cab, the location of the passenger (one of four stands, or riding) and the destination.
    Moves are deterministic and earn -1, as do picking up and dropping off at a stand; an impossible pick-up or drop-off
    earns -10. A delivery earns 20, and the next fare starts at once: the cab anywhere, passenger and destination at two
    different stands, all 300 combinations equally likely. Of Gymnasium's 500 states, the 400 that can occur are kept.
    Source: Dietterich, Hierarchical reinforcement learning with the MAXQ value function decomposition, JAIR 13 (2000);
    the table is that of Gymnasium's newest installed version (Taxi-v3 or v4, which agree without rain).

    Returns
    -------
    MDP
        Communicating, with diameter 74.106667. A fare of L steps earns 21 - L, so the gain is 21/E L - 1, where
        E L = 1307/100 is the mean of the shortest fares: 793/1307 per step.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.taxi()).gain, 6)
    0.606733
    """
    return continuing("Taxi", _label, ACTIONS, name="taxi")


def _label(state: int) -> str:
    """Gymnasium's number is ((row * 5 + column) * 5 + passenger) * 4 + destination; passenger 4 rides."""
    rest, destination = divmod(state, 4)
    cell, passenger = divmod(rest, 5)
    row, column = divmod(cell, 5)
    where = "riding" if passenger == 4 else f"at {STANDS[passenger]}"
    return f"cab {row},{column}, passenger {where}, to {STANDS[destination]}"
