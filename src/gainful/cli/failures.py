"""Errors on the command line: one message on stderr and an exit code; a traceback only with `--debug`."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gainful.cli.console import ReaderGoneError, note, printable
from gainful.errors import GainfulError, InvalidArgumentError, SteppedInPythonWarning, UnknownNameError

FAILED, MISUSE, INTERRUPTED, READER_GONE = 1, 2, 130, 141  # the last two as shells count them: 128 + signal

# recent versions of typer bundle click, so reach its classes through typer
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

_show_traceback = False


class JobInterruptedError(Exception):
    """Ctrl-C ended a command that can say how far it came and what is kept: `after 3 of 10 steps; ...`."""


def _set_debug(wanted: bool) -> bool:
    global _show_traceback
    _show_traceback = _show_traceback or wanted
    return wanted


Debug = Annotated[bool, typer.Option("--debug", callback=_set_debug, help="Show a traceback if something fails.")]
"""The option `--debug`, which may come before or after the name of a command."""


def exit_code_of(command: Callable[[], Any]) -> int:
    """Run `command`, report any error and return the exit code."""
    global _show_traceback
    _show_traceback = False
    if sys.stdout is None:  # closed by the caller, who wants no output
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot encode Greek letters still gets its answer
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    code = _outcome(command)
    try:
        sys.stdout.flush()
    except OSError as error:
        _abandon_stdout()
        code = code or _report(error, FAILED)
    return code


@contextlib.contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print gainful's own warnings as notes on stderr, each once; a path and a line of code tell a user nothing."""
    shown: set[str] = set()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Any, category: Any, *rest: Any, **options: Any) -> None:
            if not category.__module__.startswith("gainful"):
                before(message, category, *rest, **options)
            elif str(message) not in shown:
                shown.add(str(message))
                kind = "note" if issubclass(category, SteppedInPythonWarning) else "warning"
                note(printable(f"{kind}: {message}"))

        warnings.showwarning = show
        yield


def _outcome(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except JobInterruptedError as error:
        note(printable(f"interrupted {error}"))
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except _UsageError as error:
        return _misuse(error)
    except ReaderGoneError:  # `gainful ... | head` is not a failure
        _abandon_stdout()
        return READER_GONE
    except (InvalidArgumentError, UnknownNameError) as error:
        return _report(error, MISUSE)
    except GainfulError as error:
        return _report(error, FAILED)
    except (OSError, MemoryError) as error:
        return _report(error, FAILED)
    except Exception as error:
        place = _place_outside(error)
        hint = f"raised in {place}" if place else "this is a bug in gainful"
        return _report(error, FAILED, f"{hint}; --debug shows where it happened")
    if result == INTERRUPTED:
        print("\ninterrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _place_outside(error: BaseException) -> str:
    """Where an error was raised, if that was in a user's own module and not in gainful or an installed package."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    places = [str(Path(__file__).resolve().parent.parent), *sysconfig.get_paths().values()]
    inside = last.filename.startswith("<") or any(last.filename.startswith(place) for place in places)
    return "" if inside else f"{last.filename}, line {last.lineno}"


def _report(error: BaseException, code: int, hint: str = "") -> int:
    if _show_traceback:
        traceback.print_exception(error)
        return code
    name = (
        "MemoryError"
        if isinstance(error, MemoryError) and not isinstance(error, GainfulError)
        else type(error).__name__
    )
    text = f"{name}: {str(error) or 'out of memory'}" + (f" ({hint})" if hint else "")
    note(printable(text, keep="\n"))
    return code


def _misuse(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return MISUSE
    if _show_traceback:
        traceback.print_exception(error)
        return MISUSE
    note(f"UsageError: {printable(error.format_message())}")
    if error.ctx is not None:
        note(f"Try '{error.ctx.command_path} --help'.")
    return MISUSE


def _abandon_stdout() -> None:
    """Redirect stdout to nothing, so that Python does not fail to flush the rest on exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
