"""The tools `read_symbol` and `read_lines`: the text of a declaration, and the lines of a file."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.kinds import PROTOTYPE_MODIFIER
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.answer_text import MIN_LINE_COUNT, AnswerText, limit_line_count, number_lines
from cleats.toolsets.code.explore.declarations import (
    CONTAINER_KINDS,
    DeclarationReader,
    FileDeclarations,
    get_last_name,
    matches_name,
    render_signature,
)
from cleats.toolsets.code.explore.grep_code import order_paths
from cleats.toolsets.code.explore.paths import make_globs, resolve_file
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN

MAX_CANDIDATE_FILES: Final = 60
"""Files that are parsed to find the declarations of a name."""

MAX_LISTED_CANDIDATES: Final = 25

DEFAULT_LINE_COUNT: Final = 60
"""Lines that `read_lines` shows, unless the caller gives an end."""

_NAME_SEPARATOR: Final = re.compile(r",\s*(?![^(<\[]*[)>\]])")
"""A comma between names, not one between the parameters of a name."""

_DECLARING_WORDS: Final = (
    "def class func function fn struct enum trait interface type const let var val fun object module namespace impl"
    " macro_rules! union static record protocol extension typealias define CREATE"
)


class FoundDeclaration(NamedTuple):
    """A declaration and its file."""

    file: FileDeclarations
    chunk: Chunk


def split_symbol(name: str) -> list[str]:
    """Return the parts of a qualified name; every separator of every language counts."""
    cleaned = name.strip().removesuffix("()").strip("`'\" ")
    return [part for part in re.split(r"::|->|[.#/\\]", cleaned) if part]


def find_declarations(
    repository: Repository,
    name: str,
    reader: DeclarationReader,
    globs: Sequence[str] = (),
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[FoundDeclaration]:
    """Return the declarations with a name, or whose qualified name ends with it; code before tests.

    Raises:
        ToolError: INVALID_REQUEST, the name is empty.
    """
    parts = split_symbol(name)
    if not parts:
        raise ToolError(ErrorCode.INVALID_REQUEST, "The name is empty.", hint="Give a name such as Session.close.")
    paths = _find_candidate_paths(repository, parts[-1], globs)
    files = reader.read_files(repository.root, paths[:MAX_CANDIDATE_FILES], is_cancelled).values()
    for ignore_case in (False, True):
        found = [
            FoundDeclaration(file, chunk)
            for file in files
            for chunk in file.declarations
            if matches_name(chunk, parts, ignore_case=ignore_case)
        ]
        if found:
            return found
    return [] if len(parts) == 1 else find_declarations(repository, parts[-1], reader, globs, is_cancelled)


def _find_candidate_paths(repository: Repository, last_name: str, globs: Sequence[str]) -> list[str]:
    """Return files that may declare a name: first those where a declaring word comes before it."""
    escaped = re.escape(last_name)
    words = "|".join(re.escape(word) for word in _DECLARING_WORDS.split())
    declaring = rf"\b(?:{words})\b.{{0,80}}\b{escaped}\b|^\s*(?:[\w<>\[\],.*&:?]+\s+)*[*&]?{escaped}\s*(?:[(<=:{{]|$)"
    hits, _ = ripgrep.search_lines(repository.root, declaring, is_regex=True, ignore_case=True, globs=globs)
    return order_paths(list({hit.path for hit in hits}))


def read_symbol(
    repository: Repository, args: Mapping[str, Any], reader: DeclarationReader, is_cancelled: Callable[[], bool]
) -> str:
    """Return the text of declarations, or the candidates for a name that too many have.

    Raises:
        ToolError: NOT_FOUND, nothing has any of the names.
    """
    names = [name for name in _NAME_SEPARATOR.split(args["name"]) if name.strip()] or [args["name"]]
    answer = AnswerText(args["tokens"])
    line_count = max(MIN_LINE_COUNT, limit_line_count(args["tokens"]) // len(names))
    unknown_names = []
    for name in names:
        found = find_declarations(repository, name, reader, make_globs(args), is_cancelled)
        if found:
            _add_found(answer, found, line_count)
        else:
            unknown_names.append(name.strip())
    if len(unknown_names) == len(names):
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"No declaration is named {' or '.join(map(repr, unknown_names))}.",
            hint="Try a part of the name with find_code, or grep_code for the text.",
        )
    return answer.render(footer=f"Not found: {', '.join(unknown_names)}" if unknown_names else "")


def _add_found(answer: AnswerText, found: Sequence[FoundDeclaration], line_count: int) -> None:
    """Add the declarations that are meant, or the candidates with their places if their text would be too long."""
    meant = _choose_meant(found)
    if len(meant) > 1 and sum(_count_lines(item) for item in meant) > line_count:
        shown = [_describe_location(item) for item in found[:MAX_LISTED_CANDIDATES]]
        more = f" ({len(found) - len(shown)} more)" if len(found) > len(shown) else ""
        head = f"{len(found)} declarations match{more}; name one with its class, or give path:"
        answer.add_block([head, *shown])
        return
    others = [item for item in found if item not in meant]
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        answer.add_block([f"also: {', '.join(_describe_place(item) for item in others[:5])}{more}"])
    for item in meant:
        _add_declaration(answer, item, line_count)


def _choose_meant(found: Sequence[FoundDeclaration]) -> list[FoundDeclaration]:
    """Return the least nested declarations among those with a body outside of tests."""
    bodies = [item for item in found if PROTOTYPE_MODIFIER not in item.chunk.modifiers] or list(found)
    candidates = [item for item in bodies if TEST_PATH_PATTERN.search(item.file.path) is None] or bodies
    depth = min(item.chunk.name.count(".") for item in candidates)
    return [item for item in candidates if item.chunk.name.count(".") == depth]


def _count_lines(item: FoundDeclaration) -> int:
    return item.chunk.end_line - item.chunk.start_line + 1


def _describe_place(item: FoundDeclaration) -> str:
    return f"{item.file.path}:{item.chunk.start_line}"


def _describe_location(item: FoundDeclaration) -> str:
    signature = render_signature(item.chunk, 100)
    return f"{_describe_place(item)} {item.chunk.kind} {item.chunk.name}{f'  {signature}' if signature else ''}"


def _add_declaration(answer: AnswerText, item: FoundDeclaration, line_count: int) -> None:
    chunk, lines = item.chunk, item.file.lines
    last = min(chunk.end_line, len(lines))
    answer.add_block([f"{item.file.path}:{chunk.start_line}-{last} {chunk.kind} {chunk.name}"])
    numbered = number_lines(lines[chunk.start_line - 1 : last], chunk.start_line)
    if len(numbered) <= line_count and answer.add_block(numbered):
        return
    members = _list_members(item) if chunk.kind in CONTAINER_KINDS else []
    if members:
        head = number_lines(lines[chunk.start_line - 1 : chunk.start_line + 7], chunk.start_line)
        answer.add_block([*head, "members:"])
        for position, member in enumerate(members):
            if not answer.add_block([member]):
                answer.lines.append(f" … {len(members) - position} more members")
                return
        return
    for position, line in enumerate(numbered):
        if position == line_count or not answer.add_block([line]):
            rest = f"read_lines {item.file.path} start={chunk.start_line + position}"
            answer.lines.append(f"… {len(numbered) - position} more lines; {rest}")
            return


def _list_members(item: FoundDeclaration) -> list[str]:
    prefix = f"{item.chunk.name}."
    return [
        f" {chunk.start_line}-{chunk.end_line} {render_signature(chunk, 110) or get_last_name(chunk.name)}"
        for chunk in item.file.declarations
        if chunk.name.startswith(prefix) and "." not in chunk.name[len(prefix) :]
    ]


def read_lines(
    repository: Repository,
    args: Mapping[str, Any],
    reader: DeclarationReader,
    _is_cancelled: Callable[[], bool] = lambda: False,
) -> str:
    """Return numbered lines of a file.

    Raises:
        ToolError: NOT_FOUND or FORBIDDEN, see `resolve_file`; INVALID_REQUEST, it is not a text file.
    """
    path, relative = resolve_file(repository.root, args["path"])
    if path.is_dir():
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{relative} is a folder.", hint="Use outline for folders.")
    file = reader.read_file(repository.root, relative)
    if file is None:
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{relative} is not a text file that may be shown.")
    lines = file.lines
    first = min(args["start"], len(lines))
    last = min(args.get("end") or first + DEFAULT_LINE_COUNT - 1, len(lines))
    answer = AnswerText(args["tokens"])
    shown = first - 1
    for line in number_lines(lines[first - 1 : last], first):
        if not answer.add_block([line]):
            break
        shown += 1
    more = f"; next: start={shown + 1}" if shown < len(lines) else ""
    return answer.render(f"{relative} lines {first}-{shown} of {len(lines)}{more}")
