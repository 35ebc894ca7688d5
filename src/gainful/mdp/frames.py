"""An MDP as a picture with the present state and the last move: what `render_mode="rgb_array"` shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.frames import HERE_COLOUR, MOVED_COLOUR, QUIET_COLOUR, TEXT_COLOUR, FrameCanvas, Pixels
from gainful.mdp.layout import (
    NODE_RADIUS,
    GraphLayout,
    LabelGrid,
    between_rims,
    label_grid,
    loop_at,
    natural_shape,
    points_on,
)

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

MOST_NODES = 40
"""States of the largest MDP that is drawn as a graph; larger ones are cells."""
MOST_ARROWS = 200
"""Pairs of states of the largest graph with arrows."""
LONGEST_NAME = 12
"""Characters of a name that is written into a picture."""


class GraphFrames:
    """States as nodes, possible moves as grey arrows.

    Parameters
    ----------
    mdp : MDP
        With at most `MOST_NODES` states.
    """

    def __init__(self, mdp: MDP) -> None:
        grid = label_grid(mdp)
        self._layout = GraphLayout(mdp.n_states, natural_shape(mdp, grid), grid)
        self._at, self._arrows = self._layout.positions, _moves(mdp)
        self._radius = np.full(mdp.n_states, NODE_RADIUS)
        routes = self._layout.routes(self._arrows, self._radius)
        self._curves = {
            pair: between_rims(
                np.array([self._at[pair[0]], routes.controls[i], self._at[pair[1]]]), NODE_RADIUS, NODE_RADIUS
            )
            if i in routes.controls
            else loop_at(self._at[pair[0]], NODE_RADIUS, routes.loop_angles[i])
            for i, pair in enumerate(self._arrows)
        }
        self._canvas = self._drawn(mdp)

    def frame(self, mdp: MDP, state: int, last: tuple[int, int, float] | None) -> Pixels:
        """The picture with the agent in `state`, after the move (state, action, reward)."""
        from matplotlib.patches import Circle

        artists: list[Any] = [Circle(tuple(self._at[state]), NODE_RADIUS, facecolor=HERE_COLOUR, zorder=4)]
        if last is not None and (last[0], state) in self._curves:
            artists.append(_arrow(self._curves[last[0], state], MOVED_COLOUR, 2.2))
        artists.append(self._name(mdp, state, "white"))
        return self._canvas.frame(caption_of(mdp, state, last), artists)

    def _drawn(self, mdp: MDP) -> FrameCanvas:
        """The canvas with what does not change."""
        from matplotlib.patches import Circle

        rims = np.concatenate([self._at - NODE_RADIUS, self._at + NODE_RADIUS])
        points = np.concatenate([rims, *(points_on(curve, 20) for curve in self._curves.values())])
        low, high = points.min(axis=0) - 0.08, points.max(axis=0) + 0.08
        unit = min(0.9, 9.0 / (high - low)[0], 6.0 / (high - low)[1])
        canvas = FrameCanvas(*(float(x) for x in np.maximum(unit * (high - low), (3.6, 1.0))), bare=True)
        axes = canvas.axes
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set_aspect("equal")
        for curve in self._curves.values():
            axes.add_patch(_arrow(curve, QUIET_COLOUR, 1.1))
        for s in range(mdp.n_states):
            axes.add_patch(Circle(tuple(self._at[s]), NODE_RADIUS, facecolor="white", edgecolor=TEXT_COLOUR, zorder=3))
            axes.add_artist(self._name(mdp, s, TEXT_COLOUR))
        return canvas

    def _name(self, mdp: MDP, s: int, colour: str) -> Any:
        from matplotlib.text import Text

        grid = self._layout.grid
        name = _short(mdp.state_name(s))
        if grid is not None:
            name = f"{grid.row_values[grid.rows[s]]}, {grid.column_values[grid.columns[s]]}"
        size = min(10.0, 46.0 / max(len(word) for word in name.split("\n")))
        x, y = (float(z) for z in self._at[s])
        return Text(x, y, name, color=colour, fontsize=size, ha="center", va="center", zorder=5, parse_math=False)


class CellFrames:
    """States as cells, in the grid that their labels describe or row after row, shaded by their best mean reward.

    Places of a grid that are no state, such as walls, are black.

    Parameters
    ----------
    mdp : MDP
        Of any size.
    """

    def __init__(self, mdp: MDP) -> None:
        import matplotlib

        grid = label_grid(mdp)
        self._rows, self._columns = _cells(mdp.n_states, grid)
        table = np.full((int(self._rows.max()) + 1, int(self._columns.max()) + 1), np.nan)
        table[self._rows, self._columns] = np.where(mdp.allowed, mdp.rewards, -np.inf).max(axis=1)
        ratio = table.shape[0] / table.shape[1]
        width = min(6.0, 6.0 / ratio)
        self._canvas = FrameCanvas(max(3.6, width), max(1.0, width * ratio), bare=True)
        axes = self._canvas.axes
        low, high = float(np.nanmin(table)), float(np.nanmax(table))
        colours = matplotlib.colormaps["Greys"].with_extremes(bad=TEXT_COLOUR if grid is not None else "white")
        axes.imshow(table, cmap=colours, vmin=low, vmax=low + 2.2 * (high - low) + 1e-300)  # the darkest is grey
        if max(table.shape) <= MOST_NODES:
            axes.set_xticks(np.arange(table.shape[1] + 1) - 0.5)
            axes.set_yticks(np.arange(table.shape[0] + 1) - 0.5)
            axes.set_axis_on()
            axes.grid(color=QUIET_COLOUR, linewidth=0.6)
            axes.tick_params(length=0, labelbottom=False, labelleft=False)
            axes.spines[:].set_color(QUIET_COLOUR)
        self._mark = max(1.0, max(table.shape) / 60)  # cells wide: it can be seen in a large table too

    def frame(self, mdp: MDP, state: int, last: tuple[int, int, float] | None) -> Pixels:
        """The picture with the agent in `state`, after the move (state, action, reward)."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Circle

        x, y = int(self._columns[state]), int(self._rows[state])
        artists: list[Any] = []
        if last is not None and last[0] != state:
            xs, ys = [int(self._columns[last[0]]), x], [int(self._rows[last[0]]), y]
            artists.append(Line2D(xs, ys, color=MOVED_COLOUR, linewidth=2.2))
        artists.append(Circle((x, y), 0.38 * self._mark, facecolor=HERE_COLOUR, zorder=4))
        return self._canvas.frame(caption_of(mdp, state, last), artists)


def new_frames(mdp: MDP) -> GraphFrames | CellFrames:
    """Pictures of this MDP: a graph if it is small, otherwise cells."""
    return GraphFrames(mdp) if mdp.n_states <= MOST_NODES else CellFrames(mdp)


def caption_of(mdp: MDP, state: int, last: tuple[int, int, float] | None) -> str:
    """The last move as one line of text.

    >>> from gainful.mdp.model import MDP
    >>> caption_of(MDP([[[1.0]]], [[1.0]]), 0, (0, 0, 1.0))
    '0 --0 (1)--> 0'
    """
    here = mdp.state_name(state)
    if last is None:
        return here
    s, a, reward = last
    return f"{mdp.state_name(s)} --{mdp.action_name(a)} ({reward:g})--> {here}"


def _moves(mdp: MDP) -> list[tuple[int, int]]:
    """The pairs of states between which some action may move; none if they are too many to draw."""
    origin = np.repeat(np.arange(mdp.n_states * mdp.n_actions) // mdp.n_actions, np.diff(mdp.indptr))
    pairs = np.unique(np.stack([origin, mdp.indices.astype(np.int64)], axis=1), axis=0)
    return [(int(s), int(to)) for s, to in pairs] if len(pairs) <= MOST_ARROWS else []


def _cells(n: int, grid: LabelGrid | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of every state."""
    if grid is not None:
        return grid.rows, grid.columns
    wide = math.ceil(math.sqrt(n))
    return np.arange(n) // wide, np.arange(n) % wide


def _arrow(curve: NDArray[np.float64], colour: str, width: float) -> Any:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    codes = [Path.MOVETO, *[Path.CURVE3 if len(curve) == 3 else Path.CURVE4] * (len(curve) - 1)]
    return FancyArrowPatch(
        path=Path(curve, codes), arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=width, zorder=2
    )


def _short(name: str) -> str:
    """A name for the inside of a node: words below each other, cut if there are too many letters."""
    text = "".join(c if c.isprintable() else " " for c in name)
    text = text if len(text) <= 2 * LONGEST_NAME else f"{text[: 2 * LONGEST_NAME - 1]}…"
    return "\n".join(text.split()[:3]) or " "
