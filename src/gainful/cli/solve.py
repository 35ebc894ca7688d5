"""`gainful solve`: the optimal gain of a decision process, certified, and an optimal policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from gainful.cli import completion, console, failures, options

if TYPE_CHECKING:
    from gainful.mdp.model import MDP
    from gainful.theory.hardness import Hardness


def solve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE",
            autocompletion=completion.environments,
            help="An environment that gainful ships (gainful list environments), the id of a Gymnasium environment "
            "that has a transition table (FrozenLake-v1), a table of transitions (.csv, .tsv, .parquet: state, action, "
            "next_state, probability, and reward or cost), a model of Storm (.drn), or a file written by mdp.save. "
            "./NAME is always a file.",
            show_default=False,
        ),
    ],
    settings: options.EnvironmentSettings = None,
    precision: Annotated[
        str, typer.Option(metavar="NUMBER", help="Width of the certified bracket around the gain.")
    ] = "1e-8",
    span: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Find the best gain among policies whose bias has at most this span (ScOpt).",
            show_default=False,
        ),
    ] = None,
    diameter: Annotated[
        bool | None,
        typer.Option(
            "--diameter/--no-diameter",
            help="Compute the diameter; by default for up to 300 states.",
            show_default=False,
        ),
    ] = None,
    states_shown: Annotated[
        int, typer.Option("--max-states-shown", min=0, metavar="N", help="How many states of the policy to list.")
    ] = 20,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|auto",
            autocompletion=completion.devices,
            help="Where to solve; cuda is an NVIDIA GPU (gainful[cuda]), auto the GPU for models of ten million "
            "transitions or more, if there is one. ScOpt (--span) and the diameter are computed on the CPU.",
        ),
    ] = "cpu",
    rates: options.Rates = False,
    gymnasium: Annotated[
        bool, typer.Option("--gymnasium", help="Always read ENV as the id of a Gymnasium environment.")
    ] = False,
    reward_model: options.RewardModel = None,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Also show which reward or transition, changed by how much, changes the gain or the optimal action.",
        ),
    ] = False,
    hard: Annotated[
        bool,
        typer.Option(
            "--hardness",
            help="Also show how hard it is to learn: ergodicity, gaps, local diameter, mixing; takes longer.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object with every state. A diameter is null if it was not computed and the string "
            '"inf" if it is infinite; unichain is null if it is not known; a state has an action, or probabilities if '
            "the policy mixes actions.",
        ),
    ] = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:  # \b keeps the lines of the examples apart
    """Compute the optimal gain of a decision process, with a certificate, and an optimal policy.

    Also shows the span of the bias, the diameter and the structure. For example:

    \b
    gainful solve riverswim --set n_states=8
    gainful solve transitions.csv --json
    gainful solve queue.csv --rates --span 12
    gainful solve riverswim --what-if
    gainful solve riverswim --hardness
    """  # noqa: D301
    from gainful.cli.solution import find_solution
    from gainful.cli.source import read_number, read_source
    from gainful.cli.what_if import what_if_json, what_if_tables
    from gainful.planning.sensitivity import sensitivity

    width = read_number("--precision", precision, "1e-8")
    bound = None if span is None else read_number("--span", span, "2.5")
    with console.progress("loading") as say:
        mdp = read_source(source, settings or (), rates=rates, gymnasium=gymnasium, reward_model=reward_model)
        name = mdp.name or source
        solution = find_solution(name, mdp, precision=width, span=bound, diameter=diameter, device=device, say=say)
        found = sensitivity(mdp) if what_if else None
        difficulty = _hardness_of(mdp, say) if hard else None
    if as_json:
        extra = {} if found is None else {"what_if": what_if_json(found)}
        extra |= {} if difficulty is None else {"hardness": difficulty.to_dict()}
        console.write(solution.json_chunks(extra))
        return
    from gainful.cli.solution_page import page

    console.show(*page(solution, width, states_shown))
    if found is not None:
        console.show(*what_if_tables(found))
    if difficulty is not None:
        from gainful.cli.hardness import hardness_page

        console.show(*hardness_page(difficulty))


def _hardness_of(mdp: MDP, say: Callable[[str], None]) -> Hardness:
    from gainful.theory.hardness import hardness

    say("measuring how hard it is to learn")
    return hardness(mdp)
