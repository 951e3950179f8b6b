"""What the catalogue knows of a hit: its row, its facts, its text, its history."""

import hashlib
import threading
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.rows import Relations

_PLACE = (
    "SELECT id, lang, (SELECT min(id) FROM chunks WHERE file = f.id) FROM files f WHERE path = ?"
)
_COLUMNS = "mode, kind, name, start, end, start_line, end_line, headline, id"
_BY_ID = f"SELECT {_COLUMNS} FROM chunks WHERE id = ? AND file = ? AND ordinal = ?"  # noqa: S608
_BY_NUMBER = f"SELECT {_COLUMNS} FROM chunks WHERE file = ? AND ordinal = ?"  # noqa: S608
_BY_LINES = (
    f"SELECT {_COLUMNS} FROM chunks WHERE file = ? AND start_line <= ? AND end_line >= ?"  # noqa: S608
    " ORDER BY ordinal"
)
_MORE = "SELECT facts, risk, authors, lint FROM chunks WHERE id = ?"
_FILE = "SELECT facts, last_author, last_modified, last_commit, churn FROM files WHERE id = ?"
_FACTS = "SELECT facts FROM chunks WHERE id = ?"
_TEXT = "SELECT text FROM files WHERE id = ?"


class _Signed(msgspec.Struct):
    """The one fact of a chunk that a short answer has."""

    signature: str = ""


_signed = msgspec.msgpack.Decoder(_Signed)
_chunk = msgspec.msgpack.Decoder(Chunk)
_relations = msgspec.msgpack.Decoder(Relations)

IDLE: Final = 4
"""Connections that wait for the next search."""


class Row(Struct, frozen=True):
    """Where a chunk is and what it is called."""

    file: int
    path: str
    lang: str
    mode: str
    kind: str
    name: str
    start: int
    end: int
    start_line: int
    end_line: int
    headline: str
    id: int

    @property
    def key(self) -> str:
        """A name for the chunk that only changes when the chunk does."""
        said = repr((self.path, self.mode, self.kind, self.name, self.start, self.end))
        return hashlib.blake2b(said.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class More(Struct, frozen=True):
    """All that is known of a chunk and its file."""

    chunk: Chunk
    risk: Any
    authors: list[str]
    lint: list[Any]
    relations: Relations
    last_author: str | None
    last_modified: int | None
    last_commit: str | None
    churn: int | None


class Told(Protocol):
    """What an answer reads of its hits, wherever they are kept."""

    def row(self, path: str, ordinal: int) -> Row: ...

    def more(self, row: Row) -> More: ...

    def signature(self, row: Row) -> str: ...

    def lines(self, row: Row) -> list[str]: ...


class Tells(Protocol):
    """Where that is read."""

    def reading(self) -> AbstractContextManager[Told]: ...


class Details:
    """The catalogue of one generation, for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / schema.FILE
        self._idle: list[Catalogue] = []
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for catalogue in idle:
            catalogue.close()

    @contextmanager
    def reading(self) -> Iterator["Reading"]:
        """A connection of one's own for a while."""
        with self._lock:
            catalogue = self._idle.pop() if self._idle else None
        reading = Reading(catalogue or Catalogue.open(self._path))
        try:
            yield reading
        finally:
            with self._lock:
                kept = not self._closed and len(self._idle) < IDLE
                if kept:
                    self._idle.append(reading.catalogue)
            if not kept:
                reading.catalogue.close()


class Reading:
    """What one search reads; each file's text is unpacked once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._texts: dict[int, list[str]] = {}
        self._places: dict[str, tuple[int, str, int]] = {}

    def row(self, path: str, ordinal: int) -> Row:
        """A chunk by its file and its number in it."""
        execute = self.catalogue.connection.execute
        place = self._places.get(path)
        if place is None:
            [place] = execute(_PLACE, (path,))
            self._places[path] = place
        file, lang, first = place
        # The chunks of a file are written one after the other, so a guess is nearly always right.
        found = list(execute(_BY_ID, (first + ordinal, file, ordinal)))
        [columns] = found or execute(_BY_NUMBER, (file, ordinal))
        return Row(file, path, lang, *columns)

    def overlapping(self, path: str, first: int, last: int) -> list[Row]:
        """The chunks of a file that have some of these lines, in their order."""
        execute = self.catalogue.connection.execute
        return [
            Row(file, path, lang, *columns)
            for file, lang, _ in execute(_PLACE, (path,))
            for columns in execute(_BY_LINES, (file, last, first))
        ]

    def more(self, row: Row) -> More:
        """All the rest."""
        [(facts, risk, authors, lint)] = self.catalogue.connection.execute(_MORE, (row.id,))
        [(relations, *history)] = self.catalogue.connection.execute(_FILE, (row.file,))
        return more(facts, risk, authors, lint, relations, *history)

    def signature(self, row: Row) -> str:
        """How a declaration begins; empty where there is none."""
        [(facts,)] = self.catalogue.connection.execute(_FACTS, (row.id,))
        return signature(facts)

    def lines(self, row: Row) -> list[str]:
        """The lines of the chunk's file."""
        if row.file not in self._texts:
            [(packed,)] = self.catalogue.connection.execute(_TEXT, (row.file,))
            self._texts[row.file] = lines(packed)
        return self._texts[row.file]


def more(
    facts: bytes,
    risk: bytes | None,
    authors: bytes | None,
    lint: bytes | None,
    relations: bytes,
    *history: Any,
) -> More:
    """All that is known of a chunk, from how it is packed; then of its file, as it is."""
    return More(
        _chunk.decode(facts),
        msgspec.msgpack.decode(risk) if risk else None,
        msgspec.msgpack.decode(authors) if authors else [],
        msgspec.msgpack.decode(lint) if lint else [],
        _relations.decode(relations),
        *history,
    )


def signature(facts: bytes) -> str:
    """How a declaration begins, from its packed facts."""
    return _signed.decode(facts).signature


def lines(packed: bytes) -> list[str]:
    """The lines of a packed text."""
    text = zlib.decompress(packed).decode(errors="replace")
    # What follows the last line break is no line.
    return text.removesuffix("\n").split("\n")
