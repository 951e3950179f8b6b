"""Status of the settings, of the server's repository, and of workspaces; nothing is changed.

The tools `config_status` and `workspace_status`, and the `repository` field of `check_status`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.contract.tools import Context
from cleats.runtime import capabilities
from cleats.settings import SETTINGS_BY_NAME, get_setting
from cleats.toolsets.code import schema_atoms as schemas
from cleats.toolsets.code.index.cache import is_index_folder
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.maintenance.context import MaintenanceTool, format_timestamp
from cleats.toolsets.code.repository import CONFIG_FILE_NAME, Repository
from cleats.toolsets.code.workspace import WorkspaceMember

SECRET_MASK: Final = "***"
_SECRET_NAME_PATTERN = re.compile(r"token|secret|password|credential|api_?key")
_URL_CREDENTIALS_PATTERN = re.compile(r"(?<=://)[^/@\s]+(?=@)")

DOWNLOAD_FOLDERS: Final = ("models", "dictionaries", "extensions")
"""Folders of the cache that hold downloads."""


class ConfigurationTool(MaintenanceTool):
    """The tool that reports on the settings."""

    async def report_status(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._environment.resolve_repository(args, context)
        return await to_thread.run_sync(self._describe_configuration, repository)

    def _describe_configuration(self, repository: Repository) -> dict[str, Any]:
        store, cache = self._environment.indexes.open_store(repository), self._environment.cache
        settings = self._environment.settings
        lease = store.lease_current()
        if lease is not None:
            lease.close()
        index = "usable" if lease else "outdated" if store.is_outdated() else "none"
        sqlite = lease.folder / "fts.db" if lease and (lease.folder / "fts.db").is_file() else None
        model = Path(__file__).parents[1] / "analysis" / "embedding" / "data"
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
            "capabilities": self._detect_capabilities(repository),
            "config": {
                "cacheRoot": str(cache),
                "repoCacheRoot": str(store.folder),
                "dataRoot": str(settings.data_dir),
                "models": {"id": "word-table", "dir": str(model), "shipped": True},
                "sqlite": {"use": sqlite is not None, "path": str(sqlite) if sqlite else None},
                "settings": {name: _mask_value(name, get_setting(settings, name)) for name in SETTINGS_BY_NAME},
            },
            "cache": cache_status,
            "warnings": warnings,
            "warningCount": len(warnings),
        }

    def _detect_capabilities(self, repository: Repository) -> Mapping[str, Mapping[str, bool]]:
        may_lint = capabilities.find_lint_root(self._environment.settings) is not None
        return capabilities.detect_capabilities(repository.root if may_lint else None)

    def _iterate_warnings(self, repository: Repository, cache_status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if not cache_status["cacheRootWritable"]:
            yield (
                "cache_not_writable",
                f"{self._environment.cache} cannot be written; set CLEATS_CACHE_DIR to a writable folder.",
            )
        if cache_status["index"] == "none":
            yield "index_missing", "The repository has no index; run build_index to create one."
        if cache_status["index"] == "outdated":
            yield "index_outdated", "Another version of Cleats wrote the index; run build_index to rebuild it."
        if not cache_status["modelAvailable"]:
            yield "model_missing", "The word table is missing; search uses words only, not meaning."
        repository_config = repository.root / CONFIG_FILE_NAME
        if repository_config.is_file() and not self._environment.settings.project_dir.resolve().is_relative_to(
            repository.root
        ):
            yield (
                "repository_settings_unread",
                f"{repository_config} is ignored: this server was started in another repository.",
            )
        for capability in capabilities.CAPABILITIES:
            if not self._detect_capabilities(repository)[capability.group][capability.name]:
                name = f"{capability.group}_{capability.name}"
                yield f"{name}_missing", f"{capability.purpose} {capability.remedy}"


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


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


FRESHNESS_TIMEOUT_SECONDS: Final = 1.0
"""Seconds that an answer waits for the freshness check; the next answer will have its result."""

REPOSITORY_SCHEMA: Final = {
    "type": "object",
    "description": "The repository around the server; absent when there is no such folder.",
    "required": ["repoPath", "repoId", "generation"],
    "properties": {
        **schemas.repeat_schema(schemas.TEXT_SCHEMA, "repoPath repoId"),
        "generation": schemas.nullable_text_schema("The name of its index; null without one."),
        "stale": schemas.flag_schema("Whether the files have changed since; if it is known."),
        **schemas.repeat_schema(schemas.COUNT_SCHEMA, "added changed removed"),
        "headMoved": schemas.flag_schema("Another commit or branch is checked out."),
    },
}


async def describe_repository(indexes: Indexes) -> dict[str, Any]:
    """Return the `repository` field of the answer, or an empty mapping."""
    try:
        repository = indexes.find_repository(None)
    except ToolError:
        return {}  # the server's folder was removed, which is no fault of the server
    generation = indexes.open_store(repository).read_current_name()
    status: dict[str, Any] = {"repoPath": str(repository.root), "repoId": repository.id, "generation": generation}
    if generation is not None:
        freshness = await indexes.check_freshness(repository, max_wait=FRESHNESS_TIMEOUT_SECONDS)
        if freshness is not None:
            status |= {
                "stale": freshness.is_stale,
                "added": freshness.added,
                "changed": freshness.changed,
                "removed": freshness.removed,
                "headMoved": freshness.head_moved,
            }
    return {"repository": status}


MODES_BY_ANSWER_KEY: Final = {
    "code": "code",
    "prose": "prose",
    "extractedProse": "extracted-prose",
    "records": "records",
}
"""The modes of an index, by their names in answers."""


class WorkspaceTool(MaintenanceTool):
    """The tool that reports on workspaces."""

    async def report_status(self, args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        return await to_thread.run_sync(self._describe_workspace, args)

    def _describe_workspace(self, args: Mapping[str, Any]) -> dict[str, Any]:
        workspace = self._environment.indexes.read_workspace(args["workspacePath"], args.get("repoPath"))
        repos = [self._describe_member(member) for member in workspace.members]
        return {
            "workspacePath": str(workspace.path),
            "name": workspace.name,
            "manifestHash": workspace.manifest_hash,
            "repoSetId": workspace.repo_set_id,
            "ready": all(repo["signature"] for repo in repos if repo["enabled"]),
            "repos": repos,
        }

    def _describe_member(self, member: WorkspaceMember) -> dict[str, Any]:
        meta = self._read_metadata(member)
        counts = meta.get("counts", {}).get("chunks", {})
        return {
            "repoId": member.repository.id,
            "alias": member.alias,
            "root": str(member.root),
            "exists": member.exists,
            "enabled": member.enabled,
            "priority": member.priority,
            "tags": list(member.tags),
            "modes": {
                answer_key: {"available": mode in meta.get("modes", ()), "chunks": counts.get(mode, 0)}
                for answer_key, mode in MODES_BY_ANSWER_KEY.items()
            },
            "signature": meta.get("signature"),
            "builtAt": format_timestamp(meta["created"]) if meta else None,
            "commit": meta.get("commit"),
        }

    def _read_metadata(self, member: WorkspaceMember) -> dict[str, Any]:
        from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415

        lease = self._environment.indexes.open_store(member.repository).lease_current() if member.exists else None
        if lease is None:
            return {}
        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            return {**catalogue.read_meta(), "signature": lease.name}
