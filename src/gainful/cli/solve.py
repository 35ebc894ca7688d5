"""`gainful solve`: the optimal gain of a decision process, its proof and its policy."""

from __future__ import annotations

from typing import Annotated

import typer

from gainful.cli import console, failures


def solve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE",
            help="A shipped environment (gainful list environments), a Gymnasium id with a table (FrozenLake-v1), "
            "a table of transitions (.csv, .tsv, .parquet: state, action, next_state, probability, and reward or cost) "
            "or a file written by mdp.save. ./NAME is a file whatever its name.",
            show_default=False,
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the environment; may be repeated."),
    ] = None,
    precision: Annotated[
        str, typer.Option(metavar="NUMBER", help="Width of the certified bracket of the gain.")
    ] = "1e-8",
    span: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Best gain among policies whose bias has at most this span (ScOpt).",
            show_default=False,
        ),
    ] = None,
    diameter: Annotated[
        bool | None,
        typer.Option(
            "--diameter/--no-diameter", help="Compute the diameter; by default up to 300 states.", show_default=False
        ),
    ] = None,
    states_shown: Annotated[
        int, typer.Option("--max-states-shown", min=0, metavar="N", help="States to list in the policy.")
    ] = 20,
    rates: Annotated[
        bool,
        typer.Option(
            "--rates",
            help="The table holds a continuous-time process: rate instead of probability; reward or cost at the jump, "
            "reward_rate or cost_rate per unit of time.",
        ),
    ] = False,
    gymnasium: Annotated[
        bool, typer.Option("--gymnasium", help="ENV is the id of a Gymnasium environment, whatever it looks like.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='One JSON object with every state. A diameter is null when not computed and the string "inf" when '
            "infinite; unichain is null when not known; a state has an action, or probabilities when it mixes them.",
        ),
    ] = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:  # \b keeps the lines of the examples apart
    """The optimal gain of a decision process, certified, and its policy.

    Also the span of the bias, the diameter and the structure. For example:

    \b
    gainful solve riverswim --set n_states=8
    gainful solve transitions.csv --json
    gainful solve queue.csv --rates --span 12
    """  # noqa: D301
    from gainful.cli.answer import find_answer
    from gainful.cli.source import read_number, read_source

    width = read_number("--precision", precision, "1e-8")
    bound = None if span is None else read_number("--span", span, "2.5")
    with console.progress("loading") as say:
        mdp = read_source(source, settings or (), rates=rates, gymnasium=gymnasium)
        name = mdp.name or source
        answer = find_answer(name, mdp, precision=width, span=bound, diameter=diameter, say=say)
    if as_json:
        console.write(answer.json_chunks())
        return
    from gainful.cli.tables import page

    console.show(*page(answer, width, states_shown))
