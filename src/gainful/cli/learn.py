"""`gainful learn`: one run of one agent, the policy it learned, and its regret."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from gainful.cli import completion, console, failures, options
from gainful.errors import InvalidArgumentError


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE",
            autocompletion=completion.environments,
            help="As for gainful solve; also a continuous environment, or any Gymnasium environment with Discrete "
            "actions.",
            show_default=False,
        ),
    ],
    agent_name: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            autocompletion=completion.agents,
            help="The agent (gainful list agents): kl-scal-plus by default, or c-kl-scal-plus for continuous states. "
            "A tabular agent learns on cells if states are continuous.",
            show_default=False,
        ),
    ] = None,
    horizon: Annotated[str, typer.Option(metavar="STEPS", help="The number of steps, such as 1e7.")] = "1e6",
    span: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="The bound c on the span of the optimal bias. auto takes the span of the model itself (0.5*auto half "
            "of it), which a learner could not know: the output calls it an oracle. By default auto for agents that "
            "need a bound, and none for agents that can do without.",
            show_default=False,
        ),
    ] = None,
    bins: options.Bins = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the agent and the environment.")] = 0,
    runs: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Make N runs, with seeds from --seed on, and show how their regret is distributed."
        ),
    ] = 1,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|auto",
            autocompletion=completion.devices,
            help="Where to make the runs; cuda is an NVIDIA GPU (gainful[cuda]), auto the GPU if there is one that can "
            "make them.",
        ),
    ] = "cpu",
    settings: options.EnvironmentSettings = None,
    agent_settings: options.AgentSettings = None,
    gain: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="The optimal average reward or cost, if no model gives it; regret is measured against it.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Save the run to this file; after a kill the same command continues from it."
        ),
    ] = None,
    rates: options.Rates = False,
    states_shown: Annotated[
        int,
        typer.Option(
            "--max-states-shown", min=0, metavar="N", help="How many states of the policy to list, the most visited."
        ),
    ] = 20,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what --json prints to this file too.", show_default=False),
    ] = None,
    save_agent: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the agent, for gf.load_agent and gf.open_agent.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object: settings, checkpoints, rewards or costs, regret, the whole policy, what next.",
        ),
    ] = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:  # \b keeps the lines of the examples apart
    """Run one agent in an environment; show the policy it learned, what it earned, and its regret.

    \b
    gainful learn riverswim --horizon 1e7
    gainful learn machine.csv --save learned.json
    gainful learn queue.csv --rates
    gainful learn riverswim --agent scal-plus --span 7 --agent-set bonus=sharp
    gainful learn lqg --bins 20
    gainful learn riverswim --agent scal-plus --span 7 --runs 100000 --device cuda
    gainful learn CartPole-v1 --set sutton_barto_reward=true
      --agent-set reward_min=-1
    """  # noqa: D301
    from gainful.agents.labels import AgentLabels
    from gainful.agents.plain_learner import is_plain
    from gainful.cli.learned import LearnedRun
    from gainful.cli.next_steps import next_steps
    from gainful.cli.source import read_environment, read_number, read_settings
    from gainful.cli.watched_run import watched_run
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import checked_horizon
    from gainful.simulation.simulate import new_simulation

    steps = checked_horizon(read_number("--horizon", horizon, "1e6"))
    for file, option in ((save, "--save"), (save_agent, "--save-agent")):
        _check_place(file, option)
    with console.progress("loading") as say:
        environment = read_environment(source, settings or (), rates=rates)
        say("solving the model, to measure regret")
        c = span if span is None or "auto" in span else read_number("--span", span, "2.5")
        factory = AgentFactory(
            agent_name, environment, c, seed, steps, bins, read_settings(agent_settings or (), "--agent-set")
        )
        if factory.note:
            typer.echo(f"note: {console.printable(factory.note)}", err=True)
    if runs > 1 or device != "cpu":
        from gainful.cli.learn_many import learn_many, show_many

        for option, given in (("--gain", gain), ("--checkpoint", checkpoint), ("--save-agent", save_agent)):
            if given is not None:
                raise InvalidArgumentError(option, str(given), "a single run, without --runs and --device")
        many = learn_many(source, environment, factory, range(seed, seed + runs), steps, device)
        if save is not None:
            _write(save, [many.to_json()])
        if as_json:
            console.write([many.to_json(), "\n"])
        else:
            show_many(many)
        if save is not None:
            console.note(console.printable(f"written: {save}"))
        return
    with console.progress("loading") as say:
        best = None if gain is None else _to_maximise(environment, read_number("--gain", gain, "0.5"))
        grid = _checkpoints(steps, checkpoint)
        simulation = new_simulation(factory.make(), environment, steps, seed, gain=best, checkpoints=grid)
        if save_agent is not None and is_plain(simulation.agent):
            problem = f"--save-agent: gainful does not know the state of {factory.name}"
            raise InvalidArgumentError("--save-agent", str(save_agent), hint="leave it out", problem=problem)
        say("compiling")
        # so that the measured time excludes compilation
        new_simulation(factory.make(), environment, 1, seed, gain=0.0).finish()
    if hasattr(environment, "reset"):
        # compiling has moved a Gymnasium environment
        simulation = new_simulation(factory.make(), environment, steps, seed, gain=best, checkpoints=grid)
    began = time.perf_counter()
    watched_run(simulation, checkpoint)
    found = LearnedRun(source, factory, simulation, time.perf_counter() - began)
    suggestions = next_steps(found, save is not None, save_agent is not None)
    if save is not None:
        _write(save, found.json_chunks(suggestions))
    if save_agent is not None:
        found.agent.labels = AgentLabels.of(environment)
        found.agent.save(save_agent)
    if as_json:
        console.write(found.json_chunks(suggestions))
    else:
        from gainful.cli.learned_page import learned_page

        console.show(*learned_page(found, states_shown, suggestions))
    if save is not None:
        use = "" if factory.among_points else ", which gainful evaluate takes as --policy"
        console.note(console.printable(f"written: {save}{use}"))
    if save_agent is not None:
        console.note(console.printable(f"written: {save_agent}, for gf.load_agent"))


def _check_place(file: Path | None, option: str) -> None:
    """Refuse a file that cannot be written before the run, not after it."""
    if file is None:
        return
    if file.is_dir() or not file.parent.is_dir():
        problem = f"{file} is a folder" if file.is_dir() else f"{file.parent} is no folder"
        raise InvalidArgumentError(option, str(file), "a file in a folder that exists", problem=f"{option}: {problem}")
    if option == "--save" and file.suffix.lower() in (".csv", ".tsv", ".parquet"):
        raise InvalidArgumentError(
            option,
            str(file),
            "a .json file",
            problem=f"{option} {file}: the run, its curve and its policy do not fit into one table",
        )


def _write(file: Path, chunks: Iterable[str]) -> None:
    from gainful.atomic_files import replace_file

    try:
        with replace_file(file) as out:
            for chunk in chunks:
                out.write(chunk.encode())
    except OSError as error:
        raise InvalidArgumentError(
            "--save", str(file), problem=f"{file} cannot be written: {error.strerror or error}"
        ) from error


def _to_maximise(environment: Any, gain: float) -> float:
    """A gain in the user's units, as a reward per step."""
    units = getattr(environment, "units", None)
    return gain if units is None else units.sign * gain * units.step_duration


def _checkpoints(horizon: int, file: str | None) -> Any:
    """Where the run is measured: at the usual steps and where its last tenth begins; as a file of it has them."""
    from gainful.cli.learned import grid_with_last_tenth
    from gainful.simulation.checkpoint import begun_with
    from gainful.simulation.run import log_checkpoints

    usual = log_checkpoints(horizon)
    return usual if file is not None and begun_with(file, usual) else grid_with_last_tenth(horizon)
