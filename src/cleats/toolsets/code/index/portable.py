"""Export of an index as a folder that another machine can import.

The folder holds the files of one generation and a manifest with the hash of each. An import
verifies them first: an index is read by native code, which trusts its input.
"""

import hashlib
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.generations import LOCK_FILE_NAME, GenerationLease, GenerationStore

MANIFEST_FILE_NAME: Final = "manifest.json"
EXPORT_FORMAT_VERSION: Final = 1


class ExportManifest(Struct, kw_only=True):
    """The contents of an export folder."""

    format: int
    schema: int
    files: dict[str, str]
    """The SHA-256 of each file by its path."""


# At import: two threads that show msgspec a type for the first time bring the process down.
_decode_manifest = msgspec.json.Decoder(ExportManifest).decode


def export_generation(lease: GenerationLease, folder: Path) -> int:
    """Write a generation to a new or empty folder; return the number of files.

    Raises:
        OSError: the folder is not empty, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(17, "it is not empty", str(folder))
    hashes = {}
    for source in sorted(lease.folder.rglob("*")):
        if source.is_file() and source.name != LOCK_FILE_NAME:
            name = source.relative_to(lease.folder).as_posix()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
            hashes[name] = hash_file(folder / name)
    manifest = ExportManifest(
        format=EXPORT_FORMAT_VERSION, schema=catalogue_schema.CATALOGUE_SCHEMA_VERSION, files=hashes
    )
    (folder / MANIFEST_FILE_NAME).write_bytes(msgspec.json.encode(manifest))
    return len(hashes)


def import_generation(store: GenerationStore, folder: Path) -> str:
    """Publish an exported generation. The caller must be the builder.

    Returns: the reason why it could not be used, empty if it was.

    Raises:
        ToolError: NOT_FOUND, DOWNLOAD_VERIFY_FAILED or ARCHIVE_UNSAFE.
    """
    try:
        manifest = _decode_manifest((folder / MANIFEST_FILE_NAME).read_bytes())
    except msgspec.MsgspecError as error:
        raise _damaged_error(folder / MANIFEST_FILE_NAME, str(error)) from None
    except (OSError, ValueError):  # ValueError: the path holds a character that no path can
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"{folder} has no {MANIFEST_FILE_NAME}.",
            hint="Write the folder with `cleats index export`, or omit useArtifacts.",
        ) from None
    if (manifest.format, manifest.schema) != (EXPORT_FORMAT_VERSION, catalogue_schema.CATALOGUE_SCHEMA_VERSION):
        return f"the index in {folder} was written by another version; all files are read"
    with store.create_draft() as draft:
        for name, expected in manifest.files.items():
            _copy_verified(folder, name, expected, draft)
        store.publish(draft)
    return ""


def _copy_verified(folder: Path, name: str, expected_hash: str, draft: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or name == LOCK_FILE_NAME:
        raise _unsafe_error(name)
    for depth in range(1, len(path.parts) + 1):
        source = folder.joinpath(*path.parts[:depth])
        try:
            mode = source.lstat().st_mode
        except OSError as error:
            raise _damaged_error(source, error.strerror or "missing") from None
        if not (stat.S_ISREG(mode) if depth == len(path.parts) else stat.S_ISDIR(mode)):
            raise _unsafe_error(name)
    target = draft / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / path, target, follow_symlinks=False)
    if hash_file(target) != expected_hash:  # of the copy, which nobody else can change any more
        raise _damaged_error(folder / path, "its hash differs from the one in the manifest")


def hash_file(path: Path) -> str:
    """Return the SHA-256 hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unsafe_error(name: str) -> ToolError:
    return ToolError(
        ErrorCode.ARCHIVE_UNSAFE,
        f"The exported index names {name!r}, which is not a regular file in its folder.",
        hint="Export it again, and copy it without links.",
    )


def _damaged_error(path: Path, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED, f"{path} is damaged: {reason}.", hint="Copy the exported index again."
    )
