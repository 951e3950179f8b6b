"""The catalogue: one SQLite file that holds all that is known of a repository.

It is the truth of a generation; every other part is made from it and can be made again. While it
is written nobody reads it and a crash loses the whole draft, so it needs no journal; once published
it never changes, so readers need no locks.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import apsw
import msgspec

from cleats.toolsets.code.store.rows import FileRow
from cleats.toolsets.code.store.schema import SCHEMA, TABLES

_PACE: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
"""
"""For a file that is thrown away when its writer fails."""

_FILE = (
    "INSERT INTO files(path, size, mtime_ns, hash, lang, mode, lines, problem, facts, text,"
    " vectors, attributes) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
)
_CHUNK = (
    "INSERT INTO chunks(file, ordinal, mode, kind, name, start, end, start_line, end_line,"
    " headline, facts, summary) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
)


class Known(NamedTuple):
    """A file as the catalogue last saw it."""

    size: int
    mtime_ns: int
    hash: bytes


class Counts(NamedTuple):
    """How much there is in a catalogue."""

    files: int
    problems: int
    """Files that were understood only in part."""
    chunks: dict[str, int]
    """By mode."""
    languages: dict[str, int]
    """Files by language."""
    skipped: dict[str, int]
    """Files whose content kept them out, by reason."""


class Catalogue:
    """One catalogue, open for its writer or for a reader."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    @classmethod
    def create(cls, path: Path) -> "Catalogue":
        """Start an empty one."""
        connection = apsw.Connection(os.fspath(path))
        connection.execute("PRAGMA page_size = 8192;" + _PACE)
        connection.execute(f"PRAGMA user_version = {SCHEMA};" + TABLES)
        return cls._writing(connection)

    @classmethod
    def update(cls, path: Path) -> "Catalogue":
        """Go on with a copy of an earlier one."""
        connection = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute(_PACE)
        return cls._writing(connection)

    @classmethod
    def open(cls, path: Path) -> "Catalogue":
        """Read a published one."""
        uri = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return cls(apsw.Connection(uri, flags=flags))

    @classmethod
    def _writing(cls, connection: apsw.Connection) -> "Catalogue":
        connection.execute("BEGIN")  # one transaction: fewer writes, and no locks in between
        return cls(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def commit(self) -> None:
        """Write down all that was changed, and be ready for more."""
        self.connection.execute("COMMIT")
        self.connection.execute("BEGIN")

    def close(self) -> None:
        """Close it; what was not committed is lost. Safe to repeat."""
        self.connection.close(force=True)

    def meta(self) -> dict[str, Any]:
        """What is said about the whole."""
        rows = self.connection.execute("SELECT key, value FROM meta")
        return {key: msgspec.json.decode(value) for key, value in rows}

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Say more about the whole, or other things."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [(key, msgspec.json.encode(value).decode()) for key, value in values.items()],
        )

    def known(self) -> dict[str, Known]:
        """Every file by its path, as it was when it was read, indexed or not."""
        rows = self.connection.execute(
            "SELECT path, size, mtime_ns, hash FROM files UNION ALL"
            " SELECT path, size, mtime_ns, hash FROM skipped"
        )
        return {path: Known(size, mtime, digest) for path, size, mtime, digest in rows}

    def put(self, row: FileRow) -> None:
        """Add a file that is not in it."""
        self.connection.execute(
            _FILE,
            (
                *(row.path, row.size, row.mtime_ns, row.hash, row.lang, row.mode, row.lines),
                *(row.problem, row.facts, row.text, row.vectors, row.attributes),
            ),
        )
        file = self.connection.last_insert_rowid()
        self.connection.executemany(
            _CHUNK,
            (
                (
                    *(file, ordinal, chunk.mode, chunk.kind, chunk.name, chunk.start, chunk.end),
                    *(chunk.start_line, chunk.end_line, chunk.headline, chunk.facts, chunk.summary),
                )
                for ordinal, chunk in enumerate(row.chunks)
            ),
        )

    def skip(self, path: str, known: Known, reason: str, detail: str) -> None:
        """Remember a file that is not indexed, so that it is not read again."""
        self.connection.execute(
            "INSERT INTO skipped VALUES (?,?,?,?,?,?)", (path, *known, reason, detail)
        )

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files and their chunks."""
        for path in paths:
            self.connection.execute(
                "DELETE FROM chunks WHERE file = (SELECT id FROM files WHERE path = ?)", (path,)
            )
            self.connection.execute("DELETE FROM files WHERE path = ?", (path,))
            self.connection.execute("DELETE FROM skipped WHERE path = ?", (path,))

    def touch(self, path: str, size: int, mtime_ns: int) -> None:
        """Note another time for a file with the same content."""
        for table in ("files", "skipped"):
            self.connection.execute(
                f"UPDATE {table} SET size = ?, mtime_ns = ? WHERE path = ?",  # noqa: S608 - ours
                (size, mtime_ns, path),
            )

    def problems(self, limit: int) -> list[tuple[str, str]]:
        """The first files that were understood only in part."""
        return list(
            self.connection.execute(
                "SELECT path, problem FROM files WHERE problem != '' ORDER BY path LIMIT ?",
                (limit,),
            )
        )

    def left_out(self) -> list[tuple[str, str, str]]:
        """The files whose content kept them out, and why."""
        return list(self.connection.execute("SELECT path, reason, detail FROM skipped"))

    def counts(self, records: str = "") -> Counts:
        """How much there is of everything; what lies below `records` is no file of a language."""
        below = f"{records}/" if records else ""
        languages = self._groups(
            "SELECT iif(?1 AND substr(path, 1, ?1) = ?2, 'records', lang), count(*) FROM files"
            " GROUP BY 1 ORDER BY 1",
            (len(below), below),
        )
        return Counts(
            files=self._number("SELECT count(*) FROM files"),
            problems=self._number("SELECT count(*) FROM files WHERE problem != ''"),
            chunks=dict(self._groups("SELECT mode, count(*) FROM chunks GROUP BY 1 ORDER BY 1")),
            languages=dict(languages),
            skipped=dict(
                self._groups("SELECT reason, count(*) FROM skipped GROUP BY 1 ORDER BY 1")
            ),
        )

    def _groups(self, query: str, given: tuple[Any, ...] = ()) -> Iterator[tuple[str, int]]:
        yield from self.connection.execute(query, given)

    def _number(self, query: str) -> int:
        return int(self.connection.execute(query).get)
