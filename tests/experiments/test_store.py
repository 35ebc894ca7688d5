"""The store: what it keeps, what it refuses, and what a damaged file says."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gainful.errors import StoreError
from gainful.experiments.configuration import RESULTS_VERSION, Configuration
from gainful.experiments.execution import Task, execute
from gainful.experiments.store import STORE_FILE, Store, without_seed
from gainful.experiments.store_checksum import StoreWarning
from gainful.experiments.store_schema import SCHEMA_VERSION, seal
from gainful.experiments.wire_format import RunResult, pack, unpack
from tests.bits import V1


def configuration(seed: int = 0, **changes: Any) -> Configuration:
    given: dict[str, Any] = {
        "environment": "riverswim",
        "environment_parameters": {},
        "agent": "psrl",
        "agent_parameters": {},
        "horizon": 100,
        "checkpoints": (10, 100),
        "seed": seed,
        **changes,
    }
    return Configuration(**given)


def result(c: Configuration, gain: float | None = 0.5) -> RunResult:
    return RunResult.from_bytes(execute(Task(c.run_id, c.canonical(), gain, "given", 6.3)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store of two runs out of three."""
    with Store.open(tmp_path) as store:
        runs = [configuration(seed) for seed in range(3)]
        store.plan("text", "two of three", [(c, "river", "PSRL") for c in runs])
        for c in runs[:2]:
            store.keep(c, result(c), tries=1)
        store.keep_failure(runs[2].run_id, runs[2].key, 1, "MemoryError", "no memory", "Traceback …")
    assert not list(tmp_path.glob("*-wal"))  # folded in
    return tmp_path


def test_what_was_stored_is_there(folder: Path) -> None:
    with Store.read(folder) as store:
        assert store.title == "two of three"
        assert store.spec_text == "text"
        assert [c.key for c in store.planned()] == [configuration(seed).key for seed in range(3)]
        assert store.finished() == {configuration(seed).run_id for seed in range(2)}
        (row,) = store.progress()
        assert row == {
            "environment": "river",
            "agent": "PSRL",
            "horizon": 100,
            "planned": 3,
            "finished": 2,
            "older": 0,
            "failed": 1,
        }
        (failure,) = store.failures()
        assert (failure["seed"], failure["kind"], failure["message"]) == (2, "MemoryError", "no memory")
        rows = list(store.runs())
    assert [row["seed"] for row in rows] == [0, 1]
    values, arrays = unpack(rows[0]["data"])
    assert rows[0]["final_regret"] == 100 * 0.5 - arrays["rewards"][-1]
    assert arrays["steps"].tolist() == [10, 100]
    assert values["results_version"] == RESULTS_VERSION
    assert arrays["visits"].sum() == 100


def test_a_run_is_stored_once(folder: Path) -> None:
    with Store.open(folder) as store:
        before = [row["finished_at"] for row in store.runs()]
        store.keep(configuration(0), result(configuration(0)), tries=5)
        assert [row["finished_at"] for row in store.runs()] == before


def test_labels_are_renewed_and_runs_added(folder: Path) -> None:
    with Store.open(folder) as store:
        runs = [configuration(seed) for seed in range(4)]
        store.plan("another text", "four", [(c, "the river", "posterior sampling") for c in runs])
        assert len(store.planned()) == 4
        assert {(r["environment_label"], r["agent_label"]) for r in store.runs()} == {
            ("the river", "posterior sampling")
        }
        assert store.spec_text == "another text"


def test_a_gain_that_nobody_knows(tmp_path: Path) -> None:
    c = configuration()
    with Store.open(tmp_path) as store:
        store.plan("", "", [(c, "river", "PSRL")])
        store.keep(c, result(c, gain=None), tries=1)
        (row,) = store.runs()
    assert (row["gain"], row["final_regret"], row["final_pseudo_regret"]) == (None, None, None)
    assert np.isnan(unpack(row["data"])[1]["pseudo_regret"]).all()


def test_runs_of_another_results_version_are_shown_and_never_mixed(folder: Path) -> None:
    with sqlite3.connect(folder / STORE_FILE) as connection:
        connection.execute("UPDATE runs SET results_version = 0, run_id = 'old' || run_id WHERE seed = 0")
        seal(connection)
    with Store.read(folder) as store:
        assert store.finished() == {configuration(1).run_id}
        assert [row["seed"] for row in store.runs()] == [1]
        assert [row["seed"] for row in store.runs(older=True)] == [0]
        (row,) = store.progress()
        assert (row["finished"], row["older"]) == (1, 1)


def test_it_can_be_read_while_it_is_written(folder: Path) -> None:
    with Store.open(folder) as writer:
        writer.keep(configuration(2), result(configuration(2)), tries=2)
        with Store.read(folder) as reader:
            assert len(list(reader.runs())) == 3
            with writer.transaction():
                assert len(list(reader.runs())) == 3  # in the middle of a write


def test_a_transaction_that_fails_leaves_nothing(folder: Path) -> None:
    def runs_that_fail() -> Iterator[tuple[Configuration, str, str]]:
        yield configuration(7), "environment", "agent"
        raise ZeroDivisionError

    with Store.open(folder) as store:
        before = store.planned(), store.title, store.spec_text
        with pytest.raises(ZeroDivisionError):
            store.plan("another text", "another title", runs_that_fail())
        assert (store.planned(), store.title, store.spec_text) == before
        assert len(store.finished()) == 2


def test_what_is_kept_with_a_configuration_comes_back(folder: Path) -> None:
    runs = [configuration(seed) for seed in range(3)]
    extra = {"agent_module": "my_module:MyAgent", "labels": {"states": ["left", "right"]}}
    with Store.open(folder) as store:
        assert store.extras() == {}
        store.plan("text", "title", [(c, "river", "PSRL") for c in runs], {without_seed(runs[0]): extra})
    with Store.read(folder) as store:
        assert store.extras() == {without_seed(runs[0]): extra}
        assert len(list(store.runs())) == 2


# ---------------------------------------------------------------------- what cannot be read or written


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("configurations", "agent_label = 'another'"),
        ("configurations", "extra = '{}'  || ' '"),
        ("runs", "gain = 0.6"),
        ("runs", "guarantee_holds = 1 - guarantee_holds"),
        ("runs", "data = zeroblob(length(data))"),
        ("planned", "seed = seed + 7"),
        ("specs", "text = text || ' '"),
        ("meta", "value = 'another'"),
        ("failures", "kind = 'KeyError'"),
    ],
)
def test_a_changed_row_is_noticed(table: str, change: str, folder: Path) -> None:
    with sqlite3.connect(folder / STORE_FILE) as connection:
        connection.execute(f"UPDATE {table} SET {change}")
    with pytest.raises(StoreError, match="checksum"), Store.read(folder) as store:
        list(store.runs())


def test_a_store_of_the_first_version_is_read_as_it_is_and_gets_checksums_when_it_is_written(tmp_path: Path) -> None:
    shutil.copytree(V1 / "store", tmp_path / "s")
    with Store.read(tmp_path / "s") as store:
        before = [(row["run_id"], row["data"]) for row in store.runs()]
        assert len(before) > 10
        assert store.extras() == {}
    Store.open(tmp_path / "s").close()
    with sqlite3.connect(tmp_path / "s" / STORE_FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
    with Store.read(tmp_path / "s") as store:
        assert [(row["run_id"], row["data"]) for row in store.runs()] == before
    with sqlite3.connect(tmp_path / "s" / STORE_FILE) as connection:
        connection.execute("UPDATE configurations SET agent_label = 'another'")
    with pytest.raises(StoreError, match="the checksum of row 1 of the table configurations is wrong"):
        Store.open(tmp_path / "s")


def test_a_closed_store_has_a_checksum_that_sha256sum_understands(folder: Path) -> None:
    text = (folder / f"{STORE_FILE}.sha256").read_text()
    digest = hashlib.sha256((folder / STORE_FILE).read_bytes()).hexdigest()
    assert text == f"{digest}  {STORE_FILE}\n"
    with Store.open(folder) as store:
        assert store.notices == []
        assert not (folder / f"{STORE_FILE}.sha256").exists()
        with Store.read(folder) as reader:
            assert reader.notices == []
    assert (folder / f"{STORE_FILE}.sha256").exists()


def test_a_flipped_bit_in_bytes_that_hold_nothing_is_noticed(folder: Path) -> None:
    data = bytearray((folder / STORE_FILE).read_bytes())
    data[80] ^= 1  # reserved by SQLite
    (folder / STORE_FILE).write_bytes(data)
    with pytest.warns(StoreWarning, match="has changed since it was closed; every row was checked and is intact"):
        store = Store.read(folder)
    store.close()
    with Store.open(folder) as store:
        assert len(store.notices) == 1
    Store.read(folder).close()


def test_damage_to_the_log_of_a_killed_sweep_lost_runs_silently(folder: Path, tmp_path_factory: Any) -> None:
    killed = tmp_path_factory.mktemp("killed")
    with Store.open(folder) as store:
        store.keep(configuration(2), result(configuration(2)), tries=2)
        for name in (STORE_FILE, f"{STORE_FILE}-wal"):
            shutil.copy(folder / name, killed / name)
    log = killed / f"{STORE_FILE}-wal"
    whole = log.read_bytes()
    with Store.read(killed) as store:
        assert len(store.finished()) == 3
        assert store.notices == []
    shutil.copy(folder / STORE_FILE, killed / STORE_FILE)
    log.write_bytes(whole[:-100] + bytes([whole[-100] ^ 4]) + whole[-99:])
    with pytest.warns(StoreWarning, match="-wal: damaged; the runs stored last are missing"):
        Store.read(killed).close()


def test_a_store_is_not_created_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / STORE_FILE).symlink_to(tmp_path / "precious")
    with pytest.raises(StoreError, match="is a symbolic link"):
        Store.open(tmp_path / "out")
    assert (tmp_path / "precious").read_bytes() == b""


def test_there_is_no_experiment(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no experiment here"):
        Store.read(tmp_path / "nowhere")


def test_no_sqlite_file(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is no database " * 100)
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match="restore a copy"):
            way(tmp_path)
    assert (tmp_path / STORE_FILE).read_bytes().startswith(b"this is no database")


def test_somebody_elses_sqlite_file(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / STORE_FILE) as connection:
        connection.execute("CREATE TABLE t (x)")
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match="not a store of gainful"):
            way(tmp_path)


def test_a_store_of_a_newer_gainful(folder: Path) -> None:
    with sqlite3.connect(folder / STORE_FILE) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match="upgrade gainful"):
            way(folder)


def test_a_damaged_store_is_told(folder: Path) -> None:
    path = folder / STORE_FILE
    data = bytearray(path.read_bytes())
    for page in range(3, len(data) // 4096):
        data[4096 * page : 4096 * page + 200] = os.urandom(200)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        Store.open(folder)
    assert path.read_bytes() == bytes(data)  # nothing was touched


def test_a_full_disk_is_told_and_nothing_stored_is_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect_to_a_full_disk(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "disk is full"
        return connection

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect_to_a_full_disk)
    with Store.open(folder) as store:
        monkeypatch.undo()
        small = result(configuration(2))
        noise = np.frombuffer(os.urandom(10**6), dtype=np.uint8)
        large = RunResult.from_bytes(pack(small.values, {**small.arrays, "noise": noise}))
        with pytest.raises(StoreError, match="make room, and run the same command again"):
            store.keep(configuration(2), large, tries=1)
        assert len(store.finished()) == 2
    with Store.open(folder) as store:
        store.keep(configuration(2), result(configuration(2)), tries=1)
        assert len(store.finished()) == 3


NOBODY = 65534


def as_nobody(action: Callable[[], None]) -> None:
    """Do it as a user who may not write where others have forbidden it; root may write everywhere."""
    if os.geteuid() != 0:
        action()
        return
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            action()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_that_cannot_be_written_can_be_read(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:  # not below pytest's own folder, which is closed to others
        shutil.copy(folder / STORE_FILE, place)
        Path(place, STORE_FILE).chmod(0o444)
        Path(place).chmod(0o555)

        def look() -> None:
            with pytest.raises(StoreError, match="permissions"):
                Store.open(place)
            with Store.read(place) as store:
                assert len(store.finished()) == 2

        try:
            as_nobody(look)
        finally:
            Path(place).chmod(0o755)


def test_a_place_where_nothing_can_be_made() -> None:
    with pytest.raises(StoreError, match="it cannot be created"):
        Store.open("/proc/gainful")


def test_a_copied_file_is_a_store_too(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    shutil.copy(folder / STORE_FILE, copy)
    with Store.read(copy) as store:
        assert len(store.finished()) == 2


def test_seeds_share_a_configuration() -> None:
    assert without_seed(configuration(0)) == without_seed(configuration(1))
    assert without_seed(configuration(0)) != without_seed(configuration(0, horizon=50, checkpoints=(50,)))
