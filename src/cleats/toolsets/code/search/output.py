"""What a search answers: hits by mode, the same hits by file, and what was looked at."""

from collections.abc import Iterator
from datetime import UTC, datetime
from posixpath import splitext
from typing import Any, Final

import msgspec

from cleats.toolsets.code.facts import Chunk, Mode
from cleats.toolsets.code.search.details import More, Reading, Row
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.fusion import Fused
from cleats.toolsets.code.search.remarks import remarks
from cleats.toolsets.code.search.retrieval import Found, Hit

KEYS: Final[dict[Mode, str]] = {
    "code": "code",
    "extracted-prose": "extractedProse",
    "prose": "prose",
    "records": "records",
}
"""The names of the modes in an answer, in the order in which they break ties."""

AROUND: Final = 3
"""Lines before and after a hit in a full answer that asks for no number."""

LONGEST: Final = 400
"""Lines of a hit's own text in a full answer."""

DIGITS: Final = 6


def payload(engine: Engine, found: Found) -> dict[str, Any]:
    """The answer to a search."""
    with engine.details.reading() as reading:
        hits = {
            KEYS[mode]: [_hit(reading, found, hit) for hit in listed]
            for mode, listed in found.hits.items()
        }
    shown = {key: hits.get(key, []) for key in ("code", "prose", "extractedProse", "records")}
    return {
        "backend": found.backend,
        **shown,
        "bundles": {"schemaVersion": 1, "groups": groups(shown)},
        "stats": _stats(found),
    }


def _hit(reading: Reading, found: Found, hit: Hit) -> dict[str, Any]:
    row = reading.row(hit.path, hit.ordinal)
    request = found.request
    full = request.output != "compact"
    shown = {**_place(row), **_scores(found, hit.fused)}
    if request.explain:
        shown["scoreBreakdown"] = _breakdown(hit.fused)
    if full:
        shown |= _details(row, reading.more(row))
    if around := request.context or (AROUND if full else 0):
        shown |= _lines(row, reading.lines(row), around, full=full)
    return shown


def _place(row: Row) -> dict[str, Any]:
    return {
        "id": row.key,
        "file": row.path,
        "start": row.start,
        "end": row.end,
        "startLine": row.start_line,
        "endLine": row.end_line,
        "ext": splitext(row.path)[1],
        "lang": row.lang,
        "kind": row.kind,
        "name": row.name,
        "headline": row.headline,
    }


def _scores(found: Found, fused: Fused) -> dict[str, Any]:
    words = next((name for name in fused.scores if name != "meaning"), None)
    cosine = fused.scores.get("meaning")
    return {
        "score": _score(fused),
        "scoreType": "rrf",
        "sparseScore": None if words is None else round(fused.scores[words], DIGITS),
        "sparseType": None if words is None else found.kind,
        "annScore": None if cosine is None else round(cosine, DIGITS),
        "annSource": None if cosine is None else "word-table",
        "annType": None if cosine is None else "cosine",
    }


def _score(fused: Fused) -> float:
    return round(sum(round(part, DIGITS) for part in fused.parts.values()), DIGITS)


def _breakdown(fused: Fused) -> dict[str, Any]:
    return {
        "selected": {"type": "rrf", "score": _score(fused)},
        "parts": [
            {
                "name": name,
                "points": round(points, DIGITS),
                "rank": fused.ranks.get(name),
                "score": round(fused.scores[name], DIGITS) if name in fused.scores else None,
            }
            for name, points in fused.parts.items()
        ],
    }


def _lines(row: Row, lines: list[str], around: int, *, full: bool) -> dict[str, Any]:
    first, last = row.start_line - 1, row.end_line
    shown: dict[str, Any] = {
        "preContext": lines[max(0, first - around) : first],
        "postContext": lines[last : last + around],
    }
    if shown["postContext"] and last + around >= len(lines) and not lines[-1]:
        shown["postContext"].pop()  # what follows the last line break is no line
    if full:
        shown["text"] = "\n".join(lines[first : min(last, first + LONGEST)])
        shown["textTruncated"] = last - first > LONGEST
    return shown


def _details(row: Row, more: More) -> dict[str, Any]:
    modified = more.last_modified
    return {
        "docmeta": _facts(more.chunk),
        "imports": more.relations.imports,
        "exports": more.relations.exports,
        "lastAuthor": more.last_author,
        "lastModified": None
        if modified is None
        else datetime.fromtimestamp(modified, UTC).isoformat().replace("+00:00", "Z"),
        "lastCommit": more.last_commit,
        "churn": more.churn,
        "chunkAuthors": more.authors or ([more.last_author] if more.last_author else []),
        "risk": _named(more.risk),
        "lint": [_finding(each) for each in more.lint],
        "mode": row.mode,
    }


_LEFT_OUT = frozenset({"kind", "name", "start", "end", "start_line", "end_line", "mode", "steps"})


def _facts(chunk: Chunk) -> dict[str, Any]:
    """Everything a chunk says of itself, in names of the wire; what is empty is left out."""
    facts: dict[str, Any] = msgspec.to_builtins(chunk)
    facts["types"] = [
        {"where": each.where, "name": each.name, "type": each.type, "origin": each.origin}
        for each in chunk.types
    ]
    known = {key: value for key, value in facts.items() if key not in _LEFT_OUT and value}
    return {_camel(key.removeprefix("is_")): value for key, value in known.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _named(value: Any) -> Any:
    """A value with its names as the wire has them."""
    if isinstance(value, dict):
        return {_camel(key): _named(each) for key, each in value.items()}
    return [_named(each) for each in value] if isinstance(value, list) else value


def _finding(finding: Any) -> Any:
    keys = ("line", "endLine", "code", "message", "tool")
    return dict(zip(keys, finding, strict=False)) if isinstance(finding, list) else finding


def groups(shown: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The hits of each file together, the most telling file first."""
    files: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for mode, index, hit in _listed(shown):
        short = {key: hit[key] for key in ("score", "scoreType", "id", "file", "start", "end")}
        own = (hit["repo"], hit["file"]) if "repo" in hit else (hit["file"],)
        files.setdefault(own, []).append({"mode": mode, "index": index, **short})
    order = list(KEYS.values())
    found = []
    for place, hits in files.items():
        hits.sort(key=lambda h: (-h["score"], order.index(h["mode"]), h["index"], h["id"]))
        modes = sorted({hit["mode"] for hit in hits}, key=order.index)
        found.append(
            {
                "bundleId": ":".join(("file", *place)),
                **({"repo": place[0]} if len(place) > 1 else {}),
                "file": place[-1],
                "hitCount": len(hits),
                "totalScore": round(sum(hit["score"] for hit in hits), DIGITS),
                "topScore": hits[0]["score"],
                "modeCount": len(modes),
                "modes": modes,
                "hits": hits,
            }
        )
    found.sort(key=lambda g: (-g["totalScore"], -g["topScore"], -g["modeCount"], g["bundleId"]))
    return found


def _listed(shown: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for mode, hits in shown.items():
        for index, hit in enumerate(hits):
            yield mode, index, hit


def _stats(found: Found) -> dict[str, Any]:
    stats: dict[str, Any] = {
        "chunks": found.chunks,
        "considered": {KEYS[mode]: count for mode, count in found.considered.items()},
        "query": str(found.request.query),
        "branch": found.branch,
    }
    if wanted := found.request.branch:
        stats["branchFilter"] = wanted
        stats["branchMatch"] = (found.branch or "").lower() == wanted.lower()
    if notes := remarks(found):
        stats["notes"] = notes
    return stats
