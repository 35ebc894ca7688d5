"""The cells of a partition: what the policy does in each, and how often the agent was there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.errors import InvalidArgumentError
from gainful.partition import Partition
from gainful.plot.palette import SERIES_COLOURS
from gainful.plot.style import (
    HAIR,
    PALE,
    calm,
    checked_axes,
    colour_bar,
    figure_of,
    heading,
    look,
    named_legend,
    needs_matplotlib,
    new_figure,
    plain,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_IMAGE = 4_000_000
"""Cells of the largest partition that is drawn."""
_LEVELS = 24
"""Rows of the strip that shows how a policy mixes actions."""


def partition(
    agent_or_partition: PartitionedAgent | Partition,
    *,
    values: ArrayLike | None = None,
    axis_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the cells of an agent, with its policy and visits, or of a partition alone, in one or two dimensions.

    One dimension: a strip coloured by the action of each cell, where a mixture is shown as shares, above a bar of
    visits per cell. Two dimensions: the cells coloured by their most probable action, paler where the agent has never
    been, and beside them the visits. Axes are in the partition's own units.

    Parameters
    ----------
    agent_or_partition : PartitionedAgent or Partition
        What to draw.
    values : array_like, optional
        One number per cell, drawn in place of the actions.
    axis_labels : sequence of str, optional
        One name per dimension; an environment has them as `axis_labels`.
    action_labels : sequence of str, optional
        One name per action; an environment has them as `action_labels`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure. On given axes the visits of two dimensions are contours of 1, 10,
        100, ...

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If there are more than two dimensions or more than 4,000,000 cells, or a number of labels does not fit.

    Examples
    --------
    >>> import gainful as gf
    >>> cells = gf.Partition.uniform(bins=4)
    >>> figure = gf.plot.partition(cells, values=[1.0, 3.0, 2.0, 0.5], axis_labels=["level"])
    >>> figure.axes[0].get_xlabel()
    'level'
    """
    needs_matplotlib()
    agent = agent_or_partition if isinstance(agent_or_partition, PartitionedAgent) else None
    cells = agent_or_partition if agent is None else agent.partition
    if not isinstance(cells, Partition):
        raise InvalidArgumentError(
            "agent_or_partition",
            agent_or_partition,
            "an agent on a partition, or a Partition",
            "draw the MDP of a tabular agent with gf.plot.mdp(mdp, visits=agent.statistics.visits)",
            problem=f"agent_or_partition is {type(cells).__name__}",
        )
    if cells.dim > 2:
        raise InvalidArgumentError(
            "agent_or_partition",
            agent_or_partition,
            "1 or 2",
            "draw two axes at a time: gf.plot.partition(gf.Partition.uniform(...), values=...) with the values on a "
            "slice",
            problem=f"the partition has {cells.dim} axes",
        )
    if cells.n_cells > LARGEST_IMAGE:
        raise InvalidArgumentError(
            "agent_or_partition",
            agent_or_partition,
            f"at most {LARGEST_IMAGE:,}",
            "use fewer bins",
            problem=f"the partition has {cells.n_cells:,} cells",
        )
    view = _View(agent, cells, values, axis_labels, action_labels)
    return _line(view, ax) if cells.dim == 1 else _plane(view, ax)


class _View:
    """The cells, with the policy and the visits of the agent if there is one."""

    def __init__(
        self, agent: PartitionedAgent | None, cells: Partition, values: Any, axis_labels: Any, action_labels: Any
    ) -> None:
        self.cells, self.agent = cells, agent
        self.values: NDArray[np.float64] | None = None
        if values is not None:
            self.values = np.asarray(values, dtype=np.float64).reshape(-1)
            if self.values.size != cells.n_cells:
                raise InvalidArgumentError(
                    "values", values, f"{cells.n_cells}, one per cell", problem=f"there are {self.values.size} values"
                )
        self.visits: NDArray[np.int64] | None = None
        self.policy: NDArray[np.float64] | None = None  # (cells, A)
        if agent is not None:
            self.visits = agent.statistics.visits.reshape(cells.n_cells, -1).sum(axis=1)
            self.policy = agent.policy(cells.centers)
        d = cells.dim
        names = ["x"] if d == 1 else [f"x{i + 1}" for i in range(d)]
        self.axes = _labels("axis_labels", axis_labels, d, names)
        n_actions = 0 if agent is None else agent.n_actions
        self.actions = _labels("action_labels", action_labels, n_actions, [f"action {a}" for a in range(n_actions)])

    @property
    def title(self) -> tuple[str, str]:
        """A heading, and the line under it."""
        bins = " x ".join(f"{n:,}" for n in self.cells.bins)
        if self.agent is None:
            return "Partition", f"{bins} cells"
        name, inner = type(self.agent).__name__, type(self.agent.core).__name__
        name = f"{name} ({inner})" if name == "Discretized" else name
        return name, f"{bins} cells after {self.agent.t:,} steps" + ("" if self.agent.current else ", no plan yet")

    @property
    def seen_actions(self) -> list[int]:
        """Actions that some cell takes."""
        return [] if self.policy is None else [int(a) for a in np.flatnonzero(self.policy.max(axis=0) > 0.0)]


def _labels(name: str, given: Sequence[str] | None, n: int, usual: list[str]) -> list[str]:
    if given is None:
        return usual
    if isinstance(given, str) or (n and len(given) != n):
        raise InvalidArgumentError(name, given, f"{n} names", problem=f"{name} are {given!r}")
    return [shown(label) for label in given]


def _rgb(colour: str) -> NDArray[np.float64]:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _palette(n: int) -> NDArray[np.float64]:
    """(n, 3); beyond eight actions the same colours, each time paler."""
    found = np.array([_rgb(look(a)[0]) for a in range(max(n, 1))])
    paler = (np.arange(max(n, 1)) // len(SERIES_COLOURS))[:, None]
    return 1.0 - (1.0 - found) * 0.55**paler


def _action_handles(view: _View) -> tuple[list[Any], list[str]]:
    from matplotlib.patches import Patch

    colours = _palette(len(view.actions))
    return [Patch(color=tuple(colours[a])) for a in view.seen_actions], [view.actions[a] for a in view.seen_actions]


# ---------------------------------------------------------------------- one axis


def _line(view: _View, ax: Axes | None) -> Figure:
    if ax is None:
        figure = new_figure(6.2, 3.4)
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        axes = figure.subplots()
    else:
        axes = checked_axes(ax)
    edges = view.cells.edges()
    calm(axes)
    strip = view.policy is not None and view.values is None
    if view.values is not None:
        base = float(np.nanmin(view.values, initial=0.0))
        axes.stairs(view.values, edges, fill=True, color=SERIES_COLOURS[0], alpha=0.25, baseline=base, linewidth=0)
        axes.stairs(view.values, edges, color=SERIES_COLOURS[0], linewidth=1.4, baseline=None)
        axes.set_ylabel("value", fontsize=10)
    elif view.visits is not None:
        axes.stairs(view.visits, edges, fill=True, color="#9aa5ad")
        many = view.visits.max(initial=0) > 100 * max(1.0, float(np.median(view.visits)))
        if many:
            axes.set_yscale("log")
            axes.set_ylim(bottom=0.7)
        axes.set_ylabel("visits" + (" (log)" if many else ""), fontsize=10)
    else:
        axes.vlines(edges, 0, 1, color=PALE, linewidth=0.8)
        axes.set_yticks([])
        axes.set_ylim(0, 1)
    axes.set_xlim(edges[0], edges[-1])
    plain(axes.xaxis.label).set_text(view.axes[0])
    axes.xaxis.label.set_fontsize(10)
    if strip:
        _strip(view, axes)
    heading(axes, *view.title, room=20.0 if strip else 0.0)
    return figure_of(axes)


def _strip(view: _View, axes: Axes) -> None:
    """Above the axes: the shares of the actions in every cell."""
    assert view.policy is not None
    shares = np.cumsum(view.policy, axis=1)
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    chosen = np.stack([(shares < level * shares[:, -1:]).sum(axis=1) for level in levels])  # (levels, cells)
    edges = view.cells.edges()
    above = axes.inset_axes((0.0, 1.02, 1.0, 0.07))
    above.imshow(
        _palette(len(view.actions))[chosen],
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=(edges[0], edges[-1], 0.0, 1.0),
    )
    above.set_xlim(edges[0], edges[-1])
    above.set_xticks([])
    above.set_yticks([])
    for spine in above.spines.values():
        spine.set_visible(False)
    handles, labels = _action_handles(view)
    named_legend(axes, handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.1), title="policy", title_fontsize=9)


# ---------------------------------------------------------------------- two axes


def _plane(view: _View, ax: Axes | None) -> Figure:
    both = ax is None and view.visits is not None
    if ax is None:
        figure = new_figure(9.6 if both else 5.4, 4.3)
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        panels: Any = figure.subplots(1, 2 if both else 1, squeeze=False)[0]
    else:
        panels = [checked_axes(ax)]
    first = panels[0]
    if view.values is not None:
        _coloured(first, view, view.values, "value", logarithmic=False)
    elif view.policy is not None:
        _policy_image(first, view)
    else:
        for i, lines in ((0, first.vlines), (1, first.hlines)):
            lines(view.cells.edges(i), view.cells.low[1 - i], view.cells.high[1 - i], color=PALE, linewidth=0.6)
    title, below = view.title
    heading(first, title, below)
    if both:
        assert view.visits is not None
        _coloured(panels[1], view, view.visits.astype(np.float64), "visits", logarithmic=True)
        never = int((view.visits == 0).sum())
        heading(
            panels[1],
            "Visits",
            f"{never:,} of {view.cells.n_cells:,} cells never visited" if never else "every cell was visited",
        )
    elif view.visits is not None:
        _contours(first, view)
    for one in panels:
        _frame(one, view)
    return figure_of(first)


def _frame(axes: Axes, view: _View) -> None:
    calm(axes, grid=False)
    axes.set_xlim(view.cells.low[0], view.cells.high[0])
    axes.set_ylim(view.cells.low[1], view.cells.high[1])
    for label, name in ((axes.xaxis.label, view.axes[0]), (axes.yaxis.label, view.axes[1])):
        plain(label).set_text(name)
        label.set_fontsize(10)


def _image(view: _View, values: NDArray[Any]) -> NDArray[Any]:
    """(rows, columns, ...) for imshow with the origin below: axis 0 of the partition to the right."""
    shaped: NDArray[Any] = values.reshape(*view.cells.bins, *values.shape[1:])
    return shaped.swapaxes(0, 1)


def _extent(view: _View) -> tuple[float, float, float, float]:
    low, high = view.cells.low, view.cells.high
    return low[0], high[0], low[1], high[1]


def _policy_image(axes: Axes, view: _View) -> None:
    assert view.policy is not None
    assert view.visits is not None
    colours = _palette(len(view.actions))[view.policy.argmax(axis=1)]
    colours[view.visits == 0] = 1.0 - (1.0 - colours[view.visits == 0]) * 0.3
    axes.imshow(_image(view, colours), origin="lower", aspect="auto", interpolation="nearest", extent=_extent(view))
    handles, labels = _action_handles(view)
    named_legend(
        axes,
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
        ncols=min(5, len(labels)),
        columnspacing=1.4,
    )


def _coloured(axes: Axes, view: _View, values: NDArray[np.float64], name: str, *, logarithmic: bool) -> None:
    from matplotlib.colors import LogNorm, Normalize

    known = values[values > 0] if logarithmic else values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    norm = LogNorm(max(low, 1e-300), max(high, 10 * low)) if logarithmic and known.size else Normalize(low, high)
    masked = np.ma.masked_less_equal(values, 0.0) if logarithmic else np.ma.masked_invalid(values)
    drawn = axes.imshow(
        np.ma.masked_array(_image(view, masked.data), _image(view, np.ma.getmaskarray(masked))),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=_extent(view),
        norm=norm,
        cmap="viridis",
    )
    axes.set_facecolor(HAIR if logarithmic else "white")
    colour_bar(axes, drawn, name)


def _contours(axes: Axes, view: _View) -> None:
    assert view.visits is not None
    if min(view.cells.bins) < 2 or view.visits.max(initial=0) < 1:
        return
    decades = 10.0 ** np.arange(0, np.log10(view.visits.max()) + 1e-9)
    x, y = ((e[:-1] + e[1:]) / 2 for e in (view.cells.edges(0), view.cells.edges(1)))
    levels = [level - 0.5 for level in decades if level < view.visits.max()]
    if levels:
        axes.contour(x, y, _image(view, view.visits), levels=levels, colors="black", linewidths=0.6, alpha=0.7)
