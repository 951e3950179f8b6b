"""The tool `show_file`: lines of a file as it is now, and the indexed chunks at those lines."""

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context
from cleats.toolsets.code.maintenance.context import MaintenanceTool
from cleats.toolsets.code.maintenance.excerpt import FileExcerpt, LineSpan, open_file, read_excerpt, resolve_file
from cleats.toolsets.code.repository import Repository

MAX_UNASKED_LINES, MAX_UNASKED_BYTES = 500, 64_000
"""Lines and bytes of text in an answer to a call without endLine: about what a client accepts."""

MAX_SUGGESTIONS: Final = 3
"""Files that are suggested for a missing one."""

MISSING_FILE_HINT: Final = (
    "The file is in the index but not on disk: it was deleted, or it is a triage record, "
    "which `search` shows with mode=records and output=full."
)
"""Hint for a missing path that a search may just have returned."""

_LOCATION_PATTERN: Final = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:[-:](?P<end>\d+))?")
"""A location as search prints it, which is not a path."""


class ShowTool(MaintenanceTool):
    """The tool that shows files of repositories."""

    async def show(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._environment.resolve_repository(args, context)
        span = _parse_span(args)
        stop_event = threading.Event()
        try:
            work = partial(self._read_file, repository, args["path"], span, stop_event.is_set)
            answer, excerpt = await to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            stop_event.set()
        if excerpt.end < excerpt.lines and (excerpt.truncated or _is_open_ended(args)):
            answer |= {"truncated": True, "nextLine": excerpt.end + 1}
        if answer["truncated"]:
            context.warn("file_cut", _explain_cut(answer))
        if not excerpt.is_utf8:
            context.warn("not_utf8", "The file is not UTF-8; some bytes are shown as U+FFFD.")
        if answer["index"] and answer["index"]["state"] == "changed":
            context.warn(
                "file_changed",
                "The file has changed since it was indexed; the chunks are from the indexed version.",
                hint="Call build_index with incremental=true.",
            )
        return answer

    def _read_file(
        self, repository: Repository, requested_path: str, span: LineSpan, should_stop: Callable[[], bool]
    ) -> tuple[dict[str, Any], FileExcerpt]:
        try:
            path = resolve_file(repository.root, requested_path)
        except ToolError as error:
            raise self._add_suggestions(error, repository, requested_path) from None
        from cleats.toolsets.code.discovery.tree import escape_path  # noqa: PLC0415

        with open_file(repository.root, path) as file:
            excerpt = read_excerpt(file, span, should_stop)
        index, chunks = self._find_chunks(repository, path, excerpt)
        answer = {
            "path": escape_path(path.as_posix()),
            "startLine": excerpt.start,
            "endLine": excerpt.end,
            "totalLines": excerpt.lines,
            "bytes": excerpt.size,
            "text": excerpt.text,
            "sha256": excerpt.sha256,
            "truncated": excerpt.truncated,
            "index": index,
            "chunks": chunks,
        }
        return answer, excerpt

    def _find_chunks(
        self, repository: Repository, path: Path, excerpt: FileExcerpt
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        lease = self._environment.indexes.open_store(repository).lease_current()
        if lease is None:
            return None, []
        # Only an index needs SQLite, which a server does not load at its start.
        from cleats.toolsets.code.discovery.tree import escape_path  # noqa: PLC0415
        from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415
        from cleats.toolsets.code.search.hit_details import CatalogueReader  # noqa: PLC0415

        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            name = escape_path(path.as_posix())
            hashes = list(catalogue.connection.execute("SELECT hash FROM files WHERE path = ?", (name,)))
            rows = CatalogueReader(catalogue).find_overlapping(name, excerpt.start, max(excerpt.end, 1))
        state = "absent" if not hashes else "same" if hashes[0][0] == excerpt.digest else "changed"
        chunks = [
            {
                "id": row.key,
                "mode": row.mode,
                "kind": row.kind,
                "name": row.name,
                "startLine": row.start_line,
                "endLine": row.end_line,
                "headline": row.headline,
            }
            for row in rows
        ]
        return {"generation": lease.name, "state": state}, chunks

    def _add_suggestions(self, error: ToolError, repository: Repository, requested_path: str) -> ToolError:
        """Return the error with suggestions: similar files of the index, or the line arguments."""
        if error.code is ErrorCode.NOT_FOUND and (location := _LOCATION_PATTERN.fullmatch(requested_path)):
            lines = f"startLine {location['start']}, endLine {location['end'] or location['start']}"
            hint = f"Give the lines as separate arguments: path {location['path']}, {lines}."
            return ToolError(error.code, error.message, hint=hint)
        if error.code is not ErrorCode.NOT_FOUND:
            return error
        lease = self._environment.indexes.open_store(repository).lease_current()
        if lease is None:
            return error
        from cleats.toolsets.code.discovery.tree import escape_path  # noqa: PLC0415
        from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415

        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            rows = catalogue.connection.execute(
                "SELECT path FROM files WHERE path = ?1 OR substr(path, -length(?1) - 1) = '/' || ?1 ORDER BY "
                "length(path), path LIMIT ?2",
                (escape_path(Path(requested_path).name), MAX_SUGGESTIONS),
            )
            similar_paths = [path for (path,) in rows]
        if not similar_paths:
            return error
        if Path(requested_path).as_posix() in similar_paths:
            return ToolError(error.code, error.message, hint=MISSING_FILE_HINT)
        return ToolError(error.code, error.message, hint=f"Did you mean {' or '.join(similar_paths)}?")


def _is_open_ended(args: Mapping[str, Any]) -> bool:
    return args.get("endLine") is None and not (args.get("startLine") and args["context"])


def _explain_cut(answer: Mapping[str, Any]) -> str:
    if "nextLine" not in answer:
        return f"Line {answer['endLine']} is cut; a larger maxBytes shows more of it."
    shown = f"Lines {answer['startLine']}-{answer['endLine']} of {answer['totalLines']} are shown"
    return f"{shown}; continue with startLine={answer['nextLine']}."


def _parse_span(args: Mapping[str, Any]) -> LineSpan:
    """Return the requested lines: a start without an end extends as far as an answer should.

    With context, a start alone is a line to look around.
    """
    start, end, context_lines = args.get("startLine"), args.get("endLine"), args["context"]
    if start and end and end < start:
        message = f"endLine {end} comes before startLine {start}."
        raise ToolError(ErrorCode.INVALID_REQUEST, message, hint="Lines are counted from 1, and both are included.")
    first = max((start or 1) - context_lines, 1)
    if _is_open_ended(args):
        return LineSpan(first, first + MAX_UNASKED_LINES - 1, min(args["maxBytes"], MAX_UNASKED_BYTES))
    return LineSpan(first, (end or start or 1) + context_lines, args["maxBytes"])
