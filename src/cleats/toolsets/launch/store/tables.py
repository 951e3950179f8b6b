"""The tables of a store in SQLite, and how its file is opened."""

import sqlite3
import time
from pathlib import Path
from typing import Final

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
    """Open the file, and make it what we need; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = sqlite3.connect(
        path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    end = time.monotonic() + PATIENCE
    while True:
        try:
            # The first to come changes the file, and SQLite does not let the others wait for it.
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > end:
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
        database.close()
        raise RuntimeError(f"the runs in {path.name} were written by a newer version")
    return database
