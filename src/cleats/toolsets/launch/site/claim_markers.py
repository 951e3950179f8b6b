"""Claims on a page: markers that tie a statement to its claims, and one list of evidence at the end.

A marker is a comment at the end of the statement's line: `<!-- claims: 3fa9c1d2 8b01ffe2 -->`. The
list is the last block of the page, a comment as well: the commit, then a line for each claim with
the lines of the repository that prove it, and a line for each program of the page that ran at this
commit: `ran README.md:12-20`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.source.text.code_blocks import normalize_code

_MARKER_PATTERN = re.compile(r"[ \t]*<!--\s*claims:((?:\s+[A-Za-z0-9_.:-]+)+)\s*-->")
_LIST_PATTERN = re.compile(
    r"^<!-- evidence\b[ \t]*(?P<commit>\S*)[ \t]*\n(?P<entries>(?:(?!-->).*\n)*)-->[ \t]*$", re.MULTILINE
)
_LINE_PREFIX_PATTERN = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?")

_RAN_WORD = "ran"
"""The first word of an entry about a program; no claim has it as its id."""

MAX_LISTED_CITATIONS = 4
"""Places that the list names for a claim, the best first; the evidence map has all of them."""


@dataclass(frozen=True, slots=True)
class ClaimMarker:
    """A claim that a line names, and the statement on this line."""

    claim_id: str
    line: int
    statement: str


@dataclass(frozen=True, slots=True)
class EvidenceList:
    """The evidence that a page lists. `line` is 0 for a page without a list."""

    commit: str = ""
    places_by_claim: Mapping[str, str] = field(default_factory=dict)
    program_places: tuple[str, ...] = ()
    """The places of the programs that ran."""
    line: int = 0
    end: int = 0


def render_claim_marker(claim_ids: Iterable[str]) -> str:
    """Return the marker that ties the preceding statement to its claims."""
    return f"<!-- claims: {' '.join(dict.fromkeys(claim_ids))} -->"


def find_claim_ids(line: str) -> tuple[str, ...]:
    """Return the ids of the claims that a line names."""
    return tuple(claim_id for ids in _MARKER_PATTERN.findall(line) for claim_id in ids.split())


def strip_claim_markers(line: str) -> str:
    """Return a line without its markers."""
    return _MARKER_PATTERN.sub("", line)


def list_claim_markers(body: str, first_line: int = 1) -> list[ClaimMarker]:
    """List the claims that the lines outside code name, each with the statement on its line."""
    if "<!--" not in body:
        return []
    code_line_numbers = pages.find_code_lines(body)
    markers: list[ClaimMarker] = []
    for number, line in enumerate(body.split("\n"), start=1):
        claim_ids = find_claim_ids(line) if number not in code_line_numbers else ()
        statement = _LINE_PREFIX_PATTERN.sub("", strip_claim_markers(line)).strip() if claim_ids else ""
        markers.extend(ClaimMarker(claim_id, first_line + number - 1, statement) for claim_id in claim_ids)
    return markers


def parse_evidence_list(body: str, first_line: int = 1) -> EvidenceList:
    """Return the list of evidence of a page."""
    match = _LIST_PATTERN.search(body)
    if match is None:
        return EvidenceList()
    entries = [line.strip().partition(" ") for line in match["entries"].split("\n") if line.strip()]
    line = first_line + body.count("\n", 0, match.start())
    return EvidenceList(
        match["commit"],
        {claim_id: places.strip() for claim_id, _, places in entries if claim_id != _RAN_WORD},
        tuple(place.strip() for word, _, place in entries if word == _RAN_WORD),
        line,
        line + match[0].count("\n"),
    )


def strip_evidence_list(text: str) -> str:
    """Return a page without its list of evidence."""
    match = _LIST_PATTERN.search(text)
    if match is None:
        return text
    following = text[match.end() :].lstrip("\n")  # a person may have added something below the list
    return f"{text[: match.start()].rstrip()}\n{following}"


def format_places(claim: Mapping[str, Any]) -> str:
    """Return the places that prove a claim, as the list names them."""
    places = dict.fromkeys(_format_place(citation) for citation in claim["citations"])
    return " ".join(list(places)[:MAX_LISTED_CITATIONS])


def _format_place(citation: Mapping[str, Any]) -> str:
    place = f"{quote(citation['path'], safe='/@+()[],~!&=')}:{citation['start_line']}"
    return place if citation["end_line"] == citation["start_line"] else f"{place}-{citation['end_line']}"


def index_passed_programs(catalogue: Mapping[str, Any]) -> dict[str, str]:
    """Return the places of the programs of a snippet catalogue that ran without an error, by their code."""
    passed = (entry for entry in catalogue.get("snippets", ()) if entry["validation"]["runnable_ok"] is True)
    return {normalize_code(entry["code"]): _format_place(entry["source"]) for entry in passed}


def list_program_places(body: str, programs: Mapping[str, str]) -> list[str]:
    """Return the places of the programs that a page shows."""
    codes = [normalize_code(block.code) for block in pages.list_code_blocks(body)] if programs else []
    return sorted({programs[code] for code in codes if code in programs})


def render_evidence_list(
    claim_ids: Iterable[str],
    claims: Mapping[str, Mapping[str, Any]],
    commit: str,
    program_places: Iterable[str] = (),
) -> str:
    """Render the list of evidence of a page; "" for a page without known claims and programs."""
    entries = [
        f"{claim_id} {format_places(claims[claim_id])}" for claim_id in sorted(set(claim_ids)) if claim_id in claims
    ]
    entries += [f"{_RAN_WORD} {place}" for place in program_places]
    return "\n".join([f"<!-- evidence {commit}", *entries, "-->", ""]) if entries else ""


def refresh_evidence_list(
    text: str,
    claims: Mapping[str, Mapping[str, Any]],
    commit: str,
    programs: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a page whose list of evidence names exactly the claims of its markers and the programs that it shows."""
    stripped = strip_evidence_list(text)
    claim_ids = (marker.claim_id for marker in list_claim_markers(stripped))
    evidence_list = render_evidence_list(claim_ids, claims, commit, list_program_places(stripped, programs))
    return f"{stripped.rstrip()}\n\n{evidence_list}" if evidence_list else stripped
