"""The figure that `gainful.plot` returns; imports matplotlib, so it is itself imported inside functions only."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A matplotlib Figure with an Agg canvas, known to no pyplot, that a notebook shows as a picture."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        FigureCanvasAgg(self)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure; text in PDF and PostScript is text, in embedded TrueType fonts (type 42)."""
        with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", bbox_inches="tight")
        return written.getvalue()
