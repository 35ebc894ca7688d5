"""The tables of a store, the checksum of each row, and how a store of an earlier version becomes one of this.

The schema, version 2 (`PRAGMA user_version`; `PRAGMA application_id` is 0x6761696e, "gain"):

configurations  one row per environment, agent and horizon: everything of a run but its seed; `extra` is an object in
                JSON for what is not part of a run's identity, such as labels or the modules of agent and environment
planned         one row per run that the spec asks for
runs            one row per finished run; `data` is a packed result (`gainful.experiments.wire_format`): steps, rewards,
                pseudo_regret, expected_regret (not in runs stored before it existed), episode_*; for small problems
                visits, and actions, values and bonus of the last plan
environments    what is known of each environment: gain, where it comes from, span, and its units unless it has rewards
                per step
failures        one row per try that failed, with its traceback
specs           the texts that were run, in order
meta            the title of the last spec, what `run_until_decided` has decided, and a checksum of the schema

Every row has a checksum of its other columns, except that `data` has one of its own, `data_checksum`, which the row's
covers. Version 1 had no checksums and no `extra`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

APPLICATION_ID = 0x6761696E
SCHEMA_VERSION = 2
CHECKSUMS_SINCE = 2
"""The first version whose rows have checksums."""
CHECKSUM_BYTES = 8
SCHEMA_CHECKSUM = "schema"
"""The key in `meta` of the checksum of the schema."""

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL DEFAULT x'') WITHOUT ROWID;
CREATE TABLE specs (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, text TEXT NOT NULL, checksum BLOB NOT NULL DEFAULT x''
);
CREATE TABLE configurations (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, environment TEXT NOT NULL,
    environment_parameters TEXT NOT NULL, agent TEXT NOT NULL, agent_parameters TEXT NOT NULL,
    horizon INTEGER NOT NULL, checkpoints TEXT NOT NULL, environment_label TEXT NOT NULL, agent_label TEXT NOT NULL,
    extra TEXT NOT NULL DEFAULT '{}', checksum BLOB NOT NULL DEFAULT x''
);
CREATE TABLE planned (
    key TEXT PRIMARY KEY, configuration INTEGER NOT NULL REFERENCES configurations, seed INTEGER NOT NULL,
    checksum BLOB NOT NULL DEFAULT x''
) WITHOUT ROWID;
CREATE TABLE environments (
    key TEXT PRIMARY KEY, facts TEXT NOT NULL, checksum BLOB NOT NULL DEFAULT x''
) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, key TEXT NOT NULL, configuration INTEGER NOT NULL REFERENCES configurations,
    seed INTEGER NOT NULL, results_version INTEGER NOT NULL, finished_at REAL NOT NULL, tries INTEGER NOT NULL,
    gain REAL, gain_source TEXT NOT NULL, span REAL, span_is_oracle INTEGER NOT NULL, n_states INTEGER NOT NULL,
    n_actions INTEGER NOT NULL, episodes INTEGER NOT NULL, vacuous INTEGER NOT NULL, guarantee TEXT NOT NULL,
    guarantee_holds INTEGER NOT NULL, final_regret REAL, final_pseudo_regret REAL, seconds REAL NOT NULL,
    planning_seconds REAL NOT NULL, acting_seconds REAL NOT NULL, version TEXT NOT NULL, "commit" TEXT,
    python TEXT NOT NULL, platform TEXT NOT NULL, packages TEXT NOT NULL, data BLOB NOT NULL,
    data_checksum BLOB NOT NULL DEFAULT x'', checksum BLOB NOT NULL DEFAULT x''
);
CREATE INDEX runs_by_key ON runs (key);
CREATE TABLE failures (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, try INTEGER NOT NULL,
    kind TEXT NOT NULL, message TEXT NOT NULL, traceback TEXT NOT NULL, checksum BLOB NOT NULL DEFAULT x''
);
"""

TABLES: dict[str, tuple[str, ...]] = {
    "meta": ("key", "value"),
    "specs": ("number", "at", "text"),
    "configurations": (
        "number",
        "key",
        "environment",
        "environment_parameters",
        "agent",
        "agent_parameters",
        "horizon",
        "checkpoints",
        "environment_label",
        "agent_label",
        "extra",
    ),
    "planned": ("key", "configuration", "seed"),
    "environments": ("key", "facts"),
    "runs": (
        "run_id",
        "key",
        "configuration",
        "seed",
        "results_version",
        "finished_at",
        "tries",
        "gain",
        "gain_source",
        "span",
        "span_is_oracle",
        "n_states",
        "n_actions",
        "episodes",
        "vacuous",
        "guarantee",
        "guarantee_holds",
        "final_regret",
        "final_pseudo_regret",
        "seconds",
        "planning_seconds",
        "acting_seconds",
        "version",
        "commit",
        "python",
        "platform",
        "packages",
        "data_checksum",
    ),
    "failures": ("number", "run_id", "key", "at", "try", "kind", "message", "traceback"),
}
"""The columns of each table that the checksum of a row covers; the first names the row."""


def row_checksum(table: str, values: Iterable[Any]) -> bytes:
    """The checksum of a row's values, in the order of `TABLES`.

    SQLite stores 5.0 in a column of integers as 5, so that both have the same checksum.

    >>> row_checksum("planned", ["a", 1, 5]) == row_checksum("planned", ["a", 1, 5.0])
    True
    """
    found = hashlib.blake2b(table.encode(), digest_size=CHECKSUM_BYTES)
    for value in values:
        if isinstance(value, (int, float)) and value == value and abs(value) != float("inf") and value == int(value):
            value = int(value)
        text = value if isinstance(value, bytes) else repr(value).encode()
        found.update(len(text).to_bytes(8, "little") + text)
    return found.digest()


def data_checksum(data: bytes) -> bytes:
    """The checksum of a packed result."""
    return hashlib.blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any], verb: str = "INSERT") -> None:
    """Insert a row with its checksum; `row` has the columns of `TABLES`, and for `runs` also `data`."""
    checksum = row_checksum(table, (row[name] for name in TABLES[table]))
    names = [*row, "checksum"]
    columns = ", ".join(f'"{name}"' for name in names)
    connection.execute(
        f"{verb} INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})", (*row.values(), checksum)
    )


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a new store."""
    for statement in SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    _seal_schema(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _schema_text(connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return repr(rows)


def _seal_schema(connection: sqlite3.Connection) -> None:
    value = hashlib.sha256(_schema_text(connection).encode()).hexdigest()
    insert(connection, "meta", {"key": SCHEMA_CHECKSUM, "value": value}, "INSERT OR REPLACE")


# ---------------------------------------------------------------------- checking


def damage(connection: sqlite3.Connection) -> str:
    """What is wrong with the schema or the first damaged row, in words; empty if nothing is."""
    kept = connection.execute("SELECT value FROM meta WHERE key = ?", (SCHEMA_CHECKSUM,)).fetchone()
    if kept is None or kept[0] != hashlib.sha256(_schema_text(connection).encode()).hexdigest():
        return "the checksum of its tables' definitions is wrong"
    for table, columns in TABLES.items():
        selected = ", ".join(f'"{name}"' for name in columns)
        for *values, checksum in connection.execute(f"SELECT {selected}, checksum FROM {table}"):
            if row_checksum(table, values) != checksum:
                return f"the checksum of row {values[0]!r} of the table {table} is wrong"
    return _dangling(connection)


def _dangling(connection: sqlite3.Connection) -> str:
    """A run without its configuration, in words; empty if there is none."""
    for table in ("planned", "runs"):
        found = connection.execute(
            f"SELECT key FROM {table} WHERE configuration NOT IN (SELECT number FROM configurations) LIMIT 1"
        ).fetchone()
        if found is not None:
            return f"row {found[0]!r} of the table {table} has no configuration"
    return ""


# ---------------------------------------------------------------------- earlier versions


def _add_checksums(connection: sqlite3.Connection) -> None:
    """From version 1 to 2."""
    connection.execute("ALTER TABLE configurations ADD COLUMN extra TEXT NOT NULL DEFAULT '{}'")
    connection.execute("ALTER TABLE runs ADD COLUMN data_checksum BLOB NOT NULL DEFAULT x''")
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum BLOB NOT NULL DEFAULT x''")
    seal(connection)


def seal(connection: sqlite3.Connection) -> None:
    """Give every row, result and definition the checksum of what is there now."""
    for run_id, data in connection.execute("SELECT run_id, data FROM runs"):
        connection.execute("UPDATE runs SET data_checksum = ? WHERE run_id = ?", (data_checksum(data), run_id))
    for table, columns in TABLES.items():
        selected = ", ".join(f'"{name}"' for name in columns)
        for row in connection.execute(f"SELECT {selected} FROM {table}").fetchall():
            connection.execute(
                f"UPDATE {table} SET checksum = ? WHERE {columns[0]} = ?", (row_checksum(table, row), row[0])
            )
    _seal_schema(connection)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_checksums}
"""From version n to n + 1, each run in one transaction."""
