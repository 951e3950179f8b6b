"""Hits of the search tool as a page shows them: the lines that matter, why they were found, and flows of risk."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cleats.console.highlighting import CodeLine, highlight_lines

MAX_SHOWN_LINES: Final = 12
"""The lines that are shown of one hit: enough to judge it, and ten hits fit a few screens."""

MAX_LEXED_LINES: Final = 60
"""The lines before the shown ones that are read for their colours. Later ones are coloured by themselves."""

MIN_STEM_CHARS: Final = 4
"""The length down to which the ending of a word is ignored when lines are marked."""

RESULT_LISTS: Final = ("code", "prose", "extractedProse", "records")
"""The lists of hits in an answer."""

EXCERPT_KIND: Final = "lines"
"""The kind of lines that no declaration or section holds; their name only repeats that of the file."""

SCORE_PART_LABELS: Final = {
    "stems": "words",
    "exact": "exact words",
    "meaning": "meaning",
    "body": "body",
    "name": "name",
}

_WORD_PATTERN: Final = re.compile(r"(?<![\w-])-?\w+")
_OPERATORS: Final = frozenset({"and", "or", "not"})
_COMMON_WORDS: Final = frozenset(
    ("the", "and", "for", "are", "was", "with", "that", "this", "from", "how", "what", "where", "when", "which", "who")
)
"""Words of a question that say nothing about a line."""

MIN_TERM_CHARS: Final = 3
"""The length of a word below which it is part of too many others to mark a line."""

_WORD_ENDINGS: Final = ("ing", "ies", "es", "ed", "s")


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One reason why a hit was found."""

    label: str
    points: float
    share: int
    """Its share of the score in percent."""
    rank: int | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One hit."""

    repository: str
    file: str
    start_line: int
    end_line: int
    kind: str
    name: str
    language: str
    headline: str
    segments: Sequence[Sequence[CodeLine]]
    matched_line: int
    hidden_lines: int
    score: float
    score_parts: Sequence[ScorePart]
    flows: Sequence[Mapping[str, Any]]
    severity: str
    facts: Sequence[tuple[str, str]]


def list_terms(words: str) -> list[str]:
    """Return the words of a query that mark a line, without their endings and in lower case."""
    terms = []
    for match in _WORD_PATTERN.finditer(words):
        word = match[0].lower()
        if word.startswith("-") or word in _OPERATORS:
            continue
        for ending in _WORD_ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
                word = word.removesuffix(ending)
                break
        terms.append(word)
    telling = [term for term in terms if len(term) >= MIN_TERM_CHARS and term not in _COMMON_WORDS]
    return list(dict.fromkeys(telling or terms))


def collect_hits(answer: Mapping[str, Any], words: str, repository: str) -> list[SearchHit]:
    """Return the hits of an answer, best first. A comment inside a hit that is shown anyway is left out."""
    terms = list_terms(words)
    ranked: list[Mapping[str, Any]] = [hit for name in RESULT_LISTS for hit in answer.get(name) or ()]
    ranked.sort(key=lambda hit: -(hit.get("score") or 0.0))
    shown_lines: dict[str, list[tuple[int, int]]] = {}
    hits = []
    for hit in ranked:
        ranges = shown_lines.setdefault(hit["file"], [])
        if any(start <= hit["startLine"] and hit["endLine"] <= end for start, end in ranges):
            continue
        ranges.append((hit["startLine"], hit["endLine"]))
        hits.append(make_hit(hit, terms, repository))
    return hits


def make_hit(hit: Mapping[str, Any], terms: Sequence[str], repository: str) -> SearchHit:
    """Return one hit as a page shows it."""
    lines = hit.get("text", "").split("\n")
    first_line = hit["startLine"]
    matched = [number for number, line in enumerate(lines, first_line) if any(term in line.lower() for term in terms)]
    shown = _choose_lines(len(lines), first_line, matched)
    segments = [_colour_segment(lines, first_line, segment, hit, matched) for segment in _split_segments(shown)]
    risk = hit.get("risk") or {}
    headline = hit.get("headline") or ""
    is_excerpt = hit.get("kind") == EXCERPT_KIND
    best_line = max(matched, key=lambda number: _count_terms(lines[number - first_line], terms), default=first_line)
    return SearchHit(
        repository=repository,
        file=hit["file"],
        start_line=first_line,
        end_line=hit["endLine"],
        kind="" if is_excerpt else hit.get("kind") or "",
        name="" if is_excerpt else hit.get("name") or "",
        language=hit.get("lang") or "",
        headline="" if any(headline in lines[number - first_line] for number in shown) else headline,
        segments=segments,
        matched_line=best_line,
        hidden_lines=len(lines) - len(shown),
        score=hit.get("score") or 0.0,
        score_parts=list(_list_score_parts(hit)),
        flows=risk.get("flows") or (),
        severity=risk.get("severity") or "",
        facts=list(_list_facts(hit)),
    )


def _count_terms(line: str, terms: Sequence[str]) -> int:
    return sum(term in line.lower() for term in terms)


def _choose_lines(count: int, first_line: int, matched: Sequence[int]) -> list[int]:
    """Return the lines to show: the first ones, then those around matches."""
    if count <= MAX_SHOWN_LINES:
        return list(range(first_line, first_line + count))
    chosen = {first_line, first_line + 1}
    for number in matched:
        around = {near for near in (number - 1, number, number + 1) if first_line <= near < first_line + count}
        if len(chosen | around) > MAX_SHOWN_LINES:
            break
        chosen |= around
    for number in range(first_line, first_line + count):
        if len(chosen) >= MAX_SHOWN_LINES:
            break
        chosen.add(number)
    return sorted(chosen)


def _split_segments(numbers: Sequence[int]) -> Iterator[list[int]]:
    segment: list[int] = []
    for number in numbers:
        if segment and number != segment[-1] + 1:
            yield segment
            segment = []
        segment.append(number)
    if segment:
        yield segment


def _colour_segment(
    lines: Sequence[str], first_line: int, segment: Sequence[int], hit: Mapping[str, Any], matched: Collection[int]
) -> list[CodeLine]:
    begin, end = segment[0] - first_line, segment[-1] - first_line + 1
    # A lexer that begins inside a text or a comment takes it for code, so it begins earlier if that is cheap.
    lexed_from = 0 if end <= MAX_LEXED_LINES else begin
    coloured = highlight_lines(
        "\n".join(lines[lexed_from:end]),
        language=hit.get("lang") or "",
        path=hit["file"],
        first_line=first_line + lexed_from,
        marked_lines=matched,
    )
    return coloured[begin - lexed_from :]


def _list_score_parts(hit: Mapping[str, Any]) -> Iterator[ScorePart]:
    parts = (hit.get("scoreBreakdown") or {}).get("parts") or []
    total = sum(part.get("points") or 0.0 for part in parts) or 1.0
    for part in parts:
        if points := part.get("points") or 0.0:
            label = SCORE_PART_LABELS.get(part["name"], part["name"])
            yield ScorePart(label, points, round(100 * points / total), part.get("rank"))


def _list_facts(hit: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    details = hit.get("docmeta") or {}
    if signature := details.get("signature"):
        yield "Signature", signature
    for label, name in (("Calls", "calls"), ("Decorators", "decorators"), ("Reads", "reads"), ("Writes", "writes")):
        if values := details.get(name):
            yield label, ", ".join(map(str, values[:8])) + (", …" if len(values) > 8 else "")
    if author := hit.get("lastAuthor"):
        yield "Last author", author
    if modified := hit.get("lastModified"):
        yield "Last change", modified[:10]
    if churn := hit.get("churn"):
        yield "Changed lines", f"{churn:,}"
