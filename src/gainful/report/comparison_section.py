"""Who is better than whom, where an experiment was run until that was decided."""

from __future__ import annotations

from typing import Any

from gainful.experiments.decision_words import AgentStanding, decision_sentence, standings
from gainful.report import tables
from gainful.report.writing import escaped
from gainful.simulation.run import MEASURE_NAMES

NO_BREAK = "\N{NO-BREAK SPACE}"
COLUMNS = (
    ("Environment", "word"),
    ("Agent", "word agent"),
    ("Seeds", "number"),
    ("Better than", "word"),
    ("Worse than", "word"),
    ("Undecided against", "word"),
)
PAIR_COLUMNS = (
    ("Environment", "word"),
    ("Better", "word agent"),
    ("Worse", "word"),
    ("Decided", "word"),
    ("Seeds", "number"),
    ("Difference of the means", "number"),
    ("Of", "word"),
)


def comparison_section(comparison: dict[str, Any]) -> str:
    """The section of a page: a sentence, a row per agent, and a row per pair."""
    rows = "".join(_row(standing) for standing in standings(comparison))
    pairs = comparison["pairs"]
    differences = [tables.amounts([pair["difference"]])[0] for pair in pairs]
    details = "".join(
        _cells(
            pair["environment"],
            pair["better"],
            pair["worse"],
            "yes" if pair["decided"] else "no",
            f"{pair['seeds']:,}",
            amount,
            MEASURE_NAMES[comparison["measures"][pair["environment"]]],
            columns=PAIR_COLUMNS,
        )
        for pair, amount in zip(pairs, differences, strict=True)
    )
    return (
        '<section id="comparison" aria-labelledby="comparison-name"><h2 id="comparison-name">Who is better than whom'
        f'</h2><p class="sub">{escaped(decision_sentence(comparison)).replace(" %", NO_BREAK + "%")}</p>'
        f"{_table(COLUMNS, rows, 'Decisions by agent')}"
        f"<details><summary>All {len(pairs):,} comparisons</summary>"
        f"{_table(PAIR_COLUMNS, details, 'Decisions by pair')}"
        '<p class="caption">Sign-flip tests on shared seeds, repeated after each group of '
        f"{comparison['design']['seeds_per_interim']:,} seeds, as in AdaStop (Mathieu et al., TMLR 2024), all pairs "
        "together by Holm's and Shaffer's step-down procedure. Of an undecided pair, the one with the better mean so "
        "far is listed first.</p></details></section>"
    )


def comparison_markdown(comparison: dict[str, Any]) -> list[str]:
    """The lines of the same in Markdown."""
    lines = ["## Who is better than whom", "", tables.inline(decision_sentence(comparison)), ""]
    heads = [name for name, _ in COLUMNS]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for one in standings(comparison):
        cells = (one.environment, one.agent, f"{one.seeds:,}", *map(_names, _three(one)))
        lines.append("| " + " | ".join(map(tables.inline, cells)) + " |")
    return [*lines, ""]


def _three(one: AgentStanding) -> tuple[tuple[str, ...], ...]:
    return one.better_than, one.worse_than, one.undecided


def _names(agents: tuple[str, ...]) -> str:
    return ", ".join(agents) or "–"


def _row(one: AgentStanding) -> str:
    return _cells(one.environment, one.agent, f"{one.seeds:,}", *map(_names, _three(one)), columns=COLUMNS)


def _cells(*texts: str, columns: tuple[tuple[str, str], ...]) -> str:
    cells = []
    for text, (_, kind) in zip(texts, columns, strict=True):
        tag = 'th scope="row"' if "agent" in kind else "td"
        cells.append(f'<{tag} class="{kind}">{escaped(text)}</{tag[:2]}>')
    return f"<tr>{''.join(cells)}</tr>"


def _table(columns: tuple[tuple[str, str], ...], rows: str, about: str) -> str:
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in columns)
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{about}"><table class="comparison"><thead><tr>{head}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )
