"""Ranking by meaning: the cosines of chunks with a question, and the chunks that are closest."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cleats.toolsets.code.analysis.embedding.table import VECTOR_LENGTH
from cleats.toolsets.code.index.column_writer import VECTORS_FILE_NAME
from cleats.toolsets.code.index.columns import Mask, sort_unique
from cleats.toolsets.code.search.file_evidence import MAX_OPENED_CHUNKS
from cleats.toolsets.code.search.fusion import RankedList
from cleats.toolsets.code.search.ranking import SearchPlan

PRODUCT_ROWS: Final = 56
"""Rows of one matrix product: with more, the library starts threads, which takes longer than the product."""

BLOCK_ROWS: Final = 18 * PRODUCT_ROWS
"""Rows widened at a time: they fit into the processor's cache."""

MAX_WIDENED_ROWS: Final = 16_384
"""Rows that stay widened, 10 MB of them; with more rows, all are widened for every question."""

ESTIMATE_TOLERANCE: Final = 1e-4
"""The most by which an estimate differs from a cosine, and some more: products add up in another order."""

COMPUTED_SHARE: Final = 4
"""If at most a quarter of the chunks is wanted, their cosines are computed at once instead of estimates."""

PICKED_SHARE: Final = 0.75
"""If at most this share of all chunks is wanted, their rows are picked out; otherwise all rows are compared."""

VectorRows = NDArray[np.int8]
Cosines = NDArray[np.float32]


def map_vectors(folder: Path, chunk_count: int) -> VectorRows | None:
    """Map the rows of a shard; return None when it has none."""
    path = folder / VECTORS_FILE_NAME
    size = path.stat().st_size if path.exists() else 0
    if not chunk_count or not size or size % chunk_count:
        return None
    mapped = np.memmap(path, dtype=np.int8, mode="r", shape=(chunk_count, size // chunk_count))
    return mapped.view(np.ndarray)


class ChunkCosines(Struct, frozen=True):
    """The similarity of chunks to a question: estimates of all, which are replaced where the cosine itself matters."""

    values: Cosines
    compute: Callable[[NDArray[np.int64]], Cosines] | None = None
    """Computes the cosines of chunks; None if the values are cosines already."""

    def refine(self, positions: NDArray[np.int64]) -> None:
        """Replace the estimates of some chunks by cosines."""
        if self.compute is not None:
            self.values[positions] = self.compute(positions)

    @property
    def tolerance(self) -> float:
        """The most by which a value differs from a cosine."""
        return 0.0 if self.compute is None else ESTIMATE_TOLERANCE


class VectorIndex:
    """The meaning of chunks as rows of small integers, of all shards. Safe for several threads.

    Every row is compared, so a filter only leaves some out, and the answer is exact. Rows stay on
    disk as they are stored; what a comparison needs is widened block by block.
    """

    def __init__(self, shards: Sequence[VectorRows]) -> None:
        self._shards = shards
        self._starts = np.cumsum([0, *map(len, shards)])

    def compare_chunks(self, direction: Cosines, mask: Mask) -> ChunkCosines:
        """Return the cosines of the chunks of a mask with a direction of length 1."""
        scaled = direction / np.float32(VECTOR_LENGTH)
        count = int(self._starts[-1])
        if count <= MAX_WIDENED_ROWS:
            # Not a matrix product, which adds up in an order that depends on the number of rows.
            cosines: Cosines = np.einsum("ij,j->i", self._widened_rows, scaled)
            return ChunkCosines(cosines)
        wanted_count = np.count_nonzero(mask)
        if wanted_count * COMPUTED_SHARE <= count:
            values, positions = np.zeros(count, np.float32), np.flatnonzero(mask)
            values[positions] = self._compute_cosines(scaled, positions)
            return ChunkCosines(values)
        buffer = np.empty((BLOCK_ROWS, len(scaled)), np.float32)
        if wanted_count <= PICKED_SHARE * count:
            masks = np.split(mask, self._starts[1:-1])
            pairs = zip(self._shards, masks, strict=True)
            estimates = [_estimate_picked(rows, shard_mask, scaled, buffer) for rows, shard_mask in pairs]
        else:
            estimates = [_estimate_cosines(rows, scaled, buffer) for rows in self._shards]
        return ChunkCosines(np.concatenate(estimates), partial(self._compute_cosines, scaled))

    def _compute_cosines(self, scaled: Cosines, positions: NDArray[np.int64]) -> Cosines:
        cosines = np.empty(len(positions), np.float32)
        for start in range(0, len(positions), BLOCK_ROWS):
            rows = self._pick_rows(positions[start : start + BLOCK_ROWS]).astype(np.float32)
            np.einsum("ij,j->i", rows, scaled, out=cosines[start : start + BLOCK_ROWS])
        return cosines

    def _pick_rows(self, positions: NDArray[np.int64]) -> VectorRows:
        picked = np.empty((len(positions), self._shards[0].shape[1]), np.int8)
        numbers = np.searchsorted(self._starts, positions, side="right") - 1
        for number in sort_unique(numbers).tolist():
            selected = np.flatnonzero(numbers == number)
            picked[selected] = self._shards[number][positions[selected] - self._starts[number]]
        return picked

    @cached_property
    def _widened_rows(self) -> NDArray[np.float32]:
        return np.concatenate([rows.astype(np.float32) for rows in self._shards])


def _estimate_cosines(rows: VectorRows, scaled: Cosines, buffer: NDArray[np.float32]) -> Cosines:
    estimates = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        _estimate_block(rows[start : start + BLOCK_ROWS], scaled, buffer, estimates[start : start + BLOCK_ROWS])
    return estimates


def _estimate_picked(rows: VectorRows, mask: Mask, scaled: Cosines, buffer: NDArray[np.float32]) -> Cosines:
    """Return the estimates of the rows of a mask, and zeros."""
    values = np.zeros(len(rows), np.float32)
    positions = np.flatnonzero(mask)
    picked = np.empty((BLOCK_ROWS, rows.shape[1]), np.int8)
    estimates = np.empty(BLOCK_ROWS, np.float32)
    for start in range(0, len(positions), BLOCK_ROWS):
        block = positions[start : start + BLOCK_ROWS]
        np.take(rows, block, axis=0, out=picked[: len(block)], mode="clip")  # otherwise the rows are copied twice
        _estimate_block(picked[: len(block)], scaled, buffer, estimates[: len(block)])
        values[block] = estimates[: len(block)]
    return values


def _estimate_block(block: VectorRows, scaled: Cosines, buffer: NDArray[np.float32], estimates: Cosines) -> None:
    widened = buffer[: len(block)]  # new memory for every block would take as long as the sums
    np.copyto(widened, block)
    whole = len(block) // PRODUCT_ROWS * PRODUCT_ROWS
    products = estimates[:whole].reshape(-1, PRODUCT_ROWS)
    np.matvec(widened[:whole].reshape(-1, PRODUCT_ROWS, len(scaled)), scaled, out=products)
    if whole < len(block):  # the call takes as long as a product
        np.einsum("ij,j->i", widened[whole:], scaled, out=estimates[whole:])


MIN_COSINE_SIMILARITY: Final = 0.2
"""The cosine below which a chunk is unrelated to a question."""


SAMPLED_SHARE, MIN_SAMPLED_BEST = 16, 16
"""One in so many chunks is sampled to guess which are among the closest, and the least number of the best of the
sample that decides: to sort all chunks of a large repository takes longer than the rest of the list."""


class RankableChunks(Protocol):
    """The weights and the order of chunks, as far as ranking a list needs them."""

    @property
    def kind_weights(self) -> NDArray[np.float32]:
        """The factor for the scores of each chunk, by its kind."""

    @property
    def path_order(self) -> NDArray[np.int64]:
        """The order of chunks that score the same."""


def rank_by_meaning(
    chunks: RankableChunks, cosines: ChunkCosines, mask: Mask, limit: int, search_plan: SearchPlan
) -> RankedList:
    """Rank the chunks that are close to a question in meaning, weighted by their kinds."""
    is_strict = search_plan.is_strict
    candidates = np.flatnonzero(mask) if is_strict else _find_near_best(chunks, cosines, mask, limit)
    ordered = _order_by_meaning(chunks, cosines, candidates, len(candidates) if is_strict else limit)
    ordered = ordered[cosines.values[ordered] >= MIN_COSINE_SIMILARITY]
    return RankedList("meaning", search_plan.weights.meaning, ordered.astype(np.int32), cosines.values[ordered])


def _find_near_best(chunks: RankableChunks, cosines: ChunkCosines, mask: Mask, limit: int) -> NDArray[np.int64]:
    """Return the `limit` best chunks and few others, if a sample is any guide; otherwise all."""
    weighted = cosines.values * chunks.kind_weights
    sample = weighted[::SAMPLED_SHARE][mask[::SAMPLED_SHARE]]
    wanted = MIN_SAMPLED_BEST + 2 * limit // SAMPLED_SHARE
    if wanted >= len(sample):
        return np.flatnonzero(mask)
    least = np.partition(sample, len(sample) - wanted)[len(sample) - wanted]
    near_best = np.flatnonzero(mask & (weighted >= least - 2 * cosines.tolerance))
    return near_best if np.count_nonzero(weighted[near_best] >= least) >= limit else np.flatnonzero(mask)


def select_closest(
    chunks: RankableChunks, cosines: ChunkCosines | None, positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the chunks of the best files that are candidates in any case: those closest in meaning."""
    if cosines is None:
        return positions[:0]
    near = positions[cosines.values[positions] > -cosines.tolerance]
    ordered = _order_by_meaning(chunks, cosines, near, MAX_OPENED_CHUNKS)
    return ordered[cosines.values[ordered] > 0]


def _order_by_meaning(
    chunks: RankableChunks, cosines: ChunkCosines, positions: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    """Return the `limit` closest chunks, closest first."""
    weights = chunks.kind_weights
    if limit < len(positions):
        weighted = cosines.values[positions] * weights[positions]
        least = np.partition(weighted, len(weighted) - limit)[len(weighted) - limit]
        positions = positions[weighted >= least - 2 * cosines.tolerance]
    cosines.refine(positions)
    weighted = cosines.values[positions] * weights[positions]
    ordered: NDArray[np.int64] = positions[np.lexsort((chunks.path_order[positions], -weighted))]
    return ordered[:limit]
