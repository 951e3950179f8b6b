"""Many small files, each whole or not there, all on the disk itself when it is said.

Files are written aside, put on the disk together, and then given their names. Together, because
the disk confirms sixteen waiting files as fast as one: ten thousand take seconds, not a minute.
"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleats.toolsets.code.store.files import sync

TOGETHER: Final = 16
"""Files that wait for the disk at the same time."""

MOST: Final = 1000
"""Files that are aside at most: what a crash would leave behind."""

SUFFIX: Final = ".tmp"

OLD: Final = 3600.0
"""Seconds after which nobody is going to give a file its name any more."""


class Batch:
    """Files on their way."""

    def __init__(self) -> None:
        self._aside: list[tuple[Path, Path]] = []

    def add(self, place: Path, data: bytes) -> None:
        """Give a file a content, soon.

        Raises:
            OSError: it cannot be written; whatever was there is as it was.
        """
        descriptor, aside = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=SUFFIX)
        self._aside.append((Path(aside), place))
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if len(self._aside) >= MOST:
            self.flush()

    def flush(self) -> None:
        """Put everything that was added in its place.

        Raises:
            OSError: the disk does not take it.
        """
        if len(self._aside) > 1:
            with ThreadPoolExecutor(TOGETHER) as pool:
                list(pool.map(sync, [aside for aside, _ in self._aside]))
        else:
            for aside, _ in self._aside:
                sync(aside)
        for aside, place in self._aside:
            aside.replace(place)
        for folder in {place.parent for _, place in self._aside}:
            sync(folder)
        self._aside = []

    def discard(self) -> None:
        """Leave nothing of what has no name yet."""
        for aside, _ in self._aside:
            with suppress(OSError):
                aside.unlink()
        self._aside = []


def write(place: Path, data: bytes) -> None:
    """Give one file a content, now.

    Raises:
        OSError: it cannot be written; whatever was there is as it was.
    """
    batch = Batch()
    try:
        batch.add(place, data)
        batch.flush()
    finally:
        batch.discard()


def tidy(folder: Path) -> None:
    """Remove what a crash left aside."""
    for path in folder.glob(f".*{SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > OLD:
                path.unlink()
