"""Watching folders on Linux: whether anything in them has changed, for one system call instead of one per file.

inotify reports every change by a process of this machine before the call that made it returns, with these exceptions:

- Changes on another machine. So only file systems that belong to one machine are watched.
- Changes through a hard link in another folder. Callers look at such files themselves.
- Writes to mapped memory, until the file is closed; closing it is reported.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from errno import ENOENT
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

LOCAL_FILE_SYSTEMS: Final = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs")
)
"""File systems whose files are changed by this machine only."""

WATCHES_SHARE: Final = 4
"""At most one in four of the watches that the system allows a user is used: editors need them too."""

MAX_WATCHES_FILE: Final = Path("/proc/sys/fs/inotify/max_user_watches")
MOUNTS_FILE: Final = Path("/proc/self/mountinfo")

EVENT_BYTES: Final = 1 << 16
MAX_EVENT_READS: Final = 64
"""Reads of waiting events at once; those left are reported by the next call."""

_CHANGE_EVENTS: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Modified, attributes, closed after writing, moved from and to, created, deleted, and the folder itself gone."""
_ONLY_FOLDERS: Final = 0x01000000


class FolderWatch:
    """Notices changes of the entries of folders. Not safe for several threads at once."""

    def __init__(self, descriptor: int, missing_folders: tuple[str, ...]) -> None:
        self._descriptor = descriptor
        self.missing_folders = missing_folders
        """Folders that do not exist, so that they cannot be watched."""

    @classmethod
    def open(cls, folders: Iterable[str]) -> Self | None:
        """Watch folders, not what is in their subfolders; return None where that would miss changes."""
        folders = list(folders)
        if not _can_watch(folders):
            return None
        try:
            library = _load_library()
            descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (ImportError, OSError, AttributeError):
            return None
        if descriptor < 0:
            return None
        watch = cls(descriptor, ())
        missing = []
        for folder in folders:
            if library.inotify_add_watch(descriptor, os.fsencode(folder), _CHANGE_EVENTS | _ONLY_FOLDERS) < 0:
                if _read_error() != ENOENT:
                    watch.close()
                    return None
                missing.append(folder)
        watch.missing_folders = tuple(missing)
        return watch

    def read_events(self) -> bool:
        """Return whether anything has changed since the last call."""
        for count in range(MAX_EVENT_READS):
            try:
                if not os.read(self._descriptor, EVENT_BYTES):
                    return True
            except BlockingIOError:
                return count > 0
        return True

    def close(self) -> None:
        """Stop watching. Safe to repeat."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


@cache
def _load_library() -> Any:
    import ctypes  # noqa: PLC0415 - only here

    return ctypes.CDLL(None, use_errno=True)


def _read_error() -> int:
    import ctypes  # noqa: PLC0415 - only here

    return ctypes.get_errno()


def _can_watch(folders: list[str]) -> bool:
    if sys.platform != "linux":
        return False
    try:
        max_watches = int(MAX_WATCHES_FILE.read_text(encoding="ascii"))
        systems = _parse_mounts(MOUNTS_FILE.read_bytes())
    except (OSError, ValueError):
        return False
    if len(folders) * WATCHES_SHARE > max_watches:
        return False
    known = set(folders)
    # The parent of most folders is watched too, so only the first of each tree may be behind a link.
    resolved = (
        folder if os.path.isabs(folder) and os.path.dirname(folder) in known else os.path.realpath(folder)  # noqa: PTH117, PTH120
        for folder in folders
    )
    return all(_find_file_system(folder, systems) in LOCAL_FILE_SYSTEMS for folder in resolved)


def _parse_mounts(table: bytes) -> dict[str, str]:
    """Return the file system of every mount point; of several mounts at one place the last counts."""
    systems: dict[str, str] = {}
    for line in os.fsdecode(table).splitlines():
        place, _, source = line.partition(" - ")
        mount_point = place.split(" ")[4]
        for code in ("\\040", "\\011", "\\012", "\\134"):
            mount_point = mount_point.replace(code, chr(int(code[1:], 8)))
        systems[mount_point] = source.split(" ")[0]
    return systems


def _find_file_system(folder: str, systems: Mapping[str, str]) -> str:
    while folder not in systems and (parent := os.path.dirname(folder)) != folder:  # noqa: PTH120 - a Path is dear
        folder = parent
    return systems.get(folder, "")
