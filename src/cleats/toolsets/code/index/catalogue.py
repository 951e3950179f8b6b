"""The catalogue: one SQLite file with everything that is known about a repository.

It is the truth of a generation; every other part is derived from it and can be rebuilt. While it is
written nobody reads it and a crash loses the whole draft, so it needs no journal; once published it
never changes, so readers need no locks.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import apsw
import msgspec
from msgspec.structs import astuple

from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_SCHEMA_VERSION, CREATE_TABLES_SQL, ChunkRow, FileRow

_WRITER_PRAGMAS_SQL: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
"""
"""Settings for a file that is thrown away when its writer fails."""


def _make_insert_sql(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table}({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - ours


_INSERT_FILE_SQL = _make_insert_sql("files", FileRow.__struct_fields__[:-1])
_DELETE_FILE_SQL = (
    "DELETE FROM chunks WHERE file = (SELECT id FROM files WHERE path = :path);"
    "DELETE FROM files WHERE path = :path; DELETE FROM skipped WHERE path = :path"
)
_INSERT_CHUNK_SQL = _make_insert_sql("chunks", ("id", "file", "ordinal", *ChunkRow.__struct_fields__))
_SELECT_CHUNK_NAMES_SQL = (
    "SELECT id, mode, kind, name FROM chunks WHERE file = (SELECT id FROM files WHERE path = ?) ORDER BY ordinal"
)


class KnownFile(NamedTuple):
    """The size, time and hash of a file when it was last read."""

    size: int
    mtime_ns: int
    hash: bytes


class CatalogueCounts(NamedTuple):
    """The number of files, of partly understood ones, of chunks by mode, of files by language and skip reason."""

    files: int
    problems: int
    chunks: dict[str, int]
    languages: dict[str, int]
    skipped: dict[str, int]


class IndexCatalogue:
    """One catalogue, open for its writer or for a reader."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._removed_chunks: dict[str, list[tuple[int, str, str, str]]] = {}
        """Id, mode, kind and name of the chunks of removed files, by path."""
        self._next_chunk_id = 0
        """An id that no chunk has or had, once files were removed."""
        self._written_rows: dict[str, set[int]] = {"files": set(), "chunks": set()}
        self._chunks_by_mode: Counter[str] | None = None
        """The number of chunks of each mode; None until they are counted."""

    @classmethod
    def create(cls, path: Path) -> "IndexCatalogue":
        """Create an empty catalogue."""
        connection = apsw.Connection(os.fspath(path))
        connection.execute("PRAGMA page_size = 8192;" + _WRITER_PRAGMAS_SQL)
        connection.execute(f"PRAGMA user_version = {CATALOGUE_SCHEMA_VERSION};" + CREATE_TABLES_SQL)
        connection.execute("BEGIN")  # one transaction: fewer writes, and no locks in between
        return cls(connection)

    @classmethod
    def open_for_update(cls, path: Path) -> "IndexCatalogue":
        """Open a copy of an earlier catalogue for writing."""
        connection = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute(_WRITER_PRAGMAS_SQL)
        connection.execute("BEGIN")
        catalogue = cls(connection)
        # Counting again would read every chunk of the repository for one changed file.
        known_counts = catalogue.read_meta().get("counts")
        catalogue._chunks_by_mode = Counter(known_counts["chunks"]) if known_counts else None
        connection.set_update_hook(catalogue._record_write)
        return catalogue

    def _record_write(self, _operation: int, _database: str, table: str, row: int) -> None:
        if table in self._written_rows:
            self._written_rows[table].add(row)

    def list_written_files(self) -> set[int]:
        """Return the ids of the files of which anything was written since the catalogue was opened for an update."""
        chunks = ((chunk,) for chunk in self._written_rows["chunks"])
        rows = self.connection.executemany("SELECT file FROM chunks WHERE id = ?", chunks)
        return self._written_rows["files"].union(file for (file,) in rows)

    @classmethod
    def open(cls, path: Path) -> "IndexCatalogue":
        """Open a published catalogue for reading."""
        uri = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1"
        return cls(apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def commit(self) -> None:
        """Write all changes, and begin the next transaction."""
        self.connection.execute("COMMIT; BEGIN")

    def close(self) -> None:
        """Close the catalogue; uncommitted changes are lost. Safe to repeat."""
        self.connection.close(force=True)

    def read_meta(self) -> dict[str, Any]:
        """Return the metadata of the generation."""
        rows = self.connection.execute("SELECT key, value FROM meta")
        return {key: msgspec.json.decode(value) for key, value in rows}

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Add or replace metadata of the generation."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [(key, msgspec.json.encode(value).decode()) for key, value in values.items()],
        )

    def read_known_files(self) -> dict[str, KnownFile]:
        """Return every file by its path, indexed or skipped, as it was when it was read."""
        rows = self.connection.execute(
            "SELECT path, size, mtime_ns, hash FROM files UNION ALL SELECT path, size, mtime_ns, hash FROM skipped"
        )
        return {path: KnownFile(size, mtime, digest) for path, size, mtime, digest in rows}

    def add_file(self, row: FileRow) -> None:
        """Add a file that is not in the catalogue.

        If a file was removed under the same path, its chunks of each name keep their ids, unless others have the
        name now.
        """
        *columns, chunks = astuple(row)
        removed = self._removed_chunks.pop(row.path, [])
        ids = list(self._assign_ids(removed, chunks))
        if self._chunks_by_mode is not None:
            self._chunks_by_mode.update(chunk.mode for chunk in chunks)
        self.connection.execute(_INSERT_FILE_SQL, columns)
        file = self.connection.last_insert_rowid()
        rows = ((ids[ordinal], file, ordinal, *astuple(chunk)) for ordinal, chunk in enumerate(chunks))
        self.connection.executemany(_INSERT_CHUNK_SQL, rows)

    def _assign_ids(
        self, removed: Sequence[tuple[int, str, str, str]], chunks: Sequence[ChunkRow]
    ) -> Iterator[int | None]:
        removed_by_name, kinds_by_name = defaultdict(list), defaultdict(list)
        for chunk_id, mode, kind, name in removed:
            removed_by_name[name].append((chunk_id, mode, kind))
        for chunk in chunks:
            kinds_by_name[chunk.name].append((chunk.mode, chunk.kind))
        kept_ids = {
            name: iter([chunk_id for chunk_id, _, _ in items])
            for name, items in removed_by_name.items()
            if [(mode, kind) for _, mode, kind in items] == kinds_by_name[name]
        }
        for chunk in chunks:
            if chunk.name in kept_ids:
                yield next(kept_ids[chunk.name])
            elif self._next_chunk_id:
                yield self._next_chunk_id
                self._next_chunk_id += 1
            else:
                yield None

    def add_skipped_file(self, path: str, known_file: KnownFile, reason: str, detail: str) -> None:
        """Record a file that is not indexed, so that it is not read again."""
        self.connection.execute("INSERT INTO skipped VALUES (?,?,?,?,?,?)", (path, *known_file, reason, detail))

    def remove_files(self, paths: Iterable[str]) -> None:
        """Delete files and their chunks."""
        for path in paths:
            self._next_chunk_id = (
                self._next_chunk_id or self.connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").get
            )
            chunks = list(self.connection.execute(_SELECT_CHUNK_NAMES_SQL, (path,)))
            self._removed_chunks[path] = chunks
            if self._chunks_by_mode is not None:
                self._chunks_by_mode.subtract(mode for _, mode, _, _ in chunks)
            self.connection.execute(_DELETE_FILE_SQL, {"path": path})

    def update_mtime(self, path: str, size: int, mtime_ns: int) -> None:
        """Record a new modification time for a file with the same content."""
        for table in ("files", "skipped"):
            query = f"UPDATE {table} SET size = ?, mtime_ns = ? WHERE path = ?"  # noqa: S608 - ours
            self.connection.execute(query, (size, mtime_ns, path))

    def list_problems(self, limit: int) -> list[tuple[str, str]]:
        """Return the first files that were only partly understood."""
        query = "SELECT path, problem FROM files WHERE problem != '' ORDER BY path LIMIT ?"
        return list(self.connection.execute(query, (limit,)))

    def list_skipped_files(self) -> list[tuple[str, str, str]]:
        """Return the files that were skipped because of their content, with the reasons."""
        return list(self.connection.execute("SELECT path, reason, detail FROM skipped"))

    def count_contents(self, records_folder: str = "") -> CatalogueCounts:
        """Count everything; files below `records_folder` count as records, not as a language."""
        prefix = f"{records_folder}/" if records_folder else ""
        language = "iif(?1 AND substr(path, 1, ?1) = ?2, 'records', lang)"
        return CatalogueCounts(
            files=self.connection.execute("SELECT count(*) FROM files").get,
            problems=self.connection.execute("SELECT count(*) FROM files WHERE problem != ''").get,
            chunks=self._count_chunks(),
            languages=self._count_groups(language, "files", len(prefix), prefix),
            skipped=self._count_groups("reason", "skipped"),
        )

    def _count_chunks(self) -> dict[str, int]:
        if self._chunks_by_mode is None:
            return self._count_groups("mode", "chunks")
        return {mode: count for mode, count in sorted(self._chunks_by_mode.items()) if count}

    def _count_groups(self, group: str, table: str, *parameters: Any) -> dict[str, int]:
        query = f"SELECT {group}, count(*) FROM {table} GROUP BY 1 ORDER BY 1"  # noqa: S608 - ours
        return dict(self.connection.execute(query, parameters))
