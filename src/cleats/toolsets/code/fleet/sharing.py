"""Publishing a generation for other machines, and having what others published.

Laws:

- A pointer names a generation whose every part is there, or nothing: parts are put first, then the
  manifest, then the pointer moves.
- What a reader serves is what was published: the pointer has the manifest's hash, the manifest that
  of every part, and both are checked before the first answer.
- A reader that cannot reach the storage serves what it has.
- Parts that two generations have in common lie there once and travel once.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from cleats.toolsets.code.fleet.manifest import (
    Manifest,
    Part,
    UnsoundError,
    decoded,
    described,
    digest,
)
from cleats.toolsets.code.fleet.pointers import Pointer, Pointers
from cleats.toolsets.code.fleet.storage import Storage
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.files import replace_text
from cleats.toolsets.code.store.generations import Shelf

log = logging.getLogger(__name__)

KEPT: Final = 3
"""Generations that stay in the storage: readers may still be at an older one."""

MARK: Final = "shared.json"
"""The file on a shelf that says which shared generation its own is a copy of."""

Tell = Callable[[int, int], None]
"""Bytes moved, and of how many."""


@dataclass(frozen=True, slots=True)
class Share:
    """A shared index by its name."""

    name: str
    storage: Storage
    pointers: Pointers

    def publish(self, folder: Path, tell: Tell = lambda _done, _total: None) -> Pointer:
        """Make a local generation the one that every reader gets.

        Raises:
            OSError: the storage or the database cannot be reached; readers keep what they have.
        """
        manifest = described(self.name, folder)
        data = manifest.encode()
        pointer = Pointer(manifest.generation, hashed(data))
        if self.pointers.current(self.name) == pointer:
            return pointer
        moved = 0
        for part in manifest.parts:
            if not self.storage.has(_object(part.sha256)):
                self.storage.put(_object(part.sha256), folder / part.path)
            moved += part.size
            tell(moved, manifest.size)
        self.storage.put(self._manifest(pointer.generation), data)
        self.pointers.move(self.name, pointer)
        with suppress(OSError, UnsoundError):  # the next one tries again
            self._forget(pointer.generation)
        return pointer

    def pull(self, shelf: Shelf, tell: Tell = lambda _done, _total: None) -> bool:
        """Have the published generation on a shelf of this machine; whether it is a new one.

        Raises:
            OSError: the storage or the database cannot be reached.
            UnsoundError: what was published is not what it should be.
        """
        pointer = self.pointers.current(self.name)
        if pointer is None or pointer == mark(shelf):
            return False
        lock = shelf.claim()
        if lock is None:  # another process of this machine is at it
            return False
        try:
            manifest = self._published(pointer)
            with shelf.draft() as draft:
                self._fill(draft, manifest, shelf, tell)
                shelf.publish(draft)
            replace_text(shelf.folder / MARK, msgspec.json.encode(pointer).decode() + "\n")
            shelf.collect()
        finally:
            lock.release()
        log.info("index.pulled name=%s generation=%s", self.name, pointer.generation)
        return True

    def _published(self, pointer: Pointer) -> Manifest:
        data = self.storage.get(self._manifest(pointer.generation))
        if data is None:
            raise UnsoundError("the published generation has no manifest")
        if hashed(data) != pointer.manifest:
            raise UnsoundError("the manifest is not the one that was published")
        manifest = decoded(data)
        if manifest.form != schema.SCHEMA:
            raise UnsoundError(f"another version of cleats made it (format {manifest.form})")
        return manifest

    def _fill(self, draft: Path, manifest: Manifest, shelf: Shelf, tell: Tell) -> None:
        """Bring every part into a folder; those of the generation at hand are only linked."""
        moved = 0
        lease = shelf.current()
        try:
            for part in manifest.parts:
                target = draft / part.path
                target.parent.mkdir(parents=True, exist_ok=True)
                if lease is None or not _linked(lease.folder / part.path, target, part):
                    self._fetch(part, target)
                moved += part.size
                tell(moved, manifest.size)
        finally:
            if lease is not None:
                lease.close()

    def _fetch(self, part: Part, target: Path) -> None:
        if not self.storage.fetch(_object(part.sha256), target):
            raise UnsoundError(f"a part is missing: {part.path}")
        if target.stat().st_size != part.size or digest(target) != part.sha256:
            raise UnsoundError(f"a part is damaged: {part.path}")

    def _forget(self, newest: str) -> None:
        """Remove generations beyond those kept, and the parts that only they had."""
        key = f"{self.name}/generations.json"
        listed = self.storage.get(key)
        names: list[str] = msgspec.json.decode(listed, type=list[str]) if listed else []
        names = [*(name for name in names if name != newest), newest]
        old, kept = names[:-KEPT], names[-KEPT:]
        needed = {part.sha256 for name in kept for part in self._parts(name)}
        for name in old:
            for part in self._parts(name):
                if part.sha256 not in needed:
                    self.storage.remove(_object(part.sha256))
            self.storage.remove(self._manifest(name))
        self.storage.put(key, msgspec.json.encode(kept))

    def _parts(self, generation: str) -> tuple[Part, ...]:
        data = self.storage.get(self._manifest(generation))
        return decoded(data).parts if data else ()

    def _manifest(self, generation: str) -> str:
        return f"{self.name}/generations/{generation}.json"


def mark(shelf: Shelf) -> Pointer | None:
    """Which shared generation a shelf has a copy of."""
    try:
        return msgspec.json.decode((shelf.folder / MARK).read_bytes(), type=Pointer)
    except (OSError, msgspec.DecodeError):
        return None


def _object(sha256: str) -> str:
    return f"objects/{sha256[:2]}/{sha256}"


def _linked(source: Path, target: Path, part: Part) -> bool:
    """Take a file that is at hand; it is the same when its bytes are."""
    try:
        if source.stat().st_size != part.size or digest(source) != part.sha256:
            return False
        os.link(source, target)
    except OSError:
        return False
    return True


def hashed(data: bytes) -> str:
    """What a pointer says about a manifest."""
    return hashlib.sha256(data).hexdigest()
