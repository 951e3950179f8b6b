"""What is removed from a cache, in which order, and what that frees."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cleats.toolsets.code.store.cache import HeldError, Piece, Space, Stored

DAY: Final = 86_400.0
EVER: Final = 1e9
"""More days than anything is old; a number may have more digits than a float can hold."""


@dataclass(frozen=True)
class Candidate:
    """Something that is to go."""

    index: Stored
    reason: str
    piece: Piece | None = None
    """None for the whole index."""

    @property
    def path(self) -> Path:
        return self.piece.path if self.piece else self.index.folder

    def busy(self) -> str:
        return self.index.busy(self.piece)

    def remove(self) -> None:
        """Remove it.

        Raises:
            HeldError: somebody holds it.
            OSError: it cannot be removed.
        """
        with self.index.held():
            if self.piece is None:
                self.index.remove()
            else:
                self.index.remove_piece(self.piece)


@dataclass
class Sweep:
    """Removes candidates one by one, or only says what would become of them."""

    dry_run: bool
    removed: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    _space: Space = field(default_factory=Space)

    @property
    def freed(self) -> int:
        return sum(each["bytes"] for each in self.removed)

    def take(self, candidate: Candidate) -> bool:
        """Remove one; return whether it is gone, or would be."""
        index, root = candidate.index, candidate.index.root
        said = {
            "id": index.id,
            "root": str(root) if root else None,
            "path": str(candidate.path),
            "bytes": 0,
            "reason": candidate.reason,
        }
        problem = candidate.busy()
        if not problem:
            said["bytes"] = self._space.freed(candidate.path)
            problem = "" if self.dry_run else _removed(candidate)
        if problem:
            self.failed.append({**said, "bytes": 0, "problem": problem})
            return False
        self.removed.append(said)
        return True


def _removed(candidate: Candidate) -> str:
    """Remove it; return why not, if not."""
    try:
        candidate.remove()
    except HeldError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def leftovers(indexes: Iterable[Stored]) -> Iterator[Candidate]:
    """What lies beside the published generations."""
    for index in indexes:
        for piece in index.pieces():
            yield Candidate(index, piece.reason, piece)


def over(
    indexes: Iterable[Stored], sizes: Mapping[str, int], limits: Mapping[str, float], sweep: Sweep
) -> Iterator[Candidate]:
    """The indexes over a limit, the oldest first; what a sweep has freed decides about the next."""
    most = min(limits.get("maxBytes", float("inf")), limits.get("maxGb", float("inf")) * 2**30)
    since = time.time() - min(limits.get("maxAgeDays", EVER), EVER) * DAY
    total = sum(sizes.values())
    for index in indexes:
        left = total - sum(sizes[each["id"]] for each in sweep.removed)
        if index.published < since:
            yield Candidate(index, "age")
        elif left > most:
            yield Candidate(index, "quota")
