"""`gainful list`: the environments, agents and specs that come with gainful."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import typer

from gainful.cli import console, failures, numbers
from gainful.cli.next_steps import WHICH_AGENT

MOST_DIGITS = 12
"""Characters of a number that the list shows in full."""


class Described(Protocol):
    """A name, what it is, and its parameters with their defaults."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def parameters(self) -> dict[str, Any]: ...  # noqa: D102


app = typer.Typer(help="List the environments, agents and specs that come with gainful.", no_args_is_help=True)

_AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON list of objects instead of text.")]


@app.command("environments", short_help="The environments and their parameters.")
def environments(as_json: _AsJson = False, debug: failures.Debug = False) -> None:  # noqa: ARG001
    """List the environments and their parameters, and those that installed packages register."""
    from gainful.environments import registry
    from gainful.user_modules import ENVIRONMENT_GROUP

    points = registry.continuous_names()
    others = _registered(ENVIRONMENT_GROUP, [*registry.names(), *points])
    _show([registry.describe(name) for name in [*registry.names(), *points]], points, as_json, others)
    if not as_json:
        console.note(f"Continuous states (gainful learn and gainful audit): {', '.join(points)}")
        console.note("Next: gainful solve NAME [--set PARAMETER=VALUE ...], or gainful learn NAME")


@app.command("agents", short_help="The agents and their parameters.")
def agents(as_json: _AsJson = False, debug: failures.Debug = False) -> None:  # noqa: ARG001
    """List the agents and their parameters, those that installed packages register, and those that cannot be made."""
    from gainful.agents import registry
    from gainful.user_modules import AGENT_GROUP

    points = registry.continuous_names()
    others = _registered(AGENT_GROUP, [*registry.names(), *points])
    _show([registry.describe(name) for name in [*registry.names(), *points]], points, as_json, others)
    if not as_json:
        console.note(f"For continuous states: {', '.join(points)}")
        for name, reason in registry.NOT_IMPLEMENTABLE.items():
            console.note(f"not implementable: {name}: {reason}")
        console.note(f"kl-scal-plus is the default. Which one to use, and what each one lost: {WHICH_AGENT}")
        console.note("Next: gainful learn ENV --agent NAME [--agent-set PARAMETER=VALUE ...]")


@app.command("specs", short_help="The experiments that come with gainful.")
def specs(as_json: _AsJson = False, debug: failures.Debug = False) -> None:  # noqa: ARG001
    """List the experiments that come with gainful."""
    from gainful.experiments.spec import shipped

    if as_json:
        objects = [{"name": name, "title": title} for name, title in shipped()]
        console.write([json.dumps(objects, indent=2, ensure_ascii=False), "\n"])
        return
    from rich.padding import Padding
    from rich.text import Text

    for name, title in shipped():
        console.show(Text(name, style="bold cyan"), Padding(Text(title), (0, 0, 0, 2)))
    console.note("Next: gainful run NAME [--out DIR]")


def _registered(group: str, built_in: Sequence[str]) -> dict[str, str]:
    """The names that installed packages register and that gainful does not have itself; nothing is loaded."""
    from gainful.user_modules import registered

    return {name: value for name, value in registered(group).items() if name not in built_in}


def _with_default(name: str, value: Any) -> str:
    """A parameter as the list shows it; `--json` has all digits of a number such as 1/3.

    >>> _with_default("slip", 1 / 3), _with_default("noise", 0.0005), _with_default("span", "required")
    ('slip=0.333333…', 'noise=0.0005', 'span (required)')
    """
    if value == "required":
        return f"{name} (required)"
    text = json.dumps(value)
    return (
        f"{name}={numbers.digits(value)}…" if isinstance(value, float) and len(text) > MOST_DIGITS else f"{name}={text}"
    )


def _show(descriptions: Sequence[Described], continuous: Sequence[str], as_json: bool, others: dict[str, str]) -> None:
    """Print one block per description and per registered name, or one JSON list of all."""
    if as_json:
        objects: list[dict[str, Any]] = [
            {
                "name": d.name,
                "states": "continuous" if d.name in continuous else "finite",
                "summary": d.summary,
                "parameters": d.parameters,
            }
            for d in descriptions
        ]
        objects += [
            {"name": name, "states": None, "summary": f"registered by a package: {value}", "parameters": None}
            for name, value in others.items()
        ]
        console.write([json.dumps(objects, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        return
    from rich.padding import Padding
    from rich.text import Text

    for d in descriptions:
        defaults = ", ".join(_with_default(name, value) for name, value in d.parameters.items())
        console.show(
            Text(d.name, style="bold cyan"),
            Padding(Text(d.summary), (0, 0, 0, 2)),
            Padding(Text(defaults or "no parameters", style="dim"), (0, 0, 0, 2)),
        )
    for name, value in others.items():
        console.show(
            Text(console.printable(name), style="bold cyan"),
            Padding(Text(console.printable(f"{value}, registered by an installed package (not loaded)")), (0, 0, 0, 2)),
        )
