"""Power cuts at random moments lose nothing that a durable agent has acknowledged.

30 cuts in `make test`, 1,000 of each kind in `make soak`; GAINFUL_CUTS sets their number.
"""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gainful.errors import ConflictError, DamagedJournalError
from gainful.live import DurableAgent, JournalWarning, open_agent, read_journal, recover
from gainful.live.folder import SEGMENT_HEADER_SIZE, Folder
from gainful.live.records import RECORD_HEAD, TWO_NUMBERS
from tests.live.lives import CONFIG, QUICK, killed, lived
from tests.power_cuts.recording import CUTS, CUTS_PER_RECORDING, Cut, Recording
from tests.power_cuts.workloads import AGENT, digest


def after(cut: Cut) -> DurableAgent:
    """The agent on the disk that the cut left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JournalWarning)
        return open_agent(cut.folder / AGENT, CONFIG, **QUICK)


def check_nothing_is_lost(cut: Cut, states: dict[int, str], least: int) -> int:
    """The agent opens, has everything acknowledged, is to the bit what it was, and lives on; the number of records."""
    promised = [mark for mark in cut.marks if "sequence" in mark]
    least = promised[-1]["sequence"] if promised else least
    with after(cut) as agent:
        found = agent.sequence
        assert found >= least
        if found in states:
            assert digest(agent) == states[found]
        if promised and promised[-1]["request"]:
            with pytest.raises(ConflictError):  # the request is known, so nothing else may have its id
                agent.observe(0, 2, 0.123, 1, request_id=promised[-1]["request"])
        lived(agent, agent.t + 2)
        t = agent.t
    frame = read_journal(cut.folder / AGENT)
    assert not frame.sequence.diff().gt(1).any()
    with open_agent(cut.folder / AGENT, **QUICK) as again:
        assert (again.t, again.notices) == (t, [])
    return found - least


@pytest.mark.parametrize("seed", range(max(1, CUTS // CUTS_PER_RECORDING)))
def test_power_cuts_lose_nothing_acknowledged(seed: int, place: Path) -> None:
    """Every second recording begins on a disk that a power cut left."""
    options: dict[str, Any] = {"steps": 40, "fsync": "record", "snapshot_every": 9, "keep_history": seed % 3 != 2}
    made, least = Recording(place / "recorded", "live", seed=seed, **options), 0
    if seed % 2:
        cut = next(made.cuts(1, place, seed))
        with after(cut) as agent:
            least = agent.sequence
        made = Recording(place / "again", "live", start=cut.folder, seed=seed + 1000, **options)
    states = {mark["after"]: mark["state"] for _, mark in made.marks if "state" in mark}
    found = Counter[str]()
    for cut in made.cuts(min(CUTS, CUTS_PER_RECORDING), place, seed):
        more = check_nothing_is_lost(cut, states, least)
        found["as acknowledged" if more == 0 else "and what was not acknowledged"] += 1
    print(f"{sum(found.values())} cuts in {len(made.events)} events: {dict(found)}")


@pytest.mark.slow
@pytest.mark.parametrize("fsync", ["off", 3])
def test_without_a_sync_per_record_a_power_cut_leaves_a_beginning_or_an_error_that_says_so(
    fsync: Any, place: Path
) -> None:
    options: dict[str, Any] = {"steps": 40, "snapshot_every": 29, "seed": 1}
    made = Recording(place / "recorded", "live", fsync=fsync, **options)
    states = {mark["after"]: mark["state"] for _, mark in made.marks if "state" in mark}
    begun = next(at for at, _ in made.marks)
    found = Counter[str]()
    for cut in made.cuts(CUTS, place, 1):
        try:
            agent = after(cut)
        except DamagedJournalError:
            saved = cut.folder / "saved"
            recover(cut.folder / AGENT, saved)
            agent = open_agent(saved, **QUICK)
            found["recovered"] += 1
        else:
            found["opened"] += 1
        with agent:
            assert {agent.sequence, agent.sequence + 1} & states.keys() or cut.event < begun  # + 1: a plan comes first
            if agent.sequence in states:
                assert digest(agent) == states[agent.sequence]
            lived(agent, agent.t + 2)
    print(f"fsync={fsync}: {dict(found)}")
    assert found["opened"]


def test_a_plan_lost_while_the_decision_written_with_it_was_there_looked_like_damage(place: Path) -> None:
    path = place / "agent"
    agent = open_agent(path, CONFIG, **QUICK)
    agent.act(0)
    killed(agent)
    plan = RECORD_HEAD.size + TWO_NUMBERS.size
    segment = Folder(path).segments()[-1][1]
    data = bytearray(segment.read_bytes())
    data[SEGMENT_HEADER_SIZE : SEGMENT_HEADER_SIZE + plan] = bytes(plan)
    segment.write_bytes(data)
    shutil.copytree(path, place / "torn")
    with (
        pytest.warns(JournalWarning, match="unfinished record, number 1;"),
        open_agent(place / "torn", **QUICK) as left,
    ):
        assert (left.sequence, left.pending) == (0, ())


def test_a_plan_damaged_before_further_records_is_damage(place: Path) -> None:
    path = place / "agent"
    agent = open_agent(path, CONFIG, **QUICK)
    agent.act(0)
    agent.observe(0, 1, 0.5, 1)
    killed(agent)
    segment = Folder(path).segments()[-1][1]
    data = bytearray(segment.read_bytes())
    data[SEGMENT_HEADER_SIZE + 9] ^= 1
    segment.write_bytes(data)
    with pytest.raises(DamagedJournalError, match="intact records follow"):
        open_agent(path, **QUICK)
