"""The columns of one shard on their way to the disk; `columns` says what they are and reads them.

Nothing here loads numpy, which would take longer than a small update is allowed to.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from cleats.toolsets.code.search import arrays
from cleats.toolsets.code.search.arrays import Stored, flags, letters, numbers
from cleats.toolsets.code.search.digest import COUNTS, Attributes
from cleats.toolsets.code.search.postings import Postings

CONTENT, LATE, VECTORS = "content.columns", "late.columns", "vectors.i8"
"""The files of a shard besides its words."""

NEVER: Final = -1
"""Instead of a time or a count that nobody knows."""


def _columns() -> "defaultdict[str, Postings]":
    return defaultdict(Postings)


class Content(Struct):
    """The columns that files bring, put together."""

    _columns: "defaultdict[str, Postings]" = field(default_factory=_columns)
    _counts: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    _flags: list[bytes] = []
    _modes: list[bytes] = []
    _sizes: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, path: str, imports: Iterable[str], found: Attributes) -> None:
        """The next file, in the order of paths."""
        base, number = sum(self._sizes[-1:]), len(self._sizes)
        self._columns["path"].one([path], number)
        self._columns["ext"].one([found.extension], number)
        self._columns["import"].one(imports, number)
        for name, column in found.columns.items():
            pairs = zip(array("i", column.owners), array("i", column.ids), strict=True)
            self._columns[name].add(column.values, pairs, base)
        for name, counts in found.counts.items():
            self._counts[name].append(counts)
        self._flags.append(found.flags)
        self._modes.append(found.modes)
        self._sizes.append(base + len(found.texts))

    def save(self, folder: Path) -> None:
        made = {
            "ends": numbers(self._sizes),
            "flags": letters(b"".join(self._flags)),
            "modes": letters(b"".join(self._modes)),
        }
        for name in COUNTS:
            made[name] = numbers(array("i", b"".join(self._counts[name])))
        _put(made, self._columns)
        arrays.save(folder / CONTENT, made)


class Late(Struct):
    """The columns that git, risk and lint bring, put together."""

    _columns: "defaultdict[str, Postings]" = field(default_factory=_columns)
    _churn: "array[int]" = field(default_factory=lambda: array("q"))
    _modified: "array[int]" = field(default_factory=lambda: array("q"))
    _lint: bytearray = field(default_factory=bytearray)

    def add_file(self, author: str | None, modified: int | None, churn: int | None) -> None:
        """The next file, in the order of paths."""
        self._columns["author"].one([author or ""], len(self._churn))
        self._churn.append(NEVER if churn is None else churn)
        self._modified.append(NEVER if modified is None else modified)

    def add_chunk(self, values: Mapping[str, Iterable[str]], *, lint: bool) -> None:
        """The next chunk of the last file."""
        for name, each in values.items():
            self._columns[name].one(each, len(self._lint))
        self._lint.append(lint)

    def save(self, folder: Path) -> None:
        made = {
            "churn": numbers(self._churn),
            "modified": numbers(self._modified),
            "lint": flags(bytes(self._lint)),
        }
        _put(made, self._columns)
        arrays.save(folder / LATE, made)


def _put(made: dict[str, Stored], columns: Mapping[str, Postings]) -> None:
    for name in sorted(columns):
        made |= {f"{name}.{part}": array for part, array in columns[name].stored().items()}


def write_vectors(folder: Path, rows: Iterable[bytes]) -> None:
    """Put rows of vectors one after the other, in the order of positions."""
    with (folder / VECTORS).open("wb") as file:
        file.writelines(rows)
