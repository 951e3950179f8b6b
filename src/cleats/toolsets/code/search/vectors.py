"""The meaning of chunks as rows of small numbers, compared one by one with that of a question.

Every row is looked at, so a filter is a matter of leaving some out, and the answer is exact. Rows
stay on disk as they are stored; what a comparison needs is widened block by block.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search.vocabulary import Ids, Mask

FILE: Final = "vectors.i8"
BLOCK: Final = 8192
"""Rows widened at a time: they fit into the processor's cache."""

KEPT: Final = 64_000
"""Rows that are kept widened, 40 MB of them; more are widened for every question."""

Vectors = NDArray[np.int8]


def write(folder: Path, rows: Iterable[bytes]) -> None:
    """Put rows one after the other, in the order of positions."""
    with (folder / FILE).open("wb") as file:
        for row in rows:
            file.write(row)


def read(folder: Path, chunks: int) -> Vectors | None:
    """The rows of a shard; None when it has none."""
    path = folder / FILE
    size = path.stat().st_size if path.exists() else 0
    if not chunks or not size or size % chunks:
        return None
    mapped = np.memmap(path, dtype=np.int8, mode="r", shape=(chunks, size // chunks))
    return mapped.view(np.ndarray)


class Meaning:
    """The rows of all shards. Safe for several threads."""

    def __init__(self, shards: Sequence[Vectors], length: float) -> None:
        self._shards = shards
        self._length = length
        total = sum(map(len, shards))
        self._wide = [rows.astype(np.float32) for rows in shards] if total <= KEPT else None

    def near(
        self, direction: NDArray[np.float32], mask: Mask, limit: int, least: float
    ) -> tuple[Ids, NDArray[np.float32]]:
        """The chunks within a mask whose meaning is closest, with the cosine, closest first."""
        cosines = self.cosines(direction)
        cosines = np.where(mask, cosines, -1.0)
        count = min(limit, len(cosines))
        best = np.argpartition(-cosines, count - 1)[:count] if count else np.zeros(0, np.int64)
        best = best[np.lexsort((best, -cosines[best]))]
        best = best[cosines[best] >= least]
        return best.astype(np.int32), cosines[best]

    def cosines(self, direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """How close every chunk is."""
        if self._wide is not None:
            found = [rows @ direction for rows in self._wide]
        else:
            found = [
                rows[at : at + BLOCK].astype(np.float32) @ direction
                for rows in self._shards
                for at in range(0, len(rows), BLOCK)
            ]
        return (np.concatenate(found) / self._length).astype(np.float32)
