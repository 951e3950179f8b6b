"""Claims on a page: markers that tie a statement to its claims, and one list of evidence at the end.

A marker is a comment at the end of the statement's line: `<!-- claims: 3fa9c1d2 8b01ffe2 -->`. The
list is the last block of the page, a comment as well: the commit, then a line for each claim with
the lines of the repository that prove it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from cleats.toolsets.launch.site import pages

_MARKER_PATTERN = re.compile(r"[ \t]*<!--\s*claims:((?:\s+[A-Za-z0-9_.:-]+)+)\s*-->")
_LIST_PATTERN = re.compile(
    r"^<!-- evidence\b[ \t]*(?P<commit>\S*)[ \t]*\n(?P<entries>(?:(?!-->).*\n)*)-->[ \t]*$", re.MULTILINE
)
_LINE_PREFIX_PATTERN = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?")

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
    entries = (line.strip().partition(" ") for line in match["entries"].split("\n") if line.strip())
    line = first_line + body.count("\n", 0, match.start())
    return EvidenceList(
        match["commit"],
        {claim_id: places.strip() for claim_id, _, places in entries},
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
    places = (
        f"{quote(citation['path'], safe='/@+()[],~!&=')}:{citation['start_line']}"
        + (f"-{citation['end_line']}" if citation["end_line"] != citation["start_line"] else "")
        for citation in claim["citations"]
    )
    return " ".join(list(dict.fromkeys(places))[:MAX_LISTED_CITATIONS])


def render_evidence_list(claim_ids: Iterable[str], claims: Mapping[str, Mapping[str, Any]], commit: str) -> str:
    """Render the list of evidence of a page; "" for a page without known claims."""
    entries = [
        f"{claim_id} {format_places(claims[claim_id])}" for claim_id in sorted(set(claim_ids)) if claim_id in claims
    ]
    return "\n".join([f"<!-- evidence {commit}", *entries, "-->", ""]) if entries else ""


def refresh_evidence_list(text: str, claims: Mapping[str, Mapping[str, Any]], commit: str) -> str:
    """Return a page whose list of evidence names exactly the claims of its markers."""
    stripped = strip_evidence_list(text)
    claim_ids = (marker.claim_id for marker in list_claim_markers(stripped))
    evidence_list = render_evidence_list(claim_ids, claims, commit)
    return f"{stripped.rstrip()}\n\n{evidence_list}" if evidence_list else stripped
