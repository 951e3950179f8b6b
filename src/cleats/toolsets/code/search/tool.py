"""The tool `search`.

Imported when a server starts; modules that a search needs are imported by the first one, in a
thread.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec.structs import replace

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, ListChangeCallback, Tool
from cleats.system.processes import blocking
from cleats.toolsets.code.index.background_builds import BackgroundBuilds
from cleats.toolsets.code.index.generations import GenerationLease
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.query.arguments import LIST_ARGUMENTS, make_input_schema
from cleats.toolsets.code.search.answer_schema import LISTED_OUTPUT_SCHEMA, SEARCH_OUTPUT_SCHEMA

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from cleats.toolsets.code.index.options import BuildOptions
    from cleats.toolsets.code.query.request import SearchRequest
    from cleats.toolsets.code.repository import Repository
    from cleats.toolsets.code.search.engine import SearchEngine

R = TypeVar("R")

MAX_OPEN_ENGINES: Final = 8
"""Repositories that stay open: mapped files, and a few megabytes of memory each."""


MAX_SEARCH_THREADS: Final = 2
"""Searches that compute at the same time. More threads than two wait for the interpreter's lock and halve the rate."""


@dataclass(eq=False)
class _OpenEngine:
    lease: GenerationLease
    engine: "SearchEngine"
    searches: int = 0
    is_retired: bool = False

    def close_if_finished(self) -> None:
        if self.is_retired and not self.searches:
            self.engine.close()
            self.lease.close()


@dataclass
class SearchEnginePool:
    """Open engines by repository. Safe for any number of threads.

    A search keeps the engine it started with. When a new generation is published, the next search
    opens it, and the last search to leave the old one closes it.
    """

    _engines: dict[str, _OpenEngine] = field(default_factory=dict)
    _opening_locks: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def use_engine(
        self, repository: str, generation: str | None, lease: Callable[[], GenerationLease]
    ) -> Iterator["SearchEngine"]:
        """Provide the engine of a repository's generation, opening it with `lease` if needed."""
        with self._lock:
            opening = self._opening_locks.setdefault(repository, threading.Lock())
        with opening:
            entry = self._acquire_open(repository, generation) or self._open_engine(repository, lease())
        try:
            yield entry.engine
        finally:
            with self._lock:
                entry.searches -= 1
                entry.close_if_finished()

    def close(self) -> None:
        """Close all engines; those in use are closed when their searches end."""
        with self._lock:
            for repository in list(self._engines):
                self._retire(repository)

    def _acquire_open(self, repository: str, generation: str | None) -> _OpenEngine | None:
        with self._lock:
            entry = self._engines.get(repository)
            if entry is None or entry.lease.name != generation:
                return None
            self._engines[repository] = self._engines.pop(repository)  # the first is the longest unused
            entry.searches += 1
            return entry

    def _open_engine(self, repository: str, lease: GenerationLease) -> _OpenEngine:
        from cleats.toolsets.code.search.engine import SearchEngine  # noqa: PLC0415

        try:
            entry = _OpenEngine(lease, SearchEngine.open(lease.folder), searches=1)
        except BaseException:
            lease.close()
            raise
        with self._lock:
            self._retire(repository)
            if len(self._engines) >= MAX_OPEN_ENGINES:
                self._retire(next(iter(self._engines)))
            self._engines[repository] = entry
        return entry

    def _retire(self, repository: str) -> None:
        if (entry := self._engines.pop(repository, None)) is not None:
            entry.is_retired = True
            entry.close_if_finished()


WARM_UP_DELAY_SECONDS: Final = 0.3
"""Seconds after the start in which clients connect."""

FRESHNESS_TIMEOUT_SECONDS: Final = 0.1
"""Seconds that an answer waits to learn whether its index is stale; the next one will know. Only
after a change does a check take longer than a few milliseconds: git has to list the files."""


RUNNING_MESSAGE: Final = "Running search."
"""The progress message of a search."""


@runtime_checkable
class RemoteSearcher(Protocol):
    """A remote index that answers searches itself."""

    def reject_build(self, repository: "Repository") -> None: ...

    async def search(self, build_request: "Callable[[], SearchRequest]") -> dict[str, Any]:
        """Answer a search; `build_request` runs in a thread because its modules are large."""


LiveSearch: TypeAlias = "Callable[[Repository, SearchRequest, BuildOptions], dict[str, Any]]"
"""Answers a search from the files themselves; it runs in a thread."""

OverlaySearch: TypeAlias = "Callable[[Repository, SearchEngine, SearchRequest, BuildOptions], dict[str, Any] | None]"
"""Answers a search from an index and the files that have changed since; None if nothing has. It runs in a thread."""


class SearchTool:
    """Searches the indexes of this machine."""

    def __init__(
        self,
        indexes: Indexes,
        builds: BackgroundBuilds,
        load_live_search: Callable[[], LiveSearch],
        load_overlay: Callable[[], OverlaySearch],
        *,
        demote_tests: bool = False,
    ) -> None:
        self._indexes, self._builds = indexes, builds
        self._load_live_search, self._load_overlay = load_live_search, load_overlay
        self._demote_tests = demote_tests
        self._engines = SearchEnginePool()
        self._limiter: CapacityLimiter | None = None

    async def search(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one search."""
        if args.get("workspacePath"):
            answer = await self._search_workspace(args, context)
        else:
            repository = self._indexes.find_repository(args.get("repoPath"))
            context.about(str(repository.root))
            answer = await self._search_repository(repository, args, context)
        from cleats.toolsets.code.search.notes import limit_answer  # noqa: PLC0415 - imported by the search

        return limit_answer(answer)

    async def _search_repository(
        self, repository: "Repository", args: Mapping[str, Any], context: Context, other_roots: Sequence[Path] = ()
    ) -> dict[str, Any]:
        remote = self._find_remote_searcher(repository)
        if remote is not None:
            if args.get("refresh"):
                remote.reject_build(repository)
            context.progress(RUNNING_MESSAGE, phase="search")
            return await remote.search(lambda: self.make_request(args, repository, other_roots))
        await self._indexes.wait_until_ready(repository)
        if args.get("refresh"):
            await self._refresh_index(repository, context)
        context.progress(RUNNING_MESSAGE, phase="search")
        try:
            answer = await self._run_limited(self._run_search, args, repository, other_roots)
        except ToolError as error:
            if error.code is not ErrorCode.NO_INDEX or not self._builds.start_first(repository):
                raise
            return await self._search_live(repository, args, context)
        fresh = await self._indexes.check_freshness(repository, max_wait=FRESHNESS_TIMEOUT_SECONDS)
        is_unknown = fresh is None and self._indexes.find_remote_reader(repository) is None
        if is_unknown or (fresh is not None and fresh.is_stale):
            overlaid = await self._run_limited(self._run_overlay, args, repository, other_roots)
            answer = overlaid or answer
        if fresh is not None and fresh.is_stale:
            context.warn(
                "index_stale",
                f"The index is not up to date: {fresh}.",
                hint="Search with refresh=true, or call build_index with incremental=true.",
            )
        return answer

    async def _run_limited(self, work: Callable[..., R], *arguments: Any) -> R:
        """Run work of a search in a thread, when fewer than `MAX_SEARCH_THREADS` are busy."""
        from anyio import CapacityLimiter  # noqa: PLC0415 - an async caller has loaded it already

        self._limiter = self._limiter or CapacityLimiter(MAX_SEARCH_THREADS)
        return await blocking.run_in_thread(work, *arguments, limiter=self._limiter)

    async def _search_live(self, repository: "Repository", args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer from the files, while the first index is being built."""

        def search() -> dict[str, Any]:
            request = self.make_request(args, repository)
            return self._load_live_search()(repository, request, self._indexes.options)

        answer = await blocking.run_in_thread(search)
        context.warn(
            "index_building",
            f"Searched the files with the most words of the query: {self._builds.describe(repository)}.",
            hint="Filters and ranks were applied to those files only. Search again when index_status shows an index.",
        )
        return answer

    async def _search_workspace(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.query.request import choose_limits  # noqa: PLC0415
        from cleats.toolsets.code.search.output import (  # noqa: PLC0415
            RepositoryAnswer,
            is_lean,
            merge_answers,
        )

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
        readers = (remote for remote in self._indexes.remotes if remote.is_read_only_for(repository))
        return next((reader for reader in readers if isinstance(reader, RemoteSearcher)), None)

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
        other_roots: Sequence[Path] = (),
    ) -> dict[str, Any]:
        from cleats.toolsets.code.search.output import render_answer  # noqa: PLC0415
        from cleats.toolsets.code.search.retrieval import search_generation  # noqa: PLC0415

        request = self.make_request(args, repository, other_roots)
        with self.open_engine(repository) as engine:
            return render_answer(engine, search_generation(engine, request))

    def _run_overlay(
        self, args: Mapping[str, Any], repository: "Repository", other_roots: Sequence[Path]
    ) -> dict[str, Any] | None:
        request = self.make_request(args, repository, other_roots)
        with self.open_engine(repository) as engine:
            return self._load_overlay()(repository, engine, request, self._indexes.options)

    def make_request(
        self, args: Mapping[str, Any], repository: "Repository", other_roots: Sequence[Path] = ()
    ) -> "SearchRequest":
        """Parse the arguments of a search; call it in a worker thread."""
        from cleats.toolsets.code.query.request import SearchRoots, parse_request  # noqa: PLC0415

        roots = SearchRoots(repository.root, other_roots)
        return parse_request(args, demote_tests=self._demote_tests, roots=roots)

    def open_engine(self, repository: "Repository") -> AbstractContextManager["SearchEngine"]:
        """Return the engine of a repository's index, opened if needed. Call it in a worker thread.

        Raises:
            ToolError: NO_INDEX, there is none.
        """
        generation = self._indexes.open_store(repository).read_current_name()
        return self._engines.use_engine(repository.id, generation, lambda: self._indexes.lease_index(repository))

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
            self._indexes.stop_checks()
            self.release_engines()

    def release_engines(self) -> None:
        """Release every generation that no search is using."""
        self._engines.close()

    async def _warm_up(self) -> None:
        """Make the first search as fast as the next, where there is an index to search."""
        await asyncio.sleep(WARM_UP_DELAY_SECONDS)
        with suppress(ToolError, OSError):
            repository = self._indexes.find_repository(None)
            if self._indexes.open_store(repository).read_current_name() is not None:
                args = {"query": "ready"}
                await blocking.run_in_thread(self._run_search, args, repository)

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="search",
                version=3,
                title="Search code",
                description=(
                    "Search the index of a repository for functions, classes, documents and comments, by words, name "
                    "or meaning, and with filters on what code calls, reads, returns or throws, its path, author and "
                    "risk. Filters are combined with AND. Returns places and scores, best first. Use "
                    "context=1 to see the matching code; output=full adds all facts, up to 20,000 tokens. For quick "
                    "questions, find_code is shorter."
                ),
                input=make_input_schema(),
                list_arguments=LIST_ARGUMENTS,
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
