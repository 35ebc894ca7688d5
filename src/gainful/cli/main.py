"""The command `gainful` and its subcommands, which import heavy modules only when they run, so `--help` is instant."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from gainful.about import commit
from gainful.cli import audit as audit_command
from gainful.cli import evaluate as evaluate_command
from gainful.cli import failures
from gainful.cli import fit as fit_command
from gainful.cli import learn as learn_command
from gainful.cli import list as list_command
from gainful.cli import live as live_command
from gainful.cli import report as report_command
from gainful.cli import run as run_command
from gainful.cli import serve as serve_command
from gainful.cli import solve as solve_command
from gainful.cli import tune as tune_command
from gainful.cli import watch as watch_command
from gainful.machine import MEMORY_VARIABLE

app = typer.Typer(
    name="gainful",
    help="Learning to act for the long run: average-reward Markov decision processes.",
    epilog="Exit codes: 0 success, 1 failure (bad data, no answer), 2 wrong usage, 130 interrupted. "
    "Results go to stdout, everything else to stderr.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text: narrow terminals, pipes, and twice as quick
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("solve", no_args_is_help=True, short_help="The best average of a known process, with a certificate.")(
    solve_command.solve
)
app.command("learn", no_args_is_help=True, short_help="Let an agent learn; show its policy and its regret.")(
    learn_command.learn
)
app.command("evaluate", no_args_is_help=True, short_help="What a policy earns, from a model or from a log.")(
    evaluate_command.evaluate
)
app.command("fit", no_args_is_help=True, short_help="Estimate a decision process from a log.")(fit_command.fit)
app.command("run", no_args_is_help=True, short_help="Run an experiment, or resume it.")(run_command.run)
app.command("tune", no_args_is_help=True, short_help="Search an agent's parameters, or resume a search.")(
    tune_command.tune
)
app.command("status", no_args_is_help=True, short_help="How far an experiment is, and what failed.")(run_command.status)
app.command("report", no_args_is_help=True, short_help="Write the results of an experiment as one page.")(
    report_command.report
)
app.command("watch", no_args_is_help=True, short_help="Follow an experiment on a page that renews itself.")(
    watch_command.watch
)
app.command("audit", no_args_is_help=True, short_help="Check the theorems on real runs.")(audit_command.audit)
app.command("export", no_args_is_help=True, short_help="Write an experiment or a journal as a table.")(
    run_command.export
)
app.command("serve", no_args_is_help=True, short_help="Serve durable agents over HTTP.")(serve_command.serve)
app.command("recover", no_args_is_help=True, short_help="Recover what is intact of a damaged agent.")(
    live_command.recover
)
app.add_typer(list_command.app, name="list")


def _print_version(wanted: bool) -> None:
    if wanted:
        from gainful import __version__  # from the package, which knows it even if it was never installed

        found = commit()
        typer.echo(f"gainful {__version__}" + (f" (commit {found})" if found else ""))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: failures.Debug = False,
) -> None:
    pass


@contextlib.contextmanager
def _memory_limit_kept() -> Iterator[None]:
    """A block after which the limit is what it was: --max-memory holds for one command."""
    limit = os.environ.get(MEMORY_VARIABLE)
    try:
        yield
    finally:
        os.environ.pop(MEMORY_VARIABLE, None)
        if limit is not None:
            os.environ[MEMORY_VARIABLE] = limit


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; an error is reported in one message on stderr."""
    with failures.warnings_as_notes(), _memory_limit_kept():
        return failures.exit_code_of(lambda: app(args=list(arguments), prog_name="gainful", standalone_mode=False))


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))
