"""Named arrays in one file, which is mapped into memory and never copied.

A file is a line of JSON with the offset of each array, then the arrays, aligned. The same arrays
always produce the same bytes. Writing needs no numpy; `columns` reads them as numpy arrays.
"""

import json
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field

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


class ColumnPostings:
    """The owners of each value."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: defaultdict[str, list[int]] = defaultdict(list)

    def add_owner(self, values: Iterable[str], owner: int) -> None:
        """Add an owner and all its values. Owners must come in ascending order."""
        for value in filter(None, values):
            owners = self._owners[value]
            if not owners or owners[-1] != owner:
                owners.append(owner)

    def add_pairs(self, values: Sequence[str], pairs: Iterable[tuple[int, int]], base: int) -> None:
        """Add values, and pairs of an owner and the number of a value, in the order of owners.

        Owners count from `base`.
        """
        owner_lists = [self._owners[value] for value in values]
        for owner, number in pairs:
            owners = owner_lists[number]
            if not owners or owners[-1] != base + owner:
                owners.append(base + owner)

    def pack(self) -> dict[str, PackedArray]:
        """Return the arrays that `vocabulary.ValueColumn` reads."""
        if VALUE_SEPARATOR in "".join(self._owners):
            self._owners = _strip_separators(self._owners)
        values = sorted(self._owners)
        owners = [self._owners[value] for value in values]
        arrays = _pack_texts(values)
        arrays["postings"] = pack_integers(array("i", chain.from_iterable(owners)))
        arrays["bounds"] = pack_integers(array("i", accumulate(map(len, owners), initial=0)))
        return arrays


def _strip_separators(owners: "defaultdict[str, list[int]]") -> "defaultdict[str, list[int]]":
    """Remove the separator from values; two of them may become equal."""
    joined: defaultdict[str, list[int]] = defaultdict(list)
    for value, value_owners in owners.items():
        joined[value.replace(VALUE_SEPARATOR, "")] += value_owners
    for value, value_owners in joined.items():
        joined[value] = sorted(set(value_owners))
    return joined


def _pack_texts(values: Sequence[str]) -> dict[str, PackedArray]:
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

MAX_WORD_COUNT: Final = 255
"""The largest count of a word in a file; more of the same word says nothing new."""


class FileWordPostings:
    """The files that have each word, and how often; and how many words each file has."""

    def __init__(self) -> None:
        self._files: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        self._counts: defaultdict[str, bytearray] = defaultdict(bytearray)
        self._lengths = array("i")

    def add_file(self, path_stems: str, stems: Iterable[str]) -> None:
        """Add the stems of the next file and of its path."""
        counts = Counter(" ".join(stems).split())
        self._lengths.append(counts.total())
        counts.update({f"{PATH_WORD_PREFIX}{stem}": 1 for stem in path_stems.split()})
        file_number = len(self._lengths) - 1
        for word, count in counts.items():
            self._files[word].append(file_number)
            self._counts[word].append(min(count, MAX_WORD_COUNT))

    def pack(self) -> dict[str, PackedArray]:
        """Return the arrays that `columns.ShardColumns` reads."""
        words = sorted(self._files)
        arrays = {f"word.{part}": packed for part, packed in _pack_texts(words).items()}
        arrays["word.postings"] = PackedArray(f"{_BYTE_ORDER}i4", b"".join(self._files[word] for word in words))
        arrays["word.counts"] = PackedArray("|u1", b"".join(self._counts[word] for word in words))
        bounds = accumulate((len(self._counts[word]) for word in words), initial=0)
        return {**arrays, "word.bounds": pack_integers(array("i", bounds)), "lengths": pack_integers(self._lengths)}


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
            pairs = zip(array("i", column.owners), array("i", column.ids), strict=True)
            self._columns[name].add_pairs(column.values, pairs, first_chunk)
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
