"""The files of a skill: listed, confined and read completely, even while others write them.

Nothing outside the skill's folder is ever read, whatever a path or a link in it says.
"""

import logging
import os
import posixpath
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from mimetypes import MimeTypes
from typing import NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.front_matter import FrontMatterError
from cleats.system.safe_paths import check_path_name, is_within
from cleats.system.skill_header import parse_skill_header
from cleats.toolsets.skills.scan import SKIPPED_FOLDERS
from cleats.toolsets.skills.skill import MAX_FILE_BYTES, Skill, is_encodable, is_recently_written, read_stamped

log = logging.getLogger(__name__)

MAX_READ_TRIES = 20
"""The maximum number of reads of a file that keeps changing."""

RETRY_PAUSE_SECONDS = 0.01
"""The pause between two reads of a file that is being written: an editor needs one or two."""

_MEDIA_TYPES = MimeTypes(filenames=())  # not the machine's table, so that it is the same everywhere
for _type, _ending in (
    ("text/markdown", ".md"),
    ("text/x-shellscript", ".sh"),
    ("text/x-typescript", ".ts"),
    ("application/yaml", ".yaml"),
    ("application/yaml", ".yml"),
    ("application/toml", ".toml"),
):
    _MEDIA_TYPES.add_type(_type, _ending)


class UnreadableSkillError(ToolError):
    """Raised when an existing skill cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            f"{path} cannot be read: {reason}.",
            hint="See the server's log, or run `cleats skills validate`.",
        )


class BundledFileError(ToolError):
    """Raised when a file of a skill is missing, too large, or outside the skill."""


class BundledFile(NamedTuple):
    """A file of a skill: its relative path, with `/`, and its path on disk."""

    relative_path: str
    path: str
    size: int


def guess_media_type(name: str) -> str:
    """Return the media type of a file by its name."""
    return _MEDIA_TYPES.guess_type(name)[0] or "application/octet-stream"


def load_skill_text(skill: Skill) -> str:
    """Return the current text of the whole SKILL.md.

    A file that was written a moment ago is read again until it has stopped changing, so that nobody
    gets a partial text.

    Raises:
        FileNotFoundError: The file no longer exists.
        UnreadableSkillError: The file cannot be read, or is no longer a skill.
    """
    tries, broken_data = 0, None
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
            parse_skill_header(text)
        except (UnicodeDecodeError, FrontMatterError) as error:
            # Somebody may have rewritten it since: the same bytes are seen twice before they are blamed.
            if data == broken_data and not is_recently_written(skill.path):
                reason = str(error) if isinstance(error, FrontMatterError) else "it is not UTF-8"
                log.exception("skill.unreadable path=%s", skill.path)
                raise UnreadableSkillError(skill.path, reason) from None
            broken_data = data
        else:
            # A file that is rewritten faster than we can read will not get any better.
            if stamp.modified != -1 or tries >= MAX_READ_TRIES:
                return text
        time.sleep(RETRY_PAUSE_SECONDS)


def list_files(skill: Skill, limit: int) -> list[BundledFile]:
    """Return the files of a skill, sorted by path; `limit` + 1 files mean that there are more."""
    return sorted(islice(_walk_folder(skill.folder, "", os.path.realpath(skill.folder)), limit + 1))


def _walk_folder(folder: str, prefix: str, root: str) -> Iterator[BundledFile]:
    for entry in _list_entries(folder, root):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk_folder(entry.path, f"{path}/", root)
        else:
            with suppress(OSError):  # deleted, or not readable
                yield BundledFile(path, entry.path, entry.stat().st_size)


def list_children(skill: Skill, relative_path: str) -> list[tuple[str, bool, int]] | None:
    """Return name, folder flag and size of the entries of a folder; None if it is not a folder."""
    try:
        path = resolve_inside(skill, relative_path or ".")
    except BundledFileError:
        return None
    if not os.path.isdir(path) or not SKIPPED_FOLDERS.isdisjoint(relative_path.split("/")):
        return None
    entries = _list_entries(path, os.path.realpath(skill.folder))
    return sorted((entry.name, entry.is_dir(), 0 if entry.is_dir() else entry.stat().st_size) for entry in entries)


def read_bundled_file(skill: Skill, relative_path: str) -> bytes:
    """Return the bytes of one file of a skill.

    Raises:
        BundledFileError: The file is missing, too large, or outside the skill.
    """
    path = resolve_inside(skill, relative_path)
    try:
        return read_stamped(path)[0]
    except (FileNotFoundError, NotADirectoryError):
        available = [file.relative_path for file in list_files(skill, 50)]
        raise BundledFileError(
            ErrorCode.NOT_FOUND,
            f"{skill.full_name} has no file {relative_path!r}.",
            hint="It has: " + ", ".join(available),
            details={"files": available},
        ) from None
    except IsADirectoryError:
        raise BundledFileError(
            ErrorCode.INVALID_REQUEST, f"{relative_path!r} in {skill.full_name} is a folder."
        ) from None
    except OSError as error:
        raise BundledFileError(
            ErrorCode.NOT_FOUND,
            f"{relative_path!r} in {skill.full_name} cannot be read: {error.strerror}.",
            hint=f"Files of up to {MAX_FILE_BYTES >> 20} MiB can be read. Its folder is {skill.folder}.",
        ) from None


def resolve_inside(skill: Skill, relative_path: str) -> str:
    """Return the real path of a file or folder in a skill.

    Raises:
        BundledFileError: FORBIDDEN if it is not in the skill's folder; INVALID_REQUEST if it is not a valid path.
    """
    try:
        check_path_name(relative_path)
    except ValueError:
        raise BundledFileError(ErrorCode.INVALID_REQUEST, "The path is invalid.") from None
    root = os.path.realpath(skill.folder)
    is_outside = os.path.isabs(relative_path) or posixpath.normpath(relative_path).startswith("..")
    if is_outside or not is_within(path := os.path.realpath(os.path.join(root, relative_path)), root):
        raise BundledFileError(
            ErrorCode.FORBIDDEN,
            f"{relative_path!r} is not in the folder of {skill.full_name}.",
            hint="Give a path relative to the skill's base directory, without leaving it.",
        )
    return path


def _list_entries(folder: str, root: str) -> "list[os.DirEntry[str]]":
    """Return the files and folders in a folder that belong to the skill at a root and can be named.

    A linked folder is a second path to files already listed, or a cycle; a linked file may be outside.
    """
    listed = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # deleted, or not readable
                is_inside = not entry.is_symlink() or is_within(os.path.realpath(entry.path), root)
                is_folder = entry.is_dir() and not entry.is_symlink() and entry.name not in SKIPPED_FOLDERS
                if is_encodable(entry.name) and is_inside and (is_folder or entry.is_file()):
                    listed.append(entry)
    return listed
