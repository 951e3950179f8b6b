"""Lines of a file of a repository, and the hashes of the whole file, read in one pass with little memory.

A path is resolved through every link and must end at a regular file inside the repository; git's own folder, which may
hold passwords, is not shown. The file is then opened part by part without following any link, so that the file that is
read is the file that was checked.
"""

import errno
import stat
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.safe_paths import NotRegularFileError, open_file_below, resolve_path

GIT_FOLDER: Final = ".git"
MAX_SHOWN_PATH_CHARS: Final = 80
"""Characters of an unusable path that an error message shows."""


def resolve_file(root: Path, requested_path: str) -> Path:
    """Resolve a path to a file, relative to the root of the repository.

    Raises:
        ToolError: FORBIDDEN outside of it; NOT_FOUND, there is no such file; INVALID_REQUEST, it is not a regular file.
    """
    try:
        resolved = resolve_path(root, requested_path)
    except ValueError:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{requested_path[:MAX_SHOWN_PATH_CHARS]!r} is not a valid path.",
            hint="Give the path of a file, from the root of the repository.",
        ) from None
    if not resolved.is_relative_to(root):
        raise _forbidden_path_error(requested_path, "is outside the repository")
    path = resolved.relative_to(root)
    if path.parts[:1] == (GIT_FOLDER,):
        raise _forbidden_path_error(requested_path, "is in git's own folder")
    _check_regular_file(root, resolved, requested_path)
    return path


def open_file(root: Path, path: Path) -> BinaryIO:
    """Open a file that `resolve_file` returned, if it has not been replaced.

    Raises:
        ToolError: as `resolve_file` does.
    """
    try:
        return open_file_below(root, path)
    except NotRegularFileError:
        raise _invalid_file_error(str(path), "is not a regular file") from None
    except OSError as error:
        _raise_open_error(error, str(path))


def _check_regular_file(root: Path, path: Path, requested_path: str) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        _raise_open_error(error, requested_path, _find_similar_file(root, path))
    if stat.S_ISDIR(mode):
        raise _invalid_file_error(requested_path, "is a folder")
    if not stat.S_ISREG(mode):
        raise _invalid_file_error(requested_path, "is not a regular file")


def _find_similar_file(root: Path, path: Path) -> str:
    """Return the path of the file with the most similar name in the same folder, or an empty string."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""
    similar_names = get_close_matches(path.name, names, n=1)
    return (path.parent.relative_to(root) / similar_names[0]).as_posix() if similar_names else ""


def _raise_open_error(error: OSError, requested_path: str, similar_path: str = "") -> NoReturn:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        question = f"Did you mean {similar_path!r}? " if similar_path else ""
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"The file {requested_path!r} does not exist in the repository.",
            hint=f"{question}Give its path from the root of the repository; `search` finds files.",
        ) from None
    if error.errno in (errno.EACCES, errno.EPERM):
        raise _forbidden_path_error(requested_path, "cannot be read by this server: permission denied") from None
    if error.errno == errno.ELOOP:
        raise _forbidden_path_error(requested_path, "was replaced by a link") from None
    raise _invalid_file_error(requested_path, f"cannot be opened: {error.strerror}") from None


def _forbidden_path_error(requested_path: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{requested_path!r} {reason}.",
        hint="Only files inside the repository can be shown; set repoPath to use another repository.",
    )


def _invalid_file_error(requested_path: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{requested_path!r} {reason}.",
        hint="Give the path of a text file, from the root of the repository.",
    )


MAX_FILE_BYTES: Final = 256 << 20
"""Bytes of the largest file that is shown: the whole file is read for its hash."""

SNIFF_BYTES: Final = 8 << 10
"""Bytes that are examined to distinguish text from binary data, as many as in git."""

READ_CHUNK_BYTES: Final = 1 << 20

_decoder = getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class LineSpan:
    """The requested lines, counted from 1; the end is included, 0 means the last line."""

    start: int = 1
    end: int = 0
    max_bytes: int = READ_CHUNK_BYTES
    """Maximum number of bytes of text."""


@dataclass(frozen=True, slots=True)
class FileExcerpt:
    """The text of a span, and facts about the whole file."""

    text: str
    is_utf8: bool
    """False if some bytes are shown as U+FFFD."""
    start: int
    end: int
    """The last line of which the text contains anything; before `start` if the text is empty."""
    lines: int
    """The number of lines of the whole file."""
    size: int
    sha256: str
    digest: bytes
    """The hash as stored in the index."""
    truncated: bool


def read_excerpt(file: BinaryIO, span: LineSpan, should_stop: Callable[[], bool]) -> FileExcerpt:
    """Read a file to its end, and keep the lines of a span.

    Raises:
        ToolError: INVALID_REQUEST, it is not text, too large, or has fewer lines.
    """
    reader = _ExcerptReader(span)
    while not should_stop() and (block := file.read(READ_CHUNK_BYTES)):
        reader.feed(block)
    return reader.build_excerpt()


class _ExcerptReader:
    def __init__(self, span: LineSpan) -> None:
        self._span = span
        self._sha, self._index_hash = sha256(), blake2b(digest_size=16)
        self._size = 0
        self._line = 1
        """The line that the next byte belongs to."""
        self._ends_line = True
        self._content = bytearray()
        self._is_full = False

    def feed(self, block: bytes) -> None:
        if not self._size and b"\0" in block[:SNIFF_BYTES]:
            raise _unshowable_error("It is binary", "Only text is shown.")
        self._size += len(block)
        if self._size > MAX_FILE_BYTES:
            raise _unshowable_error(f"It has more than {MAX_FILE_BYTES >> 20} MiB", "Files of that size are not shown.")
        self._sha.update(block)
        self._index_hash.update(block)
        self._keep_span(block)
        self._line += block.count(b"\n")
        self._ends_line = block.endswith(b"\n")

    def _keep_span(self, block: bytes) -> None:
        first, last = self._span.start, self._span.end
        if self._is_full or (last and self._line > last):
            return
        start_offset = _find_line_start(block, first - self._line)
        if start_offset is None:
            return
        end_offset = _find_line_start(block, last + 1 - self._line) if last else None
        self._content += block[start_offset:end_offset]
        self._is_full = len(self._content) > self._span.max_bytes

    def build_excerpt(self) -> FileExcerpt:
        lines = self._line - 1 if self._ends_line else self._line
        start = self._span.start
        if start > max(lines, 1):
            line_text = "1 line" if lines == 1 else f"{lines:,} lines"
            raise _unshowable_error(f"It has only {line_text}", f"Start at line {max(lines, 1)} or before.")
        raw = self._trim_to_limit()
        count = raw.count(b"\n") + (not raw.endswith(b"\n")) if raw else 0
        text = _decoder(errors="replace").decode(raw, final=not self._is_full)
        return FileExcerpt(
            text=text,
            is_utf8=raw.startswith(text.encode()),
            start=start,
            end=start + count - 1,
            lines=lines,
            size=self._size,
            sha256=self._sha.hexdigest(),
            digest=self._index_hash.digest(),
            truncated=self._is_full,
        )

    def _trim_to_limit(self) -> bytes:
        """Return the content that fits: whole lines, or as much of the first line as possible."""
        if not self._is_full:
            return bytes(self._content)
        prefix = bytes(self._content[: self._span.max_bytes])
        lines_end = prefix.rfind(b"\n") + 1
        return prefix[:lines_end] if lines_end else prefix


def _find_line_start(block: bytes, breaks: int) -> int | None:
    """Return the offset after a number of line breaks, or None if the block has fewer."""
    offset = 0
    for _ in range(max(breaks, 0)):
        offset = block.find(b"\n", offset) + 1
        if not offset:
            return None
    return offset


def _unshowable_error(reason: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_REQUEST, f"The file cannot be shown. {reason}.", hint=hint)
