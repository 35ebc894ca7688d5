"""`gainful learn`: one run of one agent, watched as it learns."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, numbers

if TYPE_CHECKING:
    from gainful.agents.episodic import EpisodicAgent
    from gainful.mdp.model import MDP
    from gainful.simulation.run import Run
    from gainful.simulation.tabular import Life


def learn(
    source: Annotated[str, typer.Argument(metavar="ENV|TABLE", help="As for gainful solve.", show_default=False)],
    agent_name: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The learner (gainful list agents).")
    ] = "scal-plus",
    horizon: Annotated[str, typer.Option(metavar="STEPS", help="How long it lives, such as 1e7.")] = "1e6",
    span: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|auto",
            help="The bound c on the span of the optimal bias, for agents that need one; auto takes the model's own, "
            "which a learner could not know: the output calls it an oracle.",
        ),
    ] = "auto",
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
    """  # noqa: D301
    from gainful.cli.source import read_number, read_settings, read_source
    from gainful.simulation.run import checked_checkpoints, checked_horizon
    from gainful.simulation.tabular import Life, check_fit, optimal_gain

    steps = checked_horizon(read_number("--horizon", horizon, "1e6"))
    with console.progress("loading") as say:
        mdp = read_source(source, settings or ())
        say("solving the model, for the regret")
        gain = optimal_gain(mdp)
        agent, oracle = _agent(agent_name, mdp, span, seed, steps, read_settings(agent_settings or ()))
        check_fit(agent, mdp)
        say("compiling")
        scratch, _ = _agent(agent_name, mdp, span, seed, steps, read_settings(agent_settings or ()))
        Life(scratch, mdp, seed, checked_checkpoints(None, 1), gain).finish()  # so that the clock sees no compiler
    life = Life(agent, mdp, seed, checked_checkpoints(None, steps), gain)
    began = time.perf_counter()
    _watch(life, checkpoint)
    run, seconds = life.run(), time.perf_counter() - began
    if as_json:
        console.write([json.dumps(_facts(source, agent_name, mdp, agent, run, oracle, seconds), indent=2), "\n"])
        return
    console.show(*_page(source, agent_name, mdp, agent, run, oracle, seconds))


def _agent(
    name: str, mdp: MDP, span: str, seed: int, horizon: int, given: dict[str, Any]
) -> tuple[EpisodicAgent, bool]:
    """The agent, and whether it was told the model's own span."""
    import inspect

    from gainful.agents.registry import agent_class
    from gainful.cli.source import read_number
    from gainful.errors import InvalidArgumentError, suggestion
    from gainful.planning.solve import solve

    made = agent_class(name)
    known = [p for p in inspect.signature(made).parameters if p not in ("n_states", "n_actions")]
    for setting in given:
        if setting not in known:
            raise InvalidArgumentError(
                f"--agent-set {setting}: {name} has no such parameter; {suggestion(setting, known)}"
            )
    options: dict[str, Any] = {
        "reward_min": mdp.reward_min, "reward_max": max(mdp.reward_max, mdp.reward_min + 1e-9), "seed": seed,
        "allowed": mdp.allowed,
    }  # fmt: skip
    oracle = False
    if "span" in known and "span" not in given:
        oracle = span == "auto"
        options["span"] = solve(mdp).span * 1.001 if oracle else read_number("--span", span, "2.5")
    elif span != "auto":
        raise InvalidArgumentError(f"--span {span}: {name} takes no span; leave it out")
    if "horizon" in known:
        options["horizon"] = horizon
    try:
        return made(mdp.n_states, mdp.n_actions, **{**options, **given}), oracle
    except TypeError as error:
        raise InvalidArgumentError(f"{name} cannot be made: {error}; say --agent-set NAME=VALUE") from error


def _watch(life: Life, checkpoint: str | None) -> None:
    """Run to the end, from and into the checkpoint file if there is one, saying now and then how far it is."""
    from gainful.simulation.checkpoint import finish_with_checkpoints

    began, start = time.perf_counter(), -1

    def tell(step: int, horizon: int) -> str:
        nonlocal start
        if start < 0:
            start = step  # a continued run has made steps before
        rate = max(step - start, 1) / max(time.perf_counter() - began, 1e-9)
        regret, estimate = step * life.gain - life.total, life.agent.records[-1][1]
        return (
            f"{step:,} of {horizon:,} steps, {rate / 1e6:.1f} M/s, episode {len(life.agent.records):,}, "
            f"regret {regret:,.0f}, gain estimate {estimate:.4g} against {life.gain:.4g}, "
            f"{(horizon - step) / rate:.0f} s left"
        )

    with console.live_line(tell) as show:
        if checkpoint is None:
            life.finish(show)
        else:
            finish_with_checkpoints(life, checkpoint, 30.0, show)


def _facts(
    source: str, name: str, mdp: MDP, agent: EpisodicAgent, run: Run, oracle: bool, seconds: float
) -> dict[str, Any]:
    return {
        "environment": mdp.name or source, "agent": name, "settings": agent.settings(), "span_is_oracle": oracle,
        "guarantee": str(agent.guarantee), "guarantee_holds": agent.guarantee.holds and not oracle, "seed": run.seed,
        "horizon": run.horizon, "gain": run.gain, "steps": run.steps.tolist(), "regret": run.regret.tolist(),
        "pseudo_regret": run.pseudo_regret.tolist(), "episodes": len(run.episodes), "seconds": seconds,
        "planning_seconds": run.planning_seconds, "acting_seconds": run.acting_seconds, "vacuous": run.vacuous,
    }  # fmt: skip


def _page(source: str, name: str, mdp: MDP, agent: EpisodicAgent, run: Run, oracle: bool, seconds: float) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    last = run.episodes[-1]
    busy = max(run.planning_seconds + run.acting_seconds, 1e-9)
    grid.add_row("regret", f"{numbers.digits(float(run.regret[-1]))} after {run.horizon:,} steps")
    grid.add_row(
        "per step", f"{numbers.digits(float(run.regret[-1]) / run.horizon, 3)} of a gain of {numbers.digits(run.gain)}"
    )
    grid.add_row("gain estimate", f"{numbers.digits(float(last['gain']))} in episode {len(run.episodes):,}")
    grid.add_row(
        "speed",
        f"{run.horizon / busy / 1e6:.3g} million steps per second, {run.planning_seconds / busy:.1%} of it planning",
    )
    if oracle:
        grid.add_row("span", f"{numbers.digits(float(agent.settings()['span']))}: an oracle's, from the model itself")
    grid.add_row("guarantee", str(agent.guarantee))
    if run.vacuous:
        grid.add_row("bounds", "vacuous: still so wide that the plan ignores the data; it needs more steps")
    title = Text(f"{name} in {mdp.name or source}, seed {run.seed}, {seconds:.1f} s", style="bold")
    curve = Text("\n".join(sketch(run.steps.tolist(), run.regret.tolist())))
    return [title, Text(), grid, Text(), Text("regret over steps, both axes logarithmic", style="dim"), curve]


def sketch(steps: list[int], regret: list[float], width: int = 60, height: int = 12) -> list[str]:
    """A curve in characters, both axes logarithmic."""
    import math

    points = [(math.log10(s), math.log10(r)) for s, r in zip(steps, regret, strict=True) if r > 0]
    if len(points) < 2:
        return ["(no regret to draw)"]
    left, right = points[0][0], points[-1][0]
    low, high = min(y for _, y in points), max(y for _, y in points)
    if right == left or high == low:
        return ["(regret does not change)"]
    rows = [[" "] * width for _ in range(height)]
    for x, y in points:
        column = round((x - left) / (right - left) * (width - 1))
        rows[height - 1 - round((y - low) / (high - low) * (height - 1))][column] = "•"
    label = {0: f"{10**high:.3g}", height - 1: f"{10**low:.3g}"}
    lines = [f"{label.get(i, ''):>9} {'┤' if i in label else '│'}{''.join(row).rstrip()}" for i, row in enumerate(rows)]
    first, last = f"{10**left:.3g}", f"{10**right:.3g}"
    return [*lines, " " * 10 + "└" + "─" * width, " " * 11 + first + last.rjust(width - len(first))]
