"""One answer from the searches in several repositories.

Scores of fused ranks mean the same in every index, so hits are merged by score; where two are
equal, the repository that comes first in the workspace does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cleats.toolsets.code.search.limits import Limits
from cleats.toolsets.code.search.output import bundles

MODES: Final = ("code", "prose", "extractedProse", "records")


class Part(NamedTuple):
    """The answer of one repository."""

    alias: str
    repo_id: str
    answer: Mapping[str, Any]


def merged(parts: Sequence[Part], limits: Limits, *, lean: bool) -> dict[str, Any]:
    """The best hits of all, each with the name of its repository."""
    shown = {
        mode: _best(parts, mode, limits.code if mode == "code" else limits.beside) for mode in MODES
    }
    return {
        "backend": parts[0].answer["backend"],
        **shown,
        "bundles": bundles(shown, lean=lean),
        "stats": _stats(parts),
    }


def _exact(parts: Sequence[Part]) -> list[Part]:
    """The answers that have the phrases of the question, where any has."""
    return [part for part in parts if not _loosened(part)] or list(parts)


def _loosened(part: Part) -> bool:
    return any(note["code"] == "phrase_not_found" for note in part.answer["stats"].get("notes", []))


def _best(parts: Sequence[Part], mode: str, top: int) -> list[dict[str, Any]]:
    hits = [{**hit, "repo": part.alias} for part in _exact(parts) for hit in part.answer[mode]]
    return sorted(hits, key=lambda hit: -hit["score"])[:top]


def _notes(parts: Sequence[Part]) -> list[dict[str, str]]:
    """What is true of every answer that counts."""
    first, *others = [part.answer["stats"].get("notes", []) for part in _exact(parts)]
    return [note for note in first if all(note in notes for notes in others)]


def _filters(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """What each filter lets through, when nothing passes all of them in any repository."""
    listed = [part.answer["stats"].get("filters", []) for part in parts]
    if not all(listed):
        return []
    return [
        {**first, "chunks": sum(each["chunks"] for each in same)}
        for first, *others in zip(*listed, strict=True)
        if (same := [first, *others])
    ]


def _stats(parts: Sequence[Part]) -> dict[str, Any]:
    considered: Counter[str] = Counter()
    for part in parts:
        considered.update(part.answer["stats"]["considered"])
    first = parts[0].answer["stats"]
    stats: dict[str, Any] = {
        "chunks": sum(part.answer["stats"]["chunks"] for part in parts),
        "considered": dict(considered),
        "query": first["query"],
        "branch": None,
        **({"filters": filters} if (filters := _filters(parts)) else {}),
        **({"notes": notes} if (notes := _notes(parts)) else {}),
        "repos": [
            {
                "alias": part.alias,
                "repoId": part.repo_id,
                "chunks": part.answer["stats"]["chunks"],
                "branch": part.answer["stats"]["branch"],
            }
            for part in parts
        ],
    }
    if "branchFilter" in first:
        stats["branchFilter"] = first["branchFilter"]
        stats["branchMatch"] = any(part.answer["stats"]["branchMatch"] for part in parts)
    return stats
