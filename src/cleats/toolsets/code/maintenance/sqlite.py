"""The tools `build_sqlite_index` and `compact_sqlite_index`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from cleats.contract.tools import Context
from cleats.toolsets.code.index.options import INDEX_MODES
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.maintenance.context import MaintenanceTool
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.maintenance.packing import PackingResult


class SqliteTools(MaintenanceTool):
    """The tools that build and compact the SQLite files of indexes."""

    async def build(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        root, result = await self._run_order(
            args, context, "add", incremental=args["incremental"], compact=args["compact"]
        )
        path = str(Path(result.folder) / "fts.db")
        return {
            "repoPath": root,
            "mode": args["mode"],
            "generation": result.generation,
            "published": result.published,
            "outPath": path,
            "outputPaths": dict.fromkeys((mode for mode in INDEX_MODES if mode in result.chunks), path),
            "bytes": result.after.sqlite,
            "compacted": result.compacted,
            "chunks": sum(result.chunks.values()),
            "vectors": result.vectors,
        }

    async def compact(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        root, result = await self._run_order(
            args, context, "pack", dry_run=args["dryRun"], keep_backup=args["keepBackup"]
        )
        names = {"catalogue.db": result.after.catalogue, "fts.db": result.after.sqlite}
        return {
            "repoPath": root,
            "mode": args["mode"],
            "dryRun": args["dryRun"],
            "generation": result.generation,
            "published": result.published,
            "beforeBytes": _describe_sizes(result.before),
            "afterBytes": _describe_sizes(result.after),
            "freedBytes": max(result.before.total - result.after.total, 0),
            "backupPath": result.backup,
            "paths": [str(Path(result.folder) / name) for name, size in names.items() if size],
            "chunks": sum(result.chunks.values()),
            "vectors": result.vectors,
        }

    async def _run_order(
        self, args: Mapping[str, Any], context: Context, task: Any, **options: Any
    ) -> tuple[str, "PackingResult"]:
        from cleats.toolsets.code.maintenance import packing  # noqa: PLC0415 - a server starts without
        from cleats.toolsets.code.maintenance.packing import PackingOrder  # noqa: PLC0415

        repository = self._environment.resolve_repository(args, context)
        self._environment.indexes.lease_index(repository).close()  # fails without an index before a process is spawned
        order = PackingOrder(
            task=task, root=str(repository.root), cache_dir=str(self._environment.cache), mode=args["mode"], **options
        )
        result = await packing.run_packer(order, create_progress_reporter(context), self._environment.indexes.grace)
        if result.published:
            await self._environment.indexes.wait_for_checks()
            await to_thread.run_sync(self._collect_generations, repository)
        return str(repository.root), result

    def _collect_generations(self, repository: Repository) -> None:
        """Remove the replaced generation, which this server itself may have kept open."""
        self._environment.release_generations()
        store = self._environment.indexes.open_store(repository)
        lock = store.try_build_lock()
        if lock is not None:
            store.remove_unused()
            lock.release()


def _describe_sizes(sizes: Any) -> dict[str, int]:
    return {"catalogue": sizes.catalogue, "sqlite": sizes.sqlite, "total": sizes.total}
