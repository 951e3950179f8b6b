"""Manifests of shared generations: files by hash, so that none is transferred twice."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError
from cleats.system import postgres
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.generations import LOCK_FILE_NAME
from cleats.toolsets.code.index.portable import hash_file
from cleats.toolsets.code.sharing.storage import Storage

if TYPE_CHECKING:
    from cleats.system.postgres import Connection

INDEX_NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""The pattern of the names of shared indexes."""

_HASH_PATTERN: Final = re.compile(r"[0-9a-f]{64}")


class InvalidGenerationError(ValueError):
    """Raised when shared data is invalid: damaged, made by another version, or forged."""


def check_index_name(name: str) -> str:
    """Return the name of a shared index if it is valid.

    Raises:
        SettingError: it is not.
    """
    if not INDEX_NAME_PATTERN.fullmatch(name):
        raise SettingError(f"index_name: {name!r} cannot be the name of a shared index")
    return name


def missing_index_error(description: str, reason: str) -> ToolError:
    """Build the error for an index that nobody published, or that cannot be read."""
    return ToolError(
        ErrorCode.NO_INDEX,
        f"No {description}: {reason}.",
        hint="Build and publish it with `cleats worker` where the repository is.",
    )


class ManifestPart(msgspec.Struct, frozen=True):
    """One file of a generation."""

    path: str
    size: int
    sha256: str


class FleetManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The list of files of a complete generation."""

    name: str
    generation: str
    form: int
    """The version of the store's format; readers of another version reject it."""
    parts: tuple[ManifestPart, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


# Created at import: msgspec crashes if two threads use a type for the first time at once.
_decode_manifest = msgspec.json.Decoder(FleetManifest).decode


def build_manifest(name: str, folder: Path) -> FleetManifest:
    """Build the manifest of the generation in a folder."""
    files = (Path(current, file) for current, _, names in os.walk(folder) for file in names if file != LOCK_FILE_NAME)
    parts = [ManifestPart(path.relative_to(folder).as_posix(), path.stat().st_size, hash_file(path)) for path in files]
    parts.sort(key=lambda part: part.path)
    return FleetManifest(
        name=name, generation=folder.name, form=catalogue_schema.CATALOGUE_SCHEMA_VERSION, parts=tuple(parts)
    )


def parse_manifest(data: bytes) -> FleetManifest:
    """Parse a manifest that comes from another machine.

    Raises:
        InvalidGenerationError: The data is not a manifest, or names a file outside its folder.
    """
    try:
        manifest = _decode_manifest(data)
    except msgspec.DecodeError as error:
        raise InvalidGenerationError(f"the manifest cannot be read: {error}") from None
    for part in manifest.parts:
        path = PurePosixPath(part.path)
        is_plain = str(path) == part.path and not path.is_absolute() and "\\" not in part.path
        if not is_plain or ".." in path.parts or LOCK_FILE_NAME in path.parts or ":" in part.path:
            raise InvalidGenerationError("the manifest names a file that is not one of a generation")
        if not _HASH_PATTERN.fullmatch(part.sha256) or part.size < 0:
            raise InvalidGenerationError("the manifest has a file without a hash")
    if len({part.path for part in manifest.parts}) < len(manifest.parts):
        raise InvalidGenerationError("the manifest names a file twice")
    return manifest


CREATE_TABLES_SQL: Final = """
CREATE TABLE IF NOT EXISTS cleats_index_moves (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL,
  generation TEXT NOT NULL,
  manifest TEXT NOT NULL,
  moved_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS cleats_index_pointers (
  name TEXT PRIMARY KEY,
  sequence BIGINT NOT NULL REFERENCES cleats_index_moves
);
"""


class Pointer(msgspec.Struct, frozen=True):
    """A generation and the hash of its manifest, which proves that it is the published one."""

    generation: str
    manifest: str


# Created at import: msgspec crashes if two threads use a type for the first time at once.
_decode_pointer = msgspec.json.Decoder(Pointer).decode


class PointerStore(Protocol):
    """A store of pointers. Every method may raise `OSError` if the store cannot be reached."""

    def read(self, name: str) -> Pointer | None: ...

    def move(self, name: str, pointer: Pointer) -> None: ...


class FilePointerStore:
    """Pointers in files of the storage itself."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self, name: str) -> Pointer | None:
        data = self._storage.get(f"{name}/current.json")
        if data is None:
            return None
        try:
            return _decode_pointer(data)
        except msgspec.DecodeError as error:
            raise InvalidGenerationError(f"the pointer cannot be read: {error}") from None

    def move(self, name: str, pointer: Pointer) -> None:
        self._storage.put(f"{name}/current.json", msgspec.json.encode(pointer))


class DatabasePointerStore:
    """Pointers in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._has_tables = False

    def read(self, name: str) -> Pointer | None:
        with self._connect() as connection:
            row = connection.execute(
                "SELECT generation, manifest FROM cleats_index_pointers JOIN cleats_index_moves USING (sequence) "
                "WHERE cleats_index_pointers.name = %s",
                (name,),
            ).fetchone()
        return None if row is None else Pointer(*row)

    def move(self, name: str, pointer: Pointer) -> None:
        with self._connect() as connection:
            connection.execute(
                "WITH moved AS (INSERT INTO cleats_index_moves (name, generation, manifest) VALUES (%s, %s, %s) "
                "RETURNING name, sequence) INSERT INTO cleats_index_pointers SELECT name, sequence FROM moved ON "
                "CONFLICT (name) DO UPDATE SET sequence = excluded.sequence",
                (name, pointer.generation, pointer.manifest),
            )

    @contextmanager
    def _connect(self) -> "Iterator[Connection]":
        with postgres.open_connection(self._url) as connection:
            if not self._has_tables:
                postgres.create_tables(connection, CREATE_TABLES_SQL)
                connection.commit()
                self._has_tables = True
            yield connection
