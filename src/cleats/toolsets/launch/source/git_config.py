"""Whether the settings of a checkout are still those that git made.

A file `.git/config` can name programs that git starts by itself: filters, helpers, monitors. People
and agents edit the files of a worktree, and must not be able to have the server run something by
that; so git is only asked in a checkout whose settings are all harmless.
"""

import re
from pathlib import Path
from typing import Final

_HARMLESS: Final = re.compile(
    r"\s*|\s*[#;].*"
    r"|\[(core|extensions|user)\]|\[(remote|branch) \"[\w./-]+\"\]"
    r"|\s*(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|autocrlf|ignorecase"
    r"|precomposeunicode|objectformat|refstorage)\s*=\s*\w+"
    r"|\s*hooksPath\s*=\s*/dev/null"
    r"|\s*(name|email|url|fetch|remote|merge)\s*=[^\\\"]*",
    re.IGNORECASE,
)
"""A line of the file; whatever goes on in the next one, or hides in a quote, is none of these. No
remote is ever asked by its name, so one may be there."""

LARGEST: Final = 1 << 16
"""Bytes; what git makes has some two hundred."""


def is_plain(root: Path) -> bool:
    """Whether the checkout in a folder has nothing but harmless settings, or is none yet."""
    place = root / ".git"
    if place.is_symlink() or place.is_file() or (place / "commondir").exists():
        return False  # its settings are somewhere else
    file = place / "config"
    if not file.exists():
        return not file.is_symlink()
    try:
        with file.open("rb") as stream:
            text = stream.read(LARGEST + 1).decode()
    except (OSError, UnicodeDecodeError):
        return False
    return len(text) <= LARGEST and all(_HARMLESS.fullmatch(line) for line in text.split("\n"))
