"""The folder of one run: objects by hash, the two checkouts, and views for people.

An object is written to a temporary file, synced and renamed to the hash of its bytes, so every
object that exists is complete. Objects are not located by path: the artifact index names them.
Views are copies for people and other programs; they are never read back.
"""

import errno
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import replace_file


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder that holds the files of a run."""

    root: Path

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def checkouts(self) -> Path:
        """The folder of the checkouts; absent once an ended run was cleaned up."""
        return self.root / "work"

    @property
    def leftovers(self) -> list[Path]:
        """Checkouts that are being removed, or whose removal was interrupted."""
        return sorted(self.root.glob(".work.*.tmp"))

    def make_leftover_path(self, name: str) -> Path:
        """Return a path for checkouts that wait for their removal."""
        return self.root / f".work.{name}.tmp"

    @property
    def repo(self) -> Path:
        """The checkout of the source, which is read-only."""
        return self.checkouts / "repo"

    @property
    def site(self) -> Path:
        """The checkout of the site, which the patches change."""
        return self.checkouts / "site"

    def put_object(self, data: bytes) -> str:
        """Store bytes durably and return their hash. Storing the same bytes twice costs nothing."""
        digest = hashlib.sha256(data).hexdigest()
        target = self.objects / digest
        if not target.exists():
            self.objects.mkdir(parents=True, exist_ok=True)
            replace_file(target, data)
        return digest

    def get_object(self, digest: str) -> bytes:
        """Return the bytes with this hash.

        Raises:
            ToolError: INTERNAL, the object is missing or damaged; the run cannot continue with it.
        """
        try:
            data = (self.objects / digest).read_bytes()
        except FileNotFoundError:
            raise _make_lost_object_error(digest, "ObjectMissing") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise _make_lost_object_error(digest, "ObjectChanged")
        return data

    def write_view(self, name: str, data: bytes) -> None:
        """Write bytes atomically under a name in the folder."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)


def measure_folder(folder: Path) -> int:
    """Return the bytes of all files below a folder, as far as others do not remove them meanwhile."""
    total_bytes = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total_bytes += (Path(parent) / name).lstat().st_size
    return total_bytes


def _make_lost_object_error(digest: str, cause: str) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL,
        f"a stored object of the run is missing or damaged: {digest}",
        hint="Start the run again.",
        details={"cause_class": cause, "sha256": digest},
    )


_DISK_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MACHINE_FAULTS: Final[Mapping[int, tuple[str, str]]] = {
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR),
        ("The folder of the runs is not writable.", "Make the server's data folder writable, then retry."),
    ),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO),
        (
            "The machine is out of memory or file handles, or its disk is failing.",
            "Fix the machine and retry; the run continues after its last record.",
        ),
    ),
}


def wrap_os_error(error: OSError) -> ToolError | None:
    """Return an error that tells the operator what to do, or None for a programming error."""
    cause = type(error).__name__
    if error.errno in _DISK_FULL_ERRNOS:
        return make_disk_full_error(cause)
    fault = _MACHINE_FAULTS.get(error.errno or 0)
    return make_machine_error(*fault, cause) if fault else None


def make_disk_full_error(cause: str) -> ToolError:
    """Return the error of a full disk."""
    return make_machine_error(
        "The disk with the runs is full.",
        "Free disk space and retry; the run continues after its last record. "
        "`cleats launch clean` removes the checkouts of runs that have ended.",
        cause,
    )


def make_machine_error(message: str, hint: str, cause: str, *, retryable: bool = True) -> ToolError:
    """Return the error of a failure of the machine, not of the run."""
    return ToolError(ErrorCode.INTERNAL, message, hint=hint, retryable=retryable, details={"cause_class": cause})
