"""Log files of JSON lines, one line per request or call, written in the background.

A line that cannot be written is lost and counted; a full disk fails no call.
"""

import logging
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Any, TypeAlias

import msgspec

from cleats.contract.payload import format_timestamp
from cleats.runtime.background_writer import PROCESS_JOURNAL, LineSink, write_to_stderr

log = logging.getLogger(__name__)

MAX_OLD_FILES = 4
"""The number of rotated files that are kept besides the current one."""

MAX_TEXT_CHARS = 200
"""The maximum length of a text that comes from outside."""

_encode = msgspec.json.Encoder().encode

WriteRecord: TypeAlias = Callable[[Mapping[str, Any]], None]
"""A function that writes one record. Cheap, never waits, never raises."""


class RotatingLineFile:
    """An outlet of the journal that rotates its file when it is full.

    The file is opened for every batch, so that it may be moved away at any time.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._ends_mid_line = False
        self.lost_lines = 0

    def __call__(self, batch: bytes) -> None:
        try:
            self._write_batch(batch)
        except OSError as error:
            if not self.lost_lines:  # logged once, because the same error may recur for every line
                log.error("lines.lost file=%s: %s", self._path, error.strerror)  # noqa: TRY400
            line_count = batch.count(b"\n")
            self.lost_lines += line_count
            PROCESS_JOURNAL.dropped += line_count  # which `/metrics` shows

    def _write_batch(self, batch: bytes) -> None:
        size = self._rotatable_bytes()
        if size and size + len(batch) > self._limit:
            self._rotate_files()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._path, flags, 0o600)
        try:
            view = memoryview(b"\n" + batch if self._ends_mid_line else batch)
            self._ends_mid_line = True  # until all of it is there
            while view:
                view = view[os.write(file, view) :]
            self._ends_mid_line = False
        finally:
            os.close(file)

    def _rotatable_bytes(self) -> int:
        """Return the size of the file, or 0 if it does not exist or is not a regular file."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else 0

    def _rotate_files(self) -> None:
        for number in range(MAX_OLD_FILES - 1, 0, -1):
            older = self._numbered_path(number)
            if older.exists():
                older.replace(self._numbered_path(number + 1))
        self._path.replace(self._numbered_path(1))
        self._ends_mid_line = False

    def _numbered_path(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def open_outlet(destination: str, limit: int) -> LineSink | None:
    """Return the outlet that a setting names: None, `stderr` or a file."""
    if not destination:
        return None
    return (
        write_to_stderr
        if destination == "stderr"
        else RotatingLineFile(Path(destination).expanduser().absolute(), limit)
    )


def build_writer(outlet: LineSink | None) -> WriteRecord | None:
    """Return a function that writes timestamped records to an outlet; None without an outlet."""
    if outlet is None:
        return None

    def write_record(facts: Mapping[str, Any]) -> None:
        line = {"time": format_timestamp(time()), **facts}
        PROCESS_JOURNAL.add_line(outlet, _encode(line) + b"\n")

    return write_record


_SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")


def clean_text(text: object) -> str:
    """Return a text from outside, shortened and without invalid Unicode."""
    return _SURROGATE_PATTERN.sub("\N{REPLACEMENT CHARACTER}", str(text)[:MAX_TEXT_CHARS])
