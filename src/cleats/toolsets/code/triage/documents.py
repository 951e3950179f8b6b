"""The file that a caller names, and the JSON in it: one document, or one on each line."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.extract import readable
from cleats.toolsets.code.indexing.contents import NotAFileError, content

MOST: Final = 64 << 20
"""Bytes of a file that is read: more than any report of a scanner that was not a mistake."""

_MARK: Final = b"\xef\xbb\xbf"


@dataclass
class Documents:
    """What a file holds."""

    whole: list[tuple[int, Any]] = field(default_factory=list)
    """Each document, with the number of its line, or 0 when the file is one document."""
    broken: list[tuple[int, str]] = field(default_factory=list)
    """Lines that are no JSON, and why."""
    by_line: bool = False


def read(given: str, root: Path) -> Documents:
    """Read a file, named from the root of a repository or absolutely.

    Raises:
        ToolError: NOT_FOUND, there is none; INVALID_REQUEST, it is no file of JSON or too long.
    """
    return parsed(given, _data(given, root))


def _data(given: str, root: Path) -> bytes:
    try:
        place = (root / given).resolve(strict=True)
        status = place.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused(given, "is not a file", "Give the path of a file.")
        if status.st_size > MOST:
            raise _refused(
                given,
                f"has {status.st_size:,} bytes; {MOST:,} are the most",
                "Split it: findings are the same in one file or in several.",
            )
        return content(str(place)).data
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"inputPath: there is no file {given!r}",
            hint=f"Give a path that is absolute or begins in {root}.",
        ) from error
    except NotAFileError as error:
        raise _refused(given, "is not a file", "Give the path of a file.") from error
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is no path"
        raise _refused(given, f"cannot be read: {why}", "Give the path of a file.") from error


def parsed(given: str, data: bytes) -> Documents:
    """Read JSON or, when the whole is none, JSON line by line.

    Raises:
        ToolError: INVALID_REQUEST, it is neither.
    """
    text = readable(data).removeprefix(_MARK)
    document, problem = _decoded(text)
    if not problem:
        return Documents([(0, document)])
    found = Documents(by_line=True)
    for number, line in _lines(text):
        document, why = _decoded(line)
        if not why and not isinstance(document, dict | list):
            why = "is no object"
        if why:
            found.broken.append((number, why))
        else:
            found.whole.append((number, document))
    if found.whole:
        return found
    raise _refused(given, f"is not JSON: {problem}", "Give what the scanner printed, as JSON.")


def _lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(text.split(b"\n")):
        if line.strip():
            yield number, line


def _decoded(text: bytes) -> tuple[Any, str]:
    """A document, or why there is none."""
    if not text.strip():
        return None, "it is empty"
    try:
        return msgspec.json.decode(text), ""
    except RecursionError:
        return None, "it is nested too deep"
    except (msgspec.MsgspecError, ValueError) as error:
        return None, str(error)


def _refused(given: str, why: str, hint: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"inputPath: {given!r} {why}",
        hint=hint,
        details=[{"instancePath": "/inputPath", "keyword": "file", "message": why}],
    )
