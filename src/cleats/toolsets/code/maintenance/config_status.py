"""The tool `config_status`: the effective settings, and problems with them."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.tools import Context, Tool, arguments
from cleats.runtime import capabilities
from cleats.settings import SETTINGS_BY_NAME, Settings
from cleats.toolsets.code.index.cache import is_index_folder
from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA
from cleats.toolsets.code.maintenance.context import (
    COUNT_SCHEMA,
    FLAG_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    MaintenanceEnvironment,
    array_schema,
    object_schema,
)
from cleats.toolsets.code.repository import CONFIG_FILE_NAME, Repository

SECRET_MASK: Final = "***"
_SECRET_NAME_PATTERN = re.compile(r"token|secret|password|credential|api_?key")
_URL_CREDENTIALS_PATTERN = re.compile(r"(?<=://)[^/@\s]+(?=@)")

DOWNLOAD_FOLDERS: Final = ("models", "dictionaries", "extensions")
"""Folders of the cache that hold downloads."""

CONFIG_STATUS_OUTPUT: Final = object_schema(
    repoPath=TEXT_SCHEMA,
    repoId=TEXT_SCHEMA,
    capabilities={
        "type": "object",
        "description": "What was found on this machine, by group and name.",
        "additionalProperties": {"type": "object", "additionalProperties": FLAG_SCHEMA},
    },
    config=object_schema(
        cacheRoot=TEXT_SCHEMA,
        repoCacheRoot=TEXT_SCHEMA,
        dataRoot=TEXT_SCHEMA,
        models=object_schema(
            "What turns words into vectors.",
            id=TEXT_SCHEMA,
            dir=TEXT_SCHEMA,
            shipped={**FLAG_SCHEMA, "description": "Whether it comes with this program."},
        ),
        sqlite=object_schema(
            "The full-text index of SQLite.",
            use={**FLAG_SCHEMA, "description": "Whether searches can use it: backend=sqlite-fts."},
            path={**NULLABLE_TEXT_SCHEMA, "description": "The file, if there is one."},
        ),
        settings={
            "type": "object",
            "description": f"Every setting and its value; secrets are shown as {SECRET_MASK}.",
        },
    ),
    cache=object_schema(
        cacheRootExists=FLAG_SCHEMA,
        cacheRootWritable=FLAG_SCHEMA,
        repoCacheExists=FLAG_SCHEMA,
        index={
            "enum": ["none", "outdated", "usable"],
            "description": "outdated: another version of this program wrote it.",
        },
        modelAvailable=FLAG_SCHEMA,
        sqliteExists=FLAG_SCHEMA,
        **{part: array_schema(TEXT_SCHEMA, "Names of what is there.") for part in DOWNLOAD_FOLDERS},
    ),
    warnings=array_schema(object_schema(code=TEXT_SCHEMA, message=TEXT_SCHEMA)),
    warningCount=COUNT_SCHEMA,
)


class ConfigurationTool:
    """The tool that reports on the settings."""

    def __init__(self, environment: MaintenanceEnvironment) -> None:
        self._environment = environment

    async def report_status(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one call."""
        repository = self._environment.resolve_repository(args, context)
        return await to_thread.run_sync(self._describe_configuration, repository)

    def _describe_configuration(self, repository: Repository) -> dict[str, Any]:
        store, cache = self._environment.indexes.open_store(repository), self._environment.cache
        lease = store.lease_current()
        if lease is not None:
            lease.close()
        index = "usable" if lease else "outdated" if store.is_outdated() else "none"
        sqlite = _find_fts_database(lease.folder) if lease else None
        model = _model_folder()
        cache_status = {
            "cacheRootExists": cache.is_dir(),
            "cacheRootWritable": is_writable(cache),
            "repoCacheExists": is_index_folder(store.folder),
            "index": index,
            "modelAvailable": model.is_dir(),
            "sqliteExists": sqlite is not None,
            **{part: _list_names(cache / part) for part in DOWNLOAD_FOLDERS},
        }
        warnings = [
            {"code": code, "message": message} for code, message in self._iterate_warnings(repository, cache_status)
        ]
        return {
            "repoPath": str(repository.root),
            "repoId": repository.id,
            "capabilities": capabilities.detect_capabilities(),
            "config": {
                "cacheRoot": str(cache),
                "repoCacheRoot": str(store.folder),
                "dataRoot": str(self._environment.settings.data_dir),
                "models": {"id": "word-table", "dir": str(model), "shipped": True},
                "sqlite": {"use": sqlite is not None, "path": str(sqlite) if sqlite else None},
                "settings": mask_settings(self._environment.settings),
            },
            "cache": cache_status,
            "warnings": warnings,
            "warningCount": len(warnings),
        }

    def _iterate_warnings(self, repository: Repository, cache_status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if not cache_status["cacheRootWritable"]:
            yield (
                "cache_not_writable",
                f"{self._environment.cache} cannot be written; see CLEATS_CACHE_DIR.",
            )
        if cache_status["index"] == "none":
            yield "index_missing", "The repository has no index; build_index makes one."
        if cache_status["index"] == "outdated":
            yield "index_outdated", "Another version wrote the index; build_index makes it anew."
        if not cache_status["modelAvailable"]:
            yield "model_missing", "The word table is missing; searches go by words alone."
        repository_config = repository.root / CONFIG_FILE_NAME
        if repository_config.is_file() and not self._environment.settings.project_dir.resolve().is_relative_to(
            repository.root
        ):
            yield (
                "repository_settings_unread",
                f"{repository_config} does not count: this server was started in another repository.",
            )
        for capability in capabilities.CAPABILITIES:
            if not capabilities.detect_capabilities()[capability.group][capability.name]:
                name = f"{capability.group}_{capability.name}"
                yield f"{name}_missing", f"{capability.purpose} {capability.remedy}"

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
                input=arguments({"repoPath": REPO_PATH_SCHEMA}),
                output=CONFIG_STATUS_OUTPUT,
                run=self.report_status,
                timeout=30.0,
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app"}}),
            ),
        )


def mask_settings(settings: Settings) -> dict[str, Any]:
    """Return every setting as JSON, with secrets masked."""
    return {name: _mask_value(name, getattr(settings, name)) for name in SETTINGS_BY_NAME}


def _mask_value(name: str, value: Any) -> Any:
    if _SECRET_NAME_PATTERN.search(name):
        return SECRET_MASK if value else ""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_mask_value(name, item) for item in value]
    if isinstance(value, str | Path):
        return _URL_CREDENTIALS_PATTERN.sub(SECRET_MASK, str(value))
    return value


def is_writable(folder: Path) -> bool:
    """Return whether a folder can be written or created."""
    nearest = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _find_fts_database(generation: Path) -> Path | None:
    path = generation / "fts.db"
    return path if path.is_file() else None


def _model_folder() -> Path:
    return Path(__file__).parents[1] / "analysis" / "embedding" / "data"


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
