"""The evidence of a file for its chunks: BM25 over the words of whole files and of their paths.

A chunk is found by its own words. The file around it often has the other words of the question, and
all chunks of a file share what the file as a whole says.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.index.column_writer import PATH_WORD_PREFIX
from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns

FILE_WEIGHT, FILE_RANK_CONSTANT = 1.2, 15
"""The points of a chunk for its file: the weight, divided by the constant and the rank of the file."""

MAX_RANKED_FILES: Final = 50
"""Files that give points to their chunks."""

MAX_CACHED_WORDS: Final = 1000
"""Words whose files are kept: few words make up most questions."""

FREQUENCY_SATURATION, LENGTH_SHARE = 2.0, 0.75
"""The constants of BM25, `k1` and `b`."""

PATH_MATCH_WEIGHT: Final = 1.0
"""The weight of a word in the path, relative to the rarity of that word in paths."""

TEST_FILE_WEIGHT: Final = 0.5
"""Factor for the score of a test file, where tests are demoted: it repeats all words of what it tests."""

FileScores = NDArray[np.float32]


class FileEvidence:
    """The words of all files of a generation. Safe for several threads."""

    def __init__(self, shards: Sequence[ShardColumns]) -> None:
        self._shards = shards
        self._find_cached_word = lru_cache(maxsize=MAX_CACHED_WORDS)(self._find_word)
        counts = [shard.file_count for shard in shards]
        self._starts = [sum(counts[:number]) for number in range(len(counts))]
        self._file_count = sum(counts)

    @cached_property
    def file_by_chunk(self) -> Ids:
        """The number of the file of every chunk."""
        pairs = zip(self._shards, self._starts, strict=True)
        return np.concatenate([shard.file_by_chunk + np.int32(start) for shard, start in pairs])

    @cached_property
    def _first_chunks(self) -> list[int]:
        """The first chunk of every file, and the end of the last."""
        first_chunks: list[int] = np.searchsorted(self.file_by_chunk, np.arange(self._file_count + 1)).tolist()
        return first_chunks

    @cached_property
    def _length_norms(self) -> FileScores:
        lengths = np.concatenate([shard.file_lengths for shard in self._shards])
        share = LENGTH_SHARE * lengths / max(1.0, lengths.sum() / max(1, len(lengths)))
        norms: FileScores = (FREQUENCY_SATURATION * (1 - LENGTH_SHARE + share)).astype(np.float32)
        return norms

    @cached_property
    def _path_ranks(self) -> Ids:
        paths = [path for shard in self._shards for path in shard.paths.values()]
        ranks = np.empty(len(paths), np.int32)
        ranks[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(paths), dtype=np.int32)
        return ranks

    def score_files(self, stems: Iterable[str]) -> FileScores:
        """Return the score of every file for the stems of a question."""
        scores = np.zeros(self._file_count, np.float32)
        for stem in stems:
            files, counts = self._find_cached_word(stem)
            frequencies = counts * np.float32(FREQUENCY_SATURATION + 1) / (counts + self._length_norms[files])
            scores[files] += self._compute_rarity(files) * frequencies
            files, _ = self._find_cached_word(PATH_WORD_PREFIX + stem)
            scores[files] += PATH_MATCH_WEIGHT * self._compute_rarity(files)
        return scores

    def _find_word(self, word: str) -> tuple[Ids, FileScores]:
        found = []
        for shard, start in zip(self._shards, self._starts, strict=True):
            if (column := shard.get_column("word")) is not None:
                files, counts = column.find_counts(word)
                found.append((files + np.int32(start), counts))
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        files_by_shard, counts_by_shard = zip(*found, strict=True)
        return np.concatenate(files_by_shard), np.concatenate(counts_by_shard).astype(np.float32)

    def _compute_rarity(self, files: Ids) -> np.float32:
        return np.float32(math.log(1 + (self._file_count - len(files) + 0.5) / (len(files) + 0.5)))

    def score_chunks(
        self, file_scores: FileScores, candidates: Ids, mask: Mask, cosines: NDArray[np.float32] | None
    ) -> dict[int, float]:
        """Return the points of candidates in the best files; such a file without one adds a chunk.

        It is the chunk that is closest to the question in meaning, or the first.
        """
        scored = np.flatnonzero(file_scores > 0)
        if len(scored) > MAX_RANKED_FILES:
            least = np.partition(file_scores[scored], -MAX_RANKED_FILES)[-MAX_RANKED_FILES]
            scored = scored[file_scores[scored] >= least]
        best = scored[np.lexsort((self._path_ranks[scored], -file_scores[scored]))][:MAX_RANKED_FILES]
        points_by_file = {file: FILE_WEIGHT / (FILE_RANK_CONSTANT + rank) for rank, file in enumerate(best.tolist(), 1)}
        files = self.file_by_chunk[candidates].tolist()
        points = {
            position: points_by_file[file]
            for position, file in zip(candidates.tolist(), files, strict=True)
            if file in points_by_file
        }
        starts = self._first_chunks
        for file in points_by_file.keys() - set(files):
            first = starts[file]
            chunks = mask[first : starts[file + 1]].nonzero()[0]
            if len(chunks):
                chosen = chunks[0] if cosines is None else chunks[cosines[first + chunks].argmax()]
                points[first + int(chosen)] = points_by_file[file]
        return points
