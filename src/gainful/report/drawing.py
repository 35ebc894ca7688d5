"""The graph of a small MDP for the page: names, positions, and arrows with their routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.environments import registry
from gainful.errors import GainfulError
from gainful.experiments.foreign_names import is_foreign_environment, on_points
from gainful.mdp.layout import NODE_RADIUS, GraphLayout, label_grid, natural_shape
from gainful.mdp.model import MDP

LARGEST_DRAWING = 60
"""States of the largest MDP whose plans are drawn."""
DRAWN_ARROWS = 500
"""Pairs of state and next state; a graph with more is a tangle, and is left out."""


@dataclass(frozen=True, eq=False)
class DrawnArrow:
    """All transitions from one state to another; y points down, as on a page."""

    origin: int
    target: int
    control: tuple[float, float] | None
    """The control point of a quadratic curve, or None for a loop."""
    angle: float
    """The direction of a loop in radians."""
    transitions: list[tuple[int, float]]
    """(action, probability)."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """States and actions by name, the allowed pairs and, unless there are too many arrows, the graph."""

    states: list[str]
    actions: list[str]
    allowed: NDArray[np.bool_]  # (S, A)
    shape: str
    """ "chain", "grid", "circle", or "" if no graph is drawn."""
    positions: list[tuple[float, float]]
    """One per state, y downwards; empty if no graph is drawn."""
    arrows: list[DrawnArrow]


def drawing_of(name: str, parameters: dict[str, Any], n_states: int) -> tuple[Drawing | None, str]:
    """The drawing of the environment `name`, or None and the reason in one line."""
    if on_points(name, parameters):
        return None, "its states are points, so there is no graph to draw"
    if is_foreign_environment(name):
        return None, "it does not come with gainful, and a report imports nothing and reads no table"
    if n_states > LARGEST_DRAWING:
        return None, f"it has {n_states:,} states, and graphs are drawn for up to {LARGEST_DRAWING}"
    try:
        mdp = registry.make(name, **parameters)
    except (GainfulError, ImportError, TypeError) as error:
        return None, f"{name} could not be created again: {type(error).__name__}: {error}"
    if mdp.n_states != n_states:
        return None, f"{name} now has {mdp.n_states} states, but it had {n_states} when it was run"
    return draw_mdp(mdp), ""


def draw_mdp(mdp: MDP) -> Drawing:
    """The MDP in the layout that `gainful.plot.mdp` gives it."""
    S, A = mdp.n_states, mdp.n_actions
    matrix = mdp.matrix().tocoo()
    transitions: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for k, t, p in zip(matrix.row, matrix.col, matrix.data, strict=True):
        if p > 0.0:
            transitions.setdefault((int(k) // A, int(t)), []).append((int(k) % A, float(p)))
    states, actions = [mdp.state_name(s) for s in range(S)], [mdp.action_name(a) for a in range(A)]
    allowed = np.array(mdp.allowed, dtype=bool)
    if len(transitions) > DRAWN_ARROWS:
        return Drawing(states, actions, allowed, "", [], [])
    grid = label_grid(mdp)
    layout = GraphLayout(S, natural_shape(mdp, grid), grid)
    pairs = sorted(transitions)
    routes = layout.routes(pairs, np.full(S, NODE_RADIUS))
    arrows = [
        DrawnArrow(
            *pair,
            control=_on_page(routes.controls[i]) if i in routes.controls else None,
            angle=-routes.loop_angles.get(i, 0.0),
            transitions=transitions[pair],
        )
        for i, pair in enumerate(pairs)
    ]
    return Drawing(states, actions, allowed, layout.shape, [_on_page(at) for at in layout.positions], arrows)


def _on_page(point: NDArray[np.float64]) -> tuple[float, float]:
    """The point with y downwards, to three decimals."""
    return round(float(point[0]), 3), round(-float(point[1]), 3) + 0.0
