"""The measured tables of the docs, made from what benchmarks recorded in benchmarks/measured.

    python benchmarks/tables.py [--check]

A page has pairs of marks, `<!-- NAME: begin -->` and `<!-- NAME: end -->`; what is between them is replaced. Each
table ends with its command, date and machine. `--check` changes nothing and fails if a page differs from the records.
"""

from __future__ import annotations

import datetime
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import recorded

DOCS = Path(__file__).parent.parent / "docs"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


# ---------------------------------------------------------------------- how things are written


def power(n: float) -> str:
    """10⁵ for 100,000, 3·10⁴ for 29,588, and 300 as it is."""
    exponent = len(f"{n:.0f}") - 1
    lead = round(n / 10**exponent)
    lead, exponent = (1, exponent + 1) if lead == 10 else (lead, exponent)
    if exponent < 3:
        return f"{n:.0f}"
    return ("" if lead == 1 else f"{lead}·") + "10" + str(exponent).translate(SUPERSCRIPTS)


def significant(x: float, digits: int = 2) -> str:
    """As many significant digits, without an exponent: 0.0019, 1.9, 37, 1,234."""
    if x >= 10 ** (digits - 1):
        return f"{x:,.0f}"
    text = f"{x:.{digits}g}"
    return text if "e" not in text else f"{x:.6f}".rstrip("0")


def among(values: list[float], digits: int = 2) -> str:
    """One value, or the least and the largest."""
    low, high = significant(min(values), digits), significant(max(values), digits)
    return low if low == high else f"{low}–{high}"


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A table whose numbers are to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def origin(*names: str) -> str:
    """Where the numbers come from: command, date, machine."""
    facts = [recorded(name) for name in names]
    first = facts[0]
    parts = " ".join(dict.fromkeys(fact["part"] for fact in facts))
    days = sorted({datetime.date.fromisoformat(fact["date"]) for fact in facts})
    when = " and ".join(f"{day.day} {day:%B %Y}" for day in days)
    busy = max(fact["machine"]["load"] for fact in facts)
    machine = first["machine"]
    load = f"; the machine was busy (a load of up to {busy:.0f})" if busy > machine["cores"] else ""
    return (
        f"*`python benchmarks/{first['benchmark']}.py {parts}`, {when}, gainful {first['gainful']}, Python "
        f"{machine['python']}, {machine['cores']} cores of an {machine['cpu']}{load}.*"
    )


# ---------------------------------------------------------------------- planning

PROBLEMS = {
    "slowly mixing": "slowly mixing, S = 10⁴, Γ = 8, next states within 200 (three instances)",
    "dense": "dense, S = 1000",
    "Garnet 100000": "uniform Garnet, S = 10⁵, Γ = 8",
    "Garnet 1000000": "uniform Garnet, S = 10⁶, Γ = 8",
}


def peer_ratios(name: str) -> list[float]:
    """How many times longer the best peer took, per instance."""
    found = []
    for row in recorded("planning_peers")["values"]:
        if row["problem"] == name:
            others = [t for peer, t in row["seconds"].items() if peer != "gainful"]
            found.append(min(others) / row["seconds"]["gainful"])
    return found


def peers() -> str:
    values = recorded("planning_peers")["values"]
    names = list(dict.fromkeys(peer for row in values for peer in row["seconds"]))
    rows = []
    for problem, title in PROBLEMS.items():
        instances = [row for row in values if row["problem"] == problem]
        cells = []
        for peer in names:
            times = [row["seconds"][peer] for row in instances if peer in row["seconds"]]
            cells.append(f"{among(times)} s" if times else instances[0]["failed"].get(peer, "not installed"))
        rows.append([title, *cells, among(peer_ratios(problem))])
    shown = table(["problem (A = 4)", *names, "best peer / gainful"], rows)
    return f"{shown}\n\n{origin('planning_peers')}"


def memory() -> str:
    found = recorded("planning_memory")["values"]
    return (
        f"The Garnet with 10⁶ states and 3.2·10⁷ transitions takes {found['beyond_bytes'] / 1e6:.0f} MB in addition to "
        f"the input arrays ({found['input_bytes'] / 1e6:.0f} MB).\n\n{origin('planning_memory')}"
    )


def sweep_ratio(row: Mapping[str, Any]) -> float:
    """A sweep over the slower of the two bare loops."""
    ns = row["ns_per_transition"]
    return float(ns["sweep"] / max(ns["gather"], ns["stream"]))


def sweep() -> str:
    values = recorded("planning_sweep")["values"]
    threads = {row["S"]: row["seconds"]["1"] / row["seconds"]["2"] for row in recorded("planning_threads")["values"]}
    rows = [
        ["sweep, ns per transition", *(f"{row['ns_per_transition']['sweep']:.2f}" for row in values)],
        ["ratio to the slower bare loop", *(f"{sweep_ratio(row):.2f}" for row in values)],
        ["one thread over two, wall time", *(f"{threads[r['S']]:.2f}" if r["S"] in threads else "" for r in values)],
    ]
    shown = table(["S (A = 4, Γ = 8)", *(power(row["S"]) for row in values)], rows)
    return f"{shown}\n\n{origin('planning_sweep', 'planning_threads')}"


# ---------------------------------------------------------------------- learning


def rates(record: Mapping[str, Any]) -> tuple[float, float, float]:
    """Steps per second: bare loop with separate arrays, the best bare loop, and SCAL+."""
    found = record["steps_per_second"]
    ours = next(rate for name, rate in found.items() if not name.startswith("bare"))
    best = max(rate for name, rate in found.items() if name.startswith("bare"))
    return found["bare, separate arrays"], best, ours


def learners() -> dict[str, tuple[float, float, float]]:
    many = recorded("learning_many")["values"]
    return {
        "RiverSwim-6, 10⁷ steps": rates(recorded("learning_riverswim")["values"]),
        "Garnet(200, 4, 8), 10⁷ steps": rates(recorded("learning_garnet")["values"]),
        "RiverSwim-6, `simulate_many`, 8 seeds, one thread": rates(many[0]),
        "Garnet(200, 4, 8), `simulate_many`, 8 seeds, one thread": rates(many[1]),
    }


def learning() -> str:
    columns = [
        "",
        "bare, separate arrays",
        "bare, one record per pair",
        "SCAL+, whole call",
        "ratio to the best bare loop",
    ]
    rows = [
        [name, *(f"{rate / 1e6:.0f} M" for rate in found), f"{found[2] / found[1]:.2f}"]
        for name, found in learners().items()
    ]
    stepped = recorded("learning_stepping")["values"]["act + observe"]
    return (
        f"{table(columns, rows)}\n\n`act` and `observe` from Python together: {round(stepped, -3):,.0f} steps per "
        "second, re-planning excluded.\n\n"
        f"{origin('learning_riverswim', 'learning_garnet', 'learning_many', 'learning_stepping')}"
    )


def continuous() -> str:
    rows = []
    for found in recorded("continuous_riverswim")["values"]:
        scale = "" if found["bonus_scale"] == 1 else f", `bonus_scale={found['bonus_scale']:g}`"
        rows.append([f"{found['cells']} cells{scale}", f"{found['ratio']:.2f}"])
    shown = table(["C-SCAL+ on continuous RiverSwim, whole `simulate` call", "ratio to the bare loop"], rows)
    loop = among([found["ratio"] for found in recorded("continuous_gymnasium")["values"]])
    return (
        f"{shown}\n\nThe Gymnasium loop with C-SCAL+ takes {loop} times as long as `env.step` alone (CartPole and "
        f"Mountain Car, with and without their wrappers).\n\n{origin('continuous_riverswim', 'continuous_gymnasium')}"
    )


def priors() -> str:
    """Expected regret of PSRL: mean ± one standard error, and the largest."""

    def cell(lost: list[float]) -> str:
        mean, error = statistics.fmean(lost), statistics.stdev(lost) / len(lost) ** 0.5
        worst = max(lost)
        text = f"{mean:,.{0 if mean >= 10 else 1}f} ± {error:,.{0 if error >= 1 else 1}f}"
        return f"{text} ({worst:,.{0 if worst >= 10 else 1}f})"

    values = recorded("psrl_priors_regret")["values"]
    columns = list(next(iter(values.values())))
    rows = [[problem, *(cell(found[prior]) for prior in columns)] for problem, found in values.items()]
    return f"{table(['problem', *columns], rows)}\n\n{origin('psrl_priors_regret').replace('.py regret`', '.py`')}"


# ---------------------------------------------------------------------- claims


def verdict(holds: bool, text: str) -> str:
    return text if holds else f"**missed**: {text}"


def claims() -> str:
    """Every claim that has a record, with its target."""
    rows = []

    def claim(what: str, target: str, holds: bool, found: str, script: str) -> None:
        rows.append([what, target, verdict(holds, found), f"`benchmarks/{script}.py`"])

    for problem, least in (("slowly mixing", 20), ("dense", 2), ("Garnet 100000", 1.5), ("Garnet 1000000", 1.5)):
        found = peer_ratios(problem)
        what = f"{PROBLEMS[problem]}: times faster than the best peer, to a bracket of 1e-6"
        claim(what, f"at least {least:g}", min(found) >= least, among(found), "planning")
    beyond = recorded("planning_memory")["values"]["beyond_bytes"]
    what = "memory beyond the input arrays, S = 10⁶, 3.2·10⁷ transitions"
    claim(what, "under 1 GB", beyond < 1e9, f"{beyond / 1e6:.0f} MB", "planning")
    ratios = [sweep_ratio(row) for row in recorded("planning_sweep")["values"]]
    text = ", ".join(f"{ratio:.2f}" for ratio in ratios) + " for S = 10³ … 10⁶"
    claim("one Bellman sweep over the slower of two bare loops", "at most 1.6", max(ratios) <= 1.6, text, "planning")
    threads = [row["seconds"]["1"] / row["seconds"]["2"] for row in recorded("planning_threads")["values"]]
    text = " and ".join(f"{ratio:.2f}" for ratio in threads)
    claim("full sweeps, one thread over two, wall time, S ≥ 10⁵", "at least 1.7", min(threads) >= 1.7, text, "planning")
    for (name, (_, bare, ours)), least in zip(learners().items(), (0.7, 0.6, 1.2), strict=False):
        text = f"{ours / bare:.2f} ({ours / 1e6:.0f} M steps per second)"
        claim(f"SCAL+ against the best bare loop, {name}", f"at least {least}", ours / bare >= least, text, "learning")
    cells = recorded("continuous_riverswim")["values"]
    text = ", ".join(f"{c['ratio']:.2f} ({c['cells']} cells, scale {c['bonus_scale']:g})" for c in cells)
    holds = min(c["ratio"] for c in cells) >= 0.5
    claim("C-SCAL+ on continuous RiverSwim against a bare loop", "at least 0.5", holds, text, "continuous")
    loop = [found["ratio"] for found in recorded("continuous_gymnasium")["values"]]
    claim("Gymnasium loop with C-SCAL+ over `env.step` alone", "less than 3", max(loop) < 3, among(loop), "continuous")
    large = recorded("replanning_large")["values"]["seconds"]
    text = f"{large['local']:.1f} s local, {large['full']:.1f} s full"
    what = "SCAL+ on Garnet(10⁴, 4, 8), 10⁶ steps, CPU time on one core"
    claim(what, "at most 40 s", max(large.values()) <= 40, text, "replanning")
    return re.sub(r"---:", "---", table(["claim", "target", "measured", "script"], rows))


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "speed.md": {"peers": peers, "memory": memory, "sweep": sweep, "learning": learning, "continuous": continuous},
    "reference/agents.md": {"priors": priors},
    "reference/performance.md": {"claims": claims},
}
"""What is between which marks of which page."""


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The text of a page with its measured parts made anew."""
    for name, make in parts.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the marks of {name!r} are missing or appear twice")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{make()}\n\n{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    differ = []
    for page, parts in PAGES.items():
        file = DOCS / page
        old = file.read_text("utf-8")
        new = filled(old, parts)
        if new != old:
            differ.append(page)
            if "--check" not in sys.argv:
                file.write_text(new, encoding="utf-8")
    print("\n".join(differ) or "every page has what was measured")
    if differ and "--check" in sys.argv:
        sys.exit("these pages differ from the records; run: make tables")


if __name__ == "__main__":
    main()
