"""The tool `config_status`: the settings as they count, and what of them does not work out."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.tools import Context, Tool, arguments
from cleats.runtime import capabilities
from cleats.settings import TABLE, Settings
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.repository import CONFIGURATION, Repository
from cleats.toolsets.code.store.cache import is_ours
from cleats.toolsets.code.upkeep.forms import COUNT, FLAG, MAYBE, TEXT, many, record
from cleats.toolsets.code.upkeep.site import Site

MASK: Final = "***"
_SECRET = re.compile(r"token|secret|password|credential|api_?key")
_SIGNED_IN = re.compile(r"(?<=://)[^/@\s]+(?=@)")

PARTS: Final = ("models", "dictionaries", "extensions")
"""Folders of the cache that hold what was downloaded."""

OUTPUT: Final = record(
    repoPath=TEXT,
    repoId=TEXT,
    capabilities={
        "type": "object",
        "description": "What was found on this machine, by group and name.",
        "additionalProperties": {"type": "object", "additionalProperties": FLAG},
    },
    config=record(
        cacheRoot=TEXT,
        repoCacheRoot=TEXT,
        dataRoot=TEXT,
        models=record(
            "What turns words into vectors.",
            id=TEXT,
            dir=TEXT,
            shipped={**FLAG, "description": "Whether it comes with this program."},
        ),
        sqlite=record(
            "The full-text index of SQLite.",
            use={**FLAG, "description": "Whether searches can use it: backend=sqlite-fts."},
            path={**MAYBE, "description": "The file, if there is one."},
        ),
        settings={
            "type": "object",
            "description": f"Every setting and its value; secrets are shown as {MASK}.",
        },
    ),
    cache=record(
        cacheRootExists=FLAG,
        cacheRootWritable=FLAG,
        repoCacheExists=FLAG,
        index={
            "enum": ["none", "outdated", "usable"],
            "description": "outdated: another version of this program wrote it.",
        },
        modelAvailable=FLAG,
        sqliteExists=FLAG,
        **{part: many(TEXT, "Names of what is there.") for part in PARTS},
    ),
    warnings=many(record(code=TEXT, message=TEXT)),
    warningCount=COUNT,
)


class ConfigurationTool:
    """Reports on the settings."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def status(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one call."""
        repository = self._site.repository(given, context)
        return await to_thread.run_sync(self._described, repository)

    def _described(self, repository: Repository) -> dict[str, Any]:
        shelf, cache = self._site.indexes.shelf(repository), self._site.cache
        lease = shelf.current()
        if lease is not None:
            lease.close()
        index = "usable" if lease else "outdated" if shelf.outdated() else "none"
        sqlite = _sqlite(lease.folder) if lease else None
        model = _model()
        found = {
            "cacheRootExists": cache.is_dir(),
            "cacheRootWritable": writable(cache),
            "repoCacheExists": is_ours(shelf.folder),
            "index": index,
            "modelAvailable": model.is_dir(),
            "sqliteExists": sqlite is not None,
            **{part: _names(cache / part) for part in PARTS},
        }
        warnings = [
            {"code": code, "message": message}
            for code, message in self._warnings(repository, found)
        ]
        return {
            "repoPath": str(repository.root),
            "repoId": repository.id,
            "capabilities": capabilities.found(),
            "config": {
                "cacheRoot": str(cache),
                "repoCacheRoot": str(shelf.folder),
                "dataRoot": str(self._site.settings.data_dir),
                "models": {"id": "word-table", "dir": str(model), "shipped": True},
                "sqlite": {"use": sqlite is not None, "path": str(sqlite) if sqlite else None},
                "settings": masked(self._site.settings),
            },
            "cache": found,
            "warnings": warnings,
            "warningCount": len(warnings),
        }

    def _warnings(
        self, repository: Repository, found: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        if not found["cacheRootWritable"]:
            yield (
                "cache_not_writable",
                f"{self._site.cache} cannot be written; see CLEATS_CACHE_DIR.",
            )
        if found["index"] == "none":
            yield "index_missing", "The repository has no index; build_index makes one."
        if found["index"] == "outdated":
            yield "index_outdated", "Another version wrote the index; build_index makes it anew."
        if not found["modelAvailable"]:
            yield "model_missing", "The word table is missing; searches go by words alone."
        own = repository.root / CONFIGURATION
        if own.is_file() and not self._site.settings.project_dir.resolve().is_relative_to(
            repository.root
        ):
            yield (
                "repository_settings_unread",
                f"{own} does not count: this server was started in another repository.",
            )
        for each in capabilities.CAPABILITIES:
            if not capabilities.found()[each.group][each.name]:
                name = f"{each.group}_{each.name}"
                yield f"{name}_missing", f"{each.purpose} {each.remedy}"

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="config_status",
                version=2,
                title="Show the configuration",
                description=(
                    "Say which settings count for a repository, where its index and the downloads "
                    "are kept and whether they exist, what this machine can do, and what is "
                    "missing or does not work out. Secrets are masked. Changes nothing."
                ),
                input=arguments({"repoPath": REPO_PATH}),
                output=OUTPUT,
                run=self.status,
                timeout=30.0,
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app"}}),
            ),
        )


def masked(settings: Settings) -> dict[str, Any]:
    """Every setting as JSON, without what must stay secret."""
    return {name: _shown(name, getattr(settings, name)) for name in TABLE}


def _shown(name: str, value: Any) -> Any:
    if _SECRET.search(name):
        return MASK if value else ""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_shown(name, each) for each in value]
    if isinstance(value, str | Path):
        return _SIGNED_IN.sub(MASK, str(value))
    return value


def writable(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    nearest = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _sqlite(generation: Path) -> Path | None:
    path = generation / "fts.db"
    return path if path.is_file() else None


def _model() -> Path:
    return Path(__file__).parents[1] / "dense" / "data"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
