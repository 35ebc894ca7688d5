"""The final regret of every run, and performance profiles over many of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError, suggestion
from gainful.experiments.final_values import final_values
from gainful.experiments.performance_profiles import factors_of_best, profile_curve, profile_end
from gainful.experiments.run_frames import Data, frame_of
from gainful.plot.panels import Value
from gainful.plot.presets import USUAL_SIZES, Width, preset_of
from gainful.plot.style import (
    calm,
    checked_axes,
    figure_of,
    heading,
    look,
    named_legend,
    needs_matplotlib,
    new_figure,
    plain,
    shown,
)
from gainful.simulation.run import MEASURE_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gainful.plot.presets import TextSizes


def distribution(
    data: Data,
    *,
    value: Value | None = None,
    environment: str | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the final regret of every run: a dot for each, and their quartiles, one row per agent, the best on top.

    Parameters
    ----------
    data : path, DataFrame, Run, list of Run, or dict
        As for `gainful.plot.regret`.
    value : {"expected_regret", "pseudo_regret", "regret", "reward"}, optional
        What to draw; by default the expected regret where it is known.
    environment : str, optional
        Which environment to draw; needed if the data have several.
    width : {"column", "page", "slide"}, optional
        The width of the figure, with text to match.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If the environment is not one of the data, or must be chosen.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> runs = gf.simulate_many(lambda seed: gf.PSRL(6, 2, seed=seed), river, horizon=1000, seeds=range(4))
    >>> figure = gf.plot.distribution({"PSRL": runs})
    >>> figure.axes[0].get_xlabel()
    'expected regret'
    """
    needs_matplotlib()
    measure, found = final_values(frame_of(data), value)
    where = _chosen(environment, list(found))
    groups = {agent: np.array(list(values.values())) for agent, values in found[where].items()}
    number = {agent: i for i, agent in enumerate(groups)}
    sign = -1.0 if measure == "reward" else 1.0
    order = sorted(groups, key=lambda agent: sign * float(groups[agent].mean()))
    axes, sizes = _axes(ax, width, 0.9 + 0.34 * len(groups))
    rng = np.random.default_rng(0)
    for row, agent in enumerate(order):
        y, colour = groups[agent], look(number[agent])[0]
        axes.scatter(
            y, row + rng.uniform(-0.16, 0.16, y.size), s=(1.9 * sizes.line) ** 2, color=colour, alpha=0.6, linewidth=0
        )
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        axes.plot([low, high], [row, row], color=colour, linewidth=4 * sizes.line, alpha=0.3, solid_capstyle="butt")
        axes.plot([middle, middle], [row - 0.3, row + 0.3], color=colour, linewidth=sizes.line)
    every = np.concatenate(list(groups.values()))
    calm(axes, sizes=sizes)
    axes.grid(visible=False, axis="y")
    if every.min() > 0.0 and every.max() > 8.0 * every.min():
        axes.set_xscale("log")
        _few_ticks(axes, float(every.min()), float(every.max()))
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_yticks(range(len(order)), [shown(agent, 30) for agent in order])
    for text in axes.get_yticklabels():
        plain(text)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(MEASURE_NAMES[measure], fontsize=sizes.axis)
    heading(axes, shown(where), "a dot for each run; quartiles, median", sizes=sizes)
    return figure_of(axes)


def profile(data: Data, *, value: Value | None = None, width: Width | None = None, ax: Axes | None = None) -> Figure:
    """Draw performance profiles: on which share of the problems an agent's regret is within a factor of the best.

    A problem is an environment with a seed. At the left end is the share of problems on which an agent is the best;
    the higher a curve, the better (Dolan and Moré 2002).

    Parameters
    ----------
    data : path, DataFrame, or dict
        As for `gainful.plot.regret`, with at least two agents that share seeds.
    value : {"expected_regret", "pseudo_regret", "regret"}, optional
        What to compare; by default the expected regret where it is known.
    width : {"column", "page", "slide"}, optional
        The width of the figure, with text to match.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If no two agents have a run with the same seed in the same environment.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> runs = {name: gf.simulate_many(lambda seed, make=make: make(6, 2, seed=seed), river, 1000, seeds=range(4))
    ...         for name, make in (("PSRL", gf.PSRL), ("UCRL2B", gf.UCRL2B))}
    >>> figure = gf.plot.profile(runs)
    >>> figure.axes[0].get_ylabel()
    'share of problems'
    """
    needs_matplotlib()
    if value == "reward":
        raise InvalidArgumentError("value", value, "a measure of regret, of which less is better")
    measure, found = final_values(frame_of(data), value)
    values: dict[str, dict[Hashable, float]] = {}
    for where, agents in found.items():
        for agent, by_seed in agents.items():
            values.setdefault(agent, {}).update({(where, seed): v for seed, v in by_seed.items()})
    factors = factors_of_best(values)
    if len(factors) < 2:
        raise InvalidArgumentError(
            "data", expected="two agents with the same seeds", problem="no two agents share a problem"
        )
    axes, sizes = _axes(ax, width, 3.2)
    end = profile_end(factors)
    for number, agent in enumerate(values):
        if agent in factors:
            colour, dashes = look(number)
            tau, share = profile_curve(factors[agent], end)
            axes.step(tau, share, where="post", color=colour, linestyle=dashes, linewidth=sizes.line)
    calm(axes, sizes=sizes)
    axes.set_xscale("log")
    axes.set_xlim(1.0, end)
    _few_ticks(axes, 1.0, float(end))
    axes.set_ylim(-0.02, 1.04)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel(f"{MEASURE_NAMES[measure]} over the least one, at most", fontsize=sizes.axis)
    axes.set_ylabel("share of problems", fontsize=sizes.axis)
    problems = max(f.size for f in factors.values())
    heading(axes, "Performance profile", f"{problems:,} problems: environment and seed", sizes=sizes)
    _legend_of(axes, [a for a in values if a in factors], list(values), sizes, ax is None)
    return figure_of(axes)


def _few_ticks(axes: Axes, low: float, high: float) -> None:
    """Numbers that do not touch on a logarithmic axis: within two decades few, beyond at powers of ten only."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.xaxis.set_minor_formatter(NullFormatter())
    if high < 100.0 * low:
        short = low >= 0.01 and high < 1e5
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0, 3.0)))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}" if short else _in_powers(x))


def _in_powers(x: float) -> str:
    digit, power = f"{x:.0e}".split("e")
    return f"$10^{{{int(power)}}}$" if digit == "1" else rf"${digit}{{\times}}10^{{{int(power)}}}$"


def _legend_of(axes: Axes, agents: list[str], every: list[str], sizes: TextSizes, outside: bool) -> None:
    """Names below the axes of a figure of our own, or where there is room in axes that were given."""
    from matplotlib.lines import Line2D

    looks = [look(every.index(agent)) for agent in agents]
    handles: list[Any] = [Line2D([], [], color=c, linestyle=d, linewidth=sizes.line) for c, d in looks]
    names = [shown(agent, 30) for agent in agents]
    if outside:
        columns = 2 if figure_of(axes).get_size_inches()[0] < 4.0 else 3
        named_legend(figure_of(axes), handles, names, loc="outside lower center", ncols=columns, fontsize=sizes.name)
    else:
        named_legend(axes, handles, names, loc="best", fontsize=sizes.name)


def _chosen(environment: str | None, known: list[str]) -> str:
    if environment is None and len(known) == 1:
        return known[0]
    if environment is None:
        raise InvalidArgumentError(
            "environment",
            hint="choose one: " + ", ".join(map(repr, known)),
            problem=f"the data have {len(known)} environments",
        )
    if environment not in known:
        raise InvalidArgumentError(
            "environment",
            environment,
            hint=suggestion(environment, known),
            problem=f"no environment is called {environment!r}",
        )
    return environment


def _axes(ax: Axes | None, width: Width | None, height: float) -> tuple[Axes, TextSizes]:
    """The given axes, or those of a new figure of the width, with the sizes of its text."""
    preset = preset_of(width)
    if ax is not None:
        if preset is not None:
            raise InvalidArgumentError(
                "width", width, hint="leave one out", problem="width is given, and ax has its own"
            )
        return checked_axes(ax), USUAL_SIZES
    sizes = USUAL_SIZES if preset is None else preset.sizes
    scale = sizes.tick / USUAL_SIZES.tick
    figure = new_figure(6.2 if preset is None else preset.width, height * scale + 0.3 * scale)
    figure.set_layout_engine("constrained", w_pad=0.1 * scale, h_pad=0.1 * scale)
    return figure.subplots(), sizes
