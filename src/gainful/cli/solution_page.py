"""What `gainful solve` prints: facts above, the policy as a table below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.console import printable
from gainful.cli.solution import Solution, actions_of, middle

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gainful.planning.plan import Plan


def page(solution: Solution, precision: float, states_shown: int) -> list[RenderableType]:
    """The parts of the page, in order."""
    parts: list[RenderableType] = [_title(solution), Text(), _facts(solution, precision)]
    if states_shown > 0:
        parts += [Text(), _policy(solution, states_shown)]
        parts += [_footnote(solution, states_shown)]
    return parts


def _title(solution: Solution) -> Text:
    mdp = solution.mdp
    sizes = ", ".join(
        (
            numbers.count(mdp.n_states, "state"),
            numbers.count(mdp.n_actions, "action"),
            numbers.count(mdp.n_transitions, "transition"),
        )
    )
    return Text.assemble((printable(solution.name), "bold cyan"), f": {sizes}, Γ = {mdp.max_support}")


def _facts(solution: Solution, precision: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    units = solution.mdp.units
    gain, low, high = numbers.bracket(*solution.plan.gain_bounds, precision)
    best = "largest" if units.objective == "reward" else "smallest"
    grid.add_row("gain", Text.assemble((gain, "bold green"), f"  {units.gain_name}, the {best} possible"))
    if solution.unconstrained is None:
        grid.add_row("", f"certified: between {low} and {high}")
        grid.add_row("span", f"{numbers.digits(solution.plan.span)}  of the bias")
    else:
        _constraint(solution, solution.unconstrained, grid, precision)
    grid.add_row("diameter", _diameter(solution))
    grid.add_row("structure", _structure(solution))
    spent = numbers.seconds(solution.seconds) + (" with compiling" if solution.compiled else " with loading")
    grid.add_row("solved by", f"{solution.plan.method}, {numbers.count(solution.plan.sweeps, 'sweep')}, {spent}")
    return grid


def _constraint(solution: Solution, free: Plan, grid: Table, precision: float) -> None:
    """The lines that are different under a bound on the span."""
    assert solution.span_bound is not None
    _, low, high = numbers.bracket(*solution.plan.gain_bounds, precision)
    cost = solution.mdp.units.objective == "cost"
    bound = numbers.shortest(solution.span_bound)
    grid.add_row("", f"with a bias of span at most {bound}")
    if solution.plan.details["unichain"]:
        grid.add_row("", f"certified: between {low} and {high}")
    else:
        side = f"at least {low}" if cost else f"at most {high}"
        grid.add_row("", f"certified: {side} (one side only, because the policy has several classes)")
    lost = abs(free.gain - solution.plan.gain)
    same = free.gain_bounds[0] <= solution.plan.gain_bounds[1] and solution.plan.gain_bounds[0] <= free.gain_bounds[1]
    note = "the same, so the bound costs nothing" if same else f"the bound costs {numbers.digits(lost)}"
    grid.add_row(
        "unbounded", f"{numbers.bracket(*free.gain_bounds, precision)[0]}  {note}; span {numbers.digits(free.span)}"
    )
    cut = len(solution.truncated)
    star = ", marked *" if cut else ""
    grid.add_row("span", f"{numbers.digits(solution.plan.span)}  of the bias")
    grid.add_row("truncated", f"{cut:,} of {numbers.count(solution.mdp.n_states, 'state')}{star}")


def _diameter(solution: Solution) -> str:
    if solution.diameter is None:
        return solution.why_no_diameter
    value = middle(solution.diameter)
    if math.isinf(value):
        return "infinite: some state cannot be reached from some other"
    duration = solution.mdp.units.step_duration
    steps = f"{numbers.digits(value)} step{'' if numbers.digits(value) == '1' else 's'}"
    if solution.mdp.units.continuous:
        steps += f", {numbers.digits(value * duration)} units of time"
    return f"{steps}  between the states farthest apart"


def _structure(solution: Solution) -> str:
    found = solution.structure
    if found == "multichain":
        return f"multichain: {len(found.classes)} classes that happen to have the same gain"
    left = found.transient.size
    text = str(found) + (f", {numbers.count(left, 'transient state')}" if left else "")
    if found == "communicating" and solution.unichain:
        text += " and unichain"
    return text


def _policy(solution: Solution, states_shown: int) -> Table:
    mdp, plan = solution.mdp, solution.plan
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("state", overflow="fold")
    table.add_column("action", overflow="fold")
    table.add_column("bias", justify="right", no_wrap=True)
    states = range(min(states_shown, mdp.n_states))
    biases = numbers.column([float(plan.bias[s]) for s in states], plan.span)
    for s, bias in zip(states, biases, strict=True):
        chosen = actions_of(plan, s)
        if len(chosen) == 1:
            action = mdp.action_name(chosen[0][0])
        else:
            action = ", ".join(f"{mdp.action_name(a)} {p:.4g}" for a, p in chosen)
        star = " *" if s in solution.truncated else ""
        table.add_row(Text(printable(mdp.state_name(s)) + star), Text(printable(action)), bias)
    return table


def _footnote(solution: Solution, states_shown: int) -> Text:
    mdp = solution.mdp
    more = mdp.n_states - states_shown
    lines = []
    if more > 0:
        lines.append(f"… and {numbers.count(more, 'more state')}: --max-states-shown {mdp.n_states}, or --json")
    if mdp.n_states > 1:
        first = printable(mdp.state_name(0))
        total = "reward" if mdp.units.objective == "reward" else "cost"
        lines.append(f"bias: the total {total} above that of starting in '{first}'")
    return Text("\n".join(lines), style="dim")
