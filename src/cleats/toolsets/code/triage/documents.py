"""Reads the input file of a caller: one JSON document, or one per line."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.extract import convert_to_utf8
from cleats.toolsets.code.index.file_reader import NotAFileError, read_content

MAX_FILE_BYTES: Final = 64 << 20
"""The largest file that is read; every genuine scanner report is smaller."""

_UTF8_BOM: Final = b"\xef\xbb\xbf"


@dataclass
class Documents:
    """The content of a file."""

    parsed: list[tuple[int, Any]] = field(default_factory=list)
    """Each document with its line number, or 0 if the file is a single document."""
    invalid_lines: list[tuple[int, str]] = field(default_factory=list)
    """Numbers of lines that are not valid JSON, with the reasons."""
    by_line: bool = False


def read_documents(input_path: str, root: Path) -> Documents:
    """Read a file whose path is absolute or relative to the root of a repository.

    Raises:
        ToolError: NOT_FOUND if there is no such file; INVALID_REQUEST if it is not a JSON file or
            too large.
    """
    return parse_documents(input_path, _read_bytes(input_path, root))


def _read_bytes(input_path: str, root: Path) -> bytes:
    try:
        path = (root / input_path).resolve(strict=True)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _build_input_error(input_path, "is not a file", "Give the path of a file.")
        if status.st_size > MAX_FILE_BYTES:
            raise _build_input_error(
                input_path,
                f"has {status.st_size:,} bytes; {MAX_FILE_BYTES:,} are the most",
                "Split it: findings are the same in one file or in several.",
            )
        return read_content(str(path)).data
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"inputPath: there is no file {input_path!r}",
            hint=f"Give a path that is absolute or begins in {root}.",
        ) from error
    except NotAFileError as error:
        raise _build_input_error(input_path, "is not a file", "Give the path of a file.") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is no path"
        raise _build_input_error(input_path, f"cannot be read: {reason}", "Give the path of a file.") from error


def parse_documents(input_path: str, data: bytes) -> Documents:
    """Parse JSON or, if that fails, JSON lines.

    Raises:
        ToolError: INVALID_REQUEST if the data is neither.
    """
    text = convert_to_utf8(data).removeprefix(_UTF8_BOM)
    document, problem = _decode_json(text)
    if not problem:
        return Documents([(0, document)])
    documents = Documents(by_line=True)
    for number, line in _iter_lines(text):
        document, reason = _decode_json(line)
        if not reason and not isinstance(document, dict | list):
            reason = "is no object"
        if reason:
            documents.invalid_lines.append((number, reason))
        else:
            documents.parsed.append((number, document))
    if documents.parsed:
        return documents
    raise _build_input_error(input_path, f"is not JSON: {problem}", "Give what the scanner printed, as JSON.")


def _iter_lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(text.split(b"\n")):
        if line.strip():
            yield number, line


def _decode_json(text: bytes) -> tuple[Any, str]:
    """Return a document and an empty text, or None and the reason for the failure."""
    if not text.strip():
        return None, "it is empty"
    try:
        return msgspec.json.decode(text), ""
    except RecursionError:
        return None, "it is nested too deep"
    except (msgspec.MsgspecError, ValueError) as error:
        return None, str(error)


def _build_input_error(input_path: str, reason: str, hint: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"inputPath: {input_path!r} {reason}",
        hint=hint,
        details=[{"instancePath": "/inputPath", "keyword": "file", "message": reason}],
    )
