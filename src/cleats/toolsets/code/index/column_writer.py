"""Named arrays in one file, which is mapped into memory and never copied.

A file is a line of JSON with the offset of each array, then the arrays, aligned. The same arrays
always produce the same bytes. `columns` reads them.
"""

import json
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.index.digest import COUNT_GETTERS, MODES_BY_NUMBER, FileAttributes

ALIGNMENT_BYTES: Final = 64

_BYTE_ORDER: Final = "<" if sys.byteorder == "little" else ">"


class PackedArray(NamedTuple):
    """An array in the form in which it is written."""

    dtype: str
    """The type as numpy spells it: `<i4`."""
    raw: bytes


def pack_integers(values: "array[int]") -> PackedArray:
    """Pack integers."""
    return PackedArray(f"{_BYTE_ORDER}i{values.itemsize}", values.tobytes())


def write_arrays(path: Path, arrays: Mapping[str, PackedArray]) -> None:
    """Write arrays to a file; dots in names form groups."""
    table: dict[str, tuple[str, list[int], int]] = {}
    offset = 0
    for name, (dtype, raw) in arrays.items():
        table[name] = (dtype, [len(raw) // int(dtype[2:])], offset)
        offset += -(-len(raw) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    header = json.dumps(table, separators=(",", ":")).encode() + b"\n"
    header = header.rjust(-(-len(header) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)
    with path.open("wb") as file:
        file.write(header)
        for _, raw in arrays.values():
            file.write(raw)
            file.write(b"\0" * (-len(raw) % ALIGNMENT_BYTES))


VALUE_SEPARATOR = "\0"
"""Separates values; no value contains it, because no name or path does and other text loses it
here."""


OWNER_BITS: Final = 28
"""Bits of the number of an owner in a posting, which fits into 64 bits with a value above and a count below."""

OWNER_MASK: Final = (1 << OWNER_BITS) - 1


class ColumnPostings:
    """The owners of each value.

    Values, owners and the pairs of them are only collected; arrays are made of all at once.
    """

    __slots__ = ("_numbers", "_owners", "_pairs", "_values")

    def __init__(self) -> None:
        self._values: list[str] = []
        self._owners = array("i")
        """The owners of the first values, one for each."""
        self._pairs: list[tuple[bytes, bytes]] = []
        """Owners and numbers of values, in the order of the pairs, by file."""
        self._numbers: list[tuple[int, int, int]] = []
        """Number of pairs, first owner and first value of each file."""

    def add_owner(self, values: Iterable[str], owner: int) -> None:
        """Add an owner and all its values."""
        found = list(filter(None, values))
        self._values += found
        self._owners.extend([owner] * len(found))

    def add_pairs(self, values: Sequence[str], owners: bytes, numbers: bytes, base: int) -> None:
        """Add values, and pairs of an owner and the number of a value.

        Owners count from `base`. A column gets its owners either from here or from `add_owner`.
        """
        self._numbers.append((len(owners) // self._owners.itemsize, base, len(self._values)))
        self._pairs.append((owners, numbers))
        self._values += values

    def pack(self) -> dict[str, PackedArray]:
        """Return the arrays that `columns.ValueColumn` reads."""
        if VALUE_SEPARATOR in "".join(self._values):
            self._values = [value.replace(VALUE_SEPARATOR, "") for value in self._values]
        values, places = _number_values(self._values)
        if self._pairs:
            sizes, bases, firsts = np.array(self._numbers).T
            owners, numbers = (np.frombuffer(b"".join(parts), np.int32) for parts in zip(*self._pairs, strict=True))
            owners, places = owners + np.repeat(bases, sizes), places[numbers + np.repeat(firsts, sizes)]
        else:
            owners = np.frombuffer(self._owners, np.int32)
        postings = np.sort(places << OWNER_BITS | owners)
        postings = postings[np.diff(postings, prepend=-1) != 0]
        return pack_texts(values) | _pack_postings(postings >> OWNER_BITS, postings & OWNER_MASK, len(values))


def _number_values(values: Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct values in their order, and the number of each value."""
    values = list(values)
    distinct = sorted(set(values))
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    return distinct, np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))


def _pack_postings(places: NDArray[np.int64], owners: NDArray[np.int64], value_count: int) -> dict[str, PackedArray]:
    """Return the owners of values, and where those of each value begin; both are in the order of values."""
    bounds = np.searchsorted(places, np.arange(value_count + 1)).astype(np.int32)
    return {"postings": _pack_numbers(owners.astype(np.int32)), "bounds": _pack_numbers(bounds)}


def _pack_numbers(numbers: NDArray[Any]) -> PackedArray:
    return PackedArray(numbers.dtype.str, numbers.tobytes())


def pack_texts(values: Sequence[str]) -> dict[str, PackedArray]:
    """Return the arrays of a vocabulary, which is sorted."""
    text = VALUE_SEPARATOR + VALUE_SEPARATOR.join(values) + VALUE_SEPARATOR
    lowered = text.lower()
    arrays: dict[str, PackedArray] = {}
    arrays["text"], arrays["starts"] = _pack_blob(text, len(values))
    if lowered != text:
        arrays["lower"], arrays["lower_starts"] = _pack_blob(lowered, len(values))
    return arrays


def _pack_blob(text: str, value_count: int) -> tuple[PackedArray, PackedArray]:
    raw = text.encode(errors="surrogatepass")
    pieces = islice(raw.split(b"\0"), 1, 1 + value_count)
    starts = islice(accumulate((len(piece) + 1 for piece in pieces), initial=1), value_count)
    return PackedArray("|u1", raw), pack_integers(array("i", starts))


FILE_NUMBER_ARRAYS: Final = frozenset({"ends", "lengths"})
"""The arrays without a vocabulary that have a number for each file and not for each chunk."""

WORD_COLUMN: Final = "word"
PERMANENT_COLUMNS: Final = frozenset({"path", "ext", "import", WORD_COLUMN})
"""The columns that are written even if they have no values."""

CONTENT_FILE_NAME, LATE_FILE_NAME, VECTORS_FILE_NAME = "content.columns", "late.columns", "vectors.i8"
"""The files of a shard besides its segment."""

_COMMENTS_MODE: Final = MODES_BY_NUMBER.index("extracted-prose")

UNKNOWN_NUMBER: Final = -1
"""Replaces an unknown time or count."""


def _new_columns() -> "defaultdict[str, ColumnPostings]":
    return defaultdict(ColumnPostings)


PATH_WORD_PREFIX: Final = "/"
"""Marks the words of a path among those of a file; no word of a text contains it."""

COUNT_BITS: Final = 8

MAX_WORD_COUNT: Final = (1 << COUNT_BITS) - 1
"""The largest count of a word in a file; more of the same word says nothing new."""


class FileWordPostings:
    """The files that have each word, and how often; and how many words each file has."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._counts = array("i")
        self._sizes = array("i")
        """How many words and counts each file has."""
        self._lengths = array("i")

    def add_file(self, path_stems: str, stems: Iterable[str]) -> None:
        """Add the stems of the next file and of its path."""
        counts = Counter(" ".join(stems).split())
        self._lengths.append(counts.total())
        counts.update({f"{PATH_WORD_PREFIX}{stem}": 1 for stem in path_stems.split()})
        self._words += counts
        self._counts.extend(counts.values())
        self._sizes.append(len(counts))

    def pack(self) -> dict[str, PackedArray]:
        """Return the arrays that `columns.ShardColumns` reads."""
        words, places = _number_values(self._words)
        files = np.repeat(np.arange(len(self._sizes)), np.frombuffer(self._sizes, np.int32))
        counts = np.frombuffer(self._counts, np.int32).clip(max=MAX_WORD_COUNT)
        postings = np.sort((places << OWNER_BITS | files) << COUNT_BITS | counts)
        counts, postings = (postings & MAX_WORD_COUNT).astype(np.uint8), postings >> COUNT_BITS
        packed = pack_texts(words) | _pack_postings(postings >> OWNER_BITS, postings & OWNER_MASK, len(words))
        arrays = {f"word.{part}": packed_array for part, packed_array in packed.items()}
        bounds = arrays.pop("word.bounds")
        counts_and_bounds = {"word.counts": _pack_numbers(counts), "word.bounds": bounds}
        return arrays | counts_and_bounds | {"lengths": pack_integers(self._lengths)}


class ContentColumns(Struct):
    """Collects the columns that depend on the content of files."""

    _columns: "defaultdict[str, ColumnPostings]" = field(default_factory=_new_columns)
    _counts: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    _flags: list[bytes] = []
    _modes: list[bytes] = []
    _file_ends: "array[int]" = field(default_factory=lambda: array("i"))
    _words: FileWordPostings = field(default_factory=FileWordPostings)

    def add_file(self, path: str, path_stems: str, imports: Iterable[str], file_attributes: FileAttributes) -> None:
        """Add the next file, in the order of paths."""
        first_chunk, file_number = sum(self._file_ends[-1:]), len(self._file_ends)
        self._columns["path"].add_owner([path], file_number)
        self._columns["ext"].add_owner([file_attributes.extension], file_number)
        self._columns["import"].add_owner(imports, file_number)
        for name, column in file_attributes.columns.items():
            self._columns[name].add_pairs(column.values, column.owners, column.ids, first_chunk)
        for name, counts in file_attributes.counts.items():
            self._counts[name].append(counts)
        self._flags.append(file_attributes.flags)
        self._modes.append(file_attributes.modes)
        self._file_ends.append(first_chunk + len(file_attributes.texts))
        # Comments are in the text of their code too.
        chunks = zip(file_attributes.modes, file_attributes.texts, strict=True)
        self._words.add_file(path_stems, (texts.stems for mode, texts in chunks if mode != _COMMENTS_MODE))

    @property
    def file_count(self) -> int:
        return len(self._file_ends)

    def pack(self) -> dict[str, PackedArray]:
        """Return the arrays of all columns."""
        packed = {
            "ends": pack_integers(self._file_ends),
            "flags": PackedArray("|u1", b"".join(self._flags)),
            "modes": PackedArray("|u1", b"".join(self._modes)),
        }
        for name in COUNT_GETTERS:
            packed[name] = pack_integers(array("i", b"".join(self._counts[name])))
        _add_columns(packed, self._columns)
        return packed | self._words.pack()

    def save(self, folder: Path) -> None:
        write_arrays(folder / CONTENT_FILE_NAME, self.pack())


class LateColumns(Struct):
    """Collects the columns that depend on git, risk and lint."""

    _columns: "defaultdict[str, ColumnPostings]" = field(default_factory=_new_columns)
    _churn: "array[int]" = field(default_factory=lambda: array("q"))
    _modified: "array[int]" = field(default_factory=lambda: array("q"))
    _lint: bytearray = field(default_factory=bytearray)

    def add_file(self, author: str | None, modified: int | None, churn: int | None) -> None:
        """Add the next file, in the order of paths."""
        self._columns["author"].add_owner([author or ""], len(self._churn))
        self._churn.append(UNKNOWN_NUMBER if churn is None else churn)
        self._modified.append(UNKNOWN_NUMBER if modified is None else modified)

    def add_chunk(self, values: Mapping[str, Iterable[str]], *, lint: bool) -> None:
        """Add the next chunk of the last file."""
        for name, column_values in values.items():
            self._columns[name].add_owner(column_values, len(self._lint))
        self._lint.append(lint)

    def save(self, folder: Path) -> None:
        packed = {
            "churn": pack_integers(self._churn),
            "modified": pack_integers(self._modified),
            "lint": PackedArray("|b1", bytes(self._lint)),
        }
        _add_columns(packed, self._columns)
        write_arrays(folder / LATE_FILE_NAME, packed)


def _add_columns(packed: dict[str, PackedArray], columns: Mapping[str, ColumnPostings]) -> None:
    for name in sorted(columns):
        packed |= {f"{name}.{part}": packed_array for part, packed_array in columns[name].pack().items()}


def write_vectors(folder: Path, rows: Iterable[bytes]) -> None:
    """Write rows of vectors one after the other, in the order of positions."""
    with (folder / VECTORS_FILE_NAME).open("wb") as file:
        file.writelines(rows)
