"""The tables of a store in SQLite, and how its file is opened."""

import sqlite3
import time
from pathlib import Path
from typing import Final

from cleats.contract.errors import ToolError
from cleats.toolsets.launch import disk

PATIENCE = 20.0
"""Seconds that a writer waits for the others. A write takes a millisecond."""

SCHEMA: Final = 1

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  config_hash TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  product_slug TEXT NOT NULL,
  state TEXT NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires REAL NOT NULL,
  event_count INTEGER NOT NULL,
  last_hash TEXT NOT NULL,
  config TEXT NOT NULL,
  shown_config TEXT NOT NULL,
  snapshot TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_product ON runs (product_slug, number);
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state, number);
CREATE TABLE IF NOT EXISTS steps (
  run_id TEXT NOT NULL,
  step TEXT NOT NULL,
  place INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  seconds REAL NOT NULL,
  output TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  ts TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  span_id TEXT NOT NULL,
  parent_span_id TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  event_hash TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
"""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, and make it what we need; several processes may do so at once.

    Raises:
        ToolError: INTERNAL, a newer version has written it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = sqlite3.connect(
        path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def trouble(error: sqlite3.Error) -> ToolError:
    """What is wrong with the file of the runs, and what to do about it."""
    cause = getattr(error, "sqlite_errorname", type(error).__name__)
    if cause == "SQLITE_IOERR_SHMSIZE":  # the file beside it that readers need finds no room
        return disk.no_room(cause)
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # without the finer part
        case sqlite3.SQLITE_FULL:
            return disk.no_room(cause)
        case sqlite3.SQLITE_BUSY:
            return disk.failing(
                "Another program holds the file that the runs are kept in.",
                "End what has runs.sqlite open, such as a backup or a database browser, then try "
                "again; nothing was half written.",
                cause,
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return disk.failing(
                "The file that the runs are kept in is damaged.",
                "Move runs.sqlite away, and the -wal and -shm files beside it; then put back a "
                "copy, or begin with no runs.",
                cause,
                retryable=False,
            )
        case _:
            return disk.failing(
                "The file that the runs are kept in cannot be used now.",
                "Try again; nothing was half written. If it stays so, look at the data folder.",
                cause,
            )


def _prepare(database: sqlite3.Connection) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            # The first to come changes the file, and SQLite does not let the others wait for it.
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if not busy or time.monotonic() > end:
                raise
            time.sleep(0.01)
    database.execute("PRAGMA synchronous = FULL")
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {SCHEMA}")
    database.execute("COMMIT")
    if version > SCHEMA:
        raise disk.failing(
            "The runs were written by a newer version of Cleats.",
            "Update this one.",
            "NewerStore",
            retryable=False,
        )
