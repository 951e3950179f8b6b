"""Generations of an index: built in a draft folder, published atomically, removed when unread.

Rules:

- `current` names a complete generation or nothing, whatever was killed and when. It is replaced by
  a rename, after everything that it names is on the disk.
- A published generation never changes.
- A reader holds its generation with a shared lock, so it is never removed while it is read; readers
  and builders do not wait for each other.
- One builder at a time for each repository. The next builder removes what an earlier one left
  behind when it died.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from cleats.system.atomic_files import (
    FileLock,
    acquire_shared_lock,
    replace_text,
    sync_path,
    sync_tree,
    try_exclusive_lock,
)
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.repository import Repository

REPOSITORIES_FOLDER: Final = "repos"
GENERATIONS_FOLDER: Final = "generations"
PARSED_FOLDER: Final = "parsed"
"""The folder with what unfinished builds have parsed."""
POINTER_FILE_NAME: Final = "current"
BUILD_LOCK_FILE_NAME: Final = "build.lock"
LOCK_FILE_NAME: Final = "lock"
BUILDING_PREFIX: Final = ".building-"
DEAD_PREFIX: Final = ".dead-"
CACHEDIR_TAG_TEXT: Final = "Signature: 8a477f597d28d172789f06886806bc55\n"
"""Tells backup programs that a folder holds nothing but copies."""

ROOT_FILE_NAME: Final = "root"
"""The file that names the folder that was indexed; the index's own name is only a hash of it."""

GENERATION_NAME_PATTERN: Final = re.compile(r"(\d+)-[0-9a-f]{8}")


def read_current_name(folder: Path) -> str | None:
    """Return the name of the published generation in the folder of an index."""
    try:
        name = (folder / POINTER_FILE_NAME).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return name if GENERATION_NAME_PATTERN.fullmatch(name) else None


def bury_generation(generation: Path) -> Path:
    """Rename a generation that is about to be removed, so that half of one never has a good name."""
    return generation.rename(generation.with_name(DEAD_PREFIX + generation.name))


class GenerationLease(Struct, frozen=True):
    """A generation that is kept in place until the lease is closed."""

    folder: Path
    _lock: FileLock

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def catalogue_path(self) -> Path:
        return self.folder / catalogue_schema.CATALOGUE_FILE_NAME

    @property
    def is_outdated(self) -> bool:
        """True if another version of this program wrote it."""
        version = catalogue_schema.read_schema_version(self.catalogue_path)
        return version != catalogue_schema.CATALOGUE_SCHEMA_VERSION

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the generation. Safe to repeat."""
        self._lock.release()


class GenerationStore:
    """The generations of one repository."""

    def __init__(self, cache_dir: Path, repository: Repository) -> None:
        self.folder = cache_dir / REPOSITORIES_FOLDER / repository.id
        self.root = repository.root
        self._generations = self.folder / GENERATIONS_FOLDER

    def read_current_name(self) -> str | None:
        """Return the name of the published generation. Costs one small read."""
        return read_current_name(self.folder)

    def lease_current(self) -> GenerationLease | None:
        """Lease the published generation; return None when this version can read none."""
        lease = self._lease_published()
        if lease is not None and lease.is_outdated:
            lease.close()
            return None
        return lease

    def is_outdated(self) -> bool:
        """Return whether another version of this program wrote the published generation."""
        lease = self._lease_published()
        if lease is None:
            return False
        with lease:
            return lease.is_outdated

    def _lease_published(self) -> GenerationLease | None:
        missing_name = None
        while (name := self.read_current_name()) is not None and name != missing_name:
            folder = self._generations / name
            lock = acquire_shared_lock(folder / LOCK_FILE_NAME)
            if lock is not None:
                return GenerationLease(folder, lock)
            missing_name = name  # it was replaced and removed since its name was read; look again
        return None

    def try_build_lock(self) -> FileLock | None:
        """Become the builder; return None while there is another one."""
        if not self._generations.is_dir():
            self._create_folders()
        return try_exclusive_lock(self.folder / BUILD_LOCK_FILE_NAME)

    def _create_folders(self) -> None:
        parent = self.folder.parent
        parent.mkdir(parents=True, exist_ok=True)
        # The cache may lie in a repository, and an index must not be indexed.
        (parent / ".gitignore").write_text("*\n", encoding="utf-8")
        (parent / "CACHEDIR.TAG").write_text(CACHEDIR_TAG_TEXT, encoding="utf-8")
        self.folder.mkdir(mode=0o700, exist_ok=True)  # it holds the text of every file
        self._generations.mkdir(exist_ok=True)

    @contextmanager
    def create_draft(self) -> Iterator[Path]:
        """Create a folder to build in; it is removed after the block unless it was published."""
        folder = self._generations / f"{BUILDING_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True)
        try:
            (folder / LOCK_FILE_NAME).touch()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path) -> str:
        """Make a draft the current generation; return its name."""
        matches = (GENERATION_NAME_PATTERN.fullmatch(path.name) for path in self._generations.iterdir())
        number = 1 + max((int(matched[1]) for matched in matches if matched), default=0)
        name = f"{number:06d}-{os.urandom(4).hex()}"
        sync_tree(folder)
        folder.rename(self._generations / name)
        sync_path(self._generations)
        replace_text(self.folder / POINTER_FILE_NAME, name + "\n")
        (self.folder / ROOT_FILE_NAME).write_bytes(os.fsencode(self.root))
        return name

    def remove_unused(self) -> None:
        """Remove old generations that nobody reads, and the drafts of dead builders.

        The caller must be the builder.
        """
        current = self.read_current_name()
        for path in list(self._generations.iterdir()):
            if path.name.startswith((BUILDING_PREFIX, DEAD_PREFIX)):
                shutil.rmtree(path, ignore_errors=True)
            elif GENERATION_NAME_PATTERN.fullmatch(path.name) and path.name != current:
                self._remove_generation(path)

    def _remove_generation(self, generation: Path) -> None:
        lock = try_exclusive_lock(generation / LOCK_FILE_NAME)
        if lock is None:
            return
        dead_folder = None
        with suppress(OSError):  # Windows: somebody has a file of it open
            dead_folder = bury_generation(generation)
        lock.release()
        if dead_folder is not None:
            shutil.rmtree(dead_folder, ignore_errors=True)
