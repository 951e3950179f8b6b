"""The tables of the catalogue.

Their version is stored in the header of the file. A reader that expects another version does not
guess: it treats the index as missing.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Mode

CATALOGUE_FILE_NAME: Final = "catalogue.db"
BASE_FILE_NAME: Final = "base.db"
"""The catalogue of an earlier generation that a catalogue adds to, in the same folder: see `catalogue_layers`."""

LAYERED_APPLICATION_ID: Final = 0x436C6561
"""Marks a catalogue that is incomplete without its base, in the header of the file."""

CATALOGUE_SCHEMA_VERSION: Final = 2
"""Rises with every change of the tables or of the values packed in them."""

PAGE_BYTES: Final = 8192

CREATE_TABLES_SQL: Final = """
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
CREATE INDEX files_list ON files(path, size, mtime_ns, hash, lang, mode, problem); -- read without the contents
CREATE INDEX files_history ON files(path, last_author, last_modified, last_commit, churn); -- as above
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
CREATE INDEX chunks_lint ON chunks(file) WHERE lint IS NOT NULL;
CREATE TABLE replaced(id INTEGER PRIMARY KEY); -- files of the base that are here, or gone: see `catalogue_layers`
"""


def read_schema_version(path: Path) -> int | None:
    """Read the schema version from the header of a catalogue; None when it has none, or lacks its base."""
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except OSError:
        return None
    if len(header) < 72 or not header.startswith(b"SQLite format 3\0"):
        return None
    if header[68:72] == LAYERED_APPLICATION_ID.to_bytes(4, "big") and not path.with_name(BASE_FILE_NAME).is_file():
        return None
    return int.from_bytes(header[60:64], "big")


class ChunkRow(Struct, array_like=True, frozen=True):
    """One chunk: its columns, and everything else packed."""

    mode: Mode
    kind: str
    name: str
    start: int
    end: int
    start_line: int
    end_line: int
    headline: str
    facts: bytes
    """The `Chunk` in msgpack, without its steps."""
    summary: bytes | None
    """The risk `Summary` in msgpack; None for chunks that cannot have one."""


class FileRow(Struct, array_like=True, frozen=True):
    """One file: everything that follows from its path and its bytes."""

    path: str
    size: int
    mtime_ns: int
    """`UNCERTAIN_MTIME_NS` when the file may have changed right after it was read."""
    hash: bytes
    lang: str
    mode: Mode
    lines: int
    problem: str
    facts: bytes
    """`Relations` in msgpack."""
    text: bytes
    """The bytes of the file, deflated."""
    vectors: bytes
    attributes: bytes
    chunks: list[ChunkRow]


class Relations(Struct):
    """The names that a file imports and exports."""

    imports: list[str] = []
    exports: list[str] = []


UNCERTAIN_MTIME_NS = -1
"""A modification time that no file has: only the hash shows whether the file is the same."""
