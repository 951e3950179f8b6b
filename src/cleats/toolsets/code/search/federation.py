"""One answer from searches in several repositories.

Fused scores mean the same in every index, so hits are merged by score; on equal scores the
repository that comes first in the workspace wins.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cleats.toolsets.code.query.request import HitLimits
from cleats.toolsets.code.search.output import ANSWER_KEYS, render_bundles


class RepositoryAnswer(NamedTuple):
    """The answer of one repository."""

    alias: str
    repo_id: str
    answer: Mapping[str, Any]

    @property
    def stats(self) -> Mapping[str, Any]:
        stats: Mapping[str, Any] = self.answer["stats"]
        return stats


def merge_answers(answers: Sequence[RepositoryAnswer], limits: HitLimits, *, lean: bool) -> dict[str, Any]:
    """Merge the best hits of all repositories, each with the name of its repository."""
    hits = {mode: _select_best(answers, mode, limits.code if mode == "code" else limits.other) for mode in ANSWER_KEYS}
    return {
        "backend": answers[0].answer["backend"],
        **hits,
        "bundles": render_bundles(hits, lean=lean),
        "stats": _merge_stats(answers),
    }


def _select_exact(answers: Sequence[RepositoryAnswer]) -> list[RepositoryAnswer]:
    """Return the answers that contain the phrases of the question, or all if none does."""
    return [answer for answer in answers if not _is_loosened(answer)] or list(answers)


def _is_loosened(answer: RepositoryAnswer) -> bool:
    return any(note["code"] == "phrase_not_found" for note in answer.stats.get("notes", []))


def _select_best(answers: Sequence[RepositoryAnswer], mode: str, top: int) -> list[dict[str, Any]]:
    hits = [{**hit, "repo": answer.alias} for answer in _select_exact(answers) for hit in answer.answer[mode]]
    return sorted(hits, key=lambda hit: -hit["score"])[:top]


def _find_common_notes(answers: Sequence[RepositoryAnswer]) -> list[dict[str, str]]:
    """Return the notes that every answer has."""
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
            {
                "alias": answer.alias,
                "repoId": answer.repo_id,
                "chunks": answer.stats["chunks"],
                "branch": answer.stats["branch"],
            }
            for answer in answers
        ],
    }
    if "branchFilter" in first:
        stats["branchFilter"] = first["branchFilter"]
        stats["branchMatch"] = any(answer.stats["branchMatch"] for answer in answers)
    return stats
