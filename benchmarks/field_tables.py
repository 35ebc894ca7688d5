"""The tables of docs/field.md, made from what `benchmarks/field.py` recorded."""

from __future__ import annotations

from typing import Any

from benchmarks.makers import origin, power, table
from benchmarks.markdown import written_table
from benchmarks.records import recorded

RECORD = "field_regret"
HORIZONS = ("100000", "1000000", "10000000")
Row = dict[str, Any]


def problems() -> dict[str, dict[str, Row]]:
    """What was recorded: problem, agent, row."""
    found: dict[str, dict[str, Row]] = recorded(RECORD)["values"]
    return found


def at(rows: dict[str, Row], horizon: str) -> dict[str, float]:
    """The mean of every agent that was run so long, the least first."""
    means = {agent: row["lost"][horizon]["mean"] for agent, row in rows.items() if horizon in row["lost"]}
    return dict(sorted(means.items(), key=lambda found: found[1]))


def number(x: float) -> str:
    """With a decimal below 10."""
    return f"{x:,.0f}" if x >= 10 else f"{x:.1f}"


def least(means: dict[str, float]) -> str:
    """The agent that loses least, and what."""
    agent, lost = next(iter(means.items()))
    return f"{agent}: {number(lost)}"


def winners() -> str:
    """Who loses least on average, and among those with a theorem after the longest runs."""
    rows = []
    for problem, agents in problems().items():
        proven = {agent: row for agent, row in agents.items() if row["theorem"]}
        of_all = [least(at(agents, horizon)) for horizon in HORIZONS]
        rows.append([problem, *of_all, least(at(proven, HORIZONS[-1]))])
    horizons = [f"{power(int(T))} steps" for T in HORIZONS]
    columns = ["problem", *horizons, f"{horizons[-1]}, with a theorem"]
    return written_table({"columns": columns, "align": ["left"] * len(columns), "rows": rows})


def cells(row: Row, horizon: str) -> list[str]:
    """Mean with its standard error, median and 90 % quantile."""
    lost = row["lost"].get(horizon)
    if lost is None:
        return ["", "", ""]
    return [f"{number(lost['mean'])} ± {number(lost['error'])}", number(lost["median"]), number(lost["q90"])]


def of_problem(rows: dict[str, Row]) -> str:
    """The table of a problem; agents are ordered by their mean after the longest runs."""
    longest = [*at(rows, HORIZONS[-1])]
    order = longest + [agent for agent in at(rows, HORIZONS[0]) if agent not in longest]
    shown = [f"{power(int(T))} {what}" for T in HORIZONS for what in ("mean", "median", "90 %")]
    lines = []
    for agent in order:
        row = rows[agent]
        numbers = [cell for horizon in HORIZONS for cell in cells(row, horizon)]
        lines.append([agent, "yes" if row["theorem"] else "no", *numbers])
    return table(["agent", "theorem", *shown], lines)


def every_table() -> str:
    """One table per problem, each folded away."""
    parts = [f":::{{dropdown}} {problem}\n{of_problem(rows)}\n:::" for problem, rows in problems().items()]
    return "\n\n".join([*parts, origin(RECORD)])
