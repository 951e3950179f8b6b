"""The columns of one shard: for every chunk what filters compare, and who has which value.

Chunks have positions, from 0, in the order of their files' paths and within a file in the order of
their start. Some facts belong to the file and hold for all its chunks. What can change without the
file (git, risk, lint) is in a second set of columns, made anew with every generation.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.search import arrays
from cleats.toolsets.code.search.digest import COUNTS, Attributes
from cleats.toolsets.code.search.vocabulary import Column, Ids, Mask, Vocabulary, packed

CONTENT, LATE = "content.columns", "late.columns"

OF_FILES: Final = frozenset({"path", "ext", "import", "author"})
"""Columns whose owners are files."""

NEVER: Final = -1
"""Instead of a time or a count that nobody knows."""


class _Pairs(Struct):
    """One column on its way: values as they come, again and again, and who has which of them."""

    values: list[str] = []
    owners: "array[int]" = field(default_factory=lambda: array("q"))
    ids: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, values: Sequence[str], owners: NDArray[Any], ids: NDArray[Any]) -> None:
        """Values of a file, and pairs of an owner and a number among them."""
        self.owners.frombytes(owners.astype(np.int64).tobytes())
        self.ids.frombytes((ids + np.int64(len(self.values))).tobytes())
        self.values += values

    def one(self, values: Iterable[str], owner: int) -> None:
        """An owner and all it has."""
        for value in filter(None, values):
            self.owners.append(owner)
            self.ids.append(len(self.values))
            self.values.append(value)

    def packed(self) -> dict[str, NDArray[Any]]:
        owners, ids = (np.frombuffer(each, np.int64) for each in (self.owners, self.ids))
        return packed(self.values, owners, ids)


class Content(Struct):
    """The columns that files bring, put together."""

    _pairs: dict[str, _Pairs] = field(default_factory=lambda: defaultdict(_Pairs))
    _counts: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    _flags: list[bytes] = []
    _modes: list[bytes] = []
    _sizes: list[int] = []

    def add(self, path: str, imports: Iterable[str], found: Attributes) -> None:
        """The next file, in the order of paths."""
        base, number = sum(self._sizes[-1:]), len(self._sizes)
        self._pairs["path"].one([path], number)
        self._pairs["ext"].one([found.extension], number)
        self._pairs["import"].one(imports, number)
        for name, column in found.columns.items():
            owners = np.frombuffer(column.owners, np.int32) + np.int64(base)
            self._pairs[name].add(column.values, owners, np.frombuffer(column.ids, np.int32))
        for name, counts in found.counts.items():
            self._counts[name].append(counts)
        self._flags.append(found.flags)
        self._modes.append(found.modes)
        self._sizes.append(base + len(found.texts))

    def save(self, folder: Path) -> None:
        made: dict[str, NDArray[Any]] = {
            "ends": np.asarray(self._sizes, np.int32),
            "flags": np.frombuffer(b"".join(self._flags), np.uint8),
            "modes": np.frombuffer(b"".join(self._modes), np.uint8),
        }
        for name in COUNTS:
            made[name] = np.frombuffer(b"".join(self._counts[name]), np.int32)
        _put(made, self._pairs)
        arrays.save(folder / CONTENT, made)


class Late(Struct):
    """The columns that git, risk and lint bring, put together."""

    _pairs: dict[str, _Pairs] = field(default_factory=lambda: defaultdict(_Pairs))
    _churn: list[int] = []
    _modified: list[int] = []
    _lint: list[bool] = []

    def add_file(self, author: str | None, modified: int | None, churn: int | None) -> None:
        """The next file, in the order of paths."""
        self._pairs["author"].one([author or ""], len(self._churn))
        self._churn.append(NEVER if churn is None else churn)
        self._modified.append(NEVER if modified is None else modified)

    def add_chunk(self, values: Mapping[str, Iterable[str]], *, lint: bool) -> None:
        """The next chunk of the last file."""
        for name, each in values.items():
            self._pairs[name].one(each, len(self._lint))
        self._lint.append(lint)

    def save(self, folder: Path) -> None:
        made: dict[str, NDArray[Any]] = {
            "churn": np.asarray(self._churn, np.int64),
            "modified": np.asarray(self._modified, np.int64),
            "lint": np.asarray(self._lint, np.bool_),
        }
        _put(made, self._pairs)
        arrays.save(folder / LATE, made)


def _put(made: dict[str, NDArray[Any]], columns: Mapping[str, _Pairs]) -> None:
    for name in sorted(columns):
        made |= {f"{name}.{part}": array for part, array in columns[name].packed().items()}


class Columns:
    """The columns of a shard, for reading. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        content, late = arrays.load(folder / CONTENT), arrays.load(folder / LATE)
        self._numbers = content | late
        self.ends: Ids = content["ends"]
        self.modes: NDArray[np.uint8] = content["modes"]
        self.files = len(self.ends)
        self.chunks = len(self.modes)
        self.file_of: Ids = np.repeat(
            np.arange(self.files, dtype=np.int32), np.diff(self.ends, prepend=0)
        )
        grouped = arrays.group(content) | arrays.group(late)
        self._columns = {
            name: Column(parts, self.files if name in OF_FILES else self.chunks)
            for name, parts in grouped.items()
        }
        self.paths = self._columns["path"].vocabulary if self.files else Vocabulary({})

    def column(self, name: str) -> Column | None:
        """A column; None when no chunk has anything in it."""
        return self._columns.get(name)

    def number(self, name: str) -> NDArray[Any]:
        """A number for every chunk."""
        numbers = self._numbers[name]
        of_files = name in {"churn", "modified"}
        return numbers[self.file_of] if of_files else numbers

    def spread(self, name: str, mask: Mask) -> Mask:
        """A mask over the owners of a column as one over chunks."""
        return mask[self.file_of] if name in OF_FILES else mask

    def ordinal(self, position: int) -> tuple[int, int]:
        """The file of a chunk, and its number in that file."""
        file = int(self.file_of[position])
        return file, position - (int(self.ends[file - 1]) if file else 0)
