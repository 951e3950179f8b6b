"""The tool `outline`: the declarations of a file or folder, or a map of the repository."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.answer_text import AnswerText
from cleats.toolsets.code.explore.declarations import (
    CONTAINER_KINDS,
    DeclarationReader,
    FileDeclarations,
    get_last_name,
)
from cleats.toolsets.code.explore.paths import resolve_file
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN

MAX_MAPPED_FILES: Final = 120
"""Files that are parsed for a map: the largest of each folder first."""

MAX_FOLDER_FILES: Final = 60
"""Files of a folder whose declarations are listed."""

NAMES_PER_FILE: Final = 8
"""Declarations of a file that a map or a folder names."""

_SHORT_KINDS: Final = {"constructor": "init", "function": "def", "method": "def", "interface": "iface"}


def outline(
    repository: Repository, args: Mapping[str, Any], reader: DeclarationReader, is_cancelled: Callable[[], bool]
) -> str:
    """Outline a file, a folder, or without a path the whole repository.

    Raises:
        ToolError: see `resolve_file`.
    """
    path, relative = resolve_file(repository.root, args.get("path") or ".")
    if path.is_file():
        return _outline_file(repository, relative, args["tokens"], reader)
    return _map_folder(repository.root, "" if relative == "." else relative, args["tokens"], reader, is_cancelled)


def _outline_file(repository: Repository, relative: str, tokens: int, reader: DeclarationReader) -> str:
    file = reader.read_file(repository.root, relative)
    if file is None:
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{relative} is not a text file that can be outlined.")
    top_level, members = _group_members(file)
    for depth in (2, 1, 0):
        answer = AnswerText(tokens)
        blocks = [_render_top_level(chunk, members[chunk.name], depth) for chunk in top_level]
        if all(answer.add_block(block) for block in blocks) or depth == 0:
            break
    more = "" if len(answer.lines) >= len(top_level) else " (cut; raise tokens)"
    return answer.render(f"{relative}: {len(file.lines)} lines, {len(file.declarations)} declarations{more}")


def _group_members(file: FileDeclarations) -> tuple[list[Chunk], dict[str, list[Chunk]]]:
    containers = {chunk.name for chunk in file.declarations if chunk.kind in CONTAINER_KINDS}
    top_level: list[Chunk] = []
    members: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in file.declarations:
        owner = chunk.name.rpartition(".")[0]
        if owner in containers:
            members[owner].append(chunk)
        elif not owner or chunk.kind in CONTAINER_KINDS or file.lang in {"markdown", "rst"}:
            top_level.append(chunk)
    nested = [chunk for group in members.values() for chunk in group if chunk.name in members]
    return [*top_level, *[chunk for chunk in nested if chunk not in top_level]], members


def _render_top_level(chunk: Chunk, members: Sequence[Chunk], depth: int) -> list[str]:
    head = f"{chunk.start_line} {_shorten_kind(chunk)} {chunk.name}"
    if chunk.kind not in CONTAINER_KINDS:
        return [f"{head}{_render_parameters(chunk) if depth == 2 else ''}"]
    bases = f"({', '.join(chunk.bases[:4])})" if chunk.bases else ""
    if depth == 0 or not members:
        return [f"{head}{bases}" + (f" {len(members)} members" if members else "")]
    if depth == 2:
        lines = [f" {member.start_line} {get_last_name(member.name)}{_render_parameters(member)}" for member in members]
        return [f"{head}{bases}", *lines]
    names = ", ".join(f"{get_last_name(member.name)}:{member.start_line}" for member in members)
    return [f"{head}{bases}: {names}"]


def _shorten_kind(chunk: Chunk) -> str:
    return _SHORT_KINDS.get(chunk.kind, chunk.kind)


def _render_parameters(chunk: Chunk) -> str:
    if chunk.kind not in {"function", "method", "constructor"}:
        return ""
    names = [parameter for parameter in chunk.params if parameter not in {"self", "cls", "this"}]
    text = ", ".join(names)
    return f"({text if len(text) <= 60 else text[:59] + '…'})"


def _map_folder(
    root: Path, folder: str, tokens: int, reader: DeclarationReader, is_cancelled: Callable[[], bool]
) -> str:
    """Map a folder: its files by how much others use what they declare."""
    paths = [path for path in ripgrep.list_files(root) if not folder or path.startswith(f"{folder}/")]
    if not paths:
        return f"{folder or 'The repository'} has no files that can be read."
    code = [path for path in paths if _is_code(path)]
    tests = [path for path in code if re.search(TEST_PATH_PATTERN, path)]
    sources = [path for path in code if path not in set(tests)] or code
    chosen = _choose_files(root, sources, MAX_MAPPED_FILES)
    files = reader.read_files(root, chosen, is_cancelled)
    importance = _weigh_files(list(files.values()))
    ranked = sorted(files.values(), key=lambda file: (-importance[file.path], file.path))
    answer = AnswerText(tokens)
    if not folder:
        answer.add_block([_summarize_folders(sources)])
    shown = 0
    for file in ranked:
        if not answer.add_block([f"{file.path} ({len(file.lines)})", *_render_names(file)]):
            break
        shown += 1
    counts = f"{len(paths):,} files, {len(sources):,} source, {len(tests):,} test"
    rest = len(sources) - shown
    footer = f"… {rest:,} more source files; outline a folder or a file for more" if rest > 0 else ""
    return answer.render(f"{folder or root.name}: {counts}; most used first", footer)


def _is_code(path: str) -> bool:
    from cleats.toolsets.code.discovery.content import classify_name  # noqa: PLC0415

    verdict = classify_name(path)
    return not verdict.reason and verdict.mode == "code" and bool(verdict.lang) and not path.endswith((".json", ".css"))


def _choose_files(root: Path, paths: Sequence[str], limit: int) -> list[str]:
    """Return the files to parse: the largest of each folder in turn, up to a limit."""
    if len(paths) <= limit:
        return list(paths)
    by_folder: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for path in paths:
        by_folder[path.rpartition("/")[0]].append((-_get_size(root / path), path))
    queues = [[path for _, path in sorted(entries)] for _, entries in sorted(by_folder.items())]
    chosen: list[str] = []
    depth = 0
    while len(chosen) < limit and any(len(queue) > depth for queue in queues):
        chosen += [queue[depth] for queue in queues if len(queue) > depth]
        depth += 1
    return sorted(chosen[:limit])


def _get_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _weigh_files(files: Sequence[FileDeclarations]) -> dict[str, float]:
    """Weigh each file by how many other files use a name that only it declares."""
    owners: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for chunk in file.declarations:
            owners[get_last_name(chunk.name)].add(file.path)
    weights: Counter[str] = Counter()
    for file in files:
        used = {get_last_name(name) for chunk in file.chunks for name in (*chunk.calls, *chunk.uses, *chunk.bases)}
        for name in used:
            declaring = owners.get(name, set()) - {file.path}
            if len(declaring) == 1:
                weights[next(iter(declaring))] += 1
    return {file.path: float(weights[file.path]) for file in files}


def _render_names(file: FileDeclarations) -> list[str]:
    top_level, members = _group_members(file)
    public = [chunk for chunk in top_level if not get_last_name(chunk.name).startswith("_")] or top_level
    ordered = sorted(
        public, key=lambda chunk: (-(len(members[chunk.name]) + (chunk.kind in CONTAINER_KINDS)), chunk.start)
    )
    names = [f"{get_last_name(chunk.name)}:{chunk.start_line}" for chunk in ordered[:NAMES_PER_FILE]]
    more = len(ordered) - len(names)
    return [f" {', '.join(names)}{f' +{more}' if more > 0 else ''}"] if names else []


def _summarize_folders(paths: Sequence[str]) -> str:
    counts = Counter(path.split("/", 1)[0] + "/" if "/" in path else "." for path in paths)
    return "folders: " + ", ".join(f"{folder} {count}" for folder, count in counts.most_common(12))
