"""An index as a folder that can be carried to another machine, and taken in there.

The folder holds the files of one generation and a manifest with the hash of each. What is taken in
is checked first: an index is read by native code, which trusts what it reads.
"""

import hashlib
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.generations import LOCK, Lease, Shelf

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1


class Manifest(Struct, kw_only=True):
    """What is in the folder."""

    format: int
    schema: int
    files: dict[str, str]
    """The SHA-256 of each file by its path."""


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Manifest).decode


def export(lease: Lease, folder: Path) -> int:
    """Write a generation to a new or empty folder; return the number of files.

    Raises:
        OSError: the folder is there and not empty, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(17, "it is not empty", str(folder))
    hashes = {}
    for source in sorted(lease.folder.rglob("*")):
        if source.is_file() and source.name != LOCK:
            name = source.relative_to(lease.folder).as_posix()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
            hashes[name] = _hash(folder / name)
    manifest = Manifest(format=FORMAT, schema=schema.SCHEMA, files=hashes)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return len(hashes)


def restore(shelf: Shelf, folder: Path) -> str:
    """Publish an exported generation. Only the builder may.

    Returns: why it could not be used, empty if it was.

    Raises:
        ToolError: NOT_FOUND, DOWNLOAD_VERIFY_FAILED or ARCHIVE_UNSAFE.
    """
    try:
        manifest = _read((folder / MANIFEST).read_bytes())
    except msgspec.MsgspecError as error:
        raise _damaged(folder / MANIFEST, str(error)) from None
    except (OSError, ValueError):  # the latter for what no path can hold
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is no {MANIFEST} in {folder}.",
            hint="`cleats index export` writes one; leave out useArtifacts to build without.",
        ) from None
    if (manifest.format, manifest.schema) != (FORMAT, schema.SCHEMA):
        return f"the index in {folder} was written by another version; all files are read"
    with shelf.draft() as draft:
        for name, expected in manifest.files.items():
            _take(folder, name, expected, draft)
        shelf.publish(draft)
    return ""


def _take(folder: Path, name: str, expected: str, draft: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or name == LOCK:
        raise _unsafe(name)
    for depth in range(1, len(path.parts) + 1):
        place = folder.joinpath(*path.parts[:depth])
        try:
            mode = place.lstat().st_mode
        except OSError as error:
            raise _damaged(place, error.strerror or "missing") from None
        if not (stat.S_ISREG(mode) if depth == len(path.parts) else stat.S_ISDIR(mode)):
            raise _unsafe(name)
    target = draft / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / path, target, follow_symlinks=False)
    if _hash(target) != expected:  # of the copy, which nobody else can change any more
        raise _damaged(folder / path, "its hash is not that of the manifest")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unsafe(name: str) -> ToolError:
    return ToolError(
        ErrorCode.ARCHIVE_UNSAFE,
        f"The exported index names {name!r}, which is not a plain file inside of it.",
        hint="Export it again, and copy it without links.",
    )


def _damaged(path: Path, why: str) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{path} is damaged: {why}.",
        hint="Copy the exported index again.",
    )
