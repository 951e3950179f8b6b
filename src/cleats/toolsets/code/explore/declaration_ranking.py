"""Ranking the declarations of the best files by their words, and picking the lines to show."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.explore.declarations import FileDeclarations
from cleats.toolsets.code.explore.file_ranking import (
    LENGTH_WEIGHT,
    PASSAGE_LINES,
    find_best_passage,
    inverse_frequency,
    saturate,
)
from cleats.toolsets.code.explore.path_weights import TEST_STEMS, TEST_WEIGHT, weigh_path
from cleats.toolsets.code.index.tokens import stem_text
from cleats.toolsets.code.search.fusion import KIND_WEIGHTS

MAX_CANDIDATE_FILES: Final = 12
"""Files that are parsed for one question: some 15 ms of CPU each."""

SATURATION: Final = 1.2
"""BM25's k1 for declarations."""

LONG_DECLARATION_LINES: Final = 60
"""Lines from which on a declaration is shown by its best passage."""

ANCHOR_SHARE, NEIGHBOUR_LINES = 4, 2
"""A quarter of the lines of an excerpt are chosen for their words; two lines before and after each give it sense."""

COMMENT_WEIGHT: Final = 0.6
"""What words in a comment say about the code, beside those in the code itself."""

NAME_WEIGHT, SIGNATURE_WEIGHT = 6, 2
"""Occurrences in a text that one in the name or the signature of a declaration is worth."""


_COMMENT_PATTERN: Final = re.compile(r"\s*(?:#(?!\w)|//|/?\*|--\s|\"\"\"|<!--)")


_WORD_PATTERN: Final = re.compile(r"\w")


class RankedDeclaration(NamedTuple):
    """A declaration, where it is, and how well it matches."""

    score: float
    file: FileDeclarations
    chunk: Chunk


def rank_declarations(
    files: Iterable[FileDeclarations], stems: Sequence[str], accepts: Callable[[FileDeclarations, Chunk], bool]
) -> list[RankedDeclaration]:
    """Rank the declarations of files by their own words, best first."""
    entries = [
        (file, chunk, _count_stems(file.path, data, chunk, stems))
        for file, data in ((file, file.text.encode()) for file in files)
        for chunk in file.chunks
        if accepts(file, chunk)
    ]
    frequencies = Counter(stem for _, _, counted in entries for stem in counted)
    weights = {stem: inverse_frequency(frequencies[stem], max(1, len(entries))) for stem in stems}
    is_about_tests = not TEST_STEMS.isdisjoint(stems)
    average = sum(chunk.end - chunk.start for _, chunk, _ in entries) / max(1, len(entries)) or 1.0
    ranked = []
    for file, chunk, counted in entries:
        norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * min(4.0, (chunk.end - chunk.start) / average))
        score = sum(weights[stem] * saturate(count, norm, SATURATION) for stem, count in counted.items())
        score *= KIND_WEIGHTS.get(chunk.kind, 1.0) * weigh_path(file.path, is_about_tests=is_about_tests)
        if not is_about_tests and not TEST_STEMS.isdisjoint(stem_text(chunk.name).split()):
            score *= TEST_WEIGHT
        if score > 0:
            ranked.append(RankedDeclaration(score * (0.5 + 0.5 * len(counted) / max(1, len(stems))), file, chunk))
    ranked.sort(key=lambda item: (-item.score, item.file.path, item.chunk.start))
    return ranked


def pick_lines(lines: Sequence[str], first: int, last: int, weights: Mapping[str, float], limit: int) -> list[int]:
    """Return the numbers of the lines with the rarest words of a question, in their order.

    Of several lines with the same words the first one is taken. Of a long declaration, they are from one passage: lines
    that are far from each other say little.
    """
    found = {
        number: frozenset(stem for stem in stem_text(lines[number - 1]).split() if stem in weights)
        for number in range(first, last + 1)
    }
    if last - first >= LONG_DECLARATION_LINES:
        start = find_best_passage(((number, stems) for number, stems in found.items() if stems), weights).start
        found = {number: stems for number, stems in found.items() if start <= number <= start + PASSAGE_LINES}
    picked: list[int] = []
    shown: set[str] = set()
    while len(picked) < limit:
        gains = {
            number: sum(weights[stem] * (1.0 if stem not in shown else 0.2) for stem in matched)
            * (COMMENT_WEIGHT if _COMMENT_PATTERN.match(lines[number - 1]) else 1.0)
            for number, matched in found.items()
            if matched and number not in picked
        }
        best = min(gains, key=lambda number: (-gains[number], number), default=None)
        if best is None:
            break
        picked.append(best)
        shown |= found[best]
    return sorted(picked)


def pick_excerpt(lines: Sequence[str], first: int, last: int, weights: Mapping[str, float], limit: int) -> list[int]:
    """Return the numbers of up to `limit` lines: those that `pick_lines` picks, with the code around them."""
    written = [number for number in range(first, last + 1) if _WORD_PATTERN.search(lines[number - 1])]
    if len(written) > limit:
        code = [number for number in written if not _COMMENT_PATTERN.match(lines[number - 1])]
        first, written = (code[0], code) if code else (first, written)
    if len(written) <= limit:
        return written
    places = {number: place for place, number in enumerate(written)}
    picked = pick_lines(lines, first, last, weights, max(1, limit // ANCHOR_SHARE))
    anchors = [places[number] for number in picked if number in places] or [0]
    shown = set(anchors)
    for distance in range(1, limit):
        for anchor in anchors:
            for place in (anchor + distance, anchor - distance):
                if len(shown) < limit and 0 <= place < len(written) and (distance <= NEIGHBOUR_LINES or place > anchor):
                    shown.add(place)
    return [written[place] for place in sorted(shown)]


def _count_stems(path: str, data: bytes, chunk: Chunk, stems: Sequence[str]) -> dict[str, int]:
    counted = Counter(stem_text(_read_own_text(data, chunk)).split())
    name_stems = set(stem_text(chunk.name).split())
    signature_stems = set(stem_text(chunk.signature).split())
    path_stems = set(stem_text(PurePosixPath(path).with_suffix("").as_posix()).split())
    total = {}
    for stem in stems:
        count = counted[stem] + NAME_WEIGHT * (stem in name_stems) + SIGNATURE_WEIGHT * (stem in signature_stems)
        if count:
            total[stem] = count + (stem in path_stems)
    return total


def _read_own_text(data: bytes, chunk: Chunk) -> str:
    ranges = chunk.own or [(chunk.start, chunk.end)]
    return " ".join(data[start:end].decode(errors="replace") for start, end in ranges)
