"""What a search answers: hits by mode, the same hits by file, and what was looked at."""

from collections.abc import Iterator
from datetime import UTC, datetime
from posixpath import splitext
from typing import Any, Final, Protocol

import msgspec

from cleats.toolsets.code.facts import Chunk, Mode
from cleats.toolsets.code.search import compact
from cleats.toolsets.code.search.compact import Placed
from cleats.toolsets.code.search.details import More, Row, Tells, Told
from cleats.toolsets.code.search.fusion import Fused
from cleats.toolsets.code.search.remarks import remarks
from cleats.toolsets.code.search.request import Request
from cleats.toolsets.code.search.retrieval import Found

KEYS: Final[dict[Mode, str]] = {
    "code": "code",
    "extracted-prose": "extractedProse",
    "prose": "prose",
    "records": "records",
}
"""The names of the modes in an answer, in the order in which they break ties."""

AROUND: Final = 3
"""Lines before and after a hit in a full answer that asks for no number."""

LONGEST: Final = 200
"""Lines of a hit's own text in a full answer."""

FILES: Final = 5
"""Files in a compact answer's bundles; the hits name the others."""

DIGITS: Final = 6


class Searched(Protocol):
    """What was searched, as far as it tells of its hits."""

    @property
    def details(self) -> Tells: ...


def payload(engine: Searched, found: Found) -> dict[str, Any]:
    """The answer to a search."""
    request = found.request
    with engine.details.reading() as reading:
        hits = {
            KEYS[mode]: [_hit(reading, found, each) for each in listed]
            for mode, listed in _placed(reading, found).items()
        }
    shown = {key: hits.get(key, []) for key in ("code", "prose", "extractedProse", "records")}
    return {
        "backend": found.backend,
        **shown,
        "bundles": bundles(shown, lean=lean(request.output, explain=request.explain)),
        "stats": _stats(found),
    }


def lean(output: str, *, explain: bool) -> bool:
    """Whether hits only say what and where they are."""
    return output == "compact" and not explain


def _placed(reading: Told, found: Found) -> dict[Mode, list[Placed]]:
    """The hits to show."""
    request = found.request
    placed: dict[Mode, list[Placed]] = {
        mode: [Placed(hit, reading.row(hit.path, hit.ordinal)) for hit in listed]
        for mode, listed in found.hits.items()
    }
    if request.output == "compact":
        placed = compact.folded(placed)
    beside = request.beside or request.top
    return {mode: listed if mode == "code" else listed[:beside] for mode, listed in placed.items()}


def _hit(reading: Told, found: Found, placed: Placed) -> dict[str, Any]:
    request, row, fused = found.request, placed.row, placed.hit.fused
    if lean(request.output, explain=request.explain):
        shown = compact.summary(reading, row, _score(fused))
    else:
        shown = {**_place(row), **_scores(found, fused)}
    if request.explain:
        shown["scoreBreakdown"] = _breakdown(fused)
    if request.output != "compact":
        shown |= _details(row, reading.more(row))
    return shown | _text(reading, row, request)


def _text(reading: Told, row: Row, request: Request) -> dict[str, Any]:
    if request.output != "compact":
        return _lines(row, reading.lines(row), request.context or AROUND)
    return compact.excerpt(row, reading.lines(row), request.context) if request.context else {}


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


def _lines(row: Row, lines: list[str], around: int) -> dict[str, Any]:
    first, last = row.start_line - 1, row.end_line
    shown: dict[str, Any] = {
        "preContext": lines[max(0, first - around) : first],
        "postContext": lines[last : last + around],
        "text": "\n".join(lines[first : min(last, first + LONGEST)]),
    }
    return {**shown, "truncated": True} if last - first > LONGEST else shown


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


def bundles(shown: dict[str, list[dict[str, Any]]], *, lean: bool) -> dict[str, Any]:
    """The hits of each file together, the most telling file first."""
    files: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for mode, index, hit in _listed(shown):
        short = {key: hit[key] for key in _KNOWN if key in hit}
        own = (hit["repo"], hit["file"]) if "repo" in hit else (hit["file"],)
        files.setdefault(own, []).append({"mode": mode, "index": index, **short})
    found = [_group(place, hits) for place, hits in files.items()]
    found.sort(key=lambda g: (-g["totalScore"], -g["topScore"], -g["modeCount"], g["bundleId"]))
    if lean:
        found = [{key: each[key] for key in _TOLD if key in each} for each in found[:FILES]]
    return {"schemaVersion": 1, "groups": found}


_KNOWN = ("score", "scoreType", "id", "file", "start", "end")
_TOLD = ("repo", "file", "hitCount", "topScore")


def _group(place: tuple[str, ...], hits: list[dict[str, Any]]) -> dict[str, Any]:
    order = list(KEYS.values())
    hits.sort(key=lambda h: (-h["score"], order.index(h["mode"]), h["index"]))
    modes = sorted({hit["mode"] for hit in hits}, key=order.index)
    return {
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
    if found.passing:
        stats["filters"] = [each.as_json() for each in found.passing]
    if notes := remarks(found):
        stats["notes"] = notes
    return stats
