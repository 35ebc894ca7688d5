"""Pictures as arrays, frame after frame: a background that is drawn once, and what changes on top of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pixels: TypeAlias = NDArray[np.uint8]

PIXELS_PER_INCH = 100
HERE_COLOUR, MOVED_COLOUR, QUIET_COLOUR, TEXT_COLOUR = "#0072B2", "#D55E00", "#C9CDD2", "#22262B"
"""The present state, the last move, everything else that is drawn, and words."""
CAPTION_INCHES = 0.42
"""Height of the line under the picture."""


def check_that_frames_can_be_drawn() -> None:
    """Raise an error that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidArgumentError(
            "render_mode",
            "rgb_array",
            hint="pip install 'gainful[figures]', or use render_mode='ansi'",
            problem="pictures need matplotlib, which is not installed",
        ) from error


class FrameCanvas:
    """Axes above a line of text, known to no pyplot.

    Parameters
    ----------
    width, height : float
        The size of the axes in inches; the numbers of pixels are even, as video encoders ask for.
    bare : bool
        Whether the axes have neither frame nor ticks.
    """

    def __init__(self, width: float, height: float, *, bare: bool) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        margin = 0.12 if bare else 0.68
        whole = [2 * round(inches * PIXELS_PER_INCH / 2) / PIXELS_PER_INCH for inches in (width, height)]
        wide, high = whole[0], whole[1] + CAPTION_INCHES
        self._canvas: Any = FigureCanvasAgg(Figure((wide, high), dpi=PIXELS_PER_INCH, facecolor="white"))
        figure, below = self._canvas.figure, CAPTION_INCHES + (0.0 if bare else 0.25)
        size = (1 - (margin + 0.12) / wide, (high - below - 0.12) / high)
        self.axes: Axes = figure.add_axes((margin / wide, below / high, *size))
        if bare:
            self.axes.set_axis_off()
        self._caption = figure.text(0.5, 0.14 / high, "", ha="center", fontsize=10, color=TEXT_COLOUR, parse_math=False)
        self._caption.set_animated(True)
        self._background: Any = None

    def frame(self, caption: str, artists: Iterable[Any]) -> Pixels:
        """The background with these artists, which are removed afterwards, and the caption: (height, width, 3)."""
        canvas, axes = self._canvas, self.axes
        if self._background is None:
            canvas.draw()
            self._background = canvas.copy_from_bbox(canvas.figure.bbox)
        canvas.restore_region(self._background)
        for artist in artists:
            axes.add_artist(artist)
            axes.draw_artist(artist)
            artist.remove()
        self._write(caption)
        canvas.figure.draw_artist(self._caption)
        pixels: Pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
        return pixels

    def _write(self, words: str) -> None:
        """The words in one line under the picture: smaller letters if there are many, then cut."""
        line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
        width = float(self._canvas.figure.bbox.width)
        size = min(10.0, max(7.0, width / (0.85 * max(len(line), 1))))
        most = int(width / (0.85 * size))
        self._caption.set_text(line if len(line) <= most else f"{line[: most - 1]}…")
        self._caption.set_fontsize(size)
