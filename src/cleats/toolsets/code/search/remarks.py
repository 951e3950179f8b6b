"""What has to be said about an answer besides its hits: how it came about, or why there is none."""

from collections.abc import Iterator

from cleats.toolsets.code.search.query_tree import Question
from cleats.toolsets.code.search.retrieval import Found


def remarks(found: Found) -> list[dict[str, str]]:
    """A code for programs and a sentence for people, for each."""
    return [{"code": code, "message": message} for code, message in _remarks(found)]


def _remarks(found: Found) -> Iterator[tuple[str, str]]:
    hits = [hit for listed in found.hits.values() for hit in listed]
    query = found.request.query
    if not found.chunks:
        yield "index_empty", "The index is empty."
    elif found.loosened:
        yield (
            "phrase_not_found",
            "No chunk has the words in quotes next to each other; they were searched for as words.",
        )
    elif found.passing:
        yield "filtered_out", _filtered_out(found)
        yield from dict.fromkeys(each.never for each in found.passing if each.never)
    if found.no_vectors:
        yield "no_vectors", "The index was built without vectors, so only words count."
    if hits and all(hit.fused.scores.keys() == {"meaning"} for hit in hits):
        yield "only_by_meaning", "No chunk has these words; these are the nearest in meaning."
    if not hits and not isinstance(query, Question) and any(found.considered.values()):
        yield (
            "formula_without_hits",
            f"The query was read as a formula, because of its operators: {query}",
        )


def _filtered_out(found: Found) -> str:
    emptied = [each for each in found.passing if not each.chunks]
    if not emptied:
        return "Every filter lets some chunks through, but no chunk passes all of them."
    known = [f"{each.argument} {', '.join(each.known)}" for each in emptied if each.known]
    hint = f" There is {'; '.join(known)}." if known else ""
    return f"No chunk has what {' and '.join(each.argument for each in emptied)} asks for.{hint}"
