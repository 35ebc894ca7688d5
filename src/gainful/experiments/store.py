"""The store of an experiment: one SQLite file, one transaction per finished run.

`gainful.experiments.store_schema` has its tables. The file is in WAL mode: it can be read while a sweep writes. Every
transaction is synced before it counts. `results_version` says which runs may be compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from gainful.errors import StoreError
from gainful.experiments.configuration import RESULTS_VERSION, Configuration, hash_of
from gainful.experiments.store_checksum import StoreWarning, drop_checksum, keep_checksum, notice_of_change
from gainful.experiments.store_log import notice_of_lost_end
from gainful.experiments.store_schema import (
    APPLICATION_ID,
    CHECKSUMS_SINCE,
    MIGRATIONS,
    SCHEMA_VERSION,
    TABLES,
    create,
    damage,
    data_checksum,
    insert,
)
from gainful.experiments.wire_format import RunResult
from gainful.locks import writer_of

STORE_FILE = "runs.sqlite"


class Store:
    """The file of an experiment, open for one writer or any number of readers."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self._writes = False
        self.notices: list[str] = []
        """What is not as it was, although nothing is lost."""

    # ------------------------------------------------------------------ opening

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open for writing, and create the file if it does not exist. The caller holds the folder's lock."""
        path = Path(folder) / STORE_FILE
        if path.is_symlink() and not (path.exists() and path.stat().st_size):
            raise StoreError(
                f"{path} is a symbolic link to a file that is not a store", name=str(path), hint="remove the link"
            )
        with _explained_errors(path):
            notice = notice_of_change(path) or notice_of_lost_end(path)
            connection = sqlite3.connect(path, isolation_level=None, timeout=30.0)
            store = cls(path, connection)
            store.notices += [notice] if notice else []
            try:
                connection.execute("PRAGMA synchronous = FULL")  # a stored run survives a power cut
                if store._empty:
                    connection.execute("PRAGMA journal_mode = WAL")
                    with store.transaction():
                        create(connection)
                store._check()
                drop_checksum(path)
                store._writes = True
                connection.execute("PRAGMA journal_mode = WAL")
                store._migrate()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Open for reading only, also while a sweep writes. `folder` may be the file itself."""
        path = Path(folder)
        path = path / STORE_FILE if path.is_dir() or not path.exists() else path
        if not path.exists():
            raise _nothing_stored(folder, f"no {STORE_FILE}")
        with _explained_errors(path):
            notice = notice_of_change(path)  # before SQLite makes files of its own
            if writer_of(path.parent) is None:
                notice = notice or notice_of_lost_end(path)
            connection = cls._connect_to_read(path)
            store = cls(path, connection)
            try:
                if store._empty:
                    raise _nothing_stored(folder, f"{STORE_FILE} was begun, and nothing was stored in it")
                store._check()
            except BaseException:
                connection.close()
                raise
        if notice:
            store.notices.append(notice)
            warnings.warn(notice, StoreWarning, stacklevel=2)
        return store

    @staticmethod
    def _connect_to_read(path: Path) -> sqlite3.Connection:
        """If the folder is writable, SQLite cleans up after itself; otherwise its log is only read."""
        ways = ["mode=rw", "mode=ro"] if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else ["mode=ro"]
        if not path.with_name(path.name + "-wal").exists():
            ways.append("immutable=1")
        for way in ways:
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?{way}", uri=True, isolation_level=None, timeout=30.0
            )
            try:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("SELECT count(*) FROM sqlite_master")
            except sqlite3.OperationalError:
                connection.close()
                if way == ways[-1]:
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise AssertionError

    @property
    def _empty(self) -> bool:
        """Whether the file is new, or its creation was cut off before the first table."""
        (number,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return not number and not self._schema

    @property
    def _schema(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _check(self) -> None:
        found = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if found != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is an SQLite file, but not a store of gainful",
                name=str(self.path),
                hint="move it away, or choose another folder",
            )
        if self._schema < 1:
            raise StoreError(
                f"{self.path} is damaged: it has version {self._schema} of the format",
                name=str(self.path),
                hint=_RESCUE,
            )
        if self._schema > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has version {self._schema} of the format",
                name=str(self.path),
                found=self._schema,
                expected=f"version {SCHEMA_VERSION} or lower",
                hint="upgrade gainful",
            )
        found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        problem = " ".join(found.removeprefix("*** in database main ***").split())
        if problem == "ok":
            problem = damage(self._connection) if self._schema >= CHECKSUMS_SINCE else ""
        if problem:
            raise StoreError(f"{self.path} is damaged: {problem}", name=str(self.path), hint=_RESCUE)

    def _migrate(self) -> None:
        while (found := self._schema) < SCHEMA_VERSION:
            with self.transaction():
                MIGRATIONS[found](self._connection)
                self._connection.execute(f"PRAGMA user_version = {found + 1}")

    def close(self) -> None:
        """Merge the write-ahead log into the file, and close it; what was written gets a checksum."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        if self._writes:
            self._writes = False
            keep_checksum(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything in the block, or nothing if it raises."""
        with _explained_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with _explained_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    # ------------------------------------------------------------------ what is asked for

    def planned(self) -> list[Configuration]:
        """Every run that the stored specs ask for."""
        found = self._rows(
            "SELECT environment, environment_parameters, agent, agent_parameters, horizon, checkpoints, seed, "
            "planned.key FROM planned JOIN configurations ON configurations.number = planned.configuration "
            "ORDER BY configurations.number, seed"
        )
        asked = [(self._configuration(*row), key) for *row, key in found]
        return [
            next((one for one in (c, *c.earlier_meanings()) if one.key == key), c) if c.key != key else c
            for c, key in asked
        ]

    def _configuration(self, e: str, ep: str, a: str, ap: str, T: int, grid: str, seed: int) -> Configuration:
        try:
            return Configuration(e, json.loads(ep), a, json.loads(ap), T, tuple(json.loads(grid)), seed)
        except (TypeError, ValueError) as error:  # a store of version 1 has no checksums
            raise StoreError(f"{self.path} is damaged: {error}", name=str(self.path), hint=_RESCUE) from error

    def as_asked_before(self, configurations: Iterable[Configuration]) -> list[Configuration]:
        """The same runs with the defaults of the version that began this sweep, where it has such runs.

        A parameter that a spec leaves out means here what it meant when the sweep began.
        """
        keys = {row[0] for row in self._rows("SELECT key FROM configurations")}
        found = []
        for c in configurations:
            others = c.earlier_meanings() if keys else []
            if others and without_seed(c) not in keys:
                c = next((one for one in others if without_seed(one) in keys), c)
            found.append(c)
        return found

    def plan(
        self,
        text: str,
        title: str,
        runs: Iterable[tuple[Configuration, str, str]],
        extras: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        """Add runs (configuration, environment label, agent label) to those that are planned; labels are updated.

        `extras` are plain values to keep with a configuration, by its key without the seed (`without_seed`).
        """
        with self.transaction():
            last = self._connection.execute("SELECT text FROM specs ORDER BY number DESC LIMIT 1").fetchone()
            if last is None or last[0] != text:
                self._insert("specs", number=self._next_number("specs"), at=time.time(), text=text)
            self._insert("meta", "INSERT OR REPLACE", key="title", value=title)
            numbers: dict[str, int] = {}
            for configuration, environment_label, agent_label in runs:
                key = without_seed(configuration)
                if key not in numbers:
                    extra = _text((extras or {}).get(key, {}))
                    numbers[key] = self._plan_configuration(configuration, key, environment_label, agent_label, extra)
                self._insert(
                    "planned",
                    "INSERT OR IGNORE",
                    key=configuration.key,
                    configuration=numbers[key],
                    seed=configuration.seed,
                )

    def _plan_configuration(self, c: Configuration, key: str, environment: str, agent: str, extra: str) -> int:
        """Store a configuration, or renew its labels; its number."""
        found = self._connection.execute("SELECT number FROM configurations WHERE key = ?", (key,)).fetchone()
        number = int(found[0]) if found else self._next_number("configurations")
        self._insert(
            "configurations",
            "INSERT OR REPLACE",
            number=number,
            key=key,
            environment=c.environment,
            environment_parameters=_text(c.environment_parameters),
            agent=c.agent,
            agent_parameters=_text(c.agent_parameters),
            horizon=c.horizon,
            checkpoints=json.dumps(c.checkpoints),
            environment_label=environment,
            agent_label=agent,
            extra=extra,
        )
        return number

    def _insert(self, table: str, verb: str = "INSERT", /, **row: Any) -> None:
        insert(self._connection, table, row, verb)

    def _next_number(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT coalesce(max(number), 0) + 1 FROM {table}").fetchone()[0])

    def extras(self) -> dict[str, dict[str, Any]]:
        """What `plan` was given to keep with configurations, by their keys without the seed; without empty objects."""
        if self._schema < CHECKSUMS_SINCE:
            return {}
        return {
            key: json.loads(text) for key, text in self._rows("SELECT key, extra FROM configurations") if text != "{}"
        }

    @property
    def title(self) -> str:
        """The title of the last spec."""
        return self.fact("title")

    def fact(self, key: str) -> str:
        """A text of the table `meta`; empty if there is none."""
        found = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return str(found[0][0]) if found else ""

    def keep_fact(self, key: str, value: str) -> None:
        """Store a text in the table `meta`, in place of the one that was there."""
        with self.transaction():
            self._insert("meta", "INSERT OR REPLACE", key=key, value=value)

    @property
    def spec_text(self) -> str:
        """The text of the last spec."""
        found = self._rows("SELECT text FROM specs ORDER BY number DESC LIMIT 1")
        return str(found[0][0]) if found else ""

    def facts(self) -> dict[str, dict[str, Any]]:
        """Gain, its source and span of each environment, by its key."""
        return {key: json.loads(text) for key, text in self._rows("SELECT key, facts FROM environments")}

    def keep_facts(self, key: str, facts: dict[str, Any]) -> None:
        """Store gain, its source and span of an environment."""
        with self.transaction():
            self._insert("environments", "INSERT OR REPLACE", key=key, facts=_text(facts))

    # ------------------------------------------------------------------ what was found

    def finished(self) -> set[str]:
        """The ids of the runs of this results version."""
        return {row[0] for row in self._rows("SELECT run_id FROM runs WHERE results_version = ?", RESULTS_VERSION)}

    def keep(self, configuration: Configuration, result: RunResult, tries: int) -> None:
        """Store a finished run; storing the same run again changes nothing."""
        values, arrays = result.values, result.arrays
        gain = values["gain"]
        regret = None if gain is None else float(arrays["steps"][-1] * gain - arrays["rewards"][-1])
        pseudo_regret = None if gain is None else float(arrays["pseudo_regret"][-1])
        with self.transaction():
            (number,) = self._connection.execute(
                "SELECT configuration FROM planned WHERE key = ?", (configuration.key,)
            ).fetchone()
            taken = {name: values[name] for name in TABLES["runs"] if name in values}
            row = taken | {
                "key": configuration.key,
                "configuration": number,
                "seed": configuration.seed,
                "finished_at": time.time(),
                "tries": tries,
                "final_regret": regret,
                "final_pseudo_regret": pseudo_regret,
                "data": result.data,
                "data_checksum": data_checksum(result.data),
            }
            self._insert("runs", "INSERT OR IGNORE", **row)

    def keep_failure(self, run_id: str, key: str, attempt: int, kind: str, message: str, traceback: str) -> None:
        """Store a failed try of a run."""
        with self.transaction():
            self._insert(
                "failures",
                number=self._next_number("failures"),
                run_id=run_id,
                key=key,
                at=time.time(),
                kind=kind,
                message=message,
                traceback=traceback,
                **{"try": attempt},
            )

    def progress(self) -> list[dict[str, Any]]:
        """One record per configuration: labels, runs planned, finished, finished in other results versions, failed."""
        return [
            dict(zip(("environment", "agent", "horizon", "planned", "finished", "older", "failed"), row, strict=True))
            for row in self._rows(
                """
                SELECT environment_label, agent_label, horizon, count(DISTINCT planned.key),
                       count(DISTINCT CASE WHEN runs.results_version = ?1 THEN runs.run_id END),
                       count(DISTINCT CASE WHEN runs.results_version <> ?1 THEN runs.run_id END),
                       count(DISTINCT CASE WHEN failures.key IS NOT NULL AND runs.run_id IS NULL THEN planned.key END)
                FROM planned JOIN configurations ON configurations.number = planned.configuration
                LEFT JOIN runs ON runs.key = planned.key
                LEFT JOIN (SELECT DISTINCT key FROM failures) AS failures ON failures.key = planned.key
                GROUP BY configurations.number ORDER BY configurations.number
                """,
                RESULTS_VERSION,
            )
        ]

    def failures(self) -> list[dict[str, Any]]:
        """The last failed try of every run that has not finished since."""
        names = ("environment", "agent", "seed", "try", "kind", "message", "traceback", "at", "run_id")
        return [
            dict(zip(names, row, strict=True))
            for row in self._rows(
                """
                SELECT environment_label, agent_label, seed, try, kind, message, traceback, max(at), failures.run_id
                FROM failures JOIN planned ON planned.key = failures.key
                JOIN configurations ON configurations.number = planned.configuration
                WHERE failures.run_id NOT IN (SELECT run_id FROM runs) GROUP BY failures.run_id ORDER BY at
                """
            )
        ]

    def runs(self, *, older: bool = False, data: bool = True, only: str | None = None) -> Iterator[dict[str, Any]]:
        """The finished runs with their labels, in the order of the spec, or `only` one; `older` for other versions."""
        left_out = {"checksum"} if data else {"checksum", "data", "data_checksum"}
        columns = [row[1] for row in self._rows("PRAGMA table_info(runs)") if row[1] not in left_out]
        fields = ", ".join(f'runs."{name}"' for name in columns)
        query = (
            "SELECT environment, environment_parameters, agent, agent_parameters, horizon, environment_label, "
            f"agent_label, {fields} FROM runs JOIN configurations ON configurations.number = runs.configuration "
            f"WHERE results_version {'<>' if older else '='} ? {'' if only is None else 'AND run_id = ? '}"
            "ORDER BY configurations.number, seed, run_id"
        )
        names = (
            "environment",
            "environment_parameters",
            "agent",
            "agent_parameters",
            "horizon",
            "environment_label",
            "agent_label",
            *columns,
        )
        with _explained_errors(self.path):
            for row in self._connection.execute(query, (RESULTS_VERSION,) if only is None else (RESULTS_VERSION, only)):
                found = dict(zip(names, row, strict=True))
                checksum = found.pop("data_checksum", None)
                if checksum is not None and checksum != data_checksum(found["data"]):
                    raise damaged_run(self.path, found["run_id"], "the checksum of its result is wrong")
                yield found


def damaged_run(where: str | Path, run_id: str, problem: str) -> StoreError:
    """The error for a stored run that is not as it was written."""
    return StoreError(
        f"{where}: run {run_id} is damaged: {problem}",
        name=str(where),
        found=run_id,
        hint="restore a copy, or delete it from the table runs and run again, which makes it anew to the same bits",
    )


_RESCUE = (
    "restore a copy, or move the file away and run again (what SQLite can still read of it: sqlite3 FILE .recover)"
)


def _nothing_stored(folder: str | Path, reason: str) -> StoreError:
    inside = sorted(str(file.parent) for file in Path(folder).glob(f"*/{STORE_FILE}"))[:5]  # as of a tuning
    return StoreError(
        f"{folder}: there is no experiment here ({reason})",
        name=str(folder),
        hint=f"look into {' or '.join(inside)}" if inside else f"gainful run SPEC --out {folder} starts one",
    )


@contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system into StoreErrors that say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text, code = str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise StoreError(
                f"{path}: {text}",
                name=str(path),
                hint="every run stored before is safe: make room, and run the same command again",
            ) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            reason = "the folder or the file cannot be written" if os.path.exists(path) else "it cannot be created"
            raise StoreError(f"{path}: {text}: {reason}", name=str(path), hint="check permissions") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError(
                f"{path}: {text}: another program has it open", name=str(path), hint="close that program and run again"
            ) from error
        if isinstance(error, sqlite3.ProgrammingError):
            raise
        raise StoreError(f"{path} is damaged, or not an SQLite file: {text}", name=str(path), hint=_RESCUE) from error
    except (UnicodeDecodeError, OverflowError) as error:  # in a message of SQLite, or a value, that is damaged
        raise StoreError(f"{path} is damaged: {error}", name=str(path), hint=_RESCUE) from error
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}", name=str(path), hint="check space and permissions"
        ) from error


def without_seed(configuration: Configuration) -> str:
    """The key that all seeds of a configuration share."""
    return hash_of({name: value for name, value in configuration.canonical().items() if name != "seed"})


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
