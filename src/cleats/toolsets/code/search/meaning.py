"""Ranking by meaning: the cosines of chunks with a question, and the chunks that are closest."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.analysis.embedding.table import VECTOR_LENGTH
from cleats.toolsets.code.index.column_writer import VECTORS_FILE_NAME
from cleats.toolsets.code.index.columns import Mask
from cleats.toolsets.code.search.file_evidence import MAX_OPENED_CHUNKS
from cleats.toolsets.code.search.fusion import RankedList
from cleats.toolsets.code.search.ranking import SearchPlan

BLOCK_ROWS: Final = 1024
"""Rows widened at a time: they fit into the processor's cache."""

MAX_WIDENED_ROWS: Final = 16_384
"""Rows that stay widened, 10 MB of them; with more rows, all are widened for every question."""

VectorRows = NDArray[np.int8]


def map_vectors(folder: Path, chunk_count: int) -> VectorRows | None:
    """Map the rows of a shard; return None when it has none."""
    path = folder / VECTORS_FILE_NAME
    size = path.stat().st_size if path.exists() else 0
    if not chunk_count or not size or size % chunk_count:
        return None
    mapped = np.memmap(path, dtype=np.int8, mode="r", shape=(chunk_count, size // chunk_count))
    return mapped.view(np.ndarray)


class VectorIndex:
    """The meaning of chunks as rows of small integers, of all shards. Safe for several threads.

    Every row is compared, so a filter only leaves some out, and the answer is exact. Rows stay on
    disk as they are stored; what a comparison needs is widened block by block.
    """

    def __init__(self, shards: Sequence[VectorRows]) -> None:
        self._shards = shards

    def compute_cosines(self, direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every chunk with a direction of length 1."""
        scaled = direction / np.float32(VECTOR_LENGTH)
        # Not a matrix product: that would start threads, which takes longer than the sums.
        if sum(map(len, self._shards)) <= MAX_WIDENED_ROWS:
            cosines: NDArray[np.float32] = np.einsum("ij,j->i", self._widened_rows, scaled)
            return cosines
        buffer = np.empty((BLOCK_ROWS, len(direction)), np.float32)
        return np.concatenate([self._compare_rows(rows, scaled, buffer) for rows in self._shards])

    def _compare_rows(
        self, rows: VectorRows, scaled: NDArray[np.float32], buffer: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        cosines = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            widened = buffer[: len(block)]  # new memory for every block would take as long as the sums
            np.copyto(widened, block)
            np.einsum("ij,j->i", widened, scaled, out=cosines[start : start + BLOCK_ROWS])
        return cosines

    @cached_property
    def _widened_rows(self) -> NDArray[np.float32]:
        return np.concatenate([rows.astype(np.float32) for rows in self._shards])


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
    chunks: RankableChunks, cosines: NDArray[np.float32], mask: Mask, limit: int, search_plan: SearchPlan
) -> RankedList:
    """Rank the chunks that are close to a question in meaning, weighted by their kinds."""
    candidates = np.flatnonzero(mask if search_plan.is_strict else _mask_near_best(chunks, cosines, mask, limit))
    ordered = _order_by_meaning(chunks, cosines, candidates, len(candidates) if search_plan.is_strict else limit)
    ordered = ordered[cosines[ordered] >= MIN_COSINE_SIMILARITY]
    return RankedList("meaning", search_plan.weights.meaning, ordered.astype(np.int32), cosines[ordered])


def _mask_near_best(chunks: RankableChunks, cosines: NDArray[np.float32], mask: Mask, limit: int) -> Mask:
    """Return a mask that has the `limit` best and few others, if a sample is any guide; otherwise all."""
    weighted = cosines * chunks.kind_weights
    sample = weighted[::SAMPLED_SHARE][mask[::SAMPLED_SHARE]]
    wanted = MIN_SAMPLED_BEST + 2 * limit // SAMPLED_SHARE
    if wanted >= len(sample):
        return mask
    least = np.partition(sample, len(sample) - wanted)[len(sample) - wanted]
    near_best: Mask = mask & (weighted >= least)
    return near_best if np.count_nonzero(near_best) >= limit else mask


def select_closest(
    chunks: RankableChunks, cosines: NDArray[np.float32] | None, positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the chunks of the best files that are candidates in any case: those closest in meaning."""
    if cosines is None:
        return positions[:0]
    return _order_by_meaning(chunks, cosines, positions[cosines[positions] > 0], MAX_OPENED_CHUNKS)


def _order_by_meaning(
    chunks: RankableChunks, cosines: NDArray[np.float32], positions: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    weighted = cosines[positions] * chunks.kind_weights[positions]
    if limit < len(positions):
        closest = np.argpartition(-weighted, limit - 1)[:limit]
        positions, weighted = positions[closest], weighted[closest]
    ordered: NDArray[np.int64] = positions[np.lexsort((chunks.path_order[positions], -weighted))]
    return ordered
