"""The meaning of chunks as rows of small numbers, compared one by one with that of a question.

Every row is looked at, so a filter is a matter of leaving some out, and the answer is exact. Rows
stay on disk as they are stored; what a comparison needs is widened block by block.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.dense.measures import LENGTH
from cleats.toolsets.code.search.filling import VECTORS

BLOCK: Final = 1024
"""Rows widened at a time: they fit into the processor's cache."""

KEPT: Final = 16_384
"""Rows that stay widened, 10 MB of them; more are widened for every question."""

Vectors = NDArray[np.int8]


def read(folder: Path, chunks: int) -> Vectors | None:
    """The rows of a shard; None when it has none."""
    path = folder / VECTORS
    size = path.stat().st_size if path.exists() else 0
    if not chunks or not size or size % chunks:
        return None
    mapped = np.memmap(path, dtype=np.int8, mode="r", shape=(chunks, size // chunks))
    return mapped.view(np.ndarray)


class Meaning:
    """The rows of all shards. Safe for several threads."""

    def __init__(self, shards: Sequence[Vectors]) -> None:
        self._shards = shards

    def cosines(self, direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """How close every chunk is to a direction of length 1."""
        scaled = direction / np.float32(LENGTH)
        # Not a matrix product: that would start threads, which take longer than the sum.
        if sum(map(len, self._shards)) <= KEPT:
            close: NDArray[np.float32] = np.einsum("ij,j->i", self._wide, scaled)
            return close
        room = np.empty((BLOCK, len(direction)), np.float32)
        return np.concatenate([self._compared(rows, scaled, room) for rows in self._shards])

    def _compared(
        self, rows: Vectors, scaled: NDArray[np.float32], room: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        close = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), BLOCK):
            block = rows[at : at + BLOCK]
            wide = room[: len(block)]  # new memory for every block would take as long as the sums
            np.copyto(wide, block)
            np.einsum("ij,j->i", wide, scaled, out=close[at : at + BLOCK])
        return close

    @cached_property
    def _wide(self) -> NDArray[np.float32]:
        return np.concatenate([rows.astype(np.float32) for rows in self._shards])
