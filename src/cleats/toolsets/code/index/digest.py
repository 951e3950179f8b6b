"""The digest of one file: all that the index needs, from its bytes alone, made where it is read.

Digests are stored in the catalogue by the file's content, so that an update processes only the
files that changed and reuses the others.
"""

import re
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress, count, repeat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.index.tokens import WordForms

if TYPE_CHECKING:
    from cleats.toolsets.code.analysis.embedding.table import WordTable

MODES_BY_NUMBER: Final[tuple[Mode, ...]] = ("code", "prose", "extracted-prose", "records")
"""The modes in the order of their numbers in the index."""

MAX_VALUE_CHARS: Final = 1000
"""Characters of a value that filters see."""

ASYNC_FLAG, GENERATOR_FLAG, RETURNS_FLAG = 1, 2, 4
"""Bits of the flags."""

NO_COUNT: Final = -1
"""Replaces a count for chunks that cannot have one: a paragraph has no branches, not even zero."""

TEXT_BREAK_ROW: Final = array("i", [-1]).tobytes()
"""The separator between the rows of two texts, as the word table expects it."""

_NAME_SEPARATOR_PATTERN = re.compile(r"[.:#]")
"""Separators between the parts of a qualified name."""

_GetValues = Callable[[Chunk, FileFacts], Sequence[str]]

COLUMN_GETTERS: Final[Mapping[str, _GetValues]] = {
    "kind": lambda c, _: (c.kind,),
    "name": lambda c, _: (c.name,),
    "lang": lambda c, f: (c.lang or f.lang,),
    "signature": lambda c, _: (c.signature,),
    "param": lambda c, f: _parameter_names(c.params, c.lang or f.lang),
    "decorator": lambda c, _: c.decorators,
    "extends": lambda c, _: c.bases,
    "visibility": lambda c, _: (c.visibility, *c.modifiers),
    "inferredType": lambda c, _: [t.type for t in c.types] if c.types else (),
    "returnType": lambda c, _: _declared_return_types(c),
    "calls": lambda c, _: c.calls,
    "uses": lambda c, _: c.uses,
    "reads": lambda c, _: c.reads,
    "writes": lambda c, _: c.writes,
    "mutates": lambda c, _: c.mutates,
    "alias": lambda c, _: c.aliases,
    "awaits": lambda c, _: c.awaits,
    "throws": lambda c, _: c.throws,
    "fields": lambda c, _: [f"{key}={value}" for key, value in c.fields.items()],
}
"""Functions that return the values of a chunk in each column; empty values do not count."""

COUNT_GETTERS: Final[Mapping[str, Callable[[Chunk], int]]] = {
    "branches": lambda c: c.branches,
    "loops": lambda c: c.loops,
    "breaks": lambda c: c.breaks,
    "continues": lambda c: c.continues,
    "lines": lambda c: c.end_line - c.start_line + 1,
}


class ChunkTexts(Struct, array_like=True, frozen=True):
    """The texts of a chunk, in the forms that are indexed."""

    cased: str
    stems: str
    whole: str
    name: str
    label: str
    """The stems of the name, and the unsplit name."""
    own: str
    """The stems of the last part of the name: of `Class.method` those of the method."""
    signature: str
    doc: str


class ColumnValues(Struct, array_like=True, frozen=True):
    """One column of one file: distinct values, and pairs of a chunk and the number of a value."""

    values: list[str]
    owners: bytes
    ids: bytes


class FileAttributes(Struct, array_like=True, frozen=True):
    """All columns and texts of one file."""

    extension: str
    columns: dict[str, ColumnValues]
    counts: dict[str, bytes]
    flags: bytes
    modes: bytes
    texts: list[ChunkTexts]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FileAttributes)


def digest_file(path: str, facts: FileFacts, data: bytes) -> tuple[bytes, bytes]:
    """Return everything that filters and ranking need to know of a file's chunks, in order.

    Returns: the packed attributes, and the vectors (int8, a row per chunk; empty without a word table).
    """
    chunks = facts.chunks
    memo = _load_word_memo()
    name_forms = memo.get_forms([chunk.name for chunk in chunks])
    text_forms = memo.get_forms([_read_own_text(chunk, data) for chunk in chunks])
    file_attributes = FileAttributes(
        extension=PurePosixPath(path).suffix.lower().lstrip("."),
        columns=dict(_make_columns(facts)),
        counts={name: _pack_counts(chunks, get_count) for name, get_count in COUNT_GETTERS.items()},
        flags=bytes(map(_pack_flags, chunks)),
        modes=bytes(MODES_BY_NUMBER.index(chunk.mode) for chunk in chunks),
        texts=_make_texts(chunks, name_forms, text_forms) if chunks else [],
    )
    packed = zlib.compress(_encoder.encode(file_attributes), 1)
    return packed, _encode_vectors(path, name_forms, text_forms) if chunks else b""


def unpack_attributes(packed: bytes) -> FileAttributes:
    """Unpack the attributes that `digest_file` packed."""
    return _decoder.decode(zlib.decompress(packed))


def _read_own_text(chunk: Chunk, data: bytes) -> str:
    ranges = chunk.own or [(chunk.start, chunk.end)]
    return "\n".join(data[start:end].decode(errors="replace") for start, end in ranges)


def _make_texts(
    chunks: Sequence[Chunk], name_forms: Sequence[WordForms], text_forms: Sequence[WordForms]
) -> list[ChunkTexts]:
    last_parts = [
        chunk.name if " " in chunk.name else _NAME_SEPARATOR_PATTERN.split(chunk.name)[-1] for chunk in chunks
    ]
    memo, count = _load_word_memo(), len(chunks)
    stems = memo.stem_texts([*last_parts, *(chunk.signature for chunk in chunks), *(chunk.doc for chunk in chunks)])
    names, texts = tokens.streams_from_forms(name_forms), tokens.streams_from_forms(text_forms)
    rows = zip(names, texts, stems, stems[count:], stems[2 * count :], strict=False)
    return [
        ChunkTexts(
            cased=text.cased,
            stems=text.stems,
            whole=text.whole,
            name=name.words,
            label=f"{name.stems} {name.whole}" if name.whole else name.stems,
            own=last_stems,
            signature=signature,
            doc=doc,
        )
        for name, text, last_stems, signature, doc in rows
    ]


def _make_columns(facts: FileFacts) -> Iterator[tuple[str, ColumnValues]]:
    for column, get_values in COLUMN_GETTERS.items():
        values = [get_values(chunk, facts) for chunk in facts.chunks]
        flat = list(chain.from_iterable(values))
        if not any(flat):
            continue
        owners = list(chain.from_iterable(map(repeat, count(), map(len, values))))
        if not all(flat):
            owners = list(compress(owners, flat))
            flat = list(filter(None, flat))
        if max(map(len, flat)) > MAX_VALUE_CHARS:
            flat = [value[:MAX_VALUE_CHARS] for value in flat]
        numbers = defaultdict[str, int](count().__next__)
        ids = array("i", map(numbers.__getitem__, flat))
        yield column, ColumnValues(list(numbers), array("i", owners).tobytes(), ids.tobytes())


def _pack_counts(chunks: Iterable[Chunk], get_count: Callable[[Chunk], int]) -> bytes:
    return array("i", [get_count(chunk) if chunk.mode == "code" else NO_COUNT for chunk in chunks]).tobytes()


def _pack_flags(chunk: Chunk) -> int:
    return ASYNC_FLAG * chunk.is_async + GENERATOR_FLAG * chunk.is_generator + RETURNS_FLAG * bool(chunk.returns)


def _parameter_names(names: list[str], lang: str) -> list[str]:
    """Return parameter names; those of PHP also without `$`, which not everybody counts as part."""
    return [*names, *(name.removeprefix("$") for name in names)] if lang == "php" else names


def _declared_return_types(chunk: Chunk) -> list[str]:
    if not chunk.types:
        return [chunk.return_type]
    declared = [typed.type for typed in chunk.types if typed.where == "return" and typed.origin == "annotation"]
    return [chunk.return_type, *declared]


def _encode_vectors(path: str, name_forms: Sequence[WordForms], text_forms: Sequence[WordForms]) -> bytes:
    table = load_word_table()
    if table is None:
        return b""
    path_forms = _load_word_memo().get_forms([path.removesuffix(PurePosixPath(path).suffix)])
    return table.encode_rows(*map(tokens.join_rows, (text_forms, name_forms, path_forms)))


@cache
def _load_word_memo() -> tokens.WordMemo:
    table = load_word_table()
    return tokens.WordMemo(None if table is None else table.find_rows, TEXT_BREAK_ROW)


@cache
def load_word_table() -> "WordTable | None":
    """Load the table that gives words their meaning; None where it is not installed."""
    from cleats.toolsets.code.analysis.embedding.table import WordTable  # noqa: PLC0415 - numpy

    try:
        return WordTable.load()
    except FileNotFoundError:
        return None
