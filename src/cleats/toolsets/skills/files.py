"""The files of a skill: found, fenced and read whole, while others may be writing them.

Nothing outside the skill's own folder is ever read, whatever a path or a link in it says.
"""

import logging
import os
import posixpath
import time
from collections.abc import Iterator
from mimetypes import MimeTypes
from typing import NamedTuple

from cleats.contract.errors import ErrorCode
from cleats.contract.pathnames import usable
from cleats.toolsets.skills.errors import BundledFileError, UnreadableSkillError
from cleats.toolsets.skills.frontmatter import BadHeaderError, parse
from cleats.toolsets.skills.reading import LARGEST, is_young, read_stamped
from cleats.toolsets.skills.scan import SKIPPED
from cleats.toolsets.skills.skill import Skill, is_speakable

log = logging.getLogger(__name__)

TRIES = 20
"""Reads of a file that is never quiet."""

PAUSE = 0.01
"""Seconds between two reads of a file that is being written: an editor needs one or two."""

_TYPES = MimeTypes(filenames=())  # not the machine's own table: the same everywhere
for _type, _ending in (
    ("text/markdown", ".md"),
    ("text/x-shellscript", ".sh"),
    ("text/x-typescript", ".ts"),
    ("application/yaml", ".yaml"),
    ("application/yaml", ".yml"),
    ("application/toml", ".toml"),
):
    _TYPES.add_type(_type, _ending)


class BundledFile(NamedTuple):
    """A file of a skill: its path within, with `/`, and on disk."""

    below: str
    path: str
    size: int


def media_type(name: str) -> str:
    """What a file is, by its name."""
    return _TYPES.guess_type(name)[0] or "application/octet-stream"


def load_text(skill: Skill) -> str:
    """The whole SKILL.md as it is now.

    A file that was written a moment ago is read until it has been quiet for a moment, so that
    nobody gets the half of it.

    Raises:
        FileNotFoundError: it is gone.
        UnreadableSkillError: it cannot be read, or is no skill any more.
    """
    tries = 0
    while True:
        tries += 1
        try:
            data, stamp = read_stamped(skill.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            log.exception("skill.unreadable path=%s", skill.path)
            raise UnreadableSkillError(skill.path, error.strerror or str(error)) from None
        try:
            text = data.decode()
            parse(text)
        except (UnicodeDecodeError, BadHeaderError) as error:
            if not is_young(skill.path):
                reason = str(error) if isinstance(error, BadHeaderError) else "it is not UTF-8"
                log.exception("skill.unreadable path=%s", skill.path)
                raise UnreadableSkillError(skill.path, reason) from None
        else:
            # One that is rewritten faster than we can look is as good now as it will ever be.
            if stamp.modified != -1 or tries >= TRIES:
                return text
        time.sleep(PAUSE)


def walk(skill: Skill, most: int) -> list[BundledFile]:
    """The files of a skill, sorted by path; one more than `most` says that there are others."""
    return sorted(_few(_walk(skill.folder, "", os.path.realpath(skill.folder)), most + 1))


def _few(files: Iterator[BundledFile], most: int) -> Iterator[BundledFile]:
    for number, file in enumerate(files):
        if number == most:
            return
        yield file


def _walk(folder: str, below: str, fence: str) -> Iterator[BundledFile]:
    for entry in _entries(folder):
        path = f"{below}{entry.name}"
        try:
            if entry.is_symlink() and not _is_within(os.path.realpath(entry.path), fence):
                continue
            if entry.is_file():
                yield BundledFile(path, entry.path, entry.stat().st_size)
            elif entry.is_dir() and entry.name not in SKIPPED and not entry.is_symlink():
                # A linked folder is a second name of files that have one already, or a circle.
                yield from _walk(entry.path, f"{path}/", fence)
        except OSError:
            continue  # gone, or not for us


def children(skill: Skill, below: str) -> list[tuple[str, bool, int]] | None:
    """Name, whether it is a folder, and size of what lies in a folder; None when it is none."""
    try:
        path = fenced(skill, below or ".")
    except BundledFileError:
        return None
    if not os.path.isdir(path) or not SKIPPED.isdisjoint(below.split("/")):
        return None
    fence = os.path.realpath(skill.folder)
    found = []
    for entry in _entries(path):
        if entry.is_symlink() and (
            entry.is_dir() or not _is_within(os.path.realpath(entry.path), fence)
        ):
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED:
                found.append((entry.name, True, 0))
        elif entry.is_file():
            found.append((entry.name, False, entry.stat().st_size))
    return sorted(found)


def read_bundled(skill: Skill, below: str) -> bytes:
    """The bytes of one file of a skill.

    Raises:
        BundledFileError: it is not there, too large, or outside the skill.
    """
    path = fenced(skill, below)
    try:
        return read_stamped(path)[0]
    except (FileNotFoundError, NotADirectoryError):
        raise _absent(skill, below) from None
    except IsADirectoryError:
        raise BundledFileError(
            ErrorCode.INVALID_REQUEST, f"{below!r} in {skill.full_name} is a folder."
        ) from None
    except OSError as error:
        raise BundledFileError(
            ErrorCode.NOT_FOUND,
            f"{below!r} in {skill.full_name} cannot be read: {error.strerror}.",
            hint=f"Files of up to {LARGEST >> 20} MiB can be read; it lies in {skill.folder}.",
        ) from None


def fenced(skill: Skill, below: str) -> str:
    """The real path of something in a skill.

    Raises:
        BundledFileError: FORBIDDEN, it is not in the skill's folder; INVALID_REQUEST, it is none.
    """
    try:
        usable(below)
    except ValueError:
        raise BundledFileError(ErrorCode.INVALID_REQUEST, "The path is no usable one.") from None
    fence = os.path.realpath(skill.folder)
    if os.path.isabs(below) or posixpath.normpath(below).startswith(".."):
        raise _outside(skill, below)
    path = os.path.realpath(os.path.join(fence, below))
    if not _is_within(path, fence):
        raise _outside(skill, below)
    return path


def _is_within(path: str, fence: str) -> bool:
    return path == fence or path.startswith(fence.rstrip(os.sep) + os.sep)


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    """What lies in a folder, but for what has a name that nobody could ask for."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if is_speakable(entry.name)]
    except OSError:
        return []


def _outside(skill: Skill, below: str) -> BundledFileError:
    return BundledFileError(
        ErrorCode.FORBIDDEN,
        f"{below!r} is not in the folder of {skill.full_name}.",
        hint="Give a path relative to the skill's base directory, without leaving it.",
    )


def _absent(skill: Skill, below: str) -> BundledFileError:
    there = [file.below for file in walk(skill, 50)]
    return BundledFileError(
        ErrorCode.NOT_FOUND,
        f"{skill.full_name} has no file {below!r}.",
        hint="It has: " + ", ".join(there),
        details={"files": there},
    )
