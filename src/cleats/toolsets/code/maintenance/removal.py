"""The tools `cache_gc` and `clean_artifacts`: removal of indexes, and the space it frees."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context
from cleats.toolsets.code.index.cache import (
    FreedSpace,
    IndexInUseError,
    IndexLeftover,
    StoredIndex,
    is_index_folder,
    list_indexes,
    measure_disk_usage,
)
from cleats.toolsets.code.index.generations import REPOSITORIES_FOLDER
from cleats.toolsets.code.maintenance.context import MaintenanceEnvironment, MaintenanceTool

DAY_SECONDS: Final = 86_400.0
MAX_AGE_DAYS: Final = 1e9
"""More days than the age of any index; a caller's number may exceed the range of a float."""


@dataclass(frozen=True)
class RemovalCandidate:
    """An index, or a leftover of one, that is to be removed."""

    index: StoredIndex
    reason: str
    leftover: IndexLeftover | None = None
    """None for the whole index."""

    @property
    def path(self) -> Path:
        return self.leftover.path if self.leftover else self.index.folder

    def try_remove(self) -> str:
        """Remove it; return the reason of a failure, or empty text."""
        try:
            with self.index.hold_build_lock():
                if self.leftover is None:
                    self.index.remove()
                else:
                    self.index.remove_leftover(self.leftover)
        except IndexInUseError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return ""


@dataclass
class CacheSweep:
    """Removes candidates one by one, or only reports their removal in a dry run."""

    dry_run: bool
    removed: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    _space: FreedSpace = field(default_factory=FreedSpace)

    @property
    def freed_bytes(self) -> int:
        return sum(removal["bytes"] for removal in self.removed)

    def remove(self, candidate: RemovalCandidate) -> bool:
        """Remove a candidate; return whether it is gone, or would be."""
        index, root = candidate.index, candidate.index.root
        removal = {
            "id": index.id,
            "root": str(root) if root else None,
            "path": str(candidate.path),
            "bytes": 0,
            "reason": candidate.reason,
        }
        problem = index.explain_busy(candidate.leftover)
        if not problem:
            removal["bytes"] = self._space.add_folders(candidate.path)
            problem = "" if self.dry_run else candidate.try_remove()
        if problem:
            self.failed.append({**removal, "bytes": 0, "problem": problem})
            return False
        self.removed.append(removal)
        return True


def select_over_limits(
    indexes: Iterable[StoredIndex], sizes: Mapping[str, int], limits: Mapping[str, float], sweep: CacheSweep
) -> Iterator[RemovalCandidate]:
    """Yield the indexes over a limit, oldest first; each removal affects the next decision."""
    max_bytes = min(limits.get("maxBytes", float("inf")), limits.get("maxGb", float("inf")) * 2**30)
    oldest_allowed = time.time() - min(limits.get("maxAgeDays", MAX_AGE_DAYS), MAX_AGE_DAYS) * DAY_SECONDS
    total = sum(sizes.values())
    for index in indexes:
        remaining_bytes = total - sum(sizes[removal["id"]] for removal in sweep.removed)
        if index.published_at < oldest_allowed:
            yield RemovalCandidate(index, "age")
        elif remaining_bytes > max_bytes:
            yield RemovalCandidate(index, "quota")


LIMIT_ARGUMENTS: Final = ("maxBytes", "maxGb", "maxAgeDays")


class RemovalTools(MaintenanceTool):
    """The tools that remove indexes of this machine."""

    async def collect(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        indexes = self._select_indexes(args.get("repoPath"))
        limits = {name: args[name] for name in LIMIT_ARGUMENTS if name in args}
        sweep = CacheSweep(args["dryRun"])
        sizes = await to_thread.run_sync(lambda: {index.id: measure_disk_usage(index.folder) for index in indexes})
        leftovers = (
            RemovalCandidate(index, leftover.reason, leftover)
            for index in indexes
            for leftover in index.list_leftovers()
        )
        plan = select_over_limits(indexes, sizes, limits, sweep) if limits else leftovers
        await self._run_sweep(plan, sweep, context)
        return {
            "mode": "repo" if limits else "leftovers",
            "dryRun": sweep.dry_run,
            "cacheRoot": str(self._environment.cache),
            "limits": limits,
            "totals": {"repos": len(indexes), "bytes": sum(sizes.values())},
            "removals": sweep.removed,
            "failedRemovals": sweep.failed,
            "freedBytes": sweep.freed_bytes,
        }

    async def clean(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        if args["all"] and "repoPath" in args:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                "`all` selects every repository and cannot be combined with repoPath.",
                hint="Give only one of them. A server that is limited to some repositories, as over "
                "HTTP, removes only their indexes.",
            )
        if args["all"]:
            indexes = self._select_indexes(None)
        else:
            repository = self._environment.resolve_repository(args, context)
            indexes = self._select_indexes(str(repository.root))
        sweep = CacheSweep(args["dryRun"])
        await self._run_sweep([RemovalCandidate(item, "asked") for item in indexes], sweep, context)
        return {
            "all": args["all"],
            "dryRun": sweep.dry_run,
            "cacheRoot": str(self._environment.cache),
            "targets": [_describe_target(item, sweep) for item in (*sweep.removed, *sweep.failed)],
            "freedBytes": sweep.freed_bytes,
            "kept": _list_other_folders(self._environment.cache),
        }

    async def _run_sweep(self, candidates: Iterable[RemovalCandidate], sweep: CacheSweep, context: Context) -> None:
        """Remove candidates one by one, so that a cancelled call leaves nothing half removed."""
        await self._environment.indexes.wait_for_checks()
        await to_thread.run_sync(self._environment.release_generations)
        for candidate in candidates:
            action = "looking at" if sweep.dry_run else "removing"
            context.progress(f"{action} {candidate.path}", phase="remove")
            await to_thread.run_sync(sweep.remove, candidate)

    def _select_indexes(self, path: str | None) -> list[StoredIndex]:
        """Return the indexes that a call refers to: all of them, or that of one repository."""
        check_cache_folder(self._environment)
        if path is None:
            return list_indexes(self._environment.cache)
        repository = self._environment.indexes.find_repository(path)
        folder = self._environment.indexes.open_store(repository).folder
        return [StoredIndex(folder)] if is_index_folder(folder) else []


def check_cache_folder(environment: MaintenanceEnvironment) -> None:
    """Reject a cache in a folder where a mistake would be costly.

    Raises:
        ToolError: INVALID_REQUEST, it is the root of the system, a home folder, or a folder that
            contains the home or the project.
    """
    cache = environment.cache.resolve()
    protected_folders = [environment.settings.home.resolve(), environment.settings.project_dir.resolve()]
    if cache.parent == cache or any(folder.is_relative_to(cache) for folder in protected_folders):
        message = f"Nothing is removed in {cache}: the folder does not contain only a cache."
        raise ToolError(ErrorCode.INVALID_REQUEST, message, hint="Set CLEATS_CACHE_DIR to a separate folder.")


def _describe_target(removal: Mapping[str, Any], sweep: CacheSweep) -> dict[str, Any]:
    target = {name: value for name, value in removal.items() if name != "reason"}
    return {**target, "deleted": not sweep.dry_run and "problem" not in removal}


def _list_other_folders(cache: Path) -> list[str]:
    try:
        return sorted(path.name for path in cache.iterdir() if path.name != REPOSITORIES_FOLDER)
    except OSError:
        return []
