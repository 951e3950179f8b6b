"""Plain ways to find files: BM25 over whole files, counts of ripgrep, zoekt, and lists fused by rank."""

import math
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import fix_commits
from cleats.toolsets.code.index import tokens

K1, B = 1.2, 0.75
"""The usual constants of BM25."""

FUSION_CONSTANT: Final = 60
"""The usual constant of reciprocal rank fusion."""

MAX_GREP_WORDS: Final = 8


class ZoektPrograms(NamedTuple):
    """The paths of zoekt's programs."""

    indexer: str
    searcher: str


def find_zoekt() -> ZoektPrograms | None:
    """Return zoekt's programs; None if they are not installed."""
    indexer, searcher = shutil.which("zoekt-index"), shutil.which("zoekt")
    return ZoektPrograms(indexer, searcher) if indexer and searcher else None


def iterate_source_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the source files that git knows, without tests."""
    yield from filter(fix_commits.is_source_path, fix_commits.run_git(folder, "ls-files").splitlines())


class FileWords:
    """The words of every source file of a folder and of its path, ranked by BM25."""

    def __init__(self, folder: Path) -> None:
        self._frequencies: dict[str, Counter[str]] = {}
        for path in iterate_source_files(folder):
            text = (folder / path).read_text(encoding="utf-8", errors="replace") if (folder / path).is_file() else ""
            self._frequencies[path] = Counter(_split_words(f"{path} {text}"))
        self._lengths = {path: counts.total() for path, counts in self._frequencies.items()}
        self._document_frequencies = Counter(word for counts in self._frequencies.values() for word in counts)
        self._mean_length = sum(self._lengths.values()) / max(1, len(self._lengths))

    def rank(self, question: str) -> list[str]:
        """Return the files that have any word of a question, best first."""
        scores: dict[str, float] = defaultdict(float)
        for word in dict.fromkeys(_split_words(question)):
            document_frequency = self._document_frequencies[word]
            rarity = math.log(1 + (len(self._lengths) - document_frequency + 0.5) / (document_frequency + 0.5))
            for path, counts in self._frequencies.items():
                if frequency := counts[word]:
                    norm = K1 * (1 - B + B * self._lengths[path] / self._mean_length)
                    scores[path] += rarity * frequency * (K1 + 1) / (frequency + norm)
        return sorted(scores, key=lambda path: (-scores[path], path))


def rank_by_grep(ripgrep: str, folder: Path, question: str) -> list[str]:
    """Rank files as somebody with ripgrep would: most distinct words first, then most lines."""
    words = [word for word in dict.fromkeys(re.findall(r"\w{3,}", question)) if word.lower() not in tokens.STOP_WORDS]
    found: dict[str, list[int]] = defaultdict(list)
    for word in sorted(words, key=len, reverse=True)[:MAX_GREP_WORDS]:
        command = [ripgrep, "--count", "--ignore-case", "--fixed-strings", "--no-messages", word, "."]
        for row in subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.splitlines():
            path, _, count = row.removeprefix("./").rpartition(":")
            if fix_commits.is_source_path(path):
                found[path].append(int(count))
    return sorted(found, key=lambda path: (-len(found[path]), -sum(found[path]), path))


class ZoektIndex:
    """The files of a folder, indexed and ranked by zoekt with its default scores."""

    def __init__(self, programs: ZoektPrograms, folder: Path, index: Path) -> None:
        self._programs, self._index = programs, index
        index.mkdir(parents=True, exist_ok=True)
        command = [programs.indexer, "-index", str(index), str(folder)]
        subprocess.run(command, check=True, capture_output=True)

    def rank(self, question: str) -> list[str]:
        """Return the source files that have any word of a question, best first."""
        words = dict.fromkeys(word.lower() for word in re.findall(r"\w{3,}", question))
        alternatives = " or ".join(word for word in words if word not in tokens.STOP_WORDS)
        command = [self._programs.searcher, "-l", "-index_dir", str(self._index), f"case:no ({alternatives})"]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [path for path in found if fix_commits.is_source_path(path)]


def fuse_ranks(*lists: Sequence[str]) -> list[str]:
    """Fuse lists of files by reciprocal rank."""
    scores: dict[str, float] = defaultdict(float)
    for paths in lists:
        for rank, path in enumerate(paths, 1):
            scores[path] += 1 / (FUSION_CONSTANT + rank)
    return sorted(scores, key=lambda path: -scores[path])


def _split_words(text: str) -> list[str]:
    return [tokens.stem_word(word) for word in tokens.tokenize_text(text) if word not in tokens.STOP_WORDS]
