"""The catalogue: one SQLite file with everything that is known about a repository.

It is the truth of a generation; every other part is derived from it and can be rebuilt. While it is
written nobody reads it and a crash loses the whole draft, so it needs no journal; once published it
never changes, so readers need no locks.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import apsw
import msgspec
from msgspec.structs import astuple

from cleats.toolsets.code.index import catalogue_layers as layers
from cleats.toolsets.code.index.catalogue_schema import ChunkRow, FileRow


def _make_insert_sql(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO main.{table}({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - ours


_INSERT_FILE_SQL = _make_insert_sql("files", ("id", *FileRow.__struct_fields__[:-1]))
_DELETE_FILE_SQL = (
    "DELETE FROM main.chunks WHERE file = (SELECT id FROM main.files WHERE path = :path);"
    "DELETE FROM main.files WHERE path = :path; DELETE FROM main.skipped WHERE path = :path"
)
_REPLACE_FILE_SQL = "INSERT OR IGNORE INTO main.replaced SELECT id FROM base.files WHERE path = ?"
_INSERT_CHUNK_SQL = _make_insert_sql("chunks", ("id", "file", "ordinal", *ChunkRow.__struct_fields__))
_SELECT_CHUNK_NAMES_SQL = (
    "SELECT id, mode, kind, name FROM chunks WHERE file = (SELECT id FROM files WHERE path = ?) ORDER BY ordinal"
)
_SELECT_FILE_OF_CHUNK_SQL = "SELECT file FROM chunks WHERE id = ?"


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

    def __init__(self, connection: apsw.Connection, *, has_base: bool = False) -> None:
        self.connection = connection
        self._has_base = has_base
        self._removed_chunks: dict[str, list[tuple[int, str, str, str]]] = {}
        """Id, mode, kind and name of the chunks of removed files, by path."""
        self._removed_paths: set[str] = set()
        self._next_ids = {"files": 1, "chunks": 1}
        """Ids that no file and no chunk has or had."""
        self._written_rows: dict[str, set[int]] = {"files": set(), "chunks": set()}
        self._chunks_by_mode: Counter[str] | None = None
        """The number of chunks of each mode; None until they are counted."""
        self._known_counts: dict[str, Any] = {}
        """The counts of the catalogue that was opened for an update, and the files that changed them."""
        self._count_changes: list[tuple[int, str, str, str]] = []

    @classmethod
    def create(cls, path: Path) -> "IndexCatalogue":
        """Create an empty catalogue."""
        connection = apsw.Connection(os.fspath(path))
        layers.create_tables(connection)
        connection.execute("BEGIN")  # one transaction: fewer writes, and no locks in between
        return cls(connection)

    @classmethod
    def open_for_update(cls, path: Path) -> "IndexCatalogue":
        """Open a copy of an earlier catalogue for writing."""
        connection = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        connection.execute(layers.WRITER_PRAGMAS_SQL)
        catalogue = cls(connection, has_base=layers.attach_base(connection, path))
        connection.execute("BEGIN")
        for table in catalogue._next_ids:
            schemas = ("main", "base")[: 1 + catalogue._has_base]
            ids = [connection.execute(f"SELECT coalesce(max(id), 0) FROM {schema}.{table}").get for schema in schemas]  # noqa: S608 - ours
            catalogue._next_ids[table] = max(ids) + 1
        # Counting again would read every chunk of the repository for one changed file.
        known_counts = catalogue.read_meta().get("counts")
        if known_counts:
            catalogue._known_counts = known_counts
            catalogue._chunks_by_mode = Counter(known_counts["chunks"])
        connection.set_update_hook(catalogue._record_write)
        return catalogue

    def _record_write(self, _operation: int, _database: str, table: str, row: int) -> None:
        if table in self._written_rows:
            self._written_rows[table].add(row)

    def list_changed_paths(self) -> set[str]:
        """Return the paths of all files that can differ from those of the catalogue that was opened for an update."""
        chunks = ((chunk,) for chunk in self._written_rows["chunks"])
        written = self.connection.executemany(_SELECT_FILE_OF_CHUNK_SQL, chunks)
        files = {(file,) for file in self._written_rows["files"].union(file for (file,) in written)}
        paths = self.connection.executemany("SELECT path FROM files WHERE id = ?", files)
        return self._removed_paths.union(path for (path,) in paths)

    @classmethod
    def open(cls, path: Path) -> "IndexCatalogue":
        """Open a published catalogue for reading."""
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(layers.make_read_only_uri(path), flags=flags)
        return cls(connection, has_base=layers.attach_base(connection, path))

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
        rows = self.connection.execute("SELECT key, value FROM main.meta")
        return {key: msgspec.json.decode(value) for key, value in rows}

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Add or replace metadata of the generation."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO main.meta VALUES (?, ?)",
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
        self._count_changes.append((1, row.path, row.lang, row.problem))
        file = self._assign_next_id("files")
        self.connection.execute(_INSERT_FILE_SQL, (file, *columns))
        rows = ((ids[ordinal], file, ordinal, *astuple(chunk)) for ordinal, chunk in enumerate(chunks))
        self.connection.executemany(_INSERT_CHUNK_SQL, rows)

    def _assign_ids(self, removed: Sequence[tuple[int, str, str, str]], chunks: Sequence[ChunkRow]) -> Iterator[int]:
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
            else:
                yield self._assign_next_id("chunks")

    def _assign_next_id(self, table: str) -> int:
        number = self._next_ids[table]
        self._next_ids[table] += 1
        return number

    def add_skipped_file(self, path: str, known_file: KnownFile, reason: str, detail: str) -> None:
        """Record a file that is not indexed, so that it is not read again."""
        self.connection.execute("INSERT INTO main.skipped VALUES (?,?,?,?,?,?)", (path, *known_file, reason, detail))

    def remove_files(self, paths: Iterable[str]) -> None:
        """Delete files and their chunks."""
        for path in paths:
            chunks = list(self.connection.execute(_SELECT_CHUNK_NAMES_SQL, (path,)))
            self._removed_chunks[path] = chunks
            self._removed_paths.add(path)
            files = self.connection.execute("SELECT lang, problem FROM files WHERE path = ?", (path,))
            self._count_changes += [(-1, path, lang, problem) for lang, problem in files]
            if self._chunks_by_mode is not None:
                self._chunks_by_mode.subtract(mode for _, mode, _, _ in chunks)
            self.connection.execute(_DELETE_FILE_SQL, {"path": path})
            if self._has_base:
                self.connection.execute(_REPLACE_FILE_SQL, (path,))

    def take_files(self, files: Iterable[int]) -> None:
        """Take care that rows of files can be changed in `main`: those in the base are copied."""
        for file in files if self._has_base else ():
            layers.take_file(self.connection, file)

    def update_chunks(self, column: str, values: Iterable[tuple[object, int]]) -> None:
        """Set a column of chunks: pairs of a value and the id of a chunk."""
        rows = list(values)
        chunks = {(chunk,) for _, chunk in rows} if self._has_base else ()
        self.take_files({file for (file,) in self.connection.executemany(_SELECT_FILE_OF_CHUNK_SQL, chunks)})
        self.connection.executemany(f"UPDATE main.chunks SET {column} = ? WHERE id = ?", rows)  # noqa: S608 - ours

    def update_mtime(self, path: str, size: int, mtime_ns: int) -> None:
        """Record a new modification time for a file with the same content."""
        self.take_files([file for (file,) in self.connection.execute("SELECT id FROM files WHERE path = ?", (path,))])
        for table in ("files", "skipped"):
            query = f"UPDATE main.{table} SET size = ?, mtime_ns = ? WHERE path = ?"  # noqa: S608 - ours
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
        languages = Counter(self._known_counts.get("languages", {}))
        problems = self._known_counts.get("problems", 0)
        changes = self._count_changes
        if not self._known_counts:
            changes = [(1, *row) for row in self.connection.execute("SELECT path, lang, problem FROM files")]
        prefix = f"{records_folder}/"
        for change, path, lang, problem in changes:
            languages["records" if records_folder and path.startswith(prefix) else lang] += change
            problems += change * bool(problem)
        return CatalogueCounts(
            files=languages.total(),
            problems=problems,
            chunks=self._count_chunks(),
            languages={lang: count for lang, count in sorted(languages.items()) if count},
            skipped=self._count_groups("reason", "skipped"),
        )

    def _count_chunks(self) -> dict[str, int]:
        if self._chunks_by_mode is None:
            return self._count_groups("mode", "chunks")
        return {mode: count for mode, count in sorted(self._chunks_by_mode.items()) if count}

    def _count_groups(self, group: str, table: str) -> dict[str, int]:
        query = f"SELECT {group}, count(*) FROM {table} GROUP BY 1 ORDER BY 1"  # noqa: S608 - ours
        return dict(self.connection.execute(query))
