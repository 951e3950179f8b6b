"""Notes on an answer: what a reader has to know before the hits, and what was left out to make it fit."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

import msgspec

from cleats.toolsets.code.query.parser import REGEX_HINT, is_regex_like
from cleats.toolsets.code.query.tree import Question
from cleats.toolsets.code.search.retrieval import SearchResult

MAX_ANSWER_BYTES: Final = 64_000
"""Bytes of the hits of a full answer, about 20,000 tokens: clients cut or refuse longer answers."""

_HIT_KEYS: Final = ("id", "file", "startLine", "endLine", "lang", "kind", "name", "headline", "score", "mode", "repo")
"""The keys of a hit whose text and facts do not fit."""


def generate_notes(result: SearchResult) -> Iterator[tuple[str, str]]:
    """Yield notes on a result, each a code for programs and a sentence for people."""
    hits = [hit for mode_hits in result.hits.values() for hit in mode_hits]
    query = result.request.query
    if hits and all(hit.fused.scores.keys() == {"meaning"} for hit in hits):
        yield "only_by_meaning", "No chunk has these words; these are the nearest in meaning."
    if is_regex_like(result.request.text):
        yield "looks_like_regex", f"The query was read as words. {REGEX_HINT}"
    if not result.chunk_count:
        yield "index_empty", "The index is empty."
    elif result.is_loosened:
        message = "No chunk has the words in quotes next to each other; they were searched for as words."
        yield "phrase_not_found", message
    elif result.filter_effects:
        yield "filtered_out", _explain_filters(result)
        yield from dict.fromkeys(effect.unavailable_note for effect in result.filter_effects if effect.unavailable_note)
    if result.lacks_vectors:
        yield "no_vectors", "The index was built without vectors, so only words count."
    if not hits and not isinstance(query, Question) and any(result.considered.values()):
        yield ("formula_without_hits", f"The query was read as a formula, because of its operators: {query}")


def _explain_filters(result: SearchResult) -> str:
    unmatched = [effect for effect in result.filter_effects if not effect.chunks]
    if not unmatched:
        return "Every filter lets some chunks through, but no chunk passes all of them."
    suggestions = [f"{effect.argument} {', '.join(effect.suggestions)}" for effect in unmatched if effect.suggestions]
    hint = f" There is {'; '.join(suggestions)}." if suggestions else ""
    return f"No chunk has what {' and '.join(effect.argument for effect in unmatched)} asks for.{hint}"


def limit_answer(answer: dict[str, Any], max_bytes: int = MAX_ANSWER_BYTES) -> dict[str, Any]:
    """Leave out the text and the facts of the lowest hits of a full answer that is too long, and say so."""
    hits = [(mode, hit) for mode in ("code", "prose", "extractedProse", "records") for hit in answer[mode]]
    hits.sort(key=lambda item: -item[1]["score"])
    sizes = accumulate(len(msgspec.json.encode(hit)) for _, hit in hits)
    cut_ids = {id(hit) for (_, hit), size in zip(hits[1:], list(sizes)[1:], strict=True) if size > max_bytes}
    if not cut_ids or "text" not in hits[0][1]:
        return answer
    message = (
        f"The text and facts of {len(cut_ids)} of {len(hits)} hits were left out, because the answer would be too long."
        " Read their lines with show_file, or search again with a smaller top or a narrower path."
    )
    notes = [*answer["stats"].get("notes", ()), {"code": "text_left_out", "message": message}]
    return {
        **answer,
        "stats": {**answer["stats"], "notes": notes},
        **{
            mode: [_strip_hit(hit) if id(hit) in cut_ids else hit for hit in answer[mode]]
            for mode in dict.fromkeys(mode for mode, _ in hits)
        },
    }


def _strip_hit(hit: dict[str, Any]) -> dict[str, Any]:
    return {**{key: hit[key] for key in _HIT_KEYS if key in hit}, "truncated": True}
