"""The columns of one shard: the values of every chunk that filters compare, and their owners.

Chunks have positions, from 0, in the order of their files' paths and within a file in the order of
their start. Some facts belong to the file and apply to all its chunks. Facts that can change
without the file (git, risk, lint) are in a second set of columns, rewritten with every generation.
"""

import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.index.column_writer import CONTENT_FILE_NAME, LATE_FILE_NAME, VALUE_SEPARATOR

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_IDS: Final[Ids] = np.zeros(0, np.int32)
NO_COUNTS: Final = np.zeros(0, np.uint8)


def map_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Map the arrays of a file into memory."""
    with path.open("rb") as file:
        header = file.readline()
    # Slices of a memmap drag a slow class along.
    data = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)[len(header) :]
    arrays: dict[str, NDArray[Any]] = {}
    for name, (dtype_name, [count], offset) in json.loads(header).items():
        dtype = np.dtype(dtype_name)
        arrays[name] = data[offset : offset + count * dtype.itemsize].view(dtype)
    return arrays


def group_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Group arrays by the part of their names before the dot."""
    grouped: dict[str, dict[str, NDArray[Any]]] = {}
    for name, values in arrays.items():
        prefix, dot, suffix = name.partition(".")
        if dot:
            grouped.setdefault(prefix, {})[suffix] = values
    return grouped


class Vocabulary:
    """Values that can be searched as text, with or without case."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays["starts"]) if self._arrays else 0

    def __getitem__(self, number: int) -> str:
        start = int(self._arrays["starts"][number])
        text = self._text
        return text[start : text.index(b"\0", start)].decode(errors="surrogatepass")

    @cached_property
    def _text(self) -> bytes:
        return self._arrays["text"].tobytes()

    @cached_property
    def _lower_text(self) -> bytes:
        return self._arrays["lower"].tobytes() if "lower" in self._arrays else self._text

    def find(self, pattern: bytes, *, cased: bool = True) -> Ids:
        """Return the values with a match of a bytes pattern, which must match no empty text."""
        text = self._text if cased else self._lower_text
        starts = self._arrays["starts" if cased or "lower" not in self._arrays else "lower_starts"]
        ends = [matched.end() - 1 for matched in re.finditer(pattern, text)]
        if not ends:
            return NO_IDS
        return sort_unique(np.searchsorted(starts, ends, "right") - 1).astype(np.int32)

    def has_ending(self, text: str) -> bool:
        """Return whether any value ends with a text, in any case; much faster than `find`."""
        return f"{text.lower()}\0".encode(errors="surrogatepass") in self._lower_text

    def find_number(self, value: str) -> int | None:
        """Return the number of a value; None if it is not there."""
        place = self._text.find(f"\0{value}\0".encode(errors="surrogatepass")) if len(self) else -1
        return None if place < 0 else int(np.searchsorted(self._arrays["starts"], place + 1))

    def values(self) -> list[str]:
        """Return all values."""
        return self._text[1:-1].decode(errors="surrogatepass").split(VALUE_SEPARATOR) if len(self) else []


class ValueColumn:
    """A vocabulary and the owners of each of its values."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], owner_count: int) -> None:
        self.vocabulary = Vocabulary(arrays)
        self._bounds = arrays["bounds"]
        self._postings = arrays["postings"]
        self._counts = arrays.get("counts", NO_IDS)
        self._owner_count = owner_count

    def find_counts(self, value: str) -> tuple[Ids, NDArray[np.uint8]]:
        """Return the owners of a value, and how often each has it, in a column that counts."""
        number = self.vocabulary.find_number(value)
        return (NO_IDS, NO_COUNTS) if number is None else self.get_counts(number)

    def get_counts(self, number: int) -> tuple[Ids, NDArray[np.uint8]]:
        """Return the owners of a value by its number, and how often each has it."""
        bounds = slice(self._bounds[number], self._bounds[number + 1])
        return self._postings[bounds], self._counts[bounds]

    def get_owners(self, number: int) -> Ids:
        """Return the owners of a value."""
        owners: Ids = self._postings[self._bounds[number] : self._bounds[number + 1]]
        return owners

    def count_values(self) -> NDArray[np.int64]:
        """Return the number of values of each owner."""
        return np.bincount(self._postings, minlength=self._owner_count)

    def get_value(self, owner: int) -> str:
        """Return the value of an owner in a column with one value each; empty when it has none."""
        number = int(self._value_numbers[owner])
        return self.vocabulary[number] if number >= 0 else ""

    @cached_property
    def _value_numbers(self) -> Ids:
        numbers = np.full(self._owner_count, -1, np.int32)
        indices = np.arange(len(self.vocabulary), dtype=np.int32)
        numbers[self._postings] = np.repeat(indices, np.diff(self._bounds))
        return numbers

    def mask_owners(self, ids: Ids) -> Mask:
        """Return the mask of the owners of any of these values."""
        mask = np.zeros(self._owner_count, dtype=np.bool_)
        if len(ids) <= 64:
            for number in ids:
                mask[self.get_owners(number)] = True
        else:
            selected = np.zeros(len(self.vocabulary), dtype=np.bool_)
            selected[ids] = True
            mask[self._postings[np.repeat(selected, np.diff(self._bounds))]] = True
        return mask


def sort_unique(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers sorted, each once: like `np.unique`, which loads numpy's masked arrays."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


FILE_COLUMNS: Final = frozenset({"path", "ext", "import", "author", "word"})
"""Columns whose owners are files."""


class ShardColumns:
    """The columns of a shard, for reading. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        content, late = map_arrays(folder / CONTENT_FILE_NAME), map_arrays(folder / LATE_FILE_NAME)
        self._numbers = content | late
        self.file_ends: Ids = content["ends"]
        self.modes: NDArray[np.uint8] = content["modes"]
        self.file_count = len(self.file_ends)
        self.file_lengths: Ids = content["lengths"]
        self.chunk_count = len(self.modes)
        self.file_by_chunk: Ids = np.repeat(
            np.arange(self.file_count, dtype=np.int32), np.diff(self.file_ends, prepend=0)
        )
        grouped = group_arrays(content) | group_arrays(late)
        self._columns = {
            name: ValueColumn(parts, self.file_count if name in FILE_COLUMNS else self.chunk_count)
            for name, parts in grouped.items()
        }
        self.paths = self._columns["path"].vocabulary if self.file_count else Vocabulary({})

    def get_column(self, name: str) -> ValueColumn | None:
        """Return a column; None when no chunk has a value in it."""
        return self._columns.get(name)

    def get_numbers(self, name: str) -> NDArray[Any]:
        """Return the number of every chunk in a numeric column."""
        numbers = self._numbers[name]
        is_per_file = name in {"churn", "modified"}
        return numbers[self.file_by_chunk] if is_per_file else numbers

    def spread_to_chunks(self, name: str, mask: Mask) -> Mask:
        """Convert a mask over the owners of a column to a mask over chunks."""
        return mask[self.file_by_chunk] if name in FILE_COLUMNS else mask

    def locate_chunk(self, position: int) -> tuple[int, int]:
        """Return the number of a chunk's file, and the chunk's ordinal in that file."""
        file = int(self.file_by_chunk[position])
        return file, position - (int(self.file_ends[file - 1]) if file else 0)
