"""The decisions of `gainful run --until-decided` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gainful.cli import console

if TYPE_CHECKING:
    from gainful.experiments.sequential_comparison import SequentialComparison

NARROW_TERMINAL = 110
"""Columns of a terminal below which a table has its environments as lines."""
MOST_NAMED = 3
"""Environments that the line of a look names, at most."""


def decisions(comparison: dict[str, Any]) -> list[Any]:
    """A sentence, and a table with one row per agent: whom it is better than, and what is undecided.

    A narrow terminal gets the environments as lines above their agents.
    """
    from rich.table import Table
    from rich.text import Text

    from gainful.experiments.decision_words import decision_sentence, standings

    narrow = console.is_narrow(NARROW_TERMINAL)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in (*(() if narrow else ("environment",)), "agent", "seeds", "better than", "undecided against"):
        grid.add_column(head, justify="right" if head == "seeds" else "left", overflow="fold")
    last = None
    for one in standings(comparison):
        names = (", ".join(others) or "–" for others in (one.better_than, one.undecided))
        environment = "" if one.environment == last else console.printable(one.environment)
        if narrow and environment:
            grid.add_row(Text(environment, style="bold"))
        words = (one.agent, f"{one.seeds:,}", *names)
        grid.add_row(*([] if narrow else [Text(environment)]), *(Text(console.printable(word)) for word in words))
        last = one.environment
    return [Text(""), Text("Who is better than whom", style="bold"), grid, Text(decision_sentence(comparison))]


def look_words(comparison: SequentialComparison) -> str:
    """What a look has decided, in one line, and who gets more seeds."""
    total, decided = len(comparison.pairs), sum(pair.decided for pair in comparison.pairs)
    design = comparison.design
    said = f"look {comparison.interims} of at most {design.max_interims}: {decided:,} of {total:,} comparisons decided"
    if comparison.finished:
        return said
    return f"{said}; {design.seeds_per_interim:,} more seeds for {_open_words(comparison)}"


def _open_words(comparison: SequentialComparison) -> str:
    """Who gets more seeds: how many agents in each environment, or in how many environments if they are many."""
    counts = {environment: len(comparison.open_agents(environment)) for environment in comparison.seeds_used}
    still_open = {environment: n for environment, n in counts.items() if n}
    if len(still_open) > MOST_NAMED:
        return f"agents in {len(still_open):,} environments"
    (first, n), *others = still_open.items()
    return ", ".join([f"{n:,} agents in {first}", *(f"{n:,} in {name}" for name, n in others)])
