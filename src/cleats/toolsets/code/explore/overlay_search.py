"""Answers of `search` from an index whose files have changed since: what changed is read again for the answer.

The changed files are indexed for this one answer, together with the files of the best hits, so that both are ranked by
the same rules. Hits of changed files are then put where they are among those of the index.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cleats.toolsets.code.explore.changed_files import ChangedFiles
from cleats.toolsets.code.explore.live_search import find_repository_needs, search_paths
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.output import ANSWER_KEYS, is_lean, render_answer, render_bundles
from cleats.toolsets.code.search.retrieval import search_generation

if TYPE_CHECKING:
    from cleats.toolsets.code.search.engine import SearchEngine

MAX_OVERLAID_FILES: Final = 60
"""Changed files that are read for one answer; with more of them, the index itself has to be updated."""

COMPARED_FILES: Final = 8
"""Files of the best hits that changed files are ranked with."""

EXTRA_HITS: Final = 20
"""Hits that are asked for besides, to replace those of changed files."""


class ChangeOverlay:
    """Searches an index and the files that have changed since it was built."""

    def __init__(self) -> None:
        self._changed_files = ChangedFiles()

    def search(
        self, repository: Repository, engine: "SearchEngine", request: SearchRequest, options: BuildOptions
    ) -> dict[str, Any] | None:
        """Return an answer that knows the changed files; None where nothing has changed that it could show."""
        changed = frozenset(self._changed_files.find(repository, engine.folder))
        if not changed or len(changed) > MAX_OVERLAID_FILES or any(find_repository_needs(request)):
            return None
        other_top = request.other_top and request.other_top + EXTRA_HITS
        wider = replace(request, top=request.top + EXTRA_HITS, other_top=other_top)
        answer = render_answer(engine, search_generation(engine, wider))
        indexed = {key: [hit for hit in answer[key] if hit["file"] not in changed] for key in ANSWER_KEYS}
        best_files = list(dict.fromkeys(hit["file"] for key in ANSWER_KEYS for hit in indexed[key]))[:COMPARED_FILES]
        present = [path for path in sorted(changed) if (repository.root / path).is_file()]
        live = search_paths(repository, wider, options, [*present, *best_files]) if present else {}
        merged = {}
        for key in ANSWER_KEYS:
            limit = request.top if key == "code" else request.other_top or request.top
            merged[key] = _insert_hits(indexed[key], live.get(key, []), frozenset(present))[:limit]
        lean = is_lean(request.output, explain=request.explain)
        return {**answer, **merged, "bundles": render_bundles(merged, lean=lean)}


def _insert_hits(
    indexed: Sequence[dict[str, Any]], live: Sequence[dict[str, Any]], changed: frozenset[str]
) -> list[dict[str, Any]]:
    """Put the hits of changed files after the last hit of the index that ranks before them."""
    places = {(hit["file"], hit["startLine"]): position for position, hit in enumerate(indexed, 1)}
    inserted: dict[int, list[dict[str, Any]]] = {}
    after = 0
    for hit in live:
        if hit["file"] in changed:
            inserted.setdefault(after, []).append(hit)
        else:
            after = max(after, places.get((hit["file"], hit["startLine"]), 0))
    merged = inserted.get(0, [])
    for position, hit in enumerate(indexed, 1):
        merged = [*merged, hit, *inserted.get(position, [])]
    return merged
