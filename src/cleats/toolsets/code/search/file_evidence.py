"""The evidence of a file for its chunks: BM25 over the words of whole files and of their paths.

A chunk is found by its own words. The file around it often has the other words of the question, and
all chunks of a file share what the file as a whole says.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cleats.toolsets.code.index.column_writer import PATH_WORD_PREFIX
from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns
from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN

FILE_RANK_CONSTANT: Final = 5
"""Flattens the difference between the first files."""

MAX_RANKED_FILES: Final = 50
"""Files that give points to their chunks."""

MAX_OPENED_FILES, MAX_OPENED_CHUNKS = 15, 100
"""Best files, and how many of their chunks are candidates although no list has them."""

MAX_CACHED_WORDS: Final = 1000
"""Words whose files are kept: few words make up most questions."""

FREQUENCY_SATURATION, LENGTH_SHARE = 2.0, 0.75
"""The constants of BM25, `k1` and `b`."""

PATH_MATCH_WEIGHT: Final = 1.0
"""The weight of a word in the path, relative to the rarity of that word in paths."""

TEST_FILE_WEIGHT: Final = 0.5
"""Factor for the score of a test file, where tests are demoted: it repeats all words of what it tests."""

FileScores = NDArray[np.float32]
WordFinder = Callable[[str], tuple[Ids, FileScores]]
"""Returns the files that have a word, and how often each has it."""


class FileTable(Struct, frozen=True):
    """What is known of every file besides its words, by file number."""

    lengths: NDArray[np.int32]
    """The number of words."""
    path_ranks: Ids
    """The place in the order of paths."""
    first_chunks: Ids
    """The position of the first chunk; one more entry for the end of the last file."""
    test_mask: Mask

    @classmethod
    def from_shards(cls, shards: Sequence[ShardColumns]) -> "FileTable":
        paths = [path for shard in shards for path in shard.paths.values()]
        ranks = np.empty(len(paths), np.int32)
        ranks[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(paths), dtype=np.int32)
        chunk_counts = np.concatenate([np.diff(shard.file_ends, prepend=0) for shard in shards])
        return cls(
            np.concatenate([shard.file_lengths for shard in shards]),
            ranks,
            np.concatenate([[0], np.cumsum(chunk_counts)]).astype(np.int32),
            np.asarray([TEST_PATH_PATTERN.search(path) is not None for path in paths], np.bool_),
        )


class RankedFiles(Struct, frozen=True):
    """The best files for a question, best first."""

    numbers: NDArray[np.int64]
    scores: FileScores

    def compute_points(self, rank_weight: float, score_weight: float) -> dict[int, float]:
        """Return the points of each file: for its rank, and for its score relative to the best."""
        if not len(self.numbers):
            return {}
        ranks = np.arange(1, len(self.numbers) + 1)
        points = rank_weight / (FILE_RANK_CONSTANT + ranks) + score_weight * (self.scores / self.scores[0])
        return dict(zip(self.numbers.tolist(), points.tolist(), strict=True))

    @property
    def opened_numbers(self) -> list[int]:
        """The files whose chunks are candidates in any case."""
        numbers: list[int] = self.numbers[:MAX_OPENED_FILES].tolist()
        return numbers


class FileEvidence:
    """The words of all files of an index. Safe for several threads."""

    def __init__(self, table: FileTable, find_word: WordFinder) -> None:
        self.table = table
        self._find_word = find_word
        self._file_count = len(table.lengths)

    @classmethod
    def from_shards(cls, shards: Sequence[ShardColumns]) -> "FileEvidence":
        """Return the evidence of an index on this machine."""
        return cls(FileTable.from_shards(shards), lru_cache(maxsize=MAX_CACHED_WORDS)(_ShardWords(shards).find))

    @cached_property
    def _length_norms(self) -> FileScores:
        lengths = self.table.lengths
        share = LENGTH_SHARE * lengths / max(1.0, lengths.sum() / max(1, len(lengths)))
        norms: FileScores = (FREQUENCY_SATURATION * (1 - LENGTH_SHARE + share)).astype(np.float32)
        return norms

    @cached_property
    def _test_weights(self) -> FileScores:
        return np.where(self.table.test_mask, np.float32(TEST_FILE_WEIGHT), np.float32(1))

    def rank_files(self, stems: Iterable[str], *, demote_tests: bool) -> RankedFiles:
        """Return the best files for the stems of a question."""
        scores = np.zeros(self._file_count, np.float32)
        for stem in stems:
            files, counts = self._find_word(stem)
            frequencies = counts * np.float32(FREQUENCY_SATURATION + 1) / (counts + self._length_norms[files])
            scores[files] += self._compute_rarity(files) * frequencies
            files, _ = self._find_word(PATH_WORD_PREFIX + stem)
            scores[files] += PATH_MATCH_WEIGHT * self._compute_rarity(files)
        if demote_tests:
            scores *= self._test_weights
        scored = np.flatnonzero(scores > 0)
        if len(scored) > MAX_RANKED_FILES:
            least = np.partition(scores[scored], -MAX_RANKED_FILES)[-MAX_RANKED_FILES]
            scored = scored[scores[scored] >= least]
        best = scored[np.lexsort((self.table.path_ranks[scored], -scores[scored]))][:MAX_RANKED_FILES]
        return RankedFiles(best, scores[best])

    def measure_rarity(self, stem: str) -> float:
        """Return how rare a word is in files."""
        return float(self._compute_rarity(self._find_word(stem)[0]))

    def _compute_rarity(self, files: Ids) -> np.float32:
        return np.float32(math.log(1 + (self._file_count - len(files) + 0.5) / (len(files) + 0.5)))

    def find_files(self, positions: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the numbers of the files of chunks."""
        return np.searchsorted(self.table.first_chunks, positions, side="right") - 1

    def list_chunks(self, files: Iterable[int]) -> NDArray[np.int64]:
        """Return the positions of all chunks of some files."""
        first = self.table.first_chunks
        ranges = [np.arange(first[file], first[file + 1], dtype=np.int64) for file in files]
        return np.concatenate(ranges) if ranges else np.zeros(0, np.int64)


class _ShardWords:
    def __init__(self, shards: Sequence[ShardColumns]) -> None:
        counts = [shard.file_count for shard in shards]
        starts = [sum(counts[:number]) for number in range(len(counts))]
        columns = ((shard.get_column("word"), start) for shard, start in zip(shards, starts, strict=True))
        self._columns = [(column, np.int32(start)) for column, start in columns if column is not None]

    def find(self, word: str) -> tuple[Ids, FileScores]:
        found = [(column.find_counts(word), start) for column, start in self._columns]
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        files = np.concatenate([postings + start for (postings, _), start in found])
        return files, np.concatenate([counts for (_, counts), _ in found]).astype(np.float32)
