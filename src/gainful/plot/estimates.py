"""The gain estimated by the plan of every episode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.arguments import finite
from gainful.errors import InvalidArgumentError
from gainful.plot.palette import SERIES_COLOURS
from gainful.plot.style import INK, calm, checked_axes, figure_of, heading, needs_matplotlib, new_figure
from gainful.simulation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def episodes(run_or_agent: Any, gain: float | None = None, ax: Axes | None = None) -> Figure:
    """Draw the gain estimated by the plan of each episode, with the planner's bracket, over steps.

    An optimistic agent begins above the optimal gain g* and comes down to it. An estimate is drawn from the first step
    of its episode to the first step of the next one. Steps are on a logarithmic axis.

    Parameters
    ----------
    run_or_agent : Run or agent
        Whose episodes to draw.
    gain : float, optional
        The optimal gain g* per step, to be maximised, drawn as a dashed line. A Run knows its own.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If there is no episode yet.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> agent = gf.SCALPlus(n_states=6, n_actions=2, span=7.0)
    >>> figure = gf.plot.episodes(gf.simulate(agent, river, horizon=1000, seed=1))
    >>> figure.axes[0].get_title(loc="left")
    'Gain estimates'
    """
    needs_matplotlib()
    records = getattr(run_or_agent, "episodes", None)
    if not (isinstance(records, np.ndarray) and records.dtype.names and "gain_low" in records.dtype.names):
        raise InvalidArgumentError(
            "run_or_agent",
            run_or_agent,
            "a Run or an agent",
            problem=f"{type(run_or_agent).__name__} has no records of episodes",
        )
    if len(records) == 0:
        raise InvalidArgumentError(
            "run_or_agent", run_or_agent, "at least one", "simulate first", problem="there is no episode yet"
        )
    if gain is not None and not finite(gain):
        raise InvalidArgumentError("gain", gain, "a number, or None")
    if gain is None and isinstance(run_or_agent, Run) and math.isfinite(run_or_agent.gain):
        gain = run_or_agent.gain
    # a run may be only part of what its agent has seen: the last record can lie beyond its number of steps
    steps_made = run_or_agent.horizon if isinstance(run_or_agent, Run) else getattr(run_or_agent, "t", 0)
    steps = np.append(records["step"], max(int(steps_made), int(records["step"][-1]) + 1))
    promised, low, high = (np.append(records[n], records[n][-1]) for n in ("gain", "gain_low", "gain_high"))

    if ax is None:
        figure = new_figure(6.2, 3.6)
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        axes = figure.subplots()
    else:
        axes = checked_axes(ax)
    axes.fill_between(steps, low, high, step="post", color=SERIES_COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(steps, promised, drawstyle="steps-post", color=SERIES_COLOURS[0], linewidth=1.6, label="_promised")
    if len(records) <= 200:
        axes.plot(steps[:-1], promised[:-1], ".", color=SERIES_COLOURS[0], markersize=4, label="_episodes")
    axes.set_xscale("log")
    axes.set_xlim(steps[0], steps[-1])
    calm(axes)
    if gain is not None:
        axes.axhline(gain, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.margins(y=0.08)
        axes.annotate(
            f"g* = {gain:.6g}",
            (1, gain),
            xycoords=("axes fraction", "data"),
            xytext=(-2, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=9,
            color=INK,
        )
    axes.set_xlabel("steps", fontsize=10)
    axes.set_ylabel("gain of the episode's plan", fontsize=10)
    count = f"{len(records):,} episode{'' if len(records) == 1 else 's'}"
    heading(axes, "Gain estimates", f"{count}, each with the bracket of its planner")
    return figure_of(axes)
