"""Ranking files by the words of a question, as they are now, from one pass of ripgrep and the subjects of commits."""

import math
import os
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from msgspec import Struct

from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.past_commits import PastMention, find_past_mentions
from cleats.toolsets.code.explore.path_weights import SIDE_WEIGHT, TEST_STEMS, weigh_path
from cleats.toolsets.code.index.tokens import STOP_WORDS, find_identifiers, stem_text, stem_word, tokenize_text

MAX_QUESTION_STEMS: Final = 16
"""Words of a question that count; the rarest are the most telling, but that is known only later."""

FILE_SATURATION, LENGTH_WEIGHT, MAX_RELATIVE_SIZE = 2.0, 0.6, 6.0
"""BM25's k1 and b: less weight on length than usual, since files differ widely."""

PAIR_WEIGHT, PATH_WEIGHT, FILE_NAME_WEIGHT = 0.8, 0.6, 1.0
"""What adjacent words of the question on one line, and words in the path and the name of a file, are worth beside
those in its text; docs/search-quality.md tells how the numbers were chosen."""

COVERED_NAME_WEIGHT: Final = 0.5
"""What words in the name of a file are worth besides, by the share of the name that the question has."""

SAME_NAME_SCORE: Final = 15.0
"""Score of a file whose name is an identifier of the question; 0.7 of it for several words in a row."""

SAME_FOLDER_SCORE: Final = 6.0
"""Score of a file in a folder whose name is an identifier of the question."""

IDENTIFIER_WEIGHT: Final = 1.5
"""What an identifier of the question, found whole, is worth beside its words."""

PASSAGE_WEIGHT, PASSAGE_LINES = 0.3, 12
"""What the words of the best passage of a file are worth, and its length in lines."""

COMMIT_WEIGHT: Final = 1.2
"""What an earlier commit with all words of the question is worth, in shares of the rarity of all words."""

_DEFECT_STEMS: Final = frozenset({"fix", "bug", "issu", "wrong", "incorrect", "correct", "proper", "allow", "handl"})
"""Stems of words that say that something is wrong, not where."""

MIN_TELLING_STEMS: Final = 3
"""Other stems that a question must have before those of a defect are ignored."""

MAX_NAME_WORDS: Final = 4
"""Words of a question in a row that may be the name of a file."""

MIN_NAME_CHARS: Final = 6
"""Characters of a file name that is recognized from several words."""

FileWords = Mapping[str, Sequence[tuple[int, str]]]


class FileRanking(Struct, frozen=True):
    """Files by their scores, best first, and what the scores are made of."""

    scores: dict[str, float] = {}
    stem_weights: dict[str, float] = {}
    """The rarity of each word of the question that occurs in the repository."""
    mentions: dict[str, PastMention] = {}


class Passage(NamedTuple):
    """Some lines of a file: the number of the first one, and the rarity of their words."""

    start: int
    score: float


class _Question(NamedTuple):
    """A question, as files are compared with it."""

    stems: list[str]
    pairs: set[tuple[str, str]]
    identifiers: frozenset[str]
    word_runs: frozenset[str]
    """Two and more words in a row, without the spaces."""


def extract_stems(question: str) -> list[str]:
    """Return the stems of a question that say what it is about, without duplicates."""
    words = [word for word in tokenize_text(question) if len(word) > 1]
    stems = list(dict.fromkeys(stem_word(word) for word in words if word not in STOP_WORDS))
    telling = [stem for stem in stems if stem not in _DEFECT_STEMS]
    chosen = telling if len(telling) >= MIN_TELLING_STEMS else stems
    return (chosen or list(dict.fromkeys(map(stem_word, words))))[:MAX_QUESTION_STEMS]


def rank_files(root: Path, text: str, globs: Sequence[str] = ()) -> FileRanking:
    """Rank the files that have words of a question, as they are now."""
    question = _read_question(text)
    if not question.stems:
        return FileRanking()
    # A stem in -i is that of words in -y and -ies.
    parts = {stem[:-1] if len(stem) > 3 and stem.endswith("i") else stem for stem in question.stems}
    found = ripgrep.find_words(root, sorted(parts), globs)
    is_about_tests = not TEST_STEMS.isdisjoint(question.stems)
    path_weights = {path: weigh_path(path, is_about_tests=is_about_tests) for path in found}
    mentions = find_past_mentions(root, question.stems, lambda path: path_weights.get(path, 0.0) >= SIDE_WEIGHT)
    word_scores, weights = _score_words(root, found, question)
    commit_weight = COMMIT_WEIGHT * sum(weights.values())
    scores = {}
    for path, score in word_scores.items():
        past_score = commit_weight * mentions[path].score if path in mentions else 0.0
        scores[path] = path_weights[path] * (score + past_score)
    ranked = sorted(scores, key=lambda path: (-scores[path], path))
    return FileRanking({path: scores[path] for path in ranked}, weights, mentions)


def _read_question(text: str) -> _Question:
    stems = extract_stems(text)
    words = tokenize_text(text)
    runs = (
        "".join(words[start : start + count]) for start in range(len(words)) for count in range(2, MAX_NAME_WORDS + 1)
    )
    known = set(stems)
    pairs = {(one, other) for one, other in pairwise(stem_text(text).split()) if one != other and {one, other} <= known}
    return _Question(stems, pairs, frozenset(find_identifiers(text)), frozenset(runs))


def _score_words(root: Path, found: FileWords, question: _Question) -> tuple[dict[str, float], dict[str, float]]:
    """Return the score of each file by its words, and the rarity of each stem."""
    wanted = frozenset(question.stems)
    lines = {path: _read_stems(words, wanted) for path, words in found.items()}
    counts = {path: Counter(stem for _, line in by_line for stem in line) for path, by_line in lines.items()}
    pairs = {
        path: Counter(pair for _, line in by_line for pair in pairwise(line) if pair in question.pairs)
        for path, by_line in lines.items()
    }
    identifiers = {
        path: question.identifiers.intersection(word.replace("_", "").lower() for word in {word for _, word in words})
        if question.identifiers
        else frozenset()
        for path, words in found.items()
    }
    total = max(len(counts) * 2, 100)
    weights, pair_weights, identifier_weights = (
        _weigh_rarity(item, total) for item in (counts.values(), pairs.values(), identifiers.values())
    )
    sizes = {path: get_file_size(root / path) for path in counts}
    average = sum(sizes.values()) / max(1, len(sizes)) or 1.0
    scores: dict[str, float] = {}
    for path, counted in counts.items():
        relative_size = min(MAX_RELATIVE_SIZE, sizes[path] / average)
        norm = FILE_SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative_size)
        score = sum(weights[stem] * saturate(count, norm, FILE_SATURATION) for stem, count in counted.items())
        score += PAIR_WEIGHT * sum(pair_weights[pair] * math.log1p(count) for pair, count in pairs[path].items())
        score += IDENTIFIER_WEIGHT * sum(identifier_weights[identifier] for identifier in identifiers[path])
        score += PASSAGE_WEIGHT * find_best_passage(lines[path], weights).score
        scores[path] = score + _score_path(path, question, weights)
    return scores, weights


def _read_stems(words: Sequence[tuple[int, str]], wanted: frozenset[str]) -> list[tuple[int, list[str]]]:
    """Return the wanted stems of each line of a file that has any."""
    lines = []
    for number, line in groupby(words, key=lambda item: item[0]):
        if stems := [stem for _, word in line for stem in stem_text(word).split() if stem in wanted]:
            lines.append((number, stems))
    return lines


def _score_path(path: str, question: _Question, weights: Mapping[str, float]) -> float:
    place = PurePosixPath(path)
    folder_stems = set(stem_text(str(place.parent)).split())
    name_stems = set(stem_text(place.stem).split())
    name_score = sum(weights.get(stem, 0.0) for stem in name_stems)
    covered = sum(stem in weights for stem in name_stems) / max(1, len(name_stems))
    score = PATH_WEIGHT * sum(weights.get(stem, 0.0) for stem in folder_stems)
    score += (FILE_NAME_WEIGHT + COVERED_NAME_WEIGHT * covered) * name_score
    score += SAME_FOLDER_SCORE * any(_normalize_name(folder) in question.identifiers for folder in place.parts[:-1])
    # A file such as `BaseItemRepository.ByName.cs` has two names.
    names = {_normalize_name(name) for name in (place.stem, place.stem.rpartition(".")[2])}
    if names & question.identifiers:
        score += SAME_NAME_SCORE
    elif any(len(name) >= MIN_NAME_CHARS and name in question.word_runs for name in names):
        score += 0.7 * SAME_NAME_SCORE
    return score


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_best_passage(lines: Iterable[tuple[int, Collection[str]]], weights: Mapping[str, float]) -> Passage:
    """Return the passage with the rarest different stems, from the stems of each line."""
    passage: deque[tuple[int, Collection[str]]] = deque()
    counted: Counter[str] = Counter()
    score, best = 0.0, Passage(0, 0.0)
    for number, stems in lines:
        passage.append((number, stems))
        for stem in stems:
            counted[stem] += 1
            score += weights[stem] if counted[stem] == 1 else 0.0
        while passage[0][0] < number - PASSAGE_LINES:
            for stem in passage.popleft()[1]:
                counted[stem] -= 1
                score -= weights[stem] if counted[stem] == 0 else 0.0
        if score > best.score:
            best = Passage(passage[0][0], score)
    return best


def _weigh_rarity(counts: Iterable[Iterable[Any]], total: int) -> dict[Any, float]:
    frequencies = Counter(key for counted in counts for key in counted)
    return {key: inverse_frequency(frequency, total) for key, frequency in frequencies.items()}


def inverse_frequency(frequency: int, total: int) -> float:
    """Return the rarity of a word that some of all texts have, as BM25 counts it."""
    return math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5))


def saturate(count: float, norm: float, saturation: float) -> float:
    """Return what a number of occurrences is worth: each more is worth less."""
    return count * (saturation + 1) / (count + norm)


def get_file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it is gone."""
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0
