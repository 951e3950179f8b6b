"""Generations of an index: built aside, published whole, removed when nobody reads them.

Laws:

- `current` names a complete generation or nothing, whatever was killed and when. It is replaced
  by a rename, after everything that it names is on the disk.
- A published generation never changes.
- A reader holds its generation with a shared lock, so it is never removed underneath; readers
  and builders do not wait for each other.
- One builder at a time for each repository. What an earlier one left behind when it died is
  removed by the next.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.files import replace_text, sync, sync_tree
from cleats.toolsets.code.store.locks import Lock, claim, share

LOCK: Final = "lock"
BUILDING: Final = ".building-"
DEAD: Final = ".dead-"
TAG: Final = "Signature: 8a477f597d28d172789f06886806bc55\n"
"""What tells backups that a folder holds nothing but copies."""

ROOT: Final = "root"
"""The file that says which folder an index is of; its own name is only a hash of that."""

_NAME = re.compile(r"(\d+)-[0-9a-f]{8}")


class Lease(Struct, frozen=True):
    """A generation that stays where it is until the lease is returned."""

    folder: Path
    _lock: Lock

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def catalogue(self) -> Path:
        return self.folder / schema.FILE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Return it. Safe to repeat."""
        self._lock.release()


class Shelf:
    """The generations of one repository."""

    def __init__(self, cache_dir: Path, repository: Repository) -> None:
        self.folder = cache_dir / "repos" / repository.id
        self.root = repository.root
        self._generations = self.folder / "generations"
        self._pointer = self.folder / "current"

    def name(self) -> str | None:
        """The name of the published generation. Costs one small read."""
        try:
            name = self._pointer.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None
        return name if _NAME.fullmatch(name) else None

    def current(self) -> Lease | None:
        """The published generation; None when there is none that this version can read."""
        lease = self._latest()
        if lease is not None and schema.form(lease.catalogue) != schema.SCHEMA:
            lease.close()
            return None
        return lease

    def outdated(self) -> bool:
        """Whether there is a generation that another version of this program wrote."""
        lease = self._latest()
        if lease is None:
            return False
        with lease:
            return schema.form(lease.catalogue) != schema.SCHEMA

    def _latest(self) -> Lease | None:
        missed = None
        while (name := self.name()) is not None and name != missed:
            folder = self._generations / name
            lock = share(folder / LOCK)
            if lock is not None:
                return Lease(folder, lock)
            missed = name  # it was replaced and removed since its name was read; look again
        return None

    def claim(self) -> Lock | None:
        """Become the builder; None while there is another one."""
        if not self._generations.is_dir():
            self._found()
        return claim(self.folder / "build.lock")

    def _found(self) -> None:
        above = self.folder.parent
        above.mkdir(parents=True, exist_ok=True)
        # The cache may lie in a repository, and an index must not be indexed.
        (above / ".gitignore").write_text("*\n", encoding="utf-8")
        (above / "CACHEDIR.TAG").write_text(TAG, encoding="utf-8")
        self.folder.mkdir(mode=0o700, exist_ok=True)  # it holds the text of every file
        self._generations.mkdir(exist_ok=True)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """A folder to build in, which is gone after the block unless it was published."""
        folder = self._generations / f"{BUILDING}{os.getpid()}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True)
        try:
            (folder / LOCK).touch()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path) -> str:
        """Make a draft the generation that everyone gets from now on; return its name."""
        number = 1 + max((int(found[1]) for found in self._names()), default=0)
        name = f"{number:06d}-{os.urandom(4).hex()}"
        sync_tree(folder)
        folder.rename(self._generations / name)
        sync(self._generations)
        replace_text(self._pointer, name + "\n")
        (self.folder / ROOT).write_bytes(os.fsencode(self.root))
        return name

    def collect(self) -> None:
        """Remove what nobody reads: old generations and drafts of dead builders.

        Only the builder may.
        """
        current = self.name()
        for path in list(self._generations.iterdir()):
            if path.name.startswith((BUILDING, DEAD)):
                shutil.rmtree(path, ignore_errors=True)
            elif _NAME.fullmatch(path.name) and path.name != current:
                self._remove(path)

    def _remove(self, generation: Path) -> None:
        lock = claim(generation / LOCK)
        if lock is None:
            return
        dead = generation.with_name(DEAD + generation.name)
        with suppress(OSError):  # Windows: somebody has a file of it open
            generation.rename(dead)  # first, so that half a generation never has a good name
        lock.release()
        shutil.rmtree(dead, ignore_errors=True)

    def _names(self) -> Iterator[re.Match[str]]:
        for path in self._generations.iterdir():
            if found := _NAME.fullmatch(path.name):
                yield found
