"""What a shared generation consists of: files by their hash, so that none travels twice."""

import hashlib
import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.generations import LOCK

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""What a shared index may be called."""

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_BLOCK: Final = 1 << 20


class UnsoundError(ValueError):
    """What was shared is not what it should be: damaged, made by another version, or a lie."""


class Part(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A generation, complete or not there at all."""

    name: str
    generation: str
    form: int
    """The version of the store's format; a reader of another one does not even try."""
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Manifest).decode


def described(name: str, folder: Path) -> Manifest:
    """The manifest of a generation that lies in a folder."""
    files = (
        Path(current, file)
        for current, _, names in os.walk(folder)
        for file in names
        if file != LOCK
    )
    parts = [
        Part(path.relative_to(folder).as_posix(), path.stat().st_size, digest(path))
        for path in files
    ]
    parts.sort(key=lambda part: part.path)
    return Manifest(name=name, generation=folder.name, form=schema.SCHEMA, parts=tuple(parts))


def decoded(data: bytes) -> Manifest:
    """A manifest from elsewhere.

    Raises:
        UnsoundError: it is none, or names a file outside its own folder.
    """
    try:
        found = _read(data)
    except msgspec.DecodeError as error:
        raise UnsoundError(f"the manifest cannot be read: {error}") from None
    for part in found.parts:
        path = PurePosixPath(part.path)
        plain = str(path) == part.path and not path.is_absolute() and "\\" not in part.path
        if not plain or ".." in path.parts or LOCK in path.parts or ":" in part.path:
            raise UnsoundError("the manifest names a file that is not one of a generation")
        if not _HASH.fullmatch(part.sha256) or part.size < 0:
            raise UnsoundError("the manifest has a file without a hash")
    if len({part.path for part in found.parts}) < len(found.parts):
        raise UnsoundError("the manifest names a file twice")
    return found


def digest(path: Path) -> str:
    """The hash of a file."""
    made = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            made.update(block)
    return made.hexdigest()
