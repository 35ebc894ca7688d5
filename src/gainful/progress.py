"""Progress of long calls on stderr: a line rewritten in place on a terminal and in notebooks, elsewhere one in 10 s."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from rich.console import Console

Progress: TypeAlias = "bool | Callable[[int, int], None] | None"
"""What `progress=` may be: True shows a line, a function is called with (done, total)."""
SearchProgress: TypeAlias = "bool | Callable[[int, float], None] | None"
"""The same for a search, whose function is called with (sweeps, width of the bracket)."""
LINE_EVERY = 10.0
"""Seconds between two lines where stderr is neither a terminal nor a notebook."""
REWRITE_EVERY = 0.125
"""Seconds between two versions of a line that is rewritten in place."""


def stderr_console() -> Console:
    """A console for stderr that reads nothing as markup."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


@contextmanager
def live_line(tell: Callable[[Any, Any], str]) -> Iterator[Callable[[Any, Any], None]]:
    """Show progress: a line rewritten in place on a terminal and in a notebook, elsewhere a new line every 10 s.

    Yields a function to call with (done, total) as often as convenient; `tell` writes the text when it is due.
    """
    with _line_on_screen() as screen:
        every = LINE_EVERY if screen is None else REWRITE_EVERY
        due, begun = time.monotonic() + (every if screen is None else 0.0), False

        def show(done: float, total: float) -> None:
            nonlocal due, begun
            if not begun:
                begun = True
                tell(done, total)  # a rate is measured from here on
            if time.monotonic() < due:
                return
            text = tell(done, total)
            if screen is None:
                print(text, file=sys.stderr, flush=True)
            else:
                screen(text)
            due = time.monotonic() + every

        yield show


@contextmanager
def _line_on_screen() -> Iterator[Callable[[str], None] | None]:
    """A function that rewrites one line, which disappears at the end; None where there is no screen to rewrite."""
    notebook = _notebook_display()
    if notebook is not None:
        from html import escape

        handle = notebook({"text/plain": ""}, raw=True, display_id=True)
        try:
            yield lambda text: handle.update(
                {"text/html": f"<code>{escape(text)}</code>", "text/plain": text}, raw=True
            )
        finally:
            handle.update({"text/plain": ""}, raw=True)
    elif sys.stderr.isatty():
        from rich.live import Live
        from rich.text import Text

        with Live(console=stderr_console(), auto_refresh=False, transient=True) as live:
            yield lambda text: live.update(Text(text), refresh=True)
    else:
        yield None


def _notebook_display() -> Any:
    """IPython's `display` inside a notebook, otherwise None; it does not load IPython."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return ipython.display.display if hasattr(shell, "kernel") else None


@contextmanager
def shown_progress(progress: Any, doing: str, unit: str = "steps") -> Iterator[Any]:
    """What to call with (done, total): a line of our own for True, the user's function, or None."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with live_line(RateText(doing, unit)) as show:
            yield show
    elif callable(progress):
        yield progress
    else:
        raise InvalidArgumentError("progress", progress, "True, False, None or a function of two numbers")


@contextmanager
def shown_search(progress: SearchProgress, wanted: float) -> Iterator[Callable[[int, float], None] | None]:
    """What to call with (sweeps, width): a line of our own for True, the user's function, or None."""
    if progress is not True:
        with shown_progress(progress, "solving") as tell:
            yield tell
        return

    def words(sweeps: int, width: float) -> str:
        return f"solving: {sweeps:,} sweeps, gain within {width:.1e} (wanted {wanted:.1e})"

    with live_line(words) as show:
        yield show


class RateText:
    """The text of a progress line: how much is done, how fast, and how long the rest will take.

    Parameters
    ----------
    doing : str
        What is done; the line begins with it.
    unit : str
        What is counted.

    Examples
    --------
    >>> text = RateText("PSRL in riverswim")
    >>> text(0, 1000)
    'PSRL in riverswim: 0 of 1,000 steps'
    >>> text(500, 1000).startswith("PSRL in riverswim: 500 of 1,000 steps (50 %), ")
    True
    """

    def __init__(self, doing: str, unit: str = "steps") -> None:
        self.doing, self.unit = doing, unit
        self._began, self._first = time.perf_counter(), -1

    def __call__(self, done: int, total: int) -> str:
        """The line for `done` of `total`."""
        if self._first < 0:  # what was done before, by a call that was killed, took no time here
            self._first, self._began = done, time.perf_counter()
        text = f"{self.doing}: {done:,} of {total:,} {self.unit}"
        made = done - self._first
        if made <= 0:
            return text
        rate = made / max(time.perf_counter() - self._began, 1e-9)
        share = f"{100 * done / total:.0f} %"
        left = duration((total - done) / rate)
        return f"{text} ({share}), {short_rate(rate)} {self.unit}/s, {left} left"


def short_rate(rate: float) -> str:
    """A number per second in few characters.

    >>> short_rate(20_512.0), short_rate(1.39e9), short_rate(3.25e6), short_rate(42.0), short_rate(0.31)
    ('20,500', '1.39 G', '3.25 M', '42', '0.31')
    """
    for scale, prefix in ((1e9, " G"), (1e6, " M")):
        if rate >= 0.9995 * scale:
            return f"{rate / scale:.3g}{prefix}"
    return f"{float(f'{rate:.3g}'):,.0f}" if rate >= 100 else f"{rate:.2g}"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(3.2), duration(75), duration(7300), duration(200_000)
    ('3 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    whole = round(seconds)
    for large, small, size, step in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            rest = whole % size // step
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"
