"""New generations of what an index has already: with a SQLite index, or packed.

A published generation never changes, so another one is made from it: what stays the same is linked,
the rest is written aside, and the whole is published as a build would be. Files are not looked at.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import apsw
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.indexing.failures import explained
from cleats.toolsets.code.indexing.progress import Progress, Report
from cleats.toolsets.code.indexing.run import alone
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.cache import BACKUPS
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.files import clone
from cleats.toolsets.code.store.generations import LOCK, Lease, Shelf

FTS: Final = "fts.db"


class Order(Struct, frozen=True, kw_only=True):
    """What is to be made of an index."""

    task: Literal["add", "pack"]
    root: str
    cache_dir: str
    mode: str = "all"
    """What the caller is interested in; one file holds all modes."""
    incremental: bool = False
    """Add: leave a SQLite index that is there as it is."""
    compact: bool = False
    """Add: also pack."""
    dry_run: bool = False
    """Pack: only say what it would gain."""
    keep_backup: bool = False
    """Pack: keep the files as they were."""


class Sizes(Struct, frozen=True):
    """Bytes of the SQLite files of a generation."""

    catalogue: int
    sqlite: int

    @property
    def total(self) -> int:
        return self.catalogue + self.sqlite


class Packed(Struct, kw_only=True):
    """What became of an index."""

    generation: str
    folder: str
    published: bool
    before: Sizes
    after: Sizes
    chunks: dict[str, int]
    """By mode."""
    vectors: int
    compacted: bool = False
    backup: str | None = None


def carried_out(order: Order, report: Report) -> Packed:
    """Do what an order says. Waits while somebody builds the index.

    Raises:
        ToolError: NO_INDEX, there is none, or none of that mode; or it cannot be written.
    """
    repository = Repository(Path(order.root))
    shelf = Shelf(Path(order.cache_dir), repository)
    with explained(shelf.folder), _current(shelf, order, report) as lease:
        packing = _Packing(shelf, lease, order, report)
        return packing.added() if order.task == "add" else packing.packed()


@contextmanager
def _current(shelf: Shelf, order: Order, report: Report) -> Iterator[Lease]:
    if shelf.name() is None:  # before a folder is made to be alone in
        raise _missing(order, "has no index")
    with alone(shelf, report):
        lease = shelf.current()
        if lease is None:
            raise _missing(order, "has no index that this version can read")
        with lease:
            yield lease
        shelf.collect()


class _Packing:
    def __init__(self, shelf: Shelf, lease: Lease, order: Order, report: Report) -> None:
        self._shelf, self._lease, self._order, self._report = shelf, lease, order, report
        with Catalogue.open(lease.catalogue) as catalogue:
            meta = catalogue.meta()
        if order.mode != "all" and order.mode not in meta["modes"]:
            raise _missing(order, f"has an index without {order.mode}")
        self._chunks: dict[str, int] = meta["counts"]["chunks"]
        self._vectors = sum(self._chunks.values()) if meta["vectors"] else 0
        self._has_fts = meta["sqlite"] and (lease.folder / FTS).is_file()
        self._before = _sizes(lease.folder)

    def added(self) -> Packed:
        """Add the SQLite index."""
        from cleats.toolsets.code.search.fts import write_fts  # noqa: PLC0415 - packing needs none

        if self._order.incremental and self._has_fts and not self._order.compact:
            return self._told(self._lease.folder, published=False)
        with self._shelf.draft() as draft:
            _link(self._lease.folder, draft)
            clone(self._lease.catalogue, draft / schema.FILE)
            with Catalogue.update(draft / schema.FILE) as catalogue:
                catalogue.set_meta({"sqlite": True})
                catalogue.commit()
            self._say("making it searchable with SQLite")
            write_fts(draft)
            if self._order.compact:
                self._say("packing")
                for name in (schema.FILE, FTS):
                    (draft / name).rename(draft / f"{name}.loose")
                    _vacuum(draft / f"{name}.loose", draft / name)
                    (draft / f"{name}.loose").unlink()
            return self._published(draft, compacted=self._order.compact)

    def packed(self) -> Packed:
        """Pack the SQLite files, if that gains anything."""
        with self._shelf.draft() as draft:
            _link(self._lease.folder, draft)
            for name in (schema.FILE, FTS):
                if (self._lease.folder / name).is_file():
                    self._say(f"packing {name}")
                    _vacuum(self._lease.folder / name, draft / name)
            after = _sizes(draft)
            gains = after.total < self._before.total
            if self._order.dry_run or not gains:
                told = self._told(self._lease.folder, published=False)
                told.after = after if gains else self._before
                return told
            backup = self._backup() if self._order.keep_backup else None
            done = self._published(draft, compacted=True)
            done.backup = backup
            return done

    def _backup(self) -> str:
        """Keep the files as they are: links, for a published file never changes."""
        folder = self._shelf.folder / BACKUPS / self._lease.name
        folder.mkdir(parents=True, exist_ok=True)
        for name in (schema.FILE, FTS):
            source = self._lease.folder / name
            if source.is_file() and not (folder / name).exists():
                _linked(str(source), str(folder / name))
        return str(folder)

    def _published(self, draft: Path, *, compacted: bool) -> Packed:
        self._report(Progress("publish", "writing to the disk"))
        name = self._shelf.publish(draft)
        told = self._told(self._lease.folder.with_name(name), published=True)
        told.compacted = compacted
        return told

    def _told(self, folder: Path, *, published: bool) -> Packed:
        return Packed(
            generation=folder.name,
            folder=str(folder),
            published=published,
            before=self._before,
            after=_sizes(folder),
            chunks=self._chunks,
            vectors=self._vectors,
        )

    def _say(self, message: str) -> None:
        self._report(Progress("sqlite", message))


def _link(generation: Path, draft: Path) -> None:
    """Take over what stays the same."""
    left_out = shutil.ignore_patterns(LOCK, schema.FILE, FTS, ".tantivy-*")
    shutil.copytree(generation, draft, copy_function=_linked, ignore=left_out, dirs_exist_ok=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _vacuum(source: Path, target: Path) -> None:
    """Write a database anew, without what it has freed; the rows stay what they are."""
    uri = f"file:{quote(os.fsencode(source.absolute()))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags)
    try:
        connection.execute("VACUUM INTO ?", (str(target),))
    finally:
        connection.close()


def _sizes(folder: Path) -> Sizes:
    return Sizes(*(_size(folder / name) for name in (schema.FILE, FTS)))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _missing(order: Order, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NO_INDEX,
        f"{order.root} {why}.",
        hint="Call build_index, or run `cleats index`, in it first.",
    )
