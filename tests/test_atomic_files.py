"""Files that are complete or as they were, and locks on folders."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from gainful.atomic_files import make_folder, replace_file, write_file, write_table
from gainful.errors import InvalidArgumentError
from gainful.locks import FolderLock, FolderLockedError, writer_of


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_file(file, b"before")

    def interrupted() -> None:
        with replace_file(file) as out:
            out.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write_file(tmp_path / "a", b"before")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "a", b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(("number", "tolerated"), [(5, False), (28, False), (22, True), (95, True)])
def test_a_folder_that_could_not_be_synced_was_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, tolerated: bool
) -> None:
    """EIO and ENOSPC are failures; EINVAL and ENOTSUP come from file systems that sync no folders."""

    def failing(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", failing)
    with contextlib.nullcontext() if tolerated else pytest.raises(OSError, match=os.strerror(number)):
        write_file(tmp_path / "a", b"new")


def test_every_folder_that_is_made_is_synced_into_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").resolve()))
    make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "a" / "b")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_mode_of_a_new_file_is_the_one_asked_for_and_never_wider(tmp_path: Path) -> None:
    with replace_file(tmp_path / "a", mode=0o600) as out:
        out.write(b"secret")
        out.flush()
        assert stat.S_IMODE(os.stat(out.name).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_table_comes_back_as_it_was_written(tmp_path: Path, suffix: str) -> None:
    frame, file = pd.DataFrame({"x": [1, 2], "y": [0.1, float("nan")]}), tmp_path / f"t{suffix}"
    assert write_table(frame, file) == 2
    read = pd.read_parquet if suffix == ".parquet" else pd.read_csv
    pd.testing.assert_frame_equal(read(file), frame)
    assert os.listdir(tmp_path) == [file.name]


def test_a_table_in_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.csv\.gz or \.parquet"):
        write_table(pd.DataFrame(), tmp_path / "t.xlsx")


def test_a_folder_has_one_lock_and_says_who_holds_it(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(FolderLockedError) as refused:
        FolderLock(tmp_path)
    assert refused.value.pid == os.getpid() == writer_of(tmp_path)
    lock.release()
    assert writer_of(tmp_path) is None
    FolderLock(tmp_path).release()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, gainful.locks as locks\n"
        "held = locks.FolderLock(pathlib.Path(sys.argv[1]))\n"
        "print(1, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert writer_of(tmp_path) == other.pid
        with pytest.raises(FolderLockedError, match=f"process {other.pid}"):
            FolderLock(tmp_path)
        other.kill()
    FolderLock(tmp_path).release()
