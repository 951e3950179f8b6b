"""Building blocks for the schemas of the maintenance tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cleats.contract.tools import Context
from cleats.settings import Settings
from cleats.toolsets.code.index.access import Indexes
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.repository import Repository

TEXT_SCHEMA: Final[dict[str, Any]] = {"type": "string"}
NULLABLE_TEXT_SCHEMA: Final[dict[str, Any]] = {"type": ["string", "null"]}
FLAG_SCHEMA: Final[dict[str, Any]] = {"type": "boolean"}
COUNT_SCHEMA: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
TIMESTAMP_SCHEMA: Final[dict[str, Any]] = {"type": ["string", "null"], "format": "date-time"}


def object_schema(description: str = "", /, **properties: Any) -> dict[str, Any]:
    """Build the schema of an object with only required properties."""
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {**schema, "description": description} if description else schema


def array_schema(items: dict[str, Any], description: str = "") -> dict[str, Any]:
    """Build the schema of an array."""
    schema: dict[str, Any] = {"type": "array", "items": items}
    return {**schema, "description": description} if description else schema


def nullable_object_schema(description: str, /, **properties: Any) -> dict[str, Any]:
    """Build the schema of an object with only required properties, or null."""
    return {**object_schema(description, **properties), "type": ["object", "null"]}


def flag_argument(description: str) -> dict[str, Any]:
    """Build the schema of a boolean argument that is false by default."""
    return {"type": "boolean", "default": False, "description": description}


def reserved_argument(description: str) -> dict[str, Any]:
    """Build the schema of an argument that other servers accept and this one rejects."""
    return {"type": "string", "x-reserved": True, "description": description}


def _do_nothing() -> None:
    pass


@dataclass(frozen=True)
class MaintenanceEnvironment:
    """The settings and indexes of this machine, as this server uses them."""

    settings: Settings
    indexes: Indexes
    release_generations: Callable[[], None] = _do_nothing
    """Closes the generations that this server keeps open for the next search."""

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


def create_progress_reporter(context: Context) -> Callable[[BuildProgress], None]:
    """Return a callback that forwards the progress of a build to the caller."""

    def report(progress: BuildProgress) -> None:
        context.progress(
            progress.message, phase=progress.phase, done=progress.done or None, total=progress.total or None
        )

    return report


def format_timestamp(seconds: float) -> str:
    """Format a time as in answers."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
