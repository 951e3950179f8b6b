"""The tool `show_file`: lines of a file as it is now, and the chunks that the index has there."""

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Tool, arguments
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.upkeep import fence
from cleats.toolsets.code.upkeep.excerpt import Excerpt, Span, read
from cleats.toolsets.code.upkeep.forms import COUNT, FLAG, TEXT, either, many, record
from cleats.toolsets.code.upkeep.site import Site

USUAL: Final = 256 << 10
MOST: Final = 4 << 20
"""Bytes of text in one answer: without being asked, and at most."""

ALIKE: Final = 3
"""Files that are suggested for one that is not there."""

GONE: Final = (
    "The index has it, the disk has not: it is gone since, or it is a record, "
    "whose text `search` gives with mode=records and output=full."
)
"""What is said of a path that a search may just have answered with."""

_PLACE: Final = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:[-:](?P<end>\d+))?")
"""A place as search prints it, which is no path."""

_LINE: Final = {"type": "integer", "minimum": 1}

INPUT: Final = arguments(
    {
        "path": {
            **TEXT,
            "minLength": 1,
            "description": "The file, from the root of the repository; or absolute, inside it.",
        },
        "startLine": {**_LINE, "description": "The first line, counted from 1."},
        "endLine": {**_LINE, "description": "The last line, included; the file's without it."},
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": 10_000,
            "default": 0,
            "description": "Lines more before and after.",
        },
        "maxBytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST,
            "default": USUAL,
            "description": "Bytes of text to give at most; it is cut after a whole line.",
        },
        "repoPath": REPO_PATH,
    },
    required=["path"],
)

SHOWN: Final = record(
    path={**TEXT, "description": "From the root of the repository, wherever links led."},
    startLine=_LINE,
    endLine={**COUNT, "description": "The last line that is shown; 0 in an empty file."},
    totalLines=COUNT,
    bytes={**COUNT, "description": "Of the whole file."},
    text=TEXT,
    sha256={**TEXT, "description": "Of the whole file."},
    truncated={**FLAG, "description": "Whether lines that were asked for did not fit."},
    index=either(
        "What the index knows of the file; null without an index.",
        generation=TEXT,
        state={
            "enum": ["same", "changed", "absent"],
            "description": (
                "Whether the file is as it was indexed. When it has changed, the lines of the "
                "chunks are those of then."
            ),
        },
    ),
    chunks=many(
        record(
            id=TEXT, mode=TEXT, kind=TEXT, name=TEXT, startLine=_LINE, endLine=_LINE, headline=TEXT
        ),
        "The chunks of the index that have any of the lines.",
    ),
)


class ShowTool:
    """Shows files of repositories."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one call."""
        repository = self._site.repository(given, context)
        span = _span(given)
        given_up = threading.Event()
        try:
            work = partial(self._shown, repository, given["path"], span, given_up.is_set)
            shown, excerpt = await to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            given_up.set()
        if not excerpt.is_utf8:
            context.warn("not_utf8", "The file is not UTF-8; some bytes are shown as U+FFFD.")
        if shown["index"] and shown["index"]["state"] == "changed":
            context.warn(
                "file_changed",
                "The file has changed since it was indexed; the chunks are those of then.",
                hint="Call build_index with incremental=true.",
            )
        return shown

    def _shown(
        self, repository: Repository, given: str, span: Span, stopped: Callable[[], bool]
    ) -> tuple[dict[str, Any], Excerpt]:
        try:
            path = fence.inside(repository.root, given)
        except ToolError as error:
            raise self._advised(error, repository, given) from None
        from cleats.toolsets.code.discovery.tree import readable  # noqa: PLC0415

        with fence.opened(repository.root, path) as file:
            excerpt = read(file, span, stopped)
        index, chunks = self._indexed(repository, path, excerpt)
        shown = {
            "path": readable(path.as_posix()),
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
        return shown, excerpt

    def _indexed(
        self, repository: Repository, path: Path, excerpt: Excerpt
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        lease = self._site.indexes.shelf(repository).current()
        if lease is None:
            return None, []
        # Only an index needs SQLite, and a server starts without one.
        from cleats.toolsets.code.discovery.tree import readable  # noqa: PLC0415
        from cleats.toolsets.code.search.details import Reading  # noqa: PLC0415
        from cleats.toolsets.code.store.catalogue import Catalogue  # noqa: PLC0415

        with lease, Catalogue.open(lease.catalogue) as catalogue:
            name = readable(path.as_posix())
            hashes = list(
                catalogue.connection.execute("SELECT hash FROM files WHERE path = ?", (name,))
            )
            rows = Reading(catalogue).overlapping(name, excerpt.start, max(excerpt.end, 1))
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

    def _advised(self, error: ToolError, repository: Repository, given: str) -> ToolError:
        """The error, with files of the index, or lines, that may have been meant."""
        if error.code is ErrorCode.NOT_FOUND and (place := _PLACE.fullmatch(given)):
            lines = f"startLine {place['start']}, endLine {place['end'] or place['start']}"
            hint = f"Lines are arguments of their own: path {place['path']}, {lines}."
            return ToolError(error.code, error.message, hint=hint)
        lease = self._site.indexes.shelf(repository).current()
        if lease is None or error.code is not ErrorCode.NOT_FOUND:
            if lease is not None:
                lease.close()
            return error
        from cleats.toolsets.code.discovery.tree import readable  # noqa: PLC0415
        from cleats.toolsets.code.store.catalogue import Catalogue  # noqa: PLC0415

        with lease, Catalogue.open(lease.catalogue) as catalogue:
            found = catalogue.connection.execute(
                "SELECT path FROM files"
                " WHERE path = ?1 OR substr(path, -length(?1) - 1) = '/' || ?1"
                " ORDER BY length(path), path LIMIT ?2",
                (readable(Path(given).name), ALIKE),
            )
            alike = [path for (path,) in found]
        if not alike:
            return error
        if Path(given).as_posix() in alike:
            return ToolError(error.code, error.message, hint=GONE)
        return ToolError(error.code, error.message, hint=f"Did you mean {' or '.join(alike)}?")

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="show_file",
                version=2,
                title="Show a file",
                description=(
                    "Read lines of a text file in a repository, as they are on the disk now, "
                    "with the functions or sections that the index has there. Give the file and"
                    " the lines of a search hit, and context for more around it. Works without "
                    "an index."
                ),
                input=INPUT,
                output=SHOWN,
                run=self.show,
                errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN),
                examples=(
                    {"arguments": {"path": "README.md"}},
                    {"arguments": {"path": "src/app.py", "startLine": 10, "endLine": 40}},
                    {"arguments": {"path": "src/app.py", "startLine": 25, "context": 5}},
                ),
            ),
        )


def _span(given: Mapping[str, Any]) -> Span:
    """The lines that are meant: a start without an end goes to the end of the file.

    With context, a start alone is a place to look around.
    """
    start, end, around = given.get("startLine"), given.get("endLine"), given["context"]
    if start and end and end < start:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"endLine {end} comes before startLine {start}.",
            hint="Lines are counted from 1, and both are included.",
        )
    if start and around and not end:
        end = start
    return Span(max((start or 1) - around, 1), end + around if end else 0, given["maxBytes"])
