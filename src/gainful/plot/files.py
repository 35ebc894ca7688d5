"""Figures of an experiment as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_frames import frame_of
from gainful.plot.centres import DEFAULT_CENTRE
from gainful.plot.curves import draw_panels
from gainful.plot.panels import CurveStyle, panels_of
from gainful.plot.style import needs_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(folder: str | Path, out: str | Path, formats: Sequence[str] = ("pdf", "png", "svg")) -> list[Path]:
    """Write the regret curves of an experiment as files: `regret`, all environments, and `regret-NAME`, one each.

    A panel shows the expected regret; the pseudo-regret if that is unknown for some run; and the total reward if the
    optimal gain is unknown. The same runs and the same matplotlib give the same bytes; fonts are embedded in PDF and
    drawn as outlines in SVG.

    Parameters
    ----------
    folder : path
        The folder of an experiment.
    out : path
        The folder for the files; made if it does not exist.
    formats : sequence of str
        Any formats that matplotlib writes, without a dot.

    Returns
    -------
    list of Path
        The files, in the order written.

    Raises
    ------
    InvalidArgumentError
        If no run has finished, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import gainful as gf
    >>> paths = gf.plot.figures("results/quickstart", "figures", formats=["pdf"])  # doctest: +SKIP
    """
    needs_matplotlib()
    kinds = [formats] if isinstance(formats, str) else list(formats)
    _check_formats(kinds)
    frame = frame_of(folder)
    style = CurveStyle(DEFAULT_CENTRE, "auto")
    panels = panels_of(frame, None, style, or_reward=True)
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(
            "out",
            str(out),
            hint="choose another folder",
            problem=f"{out}: the folder cannot be created: {error.strerror or error}",
        ) from error
    paths = _write(draw_panels(panels, style), target / "regret", kinds)
    taken = {"regret"}
    for panel in panels:
        name = _file_name(panel.environment, taken)
        paths += _write(draw_panels([panel], style), target / name, kinds)
    return paths


def _check_formats(kinds: list[Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    possible = FigureCanvasAgg.get_supported_filetypes()
    wrong = [kind for kind in kinds if kind not in possible]
    if wrong or not kinds:
        raise InvalidArgumentError(
            "formats",
            kinds,
            f"at least one of {', '.join(sorted(possible))}, each without a dot",
            problem=f"formats are {kinds!r}",
        )


def _file_name(environment: str, taken: set[str]) -> str:
    """A name of letters, digits and dashes that is not yet taken."""
    stem = re.sub(r"[^a-z0-9]+", "-", environment.lower()).strip("-")[:60] or "environment"
    name, number = f"regret-{stem}", 2
    while name in taken:
        name, number = f"regret-{stem}-{number}", number + 1
    taken.add(name)
    return name


def _write(figure: Figure, stem: Path, kinds: list[str]) -> list[Path]:
    import matplotlib

    undated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "ps": {}, "eps": {}}
    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "gainful", "pdf.fonttype": 42, "ps.fonttype": 42}):
        for kind in kinds:
            path = stem.with_name(f"{stem.name}.{kind}")
            try:
                figure.savefig(path, format=kind, dpi=200, metadata=undated.get(kind))
            except OSError as error:
                raise InvalidArgumentError(
                    "out",
                    str(path),
                    hint="check space and permissions",
                    problem=f"{path}: cannot be written: {error.strerror or error}",
                ) from error
            paths.append(path)
    return paths
