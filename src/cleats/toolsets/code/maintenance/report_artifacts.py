"""The tool `report_artifacts`: the contents and the disk usage of the indexes on this machine."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from anyio import to_thread

from cleats.contract.tools import Context
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.cache import StoredIndex, list_indexes, measure_disk_usage
from cleats.toolsets.code.index.generations import LOCK_FILE_NAME, GenerationLease
from cleats.toolsets.code.maintenance.context import MaintenanceTool, format_timestamp
from cleats.toolsets.code.maintenance.status import DOWNLOAD_FOLDERS
from cleats.toolsets.code.repository import Repository

ARTIFACT_KINDS: Final = ("catalogue", "words", "columns", "vectors", "history", "sqlite", "other", "leftovers")


class InventoryTool(MaintenanceTool):
    """The tool that reports the disk usage of indexes."""

    async def report(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._environment.resolve_repository(args, context)
        context.progress("counting", phase="look")
        inventory = await to_thread.run_sync(self._measure_cache, repository, abandon_on_cancel=True)
        freshness = await self._environment.indexes.check_freshness(repository)
        if freshness is not None and freshness.is_stale:
            _add_issue(inventory, "index_stale", f"The index is not up to date: {freshness}.")
        return inventory

    def _measure_cache(self, repository: Repository) -> dict[str, Any]:
        cache = self._environment.cache
        indexes = [_describe_index(index) for index in reversed(list_indexes(cache))]
        folder_bytes = {
            f"{folder_name}Bytes": measure_disk_usage(cache / folder_name) for folder_name in DOWNLOAD_FOLDERS
        }
        index_bytes = sum(index["bytes"] for index in indexes)
        inventory: dict[str, Any] = {
            "repo": self._describe_repository(repository),
            "health": {"issues": [], "hints": []},
            "overall": {
                "cacheRoot": str(cache),
                "repos": len(indexes),
                "indexBytes": index_bytes,
                **folder_bytes,
                "totalBytes": index_bytes + sum(folder_bytes.values()),
            },
            "allRepos": indexes,
        }
        for code, message in self._iterate_issues(repository, inventory):
            _add_issue(inventory, code, message)
        return inventory

    def _describe_repository(self, repository: Repository) -> dict[str, Any]:
        folder = self._environment.indexes.open_store(repository).folder
        index = StoredIndex(folder)
        current = folder / "generations" / (index.generation or LOCK_FILE_NAME)
        artifacts = dict.fromkeys(ARTIFACT_KINDS, 0)
        for path in current.rglob("*"):
            with suppress(OSError):  # the generation has just been replaced
                status = path.lstat()
                if S_ISREG(status.st_mode):
                    artifacts[_classify_file(path.relative_to(current))] += status.st_size
        total = measure_disk_usage(folder)
        artifacts["leftovers"] = max(total - sum(artifacts.values()), 0) if index.list_leftovers() else 0
        return {
            "root": str(repository.root),
            "repoId": repository.id,
            "cacheRoot": str(folder),
            "generation": index.generation,
            "totalBytes": total,
            "artifacts": artifacts,
            "sqlite": {"path": str(current / "fts.db"), "bytes": size} if (size := artifacts["sqlite"]) else None,
        }

    def _iterate_issues(self, repository: Repository, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        store = self._environment.indexes.open_store(repository)
        lease = store.lease_current()
        if lease is not None:
            with lease:
                yield from _iterate_damage(lease)
        elif store.is_outdated():
            yield "index_outdated", "Another version of Cleats wrote the index."
        else:
            yield "index_missing", "The repository has no index."
        if inventory["repo"]["artifacts"]["leftovers"]:
            yield "leftovers", "There are unused generations or leftovers of builds."
        if any(index["root"] and not index["rootExists"] for index in inventory["allRepos"]):
            yield "orphans", "There are indexes of repositories that no longer exist."


HINTS_BY_ISSUE: Final[Mapping[str, str]] = {
    "index_missing": "Call build_index, or run `cleats index`.",
    "index_outdated": "Call build_index, or run `cleats index`.",
    "index_stale": "Call build_index with incremental=true, or run `cleats index`.",
    "index_damaged": "Call build_index with incremental=false, or run `cleats index --full`.",
    "leftovers": "Call cache_gc, or run `cleats cache gc`.",
    "orphans": "Call cache_gc with maxAgeDays, or run `cleats cache gc --max-age-days 30`.",
}


def _add_issue(inventory: Mapping[str, Any], code: str, message: str) -> None:
    inventory["health"]["issues"].append({"code": code, "message": message})
    if HINTS_BY_ISSUE[code] not in inventory["health"]["hints"]:
        inventory["health"]["hints"].append(HINTS_BY_ISSUE[code])


def _describe_index(index: StoredIndex) -> dict[str, Any]:
    root = index.root
    return {
        "repoId": index.id,
        "root": str(root) if root else None,
        "rootExists": root is not None and root.is_dir(),
        "path": str(index.folder),
        "bytes": measure_disk_usage(index.folder),
        "generation": index.generation,
        "publishedAt": format_timestamp(index.published_at) if index.generation else None,
    }


def _classify_file(path: Path) -> str:
    if path.name in {catalogue_schema.CATALOGUE_FILE_NAME, catalogue_schema.BASE_FILE_NAME}:
        return "catalogue"
    if "words" in path.parts:
        return "words"
    if path.suffix == ".columns":
        return "columns"
    kinds_by_name = {"vectors.i8": "vectors", "history.bin": "history", "fts.db": "sqlite"}
    return kinds_by_name.get(path.name, "other")


def _iterate_damage(lease: GenerationLease) -> Iterator[tuple[str, str]]:
    from cleats.toolsets.code.index import segments  # noqa: PLC0415
    from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415
    from cleats.toolsets.code.index.shard_writer import list_shard_folders  # noqa: PLC0415

    with IndexCatalogue.open(lease.catalogue_path) as catalogue:
        meta = catalogue.read_meta()
    if meta["sqlite"] and not (lease.folder / "fts.db").is_file():
        yield "index_damaged", "The full-text index of SQLite is missing."
    try:
        parts = [lease.folder / segments.SEGMENTS_FOLDER, *list_shard_folders(lease.folder)]
        missing = [folder.name for folder in parts if not folder.is_dir()]
    except (OSError, ValueError):
        missing = ["all"]
    if missing:
        yield "index_damaged", f"Parts of the index are missing: {', '.join(missing)}."
