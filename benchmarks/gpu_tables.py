"""The tables of docs/gpu.md, from the records of `gpu.py` and `gpu_instructions.py`; `tables.py` puts them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.makers import origin, power, table
from benchmarks.records import recorded

Row = dict[str, Any]


def block(name: str, columns: list[str], cells: Callable[[Row], list[str]]) -> str:
    """A table with a row for each of the record's, and where it comes from, with the card's name."""
    values = recorded(name)["values"]
    shown = table(columns, [cells(row) for row in values["rows"]])
    return f"{shown}\n\n{values['card']}. {origin(name)}"


def speed() -> str:
    def cells(row: Row) -> list[str]:
        rate = row["runs"] * row["steps"] / row["seconds"] / 1e9
        return [row["what"], f"{row['runs']:,}", power(row["steps"]), f"{row['seconds']:.1f}", f"{rate:.3g} · 10⁹"]

    return block("gpu_speed", ["", "runs", "steps each", "seconds", "steps per second"], cells)


def profile() -> str:
    every = ("listing", "planning", "loading", "stepping", "counting")
    kinds = [name for name in every if any(row.get(name) for row in recorded("gpu_profile")["values"]["rows"])]

    def cells(row: Row) -> list[str]:
        rate = row["runs"] * row["steps"] / row["stepping"] / 1e9
        times = [f"{row[name]:.2f} s" if row.get(name) else "" for name in kinds]
        return [row["what"], f"{row['runs']:,}", power(row["steps"]), *times, f"{rate:.3g} · 10⁹"]

    columns = ["", "runs", "steps each", *kinds, "steps per second of stepping"]
    return block("gpu_profile", columns, cells)


def instructions() -> str:
    def cells(row: Row) -> list[str]:
        counts = [f"{row['per_step']:,.0f}", f"{row['lanes']:.0f}", f"{row['per_plan']:,}", f"{row['sweeps']:.1f}"]
        return [row["what"], f"{row['runs']:,}", power(row["steps"]), *counts]

    heads = ["", "runs", "steps each", "of a thread per step", "threads active of 32", "of a warp per plan", "sweeps"]
    rows = recorded("gpu_instructions_counts")["values"]
    return f"{table(heads, [cells(row) for row in rows])}\n\n{origin('gpu_instructions_counts')}"


def planners() -> Callable[[Row], list[str]]:
    """The cells of a row of a planner, on the GPU and on the CPU."""

    def cells(row: Row) -> list[str]:
        places = f"within {power(row['window'])}" if row["window"] else "anywhere"
        threads = "one thread" if row["threads"] == 1 else f"{row['threads']} threads"
        each = 1e3 * row["cpu"] / row["cpu_sweeps"]
        return [
            f"`{row['planner']}`, {power(row['states'])} states, next states {places}",
            f"{row['transitions'] / 1e8:.3g} · 10⁸",
            f"{row['gpu']:.3g} s, {row['gpu_sweeps']} sweeps",
            f"{row['cpu']:.1f} s, {row['cpu_sweeps']} sweeps of {each:,.0f} ms ({threads})",
            f"{row['cpu'] / row['gpu']:.0f}",
            "the same bits" if row["same_bits"] else "other bits",
        ]

    return cells


PLANNER_COLUMNS = ["", "transitions", "GPU", "CPU", "ratio", "plans"]


def solve() -> str:
    return block("gpu_solve", PLANNER_COLUMNS, planners())


def one_thread() -> str:
    return block("gpu_one_thread", PLANNER_COLUMNS, planners())


def sweeps() -> str:
    return block("gpu_sweeps", PLANNER_COLUMNS, planners())


def traces() -> str:
    both = all(row["gpu"] == row["cpu"] for row in recorded("gpu_traces")["values"]["rows"])

    def cells(row: Row) -> list[str]:
        means = [f"{mean:,.2f} ± {error:,.2f}" for mean, error in (row["gpu"], row["cpu"])]
        counts = [f"{row[name]:,}" for name in ("equal", "bits")]
        return [row["what"], f"{row['runs']:,}", power(row["steps"]), *counts, *means[: 1 if both else 2]]

    columns = ["", "runs", "steps each", "rewards and episodes equal", "all bits of all plans equal"]
    return block("gpu_traces", columns + (["mean regret, both"] if both else ["mean regret, GPU", "CPU"]), cells)


def million() -> str:
    def cells(row: Row) -> list[str]:
        digits = max(0, 5 - len(f"{row['mean']:.0f}"))
        error = f"{row['error']:.2g}" if row["error"] < 10 else f"{row['error']:.0f}"
        distribution = [row["least"], *row["quantiles"], row["largest"]]
        return [power(row["steps"]), f"{row['mean']:,.{digits}f}", error, *(f"{x:,.0f}" for x in distribution)]

    columns = ["steps", "mean", "standard error", "least", "0.1 %", "5 %", "median", "95 %", "99.9 %", "largest"]
    return block("gpu_million", columns, cells)
