"""Journals that are torn, damaged, incomplete or in use, and what is done about each."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gainful.cli.live import export_journal
from gainful.errors import AgentInUseError, DamagedJournalError, InvalidArgumentError, JournalError
from gainful.live import JournalWarning, export, is_live, open_agent, read_journal, recover
from gainful.live import snapshots as snapshots_module
from gainful.live.folder import SEGMENT_HEADER_SIZE, Folder
from gainful.live.records import RecordLayout, read_records
from tests.live.lives import CONFIG, QUICK, bits, killed, lived, opened, reward_at, state_at


def made(path: Path, until: int = 12, **options: Any) -> list[int]:
    """An agent that lived and was killed, all of its life in one segment; where its records begin."""
    agent = opened(path, CONFIG, **{"snapshot_every": 10**6, **options})
    lived(agent, until)
    killed(agent)
    return boundaries(path)


def segment(path: Path) -> Path:
    return Folder(path).segments()[-1][1]


def boundaries(path: Path) -> list[int]:
    """Where the records of the last segment begin, and the end."""
    description = Folder(path).read_description()
    layout = RecordLayout(description.salt, description.dim)
    data, at, found = segment(path).read_bytes(), SEGMENT_HEADER_SIZE, [SEGMENT_HEADER_SIZE]
    first = layout.record_at(data, at)
    if first is not None:
        for record in read_records(layout, data, at, first.sequence).records:
            at += layout.size(record)
            found.append(at)
    return found


# ---------------------------------------------------------------------- a torn end


def test_a_torn_last_record_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    *_, begin, end = made(tmp_path / "a")
    whole = segment(tmp_path / "a").read_bytes()
    assert len(whole) == end
    for cut in range(begin, end + 1):
        path = tmp_path / f"cut {cut}"
        shutil.copytree(tmp_path / "a", path)
        segment(path).write_bytes(whole[:cut])
        if cut in (begin, end):
            agent = opened(path)
            assert agent.notices == []
        else:
            with pytest.warns(JournalWarning, match="unfinished record, number"):
                agent = open_agent(path, **QUICK)
            assert len(agent.notices) == 1
        assert agent.t == (12 if cut == end else 11)
        if agent.pending:
            agent.report(agent.pending[0].decision_id, reward_at(11, agent.pending[0].action), state_at(12))
        lived(agent, 20)
        agent.close()
        undisturbed = opened(path)
        assert undisturbed.t == 20
        undisturbed.close()


@pytest.mark.parametrize("tail", [bytes(4096), b"\xff" * 100, os.urandom(3000), b"\x01"])
def test_whatever_hangs_on_behind_the_last_record_is_dropped(tail: bytes, tmp_path: Path) -> None:
    made(tmp_path / "a")
    with open(segment(tmp_path / "a"), "ab") as file:
        file.write(tail)
    assert len(read_journal(tmp_path / "a")[lambda f: f.kind == "observation"]) == 12
    with pytest.warns(JournalWarning, match=f"last {len(tail)} bytes") as warned:
        agent = open_agent(tmp_path / "a", **QUICK)
    assert warned[0].filename == __file__  # where open_agent was called
    assert agent.t == 12
    agent.close()


def test_a_torn_batch_is_dropped_entirely(tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    before = segment(tmp_path / "a").stat().st_size
    agent.observe_many([0] * 100, [1] * 100, [0.5] * 100, [2] * 100)
    killed(agent)
    size = segment(tmp_path / "a").stat().st_size
    for cut in (before + 1, (before + size) // 2, size - 1):
        path = tmp_path / f"cut {cut}"
        shutil.copytree(tmp_path / "a", path)
        os.truncate(segment(path), cut)
        with pytest.warns(JournalWarning):
            torn = open_agent(path, **QUICK)
        assert torn.t == 0
        torn.close()


# ---------------------------------------------------------------------- damage before the end


def test_a_changed_byte_anywhere_before_the_last_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    places = made(path, 6)
    whole, file = segment(path).read_bytes(), segment(path)
    for at in range(0, places[-2], 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        intact = max(0, sum(begin <= at for begin in places) - 1)
        with pytest.raises(DamagedJournalError, match=r"gainful recover") as error:
            opened(path)
        assert error.value.file == str(file)
        if at >= SEGMENT_HEADER_SIZE:
            assert error.value.intact == intact
            assert error.value.offset == places[intact]
        with pytest.raises(DamagedJournalError):
            read_journal(path)
    file.write_bytes(whole)
    with opened(path) as agent:
        assert agent.t == 6


def test_a_record_that_is_missing_or_there_twice_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    p = made(path, 6)
    whole, file = segment(path).read_bytes(), segment(path)
    for changed in (
        whole[: p[3]] + whole[p[4] :],
        whole[: p[4]] + whole[p[3] :],
        whole[: p[3]] + whole[p[4] : p[5]] + whole[p[3] : p[4]] + whole[p[5] :],
        whole + whole[p[-2] :],
    ):
        file.write_bytes(changed)
        with pytest.raises(DamagedJournalError, match="was expected"):
            opened(path)


def test_records_of_another_agent_are_not_taken(tmp_path: Path) -> None:
    made(tmp_path / "a", 6)
    made(tmp_path / "b", 8)
    shutil.copy(segment(tmp_path / "b"), segment(tmp_path / "a"))
    with pytest.raises(DamagedJournalError, match="header"):
        opened(tmp_path / "a")


def test_a_missing_segment_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "compact", lambda *_: None)
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6)
    first_snapshot = (path / "snapshot-0.npz").read_bytes()
    lived(agent, 10)
    agent.snapshot()
    lived(agent, 20)
    agent.snapshot()
    lived(agent, 30)
    killed(agent)
    for _, snapshot in Folder(path).snapshots():
        snapshot.unlink()
    (path / "snapshot-0.npz").write_bytes(first_snapshot)
    (one, two, three) = (p for _, p in Folder(path).segments())
    kept = two.read_bytes()
    two.unlink()
    with pytest.raises(DamagedJournalError):
        opened(path)
    two.write_bytes(kept)
    os.truncate(two, len(kept) - 5)
    with pytest.raises(DamagedJournalError):
        opened(path)
    two.write_bytes(kept)
    first = one.read_bytes()
    one.unlink()
    with pytest.raises(DamagedJournalError):
        opened(path)
    one.write_bytes(first)
    three.unlink()
    opened(path).close()


def test_a_description_or_snapshot_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made(path, 6)
    text = (path / "agent.json").read_text()
    for wrong in ("", "{", "[]", '{"format": "gainful-live", "version": 99}', text.replace('"dim"', '"dom"')):
        (path / "agent.json").write_text(wrong)
        with pytest.raises(JournalError):
            opened(path)
        with pytest.raises(JournalError):
            opened(path, CONFIG)
    (path / "agent.json").unlink()
    with pytest.raises(JournalError, match=r"agent.json is missing|no durable agent"):
        opened(path, CONFIG)
    found = recover(path, tmp_path / "saved")
    assert found.observations == 6
    (path / "agent.json").write_text(text)
    snapshot = path / "snapshot-0.npz"
    data = snapshot.read_bytes()
    inside = data.index(b"agent_remaining.npy") + 19 + 128 + 5  # name, header, some bytes of the array
    for wrong_bytes in (b"", data[:100], data[:inside] + b"x" + data[inside + 1 :]):
        snapshot.write_bytes(wrong_bytes)
        with pytest.raises(JournalError):
            opened(path)
        with pytest.raises(JournalError, match="no snapshot can be read"):
            recover(path, tmp_path / "nothing")
    snapshot.unlink()
    with pytest.raises(DamagedJournalError, match="no snapshot"):
        opened(path)


# ---------------------------------------------------------------------- recovery


def test_recovery_saves_what_lies_before_the_damage_and_lists_what_lies_behind(tmp_path: Path) -> None:
    path = tmp_path / "a"
    places = made(path, 20)
    file = segment(path)
    data = bytearray(file.read_bytes())
    hit = 15
    data[places[hit] + 30] ^= 1
    file.write_bytes(data)
    before = {p.name: p.read_bytes() for p in path.iterdir()}
    found = recover(path, tmp_path / "out")
    assert {p.name: p.read_bytes() for p in path.iterdir()} == before
    assert found.sequence == hit
    assert found.lost == [[hit + 1, hit + 1]]
    assert found.salvaged == len(places) - 1 - hit - 1
    assert len(found.problems) == 1
    salvaged = (tmp_path / "out" / "salvaged.csv").read_text().splitlines()
    assert len(salvaged) == 1 + found.salvaged
    with opened(tmp_path / "out") as agent:
        assert agent.t == found.observations
        assert agent.sequence == hit
        if agent.pending:
            t, waiting = agent.t, agent.pending[0]
            agent.report(waiting.decision_id, reward_at(t, waiting.action), state_at(t + 1))
        lived(agent, 40)
        plain = opened(tmp_path / "b", CONFIG)
        lived(plain, 40)
        assert bits(agent) == bits(plain)
        plain.close()
    assert len(read_journal(tmp_path / "out")[lambda f: f.kind == "observation"]) == 40


def test_recovery_of_a_damaged_history_keeps_the_whole_state(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG, snapshot_every=30) as agent:
        lived(agent, 100)
        agent.snapshot()
        lived(agent, 110)
        agent.snapshot()
        state = bits(agent)
    _, _, file = Folder(path).histories()[0]
    raw = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(raw[:500] + b"\0" * 40 + raw[540:]))
    opened(path).close()
    with pytest.raises(DamagedJournalError, match="recover"):
        read_journal(path)
    found = recover(path, tmp_path / "out")
    assert found.observations == 110
    assert found.gaps
    assert not found.lost
    with opened(tmp_path / "out") as agent:
        assert bits(agent) == state
        lived(agent, 130)
        agent.snapshot()
    frame = read_journal(tmp_path / "out")
    assert frame.sequence.is_monotonic_increasing
    missing = sum(end - begin + 1 for begin, end in found.gaps)
    assert frame.sequence.nunique() == frame.sequence.max() - missing
    file.write_bytes(gzip.compress(raw)[: len(raw) // 8])
    assert recover(path, tmp_path / "out 2").observations == 110


def test_recovery_from_the_snapshot_before_where_the_last_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        lived(agent, 50)
        agent.snapshot()
        lived(agent, 60)
        state = bits(agent)
    newest = Folder(path).snapshots()[0][1]
    newest.write_bytes(newest.read_bytes()[:-200])
    found = recover(path, tmp_path / "out")
    assert found.observations == 60
    with opened(tmp_path / "out") as agent:
        assert bits(agent) == state


def test_recovery_needs_a_new_place(tmp_path: Path) -> None:
    made(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="exists already"):
        recover(tmp_path / "a", tmp_path / "a")
    with pytest.raises(JournalError, match="no such folder"):
        recover(tmp_path / "b", tmp_path / "c")
    assert not (tmp_path / "c").exists()


# ---------------------------------------------------------------------- one writer


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        lived(agent, 3)
        with pytest.raises(AgentInUseError, match="this process, by another object"):
            opened(tmp_path / "a")
        code = f"from gainful.live import open_agent; open_agent({str(tmp_path / 'a')!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert f"is open for writing in process {os.getpid()}" in done.stderr
        lived(agent, 5)
        assert len(read_journal(tmp_path / "a")[lambda f: f.kind == "observation"]) == 5
    opened(tmp_path / "a").close()


def test_a_forked_child_neither_writes_nor_holds_the_lock(tmp_path: Path) -> None:
    code = f"""
import os, sys, time, warnings
from gainful.errors import JournalError
from gainful.live import open_agent
from tests.live.lives import CONFIG, lived
agent = open_agent({str(tmp_path / "a")!r}, CONFIG, fsync="off", planning="inline")
lived(agent, 3)
child = os.fork()
if child == 0:
    try:
        agent.act(0)
    except JournalError as error:
        print("refused" if "forked" in str(error) else error, flush=True)
    time.sleep(60)
time.sleep(0.5)
print(child, flush=True)
os._exit(0)
"""
    import signal

    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "refused\n"
    child = int(process.stdout.readline())
    process.wait(60)
    try:
        os.kill(child, 0)  # the child is still there
        with opened(tmp_path / "a") as agent:
            assert agent.t == 3
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


# ---------------------------------------------------------------------- history and compaction


def test_compaction_keeps_every_record_in_few_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        for until in range(5, 205, 5):
            lived(agent, until)
            agent.snapshot()
        records = agent.sequence
    names = sorted(p.name for p in path.iterdir())
    assert len([n for n in names if n.startswith("history")]) <= 8
    assert len([n for n in names if n.startswith("journal")]) <= 3
    assert len([n for n in names if n.startswith("snapshot")]) == 2
    frame = read_journal(path)
    assert frame.sequence.tolist() == list(range(1, records + 1))
    assert frame[frame.kind == "observation"].step.tolist() == list(range(1, 201))


def test_without_history_old_records_go(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG, keep_history=False) as agent:
        for until in (50, 100, 150):
            lived(agent, until)
            agent.snapshot()
        state = bits(agent)
    assert not list(path.glob("history*"))
    with opened(path) as again:
        assert bits(again) == state
        lived(again, 160)
    assert len(read_journal(path)) > 0


def test_leftovers_of_a_kill_are_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        lived(agent, 20)
        agent.snapshot()
        lived(agent, 40)
        agent.snapshot()
    whole = read_journal(path)
    (_, last, file), *_ = Folder(path).histories()
    (path / f"history-1-{last - 1}.gz").write_bytes(file.read_bytes())  # joined, and not yet deleted
    (path / ".snapshot-9.npz.abcdef.tmp").write_bytes(b"half")
    assert read_journal(path).equals(whole)
    opened(path).close()
    assert not list(path.glob(".*.tmp"))
    assert not (path / f"history-1-{last - 1}.gz").exists()
    assert read_journal(path).equals(whole)


def test_a_segment_that_is_history_already_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG)
    lived(agent, 20)
    kept = segment(path).read_bytes()
    agent.snapshot()
    lived(agent, 30)
    agent.snapshot()
    agent.close()
    whole = read_journal(path)
    (path / "journal-000001.log").write_bytes(kept)
    assert read_journal(path).equals(whole)
    with opened(path) as again:
        assert again.t == 30
        lived(again, 40)
        again.snapshot()
    assert read_journal(path).iloc[: len(whole)].equals(whole)


def test_the_table_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    import threading

    agent = opened(tmp_path / "a", CONFIG, snapshot_every=5)
    over = threading.Event()
    problems: list[BaseException] = []

    def read() -> None:
        while not over.is_set():
            try:
                before = agent.t
                frame = read_journal(tmp_path / "a")
                assert (frame.kind == "observation").sum() >= before
                assert frame.sequence.tolist() == list(range(1, len(frame) + 1))
            except BaseException as error:
                problems.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    lived(agent, 1500)
    over.set()
    reader.join()
    assert not problems, problems
    agent.close()


def test_export_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        agent.act(1, request_id="Größe")
        lived(agent, 10)
        agent.set_span(2.0, reason="why, not")
    rows = len(read_journal(path))
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        assert export(path, tmp_path / name) == rows
    frame = pd.read_parquet(tmp_path / "t.parquet")
    for column, values in read_journal(path).items():
        assert frame[column].dropna().tolist() == values.dropna().tolist()
    text = pd.read_csv(tmp_path / "t.csv")
    assert np.array_equal(text.reward.dropna(), frame.reward.dropna())
    assert "Größe" in set(text.request_id.dropna())
    with pytest.raises(InvalidArgumentError, match=r"\.csv"):
        export(path, tmp_path / "t.xlsx")
    with pytest.raises(JournalError, match="no durable agent"):
        export(tmp_path / "nothing", tmp_path / "u.csv")
    assert is_live(path)
    assert not is_live(tmp_path)
    export_journal(path, tmp_path / "u.csv", None, False)
    assert "rows" in capsys.readouterr().err


def test_a_journal_of_another_machine_is_told_of(tmp_path: Path) -> None:
    """A decision that this version would not make stands, and is told of."""
    path = tmp_path / "a"
    agent = opened(path, CONFIG)
    lived(agent, 5)
    d = agent.act(0)
    killed(agent)
    description = Folder(path).read_description()
    layout = RecordLayout(description.salt, description.dim)
    data = segment(path).read_bytes()
    begin = boundaries(path)[-2]
    record = layout.record_at(data, begin)
    assert record is not None
    other = (int(d) + 1) % 3
    payload = record.payload[:-4] + other.to_bytes(4, "little")
    changed = layout.pack(record.kind, 0, record.sequence, record.time, payload)
    segment(path).write_bytes(data[:begin] + changed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        agent = open_agent(path, **QUICK)
    assert any("decisions differently" in str(w.message) for w in told)
    assert agent.pending[0].action == other
    agent.close()
