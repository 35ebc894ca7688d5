"""Writes that fail or are interrupted: the agent is as it was before, or says that it must be opened again."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.errors import JournalError, PlanningError
from gainful.live import journal as journal_module
from gainful.live import open_agent, read_journal
from tests.live.lives import CONFIG, QUICK, bits, journal_size, killed, lived, opened, reward_at, state_at, wait_for


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """The system refuses to let a file grow further, in the middle of a write if need be."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def same_as_undisturbed(agent: Any, tmp_path: Path) -> bool:
    with opened(tmp_path / f"undisturbed {agent.t}", CONFIG) as other:
        lived(other, agent.t)
        return bits(other) == bits(agent)


@pytest.mark.parametrize("room", [0, 1, 27, 28, 40, 55])
def test_a_record_that_finds_no_room_has_not_happened(room: int, tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG, snapshot_every=10**6)
    lived(agent, 20)
    d = agent.act(state_at(20))
    before, size = bits(agent), journal_size(agent.path)
    with files_no_longer_than(size + room):
        for _ in range(2):
            with pytest.raises(
                JournalError, match=r"cannot be written at byte \d+: File too large; nothing was recorded"
            ):
                agent.observe(state_at(20), d, reward_at(20, int(d)), state_at(21))
    assert journal_size(agent.path) == size
    assert bits(agent) == before
    assert [p.decision_id for p in agent.pending] == [d.decision_id]
    agent.observe(state_at(20), d, reward_at(20, int(d)), state_at(21))
    lived(agent, 40)
    assert same_as_undisturbed(agent, tmp_path)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert again.t == 40


def test_an_episode_begun_by_a_decision_that_finds_no_room_is_journaled_later(tmp_path: Path) -> None:
    """The plan is made before the write; what is written next tells of it first, or a replay would go astray."""
    agent = opened(tmp_path / "a", CONFIG, snapshot_every=10**6)
    lived(agent, 5)
    for _ in range(40):
        t = agent.t
        before = len(agent.episodes)
        with files_no_longer_than(journal_size(agent.path) + 10), pytest.raises(JournalError):
            agent.act(state_at(t))
        planned = len(agent.episodes) > before
        if planned and t % 2:
            agent.observe(0, 0, 0.5, 1)  # not the decision that failed
        lived(agent, agent.t + 1)
    found = bits(agent)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert bits(again) == found


def test_a_batch_that_finds_no_room_has_not_happened(tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    size = journal_size(agent.path)
    with files_no_longer_than(size + 5000), pytest.raises(JournalError):
        agent.observe_many([0] * 1000, [1] * 1000, [0.5] * 1000, [2] * 1000)
    assert agent.t == 0
    assert journal_size(agent.path) == size
    agent.observe_many([0] * 1000, [1] * 1000, [0.5] * 1000, [2] * 1000)
    assert agent.t == 1000
    agent.close()


def test_a_snapshot_that_finds_no_room_is_told_of_and_made_later(tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG, snapshot_every=10)
    lived(agent, 1)
    with files_no_longer_than(4000):
        lived(agent, 20)
        wait_for("gainful-snapshot")
        assert any("snapshot" in notice and "failed" in notice for notice in agent.notices)
        with pytest.raises(JournalError, match="no snapshot was made"):
            agent.snapshot()
        lived(agent, 30)
        wait_for("gainful-snapshot")
        assert len(agent.notices) == 1
    assert not list((tmp_path / "a").glob(".*.tmp"))
    lived(agent, 60)
    agent.snapshot()
    assert (tmp_path / "a" / f"snapshot-{agent.sequence}.npz").exists()
    assert same_as_undisturbed(agent, tmp_path)
    agent.close()


def test_a_folder_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path / "a", CONFIG).close()
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(open=input_output))
        with pytest.raises(JournalError, match="cannot be opened: Input/output error"):
            opened(tmp_path / "a")
    opened(tmp_path / "a").close()


def test_a_folder_that_finds_no_room_is_not_begun(tmp_path: Path) -> None:
    for size in (0, 100, 2000):
        with files_no_longer_than(size), pytest.raises(JournalError, match="cannot be created"):
            opened(tmp_path / "a", CONFIG)
        assert not (tmp_path / "a").exists()
    opened(tmp_path / "a", CONFIG).close()


class Failing:
    """`os` as the journal sees it, with one call that fails."""

    def __init__(self, **calls: Any) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name, getattr(os, name))


def no_space(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def input_output(*_: Any) -> Any:
    raise OSError(errno.EIO, "Input/output error")


def test_after_a_failed_fsync_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = opened(tmp_path / "a", CONFIG, fsync="record")
    lived(agent, 10)
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(fsync=input_output))
        with pytest.raises(JournalError, match="could not be made durable: Input/output error"):
            agent.observe(0, 0, 0.5, 1)
    for _ in range(2):
        with pytest.raises(JournalError, match="open it again"):
            agent.observe(0, 0, 0.5, 1)
    assert agent.t == 10
    assert "durable" in agent.status()["trouble"]
    agent.close()
    with opened(tmp_path / "a") as again:
        assert again.t in (10, 11)  # as the message says


def test_a_failed_fsync_in_the_background_is_told_to_the_next_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    agent = opened(tmp_path / "a", CONFIG, fsync=1)
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(fsync=input_output))
        agent.observe(0, 0, 0.5, 1)
        for _ in range(1000):
            if agent.status()["trouble"]:
                break
            time.sleep(0.005)
        with pytest.raises(JournalError, match="could not be made durable"):
            agent.observe(0, 0, 0.5, 1)
    agent.close()


def test_a_part_that_cannot_be_cut_off_again_stops_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    lived(agent, 10)
    half = [True]

    def write_half(fd: int, data: bytes) -> int:
        if half:
            half.pop()
            return os.write(fd, data[:20])
        return int(no_space())

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", Failing(write=write_half, ftruncate=input_output))
        with pytest.raises(JournalError, match="No space left on device"):
            agent.observe(0, 0, 0.5, 1)
    with pytest.raises(JournalError, match="could not be cut off again"):
        agent.observe(0, 0, 0.5, 1)
    agent.close()
    with pytest.warns(UserWarning, match="unfinished record"):
        again = open_agent(tmp_path / "a", **QUICK)
    assert again.t == 10
    assert same_as_undisturbed(again, tmp_path)
    again.close()


@pytest.mark.parametrize("where", ["write", "apply", "plan"])
def test_an_interrupt_anywhere_leaves_memory_and_journal_agreed(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the write and what follows from it: the next call reads the journal again."""
    agent = opened(tmp_path / "a", CONFIG)
    lived(agent, 17)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    for i in range(5):
        with monkeypatch.context() as patch:
            if where == "write":

                def write(fd: int, data: bytes) -> int:
                    os.write(fd, data[: len(data) // 2])
                    raise KeyboardInterrupt

                patch.setattr(journal_module, "os", Failing(write=write))
            elif where == "apply":
                patch.setattr(gf.SCALPlus, "learn", interrupted)
            else:
                patch.setattr(gf.SCALPlus, "plan", interrupted)
                if i == 0:
                    agent.set_bonus_scale(0.3)  # the next decision makes a plan
            t = agent.t
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                for _ in range(200):
                    lived(agent, agent.t + 1)
        agent.predict(0)
        t = agent.t
        if agent.pending:
            (owed,) = agent.pending
            agent.report(owed.decision_id, reward_at(t, owed.action), state_at(t + 1))
        lived(agent, t + 7)
    frame = read_journal(tmp_path / "a")
    assert frame.sequence.tolist() == list(range(1, len(frame) + 1))
    assert frame[frame.kind == "observation"].step.tolist() == list(range(1, agent.t + 1))
    assert same_as_undisturbed(agent, tmp_path) or where == "plan"
    found = bits(agent)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert bits(again) == found


def test_a_plan_that_cannot_be_made_is_an_error_of_the_decision_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for planning in ("inline", "background"):
        agent = opened(tmp_path / planning, CONFIG, planning=planning)
        lived(agent, 12)

        def fails(*_: Any) -> Any:
            raise PlanningError("no plan")

        with monkeypatch.context() as patch:
            patch.setattr(gf.SCALPlus, "plan", fails)
            with pytest.raises(PlanningError, match="no plan"):  # noqa: PT012
                for _ in range(300):
                    lived(agent, agent.t + 1)
                    wait_for("gainful-planning")
        t = agent.t
        agent.observe(0, 0, 0.5, 1)
        assert agent.t == t + 1
        lived(agent, t + 30)
        found = bits(agent)
        killed(agent)
        with opened(tmp_path / planning) as again:
            assert bits(again) == found
