"""Gymnasium's Taxi, without end."""

from __future__ import annotations

from gainful.environments._toy_text import continuing
from gainful.mdp.model import MDP

STANDS = ("red", "green", "yellow", "blue")
ACTIONS = ("south", "north", "east", "west", "pick up", "drop off")


def taxi() -> MDP:
    """Taxi, continuing: a cab on a 5 x 5 grid with walls; each delivery brings the next fare.

    A state is the cab's cell, where the passenger is (one of four stands, or riding) and the destination. Moves are
    sure and pay -1, as do picking up and dropping off at a stand; a pick-up or drop-off that is impossible pays -10.
    A delivery pays 20 and the next fare begins at once: cab anywhere, passenger and destination at two different
    stands, all 300 combinations equally likely. Of Gymnasium's 500 states the 400 that can occur are kept.
    Source: Dietterich, Hierarchical reinforcement learning with the MAXQ value function decomposition, JAIR 13 (2000);
    the table is that of Gymnasium's newest installed version (Taxi-v3 or v4, the same without rain).

    A fare of L steps earns 21 - L, so the gain is 21/E L - 1 with E L = 1307/100 the mean of the shortest
    fares: 793/1307 per step. Communicating, diameter 74.106667.
    """
    return continuing("Taxi", _label, ACTIONS, name="taxi")


def _label(state: int) -> str:
    """Gymnasium's number is ((row * 5 + column) * 5 + passenger) * 4 + destination; passenger 4 rides."""
    rest, destination = divmod(state, 4)
    cell, passenger = divmod(rest, 5)
    row, column = divmod(cell, 5)
    where = "riding" if passenger == 4 else f"at {STANDS[passenger]}"
    return f"cab {row},{column}, passenger {where}, to {STANDS[destination]}"
