"""Figures of an experiment as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError
from gainful.plot.curves import Form, Panel, as_frame, draw, panels_of
from gainful.plot.style import needs_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = ("pseudo_regret", "regret", "reward")


def figures(folder: str | Path, out: str | Path, formats: Sequence[str] = ("pdf", "png", "svg")) -> list[Path]:
    """Write the regret curves of a finished experiment: `regret`, all environments, and `regret-NAME`, one each.

    Where the optimal gain of an environment is unknown its total reward is drawn instead. The paths come back in the
    order written. The same runs and the same matplotlib give the same bytes; fonts are embedded in PDF and drawn as
    outlines in SVG.
    """
    needs_matplotlib()
    kinds = [formats] if isinstance(formats, str) else list(formats)
    _check_formats(kinds)
    frame = as_frame(folder)
    panels = [_known(frame, label) for label in dict.fromkeys(map(str, frame["environment"].unique()))]
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(
            f"{out}: cannot be made a folder: {error.strerror or error}; choose another"
        ) from error
    form = Form("median", (0.25, 0.75), log=True, per_step=False)
    paths = _write(draw(panels, form), target / "regret", kinds)
    taken = {"regret"}
    for panel in panels:
        name = _file_name(panel.environment, taken)
        paths += _write(draw([panel], form), target / name, kinds)
    return paths


def _known(frame: Any, environment: str) -> Panel:
    """The panel of the first value that is known."""
    here = frame[frame["environment"].astype(str) == environment]
    found = [panels_of(here, None, value, (0.25, 0.75), "median", False, False)[0] for value in ORDER]
    return next(panel for panel in found if panel.known)


def _check_formats(kinds: list[Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    possible = FigureCanvasAgg.get_supported_filetypes()
    wrong = [kind for kind in kinds if kind not in possible]
    if wrong or not kinds:
        raise InvalidArgumentError(
            f"formats are {kinds!r}, expected at least one of {', '.join(sorted(possible))}, each without a dot"
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
                    f"{path}: cannot be written: {error.strerror or error}; check space and permissions"
                ) from error
            paths.append(path)
    return paths
