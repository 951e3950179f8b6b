"""The state of a discovery: the files found, the paths skipped, and the ignore rules.

Both ways of listing a folder, git and the directory walk, add everything they see here, so the
treatment of a file does not depend on which of them saw it.
"""

import os
import stat
from typing import Final, NamedTuple

from msgspec import Struct, field

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.languages.language_names import UNKNOWN_LANGUAGE
from cleats.toolsets.code.discovery.content import DiscoveryLimits, classify_name
from cleats.toolsets.code.discovery.ignore_rules import IgnoreTree

IGNORE_FILE_NAME: Final = ".cleatsignore"

MAX_IGNORE_FILE_BYTES: Final = 1024 * 1024
"""More than any ignore file that a person wrote."""


class DiscoveredFile(NamedTuple):
    """A file to read. Language and mode come from its name; its bytes may correct them."""

    path: str
    """Relative to the root, with `/`. Bytes that are not UTF-8 are written `%FF`."""
    size: int
    mtime_ns: int
    lang: str
    mode: Mode
    fs_path: str
    """The path to open."""


class SkippedPath(NamedTuple):
    """A file or folder that is not indexed."""

    path: str
    reason: str
    detail: str


class DiscoveredTree(Struct):
    """Everything seen below one root."""

    root: str
    limits: DiscoveryLimits
    files: dict[str, DiscoveredFile] = {}
    skipped: list[SkippedPath] = []
    ignored: int = 0
    """Number of files and folders that an ignore file excludes, as far as the listing shows."""
    ignore_files: IgnoreTree = field(default_factory=IgnoreTree)
    """The rules of the `.cleatsignore` files."""

    def skip(self, path: str, reason: str, detail: str = "") -> None:
        self.skipped.append(SkippedPath(escape_path(path), reason, detail))

    def add_file(self, path: str, status: os.stat_result) -> None:
        """Classify a path that is not a folder, and add or skip it."""
        if reason := _find_skip_reason(status, self.limits):
            self.skip(path, *reason)
            return
        name_verdict = classify_name(path)
        if name_verdict.reason:
            self.skip(path, name_verdict.reason)
            return
        fs_path = f"{self.root}/{path}"
        # Checking each file would double the work; most are readable by everyone.
        if not status.st_mode & stat.S_IROTH and not os.access(fs_path, os.R_OK):
            self.skip(path, "unreadable")
            return
        text_path = escape_path(path)
        if text_path in self.files:
            self.skip(path, "unnameable")
            return
        lang, size, mtime_ns = name_verdict.lang or UNKNOWN_LANGUAGE, status.st_size, status.st_mtime_ns
        self.files[text_path] = DiscoveredFile(text_path, size, mtime_ns, lang, name_verdict.mode, fs_path)

    def read_ignore_file(self, path: str) -> str:
        """Return the text of an ignore file; empty if it cannot be read, which is reported."""
        try:
            descriptor = os.open(f"{self.root}/{path}", os.O_RDONLY | _NO_FOLLOW_FLAG | _NO_WAIT_FLAG)
        except (FileNotFoundError, NotADirectoryError):  # .git may be a file
            return ""
        except OSError as error:
            self.skip(path, "unreadable", error.strerror or "")
            return ""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.fsdecode(file.read(MAX_IGNORE_FILE_BYTES))


_NO_FOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT_FLAG = getattr(os, "O_NONBLOCK", 0)
"""A pipe with the name of an ignore file would otherwise block until somebody writes to it."""


def _find_skip_reason(status: os.stat_result, limits: DiscoveryLimits) -> tuple[str, str] | None:
    if not stat.S_ISREG(status.st_mode):
        return ("symlink" if stat.S_ISLNK(status.st_mode) else "special"), ""
    if limits.max_file_bytes and status.st_size > limits.max_file_bytes:
        return "too_large", f"{status.st_size} bytes"
    return None


def escape_path(path: str) -> str:
    """Return a path as text that can be stored anywhere, whatever bytes its name consists of."""
    if path.isascii():
        return path
    raw_path = os.fsencode(path)
    try:
        return raw_path.decode()
    except UnicodeDecodeError:
        escaped = raw_path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
        return "".join(f"%{ord(char) - 0xDC00:02X}" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in escaped)
