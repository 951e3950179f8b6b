"""Context packs: all that somebody needs to decide about a finding, and the file it may go to."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import usable
from cleats.toolsets.code.triage import batch

SUFFIX: Final = ".json"
PRIVATE: Final = ".git"

MOST: Final = 16 << 20
"""Bytes of a file that is looked into before it is replaced."""

_MARKS: Final = frozenset({"recordId", "generatedAt", "finding", "repoEvidence"})
"""What every pack has: only a file with these is replaced."""


def target(given: str, root: Path, folders: Sequence[Path]) -> Path:
    """Where a pack may be written, for a path from the root of the repository or an absolute one.

    Raises:
        ToolError: FORBIDDEN, it is outside of the folders or would replace something else;
            INVALID_REQUEST, it can be no file.
    """
    try:
        asked = root / usable(given)
        place = asked.parent.resolve() / asked.name
        fences = [folder.resolve() for folder in folders]
        existing = _status(place)
    except (OSError, ValueError, RuntimeError) as error:
        raise _refused(ErrorCode.INVALID_REQUEST, given, "is no path") from error
    inside = [fence for fence in fences if place != fence and place.is_relative_to(fence)]
    if not inside:
        raise _refused(
            ErrorCode.FORBIDDEN, given, "is neither in the repository nor in the data folder"
        )
    if any(PRIVATE in place.relative_to(fence).parts for fence in inside):
        raise _refused(ErrorCode.FORBIDDEN, given, "is in git's own folder")
    if place.suffix.lower() != SUFFIX:
        raise _refused(ErrorCode.INVALID_REQUEST, given, f"does not end in {SUFFIX}")
    if existing is not None and not _is_pack(place, existing.st_mode, existing.st_size):
        raise _refused(ErrorCode.FORBIDDEN, given, "is there, and is no context pack")
    return place


def write(place: Path, pack: dict[str, Any]) -> None:
    """Write a pack, whole or not at all.

    Raises:
        ToolError: INVALID_REQUEST, it cannot be written.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        batch.write(place, msgspec.json.format(msgspec.json.encode(pack)) + b"\n")
    except OSError as error:
        why = f"cannot be written: {error.strerror}"
        raise _refused(ErrorCode.INVALID_REQUEST, str(place), why) from error


def _status(place: Path) -> os.stat_result | None:
    try:
        return place.lstat()
    except FileNotFoundError:
        return None


def _is_pack(place: Path, mode: int, size: int) -> bool:
    if not stat.S_ISREG(mode) or size > MOST:
        return False
    try:
        found = msgspec.json.decode(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= _MARKS


def _refused(code: ErrorCode, given: str, why: str) -> ToolError:
    return ToolError(
        code,
        f"outPath: {given!r} {why}",
        hint="Name a new .json file in the repository, or leave it out: the answer has it all.",
    )
