"""How a server says that it is ready: a file for scripts to wait for, a line on stderr."""

import errno
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cleats.runtime.journal import JOURNAL, stderr
from cleats.runtime.telemetry import plain

log = logging.getLogger(__name__)


@contextmanager
def announced(path: str, timestamp: str, facts: Mapping[str, str]) -> Iterator[None]:
    """Ready while the block runs.

    The file holds `<pid> <timestamp>`. A server that cannot write it serves all the same and
    says so: the file is a convenience of whoever waits for it.
    """
    facts = {"timestamp": timestamp, **facts}
    line = " ".join(f"{name}={plain(value)}" for name, value in facts.items())
    file = Path(path)
    mine = f"{os.getpid()} {timestamp}\n"
    made = _make(file, mine)
    _say(f"mcp:ready mode=stdio {line}")
    try:
        yield
    finally:
        if made:
            _remove(file, mine)
        _say(f"mcp:shutdown mode=stdio {line}")


def _make(file: Path, content: str) -> bool:
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            mode = file.lstat().st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return False  # /dev/null, say: nothing that may be replaced
        file.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: nobody sees half of it, and a link that somebody left in a
        # shared folder is replaced instead of followed.
        aside.unlink(missing_ok=True)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
        aside.replace(file)
    except OSError as error:
        log.warning("ready.file path=%s not written: %s", file, error.strerror)
        return False
    return True


def _remove(file: Path, content: str) -> None:
    """Remove the file, unless another server has written its own there since."""
    with suppress(OSError):
        if file.read_text(encoding="utf-8") == content:
            file.unlink()


def _say(line: str) -> None:
    JOURNAL.line(stderr, line.encode(errors="replace") + b"\n")
    JOURNAL.flush()
