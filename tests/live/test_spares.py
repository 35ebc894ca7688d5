"""Damage that the rest of a folder makes good, and records that are missing at the end of a journal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gainful.errors import DamagedJournalError, JournalError
from gainful.live import JournalWarning, open_agent, read_journal, recover
from gainful.live.end_marker import END_FILE
from gainful.live.folder import Folder
from gainful.live.journal import compact
from gainful.live.records import RecordLayout
from tests.live.lives import CONFIG, QUICK, bits, killed, lived, opened
from tests.live.test_damage import boundaries, segment

ENCRYPTED = 1
"""ZIP's flag of an encrypted member."""


def with_two_snapshots(path: Path, keep_history: bool = True) -> dict[str, bytes]:
    """A closed agent with a snapshot after 20 observations and one after 30; its bits."""
    with opened(path, CONFIG, snapshot_every=10**6, keep_history=keep_history) as agent:
        lived(agent, 20)
        agent.snapshot()
        lived(agent, 30)
        return bits(agent)


def set_encrypted_flag(archive: Path) -> None:
    """In the directory at the archive's end, which is what `zipfile` looks at."""
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] ^= ENCRYPTED
    archive.write_bytes(data)


@pytest.mark.parametrize("keep_history", [True, False])
def test_the_encrypted_flag_in_the_newest_snapshot_crashed_open_agent(keep_history: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    state = with_two_snapshots(path, keep_history)
    newest = Folder(path).snapshots()[0][1]
    set_encrypted_flag(newest)
    saved = recover(path, tmp_path / "saved")
    assert saved.observations == 30
    with pytest.warns(JournalWarning, match=f"{newest.name}: damaged; the snapshot before it and the journal gave"):
        agent = open_agent(path, **QUICK)
    assert bits(agent) == state
    lived(agent, 40)
    agent.close()
    with opened(path) as again:
        assert again.t == 40
    assert len(Folder(path).snapshots()) == 2


def test_a_damaged_snapshot_is_replaced_although_nothing_was_observed_since(tmp_path: Path) -> None:
    state = with_two_snapshots(tmp_path / "a")
    set_encrypted_flag(Folder(tmp_path / "a").snapshots()[0][1])
    with pytest.warns(JournalWarning):
        open_agent(tmp_path / "a", **QUICK).close()
    with opened(tmp_path / "a") as agent:
        assert bits(agent) == state


def test_a_damaged_spare_snapshot_is_reported_while_the_newest_is_whole(tmp_path: Path) -> None:
    with_two_snapshots(tmp_path / "a")
    spare = Folder(tmp_path / "a").snapshots()[1][1]
    set_encrypted_flag(spare)
    with pytest.warns(JournalWarning, match=f"{spare.name}: .*checksum is wrong; the newest snapshot is whole"):
        agent = open_agent(tmp_path / "a", **QUICK)
    lived(agent, 31)
    agent.close()
    assert not spare.exists()
    opened(tmp_path / "a").close()


def test_two_damaged_snapshots_are_refused_with_one_error(tmp_path: Path) -> None:
    with_two_snapshots(tmp_path / "a")
    for _, snapshot in Folder(tmp_path / "a").snapshots():
        set_encrypted_flag(snapshot)
    with pytest.raises(DamagedJournalError, match="its checksum is wrong"):
        opened(tmp_path / "a")
    with pytest.raises(JournalError, match="no snapshot can be read"):
        recover(tmp_path / "a", tmp_path / "saved")


def everything_compacted(path: Path) -> Folder:
    """As if records had been written while the older snapshot was: history files have what the journal had."""
    folder = Folder(path)
    description = folder.read_description()
    number, newest = folder.segments()[-1]
    header = newest.read_bytes()[:32]
    compact(folder, description, RecordLayout(description.salt, description.dim), 10**9, 10**9)
    assert folder.segments() == []
    folder.segment(number + 1).write_bytes(header)
    return folder


def test_a_damaged_snapshot_is_made_good_from_history_files(tmp_path: Path) -> None:
    state = with_two_snapshots(tmp_path / "a")
    set_encrypted_flag(everything_compacted(tmp_path / "a").snapshots()[0][1])
    with pytest.warns(JournalWarning, match="nothing is lost"), open_agent(tmp_path / "a", **QUICK) as agent:
        assert bits(agent) == state


def test_a_damaged_snapshot_and_a_damaged_history_are_refused(tmp_path: Path) -> None:
    with_two_snapshots(tmp_path / "a")
    folder = everything_compacted(tmp_path / "a")
    set_encrypted_flag(folder.snapshots()[0][1])
    for *_, path in folder.histories():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    with pytest.raises(DamagedJournalError):
        opened(tmp_path / "a")


# ---------------------------------------------------------------------- the end


@pytest.mark.parametrize("closed", [True, False])
def test_a_journal_cut_exactly_between_two_records_opened_with_fewer_steps(closed: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6, fsync="record")
    lived(agent, 6)
    if closed:
        agent.close()
    else:
        killed(agent)
    file = path / "journal-000001.log"
    shutil.copy(file, tmp_path / "whole")
    cuts = [32] if closed else boundaries(path)[:-1]
    for cut in cuts:
        shutil.copy(tmp_path / "whole", file)
        os.truncate(file, cut)
        with pytest.raises(DamagedJournalError, match=f"damaged at byte {cut}: whole records end here"):
            opened(path)
        with pytest.raises(DamagedJournalError):
            read_journal(path)
    if not closed:
        found = recover(path, tmp_path / "saved")
        assert found.problems == [
            f"{file.name}: {(tmp_path / 'whole').stat().st_size - cuts[-1]} bytes are missing at its end"
        ]
    shutil.copy(tmp_path / "whole", file)
    with opened(path) as agent:
        assert agent.t == 6


def test_a_deleted_newest_segment_opened_with_fewer_steps(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6, fsync="record")
    lived(agent, 6)
    agent.snapshot()
    lived(agent, 9)
    killed(agent)
    newest = segment(path)
    assert newest.name == "journal-000002.log"
    newest.unlink()
    with pytest.raises(DamagedJournalError):
        opened(path)
    with pytest.raises(DamagedJournalError):
        read_journal(path)
    found = recover(path, tmp_path / "saved")
    assert found.observations == 6
    assert any("journal-000002.log: is missing; it had" in problem for problem in found.problems)


def test_a_segment_that_only_the_snapshot_knows_of_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=10**6)
    lived(agent, 6)
    agent.snapshot()
    lived(agent, 9)
    agent.snapshot()
    killed(agent)
    folder = Folder(path)
    number = folder.segments()[-1][0]
    header_only = folder.segments()[-1][1].read_bytes()
    for _, old in folder.segments():
        old.unlink()
    folder.segment(number - 2).write_bytes(header_only)
    (path / END_FILE).unlink()
    with pytest.raises(DamagedJournalError, match=r"it is missing; it had [0-9]+ bytes when snapshot"):
        open_agent(path, **QUICK)


@pytest.mark.parametrize("damage", ["missing", "flipped", "short"])
def test_a_damaged_end_marker_is_written_anew(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path, CONFIG) as agent:
        lived(agent, 6)
    whole = (path / END_FILE).read_bytes()
    if damage == "missing":
        (path / END_FILE).unlink()
    else:
        (path / END_FILE).write_bytes(bytes([whole[0] ^ 1]) + whole[1:] if damage == "flipped" else whole[:-1])
    with pytest.warns(JournalWarning, match=f"end: is {'missing' if damage == 'missing' else 'damaged'}, so that"):
        open_agent(path, **QUICK).close()
    with opened(path) as agent:
        assert agent.t == 6


# ---------------------------------------------------------------------- links


@pytest.mark.filterwarnings("ignore:.*is damaged, so that")
@pytest.mark.parametrize("name", ["lock", END_FILE])
def test_a_link_in_the_folder_led_to_a_file_that_was_overwritten(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    opened(path, CONFIG).close()
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (path / name).unlink()
    (path / name).symlink_to(precious)
    with pytest.raises(JournalError, match=r"symbolic link|Too many levels"):
        open_agent(path, **QUICK)
    (path / name).unlink()
    os.link(precious, path / name)
    if name == "lock":
        with pytest.raises(JournalError, match="not a plain file of its own"):
            open_agent(path, **QUICK)
    assert precious.read_text() == "years of work"


def test_a_segment_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG)
    killed(agent)
    file = path / "journal-000001.log"
    shutil.move(file, tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(JournalError, match="Too many levels of symbolic links"):
        open_agent(path, **QUICK)
    assert (tmp_path / "elsewhere").read_bytes() == before
