"""The answer of a search: hits by mode, the same hits by file, and statistics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from posixpath import splitext
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from cleats.toolsets.code.analysis.facts import Chunk, Mode
from cleats.toolsets.code.query.request import HitLimits, SearchRequest
from cleats.toolsets.code.search import hit_details
from cleats.toolsets.code.search.fusion import FusedHit
from cleats.toolsets.code.search.hit_details import HitDetails, HitReader, HitRow, HitSource, LocatedHit
from cleats.toolsets.code.search.notes import generate_notes
from cleats.toolsets.code.search.retrieval import SearchResult

RESULT_KEYS: Final[dict[Mode, str]] = {
    "code": "code",
    "extracted-prose": "extractedProse",
    "prose": "prose",
    "records": "records",
}
"""The names of the modes in an answer, in the order in which they break ties."""

ANSWER_KEYS: Final = ("code", "prose", "extractedProse", "records")
"""The same names in the order of an answer."""

MAX_TEXT_LINES: Final = 200
MAX_TEXT_CHARS: Final = 20_000
"""Lines and characters of a hit's own text in a full answer."""

MAX_BUNDLED_FILES: Final = 5
"""Files in the bundles of a compact answer; the hits name the others."""

SCORE_DIGITS: Final = 6


class SearchedIndex(Protocol):
    """An index that was searched, as far as rendering its hits needs it."""

    @property
    def hit_source(self) -> HitSource: ...


def render_answer(engine: SearchedIndex, result: SearchResult) -> dict[str, Any]:
    """Render the answer of a search."""
    request = result.request
    with engine.hit_source.open_reader() as reader:
        hits = {
            RESULT_KEYS[mode]: [_render_hit(reader, result, located_hit) for located_hit in mode_hits]
            for mode, mode_hits in _locate_hits(reader, result).items()
        }
    hits_by_key = {key: hits.get(key, []) for key in ANSWER_KEYS}
    return {
        "backend": result.backend,
        "stats": _render_stats(result),  # before the hits, because its notes say how to read them
        **hits_by_key,
        "bundles": render_bundles(hits_by_key, lean=is_lean(request.output, explain=request.explain)),
    }


def is_lean(output: str, *, explain: bool) -> bool:
    """Return whether hits only show their kind and location."""
    return output == "compact" and not explain


def _locate_hits(reader: HitReader, result: SearchResult) -> dict[Mode, list[LocatedHit]]:
    request = result.request
    located: dict[Mode, list[LocatedHit]] = {
        mode: [LocatedHit(hit, reader.read_row(hit.path, hit.ordinal)) for hit in mode_hits]
        for mode, mode_hits in result.hits.items()
    }
    if request.output == "compact":
        located = hit_details.drop_duplicate_prose(located)
    other_limit = request.other_top or request.top
    return {mode: mode_hits if mode == "code" else mode_hits[:other_limit] for mode, mode_hits in located.items()}


def _render_hit(reader: HitReader, result: SearchResult, located_hit: LocatedHit) -> dict[str, Any]:
    request, row, fused = result.request, located_hit.row, located_hit.hit.fused
    if is_lean(request.output, explain=request.explain):
        rendered = hit_details.summarize_hit(reader, row, _total_score(fused))
    else:
        rendered = {**_render_location(row), **_render_scores(result, fused)}
    if request.explain:
        rendered["scoreBreakdown"] = _render_breakdown(fused)
    if request.output != "compact":
        rendered |= _render_details(row, reader.read_details(row))
    return rendered | _render_text(reader, row, request)


def _render_text(reader: HitReader, row: HitRow, request: SearchRequest) -> dict[str, Any]:
    if request.output != "compact":
        return _render_lines(row, reader.read_lines(row), request.context)
    return hit_details.make_excerpt(row, reader.read_lines(row), request.context) if request.context else {}


def _render_location(row: HitRow) -> dict[str, Any]:
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


def _render_scores(result: SearchResult, fused: FusedHit) -> dict[str, Any]:
    list_name = next((name for name in fused.scores if name != "meaning"), None)
    cosine = fused.scores.get("meaning")
    return {
        "score": _total_score(fused),
        "scoreType": "rrf",
        "sparseScore": None if list_name is None else round(fused.scores[list_name], SCORE_DIGITS),
        "sparseType": None if list_name is None else result.score_kind,
        "annScore": None if cosine is None else round(cosine, SCORE_DIGITS),
        "annSource": None if cosine is None else "word-table",
        "annType": None if cosine is None else "cosine",
    }


def _total_score(fused: FusedHit) -> float:
    return round(sum(round(part, SCORE_DIGITS) for part in fused.parts.values()), SCORE_DIGITS)


def _render_breakdown(fused: FusedHit) -> dict[str, Any]:
    return {
        "selected": {"type": "rrf", "score": _total_score(fused)},
        "parts": [
            {
                "name": name,
                "points": round(points, SCORE_DIGITS),
                "rank": fused.ranks.get(name),
                "score": round(fused.scores[name], SCORE_DIGITS) if name in fused.scores else None,
            }
            for name, points in fused.parts.items()
        ],
    }


def _render_lines(row: HitRow, lines: list[str], context_lines: int) -> dict[str, Any]:
    first, last = row.start_line - 1, row.end_line
    rendered: dict[str, Any] = {
        "preContext": lines[max(0, first - context_lines) : first],
        "postContext": lines[last : last + context_lines],
    }
    text = "\n".join(lines[first : min(last, first + MAX_TEXT_LINES)])
    if last - first > MAX_TEXT_LINES or len(text) > MAX_TEXT_CHARS:
        return {**rendered, "text": text[:MAX_TEXT_CHARS], "truncated": True}
    return {**rendered, "text": text}


def _render_details(row: HitRow, details: HitDetails) -> dict[str, Any]:
    modified = details.last_modified
    return {
        "docmeta": _render_facts(details.chunk),
        "imports": details.relations.imports,
        "exports": details.relations.exports,
        "lastAuthor": details.last_author,
        "lastModified": None
        if modified is None
        else datetime.fromtimestamp(modified, UTC).isoformat().replace("+00:00", "Z"),
        "lastCommit": details.last_commit,
        "churn": details.churn,
        "chunkAuthors": details.authors or ([details.last_author] if details.last_author else []),
        "risk": _camelize_keys(details.risk),
        "lint": [_render_finding(finding) for finding in details.lint],
        "mode": row.mode,
    }


_OMITTED_FACTS = frozenset({"kind", "name", "start", "end", "start_line", "end_line", "mode", "steps"})


def _render_facts(chunk: Chunk) -> dict[str, Any]:
    """Return the facts of a chunk under their wire names; empty facts are omitted."""
    facts: dict[str, Any] = msgspec.to_builtins(chunk)
    facts["types"] = [
        {key: getattr(typed, key) for key in ("where", "name", "type", "origin")} for typed in chunk.types
    ]
    present = {key: value for key, value in facts.items() if key not in _OMITTED_FACTS and value}
    return {_to_camel_case(key.removeprefix("is_")): value for key, value in present.items()}


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _camelize_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_to_camel_case(key): _camelize_keys(item) for key, item in value.items()}
    return [_camelize_keys(item) for item in value] if isinstance(value, list) else value


def _render_finding(finding: Any) -> Any:
    keys = ("line", "endLine", "code", "message", "tool")
    return dict(zip(keys, finding, strict=False)) if isinstance(finding, list) else finding


def render_bundles(hits_by_key: dict[str, list[dict[str, Any]]], *, lean: bool) -> dict[str, Any]:
    """Group the hits by file, the file with the highest total score first."""
    files: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for mode, hits in hits_by_key.items():
        for index, hit in enumerate(hits):
            short = {key: hit[key] for key in _BUNDLED_HIT_KEYS if key in hit}
            location = (hit["repo"], hit["file"]) if "repo" in hit else (hit["file"],)
            files.setdefault(location, []).append({"mode": mode, "index": index, **short})
    groups = [_render_group(file_location, hits) for file_location, hits in files.items()]
    groups.sort(key=lambda g: (-g["totalScore"], -g["topScore"], -g["modeCount"], g["bundleId"]))
    if lean:
        groups = [{key: g[key] for key in _LEAN_GROUP_KEYS if key in g} for g in groups[:MAX_BUNDLED_FILES]]
    return {"schemaVersion": 1, "groups": groups}


_BUNDLED_HIT_KEYS = ("score", "scoreType", "id", "file", "start", "end")
_LEAN_GROUP_KEYS = ("repo", "file", "hitCount", "topScore")


def _render_group(location: tuple[str, ...], hits: list[dict[str, Any]]) -> dict[str, Any]:
    order = list(RESULT_KEYS.values())
    hits.sort(key=lambda item: (-item["score"], order.index(item["mode"]), item["index"]))
    modes = sorted({hit["mode"] for hit in hits}, key=order.index)
    return {
        "bundleId": ":".join(("file", *location)),
        **({"repo": location[0]} if len(location) > 1 else {}),
        "file": location[-1],
        "hitCount": len(hits),
        "totalScore": round(sum(hit["score"] for hit in hits), SCORE_DIGITS),
        "topScore": hits[0]["score"],
        "modeCount": len(modes),
        "modes": modes,
        "hits": hits,
    }


def _render_stats(result: SearchResult) -> dict[str, Any]:
    stats: dict[str, Any] = {
        "chunks": result.chunk_count,
        "considered": {RESULT_KEYS[mode]: count for mode, count in result.considered.items()},
        "query": str(result.request.query),
        "branch": result.branch,
    }
    if branch := result.request.branch:
        stats["branchFilter"] = branch
        stats["branchMatch"] = (result.branch or "").lower() == branch.lower()
    if result.filter_effects:
        stats["filters"] = [effect.as_json() for effect in result.filter_effects]
    if notes := [{"code": code, "message": message} for code, message in generate_notes(result)]:
        stats["notes"] = notes
    return stats


class RepositoryAnswer(NamedTuple):
    """The answer of one repository."""

    alias: str
    repo_id: str
    answer: Mapping[str, Any]

    @property
    def stats(self) -> Any:
        return self.answer["stats"]


def merge_answers(answers: Sequence[RepositoryAnswer], limits: HitLimits, *, lean: bool) -> dict[str, Any]:
    """Merge the best hits of all repositories, each with the name of its repository."""
    hits = {mode: _select_best(answers, mode, limits.code if mode == "code" else limits.other) for mode in ANSWER_KEYS}
    return {
        "backend": answers[0].answer["backend"],
        "stats": _merge_stats(answers),
        **hits,
        "bundles": render_bundles(hits, lean=lean),
    }


def _select_exact(answers: Sequence[RepositoryAnswer]) -> list[RepositoryAnswer]:
    """Return the answers that contain the phrases of the question, or all if none does."""

    def is_loosened(answer: RepositoryAnswer) -> bool:
        return any(note["code"] == "phrase_not_found" for note in answer.stats.get("notes", []))

    return [answer for answer in answers if not is_loosened(answer)] or list(answers)


def _select_best(answers: Sequence[RepositoryAnswer], mode: str, top: int) -> list[dict[str, Any]]:
    hits = [{**hit, "repo": answer.alias} for answer in _select_exact(answers) for hit in answer.answer[mode]]
    return sorted(hits, key=lambda hit: -hit["score"])[:top]


def _find_common_notes(answers: Sequence[RepositoryAnswer]) -> list[dict[str, str]]:
    first, *other_notes = [answer.stats.get("notes", []) for answer in _select_exact(answers)]
    return [note for note in first if all(note in notes for notes in other_notes)]


def _sum_filters(answers: Sequence[RepositoryAnswer]) -> list[dict[str, Any]]:
    """Sum the effects of each filter, when nothing passes all filters in any repository."""
    filter_lists = [answer.stats.get("filters", []) for answer in answers]
    if not all(filter_lists):
        return []
    effects_by_filter = zip(*filter_lists, strict=True)
    return [{**effects[0], "chunks": sum(effect["chunks"] for effect in effects)} for effects in effects_by_filter]


def _merge_stats(answers: Sequence[RepositoryAnswer]) -> dict[str, Any]:
    considered: Counter[str] = Counter()
    for answer in answers:
        considered.update(answer.stats["considered"])
    first = answers[0].stats
    stats: dict[str, Any] = {
        "chunks": sum(answer.stats["chunks"] for answer in answers),
        "considered": dict(considered),
        "query": first["query"],
        "branch": None,
        **({"filters": filters} if (filters := _sum_filters(answers)) else {}),
        **({"notes": notes} if (notes := _find_common_notes(answers)) else {}),
        "repos": [
            {"alias": item.alias, "repoId": item.repo_id, **{key: item.stats[key] for key in ("chunks", "branch")}}
            for item in answers
        ],
    }
    if "branchFilter" in first:
        stats["branchFilter"] = first["branchFilter"]
        stats["branchMatch"] = any(answer.stats["branchMatch"] for answer in answers)
    return stats
