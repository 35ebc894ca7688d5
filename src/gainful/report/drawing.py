"""A small MDP as something to draw: where its states go, and its transitions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.environments import registry
from gainful.errors import GainfulError
from gainful.mdp.model import MDP

MOST_STATES = 60
MOST_ARROWS = 500
"""Pairs of state and next state; a graph with more is a tangle, and is left out."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """States and actions by name, the allowed pairs, and, unless there are too many arrows, a place for each state."""

    states: list[str]
    actions: list[str]
    allowed: NDArray[np.bool_]  # (S, A)
    shape: str
    """ "chain", "grid", "circle", or "" where no graph is drawn."""
    places: list[tuple[float, float]]
    """One per state, a unit apart; empty where no graph is drawn."""
    transitions: list[tuple[int, int, int, float]]
    """(state, action, next state, probability)."""


def drawing_of(name: str, parameters: dict[str, Any], n_states: int) -> tuple[Drawing | None, str]:
    """The environment `name` to draw, or None and the reason in one line."""
    if name in registry.continuous_names():
        return None, "its states are points, so there is no graph to draw"
    if n_states > MOST_STATES:
        return None, f"it has {n_states:,} states, and graphs are drawn up to {MOST_STATES}"
    try:
        mdp = registry.make(name, **parameters)
    except (GainfulError, ImportError, TypeError) as error:
        return None, f"{name} could not be made again: {type(error).__name__}: {error}"
    if mdp.n_states != n_states:
        return None, f"{name} has {mdp.n_states} states now, and had {n_states} when it was run"
    return draw(mdp), ""


def draw(mdp: MDP) -> Drawing:
    """Rows and columns where labels say them, a line where transitions reach neighbours only, else a circle."""
    S, A = mdp.n_states, mdp.n_actions
    matrix = mdp.matrix().tocoo()
    transitions = [
        (int(k) // A, int(k) % A, int(t), float(p))
        for k, t, p in zip(matrix.row, matrix.col, matrix.data, strict=True)
        if p > 0.0
    ]
    states, actions = [mdp.state_name(s) for s in range(S)], [mdp.action_name(a) for a in range(A)]
    allowed = np.array(mdp.allowed, dtype=bool)
    if len({(s, t) for s, _, t, _ in transitions}) > MOST_ARROWS:
        return Drawing(states, actions, allowed, "", [], [])
    shape, places = _places(states, transitions)
    return Drawing(states, actions, allowed, shape, places, transitions)


def _places(states: list[str], transitions: list[tuple[int, int, int, float]]) -> tuple[str, list[tuple[float, float]]]:
    cells = [re.fullmatch(r"row (\d+), column (\d+)", name) for name in states]
    found = [(float(cell[2]), float(cell[1])) for cell in cells if cell]
    if len(found) == len(states):
        return "grid", found
    S = len(states)
    if S > 2 and all(abs(s - t) <= 1 for s, _, t, _ in transitions):
        return "chain", [(float(s), 0.0) for s in range(S)]
    radius = max(0.7, S / (2 * math.pi))
    angles = [math.pi * (2 * s / S - 0.5) for s in range(S)]
    return "circle", [(radius * math.cos(a), radius * math.sin(a)) for a in angles]
