"""The environment of the maintenance tools, and helpers for their answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cleats.contract.tools import Context
from cleats.settings import Settings
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.repository import Repository


@dataclass(frozen=True)
class MaintenanceEnvironment:
    """The settings and indexes of this machine, as this server uses them."""

    settings: Settings
    indexes: Indexes
    release_generations: Callable[[], None] = lambda: None
    """Closes the generations that this server keeps open for the next search."""
    check_dictionaries: Callable[[], dict[str, bool]] = dict
    """Returns whether each word list of the cache is as it was downloaded."""

    @property
    def cache(self) -> Path:
        return self.settings.cache_dir

    def resolve_repository(self, args: Mapping[str, Any], context: Context) -> Repository:
        """Return the repository that a call refers to.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder.
        """
        repository = self.indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        return repository


class MaintenanceTool:
    """A tool over the indexes of this machine."""

    def __init__(self, environment: MaintenanceEnvironment) -> None:
        self._environment = environment


def format_timestamp(seconds: float) -> str:
    """Format a time as in answers."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
