"""The texts of measured blocks, each made from records in benchmarks/measured by a function of its own.

`benchmarks/tables.py` puts them into the pages.
"""

from __future__ import annotations

import datetime
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.markdown import tables_of, written, written_table
from benchmarks.records import recorded
from benchmarks.which_agent_answers import answers

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
    align = ["left", *["right"] * (len(columns) - 1)]
    return written_table({"columns": columns, "align": align, "rows": rows})


def day_of(date: str) -> str:
    day = datetime.date.fromisoformat(date)
    return f"{day.day} {day:%B %Y}"


def listed(words: list[str]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def loads(machines: Sequence[Mapping[str, Any]]) -> str:
    """The load of the machine, or the least and the largest of several measurements."""
    found = [machine["load"] for machine in machines]
    word = "" if max(found) <= machines[0]["cores"] else "the machine was busy: "
    return f"{word}load {' to '.join(dict.fromkeys(f'{load:.1f}' for load in (min(found), max(found))))}"


def command_of(facts: Sequence[Mapping[str, Any]]) -> str:
    """What to type to measure again; several parts of one benchmark in one command."""
    if "command" in facts[0]:
        return str(facts[0]["command"])
    parts = " ".join(dict.fromkeys(fact["part"] for fact in facts))
    return f"python benchmarks/{facts[0]['benchmark']}.py {parts}"


def origin(*names: str) -> str:
    """Where the numbers come from: command, date, machine and load."""
    facts = [recorded(name) for name in names]
    first = facts[0]
    when = listed([day_of(date) for date in sorted({fact["date"] for fact in facts})])
    command = f"`{command_of(facts)}`"
    if "taken_over" in first:
        told = first["taken_over"]
        text = f"{command}, on or before {when}; figures of commit {told['commit']}, before records were kept"
        text += f": {told['machine']}" if told["machine"] else ", machine and load unknown"
    else:
        machine = first["machine"]
        text = (
            f"{command}, {when}, gainful {first['gainful']}, Python {machine['python']}, {machine['cores']} cores of "
            f"an {machine['cpu']}; {loads([fact['machine'] for fact in facts])}"
        )
    return f"*{text}{later_rows(first)}.*"


def later_rows(facts: Mapping[str, Any]) -> str:
    """The rows that were measured on their own, by date."""
    by_date: dict[str, list[str]] = {}
    for row, own in facts.get("rows", {}).items():
        by_date.setdefault(f"{day_of(own['date'])}, {loads([own['machine']])}", []).append(row)
    return "".join(f"; {listed(rows)}: {when}" for when, rows in by_date.items())


def document(name: str) -> str:
    """The document of a record, or with NAME/2 its second table, and where it comes from."""
    record, _, number = name.partition("/")
    values = recorded(record)["values"]
    text = written_table(tables_of(values)[int(number) - 1]) if number else written(values)
    return f"{text}\n\n{origin(record)}"


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


def which_agent() -> str:
    """The agent for what the user knows."""
    return written_table(answers(tables_of(recorded("which_agent_measured")["values"])[0]))


# ---------------------------------------------------------------------- re-planning, experiments and the report


def scaling() -> str:
    """CPU time of planning per episode over S, by full sweeps and by local repairs."""
    values = recorded("replanning_scaling")["values"]
    titles = {"four rooms": "four rooms", "Garnet": "Garnet(S, 4, 8)"}
    rows = []
    for name, title in titles.items():
        for column, how in ((1, "full sweeps"), (2, "local repairs")):
            rows.append([f"{title}, {how}, µs", *(f"{point[column]:,.0f}" for point in values[name])])
    columns = ["S (A = 4)", *(power(point[0]) for point in values["Garnet"])]
    return f"{table(columns, rows)}\n\n{origin('replanning_scaling')}"


def overhead() -> str:
    """What an experiment adds to a tiny run."""
    names = {"scal-plus": "SCAL+ in RiverSwim", "psrl": "PSRL in RiverSwim"}
    columns = ["tiny runs of 1,000 steps, one worker", "driver", "worker", "`simulate` in a loop", "added to each run"]
    keys = ("driver_ms", "worker_ms", "loop_ms", "added_ms")
    values = recorded("experiments_overhead")["values"]
    rows = [[title, *(f"{values[name][key]:.1f} ms" for key in keys)] for name, title in names.items()]
    return f"{table(columns, rows)}\n\n{origin('experiments_overhead')}"


def store() -> str:
    """What 10,000 stored runs cost."""
    found = recorded("experiments_store")["values"]
    seconds, sizes = found["seconds"], {name: size / 1e3 for name, size in found["run_bytes"].items()}
    rows = [
        ["storing one run", f"{found['store_ms']:.1f} ms"],
        [
            "file",
            f"{found['file_megabytes']:.0f} MB; {sizes['scal-plus']:.1f} kB a run of SCAL+, {sizes['psrl']:.1f} kB one "
            "of PSRL",
        ],
        ["`results`", f"{seconds['results']:.1f} s, {found['rows'] / 1e6:.1f} million rows"],
        ["`summary`", f"{seconds['summary']:.1f} s"],
        ["`curves`", f"{seconds['curves']:.2f} s"],
        ["peak memory", f"{found['peak_megabytes']:.0f} MB, of which the table is {found['table_megabytes']:.0f} MB"],
    ]
    return f"{table(['', 'measured'], rows)}\n\n{origin('experiments_store')}"


def report() -> str:
    """What the report of 20,000 runs costs."""
    found = recorded("report_page")["values"]
    page = f"{found['page_megabytes']:.1f} MB, {found['bundle_megabytes']:.1f} MB of it plotly's bundle"
    rows = [
        ["CPU time from the import to the written file", f"{found['cpu_seconds']:.1f} s"],
        ["peak memory", f"{found['peak_megabytes']:.0f} MB"],
        ["page", page],
    ]
    return f"{table(['', 'measured'], rows)}\n\n{origin('report_page')}"


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
    peak = recorded("replanning_memory")["values"]["peak_bytes"] / 1e6
    what = "SCAL+ on Garnet(10⁵, 4, 8), 10⁷ steps, peak memory"
    claim(what, "under 1 GB", peak < 1000, f"{peak:.0f} MB", "replanning")
    added = {name: found["added_ms"] for name, found in recorded("experiments_overhead")["values"].items()}
    text = f"{added['scal-plus']:.1f} ms (SCAL+), {added['psrl']:.1f} ms (PSRL)"
    what = "time that an experiment adds to a tiny run"
    claim(what, "less than 10 ms", max(added.values()) < 10, text, "experiments")
    page = recorded("report_page")["values"]
    what = "report of 20 agents × 10 environments × 100 seeds, CPU time"
    claim(what, "at most 60 s", page["cpu_seconds"] <= 60, f"{page['cpu_seconds']:.1f} s", "report")
    claim("the same, peak memory", "at most 1000 MB", page["peak_megabytes"] <= 1000,
          f"{page['peak_megabytes']:.0f} MB", "report")  # fmt: skip
    return re.sub(r"---:", "---", table(["claim", "target", "measured", "script"], rows))


def planned(part: str, column: int, branching: str) -> str:
    """The least and the largest ratio in a column of a table of planning_cost.py, over the rows with that Γ."""
    found = tables_of(recorded(f"planning_cost_{part}")["values"])[0]
    ratios = []
    for row in found["rows"]:
        cells = dict(zip(found["columns"], row, strict=False))
        if cells["Γ"] == cells.get(branching, branching):
            ratios.append(float(row[column]))
    return f"{among(ratios)} at Γ = {branching}"


def other_figures() -> str:
    """What was measured without a target."""
    cold = ", ".join(planned("grid", 9, branching) for branching in ("2", "8", "S"))
    again = ", ".join(planned("warm", 8, branching) for branching in ("2", "144"))
    scaled = recorded("replanning_scaling")["values"]
    full = {
        name: f"{points[-1][1] / 1e3:.2g} ms against {points[-1][2] / 1e3:.2g} ms" for name, points in scaled.items()
    }
    stepped = recorded("learning_stepping")["values"]["act + observe"]
    read = recorded("experiments_store")["values"]
    rows = [
        ["a cold plan of SCAL over one of SCAL+", cold, "planning_cost"],
        ["the same, planning again in the middle of a run, S = 1000", again, "planning_cost"],
        [
            "planning per episode in four rooms, S = 10⁵: full sweeps against local repairs",
            full["four rooms"],
            "replanning",
        ],
        ["the same in a Garnet(10⁵, 4, 8)", full["Garnet"], "replanning"],
        ["`act` and `observe` from Python", f"{round(stepped, -3):,.0f} steps per second together", "learning"],
        [
            "reading 10,000 stored runs",
            f"{read['seconds']['results']:.1f} s for {read['rows'] / 1e6:.1f} million rows",
            "experiments",
        ],
    ]
    rows = [[what, found, f"`benchmarks/{script}.py`"] for what, found, script in rows]
    return re.sub(r"---:", "---", table(["what", "measured", "script"], rows))
