"""What one file gives to the index, from its bytes alone: made where the file is read.

Everything here is kept in the catalogue by the file's content, so that an update works on the files
that changed and only puts the others together again.
"""

import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress, count, repeat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from cleats.toolsets.code.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.tokens import Streams

if TYPE_CHECKING:
    from cleats.toolsets.code.dense.lanes import Lanes
    from cleats.toolsets.code.dense.table import WordTable

MODES: Final[tuple[Mode, ...]] = ("code", "prose", "extracted-prose", "records")
"""By the number that stands for each in the index."""

LONGEST: Final = 1000
"""Characters of a value that filters see."""

ASYNC, GENERATOR, RETURNS = 1, 2, 4
"""Bits of the flags."""

UNCOUNTED: Final = -1
"""Instead of a count for what cannot have one: a paragraph has no branches, not even none."""

NEXT: Final = array("i", [-1]).tobytes()
"""Between the rows of two texts, as the word table takes them."""

_SEPARATOR = re.compile(r"[.:#]")
"""Between the parts of a qualified name."""

_Values = Callable[[Chunk, FileFacts], Sequence[str]]

COLUMNS: Final[Mapping[str, _Values]] = {
    "kind": lambda c, _: (c.kind,),
    "name": lambda c, _: (c.name,),
    "lang": lambda c, f: (c.lang or f.lang,),
    "signature": lambda c, _: (c.signature,),
    "param": lambda c, f: _parameters(c.params, c.lang or f.lang),
    "decorator": lambda c, _: c.decorators,
    "extends": lambda c, _: c.bases,
    "visibility": lambda c, _: (c.visibility, *c.modifiers),
    "inferredType": lambda c, _: [t.type for t in c.types] if c.types else (),
    "returnType": lambda c, _: _declared_result(c),
    "calls": lambda c, _: (c.name, *c.calls) if c.calls else (),
    "uses": lambda c, _: c.uses,
    "reads": lambda c, _: c.reads,
    "writes": lambda c, _: c.writes,
    "mutates": lambda c, _: c.mutates,
    "alias": lambda c, _: c.aliases,
    "awaits": lambda c, _: c.awaits,
    "throws": lambda c, _: c.throws,
    "fields": lambda c, _: [f"{key}={value}" for key, value in c.fields.items()],
}
"""The values that a chunk has in each column; empty ones do not count."""

COUNTS: Final[Mapping[str, Callable[[Chunk], int]]] = {
    "branches": lambda c: c.branches,
    "loops": lambda c: c.loops,
    "breaks": lambda c: c.breaks,
    "continues": lambda c: c.continues,
}


class Texts(Struct, array_like=True, frozen=True):
    """A chunk as text, in the forms that are indexed."""

    cased: str
    stems: str
    whole: str
    name: str
    label: str
    """The stems of the name, and the name whole."""
    own: str
    """The stems of the last part of the name: of `Class.method` those of the method."""
    signature: str
    doc: str


class Values(Struct, array_like=True, frozen=True):
    """One column of one file: distinct values, and pairs of a chunk and the number of a value."""

    values: list[str]
    owners: bytes
    ids: bytes


class Attributes(Struct, array_like=True, frozen=True):
    """All columns and texts of one file."""

    extension: str
    columns: dict[str, Values]
    counts: dict[str, bytes]
    flags: bytes
    modes: bytes
    texts: list[Texts]


class Digest(NamedTuple):
    """What the catalogue keeps of a file for the index."""

    attributes: bytes
    vectors: bytes
    """int8, one row per chunk; empty without a word table."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Attributes)


def digest(path: str, facts: FileFacts, data: bytes, *, light: bool = False) -> Digest:
    """Everything that filters and ranking need to know of a file's chunks, in their order.

    It is the same, `light` or not; `light` is quick to begin with and slow to go on.
    """
    chunks = facts.chunks
    named = tokens.together([chunk.name for chunk in chunks])
    said = tokens.together([_own_text(chunk, data) for chunk in chunks])
    names, spoken = tokens.forms(named), tokens.forms(said)
    attributes = Attributes(
        extension=PurePosixPath(path).suffix.lower().lstrip("."),
        columns=dict(_columns(facts)),
        counts={name: _counts(chunks, get) for name, get in COUNTS.items()},
        flags=bytes(map(_flags, chunks)),
        modes=bytes(MODES.index(chunk.mode) for chunk in chunks),
        texts=_texts(chunks, names, spoken) if chunks else [],
    )
    packed = zlib.compress(_encoder.encode(attributes), 1)
    return Digest(packed, _vectors(path, named, said, light=light) if chunks else b"")


def attributes(packed: bytes) -> Attributes:
    """Read what `digest` wrote."""
    return _decoder.decode(zlib.decompress(packed))


def _own_text(chunk: Chunk, data: bytes) -> str:
    ranges = chunk.own or [(chunk.start, chunk.end)]
    return "\n".join(data[start:end].decode(errors="replace") for start, end in ranges)


def _texts(
    chunks: Sequence[Chunk], names: Sequence[Streams], own: Sequence[Streams]
) -> list[Texts]:
    last = [c.name if " " in c.name else _SEPARATOR.split(c.name)[-1] for c in chunks]
    short = tokens.stems([*last, *(c.signature for c in chunks), *(c.doc for c in chunks)])
    count = len(chunks)
    parts = zip(names, own, short, short[count:], short[2 * count :], strict=False)
    return [
        Texts(
            cased=text.cased,
            stems=text.stems,
            whole=" ".join(text.whole.split()),
            name=name.words,
            label=" ".join((name.stems, *name.whole.split())),
            own=last_stems,
            signature=signature,
            doc=doc,
        )
        for name, text, last_stems, signature, doc in parts
    ]


def _columns(facts: FileFacts) -> Iterator[tuple[str, Values]]:
    for column, get in COLUMNS.items():
        values = [get(chunk, facts) for chunk in facts.chunks]
        flat = list(chain.from_iterable(values))
        if not any(flat):
            continue
        owners = list(chain.from_iterable(map(repeat, count(), map(len, values))))
        if not all(flat):
            owners = list(compress(owners, flat))
            flat = list(filter(None, flat))
        flat = [value[:LONGEST] for value in flat]
        numbers = dict(zip(dict.fromkeys(flat), count(), strict=False))
        ids = array("i", map(numbers.__getitem__, flat))
        yield column, Values(list(numbers), array("i", owners).tobytes(), ids.tobytes())


def _counts(chunks: Iterable[Chunk], get: Callable[[Chunk], int]) -> bytes:
    return array(
        "i", [get(chunk) if chunk.mode == "code" else UNCOUNTED for chunk in chunks]
    ).tobytes()


def _flags(chunk: Chunk) -> int:
    return ASYNC * chunk.is_async + GENERATOR * chunk.is_generator + RETURNS * bool(chunk.returns)


def _parameters(names: list[str], lang: str) -> list[str]:
    """To some the `$` of a variable of PHP is part of its name, to others it is not."""
    return [*names, *(name.removeprefix("$") for name in names)] if lang == "php" else names


def _declared_result(chunk: Chunk) -> list[str]:
    declared = [t.type for t in chunk.types if t.where == "return" and t.origin == "annotation"]
    return [chunk.return_type, *declared]


def _vectors(path: str, named: Sequence[str], said: Sequence[str], *, light: bool) -> bytes:
    rows = _rows(light=light)
    if rows is None:
        return b""
    where = tokens.written(path.removesuffix(PurePosixPath(path).suffix))
    return rows.table.encode_rows(*map(rows.of, (said, named, where)))


class _Rows(dict[str, bytes]):
    """The rows of each word as it is written, all its parts together, worked out once."""

    def __init__(self, table: "WordTable | Lanes") -> None:
        super().__init__()
        self.table = table
        self._parts = _Parts(table)

    def __missing__(self, word: str) -> bytes:
        if len(self) >= tokens.MEMORY:
            self.clear()
        if word == tokens.BREAK:
            packed = NEXT
        else:
            packed = b"".join(map(self._parts.__getitem__, tokens.parts(word)))
        self[word] = packed
        return packed

    def of(self, found: Iterable[str]) -> bytes:
        """The rows of words, with `NEXT` for each break."""
        return b"".join(map(self.__getitem__, found))


class _Parts(dict[str, bytes]):
    """The rows of each word in lower case that is not split any more."""

    def __init__(self, table: "WordTable | Lanes") -> None:
        super().__init__()
        self._table = table

    def __missing__(self, part: str) -> bytes:
        if len(self) >= tokens.MEMORY:
            self.clear()
        packed = self[part] = array("i", self._table.rows_of(part)).tobytes()
        return packed


@cache
def _rows(*, light: bool) -> _Rows | None:
    table = _lanes() if light else word_table()
    return None if table is None else _Rows(table)


def _lanes() -> "Lanes | None":
    from cleats.toolsets.code.dense.lanes import Lanes  # noqa: PLC0415 - only where needed

    try:
        return Lanes.load()
    except FileNotFoundError:
        return None


@cache
def word_table() -> "WordTable | None":
    """The table that gives words their meaning; None where it is not installed."""
    from cleats.toolsets.code.dense.table import WordTable  # noqa: PLC0415 - numpy

    try:
        return WordTable.load()
    except FileNotFoundError:
        return None
