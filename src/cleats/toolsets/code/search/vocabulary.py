"""The distinct values of one field, in one piece of memory, and who has them.

A filter looks for its value in the whole vocabulary at once and gets numbers of values; postings
turn those into numbers of owners (chunks or files). Values are sorted, so that the same content
always makes the same bytes.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search.postings import END

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

NONE: Final[Ids] = np.zeros(0, np.int32)


class Vocabulary:
    """Values that can be searched as text, with case and without."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays["starts"]) if self._arrays else 0

    def __getitem__(self, number: int) -> str:
        start = int(self._arrays["starts"][number])
        text = self._written
        return text[start : text.index(b"\0", start)].decode(errors="surrogatepass")

    @cached_property
    def _written(self) -> bytes:
        return self._arrays["text"].tobytes()

    @cached_property
    def _lowered(self) -> bytes:
        return self._arrays["lower"].tobytes() if "lower" in self._arrays else self._written

    def find(self, pattern: bytes, *, cased: bool = True) -> Ids:
        """The values that hold a match of a pattern of bytes, which must not be empty."""
        text = self._written if cased else self._lowered
        starts = self._arrays["starts" if cased or "lower" not in self._arrays else "lower_starts"]
        ends = [found.end() - 1 for found in re.finditer(pattern, text)]
        if not ends:
            return NONE
        return distinct(np.searchsorted(starts, ends, "right") - 1).astype(np.int32)

    def values(self) -> list[str]:
        """All of them."""
        return self._written[1:-1].decode(errors="surrogatepass").split(END) if len(self) else []


class Column:
    """A vocabulary and the owners of each of its values."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], owners: int) -> None:
        self.vocabulary = Vocabulary(arrays)
        self._bounds = arrays["bounds"]
        self._postings = arrays["postings"]
        self._owners = owners

    def owners(self, number: int) -> Ids:
        """Who has a value."""
        found: Ids = self._postings[self._bounds[number] : self._bounds[number + 1]]
        return found

    def counts(self) -> NDArray[np.int64]:
        """How many values each owner has."""
        return np.bincount(self._postings, minlength=self._owners)

    def value(self, owner: int) -> str:
        """What an owner has, in a column with one value each; empty when it has none."""
        number = int(self._numbers[owner])
        return self.vocabulary[number] if number >= 0 else ""

    @cached_property
    def _numbers(self) -> Ids:
        numbers = np.full(self._owners, -1, np.int32)
        each = np.arange(len(self.vocabulary), dtype=np.int32)
        numbers[self._postings] = np.repeat(each, np.diff(self._bounds))
        return numbers

    def mask(self, ids: Ids) -> Mask:
        """Who has any of these values."""
        mask = np.zeros(self._owners, dtype=np.bool_)
        if len(ids) <= 64:
            for number in ids:
                mask[self.owners(number)] = True
        else:
            chosen = np.zeros(len(self.vocabulary), dtype=np.bool_)
            chosen[ids] = True
            mask[self._postings[np.repeat(chosen, np.diff(self._bounds))]] = True
        return mask


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers in order, each once: `np.unique`, which loads a part of numpy for masks."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
