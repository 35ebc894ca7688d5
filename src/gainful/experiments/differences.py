"""What changed between a stored sweep and a spec, in a few words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gainful.experiments.configuration import Configuration


@dataclass(frozen=True)
class Differences:
    """What changed between a stored sweep and a spec."""

    added: tuple[Configuration, ...]
    """Runs of the spec that are not stored."""
    missing: tuple[dict[str, Any], ...]
    """Stored runs that are not in the spec."""
    lines: tuple[str, ...]
    """The same in words; empty if every stored run is still asked for."""

    @property
    def is_superset(self) -> bool:
        """Whether every stored run is still asked for."""
        return not self.missing


def differences(old: Iterable[Mapping[str, Any]], new: Iterable[Configuration]) -> Differences:
    """Compare the canonical forms of a stored sweep with the runs of a spec."""
    stored = {_dumped(one): dict(one) for one in old}
    wanted = {_dumped(one.canonical()): one for one in new}
    added = [key for key in wanted if key not in stored]
    missing = [key for key in stored if key not in wanted]
    lines = _explained([stored[k] for k in missing], [json.loads(k) for k in added], stored, wanted) if missing else []
    return Differences(tuple(wanted[k] for k in added), tuple(stored[k] for k in missing), tuple(lines))


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


MAX_SHOWN_DIFFERENCES = 12
"""The most differences that an error lists."""
MAX_COMPARED = 64  # runs of one agent, environment and seed among which the most similar one is looked for


def _explained(
    missing: list[dict[str, Any]], added: list[dict[str, Any]], stored: dict[str, Any], wanted: dict[str, Configuration]
) -> list[str]:
    present = {
        "environment": {one.environment for one in wanted.values()},
        "agent": {one.agent for one in wanted.values()},
    }
    seeds = {one.seed for one in wanted.values()}
    candidates: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in added:
        candidates.setdefault((one["environment"], one["agent"], one["seed"]), []).append(one)
    counts: dict[str, int] = {}
    gone_seeds: dict[int, int] = {}

    def say(text: str) -> None:
        counts[text] = counts.get(text, 0) + 1

    for one in missing:
        gone = next((kind for kind in ("agent", "environment") if one[kind] not in present[kind]), None)
        if gone is not None:
            say(f"{gone} '{one[gone]}' is gone")
        elif one["seed"] not in seeds:
            gone_seeds[one["seed"]] = gone_seeds.get(one["seed"], 0) + 1
        else:
            near = candidates.get((one["environment"], one["agent"], one["seed"]), [])
            changes, i = min(
                ((_changes(one, other), i) for i, other in enumerate(near[:MAX_COMPARED])),
                key=lambda found: len(found[0]),
                default=(None, 0),
            )
            del near[i : i + 1]  # one new run stands for one old one
            if changes is None:
                say(f"agent '{one['agent']}' in '{one['environment']}' is gone, or some of its parameters")
            for change in changes or ():
                say(change)
    lines = []
    for text, n in counts.items():
        runs = f"all {n:,} runs" if n == len(stored) else f"{n:,} run{'s' if n > 1 else ''}"
        lines.append(f"{text} for {runs}" if " -> " in text else f"{text} ({runs})")
    if gone_seeds:
        listed = _ranges(sorted(gone_seeds))
        n = sum(gone_seeds.values())
        lines.append(f"seed{'s' if len(gone_seeds) > 1 else ''} {listed} gone ({n:,} run{'s' if n > 1 else ''})")
    more = len(lines) - MAX_SHOWN_DIFFERENCES
    return lines if more <= 0 else [*lines[:MAX_SHOWN_DIFFERENCES], f"and {more:,} more differences"]


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Each thing that differs, as `old -> new`."""
    found = []
    if old["horizon"] != new["horizon"]:
        found.append(f"horizon {old['horizon']:,} -> {new['horizon']:,}")
    elif old["checkpoints"] != new["checkpoints"]:
        found.append(f"checkpoints {len(old['checkpoints'])} -> {len(new['checkpoints'])} steps")
    for kind in ("environment", "agent"):
        before, after = old[f"{kind}_parameters"], new[f"{kind}_parameters"]
        for name in dict.fromkeys([*before, *after]):
            if before.get(name, "auto") != after.get(name, "auto"):
                was, now = (shown(values.get(name, "auto")) for values in (before, after))
                found.append(f"{kind} '{old[kind]}': {name} {was} -> {now}")
    return found


def _ranges(numbers: list[int]) -> str:
    """Consecutive numbers as ranges: 5, 6, 7, 9 is "5 … 7, 9"."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and parts[-1][-1] == n - 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    listed = [str(p[0]) if len(p) == 1 else f"{p[0]} … {p[-1]}" for p in parts]
    return ", ".join(listed[:5] + (["…"] if len(listed) > 5 else []))


def shown(value: Any) -> str:
    """A value as labels show it: 1.0 is 1."""
    if isinstance(value, float) and value == math.floor(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)
