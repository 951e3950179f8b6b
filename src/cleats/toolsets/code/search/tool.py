"""The tool `search`.

Imported when a server starts; modules that a search needs are imported by the first one, in a
thread.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from anyio import to_thread
from msgspec.structs import replace

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, ListChangeCallback, Tool
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.index.remote import RemoteIndexPort
from cleats.toolsets.code.query.arguments import make_input_schema
from cleats.toolsets.code.search.answer_schema import LISTED_OUTPUT_SCHEMA, SEARCH_OUTPUT_SCHEMA

if TYPE_CHECKING:
    from cleats.toolsets.code.index.service import Indexes
    from cleats.toolsets.code.query.request import SearchRequest
    from cleats.toolsets.code.repository import Repository
    from cleats.toolsets.code.search.engine import SearchEngine
    from cleats.toolsets.code.search.engine_cache import SearchEnginePool

WARM_UP_DELAY_SECONDS: Final = 0.3
"""Seconds after the start in which clients connect."""

FRESHNESS_TIMEOUT_SECONDS: Final = 0.1
"""Seconds that an answer waits to learn whether its index is stale; the next one will know. Only
after a change does a check take longer than a few milliseconds: git has to list the files."""


RUNNING_MESSAGE: Final = "Running search."
"""The progress message of a search."""


@runtime_checkable
class RemoteSearcher(RemoteIndexPort, Protocol):
    """A remote index that answers searches itself."""

    async def search(self, build_request: "Callable[[], SearchRequest]") -> dict[str, Any]:
        """Answer a search; `build_request` runs in a thread because its modules are large."""


class SearchTool:
    """Searches the indexes of this machine."""

    def __init__(self, indexes: "Indexes", *, demote_tests: bool = False) -> None:
        self._indexes = indexes
        self._demote_tests = demote_tests
        self._engines: SearchEnginePool | None = None
        self._engines_lock = threading.Lock()

    async def search(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one search."""
        if args.get("workspacePath"):
            return await self._search_workspace(args, context)
        repository = self._indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        return await self._search_repository(repository, args, context)

    async def _search_repository(
        self, repository: "Repository", args: Mapping[str, Any], context: Context, other_roots: Sequence[Path] = ()
    ) -> dict[str, Any]:
        remote = self._find_remote_searcher(repository)
        if remote is not None:
            if args.get("refresh"):
                remote.reject_build(repository)
            context.progress(RUNNING_MESSAGE, phase="search")
            return await remote.search(lambda: self._make_request(args, repository, other_roots))
        await self._indexes.wait_until_ready(repository)
        if args.get("refresh"):
            await self._refresh_index(repository, context)
        context.progress(RUNNING_MESSAGE, phase="search")
        cancelled = threading.Event()
        try:
            answer = await to_thread.run_sync(
                self._run_search, args, repository, cancelled.is_set, other_roots, abandon_on_cancel=True
            )
        finally:
            cancelled.set()
        fresh = await self._indexes.check_freshness(repository, max_wait=FRESHNESS_TIMEOUT_SECONDS)
        if fresh is not None and fresh.is_stale:
            context.warn(
                "index_stale",
                f"The index is not up to date: {fresh}.",
                hint="Search with refresh=true, or call build_index with incremental=true.",
            )
        return answer

    async def _search_workspace(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Search the repositories of a workspace and merge the answers."""
        from cleats.toolsets.code.query.request import choose_limits  # noqa: PLC0415
        from cleats.toolsets.code.search.federation import RepositoryAnswer, merge_answers  # noqa: PLC0415
        from cleats.toolsets.code.search.output import is_lean  # noqa: PLC0415

        workspace = self._indexes.read_workspace(args["workspacePath"], args.get("repoPath"))
        context.about(str(workspace.path))
        roots = [member.repository.root for member in workspace.members]
        answers = []
        for member in workspace.members:
            repository = member.repository
            if member.enabled and member.exists and self._has_index(repository, args):
                answer = await self._search_repository(repository, args, context, roots)
                answers.append(RepositoryAnswer(member.alias, repository.id, answer))
            elif member.enabled:
                context.warn("repository_skipped", f"{member.alias} has no index.")
        if not answers:
            raise ToolError(
                ErrorCode.NO_INDEX,
                f"No repository of {workspace.path} has an index.",
                hint="Call build_index in each, or search with refresh=true.",
            )
        is_short = is_lean(args["output"], explain=bool(args.get("explain")))
        return merge_answers(answers, choose_limits(args), lean=is_short)

    def _has_index(self, repository: "Repository", args: Mapping[str, Any]) -> bool:
        """Return whether there is an index to search, or will be after a refresh."""
        is_local = self._indexes.open_store(repository).read_current_name() is not None
        return bool(args.get("refresh")) or is_local or self._find_remote_searcher(repository) is not None

    def _find_remote_searcher(self, repository: "Repository") -> RemoteSearcher | None:
        """Return the remote index that answers searches of a repository itself, if there is one."""
        searchers = (remote for remote in self._indexes.remotes if isinstance(remote, RemoteSearcher))
        return next((searcher for searcher in searchers if searcher.is_read_only_for(repository)), None)

    async def _refresh_index(self, repository: "Repository", context: Context) -> None:
        options = self._indexes.options
        if self._indexes.open_store(repository).read_current_name() is not None:
            options = replace(options, modes=())  # what the index has, and no more
        result = await self._indexes.build_index(repository, options, create_progress_reporter(context))
        for warning in result.warnings:
            context.warn("index_incomplete", warning)

    def _run_search(
        self,
        args: Mapping[str, Any],
        repository: "Repository",
        is_cancelled: Callable[[], bool],
        other_roots: Sequence[Path] = (),
    ) -> dict[str, Any]:
        from cleats.toolsets.code.search.output import render_answer  # noqa: PLC0415
        from cleats.toolsets.code.search.retrieval import SearchCancelled, search_generation  # noqa: PLC0415

        request = self._make_request(args, repository, other_roots)
        with self.open_engine(repository) as engine:
            try:
                return render_answer(engine, search_generation(engine, request, is_cancelled))
            except SearchCancelled:
                return {}  # nobody is waiting for it

    def _make_request(
        self, args: Mapping[str, Any], repository: "Repository", other_roots: Sequence[Path]
    ) -> "SearchRequest":
        from cleats.toolsets.code.query.request import SearchRoots, parse_request  # noqa: PLC0415

        roots = SearchRoots(repository.root, other_roots)
        return parse_request(args, demote_tests=self._demote_tests, roots=roots)

    def open_engine(self, repository: "Repository") -> AbstractContextManager["SearchEngine"]:
        """Return the engine of a repository's index, opened if needed. Call it in a worker thread.

        Raises:
            ToolError: NO_INDEX, there is none.
        """
        generation = self._indexes.open_store(repository).read_current_name()
        engines = self._engines or self._get_engine_pool()
        return engines.use_engine(repository.id, generation, lambda: self._indexes.lease_index(repository))

    def _get_engine_pool(self) -> "SearchEnginePool":
        from cleats.toolsets.code.search.engine_cache import SearchEnginePool  # noqa: PLC0415

        with self._engines_lock:
            self._engines = self._engines or SearchEnginePool()
            return self._engines

    @asynccontextmanager
    async def lifespan(self, _changed: ListChangeCallback) -> AsyncIterator[None]:
        """Warm up in the first idle moment of a server, and release all engines when it stops."""
        remotes = self._indexes.remotes  # a setting that is wrong stops the start, not the first search
        tasks = [asyncio.create_task(self._warm_up())]
        for remote in remotes:
            store = self._indexes.open_store(self._indexes.find_repository(None))
            tasks.append(asyncio.create_task(remote.follow(store)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self.release_engines()

    def release_engines(self) -> None:
        """Release every generation that no search is using."""
        if self._engines is not None:
            self._engines.close()

    async def _warm_up(self) -> None:
        """Make the first search as fast as the next, where there is an index to search."""
        await asyncio.sleep(WARM_UP_DELAY_SECONDS)
        with suppress(ToolError, OSError):
            repository = self._indexes.find_repository(None)
            if self._indexes.open_store(repository).read_current_name() is not None:
                args = {"query": "ready"}
                await to_thread.run_sync(self._run_search, args, repository, lambda: False, abandon_on_cancel=True)

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="search",
                version=2,
                title="Search code",
                description=(
                    "Find functions, classes, documents and comments in a repository, by words, "
                    "by name or by what they mean, and by some sixty facts about them: what they "
                    "call, read, return or throw, where they are, who wrote them when, what risk "
                    "they carry. Filters are combined with AND. Answers with places (file and "
                    "lines) and scores, best first, for code, prose and comments each; ask for "
                    "output=full to get their text. Needs an index: see build_index."
                ),
                input=make_input_schema(),
                output=SEARCH_OUTPUT_SCHEMA,
                listed_output=LISTED_OUTPUT_SCHEMA,
                run=self.search,
                errors=(ErrorCode.NO_INDEX, ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN, ErrorCode.UNAVAILABLE),
                examples=(
                    {"arguments": {"query": "where are sessions closed?"}},
                    {"arguments": {"query": "Session.close", "output": "full", "top": 3}},
                    {"arguments": {"query": "open file", "type": "function", "calls": "open"}},
                    {"arguments": {"query": '"not found" -test', "path": "src/**", "lang": "py"}},
                ),
            ),
        )
