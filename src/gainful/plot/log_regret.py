"""Expected regret over ln T, with the slope that no consistent learner stays below in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_frames import Data, frame_of
from gainful.mdp.model import MDP
from gainful.plot.centres import DEFAULT_CENTRE, Statistic
from gainful.plot.curves import draw_panels
from gainful.plot.panels import Band, CurveStyle, panels_of
from gainful.plot.presets import Width, preset_of
from gainful.plot.style import PALE, needs_matplotlib
from gainful.theory.asymptotic import Unknown, asymptotic_slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def log_regret(
    data: Data,
    mdp: MDP,
    *,
    unknown: Unknown = "product",
    environment: str | None = None,
    band: Band = "auto",
    statistic: Statistic = DEFAULT_CENTRE,
    width: Width | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw expected regret over the logarithm of the steps, and the asymptotic slope of an ergodic process.

    The dashed line through the end of each curve has the slope C of `gf.theory.asymptotic_slope`, over one decade: the
    regret of a consistent learner grows at least so fast in the end. It is no bound on the curve: an optimal learner
    approaches the slope from below, and a curve that stays flatter for long belongs to a learner that is not
    consistent, or to one that has not come so far.

    Parameters
    ----------
    data : path, DataFrame, Run, list of Run, or dict
        As for `regret`; the runs of one environment.
    mdp : MDP
        The environment, which must be ergodic.
    unknown : {"transitions", "product", "joint"}
        What the learners did not know, as for `gf.theory.asymptotic_slope`.
    environment : str, optional
        Draw the environment with this label, if the data have several.
    band, statistic, width, ax
        As for `regret`.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If the process is not ergodic, expected regret is unknown, or the data have several environments.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim_ergodic(6)
    >>> run = gf.simulate(gf.PSRL(6, 2), river, horizon=1000, seed=1)
    >>> figure = gf.plot.log_regret({"PSRL": run}, river)
    >>> figure.axes[0].get_xscale(), figure.axes[0].get_yscale()
    ('log', 'linear')
    """
    needs_matplotlib()
    constant = asymptotic_slope(mdp, unknown=unknown).slope
    remark = f"; dashed: asymptotic slope, {constant:.4g} per unit of ln T (Burnetas & Katehakis), no bound at any T"
    style = CurveStyle(statistic, band, False, False, False, remark)
    panels = panels_of(frame_of(data), "expected_regret", style, environment)
    if len(panels) != 1 or not panels[0].known:
        several = len(panels) > 1
        raise InvalidArgumentError(
            "environment" if several else "data",
            environment,
            hint="choose one: " + ", ".join(repr(p.environment) for p in panels) if several else "simulate in the MDP",
            problem=f"the data have {len(panels)} environments" if several else "expected regret is unknown",
        )
    figure = draw_panels(panels, style, ax, preset_of(width))
    axes: Any = figure.axes[0] if ax is None else ax
    axes.set_xscale("log")
    for line in panels[0].lines:
        if line.known and line.steps.size:
            _draw_slope(axes, float(line.steps[-1]), float(line.centre[-1]), constant)
    return figure


def _draw_slope(axes: Any, last: float, regret: float, constant: float) -> None:
    """A dashed line of the slope through the end of a curve, over its last decade."""
    steps = np.array([last / 10.0, last])
    values = regret + constant * np.log(steps / last)
    axes.plot(steps, values, color=PALE, linestyle="--", linewidth=1.0, zorder=2, label="_asymptotic slope")
