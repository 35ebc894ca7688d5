"""What `gainful solve --what-if` shows: which reward or transition, changed by how much, matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.console import printable

if TYPE_CHECKING:
    from gainful.planning.sensitivity import Sensitivity

WHAT_IF_ROWS = 10
"""Rows of each table."""


def what_if_tables(found: Sensitivity) -> list[Any]:
    """Two tables: rewards of pairs, and transitions of the optimal policy; then a check of the nearest change."""
    kind = found.mdp.units.objective
    rewards = _table(f"what if a {kind} changes", "state", "action", kind, "gain per unit", "policy changes at")
    frame = found.to_frame()
    near = frame.assign(size=frame.changes_at.abs()).sort_values("size", kind="stable")
    for row in near.head(WHAT_IF_ROWS).to_dict("records"):
        star = " *" if row["optimal"] else ""
        change = format(row["changes_at"], "+.6g") if np.isfinite(row["changes_at"]) else "never"
        value = row[kind]
        rewards.add_row(
            Text(printable(str(row["state"]))),
            Text(printable(str(row["action"])) + star),
            numbers.digits(value),
            format(row["gain_per_unit"], ".6g"),
            change,
        )
    moves = _table(
        "what if a transition becomes more likely", "state", "action", "next state", "probability", "gain per unit"
    )
    for row in found.transitions_to_frame().head(WHAT_IF_ROWS).to_dict("records"):
        names = [Text(printable(str(x))) for x in (row["state"], row["action"], row["next_state"])]
        moves.add_row(*names, numbers.digits(row["probability"]), format(row["gain_per_unit"], "+.6g"))
    of_rewards = (
        f"* the optimal action; gain per unit: the change of the gain for each unit of the {kind}; policy changes at: "
        f"the change of the {kind} from which another policy is optimal"
    )
    of_moves = "gain per unit: the change of the gain for each unit of probability, taken from the others in proportion"
    return [
        *(Text(), rewards, Text(of_rewards, style="dim")),
        *(Text(), moves, Text(of_moves, style="dim")),
        *(Text(), Text(_check_in_words(found), style="dim")),
    ]


def _table(title: str, *columns: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold", title=title
    )
    table.title_justify = "left"
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < 2 else "right", overflow="fold")
    return table


def nearest(found: Sensitivity) -> tuple[int, int] | None:
    """The pair whose reward has to change least for another policy; None if there is none."""
    size = np.where(np.isfinite(found.change_at), np.abs(found.change_at), np.inf)
    if not np.isfinite(size).any():
        return None
    s, a = np.unravel_index(int(np.argmin(size)), size.shape)
    return int(s), int(a)


def _check_in_words(found: Sensitivity) -> str:
    pair = nearest(found)
    if pair is None:
        return "no change of one number changes the policy"
    again = found.check(*pair)
    mdp = found.mdp
    return (
        f"solved again: with {again['change']:+.6g} in state '{printable(mdp.state_name(pair[0]))}', action "
        f"'{printable(mdp.action_name(pair[1]))}', the action of state '{printable(again['state'])}' goes from "
        f"'{printable(again['before'])}' to '{printable(again['beyond'])}'"
    )


def what_if_json(found: Sensitivity) -> dict[str, Any]:
    """The same, of every pair and transition; null where a change is not known or none matters."""
    kind = found.mdp.units.objective
    rewards = [
        {
            "state": str(row["state"]),
            "action": str(row["action"]),
            "optimal": bool(row["optimal"]),
            kind: float(row[kind]),
            "gain_per_unit": float(row["gain_per_unit"]),
            "changes_at": float(row["changes_at"]) if np.isfinite(row["changes_at"]) else None,
        }
        for row in found.to_frame().to_dict("records")
    ]
    moves = [
        {
            "state": str(row["state"]),
            "action": str(row["action"]),
            "next_state": str(row["next_state"]),
            "probability": float(row["probability"]),
            "gain_per_unit": float(row["gain_per_unit"]),
        }
        for row in found.transitions_to_frame().to_dict("records")
    ]
    pair = nearest(found)
    return {f"{kind}s": rewards, "transitions": moves, "solved_again": None if pair is None else found.check(*pair)}
