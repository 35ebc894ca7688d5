"""An answer as a page for people: facts above, the policy as a table below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.answer import Answer, actions_of, middle
from gainful.cli.console import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gainful.planning.plan import Plan


def page(answer: Answer, precision: float, states_shown: int) -> list[RenderableType]:
    """What `gainful solve` prints."""
    parts: list[RenderableType] = [_title(answer), Text(), _facts(answer, precision)]
    if states_shown > 0:
        parts += [Text(), _policy(answer, states_shown)]
        parts += [_footnote(answer, states_shown)]
    return parts


def _title(answer: Answer) -> Text:
    mdp = answer.mdp
    sizes = ", ".join(
        (
            numbers.count(mdp.n_states, "state"),
            numbers.count(mdp.n_actions, "action"),
            numbers.count(mdp.n_transitions, "transition"),
        )
    )
    return Text.assemble((printable(answer.name), "bold cyan"), f": {sizes}, Γ = {mdp.max_support}")


def _facts(answer: Answer, precision: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    units = answer.mdp.units
    gain, low, high = numbers.bracket(*answer.plan.gain_bounds, precision)
    best = "largest" if units.objective == "reward" else "smallest"
    grid.add_row("gain", Text.assemble((gain, "bold green"), f"  {units.gain_name}, the {best} possible"))
    if answer.unconstrained is None:
        grid.add_row("", f"certified: between {low} and {high}")
        grid.add_row("span", f"{numbers.digits(answer.plan.span)}  of the bias")
    else:
        _constraint(answer, answer.unconstrained, grid, precision)
    grid.add_row("diameter", _diameter(answer))
    grid.add_row("structure", _structure(answer))
    spent = numbers.seconds(answer.seconds) + (" with compiling" if answer.compiled else " with loading")
    grid.add_row("solved by", f"{answer.plan.method}, {numbers.count(answer.plan.sweeps, 'sweep')}, {spent}")
    return grid


def _constraint(answer: Answer, free: Plan, grid: Table, precision: float) -> None:
    """The lines that differ under a bound on the span."""
    assert answer.span_bound is not None
    _, low, high = numbers.bracket(*answer.plan.gain_bounds, precision)
    cost = answer.mdp.units.objective == "cost"
    bound = numbers.shortest(answer.span_bound)
    grid.add_row("", f"with a bias of span at most {bound}")
    if answer.plan.details["unichain"]:
        grid.add_row("", f"certified: between {low} and {high}")
    else:
        side = f"at least {low}" if cost else f"at most {high}"
        grid.add_row("", f"certified: {side} (only this side: the policy has several classes)")
    lost = abs(free.gain - answer.plan.gain)
    same = free.gain_bounds[0] <= answer.plan.gain_bounds[1] and answer.plan.gain_bounds[0] <= free.gain_bounds[1]
    note = "the same: the bound costs nothing" if same else f"the bound costs {numbers.digits(lost)}"
    grid.add_row(
        "unbounded", f"{numbers.bracket(*free.gain_bounds, precision)[0]}  {note}; span {numbers.digits(free.span)}"
    )
    cut = len(answer.truncated)
    star = ", marked *" if cut else ""
    grid.add_row("span", f"{numbers.digits(answer.plan.span)}  of the bias")
    grid.add_row("truncated", f"{cut:,} of {numbers.count(answer.mdp.n_states, 'state')}{star}")


def _diameter(answer: Answer) -> str:
    if answer.diameter is None:
        return answer.why_no_diameter
    value = middle(answer.diameter)
    if math.isinf(value):
        return "infinite: not every state can be reached from every other"
    duration = answer.mdp.units.step_duration
    steps = f"{numbers.digits(value)} step{'' if numbers.digits(value) == '1' else 's'}"
    if answer.mdp.units.continuous:
        steps += f", {numbers.digits(value * duration)} units of time"
    return f"{steps}  between the states farthest apart"


def _structure(answer: Answer) -> str:
    found = answer.structure
    if found == "multichain":
        return f"multichain: {len(found.classes)} classes that happen to have the same gain"
    left = found.transient.size
    text = str(found) + (f", {numbers.count(left, 'transient state')}" if left else "")
    if found == "communicating" and answer.unichain:
        text += " and unichain"
    return text


def _policy(answer: Answer, states_shown: int) -> Table:
    mdp, plan = answer.mdp, answer.plan
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
        star = " *" if s in answer.truncated else ""
        table.add_row(Text(printable(mdp.state_name(s)) + star), Text(printable(action)), bias)
    return table


def _footnote(answer: Answer, states_shown: int) -> Text:
    mdp = answer.mdp
    more = mdp.n_states - states_shown
    lines = []
    if more > 0:
        lines.append(f"… and {numbers.count(more, 'more state')}: --max-states-shown {mdp.n_states}, or --json")
    if mdp.n_states > 1:
        first = printable(mdp.state_name(0))
        total = "reward" if mdp.units.objective == "reward" else "cost"
        lines.append(f"bias: total {total} beyond that of a start in '{first}'")
    return Text("\n".join(lines), style="dim")
