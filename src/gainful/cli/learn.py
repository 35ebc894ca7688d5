"""`gainful learn`: one run of one agent, watched as it learns."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, numbers

if TYPE_CHECKING:
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import Run


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE",
            help="As for gainful solve; also a continuous environment, or any Gymnasium id with Discrete actions.",
            show_default=False,
        ),
    ],
    agent_name: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="The learner (gainful list agents): scal-plus, or c-scal-plus among points, unless given. A tabular "
            "one is put on cells where states are points.",
            show_default=False,
        ),
    ] = None,
    horizon: Annotated[str, typer.Option(metavar="STEPS", help="How long it lives, such as 1e7.")] = "1e6",
    span: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|auto",
            help="The bound c on the span of the optimal bias, for agents that need one; auto takes the model's own "
            "(0.5*auto half of it), which a learner could not know: the output calls it an oracle.",
        ),
    ] = "auto",
    bins: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Cells per axis, where states are points.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of agent and environment.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the environment; may be repeated."),
    ] = None,
    agent_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--agent-set",
            metavar="NAME=VALUE",
            help="A parameter of the agent, such as bonus_scale=0.1; may be repeated.",
        ),
    ] = None,
    gain: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="The optimal average reward per step, where no model tells it: regret is measured against it.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the run here; the same command continues from it after a kill."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object: settings, checkpoints, regret, episodes.")
    ] = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:  # \b keeps the lines of the examples apart
    """Let an agent learn in an environment, and see its regret.

    \b
    gainful learn riverswim --horizon 1e7
    gainful learn riverswim --agent-set bonus_scale=0.1 --span 7
    gainful learn lqg --bins 20 --agent-set bonus_scale=0.05
    gainful learn CartPole-v1 --set sutton_barto_reward=true --agent-set reward_min=-1 --span 20
    """  # noqa: D301
    from gainful.cli.source import read_environment, read_number, read_settings
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import checked_horizon
    from gainful.simulation.simulate import new_simulation

    steps = checked_horizon(read_number("--horizon", horizon, "1e6"))
    with console.progress("loading") as say:
        environment = read_environment(source, settings or ())
        say("solving the model, for the regret")
        c = span if "auto" in span else read_number("--span", span, "2.5")
        factory = AgentFactory(
            agent_name, environment, c, seed, steps, bins, read_settings(agent_settings or (), "--agent-set")
        )
        best = None if gain is None else read_number("--gain", gain, "0.5")
        life = new_simulation(factory.make(), environment, steps, seed, gain=best)
        say("compiling")
        new_simulation(factory.make(), environment, 1, seed, gain=0.0).finish()  # so that the clock sees no compiler
    if hasattr(environment, "reset"):
        life = new_simulation(
            factory.make(), environment, steps, seed, gain=best
        )  # a Gymnasium environment has moved on
    began = time.perf_counter()
    _watch(life, checkpoint)
    run, seconds = life.run(), time.perf_counter() - began
    if as_json:
        console.write([json.dumps(_facts(source, factory, life, run, seconds), indent=2, allow_nan=False), "\n"])
        return
    console.show(*_page(source, factory, life, run, seconds))


def _watch(life: Any, checkpoint: str | None) -> None:
    """Run to the end, from and into the checkpoint file if there is one, saying now and then how far it is."""
    from gainful.simulation.simulate import run_simulation

    began, start = time.perf_counter(), -1

    def tell(step: int, horizon: int) -> str:
        rate = max(step - start, 1) / max(time.perf_counter() - began, 1e-9)
        estimate = life.agent.core.records[-1][1]
        earned = f"{life.total / step:.4g} per step, gain estimate {estimate:.4g}"
        if not math.isnan(life.gain):
            earned = (
                f"regret {step * life.gain - life.total:,.0f}, gain estimate {estimate:.4g} against {life.gain:.4g}"
            )
        return (
            f"{step:,} of {horizon:,} steps, {rate / 1e6:.3g} M/s, episode {len(life.agent.core.records):,}, {earned}, "
            f"{(horizon - step) / rate:.0f} s left"
        )

    with console.live_line(tell) as show:

        def note(step: int, horizon: int) -> None:
            nonlocal start
            if start < 0:
                start = step  # a continued run has made steps before
            show(step, horizon)

        run_simulation(life, progress=note, checkpoint_file=checkpoint)


def _facts(source: str, factory: AgentFactory, life: Any, run: Run, seconds: float) -> dict[str, Any]:
    from gainful.experiments.agent_factory import name_of

    agent = life.agent

    def known(values: Any) -> list[float | None]:
        return [None if math.isnan(x) else x for x in values.tolist()]

    return {
        "environment": name_of(factory.environment, source), "agent": factory.name, "settings": agent.settings(),
        "span_is_oracle": factory.span_is_oracle, "guarantee": str(agent.guarantee),
        "guarantee_holds": agent.guarantee.holds and not factory.span_is_oracle, "seed": run.seed,
        "horizon": run.horizon, "gain": None if math.isnan(run.gain) else run.gain,
        "gain_source": getattr(run, "gain_source", "solved"), "steps": run.steps.tolist(),
        "rewards": run.rewards.tolist(), "regret": known(run.regret), "pseudo_regret": known(run.pseudo_regret),
        "episodes": len(run.episodes), "seconds": seconds, "planning_seconds": run.planning_seconds,
        "acting_seconds": run.acting_seconds, "vacuous": run.vacuous,
    }  # fmt: skip


def _page(source: str, factory: AgentFactory, life: Any, run: Run, seconds: float) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from gainful.experiments.agent_factory import name_of

    agent, grid, last = life.agent, Table.grid(padding=(0, 2)), run.episodes[-1]
    busy = max(run.planning_seconds + run.acting_seconds, 1e-9)
    title = f"{factory.name} in {name_of(factory.environment, source)}, seed {run.seed}, {seconds:.1f} s"
    if math.isnan(run.gain):
        grid.add_row(
            "reward", f"{numbers.digits(float(run.rewards[-1]) / run.horizon)} per step, {run.horizon:,} steps"
        )
        grid.add_row("regret", "unknown: no model tells the optimal gain; say --gain NUMBER if you know it")
    else:
        grid.add_row("regret", f"{numbers.digits(float(run.regret[-1]))} after {run.horizon:,} steps")
        share = numbers.digits(float(run.regret[-1]) / run.horizon, 3)
        grid.add_row("per step", f"{share} of a gain of {numbers.digits(run.gain)}")
    if hasattr(life, "restarts"):
        grid.add_row("restarts", f"{life.restarts:,}")
    grid.add_row("gain estimate", f"{numbers.digits(float(last['gain']))} in episode {len(run.episodes):,}")
    grid.add_row(
        "speed",
        f"{run.horizon / busy / 1e6:.3g} million steps per second, {run.planning_seconds / busy:.1%} of it planning",
    )
    if factory.among_points:
        bins = sorted(set(agent.partition.bins))
        grid.add_row("cells", f"{agent.n_states:,}, {' or '.join(map(str, bins))} per axis")
    if factory.span_is_oracle:
        grid.add_row("span", f"{numbers.digits(float(agent.settings()['span']))}: an oracle's, from the model itself")
    grid.add_row("guarantee", str(agent.guarantee))
    if run.vacuous:
        grid.add_row("bounds", "vacuous: still so wide that the plan ignores the data; it needs more steps")
    page = [Text(title, style="bold"), Text(), grid, Text()]
    if math.isnan(run.gain):
        counts, sums = differences(run.steps.tolist()), differences(run.rewards.tolist())
        averages = [total / n for total, n in zip(sums, counts, strict=True)]
        words, curve = "reward per step, since the last point, over steps (logarithmic)", averages
        lines = sketch(run.steps.tolist(), curve, logarithmic=False)
    else:
        words, lines = "regret over steps, both axes logarithmic", sketch(run.steps.tolist(), run.regret.tolist())
    return [*page, Text(words, style="dim"), Text("\n".join(lines))]


def differences(values: list[Any]) -> list[Any]:
    """Differences, the first one from 0."""
    return [b - a for a, b in zip([0, *values], values, strict=False)]


def sketch(
    steps: list[int], values: list[float], width: int = 60, height: int = 12, *, logarithmic: bool = True
) -> list[str]:
    """A curve in characters over a logarithmic axis of steps; the other axis is logarithmic too unless told."""
    points = [
        (math.log10(s), math.log10(y) if logarithmic else y)
        for s, y in zip(steps, values, strict=True)
        if y > 0 or not logarithmic
    ]
    if len(points) < 2:
        return ["(no regret to draw)"]
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
