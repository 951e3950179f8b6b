"""A compact hit: what an agent needs to choose what to read next, and nothing else."""

from collections.abc import Iterator, Mapping
from posixpath import splitext
from typing import Any, Final, NamedTuple

from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.search.details import Row, Told
from cleats.toolsets.code.search.retrieval import Hit

DIGITS: Final = 4
SIGNATURE: Final = 160
"""Characters of a signature."""

SAID: Final = 80
"""Characters of what a document or a comment says; the next question is whether to read it."""

OWN: Final = 40
"""Lines of a hit that come with its surroundings."""


class Placed(NamedTuple):
    """A hit and what the catalogue has in its place."""

    hit: Hit
    row: Row


def folded(placed: Mapping[Mode, list[Placed]]) -> dict[Mode, list[Placed]]:
    """The hits without the comments and docstrings of code that is among them."""
    owners = {(each.row.path, each.row.name) for each in placed.get("code", ())}
    return {
        mode: [each for each in listed if (each.row.path, each.row.name) not in owners]
        if mode == "extracted-prose"
        else listed
        for mode, listed in placed.items()
    }


def summary(reading: Told, row: Row, score: float) -> dict[str, Any]:
    """What a hit is, and where."""
    return {
        "file": row.path,
        "startLine": row.start_line,
        "endLine": row.end_line,
        **dict(_language(row)),
        "kind": row.kind,
        "name": row.name,
        "headline": row.headline if row.mode == "code" else _cut(row.headline, SAID),
        **dict(_signature(reading, row)),
        "score": round(score, DIGITS),
    }


def _language(row: Row) -> Iterator[tuple[str, str]]:
    if not splitext(row.path)[1]:  # else the name of the file says it
        yield "lang", row.lang


def _signature(reading: Told, row: Row) -> Iterator[tuple[str, str]]:
    signature = " ".join(reading.signature(row).split()) if row.mode == "code" else ""
    if signature and not _said(row, signature):
        yield "signature", _cut(signature, SIGNATURE)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"


def _said(row: Row, signature: str) -> bool:
    """Whether the headline is the signature, or as much of it as fits, or there is no more."""
    named = signature == f"{row.kind} {row.name}"
    return named or signature in row.headline or signature.startswith(row.headline.rstrip("…"))


def excerpt(row: Row, lines: list[str], around: int) -> dict[str, Any]:
    """The hit's own lines with so many before and after them, in one piece."""
    first, last = row.start_line - 1, row.end_line
    before = max(0, first - around)
    if last - first > OWN:
        return {"text": "\n".join(lines[before : first + OWN]), "truncated": True}
    return {"text": "\n".join(lines[before : last + around])}
