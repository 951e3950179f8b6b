"""The details of a hit in the catalogue: its row, its facts, its text, its history."""

import hashlib
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from posixpath import splitext
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Chunk, Mode
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import Relations
from cleats.toolsets.code.search.fusion import FusedHit

_LOCATE_FILE_SQL = "SELECT id, lang FROM files WHERE path = ?"
_SELECT_FIRST_CHUNK_SQL = "SELECT min(id) FROM chunks WHERE file = ?"
_CHUNK_COLUMNS_SQL = "mode, kind, name, start, end, start_line, end_line, headline, id"
_SELECT_BY_ID_SQL = f"SELECT {_CHUNK_COLUMNS_SQL} FROM chunks WHERE id = ? AND file = ? AND ordinal = ?"  # noqa: S608
_SELECT_BY_ORDINAL_SQL = f"SELECT {_CHUNK_COLUMNS_SQL} FROM chunks WHERE file = ? AND ordinal = ?"  # noqa: S608
_SELECT_BY_LINES_SQL = (
    f"SELECT {_CHUNK_COLUMNS_SQL} FROM chunks WHERE file = ? AND start_line <= ? AND end_line >= ?"  # noqa: S608
    " ORDER BY ordinal"
)
_SELECT_DETAILS_SQL = "SELECT facts, risk, authors, lint FROM chunks WHERE id = ?"
_SELECT_FILE_SQL = "SELECT facts, last_author, last_modified, last_commit, churn FROM files WHERE id = ?"
_SELECT_FACTS_SQL = "SELECT facts FROM chunks WHERE id = ?"
_SELECT_TEXT_SQL = "SELECT text FROM files WHERE id = ?"


class _SignatureFacts(msgspec.Struct):
    signature: str = ""


_signature_decoder = msgspec.msgpack.Decoder(_SignatureFacts)
_chunk_decoder = msgspec.msgpack.Decoder(Chunk)
_relations_decoder = msgspec.msgpack.Decoder(Relations)

MAX_IDLE_CONNECTIONS: Final = 4
"""Connections that are kept open for the next search."""


class HitRow(Struct, frozen=True):
    """The location and the name of a chunk."""

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
        """An identifier of the chunk that changes only when the chunk does."""
        identity = repr((self.path, self.mode, self.kind, self.name, self.start, self.end))
        return hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class HitDetails(Struct, frozen=True):
    """All the facts of a chunk and its file."""

    chunk: Chunk
    risk: Any
    authors: list[str]
    lint: list[Any]
    relations: Relations
    last_author: str | None
    last_modified: int | None
    last_commit: str | None
    churn: int | None


class HitReader(Protocol):
    """Reads the hits of an answer, wherever they are stored."""

    def read_row(self, path: str, ordinal: int) -> HitRow: ...

    def read_details(self, row: HitRow) -> HitDetails: ...

    def read_signature(self, row: HitRow) -> str: ...

    def read_lines(self, row: HitRow) -> list[str]: ...


class HitSource(Protocol):
    """Opens readers of hits."""

    def open_reader(self) -> AbstractContextManager[HitReader]: ...


class CatalogueReaderPool:
    """Connections to the catalogue of one generation, for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / catalogue_schema.CATALOGUE_FILE_NAME
        self._idle: list[IndexCatalogue] = []
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close idle connections now, and those in use when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for catalogue in idle:
            catalogue.close()

    @contextmanager
    def open_reader(self) -> Iterator["CatalogueReader"]:
        """Provide a connection for the length of a block."""
        with self._lock:
            catalogue = self._idle.pop() if self._idle else None
        reader = CatalogueReader(catalogue or IndexCatalogue.open(self._path))
        try:
            yield reader
        finally:
            with self._lock:
                is_reusable = not self._closed and len(self._idle) < MAX_IDLE_CONNECTIONS
                if is_reusable:
                    self._idle.append(reader.catalogue)
            if not is_reusable:
                reader.catalogue.close()


class CatalogueReader:
    """Reads the catalogue for one search; each file's text is unpacked once."""

    def __init__(self, catalogue: IndexCatalogue) -> None:
        self.catalogue = catalogue
        self._texts: dict[int, list[str]] = {}
        self._locations: dict[str, tuple[int, str, int]] = {}

    def read_row(self, path: str, ordinal: int) -> HitRow:
        """Return a chunk by its file and its ordinal in the file."""
        execute = self.catalogue.connection.execute
        if path not in self._locations:
            [(file, lang)] = execute(_LOCATE_FILE_SQL, (path,))
            self._locations[path] = file, lang, execute(_SELECT_FIRST_CHUNK_SQL, (file,)).get
        file, lang, first = self._locations[path]
        # The chunks of a file are written one after the other, so a guess is nearly always right.
        rows = list(execute(_SELECT_BY_ID_SQL, (first + ordinal, file, ordinal)))
        [columns] = rows or execute(_SELECT_BY_ORDINAL_SQL, (file, ordinal))
        return HitRow(file, path, lang, *columns)

    def find_overlapping(self, path: str, first_line: int, last_line: int) -> list[HitRow]:
        """Return the chunks of a file that overlap a range of lines, in their order."""
        execute = self.catalogue.connection.execute
        return [
            HitRow(file, path, lang, *columns)
            for file, lang in execute(_LOCATE_FILE_SQL, (path,))
            for columns in execute(_SELECT_BY_LINES_SQL, (file, last_line, first_line))
        ]

    def read_details(self, row: HitRow) -> HitDetails:
        """Return all the facts of a chunk and its file."""
        [(facts, risk, authors, lint)] = self.catalogue.connection.execute(_SELECT_DETAILS_SQL, (row.id,))
        [(relations, *history)] = self.catalogue.connection.execute(_SELECT_FILE_SQL, (row.file,))
        return unpack_details(facts, risk, authors, lint, relations, *history)

    def read_signature(self, row: HitRow) -> str:
        """Return the signature of a declaration; empty where there is none."""
        [(facts,)] = self.catalogue.connection.execute(_SELECT_FACTS_SQL, (row.id,))
        return unpack_signature(facts)

    def read_lines(self, row: HitRow) -> list[str]:
        """Return the lines of the chunk's file."""
        if row.file not in self._texts:
            [(packed,)] = self.catalogue.connection.execute(_SELECT_TEXT_SQL, (row.file,))
            self._texts[row.file] = unpack_lines(packed)
        return self._texts[row.file]


def unpack_details(
    facts: bytes, risk: bytes | None, authors: bytes | None, lint: bytes | None, relations: bytes, *history: Any
) -> HitDetails:
    """Unpack the facts of a chunk, and add those of its file."""
    return HitDetails(
        _chunk_decoder.decode(facts),
        msgspec.msgpack.decode(risk) if risk else None,
        msgspec.msgpack.decode(authors) if authors else [],
        msgspec.msgpack.decode(lint) if lint else [],
        _relations_decoder.decode(relations),
        *history,
    )


def unpack_signature(facts: bytes) -> str:
    """Unpack the signature of a declaration from its facts."""
    return _signature_decoder.decode(facts).signature


def unpack_lines(packed: bytes) -> list[str]:
    """Unpack a text into its lines."""
    text = zlib.decompress(packed).decode(errors="replace")
    # The text after the last line break does not count as a line.
    return text.removesuffix("\n").split("\n")


SCORE_DIGITS: Final = 4
MAX_SIGNATURE_CHARS: Final = 160
"""Longest signature in a compact hit."""

MAX_PROSE_CHARS: Final = 80
"""Longest headline of a document or a comment; the next question is whether to read it."""

MAX_EXCERPT_LINES: Final = 40
"""Lines of a hit that are shown with its context."""


class SearchHit(Struct, frozen=True):
    """One chunk that was found, and its location."""

    fused: FusedHit
    path: str
    ordinal: int


class LocatedHit(NamedTuple):
    """A hit and its row in the catalogue."""

    hit: SearchHit
    row: HitRow


def drop_duplicate_prose(located: Mapping[Mode, list[LocatedHit]]) -> dict[Mode, list[LocatedHit]]:
    """Remove the comments and docstrings of code that is itself among the hits."""
    owners = {(row.path, row.name) for _, row in located.get("code", ())}

    def is_kept(mode: Mode, row: HitRow) -> bool:
        return mode != "extracted-prose" or (row.path, row.name) not in owners

    return {mode: [item for item in hits if is_kept(mode, item.row)] for mode, hits in located.items()}


def summarize_hit(reader: HitReader, row: HitRow, score: float) -> dict[str, Any]:
    """Return the kind, the location and the score of a hit."""
    return {
        "file": row.path,
        "startLine": row.start_line,
        "endLine": row.end_line,
        **({} if splitext(row.path)[1] else {"lang": row.lang}),  # else the extension tells the language
        "kind": row.kind,
        "name": row.name,
        "headline": row.headline if row.mode == "code" else _shorten_text(row.headline, MAX_PROSE_CHARS),
        **_summarize_signature(reader, row),
        "score": round(score, SCORE_DIGITS),
    }


def _summarize_signature(reader: HitReader, row: HitRow) -> dict[str, str]:
    signature = " ".join(reader.read_signature(row).split()) if row.mode == "code" else ""
    if not signature or _is_in_headline(row, signature):
        return {}
    return {"signature": _shorten_text(signature, MAX_SIGNATURE_CHARS)}


def _shorten_text(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def _is_in_headline(row: HitRow, signature: str) -> bool:
    """Return whether the headline already contains the signature, as far as it fits."""
    only_names_it = signature == f"{row.kind} {row.name}"
    return only_names_it or signature in row.headline or signature.startswith(row.headline.rstrip("…"))


def make_excerpt(row: HitRow, lines: list[str], context_lines: int) -> dict[str, Any]:
    """Return the lines of a hit with context before and after them, as one text."""
    first, last = row.start_line - 1, row.end_line
    start = max(0, first - context_lines)
    if last - first > MAX_EXCERPT_LINES:
        return {"text": "\n".join(lines[start : first + MAX_EXCERPT_LINES]), "truncated": True}
    return {"text": "\n".join(lines[start : last + context_lines])}
