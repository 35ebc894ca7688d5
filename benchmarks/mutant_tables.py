"""What docs/mutants.md shows of the record of benchmarks/mutants.py: mistakes by statements, and the other way round.

An entry of the record is one mistake: its name, where it was audited, the statements that must notice it, and those
that were asked and violated.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from benchmarks.makers import origin
from benchmarks.records import recorded

KINDS = {
    "scal-plus": "SCAL+",
    "c-scal-plus": "C-SCAL+",
    "kl-scal-plus": "KL-SCAL+",
    "balanced-kl-scal-plus": "Balanced KL-SCAL+",
    "c-kl-scal-plus": "C-KL-SCAL+",
    "ucrl2": "UCRL2",
    "ucrl2b": "UCRL2B",
    "ucrl3": "UCRL3",
    "scal": "SCAL",
    "tucrl": "TUCRL",
    "kl-ucrl": "KL-UCRL",
    "pmevi-dt": "PMEVI-DT",
    "psrl": "PSRL",
    "opt-psrl": "Opt-PSRL",
    "mbie-eb": "MBIE-EB",
    "count-bonus": "Count-based bonus",
    "ucbvi": "UCBVI",
    "optimistic-q": "Optimistic Q-learning",
    "epsilon-greedy-q": "Differential Q-learning",
    "fixed": "Fixed policies",
    "uccrl": "UCCRL",
    "imed-rl": "IMED-RL",
    "adaptive-kl-scal-plus": "Adaptive cells",
    "balanced-grids": "Balanced grids",
}
"""The agents that are not headed by their own names, and the order of the page."""
NOTHING_CAUGHT = """A statement that has caught nothing follows from others, cannot fail where it was asked, or is
a bound in which these mistakes leave room."""
RECORD = "mutants_statements"

Entry = dict[str, Any]


def mutants() -> str:
    """The text of the page below its introduction."""
    entries: list[Entry] = recorded(RECORD)["values"]
    by_agent: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(
        entries, key=lambda one: list(KINDS).index(one["agent"]) if one["agent"] in KINDS else len(KINDS)
    ):
        by_agent[entry["agent"]].append(entry)
    caught = sum(set(entry["noticed"]) <= set(entry["violated"]) for entry in entries)
    return "\n\n".join(
        [
            f"Of {len(entries)} mistakes, {caught} were noticed by the statement that names what is wrong.",
            *(matrix(KINDS.get(agent, agent), of_agent) for agent, of_agent in by_agent.items()),
            statements(entries),
            origin(RECORD) + earlier(entries),
        ]
    )


def earlier(entries: list[Entry]) -> str:
    """How many rows are of which earlier commits, if there are any."""
    here = recorded(RECORD)["commit"].rstrip("+")
    by_commit: dict[str, int] = defaultdict(int)
    for entry in entries:
        if entry["commit"].rstrip("+") != here:
            by_commit[entry["commit"].rstrip("+")] += 1
    return "".join(f" {n} mistakes were audited at commit {commit}." for commit, n in by_commit.items())


def matrix(title: str, entries: list[Entry]) -> str:
    """Mistakes by statements, for one agent; a column for each statement that noticed any."""
    asked = {name: None for entry in entries for name in entry["asked"]}
    columns = [name for name in asked if any(name in entry["violated"] for entry in entries)]
    lines = [
        "| mistake | in | " + " | ".join(f"`{name}`" for name in columns) + " |",
        "|---|---|" + ":-:|" * len(columns),
    ]
    for entry in entries:
        marks = [
            "" if name not in entry["violated"] else "**✗**" if name in entry["noticed"] else "✗" for name in columns
        ]
        lines.append(f"| {entry['name']} | {entry['where']} | " + " | ".join(marks) + " |")
    return f"## {title}\n\n" + "\n".join(lines)


def statements(entries: list[Entry]) -> str:
    """Statements by mistakes: what each has been seen to catch, and which have caught nothing yet."""
    asked = {name: None for entry in entries for name in entry["asked"]}
    lines = ["| statement | mistakes noticed | such as |", "|---|---:|---|"]
    for name in asked:
        noticed = [entry for entry in entries if name in entry["violated"]]
        named = sorted(noticed, key=lambda entry, name=name: name not in entry["noticed"])  # type: ignore[misc]
        lines.append(f"| `{name}` | {len(noticed)} | {'; '.join(entry['name'] for entry in named[:3])} |")
    return f"## What each statement has been seen to catch\n\n{NOTHING_CAUGHT}\n\n" + "\n".join(lines)
