"""The tools `build_sqlite_index` and `compact_sqlite_index`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.upkeep.forms import (
    COUNT,
    FLAG,
    MAYBE,
    TEXT,
    many,
    record,
    reserved,
    switch,
)
from cleats.toolsets.code.upkeep.site import Site, reporter

if TYPE_CHECKING:
    from cleats.toolsets.code.upkeep.packing import Packed

MODES: Final = ("code", "prose", "extracted-prose", "records")

_MODE: Final = {
    "type": "string",
    "enum": ["all", *MODES],
    "default": "all",
    "description": (
        "What the answer is about and the index must have; every mode is done in any case."
    ),
}
_OWN_PLACE: Final = "Not used here."

_COUNTS: Final = {
    "chunks": {**COUNT, "description": "Pieces that can be found, in the modes that are meant."},
    "vectors": {**COUNT, "description": "In the whole index; 0 when it was built without."},
}

BUILT: Final = record(
    repoPath=TEXT,
    mode=TEXT,
    generation={**TEXT, "description": "The name of the index that answers from now on."},
    published={**FLAG, "description": "False when it was there already, and nothing was written."},
    outPath=TEXT,
    outputPaths={
        "type": "object",
        "description": "The same file for each mode that is meant.",
        "additionalProperties": TEXT,
    },
    bytes=COUNT,
    compacted=FLAG,
    **_COUNTS,
)

_SIZES: Final = record(catalogue=COUNT, sqlite=COUNT, total=COUNT)

COMPACTED: Final = record(
    repoPath=TEXT,
    mode=TEXT,
    dryRun=FLAG,
    generation=TEXT,
    published={**FLAG, "description": "False in a dry run, and when there was nothing to gain."},
    beforeBytes=_SIZES,
    afterBytes={**_SIZES, "description": "Measured in a dry run too."},
    freedBytes=COUNT,
    backupPath={**MAYBE, "description": "Where the files are as they were, if that was wished."},
    paths=many(TEXT, "The files that were packed."),
    **_COUNTS,
)


class SqliteTools:
    """Makes and packs the SQLite files of indexes."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def build(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer `build_sqlite_index`."""
        root, done = await self._run(
            given, context, "add", incremental=given["incremental"], compact=given["compact"]
        )
        path = str(Path(done.folder) / "fts.db")
        return {
            "repoPath": root,
            "mode": given["mode"],
            "generation": done.generation,
            "published": done.published,
            "outPath": path,
            "outputPaths": dict.fromkeys(_meant(given["mode"], done), path),
            "bytes": done.after.sqlite,
            "compacted": done.compacted,
            **_counted(given["mode"], done),
        }

    async def compact(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer `compact_sqlite_index`."""
        root, done = await self._run(
            given, context, "pack", dry_run=given["dryRun"], keep_backup=given["keepBackup"]
        )
        names = {"catalogue.db": done.after.catalogue, "fts.db": done.after.sqlite}
        return {
            "repoPath": root,
            "mode": given["mode"],
            "dryRun": given["dryRun"],
            "generation": done.generation,
            "published": done.published,
            "beforeBytes": _sizes(done.before),
            "afterBytes": _sizes(done.after),
            "freedBytes": max(done.before.total - done.after.total, 0),
            "backupPath": done.backup,
            "paths": [str(Path(done.folder) / name) for name, size in names.items() if size],
            **_counted(given["mode"], done),
        }

    async def _run(
        self, given: Mapping[str, Any], context: Context, task: Any, **how: Any
    ) -> tuple[str, "Packed"]:
        from cleats.toolsets.code.upkeep import packer  # noqa: PLC0415 - a server starts without
        from cleats.toolsets.code.upkeep.packing import Order  # noqa: PLC0415

        repository = self._site.repository(given, context)
        self._site.indexes.lease(repository).close()  # no process is needed to say that none is
        order = Order(
            task=task,
            root=str(repository.root),
            cache_dir=str(self._site.cache),
            mode=given["mode"],
            **how,
        )
        done = await packer.run(order, reporter(context), self._site.indexes.grace)
        if done.published:
            await self._site.indexes.looked()
            await to_thread.run_sync(self._tidy, repository)
        return str(repository.root), done

    def _tidy(self, repository: Repository) -> None:
        """Remove the generation that was replaced: who held it may have been this server."""
        self._site.let_go()
        shelf = self._site.indexes.shelf(repository)
        lock = shelf.claim()
        if lock is not None:
            shelf.collect()
            lock.release()

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="build_sqlite_index",
                version=2,
                title="Build the SQLite index",
                description=(
                    "Add the full-text index of SQLite to the index of a repository, for searches "
                    "with backend=sqlite-fts. It is made from the index as it is; files are not "
                    "looked at. Later builds keep it up to date. Searches go on meanwhile."
                ),
                input=arguments(
                    {
                        "mode": _MODE,
                        "incremental": switch("Do nothing when it is there already."),
                        "compact": switch("Also pack the files, as compact_sqlite_index does."),
                        "codeDir": reserved(_OWN_PLACE),
                        "proseDir": reserved(_OWN_PLACE),
                        "out": reserved(_OWN_PLACE),
                        "repoPath": REPO_PATH,
                    }
                ),
                output=BUILT,
                run=self.build,
                timeout=600.0,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NO_INDEX,),
                examples=(
                    {"arguments": {}},
                    {"arguments": {"repoPath": "/src/app", "incremental": True}},
                ),
            ),
            Tool(
                name="compact_sqlite_index",
                version=2,
                title="Pack the SQLite files",
                description=(
                    "Write the SQLite files of an index anew without the space that updates have "
                    "left in them, and publish the result if it is smaller. Says how many bytes "
                    "that gains; dryRun=true only measures. Searches go on meanwhile."
                ),
                input=arguments(
                    {
                        "mode": _MODE,
                        "dryRun": switch("Measure what it would gain, and change nothing."),
                        "keepBackup": switch(
                            "Keep the files as they were, until cache_gc removes them."
                        ),
                        "repoPath": REPO_PATH,
                    }
                ),
                output=COMPACTED,
                run=self.compact,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NO_INDEX,),
                examples=(
                    {"arguments": {"dryRun": True}},
                    {"arguments": {"repoPath": "/src/app", "keepBackup": True}},
                ),
            ),
        )


def _meant(mode: str, done: "Packed") -> list[str]:
    return [each for each in MODES if each in done.chunks] if mode == "all" else [mode]


def _counted(mode: str, done: "Packed") -> dict[str, int]:
    chunks = sum(done.chunks.get(each, 0) for each in _meant(mode, done))
    return {"chunks": chunks, "vectors": done.vectors}


def _sizes(sizes: Any) -> dict[str, int]:
    return {"catalogue": sizes.catalogue, "sqlite": sizes.sqlite, "total": sizes.total}
