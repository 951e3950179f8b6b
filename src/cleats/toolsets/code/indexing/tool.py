"""The tools `build_index` and `index_status`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Alias, Context, Hints, Tool, arguments
from cleats.runtime import blocking
from cleats.toolsets.code.indexing import shapes
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.options import Options, chosen
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.indexing.freshness import Freshness

ARTIFACTS: Final = "ci-artifacts"
"""Where an index from elsewhere is looked for, in a repository."""


class IndexTools:
    """The two tools, over the indexes of this machine."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    async def build(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        options = self._options(given, repository)

        def report(at: Progress) -> None:
            context.progress(
                at.message, phase=at.phase, done=at.done or None, total=at.total or None
            )

        done = await self._indexes.build(repository, options, report)
        for warning in done.warnings:
            context.warn("index_incomplete", warning)
        facts = msgspec.to_builtins(done)
        del facts["warnings"]
        return {
            "repoPath": str(repository.root),
            "mode": given["mode"],
            "incremental": given["incremental"],
            **facts,
        }

    def _options(self, given: Mapping[str, Any], repository: Repository) -> Options:
        artifacts = ""
        if given["useArtifacts"]:
            artifacts = str(repository.root / given.get("artifactsDir", ARTIFACTS))
        return msgspec.structs.replace(
            self._indexes.options,
            modes=chosen(given["mode"]),
            incremental=given["incremental"],
            sqlite=given.get("sqlite"),
            vectors=not given["stubEmbeddings"],
            artifacts=artifacts,
        )

    async def status(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        return await self.describe(repository)

    async def describe(self, repository: Repository) -> dict[str, Any]:
        """Everything about the index of a repository."""
        shelf = self._indexes.shelf(repository)
        index = await to_thread.run_sync(self._index, repository)
        fresh = await self._indexes.freshness(repository)
        return {
            "repoPath": str(repository.root),
            "repoId": repository.id,
            "cacheRoot": str(shelf.folder.parents[1]),
            "repoCacheRoot": str(shelf.folder),
            "git": await _git(repository.root),
            "index": index,
            "freshness": _fresh(fresh) if fresh else None,
            "vectors": {"available": index.pop("vectors", False)},
            "sqlite": {
                "exists": index.pop("sqlite", False),
                "bytes": index.pop("sqliteBytes", 0),
            },
        }

    def _index(self, repository: Repository) -> dict[str, Any]:
        from cleats.toolsets.code.search.fts import FILE  # noqa: PLC0415
        from cleats.toolsets.code.store import files, schema  # noqa: PLC0415
        from cleats.toolsets.code.store.catalogue import Catalogue  # noqa: PLC0415

        shelf = self._indexes.shelf(repository)
        lease = shelf.current()
        if lease is None:
            return {"exists": False, "outdated": shelf.outdated()}
        with lease, Catalogue.open(lease.catalogue) as catalogue:
            meta = catalogue.meta()
            fts = lease.folder / FILE
            return {
                "exists": True,
                "outdated": False,
                "generation": lease.name,
                "path": str(lease.folder),
                "builtAt": datetime.fromtimestamp(meta["created"], UTC).isoformat(),
                "tool": meta["tool"],
                "schema": schema.SCHEMA,
                "commit": meta["commit"],
                "branch": meta["branch"],
                "dirty": meta["dirty"],
                "bytes": files.size(lease.folder),
                "modes": meta["modes"],
                "files": meta["counts"]["files"],
                "chunks": meta["counts"]["chunks"],
                "languages": meta["counts"]["languages"],
                "problems": [{"path": p, "problem": why} for p, why in meta["problems"]],
                "problemCount": meta["counts"]["problems"],
                "skippedReasons": meta["skipped"],
                "skipped": [
                    {"path": path, "reason": reason, "detail": detail}
                    for path, reason, detail in meta["left_out"]
                ],
                "vectors": meta["vectors"],
                "sqlite": meta["sqlite"],
                "sqliteBytes": fts.stat().st_size if fts.is_file() else 0,
            }

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="build_index",
                version=2,
                title="Build the index",
                description=(
                    "Index a repository so that it can be searched: every file that git tracks "
                    "or that no ignore file excludes, cut into functions, classes, sections and"
                    " entries. Searches go on with the earlier index meanwhile. "
                    "incremental=true brings an index up to date, in a fraction of a second "
                    "when little has changed."
                ),
                input=arguments(shapes.BUILD_ARGUMENTS),
                output=shapes.BUILT,
                run=self.build,
                timeout=600.0,
                aliases=(Alias("index_build", deprecated="2.0.0"),),
                hints=Hints(read_only=False),
                errors=(
                    ErrorCode.NOT_FOUND,
                    ErrorCode.ARCHIVE_UNSAFE,
                    ErrorCode.DOWNLOAD_VERIFY_FAILED,
                ),
                examples=(
                    {"arguments": {}},
                    {"arguments": {"repoPath": "/src/app", "incremental": True}},
                    {"arguments": {"mode": "prose"}},
                ),
            ),
            Tool(
                name="index_status",
                version=2,
                title="Show the index",
                description=(
                    "Say whether a repository has an index, what is in it and what was left out "
                    "and why, which commit it was built from, and whether files have changed "
                    "since. Changes nothing."
                ),
                input=arguments({"repoPath": shapes.REPO_PATH}),
                output=shapes.STATUS,
                run=self.status,
                timeout=30.0,
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app"}}),
            ),
        )


async def _git(root: Path) -> dict[str, Any]:
    from cleats.toolsets.code.history.state import state  # noqa: PLC0415

    git = await blocking.in_thread(state, root)
    if git is None:
        return {"isRepo": False}
    if not git.is_repo:
        return {"isRepo": False, "warning": git.warning}
    return {"isRepo": True, "head": git.commit, "branch": git.branch, "isDirty": git.dirty}


def _fresh(fresh: "Freshness") -> dict[str, Any]:
    return {
        "stale": fresh.stale,
        "added": fresh.added,
        "changed": fresh.changed,
        "removed": fresh.removed,
        "headMoved": fresh.head_moved,
        "outgrown": fresh.outgrown,
    }
