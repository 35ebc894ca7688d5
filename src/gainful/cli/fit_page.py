"""What `gainful fit` prints and writes as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.console import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gainful.estimation.fit import LogFit

FEW_VISITS = 5
"""Pairs with fewer visits are counted among the uncertain ones."""
_PAIRS_NAMED = 8


def page(fitted: LogFit, states_shown: int, rows: bool = False) -> list[RenderableType]:
    """The parts of the page, in order."""
    parts: list[RenderableType] = [_title(fitted), Text(), _facts(fitted)]
    if fitted.plan is not None and states_shown > 0:
        parts += [Text(), _policy(fitted, states_shown), _footnote(fitted, states_shown, rows)]
    return [*parts, Text(), _pairs(fitted), Text(), _transitions(fitted)] if rows else parts


def as_data(fitted: LogFit) -> dict[str, Any]:
    """Everything as one JSON object: None stands for what is not known."""
    mdp, plan = fitted.mdp, fitted.plan
    data: dict[str, Any] = {
        "log": mdp.name,
        "n_transitions": fitted.n_transitions,
        "n_trajectories": fitted.n_units,
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "objective": mdp.units.objective,
        "confidence": fitted.confidence,
        "gain": None if plan is None else plan.gain,
        "gain_interval": fitted.gain_interval,
        "policy_gain_interval": fitted.policy_gain_interval,
        "why_no_gain": fitted.why_no_plan or None,
        "replicates": fitted.resampled_gains.size,
        "resampled": fitted.resampled,
        "notes": fitted.notes,
        "never_tried": [{"state": s, "action": a} for s, a in fitted.never_tried],
        "pairs": _records(fitted.pairs),
        "transitions": _records(fitted.transitions),
        "policy": [],
    }
    if plan is not None and plan.actions is not None:
        states, visits = plan.to_frame()["state"], _visits_of_plan(fitted)
        data["policy"] = [
            {
                "state": _plain(states[s]),
                "action": int(plan.actions[s]) if mdp.action_labels is None else mdp.action_name(int(plan.actions[s])),
                "bias": float(plan.bias[s]),
                "visits": int(visits[s]),
                "agreement": _plain(fitted.agreement[s]),
            }
            for s in range(mdp.n_states)
        ]
    return data


def _records(frame: Any) -> list[dict[str, Any]]:
    return [{key: _plain(value) for key, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    """A value as JSON has it: NaN becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _title(fitted: LogFit) -> Text:
    mdp = fitted.mdp
    tried = mdp.n_pairs
    sizes = (
        f": {numbers.count(fitted.n_transitions, 'transition')}"
        f" in {fitted.n_units:,} trajector{'y' if fitted.n_units == 1 else 'ies'}; "
        f"{numbers.count(mdp.n_states, 'state')}, {numbers.count(mdp.n_actions, 'action')}, "
        f"{tried:,} of {numbers.count(mdp.n_states * mdp.n_actions, 'pair')} tried"
    )
    return Text.assemble((printable(mdp.name or "log"), "bold cyan"), sizes)


def _facts(fitted: LogFit) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    units = fitted.mdp.units
    if fitted.plan is None:
        grid.add_row("gain", f"not known: {fitted.why_no_plan}")
    else:
        best = "largest" if units.objective == "reward" else "smallest"
        gain = numbers.digits(fitted.plan.gain)
        grid.add_row("gain", Text.assemble((gain, "bold green"), f"  {units.gain_name}, the {best} of the estimate"))
        if fitted.gain_interval is not None:
            grid.add_row("", f"{_interval(fitted, fitted.gain_interval)}, {_resampled(fitted)}")
            grid.add_row("", f"{_interval(fitted, fitted.policy_gain_interval)} of the policy below, kept as it is")
    visits = fitted.pairs["visits"].to_numpy()
    few = int((visits < FEW_VISITS).sum())
    half = np.median(visits)
    grid.add_row("visits", f"{visits.min():,} to {visits.max():,} per pair, half of the pairs up to {half:,.0f}")
    if few:
        grid.add_row("", f"{numbers.count(few, 'pair')} with fewer than {FEW_VISITS} visits: hardly known")
    grid.add_row("never tried", _never_tried(fitted))
    for i, note in enumerate(fitted.notes):
        grid.add_row("" if i else "note", printable(note))
    return grid


def _interval(fitted: LogFit, interval: tuple[float, float] | None) -> str:
    assert interval is not None
    low, high = interval
    return f"{100 * fitted.confidence:.4g} % interval {numbers.digits(low)} to {numbers.digits(high)}"


def _resampled(fitted: LogFit) -> str:
    return f"{fitted.resampled_gains.size:,} resamples of {fitted.resampled}"


def _never_tried(fitted: LogFit) -> str:
    pairs = fitted.never_tried
    if not pairs:
        return "nothing: every action was tried in every state"
    named = ", ".join(f"{action} in {state}" for state, action in pairs[:_PAIRS_NAMED])
    more = len(pairs) - _PAIRS_NAMED
    return printable(named) + (f" and {numbers.count(more, 'more pair')}: --json" if more > 0 else "")


def _visits_of_plan(fitted: LogFit) -> Any:
    assert fitted.plan is not None
    assert fitted.plan.actions is not None
    return fitted.visits[np.arange(fitted.mdp.n_states), fitted.plan.actions]


def _policy(fitted: LogFit, states_shown: int) -> Table:
    mdp, plan = fitted.mdp, fitted.plan
    assert plan is not None
    assert plan.actions is not None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("state", overflow="fold")
    table.add_column("action", overflow="fold")
    table.add_column("visits", justify="right", no_wrap=True)
    table.add_column("best in", justify="right", no_wrap=True)
    table.add_column("other actions tried", overflow="fold")
    visits = _visits_of_plan(fitted)
    for s in range(min(states_shown, mdp.n_states)):
        others = [a for a in np.flatnonzero(mdp.allowed[s]) if a != plan.actions[s]]
        share = fitted.agreement[s]
        table.add_row(
            Text(printable(mdp.state_name(s))),
            Text(printable(mdp.action_name(int(plan.actions[s])))),
            f"{visits[s]:,}",
            "" if math.isnan(share) else f"{100 * share:.0f} %",
            Text(printable(", ".join(f"{mdp.action_name(int(a))} {fitted.visits[s, a]:,}" for a in others))),
        )
    return table


def _footnote(fitted: LogFit, states_shown: int, rows: bool) -> Text:
    lines = []
    more = fitted.mdp.n_states - states_shown
    if more > 0:
        lines.append(f"… and {numbers.count(more, 'more state')}: --max-states-shown {fitted.mdp.n_states}, or --json")
    if fitted.gain_interval is not None:
        lines.append("best in: the share of the resamples in which this action is optimal")
        lines.append("resamples never contain what the log does not: little data looks surer than it is")
    if not rows:
        lines.append("probabilities and rewards with their intervals: --rows, --save model.csv, or --json")
    return Text("\n".join(lines), style="dim")


def _pairs(fitted: LogFit) -> Table:
    """The mean reward of each pair with its interval."""
    table = _plain_table("state", "action", "visits", f"mean {fitted.mdp.units.objective}", "interval")
    for state, action, visits, mean, low, high, _ in fitted.pairs.itertuples(index=False, name=None):
        interval = "one visit" if math.isnan(low) else f"{numbers.digits(low)} to {numbers.digits(high)}"
        names = (Text(printable(str(name))) for name in (state, action))
        table.add_row(*names, f"{visits:,}", numbers.digits(mean), interval)
    return table


def _transitions(fitted: LogFit) -> Table:
    """The probability of each transition with its interval."""
    table = _plain_table("state", "action", "next state", "count", "probability", "interval")
    columns = ["state", "action", "next_state", "count", "probability", "low", "high"]
    for state, action, target, count, p, low, high in fitted.transitions[columns].itertuples(index=False, name=None):
        names = (Text(printable(str(name))) for name in (state, action, target))
        table.add_row(*names, f"{count:,}", f"{p:.4f}", f"{low:.4f} to {high:.4f}")
    return table


def _plain_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    for name in columns:
        number = name in ("visits", "count", "probability", "interval") or name.startswith("mean ")
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
    return table
