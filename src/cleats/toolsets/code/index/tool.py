"""The tools `build_index` and `index_status`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Alias, Context, Hints, Tool, arguments
from cleats.system.processes import blocking
from cleats.toolsets.code.index import tool_schemas
from cleats.toolsets.code.index.background_builds import BackgroundBuilds
from cleats.toolsets.code.index.options import BuildOptions, expand_mode
from cleats.toolsets.code.index.progress import BuildProgress, create_progress_reporter
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.index.freshness import Freshness

ARTIFACTS_FOLDER: Final = "ci-artifacts"
"""The folder in a repository where an exported index is expected."""


class IndexTools:
    """The two tools, for the indexes of this machine."""

    def __init__(self, indexes: Indexes, builds: BackgroundBuilds) -> None:
        self._indexes, self._builds = indexes, builds

    async def build_index(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.find_suitable_repository(args.get("repoPath"), "repoPath")
        context.about(str(repository.root))
        options = self._make_options(args, repository)
        result = await self._indexes.build_index(repository, options, create_progress_reporter(context))
        for warning in result.warnings:
            context.warn("index_incomplete", warning)
        facts = msgspec.to_builtins(result)
        del facts["warnings"]
        return {"repoPath": str(repository.root), "mode": args["mode"], "incremental": args["incremental"], **facts}

    def _make_options(self, args: Mapping[str, Any], repository: Repository) -> BuildOptions:
        artifacts = ""
        if args["useArtifacts"]:
            artifacts = str(repository.root / args.get("artifactsDir", ARTIFACTS_FOLDER))
        elif "artifactsDir" in args:
            raise build_unused_argument_error("artifactsDir", "useArtifacts")
        return msgspec.structs.replace(
            self._indexes.options,
            modes=expand_mode(args["mode"]),
            incremental=args["incremental"],
            sqlite=args.get("sqlite"),
            vectors=not args["stubEmbeddings"],
            artifacts=artifacts,
        )

    async def report_status(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        return await self.describe_index(repository)

    async def describe_index(self, repository: Repository) -> dict[str, Any]:
        """Return everything about the index of a repository."""
        store = self._indexes.open_store(repository)
        index = await blocking.run_in_thread(self._describe_generation, repository)
        fresh = await self._indexes.check_freshness(repository)
        return {
            "repoPath": str(repository.root),
            "repoId": repository.id,
            "cacheRoot": str(store.folder.parents[1]),
            "repoCacheRoot": str(store.folder),
            "git": await _describe_git(repository.root, self._indexes.grace),
            "index": index,
            "freshness": _describe_freshness(fresh) if fresh else None,
            "build": _describe_build(self._builds.find_progress(repository)),
            "vectors": {"available": index.pop("vectors", False)},
            "sqlite": {"exists": index.pop("sqlite", False), "bytes": index.pop("sqliteBytes", 0)},
        }

    def _describe_generation(self, repository: Repository) -> dict[str, Any]:
        from cleats.system import atomic_files  # noqa: PLC0415
        from cleats.toolsets.code.index import catalogue_schema  # noqa: PLC0415
        from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415
        from cleats.toolsets.code.index.full_text import FTS_FILE_NAME  # noqa: PLC0415

        store = self._indexes.open_store(repository)
        lease = store.lease_current()
        if lease is None:
            return {"exists": False, "outdated": store.is_outdated()}
        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            meta = catalogue.read_meta()
            fts_path = lease.folder / FTS_FILE_NAME
            return {
                "exists": True,
                "outdated": False,
                "generation": lease.name,
                "path": str(lease.folder),
                "builtAt": datetime.fromtimestamp(meta["created"], UTC).isoformat(),
                "tool": meta["tool"],
                "schema": catalogue_schema.CATALOGUE_SCHEMA_VERSION,
                **{key: meta[key] for key in ("commit", "branch", "dirty")},
                "bytes": atomic_files.count_folder_bytes(lease.folder),
                "modes": meta["modes"],
                **{key: meta["counts"][key] for key in ("files", "chunks", "languages")},
                "problems": [dict(zip(("path", "problem"), row, strict=True)) for row in meta["problems"]],
                "problemCount": meta["counts"]["problems"],
                "skippedReasons": meta["skipped"],
                "skipped": [dict(zip(("path", "reason", "detail"), row, strict=True)) for row in meta["left_out"]],
                "vectors": meta["vectors"],
                "sqlite": meta["sqlite"],
                "sqliteBytes": fts_path.stat().st_size if fts_path.is_file() else 0,
            }

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="build_index",
                version=3,
                title="Build the index",
                description=(
                    "Build the index of a repository: every file that git tracks or that no ignore file excludes, "
                    "split into functions, classes, sections and entries. Searches use the previous index until the "
                    "build is complete. incremental=true reads only changed files."
                ),
                input=arguments(tool_schemas.BUILD_ARGUMENTS),
                output=tool_schemas.BUILD_OUTPUT_SCHEMA,
                run=self.build_index,
                timeout=600.0,
                aliases=(Alias("index_build", deprecated="2.0.0"),),
                hints=Hints(read_only=False),
                errors=(ErrorCode.NOT_FOUND, ErrorCode.ARCHIVE_UNSAFE, ErrorCode.DOWNLOAD_VERIFY_FAILED),
                examples=(
                    {"arguments": {}},
                    {"arguments": {"repoPath": "/src/app", "incremental": True}},
                    {"arguments": {"mode": "prose"}},
                ),
            ),
            Tool(
                name="index_status",
                version=3,
                title="Show the index",
                description=(
                    "Show whether a repository has an index, its content, the skipped files with the reason, the "
                    "commit it was built from, and whether files have changed since. Changes nothing."
                ),
                input=arguments({"repoPath": tool_schemas.REPO_PATH_SCHEMA}),
                output=tool_schemas.STATUS_OUTPUT_SCHEMA,
                run=self.report_status,
                timeout=30.0,
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app"}}),
            ),
        )


def build_unused_argument_error(argument: str, switch: str) -> ToolError:
    """Build the error for an argument that has no effect without another one."""
    message = f"{argument} has no effect without {switch}=true."
    details = [{"instancePath": f"/{argument}", "keyword": "dependentRequired", "message": message}]
    hint = f"Set {switch} to true, or leave out {argument}."
    return ToolError(ErrorCode.INVALID_REQUEST, message, hint=hint, details=details)


async def _describe_git(root: Path, grace: float) -> dict[str, Any]:
    from cleats.toolsets.code.analysis.history.head import read_git_state  # noqa: PLC0415

    git = await blocking.run_in_thread(read_git_state, root, grace=grace)
    if git is None:
        return {"isRepo": False}
    if not git.is_repo:
        return {"isRepo": False, "warning": git.warning}
    return {"isRepo": True, "head": git.commit, "branch": git.branch, "isDirty": git.dirty}


def _describe_build(progress: BuildProgress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {key: getattr(progress, key) for key in ("phase", "message", "done", "total", "percent")}


def _describe_freshness(freshness: "Freshness") -> dict[str, Any]:
    return {
        "stale": freshness.is_stale,
        "added": freshness.added,
        "changed": freshness.changed,
        "removed": freshness.removed,
        "headMoved": freshness.head_moved,
        "outgrown": freshness.outgrown,
    }
