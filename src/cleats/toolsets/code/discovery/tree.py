"""A folder being looked through: what was found so far, what was left out, and the ignore rules.

Both ways of listing a folder, git's and the walk, put everything they see in here, so that what
becomes of a file does not depend on which of them saw it.
"""

import os
import stat
from typing import Final, NamedTuple

from msgspec import Struct, field

from cleats.toolsets.code.discovery.ignore import IgnoreTree
from cleats.toolsets.code.discovery.naming import judge
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.languages.names import UNKNOWN

IGNORE_FILE: Final = ".cleatsignore"

MOST_IGNORE_BYTES: Final = 1024 * 1024
"""More than any ignore file a person wrote."""


class Found(NamedTuple):
    """A file to read. Language and mode are what its name says; its bytes may say better."""

    path: str
    """Relative to the root, with `/`. Bytes that are not UTF-8 are written `%FF`."""
    size: int
    mtime_ns: int
    lang: str
    mode: Mode
    fs_path: str
    """What to open."""


class Skipped(NamedTuple):
    """A file or folder that is not indexed. The reason is one of `reasons.REASONS`."""

    path: str
    reason: str
    detail: str


class Tree(Struct):
    """Everything seen below one root."""

    root: str
    limits: Limits
    files: dict[str, Found] = {}
    skipped: list[Skipped] = []
    ignored: int = 0
    """Files and folders that an ignore file excludes, as far as the listing tells."""
    marks: IgnoreTree = field(default_factory=IgnoreTree)
    """What the ignore files of our own say."""

    def skip(self, path: str, reason: str, detail: str = "") -> None:
        self.skipped.append(Skipped(readable(path), reason, detail))

    def take(self, path: str, status: os.stat_result) -> None:
        """Judge a path that is no folder, and keep it if it is worth reading."""
        if reason := _unfit(status, self.limits):
            self.skip(path, *reason)
            return
        named = judge(path)
        if named.reason:
            self.skip(path, named.reason)
            return
        fs_path = f"{self.root}/{path}"
        # Asking for each file would double the work; most are open to all and need no question.
        if not status.st_mode & stat.S_IROTH and not os.access(fs_path, os.R_OK):
            self.skip(path, "unreadable")
            return
        text = readable(path)
        if text in self.files:
            self.skip(path, "unnameable")
            return
        self.files[text] = Found(
            text,
            status.st_size,
            status.st_mtime_ns,
            named.lang or UNKNOWN,
            named.mode,
            fs_path,
        )

    def read_ignore_file(self, path: str) -> str:
        """The text of an ignore file; empty when it cannot be read, which is reported."""
        try:
            descriptor = os.open(f"{self.root}/{path}", os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
        except (FileNotFoundError, NotADirectoryError):  # .git may be a file
            return ""
        except OSError as error:
            self.skip(path, "unreadable", error.strerror or "")
            return ""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.fsdecode(file.read(MOST_IGNORE_BYTES))


_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""A pipe with the name of an ignore file would block until somebody writes to it."""


def _unfit(status: os.stat_result, limits: Limits) -> tuple[str, str] | None:
    if stat.S_ISLNK(status.st_mode):
        return "symlink", ""
    if not stat.S_ISREG(status.st_mode):
        return "special", ""
    if limits.max_file_bytes and status.st_size > limits.max_file_bytes:
        return "too_large", f"{status.st_size} bytes"
    return None


def readable(path: str) -> str:
    """A path as text that everything can store, whatever bytes the name is made of."""
    if path.isascii():
        return path
    raw = os.fsencode(path)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        escaped = raw.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
        return "".join(
            f"%{ord(char) - 0xDC00:02X}" if 0xDC80 <= ord(char) <= 0xDCFF else char
            for char in escaped
        )
