"""A generation, open for searching.

Everything in it is read-only, so one engine serves any number of threads. Parts are opened when
they are first needed; what is remembered between searches (the masks of filters) can be lost at
any time.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.kinds import PROTOTYPE
from cleats.toolsets.code.search import filters, vectors, words
from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.details import Details
from cleats.toolsets.code.search.digest import MODES, word_table
from cleats.toolsets.code.search.expressions import Expression
from cleats.toolsets.code.search.filters import Filter
from cleats.toolsets.code.search.parts import shard_folders
from cleats.toolsets.code.search.request import Request
from cleats.toolsets.code.search.retrieval import Found, Retrieval, answered
from cleats.toolsets.code.search.standing import (
    BODIED,
    KINDS,
    OF_TESTS,
    TESTS,
    Called,
    copies,
    repeats,
    worth,
)
from cleats.toolsets.code.search.vocabulary import Ids, Mask
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue

REMEMBERED: Final = 16 << 20
"""Bytes of masks of filters that are kept; an agent asks with the same ones again."""


@contextmanager
def _undamaged() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ToolError(
            ErrorCode.NO_INDEX,
            f"A part of the index is missing or damaged: {error}",
            hint="Call build_index with incremental=false, or run `cleats index --full`.",
        ) from error


class Backend(Protocol):
    """Ranks chunks that match an expression."""

    name: str
    kind: str
    """What its scores are."""

    def rank(
        self, expression: Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """The best positions of each mode and their scores, within its mask if it has one."""


class Engine:
    """One generation. Close it when nobody searches in it any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with Catalogue.open(folder / schema.FILE) as catalogue:
            self.meta: dict[str, Any] = catalogue.meta()
        self._folders = shard_folders(folder)
        self.columns = [Columns(each) for each in self._folders]
        sizes = [each.chunks for each in self.columns]
        self.starts = [sum(sizes[:number]) for number in range(len(sizes))]
        self.chunks = sum(sizes)
        self.details = Details(folder)
        self._masks: dict[Filter, Mask] = {}
        self._backends: dict[str, Backend] = {}
        self._opening = threading.RLock()

    @classmethod
    def open(cls, folder: Path) -> "Engine":
        """Open a published generation.

        Raises:
            ToolError: NO_INDEX, a part is missing or damaged, or another version made it.
        """
        with _undamaged():
            return cls(folder)

    def close(self) -> None:
        """Let go of memory. Searches that still run end as they would have."""
        self.details.close()
        self._masks, self._backends = {}, {}

    def search(self, request: Request, stopped: Callable[[], bool] = lambda: False) -> Found:
        """Find the best chunks of each mode.

        Raises:
            ToolError: INVALID_REQUEST, a pattern takes too long; NO_INDEX, the backend has none.
            Stopped: `stopped` said so.
        """
        return answered(lambda each: Retrieval(self, each, stopped).run(), request)

    def backend(self, name: str) -> Backend:
        """What ranks, by the name that a request gives it."""
        meant = {"auto": "tantivy", "sqlite": "sqlite-fts"}.get(name, name)
        with self._opening:
            if meant not in self._backends:
                self._backends[meant] = self._opened(meant)
            return self._backends[meant]

    @_undamaged()
    def _opened(self, name: str) -> Backend:
        if name == "memory":
            from cleats.toolsets.code.search.memory import Memory  # noqa: PLC0415

            return Memory.of(self.folder, self.columns, self.order)
        if name == "sqlite-fts":
            from cleats.toolsets.code.search.fts import Fts  # noqa: PLC0415

            return Fts.open(self.folder, self.order)
        return words.Words(self.folder, self.starts, self._modes, self.order)

    def mask(self, wanted: Sequence[Filter]) -> Mask | None:
        """The chunks that pass every filter; None when there is no filter."""
        combined: Mask | None = None
        for each in wanted:
            found = self._mask(each)
            combined = found if combined is None else combined & found
        return combined

    def _mask(self, wanted: Filter) -> Mask:
        found = self._masks.get(wanted)
        if found is None:
            found = self._joined([filters.mask(columns, wanted) for columns in self.columns])
            if len(self._masks) * (self.chunks + 1000) >= REMEMBERED:
                self._masks = {}
            self._masks[wanted] = found
        return found

    def of_mode(self, mode: Mode) -> Mask:
        """The chunks of a mode."""
        return self._by_mode[mode]

    def place(self, position: int) -> tuple[str, int]:
        """The path of a chunk's file, and the chunk's number in it."""
        shard = bisect_right(self.starts, position) - 1
        columns = self.columns[shard]
        file, ordinal = columns.ordinal(position - self.starts[shard])
        return columns.paths[file], ordinal

    def cosines(self, words: Sequence[str]) -> NDArray[np.float32] | None:
        """How close every chunk is to what words mean together; None when nobody knows."""
        table, meaning = word_table(), self._meaning
        if table is None or meaning is None:
            return None
        direction = table.encode_query(words)
        return meaning.cosines(direction) if direction.any() else None

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """What the kind of each chunk multiplies its scores with."""
        return self._joined([_weights(columns) for columns in self.columns])

    @cached_property
    def lowered(self) -> NDArray[np.float32]:
        """What the place of each chunk multiplies its fused score with: tests count less."""
        return np.where(self._of_tests, np.float32(TESTS), np.float32(1))

    @cached_property
    def worth(self) -> NDArray[np.float32]:
        """What the points that lists give to each chunk are multiplied with."""
        return self._joined([_worth(columns) for columns in self.columns])

    def copies(self, positions: Ids) -> Mask:
        """Which of some chunks, in their order, are copies of others among them."""
        copied: Mask = self._copied[positions]
        if not copied.any():
            return copied
        called = list(map(self._called.__getitem__, positions.tolist()))
        return copies(copied, self._of_tests[positions], called)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The place of every chunk in the order of paths and of places in their files."""
        if len(self.columns) == 1:
            return np.arange(self.chunks, dtype=np.int64)
        paths = [path for columns in self.columns for path in columns.paths.values()]
        ranks = {path: rank for rank, path in enumerate(sorted(paths))}
        keys = []
        for columns in self.columns:
            own = np.asarray([ranks[path] for path in columns.paths.values()], np.int64)
            keys.append((own[columns.file_of] << 32) + np.arange(columns.chunks))
        return np.concatenate(keys)

    @cached_property
    def _of_tests(self) -> Mask:
        return self._joined([_in_files(columns, _is_test) for columns in self.columns])

    @cached_property
    def _copied(self) -> Mask:
        return self._joined(
            [_in_files(columns, repeats) | _heads(columns) for columns in self.columns]
        )

    @cached_property
    def _called(self) -> "_Called":
        return _Called(self.starts, self.columns)

    @cached_property
    def _modes(self) -> NDArray[np.uint8]:
        return self._joined([columns.modes for columns in self.columns])

    @cached_property
    def _by_mode(self) -> dict[Mode, Mask]:
        return {mode: self._modes == number for number, mode in enumerate(MODES)}

    @cached_property
    def _meaning(self) -> vectors.Meaning | None:
        pairs = zip(self._folders, self.columns, strict=True)
        rows = [(vectors.read(folder, columns.chunks), columns.chunks) for folder, columns in pairs]
        if any(found is None and count for found, count in rows):
            return None
        known = [found for found, _ in rows if found is not None]
        return vectors.Meaning(known) if known else None

    def _joined(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Called(dict[int, Called]):
    """What each chunk is called that anybody asked for."""

    def __init__(self, starts: Sequence[int], columns: Sequence[Columns]) -> None:
        super().__init__()
        self._starts, self._columns = starts, columns

    def __missing__(self, position: int) -> Called:
        shard = bisect_right(self._starts, position) - 1
        columns, within = self._columns[shard], position - self._starts[shard]
        column = columns.column("name")
        name = "" if column is None else column.value(within)
        path = columns.paths[int(columns.file_of[within])]
        return self.setdefault(position, Called.of(name, path))


def _weights(columns: Columns) -> NDArray[np.float32]:
    weights = np.ones(columns.chunks, np.float32)
    column = columns.column("kind")
    if column is not None:
        for number, kind in enumerate(column.vocabulary.values()):
            weights[column.owners(number)] = KINDS.get(kind, 1.0)
    return weights


def _worth(columns: Columns) -> NDArray[np.float32]:
    made = np.ones(columns.chunks, np.float32)
    kinds, uses = columns.column("kind"), columns.column("uses")
    if kinds is not None:
        counts = np.zeros(columns.chunks, np.int64) if uses is None else uses.counts()
        for number, kind in enumerate(kinds.vocabulary.values()):
            if kind in BODIED:
                owners = kinds.owners(number)
                made[owners] = worth(counts[owners])
    return made


def _in_files(columns: Columns, fits: Callable[[str], bool]) -> Mask:
    """The chunks of the files whose paths fit."""
    return np.asarray(list(map(fits, columns.paths.values())), np.bool_)[columns.file_of]


def _heads(columns: Columns) -> Mask:
    """The chunks that declare what has its body elsewhere."""
    column = columns.column("visibility")
    values = [] if column is None else column.vocabulary.values()
    if column is None or PROTOTYPE not in values:
        return np.zeros(columns.chunks, np.bool_)
    return column.mask(np.asarray([values.index(PROTOTYPE)], np.int32))


def _is_test(path: str) -> bool:
    return OF_TESTS.search(path) is not None
