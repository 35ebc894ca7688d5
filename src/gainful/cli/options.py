"""Options and arguments that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gainful.cli import completion


def _limit_memory(size: str | None) -> str | None:
    """Set the limit for this process and its workers."""
    if size is not None:
        from gainful.machine import MEMORY_VARIABLE, bytes_of

        os.environ[MEMORY_VARIABLE] = str(bytes_of("--max-memory", size))
    return size


EnvironmentSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the environment; may be repeated."),
]
AgentSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-set",
        metavar="NAME=VALUE",
        help="Set a parameter of the agent, such as delta=0.1; may be repeated.",
    ),
]
Bins = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Cells per axis, for continuous states.", show_default=False),
]
Rates = Annotated[
    bool,
    typer.Option(
        "--rates",
        help="Read the table as a continuous-time process: rate instead of probability, reward or cost at each "
        "jump, reward_rate or cost_rate per unit of time.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        show_default=False,
        help="Runs at a time; by default as many as processors and memory allow. Results do not depend on it.",
    ),
]
ExperimentFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of an experiment.", show_default=False)
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        callback=_limit_memory,
        show_default=False,
        help="Refuse to build or read anything that would take more memory, such as 8GB; half of the machine's memory "
        "by default. GAINFUL_MAX_MEMORY sets the same limit.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
StatesShown = Annotated[
    int, typer.Option("--max-states-shown", min=0, metavar="N", help="How many states of the policy to list.")
]
LogColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="A log's own name of a column: --column state=condition; may be repeated.",
        show_default=False,
    ),
]
LogEnds = Annotated[
    str,
    typer.Option(
        metavar="auto|drop|restart",
        autocompletion=completion.ends_of_logs,
        help="What to do with states that a log enters and never leaves: 'restart' goes on to the first state of the "
        "next trajectory, 'drop' leaves the transitions into them out, 'auto' drops them if each is entered once, as "
        "where a log just stops.",
    ),
]
Confidence = Annotated[str, typer.Option(metavar="NUMBER", help="The level of each interval.")]
Replicates = Annotated[
    int, typer.Option(min=0, metavar="N", help="Resampled models behind the intervals of gains; 0 for none.")
]
ResamplingSeed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the resampling.")]
RewardModel = Annotated[
    str | None,
    typer.Option(
        "--reward-model", metavar="NAME", help="Which reward model of a .drn file to use.", show_default=False
    ),
]

Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="A module that may be imported if an agent's class is defined in it; may be repeated.",
        show_default=False,
    ),
]
"""The option `--allow`, for commands that open agents of a folder."""


def allowed(modules: list[str] | None) -> tuple[str, ...]:
    """The modules that were allowed, imported after one line has said which."""
    from gainful.user_modules import import_module

    for module in modules or ():
        import_module(module)
    return tuple(modules or ())
