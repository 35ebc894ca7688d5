"""What `gainful solve --hardness` shows: the quantities that regret bounds depend on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from gainful.cli import numbers

if TYPE_CHECKING:
    from gainful.theory.hardness import Hardness

YES_OR_NO = {
    True: "yes: every policy visits every state",
    False: "no: some policy never visits some state",
    None: "not computed",
}


def hardness_page(found: Hardness) -> list[Any]:
    """A title, one line per quantity with what it means, and what was left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("ergodic", YES_OR_NO[found.ergodic])
    grid.add_row("least gap", f"{numbers.digits(found.least_gap)}  lost per step by the best mistake")
    grid.add_row("inverse gaps", f"{numbers.digits(found.inverse_gaps)}  sum of 1/gap over all mistakes")
    grid.add_row("span", f"{numbers.digits(found.span)}  of the optimal bias")
    grid.add_row("variance", f"{numbers.digits(found.variance)}  of the bias after one step, at most")
    grid.add_row("support", f"{numbers.digits(found.support)}  effective number of next states, at most")
    grid.add_row("diameter", _steps(found.diameter, "between the states farthest apart"))
    grid.add_row("local diameter", _steps(found.local_diameter, "between two next states of one state, at most"))
    grid.add_row("relaxation", _steps(found.relaxation, "until the optimal policy forgets its start"))
    if found.slope is not None:
        grid.add_row("slope", f"{numbers.digits(found.slope)}  of regret over ln T, at least, in the end")
    parts: list[Any] = [Text(), Text("how hard it is to learn", style="bold"), grid]
    return parts + [Text(f"left out: {reason}", style="dim") for reason in found.skipped]


def _steps(value: float | None, meaning: str) -> str:
    if value is None:
        return "not computed"
    return "infinite" if math.isinf(value) else f"{numbers.digits(value)} steps  {meaning}"
