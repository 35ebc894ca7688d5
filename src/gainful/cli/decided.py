"""The decisions of `gainful run --until-decided` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gainful.cli import console

if TYPE_CHECKING:
    from gainful.experiments.sequential_comparison import SequentialComparison


def decisions(comparison: dict[str, Any]) -> list[Any]:
    """A sentence, and a table with one row per agent: whom it is better than, and what is undecided."""
    from rich.table import Table
    from rich.text import Text

    from gainful.experiments.decision_words import decision_sentence, standings

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("environment", "agent", "seeds", "better than", "undecided against"):
        grid.add_column(head, justify="right" if head == "seeds" else "left")
    last = None
    for one in standings(comparison):
        names = (", ".join(others) or "–" for others in (one.better_than, one.undecided))
        environment = "" if one.environment == last else one.environment
        words = (environment, one.agent, f"{one.seeds:,}", *names)
        grid.add_row(*(Text(console.printable(word)) for word in words))
        last = one.environment
    return [Text(""), Text("Who is better than whom", style="bold"), grid, Text(decision_sentence(comparison))]


def look_words(comparison: SequentialComparison) -> str:
    """What a look has decided, in one line, and who gets more seeds."""
    total, decided = len(comparison.pairs), sum(pair.decided for pair in comparison.pairs)
    design = comparison.design
    said = f"look {comparison.interims} of at most {design.max_interims}: {decided:,} of {total:,} comparisons decided"
    if comparison.finished:
        return said
    agents = sum(len(comparison.open_agents(environment)) for environment in comparison.seeds_used)
    return f"{said}; {design.seeds_per_interim} seeds more for {agents:,} of the agents"
