"""The headline tables: which columns there are, and how their numbers are written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gainful.experiments.log_slopes import constants_in_words
from gainful.number_text import count
from gainful.report.content import Environment
from gainful.report.ranking import leads
from gainful.simulation.run import MEASURE_NAMES

UNKNOWN = "unknown"
ABOUT = {
    "expected_regret": "the sum of the optimality gaps of the pairs played, what their actions lose in the long run",
    "pseudo_regret": "T·g* minus the mean rewards of the pairs played",
    "regret": "T·g* minus the rewards received",
}
"""What the measures of regret are."""


@dataclass(frozen=True)
class Column:
    """One column: its head, a short explanation, and for every row the text and the value to sort by."""

    head: str
    about: str
    texts: list[str]
    values: list[float | str | None]
    numeric: bool = True
    key: str = ""
    """The field of the row that the column shows."""


def headline(environment: Environment) -> list[Column]:
    """The columns of an environment's table, one entry per agent."""
    rows = [group.row for group in environment.groups]
    measure, name = environment.measure, MEASURE_NAMES[environment.measure]
    regret = [row[f"{measure}_mean"] for row in rows]
    columns = [
        _words("Agent", "the label in the spec", rows, "agent", lambda row: str(row["agent"])),
        _numbers("Runs", "finished runs, one per seed", rows, "runs", counts),
    ]
    if len({row["final_step"] for row in rows}) > 1:
        columns.append(_numbers("Steps", "the last step shared by all runs", rows, "final_step", counts))
    columns += [
        _numbers(
            name.capitalize(), f"{ABOUT[measure]}: mean over runs at the last step", rows, f"{measure}_mean", amounts
        ),
        _interval(
            "95 % interval", "Student's confidence interval of the mean", rows, f"{measure}_mean", amounts, regret
        ),
        _numbers("Per step", f"mean {name} divided by the number of steps", rows, f"{measure}_per_step", rates),
    ]
    if measure == "expected_regret":
        about = f"{ABOUT['pseudo_regret']}: mean over runs at the last step"
        columns.append(_numbers("Pseudo-regret", about, rows, "pseudo_regret_mean", amounts))
    if None in regret:
        columns.append(_numbers("Reward per step", "mean over runs", rows, "reward_per_step", rates))
    columns += [
        _numbers(
            "Growth",
            "the power of the steps with which regret grows, fitted over the last decade",
            rows,
            "growth_exponent",
            exponents,
        ),
        _interval("95 % interval", "confidence interval of the growth exponent", rows, "growth", exponents),
        *_slope(rows),
        _numbers("Planning", "share of CPU time spent planning", rows, "planning_share", shares),
        _numbers("Episodes", "mean over runs", rows, "episodes", amounts),
        _words("Guarantee", "whether a theorem applies with these constants", rows, "guarantee", mark),
    ]
    return columns


def _slope(rows: list[dict[str, Any]]) -> list[Column]:
    """How the slope of regret over ln T compares with the least possible in the end; nothing if that is unknown."""
    constants = constants_in_words(rows)
    if not constants:
        return []
    about = (
        "slope of expected regret over ln T in the last decade, divided by C, below which no consistent learner stays "
        f"in the end (Burnetas & Katehakis 1997): {'; '.join(constants)}; it is no bound at any T"
    )
    return [_numbers("Slope/C", about, rows, "slope_ratio", exponents)]


def planning(environment: Environment) -> list[Column]:
    """The columns of the table of planning costs."""
    rows = [group.row for group in environment.groups]
    return [
        _words("Agent", "the label in the spec", rows, "agent", lambda row: str(row["agent"])),
        _numbers("Planning", "share of CPU time spent planning", rows, "planning_share", shares),
        _numbers("Planning, s", "CPU seconds per run", rows, "planning_seconds", rates),
        _numbers("Acting, s", "CPU seconds per run", rows, "acting_seconds", rates),
        _numbers("Episodes", "mean over runs", rows, "episodes", amounts),
        _numbers("Sweeps per episode", "mean over the recorded episodes", rows, "sweeps_per_episode", rates),
    ]


def mark(row: dict[str, Any]) -> str:
    """The guarantee in a few words, marked as vacuous if the bounds still ignore the data."""
    n = row["vacuous_runs"]
    if not n:
        return str(row["guarantee"])
    where = "" if n == row["runs"] else f" in {n} of {row['runs']} runs"
    return f"{row['guarantee']}; vacuous{where}"


def markdown(environments: Sequence[Environment], title: str) -> str:
    """All headline tables as Markdown."""
    lines = [f"# {inline(title)}", ""] if title else []
    for environment in environments:
        columns = headline(environment)
        lines += [f"## {inline(environment.label)}", "", f"{inline(subtitle(environment))}", ""]
        cells = [[inline(c.head), *map(inline, c.texts)] for c in columns]
        widths = [max(3, *map(len, column)) for column in cells]
        for i in range(len(columns[0].texts) + 1):
            row = [
                cell[i].rjust(w) if c.numeric else cell[i].ljust(w)
                for c, cell, w in zip(columns, cells, widths, strict=True)
            ]
            lines.append("| " + " | ".join(row) + " |")
            if i == 0:
                rules = ("-" * (w - 1) + (":" if c.numeric else "-") for c, w in zip(columns, widths, strict=True))
                lines.append("| " + " | ".join(rules) + " |")
        said = " ".join("".join(lead.sentence) for lead in leads(environment))
        lines += ["", *(part for text in (said, about_measure(environment)) if text for part in (inline(text), ""))]
    return "\n".join(lines)


def subtitle(environment: Environment) -> str:
    """Sizes, optimal gain and last step of the environment, in one line."""
    steps = {group.row["final_step"] for group in environment.groups}
    states = "states are points" if environment.continuous else f"{environment.n_states:,} states"
    parts = [states, f"{environment.n_actions:,} actions", f"optimal {environment.gain_name} {_gain(environment)}"]
    if len(steps) == 1 and None not in steps:
        parts.append(count(steps.pop(), "step"))
    return ", ".join(parts)


def about_measure(environment: Environment) -> str:
    """Why the regret shown is not the expected regret; empty if it is, or if the optimal gain is unknown."""
    if environment.gain is None or environment.measure == "expected_regret":
        return ""
    name = MEASURE_NAMES[environment.measure]
    if environment.continuous:
        return f"The regret shown is {name}: where states are points, expected regret is unknown."
    counts = [(g.agent, g.row["runs_without_expected_regret"], g.row["runs"]) for g in environment.groups]
    unknown, runs = sum(n for _, n, _ in counts), sum(total for _, _, total in counts)
    which = "" if unknown == runs else f" ({', '.join(f'{agent}: {n} of {m}' for agent, n, m in counts if n)})"
    grown = [g.agent for g in environment.groups if g.row["growth_of"] == "expected_regret"]
    more = f" The growth of {', '.join(grown)} is that of the expected regret." if grown else ""
    return (
        f"The regret shown is {name}: expected regret is unknown for {unknown:,} of {runs:,} runs{which}, which were "
        f"stored before gainful computed it.{more}"
    )


def _gain(environment: Environment) -> str:
    if environment.shown_gain is None:
        return UNKNOWN
    computed = re.match(r"OracleGain\(([^,()]+)", environment.gain_source)  # on a grid: with its error
    return computed[1] if computed else _signed(f"{environment.shown_gain:.6g}")


def inline(text: str) -> str:
    """The text on one line, with all Markdown markup escaped."""
    plain = " ".join(text.split())
    return "".join("\\" + c if c in "\\`*_{}[]<>|#$~" else c for c in plain)


# ---------------------------------------------------------------------- columns


def _numbers(head: str, about: str, rows: list[dict[str, Any]], key: str, write: Writer) -> Column:
    values = [row[key] for row in rows]
    return Column(head, about, write(values), values, key=key)


def _words(
    head: str, about: str, rows: list[dict[str, Any]], key: str, text: Callable[[dict[str, Any]], str]
) -> Column:
    texts = [text(row) for row in rows]
    return Column(head, about, texts, list(texts), numeric=False, key=key)


def _interval(
    head: str, about: str, rows: list[dict[str, Any]], key: str, write: Writer, like: Sequence[float | None] = ()
) -> Column:
    """Low … high, with as many digits as the column `like`; sorted by width."""
    lows, highs = [row[f"{key}_low"] for row in rows], [row[f"{key}_high"] for row in rows]
    n = len(rows)
    texts = write([*lows, *highs, *like])
    shown = [
        "–" if low is None or high is None else f"{texts[i]} … {texts[n + i]}"
        for i, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]
    widths = [None if a is None or b is None else b - a for a, b in zip(lows, highs, strict=True)]
    return Column(head, about, shown, list(widths), key=f"{key}_low")


# ---------------------------------------------------------------------- numbers

Writer = Callable[[Sequence[Any]], list[str]]
"""Writes the numbers of one column as text, None as "unknown"."""


def counts(values: Sequence[int | None]) -> list[str]:
    """Whole numbers.

    >>> counts([5, 1000000, None])
    ['5', '1,000,000', 'unknown']
    """
    return [UNKNOWN if x is None else f"{x:,}" for x in values]


def amounts(values: Sequence[float | None]) -> list[str]:
    """Numbers of one magnitude: the same number of decimals for all, about four digits of the largest.

    >>> amounts([143899.2, 2248.4, -37.0]), amounts([2.941, 0.5])
    (['143,899', '2,248', '−37'], ['2.941', '0.500'])
    """
    largest = max((abs(x) for x in values if x is not None), default=0.0)
    decimals = 3 if largest < 10 else 2 if largest < 100 else 1 if largest < 1000 else 0
    if 0.0 < largest < 0.1:
        return rates(values)
    return [UNKNOWN if x is None else _signed(f"{x:z,.{decimals}f}") for x in values]


def rates(values: Sequence[float | None]) -> list[str]:
    """Numbers of several magnitudes: the same decimals, two digits of the smallest; or three digits each.

    >>> rates([0.01439, 0.00022, 0.0]), rates([0.5, 2.9e-07]), rates([3.08, 0.0018])
    (['0.01439', '0.00022', '0.00000'], ['0.500', '2.90e−7'], ['3.0800', '0.0018'])
    """
    sizes = [abs(x) for x in values if x is not None and x != 0.0]
    decimals = 1 - math.floor(math.log10(min(sizes))) if sizes else 0
    if 0 <= decimals <= 6 and max(sizes, default=0.0) < 1e5:
        return [UNKNOWN if x is None else _signed(f"{x:z,.{decimals}f}") for x in values]
    return [UNKNOWN if x is None else _three_digits(x) for x in values]


def exponents(values: Sequence[float | None]) -> list[str]:
    """Numbers with two decimals.

    >>> exponents([0.5, -0.001, None])
    ['0.50', '0.00', '–']
    """
    return ["–" if x is None else _signed(f"{x:z.2f}") for x in values]


def shares(values: Sequence[float | None]) -> list[str]:
    """Percentages.

    >>> shares([0.951, 0.0004, None])
    ['95 %', '< 1 %', 'unknown']
    """
    return [UNKNOWN if x is None else "< 1 %" if 0.0 < x < 0.005 else f"{100 * x:.0f} %" for x in values]


def _three_digits(x: float) -> str:
    if x == 0.0:
        return "0"
    power = math.floor(math.log10(abs(x)))
    if -4 < power < 3:
        return _signed(f"{x:.{2 - power}f}")
    if power >= 3:
        return _signed(f"{x:,.0f}" if power < 7 else f"{x:.2e}".replace("e+0", "e").replace("e+", "e"))
    return _signed(f"{x:.2e}".replace("e-0", "e-"))


def _signed(text: str) -> str:
    """The text with a minus sign instead of a hyphen."""
    return text.replace("-", "−")
