"""A point and where it came from as a picture: what `render_mode="rgb_array"` shows of a continuous environment."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.frames import HERE_COLOUR, MOVED_COLOUR, QUIET_COLOUR, TEXT_COLOUR, FrameCanvas, Pixels

if TYPE_CHECKING:
    from gainful.environments.continuous.environment import ContinuousEnvironment

TRAIL = 60
"""Steps of the past that are drawn."""


class PointFrames:
    """The point in the user's units: in one dimension with time running upwards, otherwise its first two coordinates.

    Parameters
    ----------
    environment : ContinuousEnvironment
        Whose points are drawn.
    """

    def __init__(self, environment: ContinuousEnvironment) -> None:
        self._flat = environment.dim == 1
        self._past: deque[NDArray[np.float64]] = deque(maxlen=TRAIL + 1)
        self._canvas = FrameCanvas(5.0, 3.0 if self._flat else 4.2, bare=False)
        axes, low, high = self._canvas.axes, environment.low, environment.high
        axes.set_xlim(float(low[0]), float(high[0]))
        axes.set_xlabel(environment.axis_labels[0], fontsize=9, color=TEXT_COLOUR, parse_math=False, labelpad=1)
        if self._flat:
            axes.set_ylim(-TRAIL, 0.06 * TRAIL)
            axes.set_ylabel("steps ago", fontsize=9, color=TEXT_COLOUR, labelpad=1)
            axes.set_yticks([-TRAIL, -TRAIL // 2, 0], [str(TRAIL), str(TRAIL // 2), "0"])
        else:
            axes.set_ylim(float(low[1]), float(high[1]))
            axes.set_ylabel(environment.axis_labels[1], fontsize=9, color=TEXT_COLOUR, parse_math=False, labelpad=1)
        axes.tick_params(labelsize=8, colors=TEXT_COLOUR, length=2)
        axes.spines[:].set_color(QUIET_COLOUR)

    def start(self, point: NDArray[np.float64]) -> None:
        """Forget the past: the process begins at `point`."""
        self._past.clear()
        self._past.append(point)

    def moved(self, point: NDArray[np.float64]) -> None:
        """Add the next point."""
        self._past.append(point)

    def frame(self, caption: str) -> Pixels:
        """The picture of the present point, the last move and the steps before."""
        from matplotlib.lines import Line2D

        points = np.array(self._past)
        x = points[:, 0]
        y = np.arange(1 - len(points), 1) if self._flat else points[:, 1]
        artists: list[Any] = [
            Line2D(x, y, color=QUIET_COLOUR, linewidth=1.2),
            Line2D(x[-2:], y[-2:], color=MOVED_COLOUR, linewidth=2.2),
            Line2D(x[-1:], y[-1:], color=HERE_COLOUR, marker="o", markersize=9, linestyle="", clip_on=False),
        ]
        return self._canvas.frame(caption, artists)
