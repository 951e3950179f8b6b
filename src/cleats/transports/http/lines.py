"""Files of JSON lines: one for every request, one for every call. Nobody waits for them.

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

from cleats.contract.payload import timestamp
from cleats.runtime.journal import JOURNAL, Outlet, stderr

log = logging.getLogger(__name__)

KEPT = 4
"""Older files that are kept beside the one that is written."""

LONGEST = 200
"""Characters of a text that comes from outside."""

_encode = msgspec.json.Encoder().encode

Write: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Takes one line. Cheap, never waits, never raises."""


class LineFile:
    """An outlet of the journal that begins a new file when one is full.

    The file is opened for every batch, so that it may be moved away at any time.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._torn = False
        self.lost = 0

    def __call__(self, batch: bytes) -> None:
        try:
            self._write(batch)
        except OSError as error:
            if not self.lost:  # once: it may be the same for every line to come
                log.error("lines.lost file=%s: %s", self._path, error.strerror)  # noqa: TRY400
            lost = batch.count(b"\n")
            self.lost += lost
            JOURNAL.dropped += lost  # which `/metrics` shows

    def _write(self, batch: bytes) -> None:
        size = self._size()
        if size and size + len(batch) > self._limit:
            self._turn()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._path, flags, 0o600)
        try:
            view = memoryview(b"\n" + batch if self._torn else batch)
            self._torn = True  # until all of it is there
            while view:
                view = view[os.write(file, view) :]
            self._torn = False
        finally:
            os.close(file)

    def _size(self) -> int:
        """The bytes that could be turned over; none of what is not a file."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def _turn(self) -> None:
        for number in range(KEPT - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        self._torn = False

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def outlet(place: str, limit: int) -> Outlet | None:
    """Where lines go, as a setting says it: nowhere, `stderr` or a file."""
    if not place:
        return None
    return stderr if place == "stderr" else LineFile(Path(place).expanduser().absolute(), limit)


def writer(out: Outlet | None) -> Write | None:
    """Puts lines into an outlet, each with its time; None when there is none."""
    if out is None:
        return None

    def write(facts: Mapping[str, Any]) -> None:
        line = {"time": timestamp(time()), **facts}
        JOURNAL.line(out, _encode(line) + b"\n")

    return write


_ODD = re.compile("[\ud800-\udfff]")


def told(text: object) -> str:
    """A text from outside as a line may have it: short, and with nothing that is not Unicode."""
    return _ODD.sub("\N{REPLACEMENT CHARACTER}", str(text)[:LONGEST])
