"""Failures that were found once, each by its name."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from gainful.atomic_files import write_file
from gainful.cli import live as commands
from gainful.errors import (
    AgentInUseError,
    ConflictError,
    DamagedJournalError,
    GainfulError,
    InvalidArgumentError,
    JournalError,
)
from gainful.live import Receipt, fit_log, is_live, open_agent, read_journal, recover
from gainful.live import folder as folder_module
from gainful.live import journal as journal_module
from gainful.live import records as records_module
from gainful.live.agent_config import make_agent
from gainful.live.decision_ledger import DecisionLedger, RecordedAnswer
from gainful.live.folder import UNSYNCED_FILE, Folder, lock_folder
from gainful.live.history_files import pack_history, unpack_history
from gainful.live.records import RecordKind, RecordLayout
from tests.live.lives import CONFIG, QUICK, A, S, bits, killed, lived, opened, reward_at, state_at, wait_for
from tests.live.test_failures import Failing, input_output, no_space

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.live.victim"])
POINTS: dict[str, Any] = {
    "agent": "c-scal-plus",
    "n_actions": 2,
    "span": 1.0,
    "lipschitz": 1.0,
    "holder": 1.0,
    "dim": 1,
}


# ---------------------------------------------------------------------- one folder, many who begin it


def test_the_loser_of_a_race_for_a_new_folder_deleted_the_winners(tmp_path: Path) -> None:
    from tests.live.victim import racer as run

    n = 4
    for i in range(25):
        start, over, answers = SERVER.Barrier(n), SERVER.Barrier(n), SERVER.Queue()
        path = tmp_path / f"agent {i}"
        racers = [SERVER.Process(target=run, args=(path, start, over, answers)) for _ in range(n)]
        for racer in racers:
            racer.start()
        found = [answers.get(timeout=60) for _ in racers]
        for racer in racers:
            racer.join(60)
        assert sorted(kind for kind, _ in found) == ["AgentInUseError"] * (n - 1) + ["won"], found
        assert not any("process 0" in message for _, message in found)
        with opened(path) as agent:
            assert agent.t == 2


def test_a_folder_that_another_process_withdraws_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder goes between its making and the lock, and the lock file between its opening and the lock."""
    from gainful import locks

    path, real, calls = tmp_path / "a", locks.try_to_lock, []

    def withdrawn(fd: int) -> None:
        calls.append(fd)
        if len(calls) < 3:
            (path / "lock").unlink()
        if len(calls) == 2:
            path.rmdir()
        real(fd)

    monkeypatch.setattr(locks, "try_to_lock", withdrawn)
    with opened(path, CONFIG) as agent:
        assert len(calls) == 3
        monkeypatch.undo()
        with pytest.raises(AgentInUseError):
            opened(path)
        agent.observe(0, 0, 0.5, 1)
    assert opened(path).t == 1


def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(JournalError, match="cannot be written"):
        opened(tmp_path / "link", CONFIG)


def test_a_writer_without_a_number_was_process_0(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    os.truncate(tmp_path / "lock", 0)
    with pytest.raises(AgentInUseError, match="in another process;") as refused:
        lock_folder(tmp_path)
    assert refused.value.pid == 0
    lock.release()


# ---------------------------------------------------------------------- acknowledged, and lost


def test_a_batch_too_large_to_be_read_back_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MAX_PAYLOAD", 2008)
    agent = opened(tmp_path / "a", CONFIG)
    with pytest.raises(InvalidArgumentError, match="101 rows were given, expected at most 100 at once"):
        agent.observe_many([0] * 101, [1] * 101, [0.5] * 101, [2] * 101)
    agent.observe_many([0] * 100, [1] * 100, [0.5] * 100, [2] * 100)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert again.t == 100
        with pytest.raises(InvalidArgumentError, match="expected at most 2008"):
            again.set_span(2.0, reason="x" * 3000)
        assert again.changes == ()
        lived(again, 110)
    layout = RecordLayout(0, 2)
    monkeypatch.setattr(records_module, "MAX_PAYLOAD", 8 + 44 * 3)
    assert layout.most_rows == 3
    with pytest.raises(InvalidArgumentError, match="expected at most"):
        layout.pack(3, 0, 1, 0, bytes(8 + 44 * 3 + 1))
    log = {"state": [0] * 20, "action": [0] * 20, "reward": [0.5] * 20, "next_state": [1] * 20}
    with opened(tmp_path / "b", CONFIG, history=log) as agent:
        assert (agent.t, agent.sequence) == (20, 4)


def test_a_record_that_was_never_synced_was_acknowledged_after_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.live.victim import killed_before_the_sync

    path = tmp_path / "a"
    opened(path, CONFIG).close()
    victim = SERVER.Process(target=killed_before_the_sync, args=(path,))
    victim.start()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    synced: list[str] = []

    def spy(fd: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        os.fsync(fd)

    monkeypatch.setattr(journal_module, "os", Failing(fsync=spy))
    agent = open_agent(path, fsync="record", planning="inline")
    assert agent.t == 1
    assert {p.name for _, p in Folder(path).segments()} <= set(synced)
    assert agent.observe(0, 0, 0.5, 1, request_id="r").repeated
    agent.close()


def test_a_record_whose_sync_failed_in_another_thread_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = open_agent(tmp_path / "a", CONFIG, fsync="record", planning="inline")
    lived(agent, 3)
    sync = journal_module.Journal.sync

    def fails(journal: journal_module.Journal) -> None:
        with pytest.raises(JournalError):
            sync(journal)

    def after_another_thread(journal: journal_module.Journal) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "os", Failing(fsync=input_output))
            other = threading.Thread(target=fails, args=(journal,))
            other.start()
            other.join()
        sync(journal)

    monkeypatch.setattr(journal_module.Journal, "sync", after_another_thread)
    with pytest.raises(JournalError, match="could not be made durable"):
        agent.observe(0, 0, 0.5, 1)
    assert agent.t == 3
    for call in (agent.sync, lambda: agent.observe(0, 0, 0.5, 1)):
        with pytest.raises(JournalError, match="could not be made durable"):
            call()
    agent.close()


def test_a_sync_that_overlaps_a_write_does_not_cover_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    agent.observe(0, 0, 0.5, 1)
    synced = []

    def slow(fd: int) -> None:
        synced.append(fd)
        if len(synced) == 1:
            agent.observe(0, 0, 0.5, 1)

    monkeypatch.setattr(journal_module, "os", Failing(fsync=slow))
    agent.sync()
    agent.sync()
    agent.sync()
    assert len(synced) == 2
    monkeypatch.undo()
    agent.close()


@pytest.mark.parametrize("marked", [True, False])
def test_after_a_failed_sync_a_second_one_was_taken_for_proof(
    marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segments are written anew before anything is acknowledged, be the mark in the folder or in this process."""
    path = tmp_path / "a"
    agent = open_agent(path, CONFIG, fsync="record", planning="inline", snapshot_every=10**6)
    lived(agent, 10)
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(fsync=input_output))
        if not marked:
            patch.setattr(folder_module, "os", Failing(open=no_space))
        with pytest.raises(JournalError, match="could not be made durable"):
            agent.observe(0, 0, 0.5, 1, request_id="r")
    agent.close()
    assert (path / UNSYNCED_FILE).exists() == marked
    if marked:
        monkeypatch.setattr(folder_module, "unsynced_folders", set())  # as for another process
    file = path / "journal-000001.log"
    before, data = file.stat().st_ino, file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "write_file", no_space)
        with pytest.raises(JournalError, match="No space left"):
            open_agent(path, **QUICK)
    assert file.stat().st_ino == before
    again = open_agent(path, **QUICK)
    assert file.stat().st_ino != before
    assert file.read_bytes() == data
    assert not Folder(path).unsynced
    assert again.observe(0, 0, 0.5, 1, request_id="r") == Receipt(again.sequence, True)
    again.close()
    inode = file.stat().st_ino
    opened(path).close()
    assert file.stat().st_ino == inode


def test_a_sync_that_fails_in_opening_refuses_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    lived(agent, 5)
    killed(agent)
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(fsync=input_output))
        with pytest.raises(JournalError, match="cannot be opened: Input/output error"):
            opened(tmp_path / "a")
    assert Folder(tmp_path / "a").unsynced
    with opened(tmp_path / "a") as again:
        assert again.t == 5


# ---------------------------------------------------------------------- whose outcome is it?


@pytest.mark.parametrize("points", [False, True])
def test_one_decision_without_an_outcome_kept_all_others_waiting(points: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, POINTS if points else CONFIG, max_pending=50)
    place = [0.1, 0.9] if points else [0, 5]
    orphan = agent.act(place[1])  # its process died
    for _ in range(100):
        a = int(agent.act(place[0]))
        agent.observe(place[0], a, 0.5, place[0])
        assert [p.decision_id for p in agent.pending] == [orphan.decision_id]
    before = bits(agent)
    killed(agent)
    with opened(path) as again:
        assert bits(again) == before
        assert [p.decision_id for p in again.pending] == [orphan.decision_id]


def test_the_oldest_of_equal_decisions_is_meant_and_recorded(tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    made = [agent.act(3) for _ in range(3)]
    assert len({int(d) for d in made}) == 1
    agent.observe(3, int(made[0]), 0.5, 1)
    agent.observe(3, made[2], 0.5, 1)  # a decision names itself
    agent.observe(3, made[2], 0.5, 1)  # and no other
    assert [p.decision_id for p in agent.pending] == [made[1].decision_id]
    frame = read_journal(tmp_path / "a")
    told = frame[frame.kind == "observation"].decision_id
    assert told.dropna().tolist() == [made[0].decision_id, made[2].decision_id]
    killed(agent)
    assert [p.decision_id for p in opened(tmp_path / "a").pending] == [made[1].decision_id]


# ---------------------------------------------------------------------- damage


def test_compaction_deleted_a_segment_whose_first_record_was_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6)
    lived(agent, 30)
    agent.snapshot()
    lived(agent, 60)
    file = path / "journal-000001.log"
    data = bytearray(file.read_bytes())
    data[50] ^= 1
    file.write_bytes(data)
    for _ in range(3):
        with pytest.raises(JournalError, match="first record is not whole"):
            agent.snapshot()
        lived(agent, agent.t + 5)
    assert file.read_bytes() == bytes(data)
    assert len(Folder(path).snapshots()) == 2
    agent.close()
    found = recover(path, tmp_path / "out")
    assert found.observations == 75
    assert found.gaps == [[1, 1]]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("empty", [True, False])
def test_damage_that_a_snapshot_covers_was_taken_for_a_torn_end(empty: bool, keep: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6, keep_history=keep)
    lived(agent, 5)
    last = agent.sequence
    agent.close()
    if not empty:
        (path / "journal-000002.log").unlink()
    file = path / "journal-000001.log"
    whole = file.read_bytes()
    for data in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-7]):
        file.write_bytes(data)
        with pytest.raises(DamagedJournalError, match="whole records end here") as error:
            opened(path)
        assert error.value.intact == last - 1
        assert file.read_bytes() == data
    layout = RecordLayout(Folder(path).read_description().salt)
    begin = layout.find(whole, 32, last - 1)
    assert 0 < len(whole) - begin < 60  # an observation
    file.write_bytes(whole[:begin])
    with pytest.raises(DamagedJournalError, match="whole records end here"):
        opened(path)
    found = recover(path, tmp_path / "out")
    assert found.observations == 5
    with opened(tmp_path / "out") as agent:
        lived(agent, 8)
    frame = read_journal(tmp_path / "out")
    assert (last in frame.sequence.tolist()) is False
    assert frame.sequence.max() > last


@pytest.mark.parametrize("keep", [True, False])
def test_a_torn_first_record_of_the_only_segment_is_dropped(keep: bool, tmp_path: Path) -> None:
    """A kill in the first write after a compaction that left this segment alone."""
    path = tmp_path / "a"
    agent = opened(path, CONFIG, keep_history=keep)
    for until in (5, 10):
        lived(agent, until)
        agent.snapshot()
    last = agent.sequence
    lived(agent, 11)
    killed(agent)
    *older, (_, file) = Folder(path).segments()
    if not keep:
        for _, other in older:
            other.unlink()
    else:
        journal_module.compact(
            Folder(path),
            Folder(path).read_description(),
            RecordLayout(Folder(path).read_description().salt),
            last,
            older[-1][0] + 1,
        )
    os.truncate(file, 40)
    with pytest.warns(UserWarning, match=f"unfinished record, number {last + 1};"):
        again = open_agent(path, **QUICK)
    assert again.t == 10
    lived(again, 12)
    again.close()
    assert opened(path).t == 12


# ---------------------------------------------------------------------- requests


def test_abandon_and_change_took_no_request_id(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=4)
    first, second = agent.act(1), agent.act(2)
    gone = agent.abandon(first.decision_id, request_id="x")
    changed = agent.change(span=2.0, bonus_scale=0.5, reason="why", request_id="y")
    span = agent.set_span(2.5, request_id="z")
    scale = agent.set_bonus_scale(0.25, request_id="w")
    assert agent.abandon(agent.act(0).decision_id) == Receipt(agent.sequence, False)
    n = len(agent.changes)
    for _ in range(3):
        assert agent.abandon(first.decision_id, request_id="x") == Receipt(gone.sequence, True)
        again = agent.change(bonus_scale=0.5, span=2, reason="why", request_id="y")
        assert again == Receipt(changed.sequence, True)
        assert agent.set_span(2.5, request_id="z") == Receipt(span.sequence, True)
        assert agent.set_bonus_scale(0.25, request_id="w") == Receipt(scale.sequence, True)
        for name in "xy":
            with pytest.raises(ConflictError, match="request_id"):
                agent.abandon(second.decision_id, request_id=name)
        with pytest.raises(ConflictError, match="request_id"):
            agent.change(span=2.0, bonus_scale=0.5, reason="other", request_id="y")
        with pytest.raises(ConflictError, match="request_id"):
            agent.set_span(3.0, request_id="z")
        assert len(agent.changes) == n
        assert [p.decision_id for p in agent.pending] == [second.decision_id]
        killed(agent)
        agent = opened(path, snapshot_every=4)
    assert read_journal(path).request_id.dropna().tolist() == ["x", "y", "z", "w"]
    agent.close()


def test_an_id_that_no_decision_has_with_a_request_was_a_raw_error(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        for wrong in (-3, 0, 1 << 63, 10**40):
            with pytest.raises(GainfulError, match="no decision"):
                agent.report(wrong, 0.5, 1, request_id="x")
            with pytest.raises(GainfulError, match="no decision"):
                agent.abandon(wrong, request_id="x")


# ---------------------------------------------------------------------- what is promised


def test_foreign_observations_did_not_void_the_guarantee(tmp_path: Path) -> None:
    config = {**CONFIG, "bonus_scale": 1.0}
    log = {"state": [0, 4], "action": [1, 1], "reward": [0.0, 1.0], "next_state": [1, 1]}
    own = opened(tmp_path / "own", config, snapshot_every=7)
    lived(own, 20)
    a = int(own.act(state_at(20)))
    own.observe(state_at(20), a, 0.5, state_at(21))
    assert own.guarantee.holds
    killed(own)
    own = opened(tmp_path / "own")
    assert own.guarantee.holds
    own.observe_many([0, 1], [0, 0], [0.5, 0.5], [1, 2])
    own.act(0)
    own.observe(5, 0, 0.5, 2)  # nobody of here chose it
    for _ in range(2):
        assert not own.guarantee.holds
        assert own.guarantee.reason_void == "3 observations were not outcomes of its own decisions"
        own.snapshot()
        killed(own)
        own = opened(tmp_path / "own")
    own.close()
    with opened(tmp_path / "history", config, history=log) as agent:
        assert agent.guarantee.reason_void == "2 observations were not outcomes of its own decisions"
    with opened(tmp_path / "fitted", fit_log(log, config)) as agent:
        assert "began with 2 observations that are not known to be outcomes of its own" in agent.guarantee.reason_void


def test_a_crash_between_decision_and_outcome_keeps_the_guarantee_of_a_plain_loop(tmp_path: Path) -> None:
    path, config = tmp_path / "a", {**CONFIG, "bonus_scale": 1.0}
    agent = opened(path, config)
    lived(agent, 3)
    agent.act(state_at(3))
    killed(agent)
    agent = opened(path)
    while agent.t < 60:
        t = agent.t
        a = int(agent.act(state_at(t)))  # a plain int: the oldest such decision is taken, which the crash left
        agent.observe(state_at(t), a, reward_at(t, a), state_at(t + 1))
    assert agent.n_pending == 1
    assert agent.guarantee.holds
    agent.close()


# ---------------------------------------------------------------------- snapshots


def test_copying_the_memory_of_requests_held_up_a_call() -> None:
    """Its bytes are kept packed: copying 10,000 of each takes less than a tenth of packing them."""
    layout = RecordLayout(1)
    memory = DecisionLedger(layout, 10_000, 10_000)
    rng = np.random.default_rng(0)
    names: list[bytes] = []
    for i in range(1, 35_001):
        memory.decision_made(i, int(rng.integers(S)), int(rng.integers(A)), i)
        if i % 2:
            memory.closed(i, i + 1, layout.outcome.pack(0.5, 3))
        names.append(f"request {i}".encode())
        memory.answered(names[-1], RecordedAnswer(i, i, -1, 2))
    assert len(memory.requests) == len(memory.reported) == len(memory.pending) == 10_000
    assert memory.requests.get(names[-10_000]) == RecordedAnswer(25_001, 25_001, -1, 2)
    assert names[-10_001] not in memory.requests
    kept = memory.to_arrays()
    other = DecisionLedger(layout, 10_000, 10_000)
    began = time.thread_time()
    other.from_arrays(kept)
    unpacked = time.thread_time() - began
    took = []
    for _ in range(5):
        began = time.thread_time()
        again = other.to_arrays()
        took.append(time.thread_time() - began)
    assert min(took) < unpacked / 10
    assert {k: v.tobytes() for k, v in again.items()} == {k: v.tobytes() for k, v in kept.items()}
    assert other.oldest(3, 1) == memory.oldest(3, 1) > 0
    memory.answered(names[-1], RecordedAnswer(1, 2, 3, 1))  # the same name again: one entry
    assert len(memory.requests) == 10_000
    assert memory.requests.get(names[-1]) == RecordedAnswer(1, 2, 3, 1)


def test_a_snapshot_that_cannot_be_begun_failed_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = opened(tmp_path / "a", CONFIG, snapshot_every=5)
    lived(agent, 2)
    wait_for("gainful-snapshot")

    def fails(*_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        lived(agent, 30)
        assert len(agent.notices) == 1
        assert "can't start new thread" in agent.notices[0]
        with pytest.raises(JournalError, match="no snapshot was made"):
            agent.snapshot()
        agent.close()
    with opened(tmp_path / "a") as again:
        assert again.t == 30
        again.snapshot()


def test_joining_on_a_full_disk_kept_the_parts_and_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        lived(agent, 40)
    description = Folder(path).read_description()
    layout, folder = RecordLayout(description.salt), Folder(path)
    data = [layout.pack(int(RecordKind.PLAN), 0, i, 0, bytes(16)) for i in range(1, 4)]
    for i, raw in enumerate(data, start=1):
        folder.history(i, i).write_bytes(pack_history(raw))
    room = [1]

    def full_after_one(file: Path, contents: bytes) -> None:
        if not room:
            no_space()
        room.pop()
        write_file(file, contents)

    monkeypatch.setattr(journal_module, "write_file", full_after_one)
    with pytest.raises(OSError, match="No space"):
        journal_module.join_histories(folder)
    assert [p.name for *_, p in folder.histories()] == ["history-1-1.gz", "history-2-3.gz"]
    assert not folder.unfinished_files()
    monkeypatch.undo()
    journal_module.join_histories(folder)
    assert sorted(p.name for p in path.glob("history*")) == ["history-1-3.gz"]
    assert unpack_history(folder.history(1, 3).read_bytes()) == b"".join(data)


# ---------------------------------------------------------------------- what is accepted


def test_names_that_no_folder_can_have(tmp_path: Path) -> None:
    for name, kind in (("a\0b", InvalidArgumentError), ("x" * 300, JournalError)):
        with pytest.raises(kind):
            opened(Path(f"{tmp_path}/{name}"), CONFIG)
        with pytest.raises(GainfulError):
            read_journal(f"{tmp_path}/{name}")
        with pytest.raises(GainfulError):
            recover(f"{tmp_path}/{name}", tmp_path / "out")
        assert not is_live(f"{tmp_path}/{name}")


def test_numbers_that_are_text_or_truth_values(tmp_path: Path) -> None:
    nan = float("nan")
    text: Any = "0.5"
    with opened(tmp_path / "a", CONFIG) as agent, warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong: list[Any] = [
            lambda: agent.act(True),
            lambda: agent.act(np.True_),
            lambda: agent.observe(True, 0, 0.5, 1),
            lambda: agent.observe(0, True, 0.5, 1),
            lambda: agent.observe(0, 0, 0.5, False),
            lambda: agent.observe(0, 0, text, 1),
            lambda: agent.observe(0, 0, text.encode(), 1),
            lambda: agent.observe_many([0, 1], [0, 0], ["0.5", "1"], [1, 1]),
            lambda: agent.observe_many([0, 1], [0, 0], np.array([0.5, "1"], dtype=object), [1, 1]),
            lambda: agent.observe_many(["0"], [0], [0.5], [1]),
            lambda: agent.observe_many([True], [0], [0.5], [1]),
            lambda: agent.observe_many([0, nan], [0, 0], [0.5, 0.5], [1, 1]),
        ]
        for call in wrong:
            with pytest.raises(InvalidArgumentError):
                call()
        assert agent.sequence == 0


@pytest.mark.parametrize("points", [False, True])
def test_minus_zero_was_another_outcome_than_zero(points: bool, tmp_path: Path) -> None:
    config = {**POINTS, "low": -1.0, "high": 1.0} if points else CONFIG
    with opened(tmp_path / "a", config) as agent:
        d = agent.act(0)
        zero, minus = (0.0, -0.0) if points else (0, 0)
        first = agent.report(d.decision_id, -0.0, minus, request_id="x")
        assert agent.report(d.decision_id, 0.0, zero) == Receipt(first.sequence, True)
        assert agent.report(d.decision_id, 0.0, zero, request_id="x") == Receipt(first.sequence, True)
        many = agent.observe_many([zero], [0], [-0.0], [minus], request_id="m")
        assert agent.observe_many([minus], [0], [0.0], [zero], request_id="m") == Receipt(many.sequence, True)
        if points:
            agent.act(-0.0)
            agent.observe(0.0, agent.pending[0].action, 0.5, 0.5)
            assert agent.n_pending == 0


def test_recovering_an_agent_in_use_is_warned_of(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command("recover")(commands.recover)
    app.command("nothing")(lambda: None)
    with opened(tmp_path / "a", CONFIG) as agent:
        lived(agent, 5)
        done = CliRunner().invoke(app, ["recover", str(tmp_path / "a"), str(tmp_path / "one"), "--json"])
        assert "warning" in done.stderr
        assert "open in another process" in done.stderr
        assert '"in_use": true' in done.stdout
        lived(agent, 8)
    assert not recover(tmp_path / "a", tmp_path / "two").in_use


def test_a_plain_agent_and_the_durable_one_agree_on_other_numbers(tmp_path: Path) -> None:
    plain, _ = make_agent(CONFIG)
    with opened(tmp_path / "a", CONFIG) as agent:
        both: list[Any] = [plain, agent]
        for one in both:
            one.observe(np.int64(1), np.uint8(0), np.float32(0.5), 2.0)
            one.observe(1, 0, True, 2)
            one.observe(1, 0, -0.0, 2)
        assert bits(agent) == bits(plain)


def test_a_parameter_that_is_missing_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="config lacks 'horizon'") as caught:
        open_agent(tmp_path / "a", {"agent": "pmevi-dt", "n_states": 3, "n_actions": 2})
    assert caught.value.expected == "a number as 'horizon'"
