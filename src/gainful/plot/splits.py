"""The cells of an agent over time: when each was split, and how narrow they have become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.adaptive_kl_scal_plus import AdaptiveKLSCALPlus
from gainful.agents.dyadic_trees import DyadicTrees
from gainful.errors import InvalidArgumentError
from gainful.plot.style import calm, checked_axes, figure_of, heading, look, named_legend, new_figure, plain, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 8
"""Actions whose trees are drawn side by side; beyond, only the numbers of their leaves are drawn."""


def splits(agent: AdaptiveKLSCALPlus, *, action_labels: Sequence[str] | None = None, ax: Axes | None = None) -> Figure:
    """Draw the cells of an agent on adaptive cells over time.

    In one dimension and with at most 8 actions, one panel per action shows time from left to right and the state from
    bottom to top, coloured by the depth of the leaf: darker where cells are narrower. Otherwise, and given `ax`, curves
    show the number of leaves of every action.

    Parameters
    ----------
    agent : AdaptiveKLSCALPlus
        The agent, after a run.
    action_labels : sequence of str, optional
        Names of the actions; by default those that the agent was made with, or their numbers.
    ax : matplotlib.axes.Axes, optional
        Where to draw the curves; by default a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidArgumentError
        If the agent has no adaptive cells, or matplotlib is not installed.

    Examples
    --------
    >>> import gainful as gf
    >>> env = gf.environments.lqg()
    >>> agent = gf.AdaptiveKLSCALPlus.for_environment(env, bins=16, span=1.4)
    >>> figure = gf.plot.splits(agent)
    """
    if not isinstance(agent, AdaptiveKLSCALPlus):
        raise InvalidArgumentError("agent", agent, "an agent on adaptive cells (AdaptiveKLSCALPlus)")
    names = _names(agent, action_labels)
    times, depths = history(agent)
    if ax is None and agent.dim == 1 and agent.n_actions <= MOST_PANELS:
        return _panels(agent, names, times, depths)
    return _curves(agent, names, times, ax)


def history(agent: AdaptiveKLSCALPlus) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """The steps after which cells were split, from 0 on, and (times, cells, A) the depths from then on."""
    done = agent.splits
    trees = DyadicTrees(agent.partition.bins, agent.n_actions, agent.core.trees.start)
    times, depths = [0], [trees.depths.copy()]
    for t in np.unique(done[:, 0]).tolist():
        for _, cell, action in done[done[:, 0] == t].tolist():
            trees.split(np.array([cell * agent.n_actions + action]), t)
        if t > times[-1]:
            times.append(t)
            depths.append(trees.depths.copy())
        else:
            depths[-1] = trees.depths.copy()
    return np.array(times, dtype=np.int64), np.array(depths, dtype=np.int8)


def _names(agent: AdaptiveKLSCALPlus, given: Sequence[str] | None) -> list[str]:
    if given is None:
        known = None if agent.labels is None else agent.labels.actions
        return [shown(name).replace("= -", "= −") for name in known or [f"action {a}" for a in range(agent.n_actions)]]
    if isinstance(given, str) or len(given) != agent.n_actions:
        raise InvalidArgumentError("action_labels", given, f"{agent.n_actions} names")
    return [shown(name) for name in given]


def _panels(agent: AdaptiveKLSCALPlus, names: list[str], times: NDArray[np.int64], depths: NDArray[np.int8]) -> Figure:
    A, trees = agent.n_actions, agent.core.trees
    figure = new_figure(1.6 + 1.5 * A, 3.2)
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.1)
    panels = figure.subplots(1, A, sharey=True, squeeze=False)[0]
    edges = np.append(np.maximum(times, 1), max(agent.t, int(times[-1]) + 1, 2)).astype(np.float64)
    edges = np.maximum.accumulate(edges + 1e-9 * np.arange(edges.size))  # increasing, also if the first split is early
    image: Any = None
    for a, axes in enumerate(panels):
        calm(axes, grid=False)
        image = axes.pcolormesh(
            edges, agent.partition.edges(), depths[:, :, a].T, cmap="viridis_r", vmin=0, vmax=max(trees.finest, 1)
        )
        axes.set_xscale("log")
        axes.set_xlim(edges[0], edges[-1])
        plain(axes.set_title(names[a], fontsize=9.5, loc="left"))
        axes.set_xlabel("steps", fontsize=9)
    panels[0].set_ylabel("state", fontsize=10)
    bar = figure.colorbar(image, ax=list(panels), fraction=0.03, pad=0.02)
    ticks = list(range(trees.finest + 1))
    bar.set_ticks(ticks, labels=[_fraction(float(trees.widths[j])) for j in ticks])
    bar.set_label("width of the cell, as a share of the axis", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return figure


def _fraction(width: float) -> str:
    """A share of an axis.

    >>> _fraction(1.0), _fraction(0.03125), _fraction(0.4)
    ('1', '1/32', '0.4')
    """
    parts = round(1.0 / width)
    return ("1" if parts == 1 else f"1/{parts}") if abs(width * parts - 1.0) < 1e-9 else f"{width:.3g}"


def _curves(agent: AdaptiveKLSCALPlus, names: list[str], times: NDArray[np.int64], ax: Axes | None) -> Figure:
    if ax is None:
        figure = new_figure(5.6, 3.6)
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        axes: Axes = figure.subplots()
    else:
        axes = checked_axes(ax)
    calm(axes)
    trees = DyadicTrees(agent.partition.bins, agent.n_actions, agent.core.trees.start)
    leaves = [np.bincount(trees.leaves % agent.n_actions, minlength=agent.n_actions)]
    done = agent.splits
    for t in times[1:].tolist() if times[0] == 0 else times.tolist():
        for _, cell, action in done[done[:, 0] == t].tolist():
            trees.split(np.array([cell * agent.n_actions + action]), t)
        leaves.append(np.bincount(trees.leaves % agent.n_actions, minlength=agent.n_actions))
    x = np.append(np.maximum(times, 1), max(agent.t, 1))
    handles = []
    for a in range(agent.n_actions):
        y = [int(row[a]) for row in leaves]
        colour, dashes = look(a)
        handles += axes.step(x, [*y, y[-1]], where="post", color=colour, linestyle=dashes, linewidth=1.4)
    axes.set_xscale("log")
    axes.set_xlabel("steps", fontsize=10)
    axes.set_ylabel("leaves", fontsize=10)
    named_legend(axes, handles, names)
    heading(axes, "Adaptive cells", f"{trees.n_leaves:,} leaves after {agent.t:,} steps")
    return figure_of(axes)
