"""How the repository around the server stands, for `check_status`: as much as is quick to tell."""

from typing import Any, Final

from cleats.contract.errors import ToolError
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.upkeep.forms import COUNT, FLAG, MAYBE, TEXT

PATIENCE: Final = 1.0
"""Seconds that an answer waits for a look at the files; the next one will know."""

REPOSITORY: Final = {
    "type": "object",
    "description": "The repository around the server; absent when there is no such folder.",
    "required": ["repoPath", "repoId", "generation"],
    "properties": {
        "repoPath": TEXT,
        "repoId": TEXT,
        "generation": {**MAYBE, "description": "The name of its index; null without one."},
        "stale": {**FLAG, "description": "Whether the files have changed since; if it is known."},
        "added": COUNT,
        "changed": COUNT,
        "removed": COUNT,
        "headMoved": {**FLAG, "description": "Another commit or branch is checked out."},
    },
}


async def standing(indexes: Indexes) -> dict[str, Any]:
    """The field of the answer, or nothing."""
    try:
        repository = indexes.repository(None)
    except ToolError:
        return {}  # the server's folder was removed; its health is another matter
    told: dict[str, Any] = {
        "repoPath": str(repository.root),
        "repoId": repository.id,
        "generation": indexes.shelf(repository).name(),
    }
    if told["generation"] is not None:
        fresh = await indexes.freshness(repository, within=PATIENCE)
        if fresh is not None:
            told |= {
                "stale": fresh.stale,
                "added": fresh.added,
                "changed": fresh.changed,
                "removed": fresh.removed,
                "headMoved": fresh.head_moved,
            }
    return {"repository": told}
