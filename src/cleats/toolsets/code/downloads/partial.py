"""A download that is under way: bytes beside their target, and what is needed to go on later.

Laws:

- The target is there whole and as it was before, or whole and new; never in between.
- Bytes go on being used only when the server says that they are from the same file.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, Self

import msgspec
from msgspec import Struct

from cleats.toolsets.code.store.files import replace_text, sync

PIECE: Final = 1 << 20
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class Origin(Struct, frozen=True, omit_defaults=True):
    """Which version of which file bytes are from."""

    url: str
    etag: str = ""
    modified: str = ""
    total: int = 0

    @property
    def condition(self) -> str:
        """What asks a server to go on only with the same file; empty when nothing could."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Origin).decode


class Partial:
    """The bytes that have come so far."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.part")
        self._note = target.with_name(f".{target.name}.part.json")
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def origin(self, url: str) -> Origin | None:
        """Where the bytes that are there came from, if that is known and they can be used."""
        try:
            origin = _read(self._note.read_bytes())
            size = self.path.lstat().st_size
        except (OSError, msgspec.MsgspecError):
            return None
        fits = size > 0 and (not origin.total or size < origin.total)
        return origin if origin.url == url and origin.condition and fits else None

    @property
    def present(self) -> int:
        """How many bytes are there."""
        return self.path.lstat().st_size

    def restart(self, origin: Origin) -> None:
        """Begin with nothing."""
        self.discard()
        replace_text(self._note, msgspec.json.encode(origin).decode())
        self._open()

    def resume(self) -> None:
        """Go on behind the bytes that are there."""
        file = self._open()
        while piece := file.read(PIECE):
            self._hash.update(piece)
            self.size += len(piece)

    def _open(self) -> BinaryIO:
        self._file = os.fdopen(os.open(self.path, _FLAGS, 0o644), "r+b")
        return self._file

    def write(self, piece: bytes) -> None:
        assert self._file is not None  # noqa: S101 - it was begun or resumed
        self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Put the bytes on the disk; they can be read from the path now."""
        self.close()
        sync(self.path)

    def place(self) -> None:
        """Make them the target, all at once."""
        self.path.replace(self.target)
        sync(self.target.parent)
        self.discard()

    def discard(self) -> None:
        """Leave nothing."""
        self.close()
        for path in (self._note, self.path):
            with suppress(FileNotFoundError):
                path.unlink()
        self._hash, self.size = hashlib.sha256(), 0

    def close(self) -> None:
        """Keep what has come."""
        if self._file is not None:
            self._file.close()
            self._file = None
