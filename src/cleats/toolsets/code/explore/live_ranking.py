"""Ranking without an index: files by their words, then the declarations of the best files."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.declarations import UNNAMED_KINDS, FileDeclarations
from cleats.toolsets.code.index.tokens import STOP_WORDS, stem_text, stem_word, tokenize_text
from cleats.toolsets.code.search.fusion import KIND_WEIGHTS, TEST_PATH_PATTERN, is_duplicate_path

MAX_CANDIDATE_FILES: Final = 12
"""Files that are parsed for one question: some 15 ms of CPU each."""

MAX_QUESTION_STEMS: Final = 16
"""Words of a question that count; the rarest are the most telling, but that is known only later."""

FILE_SATURATION, SATURATION, LENGTH_WEIGHT, MAX_RELATIVE_SIZE = 2.0, 1.2, 0.6, 6.0
"""BM25's k1 for files and for declarations, and b: less weight on length than usual, since files differ widely."""

PAIR_WEIGHT, PATH_WEIGHT, FILE_NAME_WEIGHT = 0.8, 0.6, 1.0
"""What adjacent words of the question on one line, and words in the path and the name of a file, are worth beside
those in its text; docs/search-quality.md tells how the numbers were chosen."""

NAME_WEIGHT, SIGNATURE_WEIGHT = 6, 2
"""Occurrences in a text that one in the name or the signature of a declaration is worth."""

TEST_WEIGHT, NON_CODE_WEIGHT, SIDE_WEIGHT, DUPLICATE_WEIGHT = 0.4, 0.35, 0.5, 0.2
"""Factors for tests, unless the question is about them; for documents and data; for code beside the product,
such as examples, generated code and migrations; and for build output and vendored code."""

_TEST_STEMS: Final = frozenset({"test", "fixtur", "mock", "spec"})

_DEFECT_STEMS: Final = frozenset({"fix", "bug", "issu", "wrong", "incorrect", "correct", "proper", "allow", "handl"})
"""Stems of words that say that something is wrong, not where."""

MIN_TELLING_STEMS: Final = 3
"""Other stems that a question must have before those of a defect are ignored."""

_NON_CODE_PATTERN: Final = re.compile(
    r"(?i)\.(?:mdx?|rst|txt|adoc|json|ya?ml|toml|pot|css|scss|less|html?|xml|properties|ini|cfg|sql|arb|strings|resx"
    r"|sh|cmake|gradle|in)$|(?:^|/)[^/.]*$"
)
_SIDE_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:docs?|examples?|samples?|bench(?:marks?)?|locales?|lang|i18n|phrases|translations?|migrations?"
    r"|alterations|scripts?|generated|storybook|\.github|\.yarn)/|_pb2?\.|\.pb\.|[._](?:stories|mock)s?\.|CHANGELOG"
)
_TEST_FOLDER_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:[^/]*[-_.])?(?:tests?|specs?|e2e|fixtures?|mocks?|__mocks__)(?:[-_.][^/]*)?/"
    r"|(?:^|/)(?-i:[^/]*Tests?/|mock_|Mock)"
)


class RankedDeclaration(NamedTuple):
    """A declaration, where it is, and how well it matches."""

    score: float
    file: FileDeclarations
    chunk: Chunk


def extract_stems(question: str) -> list[str]:
    """Return the stems of a question that say what it is about, without duplicates."""
    words = [word for word in tokenize_text(question) if len(word) > 1]
    stems = list(dict.fromkeys(stem_word(word) for word in words if word not in STOP_WORDS))
    telling = [stem for stem in stems if stem not in _DEFECT_STEMS]
    chosen = telling if len(telling) >= MIN_TELLING_STEMS else stems
    return (chosen or list(dict.fromkeys(map(stem_word, words))))[:MAX_QUESTION_STEMS]


def rank_files(root: Path, question: str, globs: Sequence[str] = ()) -> list[str]:
    """Return the paths of the files that have words of a question, as they are now, best first."""
    stems = extract_stems(question)
    if not stems:
        return []
    # A stem in -i is that of words in -y and -ies.
    parts = {stem[:-1] if len(stem) > 3 and stem.endswith("i") else stem for stem in stems}
    found = ripgrep.find_words(root, sorted(parts), globs)
    lines = {path: _read_stems(words, frozenset(stems)) for path, words in found.items()}
    counts = {path: Counter(stem for line in by_line for stem in line) for path, by_line in lines.items()}
    question_stems = stem_text(question).split()
    asked_pairs = {pair for pair in pairwise(question_stems) if pair[0] != pair[1]}.intersection(
        (first, second) for first in stems for second in stems
    )
    pairs = {
        path: Counter(pair for line in by_line for pair in pairwise(line) if pair in asked_pairs)
        for path, by_line in lines.items()
    }
    total = max(len(counts) * 2, 100)
    weights = _weigh_rarity(counts.values(), total)
    pair_weights = _weigh_rarity(pairs.values(), total)
    sizes = {path: get_file_size(root / path) for path in counts}
    average = sum(sizes.values()) / max(1, len(sizes)) or 1.0
    is_about_tests = not _TEST_STEMS.isdisjoint(stems)
    scores: dict[str, float] = {}
    for path, counted in counts.items():
        relative_size = min(MAX_RELATIVE_SIZE, sizes[path] / average)
        norm = FILE_SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative_size)
        score = sum(weights[stem] * _saturate(count, norm, FILE_SATURATION) for stem, count in counted.items())
        score += PAIR_WEIGHT * sum(pair_weights[pair] * math.log1p(count) for pair, count in pairs[path].items())
        place = PurePosixPath(path)
        for weight, text in ((PATH_WEIGHT, str(place.parent)), (FILE_NAME_WEIGHT, place.stem)):
            score += weight * sum(weights.get(stem, 0.0) for stem in set(stem_text(text).split()))
        scores[path] = score * _weigh_path(path, is_about_tests=is_about_tests)
    return sorted(scores, key=lambda path: (-scores[path], path))


def _read_stems(words: Sequence[tuple[int, str]], wanted: frozenset[str]) -> list[list[str]]:
    """Return the wanted stems of each line of a file."""
    lines = groupby(words, key=lambda item: item[0])
    return [[stem for _, word in line for stem in stem_text(word).split() if stem in wanted] for _, line in lines]


def _weigh_rarity(counts: Iterable[Mapping[Any, int]], total: int) -> dict[Any, float]:
    frequencies = Counter(key for counted in counts for key in counted)
    return {key: _inverse_frequency(frequency, total) for key, frequency in frequencies.items()}


def rank_declarations(
    files: Iterable[FileDeclarations], stems: Sequence[str], accepts: Callable[[FileDeclarations, Chunk], bool]
) -> list[RankedDeclaration]:
    """Rank the declarations of files by their own words, best first."""
    entries = [
        (file, chunk, _count_stems(file, chunk, stems))
        for file in files
        for chunk in file.chunks
        if accepts(file, chunk)
    ]
    frequencies = Counter(stem for _, _, counted in entries for stem in counted)
    weights = {stem: _inverse_frequency(frequencies[stem], max(1, len(entries))) for stem in stems}
    is_about_tests = not _TEST_STEMS.isdisjoint(stems)
    average = sum(chunk.end - chunk.start for _, chunk, _ in entries) / max(1, len(entries)) or 1.0
    ranked = []
    for file, chunk, counted in entries:
        norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * min(4.0, (chunk.end - chunk.start) / average))
        score = sum(weights[stem] * _saturate(count, norm) for stem, count in counted.items())
        score *= KIND_WEIGHTS.get(chunk.kind, 1.0) * _weigh_path(file.path, is_about_tests=is_about_tests)
        if not is_about_tests and not _TEST_STEMS.isdisjoint(stem_text(chunk.name).split()):
            score *= TEST_WEIGHT
        if score > 0:
            ranked.append(RankedDeclaration(score * (0.5 + 0.5 * len(counted) / max(1, len(stems))), file, chunk))
    ranked.sort(key=lambda item: (-item.score, item.file.path, item.chunk.start))
    return ranked


def pick_lines(lines: Sequence[str], first: int, last: int, stems: Sequence[str], limit: int) -> list[int]:
    """Return the numbers of the lines that have the most words of a question, in their order."""
    wanted = set(stems)
    found = {number: wanted.intersection(stem_text(lines[number - 1]).split()) for number in range(first, last + 1)}
    rarity = Counter(stem for matched in found.values() for stem in matched)
    weights = {number: sum(1 / rarity[stem] for stem in matched) for number, matched in found.items() if matched}
    best = sorted(weights, key=lambda number: (-len(found[number]), -weights[number], number))[:limit]
    return sorted(best)


def _count_stems(file: FileDeclarations, chunk: Chunk, stems: Sequence[str]) -> dict[str, int]:
    body = _read_own_text(file, chunk)
    counted = Counter(stem_text(body).split())
    name_stems = set(stem_text(chunk.name).split())
    signature_stems = set(stem_text(chunk.signature).split())
    path_stems = set(stem_text(PurePosixPath(file.path).with_suffix("").as_posix()).split())
    total = {}
    for stem in stems:
        count = counted[stem] + NAME_WEIGHT * (stem in name_stems) + SIGNATURE_WEIGHT * (stem in signature_stems)
        if count:
            total[stem] = count + (stem in path_stems)
    return total


def _read_own_text(file: FileDeclarations, chunk: Chunk) -> str:
    data = file.text.encode()
    ranges = chunk.own or [(chunk.start, chunk.end)]
    return " ".join(data[start:end].decode(errors="replace") for start, end in ranges)


def _inverse_frequency(frequency: int, total: int) -> float:
    return math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5))


def _saturate(count: float, norm: float, saturation: float = SATURATION) -> float:
    return count * (saturation + 1) / (count + norm)


def _weigh_path(path: str, *, is_about_tests: bool) -> float:
    is_test = TEST_PATH_PATTERN.search(path) or _TEST_FOLDER_PATTERN.search(path)
    weight = TEST_WEIGHT if is_test and not is_about_tests else 1.0
    if _NON_CODE_PATTERN.search(path):
        return weight * NON_CODE_WEIGHT
    if is_duplicate_path(path):
        return weight * DUPLICATE_WEIGHT
    return weight * SIDE_WEIGHT if _SIDE_PATTERN.search(path) else weight


def get_file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def is_declaration(chunk: Chunk) -> bool:
    return chunk.kind not in UNNAMED_KINDS
