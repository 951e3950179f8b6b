"""The tool `grep_code`: every line with a text or a pattern, each with its enclosing declaration."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.answer_text import AnswerText, describe_page, limit_line_count, shorten_line
from cleats.toolsets.code.explore.declarations import DeclarationReader
from cleats.toolsets.code.explore.enclosing_names import find_enclosing_name
from cleats.toolsets.code.explore.paths import make_globs
from cleats.toolsets.code.explore.ripgrep import TextHit
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN

MAX_SHOWN_CHARS: Final = 140
"""Characters of a line that are shown."""

_TEXT_SUFFIXES: Final = (".md", ".rst", ".txt", ".json", ".lock", ".po", ".svg", ".csv", ".html", ".yml", ".yaml")


def order_paths(paths: Sequence[str]) -> list[str]:
    """Return paths with code first, then tests, then documents and data; each by name."""
    return sorted(paths, key=lambda path: (_classify_path(path), path))


def _classify_path(path: str) -> int:
    if path.endswith(_TEXT_SUFFIXES):
        return 2
    return 1 if re.search(TEST_PATH_PATTERN, path) else 0


def grep(
    repository: Repository, args: Mapping[str, Any], reader: DeclarationReader, _is_cancelled: Callable[[], bool]
) -> str:
    """Search the files as they are now.

    Raises:
        ToolError: INVALID_REQUEST, the pattern is not a regular expression.
    """
    pattern = args["pattern"]
    ignore_case = args["ignore_case"] if args.get("ignore_case") is not None else pattern == pattern.lower()
    hits, is_cut = ripgrep.search_lines(
        repository.root,
        pattern,
        is_regex=args["regex"],
        ignore_case=ignore_case,
        globs=make_globs(args),
        context=args["context"],
    )
    matches = [hit for hit in hits if hit.is_match]
    counts = Counter(hit.path for hit in matches)
    paths = order_paths(list(counts))
    total = f"{len(matches):,}{'+' if is_cut else ''}"
    if not matches:
        return _explain_nothing(args)
    if args["files_only"]:
        return _render_files(paths, counts, args, total)
    by_path: dict[str, list[TextHit]] = {path: [] for path in paths}
    for hit in hits:
        by_path[hit.path].append(hit)
    ordered = [hit for path in paths for hit in by_path[path]]
    lines = "line" if len(matches) == 1 else "lines"
    summary = f"{total} matching {lines} in {len(paths):,} {'file' if len(paths) == 1 else 'files'}"
    page = ordered[args["offset"] : args["offset"] + limit_line_count(args["tokens"])]
    # Only files that are shown are read. Names make the lines longer, so that no more of them fit than without.
    shown, _ = _add_lines(page, args, {})
    names = _find_owners(repository.root, page[:shown], reader)
    shown, answer = _add_lines(page[:shown], args, names)
    page_text = describe_page(shown, len(ordered), args["offset"], "lines")
    return answer.render(summary if shown == len(ordered) else f"{summary}; {page_text}")


def _explain_nothing(args: Mapping[str, Any]) -> str:
    where = f" in {args['path']}" if args.get("path") else ""
    text = f"No line matches {args['pattern']!r}{where}."
    if not args["regex"] and re.search(r"[|*+^$\\\[\]]", args["pattern"]):
        return f"{text} It was searched for as plain text; set regex=true for a regular expression."
    return f"{text} Try fewer characters, or find_code with words."


def _render_files(paths: Sequence[str], counts: Mapping[str, int], args: Mapping[str, Any], total: str) -> str:
    answer = AnswerText(args["tokens"])
    offset, shown = args["offset"], 0
    for path in paths[offset:]:
        if not answer.add_block([f"{path}: {counts[path]}"]):
            break
        shown += 1
    return answer.render(f"{total} matching lines; {describe_page(shown, len(paths), offset, 'files')}")


def _add_lines(
    page: Sequence[TextHit], args: Mapping[str, Any], names: Mapping[tuple[str, int], str]
) -> tuple[int, AnswerText]:
    """Return how many lines fit into an answer, and the answer."""
    answer = AnswerText(args["tokens"])
    shown, path, owner = 0, "", ""
    for hit in page:
        block = [] if hit.path == path else [hit.path]
        name = names.get((hit.path, hit.line), "")
        label = f" [{name}]" if name and (block or name != owner) else ""
        text = shorten_line(hit.text.strip() if not args["context"] else hit.text, MAX_SHOWN_CHARS)
        block.append(f" {hit.line}{':' if hit.is_match else '-'}{label} {text}")
        if not answer.add_block(block):
            break
        shown, path, owner = shown + 1, hit.path, name
    return shown, answer


def _find_owners(root: Path, hits: Sequence[TextHit], reader: DeclarationReader) -> dict[tuple[str, int], str]:
    """Return the names of the declarations around lines; files that were not parsed before are not parsed for this."""
    names: dict[tuple[str, int], str] = {}
    for path, group in groupby(hits, key=lambda hit: hit.path):
        file = reader.find_parsed(root, path)
        lines = file.lines if file else ripgrep.read_text(root / path).split("\n")
        is_code = not path.endswith(_TEXT_SUFFIXES)
        for hit in group:
            if file is not None:
                chunk = file.find_enclosing(hit.line)
                names[path, hit.line] = chunk.name if chunk else ""
            elif is_code and hit.line <= len(lines):
                names[path, hit.line] = find_enclosing_name(lines, hit.line)
    return names
