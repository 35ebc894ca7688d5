"""Power cuts at random moments lose no agent, no key and no archived agent that the service has acknowledged.

30 cuts in `make test-all`, 1,000 in `make soak`; GAINFUL_CUTS sets their number.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gainful.atomic_files import make_folder
from gainful.serve.keys import hashed
from gainful.serve.problem_details import ProblemError
from tests.power_cuts.recording import CUTS, CUTS_PER_RECORDING, Cut, Recording
from tests.power_cuts.service import SERVICE, opened, wanted


class Promised:
    """What had been answered at a cut, and what was being asked for."""

    def __init__(self, marks: list[dict[str, Any]], later: list[dict[str, Any]]) -> None:
        self.admin = next((mark["admin"] for mark in marks if "admin" in mark), None)
        self.keys: dict[str, set[str]] = {}
        self.steps: dict[str, int] = {}
        self.archived: set[str] = set()
        for mark in marks:
            name = mark.get("agent", "")
            if "key" in mark:
                self.keys[name] = {mark["key"]}
            elif "t" in mark:
                self.steps[name] = mark["t"]
            elif "archived" in mark:
                self.archived.add(mark["archived"])
                self.keys.pop(mark["archived"])
        self.next = next(iter(later), {})
        if "key" in self.next and self.next["agent"] in self.keys:
            self.keys[self.next["agent"]].add(self.next["key"])


async def check_service(folder: Path, promised: Promised) -> str:
    """Open the service, look at everything, and go on; what became of the request under way."""
    registry, key, warning = opened(folder, "off")
    try:
        assert (warning, registry.warnings) == ("", [])
        assert promised.admin in (None, hashed(key))
        leaving = promised.next.get("archived")
        for name, keys in promised.keys.items():
            if name == leaving and name not in registry.records:
                continue
            assert registry.records[name].key in keys
            assert await registry.slot(name).call(lambda agent: agent.t) >= promised.steps.get(name, 0)
        for name in promised.archived:
            assert name not in registry.records
            with pytest.raises(ProblemError, match="archived"):
                await registry.make(wanted(name))
        trying = promised.next.get("agent") if "key" in promised.next else None
        if trying is not None and trying not in promised.keys:
            begun = trying in registry.records
            await registry.make(wanted(trying))  # the client sends it again
            return "sent again, and was there" if begun else "sent again"
        await registry.make(wanted("another"))
        return "as acknowledged"
    finally:
        await registry.close()


def check_nothing_is_lost(cut: Cut, later: list[dict[str, Any]]) -> str:
    promised = Promised(cut.marks, later)
    if not (cut.folder / SERVICE).exists():
        assert promised.admin is None
        make_folder(cut.folder / SERVICE)
    for file in (cut.folder / SERVICE).glob("admin.key*"):
        file.chmod(0o600)  # permissions are not recorded
    return asyncio.run(check_service(cut.folder / SERVICE, promised))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(1, CUTS // CUTS_PER_RECORDING)))
def test_power_cuts_lose_no_key_and_no_agent_of_a_service(seed: int, place: Path) -> None:
    made = Recording(place / "recorded", "service", seed=seed, steps=20)
    marks = [mark for _, mark in made.marks]
    found = Counter[str]()
    for cut in made.cuts(min(CUTS, CUTS_PER_RECORDING), place, seed):
        found[check_nothing_is_lost(cut, marks[len(cut.marks) :])] += 1
    print(f"{sum(found.values())} cuts in {len(made.events)} events: {dict(found)}", flush=True)
