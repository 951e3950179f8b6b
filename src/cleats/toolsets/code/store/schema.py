"""The form of the catalogue's tables.

It has a number, which is kept in the file's header. A reader that knows another form does not
guess: to it there is no index.
"""

from pathlib import Path
from typing import Final

FILE: Final = "catalogue.db"

SCHEMA: Final = 1
"""Rises with every change of the tables or of what is packed in them."""

TABLES: Final = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,      -- relative, with slashes
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash BLOB NOT NULL,             -- BLAKE2b of the bytes, 16 bytes
    lang TEXT NOT NULL,
    mode TEXT NOT NULL,
    lines INTEGER NOT NULL,
    problem TEXT NOT NULL,
    facts BLOB NOT NULL,            -- msgpack: imports, exports
    text BLOB NOT NULL,             -- zlib
    vectors BLOB NOT NULL,          -- int8, chunks x dimensions
    attributes BLOB NOT NULL,
    last_author TEXT,               -- from here on: git, NULL where it knows nothing
    last_modified INTEGER,          -- seconds since 1970
    last_commit TEXT,
    churn INTEGER
);
CREATE TABLE skipped(             -- files whose content is not worth indexing
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash BLOB NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,       -- in its file, from 0
    mode TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    start INTEGER NOT NULL,         -- bytes
    end INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    headline TEXT NOT NULL,
    facts BLOB NOT NULL,            -- msgpack: facts.Chunk without steps
    summary BLOB,                   -- msgpack: risk as its own file shows it
    risk BLOB,                      -- msgpack: risk with what it calls; NULL for none
    authors BLOB,                   -- msgpack: list of names; NULL for none
    lint BLOB                       -- msgpack: list of findings; NULL for none
);
CREATE INDEX chunks_file ON chunks(file);
"""


def form(path: Path) -> int | None:
    """The number of a catalogue's form, from its header alone; None when it has none."""
    try:
        with path.open("rb") as file:
            header = file.read(64)
    except OSError:
        return None
    if len(header) < 64 or not header.startswith(b"SQLite format 3\0"):
        return None
    return int.from_bytes(header[60:64], "big")
