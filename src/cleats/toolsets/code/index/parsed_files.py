"""The files that an unfinished build has parsed, so that the next build goes on from there.

They are appended to a log, one record each, while the build runs. The log belongs to one form of index and is removed
when a generation is published. A kill can cut off the last record: what fails its checksum ends the log.
"""

import mmap
import shutil
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from zlib import crc32

import msgspec

from cleats.toolsets.code.index.changes import IndexForm
from cleats.toolsets.code.index.file_reader import NotAFileError, ReadOutcome, ReadTask, hash_content, read_content
from cleats.toolsets.code.index.generations import PARSED_FOLDER

LOG_BUFFER_BYTES: Final = 1 << 18
"""Bytes that a kill can cost: a few dozen files."""

_HEADER: Final = struct.Struct("<III16s")
"""The sizes of the path and of the outcome, their checksum, and the hash of the file's content."""

_decode_outcome = msgspec.msgpack.Decoder(ReadOutcome).decode


class ParsedFiles:
    """The log of one build, with what earlier builds of the same form left in it."""

    def __init__(self, store_folder: Path, form: IndexForm) -> None:
        folder = store_folder / PARSED_FOLDER
        log = folder / "-".join((form.fingerprint, *form.modes))
        if folder.exists() and not log.exists():
            shutil.rmtree(folder)  # of another form
        folder.mkdir(exist_ok=True)
        self._file: IO[bytes] | None = log.open("a+b", buffering=LOG_BUFFER_BYTES)
        self._places: dict[str, tuple[bytes, int, int]] = {}
        """The hash of the content, and the place of the outcome, by path."""
        self._records = self._read_log(self._file)

    def _read_log(self, file: IO[bytes]) -> "mmap.mmap | bytes":
        size = file.seek(0, 2)
        if not size:
            return b""
        records = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        end = 0
        while end + _HEADER.size <= size:
            path_size, outcome_size, checksum, content_hash = _HEADER.unpack_from(records, end)
            start = end + _HEADER.size
            next_end = start + path_size + outcome_size
            if next_end > size or crc32(records[start:next_end]) != checksum:
                break
            path = records[start : start + path_size].decode()
            self._places[path] = (content_hash, start + path_size, outcome_size)
            end = next_end
        file.truncate(end)
        return records

    def find_outcomes(self, tasks: Iterable[ReadTask]) -> dict[str, tuple[int, int]]:
        """Return size and time of the files whose content is as it was when it was parsed, by path."""
        found = {}
        for task in tasks:
            if (place := self._places.get(task.path)) is None:
                continue
            with suppress(OSError, NotAFileError):
                content = read_content(task.place)
                if hash_content(content.data) == place[0]:
                    found[task.path] = (content.size, content.mtime_ns)
        return found

    def load_outcome(self, path: str, size: int, mtime_ns: int) -> ReadOutcome:
        """Return the outcome of a parsed file, with the size and time that the file has now."""
        _, start, length = self._places[path]
        outcome = _decode_outcome(self._records[start : start + length])
        if outcome.row is None:
            return msgspec.structs.replace(outcome, size=size, mtime_ns=mtime_ns)
        return msgspec.structs.replace(outcome, row=msgspec.structs.replace(outcome.row, size=size, mtime_ns=mtime_ns))

    def append(self, path: str, outcome: ReadOutcome, packed: bytes) -> None:
        """Keep an outcome; where there is no space for the log, the build goes on without one."""
        content_hash = outcome.row.hash if outcome.row else outcome.hash
        if self._file is None or not content_hash:
            return
        path_bytes = path.encode()
        header = _HEADER.pack(len(path_bytes), len(packed), crc32(packed, crc32(path_bytes)), content_hash)
        try:
            self._file.write(b"".join((header, path_bytes, packed)))
        except OSError:
            self._file = None

    def close(self) -> None:
        """Write what is buffered."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
