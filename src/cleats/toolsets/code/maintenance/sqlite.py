"""The tools `build_sqlite_index` and `compact_sqlite_index`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.toolsets.code import schema_atoms as schemas
from cleats.toolsets.code.index.options import INDEX_MODES
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA
from cleats.toolsets.code.maintenance.context import MaintenanceTool
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.maintenance.packing import PackingResult

_MODE_ARGUMENT: Final = schemas.choice_argument(
    "Mode of the index. One file holds every mode, so an index with several needs all.",
    ["all", *INDEX_MODES],
    default="all",
)
_UNUSED_DESCRIPTION: Final = "Not used here."

_COUNT_PROPERTIES: Final = {
    "chunks": schemas.count_schema("Pieces that can be found, in the modes that are meant."),
    "vectors": schemas.count_schema("In the whole index; 0 when it was built without."),
}

BUILD_OUTPUT: Final = schemas.object_schema(
    repoPath=schemas.TEXT_SCHEMA,
    mode=schemas.TEXT_SCHEMA,
    generation=schemas.text_schema("The name of the index that answers from now on."),
    published=schemas.flag_schema("False when it was there already, and nothing was written."),
    outPath=schemas.TEXT_SCHEMA,
    outputPaths={
        "type": "object",
        "description": "The same file for each mode that is meant.",
        "additionalProperties": schemas.TEXT_SCHEMA,
    },
    bytes=schemas.COUNT_SCHEMA,
    compacted=schemas.FLAG_SCHEMA,
    **_COUNT_PROPERTIES,
)

_SIZES_SCHEMA: Final = schemas.object_schema(
    catalogue=schemas.COUNT_SCHEMA, sqlite=schemas.COUNT_SCHEMA, total=schemas.COUNT_SCHEMA
)

COMPACT_OUTPUT: Final = schemas.object_schema(
    repoPath=schemas.TEXT_SCHEMA,
    mode=schemas.TEXT_SCHEMA,
    dryRun=schemas.FLAG_SCHEMA,
    generation=schemas.TEXT_SCHEMA,
    published=schemas.flag_schema("False in a dry run, and when there was nothing to gain."),
    beforeBytes=_SIZES_SCHEMA,
    afterBytes={**_SIZES_SCHEMA, "description": "Measured in a dry run too."},
    freedBytes=schemas.COUNT_SCHEMA,
    backupPath=schemas.nullable_text_schema("Where the files are as they were, if that was wished."),
    paths=schemas.array_schema(schemas.TEXT_SCHEMA, "The files that were packed."),
    **_COUNT_PROPERTIES,
)


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

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="build_sqlite_index",
                version=3,
                title="Build the SQLite index",
                description=(
                    "Add the full-text index of SQLite to the index of a repository, for searches "
                    "with backend=sqlite-fts. It is made from the index as it is; files are not "
                    "looked at. Later builds keep it up to date. Searches go on meanwhile."
                ),
                input=arguments(
                    {
                        "mode": _MODE_ARGUMENT,
                        "incremental": schemas.flag_argument("Do nothing when it is there already."),
                        "compact": schemas.flag_argument("Also pack the files, as compact_sqlite_index does."),
                        "codeDir": schemas.reserved_argument(_UNUSED_DESCRIPTION),
                        "proseDir": schemas.reserved_argument(_UNUSED_DESCRIPTION),
                        "out": schemas.reserved_argument(_UNUSED_DESCRIPTION),
                        "repoPath": REPO_PATH_SCHEMA,
                    }
                ),
                output=BUILD_OUTPUT,
                run=self.build,
                timeout=600.0,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NO_INDEX,),
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app", "incremental": True}}),
            ),
            Tool(
                name="compact_sqlite_index",
                version=3,
                title="Pack the SQLite files",
                description=(
                    "Write the SQLite files of an index anew without the space that updates have "
                    "left in them, and publish the result if it is smaller. Says how many bytes "
                    "that gains; dryRun=true only measures. Searches go on meanwhile."
                ),
                input=arguments(
                    {
                        "mode": _MODE_ARGUMENT,
                        "dryRun": schemas.flag_argument("Measure what it would gain, and change nothing."),
                        "keepBackup": schemas.flag_argument(
                            "Keep the files as they were, until cache_gc removes them."
                        ),
                        "repoPath": REPO_PATH_SCHEMA,
                    }
                ),
                output=COMPACT_OUTPUT,
                run=self.compact,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NO_INDEX,),
                examples=({"arguments": {"dryRun": True}}, {"arguments": {"repoPath": "/src/app", "keepBackup": True}}),
            ),
        )


def _describe_sizes(sizes: Any) -> dict[str, int]:
    return {"catalogue": sizes.catalogue, "sqlite": sizes.sqlite, "total": sizes.total}
