"""Ranking without an index: files by their words, then the declarations of the best files."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.declarations import UNNAMED_KINDS, DeclarationReader, FileDeclarations
from cleats.toolsets.code.index.tokens import STOP_WORDS, stem_text, stem_word, tokenize_text
from cleats.toolsets.code.search.fusion import KIND_WEIGHTS, TEST_PATH_PATTERN

MAX_CANDIDATE_FILES: Final = 40
"""Files that are parsed for one question: some 15 ms of CPU each."""

MAX_QUESTION_STEMS: Final = 16
"""Words of a question that count; the rarest are the most telling, but that is known only later."""

SATURATION, LENGTH_WEIGHT = 1.2, 0.6
"""BM25's k1 and b: usual values, with less weight on length since files differ widely."""

NAME_WEIGHT, PATH_WEIGHT, SIGNATURE_WEIGHT = 6, 2, 2
"""Occurrences in a text that one in the name, the path or the signature is worth."""

TEST_WEIGHT: Final = 0.5
"""Factor for tests, unless the question is about them."""

NON_CODE_WEIGHT: Final = 0.4
"""Factor for documents and data: the question is about code."""

_TEST_STEMS: Final = frozenset({"test", "fixtur", "mock", "spec"})


class RankedDeclaration(NamedTuple):
    """A declaration, where it is, and how well it matches."""

    score: float
    file: FileDeclarations
    chunk: Chunk


def extract_stems(question: str) -> list[str]:
    """Return the stems of a question that say what it is about, without duplicates."""
    words = [word for word in tokenize_text(question) if len(word) > 1]
    telling = [word for word in words if word not in STOP_WORDS] or words
    return list(dict.fromkeys(stem_word(word) for word in telling))[:MAX_QUESTION_STEMS]


def rank_files(root: Path, counts: Mapping[str, Mapping[str, int]], stems: Sequence[str], file_total: int) -> list[str]:
    """Return the paths of files by their words, best first."""
    frequencies = Counter(stem for by_stem in counts.values() for stem in by_stem)
    weights = {stem: _inverse_frequency(frequencies[stem], file_total) for stem in stems}
    is_about_tests = not _TEST_STEMS.isdisjoint(stems)
    sizes = {path: _get_size(root / path) for path in counts}
    average = sum(sizes.values()) / max(1, len(sizes)) or 1.0
    scores: dict[str, float] = {}
    for path, by_stem in counts.items():
        path_stems = set(stem_text(path).split())
        norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * sizes[path] / average)
        scores[path] = _weigh_path(path, is_about_tests=is_about_tests) * sum(
            weights[stem] * _saturate(count + PATH_WEIGHT * (stem in path_stems), norm)
            for stem, count in by_stem.items()
        )
    return sorted(scores, key=lambda path: (-scores[path], path))


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
        if score > 0:
            ranked.append(RankedDeclaration(score * (0.5 + 0.5 * len(counted) / max(1, len(stems))), file, chunk))
    ranked.sort(key=lambda item: (-item.score, item.file.path, item.chunk.start))
    return ranked


def scan_repository(
    root: Path,
    question: str,
    reader: DeclarationReader,
    accepts: Callable[[FileDeclarations, Chunk], bool],
    *,
    globs: Sequence[str] = (),
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[RankedDeclaration]:
    """Answer a question from the files as they are now: count words, then parse the best files."""
    stems = extract_stems(question)
    if not stems:
        return []
    counts = ripgrep.count_words(root, stems, globs)
    paths = rank_files(root, counts, stems, file_total=max(len(counts) * 2, 100))[:MAX_CANDIDATE_FILES]
    files = reader.read_files(root, paths, is_cancelled)
    positions = {path: position for position, path in enumerate(paths)}
    ranked = rank_declarations(files.values(), stems, accepts)
    # A file that matches as a whole lends its declarations a part of its rank.
    boosted = [item._replace(score=item.score * (1 + 1 / (2 + positions[item.file.path]))) for item in ranked]
    return sorted(boosted, key=lambda item: (-item.score, item.file.path, item.chunk.start))


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


def _saturate(count: float, norm: float) -> float:
    return count * (SATURATION + 1) / (count + norm)


def _weigh_path(path: str, *, is_about_tests: bool) -> float:
    if not is_about_tests and re.search(TEST_PATH_PATTERN, path):
        return TEST_WEIGHT
    return NON_CODE_WEIGHT if path.endswith((".md", ".rst", ".txt", ".json", ".yml", ".yaml", ".toml", ".po")) else 1.0


def _get_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def is_declaration(chunk: Chunk) -> bool:
    return chunk.kind not in UNNAMED_KINDS
