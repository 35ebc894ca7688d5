"""Where output goes: results to stdout, everything else to stderr; plain text unless it is a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from gainful.progress import stderr_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class ReaderGoneError(Exception):
    """The reader of our output has closed the pipe."""


def printable(text: str, keep: str = "") -> str:
    r"""`text` with control characters escaped; labels come from files and may contain anything.

    >>> printable("up" + chr(27) + "[31m")
    'up\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def write(chunks: Iterable[str]) -> None:
    """Write text to stdout unchanged."""
    try:
        for chunk in chunks:
            sys.stdout.write(chunk)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError from None


def show(*parts: RenderableType) -> None:
    """Print rich text to stdout: styled on a terminal; elsewhere plain, with one line per record, for grep."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    if console.is_terminal:
        for part in parts:
            console.print(part)
        return
    wide = console.options.update(width=10_000)
    console.width = max(console.width, *(console.measure(part, options=wide).maximum for part in parts))
    with console.capture() as text:
        for part in parts:
            console.print(part)
    write(f"{line.rstrip()}\n" for line in text.get().splitlines())


def note(text: str) -> None:
    """Print a remark to stderr; on a terminal its lines end between words, and keep their indentation."""
    if sys.stderr.isatty():
        text = "\n".join(_wrapped(line, shutil.get_terminal_size().columns) for line in text.splitlines())
    print(text, file=sys.stderr, flush=True)


def _wrapped(line: str, width: int) -> str:
    """The line, broken between words.

    >>> print(_wrapped("  one two three", 9))
      one two
      three
    """
    indent = line[: len(line) - len(line.lstrip())]
    wrap = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrap.fill(line)


def one_line(parts: list[str]) -> str:
    """The parts of a progress line, separated by commas; on a terminal the last ones are left out if they do not fit.

    >>> one_line(["3 of 10 steps", "1 s left"])
    '3 of 10 steps, 1 s left'
    """
    kept = list(parts)
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        while len(kept) > 1 and len(", ".join(kept)) >= width:
            kept.pop()
    return ", ".join(kept)


def terminal_width() -> int | None:
    """The columns of the terminal that shows results, or None if they go elsewhere, where lines may be long."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else None


def is_narrow(columns: int) -> bool:
    """Whether results are shown by a terminal of fewer columns than these."""
    width = terminal_width()
    return width is not None and width < columns


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr, on a terminal only; yields a function that changes its text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    console = stderr_console()
    with console.status(f"{doing} …") as status:
        CompilationNotice.console = console
        try:
            yield lambda words: status.update(f"{words} …")
        finally:
            CompilationNotice.console = None


class CompilationNotice:
    """A notice, shown once per process and on stderr, that kernels are being compiled."""

    console: Console | None = None
    """The console that shows a spinner, if there is one; other output must go through it."""

    def __init__(self) -> None:
        self.said = False

    def __call__(self) -> None:
        """Print the notice."""
        self.said = True
        text = "compiling (once, then cached) …"
        if self.console is not None:
            self.console.print(text)
        else:
            print(text, file=sys.stderr, flush=True)


@cache
def compilation_notice() -> CompilationNotice:
    """The notice of this process; the first call installs it."""
    from gainful._compiled import announce_compilation

    notice = CompilationNotice()
    announce_compilation(notice)
    return notice
