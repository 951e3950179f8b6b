"""A file with its outline beside it, and the references of a name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, is_fragment_request
from cleats.console.highlighting import highlight_lines
from cleats.contract.errors import ToolError

LINES_PER_PAGE: Final = 1000
"""The lines that one page shows; a longer file has several."""

MAX_PAGE_BYTES: Final = 400_000

REFERENCE_TOKENS: Final = 6000
"""The budget of the answer that lists references: some two hundred of them."""

_OUTLINE_KINDS_HIDDEN: Final = frozenset({"module", "docstring", "comment", "file"})
_REFERENCE_PATTERN: Final = re.compile(r"\s+(\d+): (?:\[([^\]]*)\] ?)?(.*)")
_NAME_PATTERN: Final = re.compile(r"[\w$.]{1,200}")


@dataclass(frozen=True, slots=True)
class SymbolReference:
    """One place that uses a name."""

    line: int
    declaration: str
    """The declaration around it."""
    text: str


@dataclass(frozen=True, slots=True)
class FileReferences:
    """The places of one file that use a name."""

    path: str
    references: Sequence[SymbolReference]


async def show_file(console: CallerConsole, request: Request) -> Response:
    """Show a file from a line on, with its outline."""
    if not console.tools.has_tools("show_file"):
        raise HTTPException(404)
    params = request.query_params
    path, repository = params.get("path", ""), params.get("repo") or None
    line = _read_number(params.get("line", ""), 1)
    last_line = max(line, _read_number(params.get("end", ""), line))
    start = (line - 1) // LINES_PER_PAGE * LINES_PER_PAGE + 1
    answer = await console.tools.run(
        "show_file",
        path=path,
        repoPath=repository,
        startLine=start,
        endLine=start + LINES_PER_PAGE - 1,
        maxBytes=MAX_PAGE_BYTES,
    )
    text = answer["text"].removesuffix("\n")
    marked = range(line, last_line + 1) if "line" in params else ()
    values: dict[str, Any] = {
        "area": "search",
        "title": path.rpartition("/")[2],
        "path": answer["path"],
        "repository": repository or "",
        "lines": highlight_lines(text, path=answer["path"], first_line=answer["startLine"], marked_lines=marked),
        "file": answer,
        "outline": list(_list_outline(answer.get("chunks") or ())),
        "previous_line": start - LINES_PER_PAGE if start > 1 else None,
        "next_line": answer["endLine"] + 1 if answer["endLine"] < answer["totalLines"] else None,
        "name": params.get("name", ""),
        "references": None,
        "reference_error": None,
        "can_find_references": console.tools.has_tools("find_references"),
    }
    if values["name"] and values["can_find_references"]:
        values |= await find_references(console, values["name"], repository)
    return console.render(request, "file.html", values)


def _list_outline(chunks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the declarations of a file, indented by nesting."""
    ends: list[int] = []
    for chunk in sorted(chunks, key=lambda item: (item["startLine"], -item["endLine"])):
        if chunk["kind"] in _OUTLINE_KINDS_HIDDEN or chunk["mode"] == "extracted-prose":
            continue
        while ends and ends[-1] < chunk["startLine"]:
            ends.pop()
        name = chunk["name"] or chunk["headline"]
        yield {"kind": chunk["kind"], "name": name, "line": chunk["startLine"], "depth": min(len(ends), 4)}
        ends.append(chunk["endLine"])


async def show_references(console: CallerConsole, request: Request) -> Response:
    """Show the references of a name, for the panel beside a file."""
    if not console.tools.has_tools("find_references"):
        raise HTTPException(404)
    name, repository = request.query_params.get("name", ""), request.query_params.get("repo") or None
    values = {
        "area": "search",
        "title": f"References of {name}",
        "name": name,
        "repository": repository or "",
        **await find_references(console, name, repository),
    }
    template = "references.html" if is_fragment_request(request) else "references_page.html"
    return console.render(request, template, values)


async def find_references(console: CallerConsole, name: str, repository: str | None) -> dict[str, Any]:
    """Return the references of a name by file, the sentence above them, or what went wrong."""
    if not _NAME_PATTERN.fullmatch(name):
        return {"summary": "", "references": [], "reference_error": "This is not a name."}
    try:
        text = await console.tools.run("find_references", name=name, repo=repository, tokens=REFERENCE_TOKENS)
    except ToolError as error:
        return {"summary": "", "references": [], "reference_error": error.explanation}
    summary, _, body = text.partition("\n")
    return {"summary": summary, "references": parse_references(body), "reference_error": None}


def parse_references(text: str) -> list[FileReferences]:
    """Return the places that an answer of `find_references` lists."""
    files: list[tuple[str, list[SymbolReference]]] = []
    for row in text.splitlines():
        if match := _REFERENCE_PATTERN.fullmatch(row):
            if files:
                files[-1][1].append(SymbolReference(int(match[1]), match[2] or "", match[3]))
        elif row and not row.startswith((" ", "(")):
            files.append((row.rstrip(":"), []))
    return [FileReferences(path, references) for path, references in files if references]


def _read_number(text: str, default: int) -> int:
    return max(1, int(text)) if text.isdecimal() and len(text) < 9 else default


ROUTES = (
    ("GET", "/console/file", show_file),
    ("GET", "/console/references", show_references),
)
