"""The folder of one run: objects by their hash, the two checkouts, and views for people.

An object is written aside, synced and renamed to the hash of its bytes, so whatever can be found
under a hash is whole. Nothing is known by its place here: the artifact index names the objects.
Views are copies for people and for other programs; nothing is ever read back from them.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from cleats.contract.errors import ErrorCode, ToolError


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run keeps its bytes."""

    root: Path

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def checkouts(self) -> Path:
        """What holds the checkouts; gone once an ended run was cleaned up."""
        return self.root / "work"

    @property
    def leftovers(self) -> list[Path]:
        """Checkouts that are being removed, or were when somebody was killed."""
        return sorted(self.root.glob(".work.*.tmp"))

    def leftover(self, name: str) -> Path:
        """Where checkouts wait for their removal."""
        return self.root / f".work.{name}.tmp"

    @property
    def repo(self) -> Path:
        """The checkout of the source, which is only read."""
        return self.checkouts / "repo"

    @property
    def site(self) -> Path:
        """The checkout of the site, which the patches change."""
        return self.checkouts / "site"

    def put(self, data: bytes) -> str:
        """Keep some bytes for good; return their hash. The same bytes twice cost nothing."""
        digest = hashlib.sha256(data).hexdigest()
        target = self.objects / digest
        if not target.exists():
            self.objects.mkdir(parents=True, exist_ok=True)
            _replace(target, data)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes with this hash.

        Raises:
            ToolError: INTERNAL, they are gone or are others; the run cannot go on with them.
        """
        try:
            data = (self.objects / digest).read_bytes()
        except FileNotFoundError:
            raise _lost(digest, "ObjectMissing") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise _lost(digest, "ObjectChanged")
        return data

    def view(self, name: str, data: bytes) -> None:
        """Show some bytes under a name in the folder, all at once."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data)


def _lost(digest: str, cause: str) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL,
        f"an object of the run is gone or damaged: {digest}",
        hint="Start the run again.",
        details={"cause_class": cause, "sha256": digest},
    )


def _replace(target: Path, data: bytes) -> None:
    aside = target.with_name(f".{token_hex(8)}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    if os.name != "nt":  # Windows cannot, and writes names through
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
