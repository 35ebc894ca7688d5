"""`gainful evaluate`: the gain of a given policy, and how far it is from optimal; from a model or from a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gainful.cli import console, failures, options


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="What 'gainful solve' takes: an environment, a table of transitions or rates, a saved MDP. With "
            "--log, a log, as for 'gainful fit'.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="A table (.csv, .tsv, .parquet) with the columns state and action, and probability if actions are "
            'mixed; or JSON: an object such as {"new": "run"}, or what solve, learn or fit print with --json.',
            show_default=False,
        ),
    ],
    settings: options.EnvironmentSettings = None,
    rates: options.Rates = False,
    gymnasium: Annotated[
        bool, typer.Option("--gymnasium", help="Always read MODEL as the id of a Gymnasium environment.")
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Read MODEL as a log and estimate the gain of the policy from it.")
    ] = False,
    columns: options.LogColumns = None,
    ends: options.LogEnds = "auto",
    min_visits: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="With --log: visits that a pair needs if the policy keeps playing it."),
    ] = 5,
    confidence: options.Confidence = "0.95",
    replicates: options.Replicates = 200,
    seed: options.ResamplingSeed = 0,
    states_shown: options.StatesShown = 20,
    reward_model: options.RewardModel = None,
    as_json: options.AsJson = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Compute the gain of a policy, exactly from a model, or with an interval from a log.

    Also shows its bias and long-run fractions of time, how far it is from optimal, and in which states. For example:

    \b
    gainful solve van.csv --json > best.json
    gainful evaluate van.csv --policy today.csv
    gainful evaluate fleet.csv --log --policy best.json
    """  # noqa: D301
    from gainful.cli import evaluation_page
    from gainful.cli.source import read_number, read_settings, read_source

    if log:
        from gainful.estimation.evaluate_log import evaluate_log

        level = read_number("--confidence", confidence, "0.95")
        names = {name: str(value) for name, value in read_settings(columns or (), "--column").items()}
        with console.progress("reading and resampling the log"):
            found = evaluate_log(
                model,
                policy,
                columns=names,
                ends=ends,  # type: ignore[arg-type]
                min_visits=min_visits,
                confidence=level,
                replicates=replicates,
                seed=seed,
            )
        data, page = evaluation_page.log_data(found), evaluation_page.log_page(found, states_shown)
    else:
        from gainful.planning.evaluation import evaluate as evaluate_policy

        with console.progress("evaluating"):
            mdp = read_source(model, settings or (), rates=rates, gymnasium=gymnasium, reward_model=reward_model)
            answer = evaluation_page.Answer(mdp.name or model, evaluate_policy(mdp, policy))
            data, page = evaluation_page.data(answer), evaluation_page.page(answer, states_shown)
    if as_json:
        console.write([json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        return
    console.show(*page)
