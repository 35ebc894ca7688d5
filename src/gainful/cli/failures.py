"""Errors on the command line: one message on stderr and an exit code; a traceback only with `--debug`."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gainful.cli.console import ReaderGoneError, printable
from gainful.errors import GainfulError, InvalidArgumentError, UnknownNameError

FAILED, MISUSE, INTERRUPTED, READER_GONE = 1, 2, 130, 141  # the last two as shells count them: 128 + signal

# recent versions of typer bundle click, so reach its classes through typer
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

_show_traceback = False


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


def _outcome(command: Callable[[], Any]) -> int:
    try:
        result = command()
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
        return _report(error, FAILED, "this is a bug in gainful; --debug shows where it happened")
    if result == INTERRUPTED:
        print("\ninterrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


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
    print(printable(text, keep="\n"), file=sys.stderr)
    return code


def _misuse(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return MISUSE
    if _show_traceback:
        traceback.print_exception(error)
        return MISUSE
    print(f"UsageError: {printable(error.format_message())}", file=sys.stderr)
    if error.ctx is not None:
        print(f"Try '{error.ctx.command_path} --help'.", file=sys.stderr)
    return MISUSE


def _abandon_stdout() -> None:
    """Redirect stdout to nothing, so that Python does not fail to flush the rest on exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
