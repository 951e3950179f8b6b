"""What every tool of upkeep works on: the settings, the indexes, and who holds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cleats.contract.tools import Context
from cleats.settings import Settings
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.repository import Repository


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Site:
    """The indexes of this machine, as this server has them."""

    settings: Settings
    indexes: Indexes
    let_go: Callable[[], None] = _nothing
    """Return the generations that this server itself keeps open for the next search."""

    @property
    def cache(self) -> Path:
        return self.settings.cache_dir

    def repository(self, given: Mapping[str, Any], context: Context) -> Repository:
        """The repository that a call is about.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder.
        """
        repository = self.indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        return repository


def reporter(context: Context) -> Callable[[Progress], None]:
    """Passes the progress of a build on to the caller."""

    def report(at: Progress) -> None:
        context.progress(at.message, phase=at.phase, done=at.done or None, total=at.total or None)

    return report


def moment(seconds: float) -> str:
    """A time as answers have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
