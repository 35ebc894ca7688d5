"""`gainful learn`: one run of one agent, with its regret."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, numbers, options
from gainful.progress import live_line

if TYPE_CHECKING:
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import Run

WHICH_AGENT = "'Which agent, which constants' (docs/which_agent.md)"
"""The page that says which agent to use, and with which constants."""
UNREACHABLE = (
    "but not here: some states cannot be reached from others; give kl-scal-plus a bound (--span NUMBER), or take tucrl"
)
"""What is said about a guarantee whose assumption the environment does not meet."""


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE",
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
            help="The agent (gainful list agents); by default kl-scal-plus, or c-kl-scal-plus for continuous states. "
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
    seed: Annotated[int, typer.Option(min=0, help="The seed of the agent and the environment.")] = 0,
    settings: options.EnvironmentSettings = None,
    agent_settings: options.AgentSettings = None,
    gain: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="The optimal average reward per step, if no model gives it; regret is measured against it.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Save the run to this file; after a kill the same command continues from it."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: settings, checkpoints, regret, episodes.")
    ] = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:  # \b keeps the lines of the examples apart
    """Run one agent in an environment and show its regret.

    \b
    gainful learn riverswim --horizon 1e7
    gainful learn riverswim --agent scal-plus --span 7 --agent-set bonus=sharp
    gainful learn lqg --bins 20
    gainful learn CartPole-v1 --set sutton_barto_reward=true --agent-set reward_min=-1
    """  # noqa: D301
    from gainful.cli.source import read_environment, read_number, read_settings
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import checked_horizon
    from gainful.simulation.simulate import new_simulation

    steps = checked_horizon(read_number("--horizon", horizon, "1e6"))
    with console.progress("loading") as say:
        environment = read_environment(source, settings or ())
        say("solving the model, to measure regret")
        c = span if span is None or "auto" in span else read_number("--span", span, "2.5")
        factory = AgentFactory(
            agent_name, environment, c, seed, steps, bins, read_settings(agent_settings or (), "--agent-set")
        )
        best = None if gain is None else read_number("--gain", gain, "0.5")
        simulation = new_simulation(factory.make(), environment, steps, seed, gain=best)
        say("compiling")
        # so that the measured time excludes compilation
        new_simulation(factory.make(), environment, 1, seed, gain=0.0).finish()
    if hasattr(environment, "reset"):
        # compiling has moved a Gymnasium environment
        simulation = new_simulation(factory.make(), environment, steps, seed, gain=best)
    began = time.perf_counter()
    _watch(simulation, checkpoint)
    run, seconds = simulation.run(), time.perf_counter() - began
    if as_json:
        console.write([json.dumps(_facts(source, factory, simulation, run, seconds), indent=2, allow_nan=False), "\n"])
        return
    console.show(*_page(source, factory, simulation, run, seconds))


def _watch(simulation: Any, checkpoint: str | None) -> None:
    """Run to the end, from and into the checkpoint file if there is one, and report progress."""
    from gainful.simulation.simulate import run_simulation

    began, start = time.perf_counter(), -1

    def tell(step: int, horizon: int) -> str:
        rate = max(step - start, 1) / max(time.perf_counter() - began, 1e-9)
        gain, total, records = simulation.gain, simulation.total, simulation.agent.core.records
        estimate = records[-1][1]
        earned = f"{total / step:.4g} per step, gain estimate {estimate:.4g}"
        if not math.isnan(gain):
            earned = (
                f"realised regret {step * gain - total:,.0f}, gain estimate {estimate:.4g}, optimal gain {gain:.4g}"
            )
        return (
            f"{step:,} of {horizon:,} steps, {rate / 1e6:.3g} M/s, episode {len(records):,}, {earned}, "
            f"{(horizon - step) / rate:.0f} s left"
        )

    with live_line(tell) as show:

        def note(step: int, horizon: int) -> None:
            nonlocal start
            if start < 0:
                start = step  # a resumed run has made steps before
            show(step, horizon)

        run_simulation(simulation, progress=note, checkpoint_file=checkpoint)


def _facts(source: str, factory: AgentFactory, simulation: Any, run: Run, seconds: float) -> dict[str, Any]:
    from gainful.experiments.agent_factory import name_of

    agent = simulation.agent

    def known(values: Any) -> list[float | None]:
        return [None if math.isnan(x) else x for x in values.tolist()]

    return {
        "environment": name_of(factory.environment, source),
        "agent": factory.name,
        "settings": agent.settings(),
        "span_is_oracle": factory.span_is_oracle,
        "guarantee": str(agent.guarantee),
        "guarantee_holds": agent.guarantee.holds
        and not factory.span_is_oracle
        and not _needs_unreachable_states_reached(factory, agent),
        "seed": run.seed,
        "horizon": run.horizon,
        "gain": None if math.isnan(run.gain) else run.gain,
        "gain_source": getattr(run, "gain_source", "solved"),
        "steps": run.steps.tolist(),
        "rewards": run.rewards.tolist(),
        "regret": known(run.regret),
        "pseudo_regret": known(run.pseudo_regret),
        "expected_regret": known(run.expected_regret),
        "measure": None if math.isnan(run.gain) else run.measure,
        "still_linear": _still_linear(simulation, run),
        "episodes": len(run.episodes),
        "seconds": seconds,
        "planning_seconds": run.planning_seconds,
        "acting_seconds": run.acting_seconds,
        "vacuous": run.vacuous,
    }


def _page(source: str, factory: AgentFactory, simulation: Any, run: Run, seconds: float) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from gainful.experiments.agent_factory import name_of
    from gainful.simulation.run import MEASURE_NAMES, REGRETS

    agent, grid, last = simulation.agent, Table.grid(padding=(0, 2)), run.episodes[-1]
    busy = max(run.planning_seconds + run.acting_seconds, 1e-9)
    title = f"{factory.name} in {name_of(factory.environment, source)}, seed {run.seed}, {seconds:.1f} s"
    if math.isnan(run.gain):
        grid.add_row(
            "reward", f"{numbers.digits(float(run.rewards[-1]) / run.horizon)} per step, {run.horizon:,} steps"
        )
        grid.add_row("regret", "unknown, because no model gives the optimal gain; pass --gain NUMBER if you know it")
    else:
        total = float(getattr(run, run.measure)[-1])
        grid.add_row(MEASURE_NAMES[run.measure], f"{numbers.digits(total)} after {run.horizon:,} steps")
        share = numbers.digits(total / run.horizon, 3)
        grid.add_row("per step", f"{share} of a gain of {numbers.digits(run.gain)}")
        for other in REGRETS[REGRETS.index(run.measure) + 1 :]:
            if not math.isnan(getattr(run, other)[-1]):
                grid.add_row(MEASURE_NAMES[other], numbers.digits(float(getattr(run, other)[-1])))
    if hasattr(simulation, "restarts"):
        grid.add_row("restarts", f"{simulation.restarts:,}")
    grid.add_row("gain estimate", f"{numbers.digits(float(last['gain']))} in episode {len(run.episodes):,}")
    grid.add_row(
        "speed",
        f"{run.horizon / busy / 1e6:.3g} million steps per second, {run.planning_seconds / busy:.1%} of it planning",
    )
    if factory.among_points:
        bins = sorted(set(agent.partition.bins))
        grid.add_row("cells", f"{agent.n_states:,}, {' or '.join(map(str, bins))} per axis")
    if factory.span_is_oracle:
        c = numbers.digits(float(agent.settings()["span"]))
        grid.add_row("span", f"{c}: an oracle, taken from the model itself")
    grid.add_row("guarantee", str(agent.guarantee))
    if _needs_unreachable_states_reached(factory, agent):
        grid.add_row("", Text(UNREACHABLE, style="yellow"))
    if run.vacuous:
        grid.add_row("bounds", "vacuous: still so wide that the plan ignores the data; run more steps")
    if _still_linear(simulation, run):
        text = f"still exploring after {run.horizon:,} steps: the regret is linear so far; see {WHICH_AGENT}"
        grid.add_row("learning", text)
    page = [Text(title, style="bold"), Text(), grid, Text()]
    if math.isnan(run.gain):
        counts, sums = differences(run.steps.tolist()), differences(run.rewards.tolist())
        averages = [total / n for total, n in zip(sums, counts, strict=True)]
        words, curve = "reward per step since the previous point, over steps (logarithmic)", averages
        lines = sketch(run.steps.tolist(), curve, logarithmic=False)
    else:
        words = f"{MEASURE_NAMES[run.measure]} over steps, both axes logarithmic"
        lines = sketch(run.steps.tolist(), getattr(run, run.measure).tolist())
    return [*page, Text(words, style="dim"), Text("\n".join(lines))]


def _needs_unreachable_states_reached(factory: AgentFactory, agent: Any) -> bool:
    """Whether the guarantee needs every state to be reachable from every other, and some here are not."""
    from gainful.mdp.model import MDP
    from gainful.mdp.structure import structure

    no_span = factory.name == "kl-scal-plus" and agent.settings()["span"] is None
    assumes = agent.guarantee.holds and (no_span or factory.name in ("ucrl2", "ucrl2b", "kl-ucrl"))
    return assumes and isinstance(factory.environment, MDP) and structure(factory.environment) != "communicating"


def _still_linear(simulation: Any, run: Run) -> bool:
    """Whether a learner's regret still grows linearly; a fixed policy does not learn."""
    from gainful.agents.fixed import Fixed
    from gainful.experiments.run_statistics import is_still_linear

    core = simulation.agent.core
    if isinstance(core, Fixed) or math.isnan(run.gain):
        return False
    return is_still_linear(run.steps, getattr(run, run.measure), run.gain - core.reward_min)


def differences(values: list[Any]) -> list[Any]:
    """Differences between neighbours; the first one is from 0."""
    return [b - a for a, b in zip([0, *values], values, strict=False)]


def sketch(
    steps: list[int], values: list[float], width: int = 60, height: int = 12, *, logarithmic: bool = True
) -> list[str]:
    """A curve drawn in characters; steps are on a logarithmic axis, values too unless `logarithmic` is false."""
    points = [
        (math.log10(s), math.log10(y) if logarithmic else y)
        for s, y in zip(steps, values, strict=True)
        if y > 0 or not logarithmic
    ]
    if len(points) < 2:
        return ["(there is no regret to draw)"]
    left, right = points[0][0], points[-1][0]
    low, high = min(y for _, y in points), max(y for _, y in points)
    if right == left or high == low:
        return ["(regret does not change)" if logarithmic else f"({low:.3g} all along)"]
    rows = [[" "] * width for _ in range(height)]
    for x, y in points:
        column = round((x - left) / (right - left) * (width - 1))
        rows[height - 1 - round((y - low) / (high - low) * (height - 1))][column] = "•"
    ends = (10**high, 10**low) if logarithmic else (high, low)
    label = {0: f"{ends[0]:.3g}", height - 1: f"{ends[1]:.3g}"}
    lines = [f"{label.get(i, ''):>9} {'┤' if i in label else '│'}{''.join(row).rstrip()}" for i, row in enumerate(rows)]
    first, last = f"{10**left:.3g}", f"{10**right:.3g}"
    return [*lines, " " * 10 + "└" + "─" * width, " " * 11 + first + last.rjust(width - len(first))]
