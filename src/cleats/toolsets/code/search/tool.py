"""The tool `search`.

Imported when a server starts; whatever a search needs is imported by the first one, in a thread.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from msgspec.structs import replace

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Changed, Context, Tool
from cleats.toolsets.code.search.arguments import input_schema
from cleats.toolsets.code.search.shapes import LISTED, OUTPUT

if TYPE_CHECKING:
    from cleats.toolsets.code.indexing.access import Indexes
    from cleats.toolsets.code.indexing.progress import Progress
    from cleats.toolsets.code.repository import Repository
    from cleats.toolsets.code.search.engine import Engine
    from cleats.toolsets.code.search.engines import Engines
    from cleats.toolsets.code.search.request import Request

QUIET: Final = 0.3
"""Seconds after the start in which clients say hello."""

PATIENCE: Final = 0.1
"""Seconds that an answer waits to learn whether its index is stale; the next one will know. Only
after a change does a look take longer than a few milliseconds: git has to list the files."""


RUNNING: Final = "Running search."
"""What a caller is told who asked how far a search is."""


class SearchTool:
    """Searches in the indexes of this machine."""

    def __init__(self, indexes: "Indexes", *, tests_lower: bool = False) -> None:
        self._indexes = indexes
        self._tests_lower = tests_lower
        self._engines: Engines | None = None
        self._making = threading.Lock()

    async def search(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one search."""
        if given.get("workspacePath"):
            return await self._search_together(given, context)
        repository = self._indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        return await self._search_in(repository, given, context)

    async def _search_in(
        self,
        repository: "Repository",
        given: Mapping[str, Any],
        context: Context,
        others: Sequence[Path] = (),
    ) -> dict[str, Any]:
        remote = self._indexes.remote
        if remote is not None and remote.reads(repository):
            if given.get("refresh"):
                remote.refuse_build(repository)
            context.progress(RUNNING, phase="search")
            return await remote.search(lambda: self._request(given, repository, others))
        await self._indexes.ready(repository)
        if given.get("refresh"):
            await self._refresh(repository, context)
        context.progress(RUNNING, phase="search")
        given_up = threading.Event()
        try:
            answer = await to_thread.run_sync(
                self._answer, given, repository, given_up.is_set, others, abandon_on_cancel=True
            )
        finally:
            given_up.set()
        fresh = await self._indexes.freshness(repository, within=PATIENCE)
        if fresh is not None and fresh.stale:
            context.warn(
                "index_stale",
                f"The index is not up to date: {fresh}.",
                hint="Search with refresh=true, or call build_index with incremental=true.",
            )
        return answer

    async def _search_together(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one search in the repositories of a workspace."""
        from cleats.toolsets.code.search.federation import Part, merged  # noqa: PLC0415
        from cleats.toolsets.code.search.limits import limits  # noqa: PLC0415
        from cleats.toolsets.code.search.output import lean  # noqa: PLC0415

        workspace = self._indexes.workspace(given["workspacePath"], given.get("repoPath"))
        context.about(str(workspace.path))
        roots = [member.repository.root for member in workspace.members]
        parts = []
        for member in workspace.members:
            repository = member.repository
            if member.enabled and member.exists and self._has_index(repository, given):
                answer = await self._search_in(repository, given, context, roots)
                parts.append(Part(member.alias, repository.id, answer))
            elif member.enabled:
                context.warn("repository_skipped", f"{member.alias} has no index.")
        if not parts:
            raise ToolError(
                ErrorCode.NO_INDEX,
                f"No repository of {workspace.path} has an index.",
                hint="Call build_index in each, or search with refresh=true.",
            )
        short = lean(given["output"], explain=bool(given.get("explain")))
        return merged(parts, limits(given), lean=short)

    def _has_index(self, repository: "Repository", given: Mapping[str, Any]) -> bool:
        """Whether there is something to search, or will be."""
        remote, here = self._indexes.remote, self._indexes.shelf(repository).name() is not None
        there = remote is not None and remote.reads(repository)
        return bool(given.get("refresh")) or here or there

    async def _refresh(self, repository: "Repository", context: Context) -> None:
        def report(at: "Progress") -> None:
            context.progress(
                at.message, phase=at.phase, done=at.done or None, total=at.total or None
            )

        options = self._indexes.options
        if self._indexes.shelf(repository).name() is not None:
            options = replace(options, modes=())  # what the index has, and no more
        done = await self._indexes.build(repository, options, report)
        for warning in done.warnings:
            context.warn("index_incomplete", warning)

    def _answer(
        self,
        given: Mapping[str, Any],
        repository: "Repository",
        given_up: Callable[[], bool],
        others: Sequence[Path] = (),
    ) -> dict[str, Any]:
        from cleats.toolsets.code.search.output import payload  # noqa: PLC0415
        from cleats.toolsets.code.search.retrieval import Stopped  # noqa: PLC0415

        request = self._request(given, repository, others)
        with self.engine(repository) as engine:
            try:
                return payload(engine, engine.search(request, given_up))
            except Stopped:
                return {}  # nobody is waiting for it

    def _request(
        self, given: Mapping[str, Any], repository: "Repository", others: Sequence[Path]
    ) -> "Request":
        from cleats.toolsets.code.search.places import Roots  # noqa: PLC0415
        from cleats.toolsets.code.search.request import read  # noqa: PLC0415

        roots = Roots(repository.root, others)
        return read(given, tests_lower=self._tests_lower, roots=roots)

    def engine(self, repository: "Repository") -> AbstractContextManager["Engine"]:
        """The engine of a repository's index, opened if it is not. For a thread of its own.

        Raises:
            ToolError: NO_INDEX, there is none.
        """
        generation = self._indexes.shelf(repository).name()
        engines = self._engines or self._make_engines()
        return engines.using(repository.id, generation, lambda: self._indexes.lease(repository))

    def _make_engines(self) -> "Engines":
        from cleats.toolsets.code.search.engines import Engines  # noqa: PLC0415

        with self._making:
            self._engines = self._engines or Engines()
            return self._engines

    @asynccontextmanager
    async def running(self, _changed: Changed) -> AsyncIterator[None]:
        """While a server runs: get ready in its first idle moment, and return what is held."""
        _ = self._indexes.remote  # a setting that is wrong stops the start, not the first search
        tasks = [asyncio.create_task(self._warm())]
        if (shared := self._indexes.shared) is not None:
            shelf = self._indexes.shelf(self._indexes.repository(None))
            tasks.append(asyncio.create_task(shared.follow(shelf)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self.let_go()

    def let_go(self) -> None:
        """Return every generation that no search is using."""
        if self._engines is not None:
            self._engines.close()

    async def _warm(self) -> None:
        """Make the first search as quick as the next, where there is an index to search."""
        await asyncio.sleep(QUIET)
        with suppress(ToolError, OSError):
            repository = self._indexes.repository(None)
            if self._indexes.shelf(repository).name() is not None:
                given = {"query": "ready"}
                await to_thread.run_sync(
                    self._answer, given, repository, lambda: False, abandon_on_cancel=True
                )

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
                input=input_schema(),
                output=OUTPUT,
                listed_output=LISTED,
                run=self.search,
                errors=(
                    ErrorCode.NO_INDEX,
                    ErrorCode.NOT_FOUND,
                    ErrorCode.FORBIDDEN,
                    ErrorCode.UNAVAILABLE,
                ),
                examples=(
                    {"arguments": {"query": "where are sessions closed?"}},
                    {"arguments": {"query": "Session.close", "output": "full", "top": 3}},
                    {"arguments": {"query": "open file", "type": "function", "calls": "open"}},
                    {"arguments": {"query": '"not found" -test', "path": "src/**", "lang": "py"}},
                ),
            ),
        )
