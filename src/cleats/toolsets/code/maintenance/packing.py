"""Packing in a child process."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import apsw
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import worker_process
from cleats.system.atomic_files import clone_file, link_file
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.build import explain_disk_errors, hold_build_lock
from cleats.toolsets.code.index.cache import BACKUPS_FOLDER
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_layers import merge_catalogue
from cleats.toolsets.code.index.catalogue_schema import BASE_FILE_NAME
from cleats.toolsets.code.index.generations import LOCK_FILE_NAME, GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import ModeChoice, expand_mode
from cleats.toolsets.code.index.progress import BuildProgress, ProgressCallback
from cleats.toolsets.code.repository import Repository

FTS_FILENAME: Final = "fts.db"

_DATABASE_NAMES = (BASE_FILE_NAME, catalogue_schema.CATALOGUE_FILE_NAME, FTS_FILENAME)


class PackingOrder(Struct, frozen=True, kw_only=True):
    """A change to make to an index."""

    task: Literal["add", "pack"]
    root: str
    cache_dir: str
    mode: ModeChoice = "all"
    """The mode that the index must have, and no other: one file holds all modes."""
    incremental: bool = False
    """Add: keep an existing SQLite index unchanged."""
    compact: bool = False
    """Add: also compact."""
    dry_run: bool = False
    """Pack: only measure the gain."""
    keep_backup: bool = False
    """Pack: keep the original files."""


class SqliteSizes(Struct, frozen=True):
    """Bytes of the SQLite files of a generation."""

    catalogue: int
    sqlite: int

    @property
    def total(self) -> int:
        return self.catalogue + self.sqlite


class PackingResult(Struct, kw_only=True):
    """The outcome of a packing order."""

    generation: str
    folder: str
    published: bool
    before: SqliteSizes
    after: SqliteSizes
    chunks: dict[str, int]
    """By mode."""
    vectors: int
    compacted: bool = False
    backup: str | None = None


def execute_order(order: PackingOrder, on_progress: ProgressCallback) -> PackingResult:
    """Execute an order, waiting while another process builds the index.

    Raises:
        ToolError: NO_INDEX, there is no index, or none of that mode; INVALID_REQUEST, it has others too.
    """
    repository = Repository(Path(order.root))
    store = GenerationStore(Path(order.cache_dir), repository)
    with explain_disk_errors(store.folder), _lock_current_generation(store, order, on_progress) as lease:
        packing_run = _PackingRun(store, lease, order, on_progress)
        return packing_run.add_fts() if order.task == "add" else packing_run.compact()


@contextmanager
def _lock_current_generation(
    store: GenerationStore, order: PackingOrder, on_progress: ProgressCallback
) -> Iterator[GenerationLease]:
    if store.read_current_name() is None:  # before a folder is created for the lock
        raise _missing_index_error(order, "has no index")
    with hold_build_lock(store, on_progress):
        lease = store.lease_current()
        if lease is None:
            raise _missing_index_error(order, "has no index that this version can read")
        with lease:
            yield lease
        store.remove_unused()


class _PackingRun:
    def __init__(
        self, store: GenerationStore, lease: GenerationLease, order: PackingOrder, on_progress: ProgressCallback
    ) -> None:
        self._store, self._lease, self._order, self._on_progress = store, lease, order, on_progress
        with IndexCatalogue.open(lease.catalogue_path) as catalogue:
            meta = catalogue.read_meta()
        if order.mode != "all" and order.mode not in meta["modes"]:
            raise _missing_index_error(order, f"has an index without {order.mode}")
        if not set(meta["modes"]) <= set(expand_mode(order.mode)):
            message = f"One file holds {', '.join(meta['modes'])}; it cannot be done for {order.mode} alone."
            raise ToolError(ErrorCode.INVALID_REQUEST, message, hint="Omit mode, or use all.")
        self._chunks: dict[str, int] = meta["counts"]["chunks"]
        self._vectors = sum(self._chunks.values()) if meta["vectors"] else 0
        self._has_fts = meta["sqlite"] and (lease.folder / FTS_FILENAME).is_file()
        self._sizes_before = _measure_databases(lease.folder)

    def add_fts(self) -> PackingResult:
        """Add the SQLite index."""
        from cleats.toolsets.code.index.full_text import write_fts_index  # noqa: PLC0415 - packing needs none

        if self._order.incremental and self._has_fts and not self._order.compact:
            return self._build_result(self._lease.folder, published=False)
        with self._store.create_draft() as draft:
            _link_unchanged(self._lease.folder, draft)
            clone_file(self._lease.catalogue_path, draft / catalogue_schema.CATALOGUE_FILE_NAME)
            with IndexCatalogue.open_for_update(draft / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
                catalogue.set_meta({"sqlite": True})
                catalogue.commit()
            self._report_message("building the SQLite full-text index")
            write_fts_index(draft)
            if self._order.compact:
                self._report_message("packing")
                self._compact_databases(draft, draft)
            return self._publish_draft(draft, compacted=self._order.compact)

    def compact(self) -> PackingResult:
        """Compact the SQLite files if that makes them smaller."""
        with self._store.create_draft() as draft:
            _link_unchanged(self._lease.folder, draft)
            self._compact_databases(self._lease.folder, draft)
            after = _measure_databases(draft)
            is_smaller = after.total < self._sizes_before.total
            if self._order.dry_run or not is_smaller:
                result = self._build_result(self._lease.folder, published=False)
                result.after = after if is_smaller else self._sizes_before
                return result
            backup = self._keep_backup() if self._order.keep_backup else None
            published_result = self._publish_draft(draft, compacted=True)
            published_result.backup = backup
            return published_result

    def _compact_databases(self, source: Path, draft: Path) -> None:
        """Rewrite the databases of a generation in a draft, which may be the same folder; the catalogue becomes one."""
        loose = draft / "loose.db"
        for name in (catalogue_schema.CATALOGUE_FILE_NAME, FTS_FILENAME):
            if not (source / name).is_file():
                continue
            self._report_message(f"packing {name}")
            is_layered = name == catalogue_schema.CATALOGUE_FILE_NAME and (source / BASE_FILE_NAME).is_file()
            if is_layered:
                merge_catalogue(source, loose)
            else:
                link_file(source / name, loose)
            (draft / name).unlink(missing_ok=True)
            _vacuum_database(loose, draft / name)
            loose.unlink()
        (draft / BASE_FILE_NAME).unlink(missing_ok=True)

    def _keep_backup(self) -> str:
        """Keep the original files as links, because a published file never changes."""
        folder = self._store.folder / BACKUPS_FOLDER / self._lease.name
        folder.mkdir(parents=True, exist_ok=True)
        for name in _DATABASE_NAMES:
            source = self._lease.folder / name
            if source.is_file() and not (folder / name).exists():
                link_file(source, folder / name)
        return str(folder)

    def _publish_draft(self, draft: Path, *, compacted: bool) -> PackingResult:
        self._on_progress(BuildProgress("publish", "writing to the disk"))
        name = self._store.publish(draft)
        result = self._build_result(self._lease.folder.with_name(name), published=True)
        result.compacted = compacted
        return result

    def _build_result(self, folder: Path, *, published: bool) -> PackingResult:
        return PackingResult(
            generation=folder.name,
            folder=str(folder),
            published=published,
            before=self._sizes_before,
            after=_measure_databases(folder),
            chunks=self._chunks,
            vectors=self._vectors,
        )

    def _report_message(self, message: str) -> None:
        self._on_progress(BuildProgress("sqlite", message))


def _link_unchanged(generation: Path, draft: Path) -> None:
    ignored = shutil.ignore_patterns(LOCK_FILE_NAME, catalogue_schema.CATALOGUE_FILE_NAME, FTS_FILENAME, ".tantivy-*")
    shutil.copytree(
        generation,
        draft,
        copy_function=lambda source, target: link_file(Path(source), Path(target)),
        ignore=ignored,
        dirs_exist_ok=True,
    )


def _vacuum_database(source: Path, target: Path) -> None:
    """Rewrite a database without its free space; the rows do not change."""
    uri = f"file:{quote(os.fsencode(source.absolute()))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags)
    try:
        connection.execute("VACUUM INTO ?", (str(target),))
    finally:
        connection.close()


def _measure_databases(folder: Path) -> SqliteSizes:
    base, catalogue, sqlite = (
        path.stat().st_size if path.is_file() else 0 for path in map(folder.joinpath, _DATABASE_NAMES)
    )
    return SqliteSizes(base + catalogue, sqlite)


def _missing_index_error(order: PackingOrder, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.NO_INDEX, f"{order.root} {reason}.", hint="Call build_index or run `cleats index` there first."
    )


PACKER_MODULE = "cleats.toolsets.code.maintenance"


async def run_packer(order: PackingOrder, on_progress: Callable[[BuildProgress], None], grace: float) -> PackingResult:
    """Pack in a child process, which ends with this call in every case.

    Raises:
        ToolError: packing failed, or the packer died.
    """
    return await worker_process.send_task(
        PACKER_MODULE, order, PackingResult, BuildProgress, on_progress, "packer", grace
    )
