"""A generation, open for searching.

Everything in it is read-only, so one engine serves any number of threads. Parts are opened when
they are first needed; caches between searches (the masks of filters) can be dropped at any time.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import blocking
from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.kinds import PROTOTYPE_MODIFIER
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns
from cleats.toolsets.code.index.digest import MODES_BY_NUMBER, load_word_table
from cleats.toolsets.code.index.shard_writer import list_shard_folders
from cleats.toolsets.code.query import filters
from cleats.toolsets.code.query.filters import SearchFilter
from cleats.toolsets.code.search import tantivy_backend
from cleats.toolsets.code.search.expressions import Expression
from cleats.toolsets.code.search.file_evidence import FileEvidence
from cleats.toolsets.code.search.fusion import (
    BODY_KINDS,
    DEPRECATED_PATTERN,
    GENERATED_PATH_PATTERN,
    KIND_WEIGHTS,
    TEST_PATH_PATTERN,
    TEST_PATH_WEIGHT,
    BodySizes,
    ChunkIdentity,
    is_duplicate_path,
    mark_duplicates,
    weigh_standing,
)
from cleats.toolsets.code.search.hit_details import CatalogueReaderPool
from cleats.toolsets.code.search.meaning import ChunkCosines, VectorIndex, map_vectors

ListingNumber = Literal["severity", "modified"]

SEVERITY_RATINGS: Final = {"low": 1, "medium": 2, "high": 3, "critical": 4}

MASK_CACHE_BYTES: Final = 16 << 20
"""Bytes of filter masks that are cached; an agent repeats the same filters."""


@contextmanager
def _report_damage() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ToolError(
            ErrorCode.NO_INDEX,
            f"A part of the index is missing or damaged: {error}",
            hint="Call build_index with incremental=false, or run `cleats index --full`.",
        ) from error


class SearchBackend(Protocol):
    """Ranks the chunks that match an expression."""

    name: str
    score_kind: str
    """The kind of its scores."""

    def rank(
        self, expression: Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """Return the best positions of each mode with their scores, within its mask if any."""


class SearchEngine:
    """A search engine for one generation. Close it when no search uses it any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with IndexCatalogue.open(folder / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
            self.meta: dict[str, Any] = catalogue.read_meta()
        self._folders = list_shard_folders(folder)
        self.shards = [ShardColumns(shard) for shard in self._folders]
        sizes = [shard.chunk_count for shard in self.shards]
        self.shard_starts = [sum(sizes[:shard_number]) for shard_number in range(len(sizes))]
        self.chunk_count = sum(sizes)
        self.hit_source = CatalogueReaderPool(folder)
        self._masks: dict[SearchFilter, Mask] = {}
        self._backends: dict[str, SearchBackend] = {}
        self._backends_lock = threading.RLock()

    @classmethod
    def open(cls, folder: Path) -> "SearchEngine":
        """Open a published generation.

        Raises:
            ToolError: NO_INDEX, a part is missing or damaged, or another version made it.
        """
        with _report_damage():
            return cls(folder)

    def close(self) -> None:
        """Release memory. Running searches finish normally."""
        self.hit_source.close()
        self._masks, self._backends = {}, {}

    def get_backend(self, name: str) -> SearchBackend:
        """Return the backend for the name in a request."""
        backend_name = {"auto": "tantivy", "sqlite": "sqlite-fts"}.get(name, name)
        with self._backends_lock:
            if backend_name not in self._backends:
                self._backends[backend_name] = self._open_backend(backend_name)
            return self._backends[backend_name]

    @_report_damage()
    def _open_backend(self, name: str) -> SearchBackend:
        if name == "memory":
            from cleats.toolsets.code.search.reference_backends import MemoryBackend  # noqa: PLC0415

            return MemoryBackend.from_generation(self.folder, self.shards, self.path_order)
        if name == "sqlite-fts":
            from cleats.toolsets.code.search.reference_backends import FtsBackend  # noqa: PLC0415

            return FtsBackend.open(self.folder, self.path_order)
        return tantivy_backend.TantivyBackend(self.folder, self.shard_starts, self._mode_numbers, self.path_order)

    def compute_mask(self, search_filters: Sequence[SearchFilter]) -> Mask | None:
        """Return the chunks that pass every filter; None when there is no filter."""
        combined: Mask | None = None
        for search_filter in search_filters:
            blocking.raise_if_stopped()
            mask = self._compute_filter_mask(search_filter)
            combined = mask if combined is None else combined & mask
        return combined

    def _compute_filter_mask(self, search_filter: SearchFilter) -> Mask:
        mask = self._masks.get(search_filter)
        if mask is None:
            mask = self._concatenate([filters.compute_mask(columns, search_filter) for columns in self.shards])
            if len(self._masks) * (self.chunk_count + 1000) >= MASK_CACHE_BYTES:
                self._masks = {}
            self._masks[search_filter] = mask
        return mask

    def get_mode_mask(self, mode: Mode) -> Mask:
        """Return the mask of the chunks of a mode."""
        return self._mode_masks[mode]

    def locate_chunk(self, position: int) -> tuple[str, int]:
        """Return the path of a chunk's file, and the chunk's ordinal in it."""
        shard = bisect_right(self.shard_starts, position) - 1
        columns = self.shards[shard]
        file, ordinal = columns.locate_chunk(position - self.shard_starts[shard])
        return columns.paths[file], ordinal

    def compare_meaning(self, query_words: Sequence[str], mask: Mask) -> ChunkCosines | None:
        """Return the similarity of the chunks of a mask to the meaning of query_words; None when it is unknown."""
        table, vector_index = load_word_table(), self._vector_index
        if table is None or vector_index is None:
            return None
        direction = table.encode_query(query_words)
        return vector_index.compare_chunks(direction, mask) if direction.any() else None

    @cached_property
    def kind_weights(self) -> NDArray[np.float32]:
        """The factor for the scores of each chunk, by its kind."""
        return self._concatenate([_compute_kind_weights(columns) for columns in self.shards])

    @cached_property
    def test_weights(self) -> NDArray[np.float32]:
        """The factor for the fused score of each chunk, by its path: tests are demoted."""
        return np.where(self._test_mask, np.float32(TEST_PATH_WEIGHT), np.float32(1))

    @cached_property
    def standing_weights(self) -> NDArray[np.float32]:
        """The factor for the fused score of each chunk: deprecated and generated code is demoted."""
        deprecated = self._concatenate([_mask_deprecated(columns) for columns in self.shards])
        generated = self._concatenate([_mask_files(columns, GENERATED_PATH_PATTERN.search) for columns in self.shards])
        return weigh_standing(deprecated, generated)

    def get_listing_numbers(self, name: ListingNumber) -> NDArray[np.int64]:
        """Return the number of every chunk by which a list of everything is ordered, highest first."""
        if name == "severity":
            return self._concatenate([_rate_severities(columns) for columns in self.shards])
        return self._concatenate([columns.get_numbers("modified").astype(np.int64) for columns in self.shards])

    @cached_property
    def body_sizes(self) -> BodySizes:
        """How much each chunk does."""
        sizes = [_measure_bodies(columns) for columns in self.shards]
        return BodySizes(*(self._concatenate(arrays) for arrays in zip(*sizes, strict=True)))

    def mark_duplicates(self, positions: Ids) -> Mask:
        """Mark the chunks, in order, that duplicate others among them."""
        candidates: Mask = self._duplicate_mask[positions]
        if not candidates.any():
            return candidates
        identities = list(map(self._identities.__getitem__, positions.tolist()))
        return mark_duplicates(candidates, self._test_mask[positions], identities)

    def measure_rarity(self, stem: str) -> float:
        """Return how rare a word is in files."""
        return self.file_evidence.measure_rarity(stem)

    @cached_property
    def file_evidence(self) -> FileEvidence:
        """The words of whole files."""
        return FileEvidence.from_shards(self.shards)

    @cached_property
    def path_order(self) -> NDArray[np.int64]:
        """The rank of every chunk by path and by position in its file."""
        if len(self.shards) == 1:
            return np.arange(self.chunk_count, dtype=np.int64)
        paths = [path for columns in self.shards for path in columns.paths.values()]
        ranks = {path: rank for rank, path in enumerate(sorted(paths))}
        keys = []
        for columns in self.shards:
            file_ranks = np.asarray([ranks[path] for path in columns.paths.values()], np.int64)
            keys.append((file_ranks[columns.file_by_chunk] << 32) + np.arange(columns.chunk_count))
        return np.concatenate(keys)

    @cached_property
    def _test_mask(self) -> Mask:
        return self._concatenate([_mask_files(columns, TEST_PATH_PATTERN.search) for columns in self.shards])

    @cached_property
    def _duplicate_mask(self) -> Mask:
        return self._concatenate(
            [_mask_files(columns, is_duplicate_path) | _mask_prototypes(columns) for columns in self.shards]
        )

    @cached_property
    def _identities(self) -> "_ChunkIdentities":
        return _ChunkIdentities(self.shard_starts, self.shards)

    @cached_property
    def _mode_numbers(self) -> NDArray[np.uint8]:
        return self._concatenate([columns.modes for columns in self.shards])

    @cached_property
    def _mode_masks(self) -> dict[Mode, Mask]:
        return {mode: self._mode_numbers == number for number, mode in enumerate(MODES_BY_NUMBER)}

    @cached_property
    def _vector_index(self) -> VectorIndex | None:
        pairs = zip(self._folders, self.shards, strict=True)
        rows = [(map_vectors(folder, columns.chunk_count), columns.chunk_count) for folder, columns in pairs]
        if any(vector_rows is None and count for vector_rows, count in rows):
            return None
        shard_rows = [vector_rows for vector_rows, _ in rows if vector_rows is not None]
        return VectorIndex(shard_rows) if shard_rows else None

    def _concatenate(self, shard_arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return shard_arrays[0] if len(shard_arrays) == 1 else np.concatenate(shard_arrays)


class _ChunkIdentities(dict[int, ChunkIdentity]):
    def __init__(self, starts: Sequence[int], columns: Sequence[ShardColumns]) -> None:
        super().__init__()
        self._starts, self._columns = starts, columns

    def __missing__(self, position: int) -> ChunkIdentity:
        shard = bisect_right(self._starts, position) - 1
        columns, shard_position = self._columns[shard], position - self._starts[shard]
        column = columns.get_column("name")
        name = "" if column is None else column.get_value(shard_position)
        path = columns.paths[int(columns.file_by_chunk[shard_position])]
        return self.setdefault(position, ChunkIdentity.from_chunk(name, path))


def _compute_kind_weights(columns: ShardColumns) -> NDArray[np.float32]:
    weights = np.ones(columns.chunk_count, np.float32)
    column = columns.get_column("kind")
    if column is not None:
        for number, kind in enumerate(column.vocabulary.values()):
            weights[column.get_owners(number)] = KIND_WEIGHTS.get(kind, 1.0)
    return weights


def _measure_bodies(columns: ShardColumns) -> BodySizes:
    has_body = np.zeros(columns.chunk_count, np.bool_)
    kinds, used_names = columns.get_column("kind"), columns.get_column("uses")
    if kinds is not None:
        for number, kind in enumerate(kinds.vocabulary.values()):
            if kind in BODY_KINDS:
                has_body[kinds.get_owners(number)] = True
    counts = np.zeros(columns.chunk_count, np.int64) if used_names is None else used_names.count_values()
    return BodySizes.from_counts(has_body, counts, columns.get_numbers("lines"))


def _mask_files(columns: ShardColumns, accepts_path: Callable[[str], object]) -> Mask:
    return np.asarray([bool(accepts_path(path)) for path in columns.paths.values()], np.bool_)[columns.file_by_chunk]


def _mask_deprecated(columns: ShardColumns) -> Mask:
    column = columns.get_column("decorator")
    if column is None:
        return np.zeros(columns.chunk_count, np.bool_)
    return column.mask_owners(column.vocabulary.find(DEPRECATED_PATTERN, cased=False))


def _rate_severities(columns: ShardColumns) -> NDArray[np.int64]:
    ratings = np.zeros(columns.chunk_count, np.int64)
    if (column := columns.get_column("riskSeverity")) is not None:
        for number, severity in enumerate(column.vocabulary.values()):
            ratings[column.get_owners(number)] = SEVERITY_RATINGS.get(severity, 0)
    return ratings


def _mask_prototypes(columns: ShardColumns) -> Mask:
    """Return the mask of the chunks that declare something whose body is elsewhere."""
    column = columns.get_column("visibility")
    values = [] if column is None else column.vocabulary.values()
    if column is None or PROTOTYPE_MODIFIER not in values:
        return np.zeros(columns.chunk_count, np.bool_)
    return column.mask_owners(np.asarray([values.index(PROTOTYPE_MODIFIER)], np.int32))
