"""Stores of records: the interface of all stores, and the folder on one machine.

Guarantees of every store, whose calls block and can be made from any thread:

1. A record is stored completely or not at all, and is durable once the writer has confirmed it.
2. Records of several writers are all stored; if several save the same record, the last one wins.
3. A known record keeps its creation time, and its update time if nothing has changed; a record from another store keeps
   its timestamps.
4. Saved records are part of every later result of `refresh`, on every machine.

In the folder of a repository each record is a JSON file, findings and decisions apart. A file that does not hold a
valid record is ignored.
"""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import TRIAGE_RECORD_LANGUAGE
from cleats.toolsets.code.records.model import (
    RECORD_ID_PATTERN,
    RecordType,
    TriageRecord,
    decode_record,
    encode_json,
    format_current_time,
)
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.system.atomic_files import FileBatch
    from cleats.toolsets.code.discovery.files import DiscoveredFile

RecordChange = Literal["created", "updated", "unchanged"]

COPY_BATCH_RECORDS: Final = 50
"""Records that are copied at a time."""


class RecordWriter(Protocol):
    """Saves records, each once."""

    def save(self, records: Sequence[TriageRecord]) -> list[RecordChange]:
        """Save records with updated timestamps; return what changed for each of them."""


class RecordStore(Protocol):
    """Stores the records of one repository."""

    @property
    def local_archive(self) -> "RecordArchive":
        """The records on this machine, as of the last refresh."""

    def refresh(self) -> "RecordArchive":
        """Bring the records on this machine up to date and return them.

        Raises:
            ToolError: UNAVAILABLE if the current records cannot be fetched.
        """

    def open_writer(self) -> AbstractContextManager[RecordWriter]:
        """Open a writer; the records are durable when the context ends.

        Raises:
            ToolError: INVALID_REQUEST if nothing can be written; UNAVAILABLE if that is temporary.
        """


def copy_records(source: "RecordArchive", store: RecordStore) -> int:
    """Copy the records that a store lacks from an archive; return their number.

    Raises:
        ToolError: As `refresh` and `open_writer` do; a second attempt completes the copy.
    """
    existing_ids = set(store.refresh().find_ids(""))
    records = (record for kind in get_args(RecordType) for record in source.iter_records(kind))
    new_records = (record for record in records if record.record_id not in existing_ids)
    count = 0
    with store.open_writer() as writer:
        while chunk := list(islice(new_records, COPY_BATCH_RECORDS)):
            count += len(writer.save(chunk))
    return count


def update_timestamps(record: TriageRecord, existing: TriageRecord | None, timestamp: str) -> RecordChange:
    """Set the timestamps of a record that replaces an existing one or is new; return the change."""
    if existing is None:
        record.created_at, record.updated_at = record.created_at or timestamp, record.updated_at or timestamp
        return "created"
    record.created_at, record.updated_at = existing.created_at, existing.updated_at
    if record == existing:
        return "unchanged"
    record.updated_at = timestamp
    return "updated"


FOLDERS_BY_TYPE: Final[dict[RecordType, str]] = {"finding": "findings", "decision": "decisions"}

VIRTUAL_FOLDER: Final = ".cleats/records"
"""The folder under which the index shows records; the repository does not have it."""

RECORD_SUFFIX: Final = ".json"
_RECORD_NAME_PATTERN: Final = re.compile(RECORD_ID_PATTERN.pattern + re.escape(RECORD_SUFFIX))

DISK_FULL_ERRNOS: Final = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a disk without free space."""


def virtual_path(record_id: str) -> str:
    """Return the path under which search shows a record."""
    return f"{VIRTUAL_FOLDER}/{record_id}.md"


class RecordArchive:
    """The records of a repository in a folder: the store for a single machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def from_repository(cls, records_dir: Path, repository: Repository) -> "RecordArchive":
        """Return the archive of a repository below the folder for all archives."""
        return cls(records_dir / repository.id)

    @property
    def local_archive(self) -> "RecordArchive":
        return self

    def refresh(self) -> "RecordArchive":
        return self

    def record_path(self, record: TriageRecord) -> Path:
        """Return the path of the file for a record."""
        return self.folder / FOLDERS_BY_TYPE[record.record_type] / f"{record.record_id}{RECORD_SUFFIX}"

    def finding_path(self, record_id: str) -> Path:
        """Return the path of the file for the finding with an id."""
        return self.folder / FOLDERS_BY_TYPE["finding"] / f"{record_id}{RECORD_SUFFIX}"

    def find(self, record_id: str) -> TriageRecord | None:
        """Return the record with an id, or None."""
        if not RECORD_ID_PATTERN.fullmatch(record_id):
            return None
        paths = (self.folder / name / f"{record_id}{RECORD_SUFFIX}" for name in FOLDERS_BY_TYPE.values())
        return next(filter(None, map(_read_record, paths)), None)

    def find_ids(self, prefix: str) -> list[str]:
        """Return the ids of all records that start with a prefix."""
        record_ids = (
            entry.name.removesuffix(RECORD_SUFFIX) for kind in FOLDERS_BY_TYPE for entry in self._list_entries(kind)
        )
        return [record_id for record_id in record_ids if record_id.startswith(prefix)]

    def iter_records(self, kind: RecordType) -> Iterator[TriageRecord]:
        """Yield all findings or all decisions, ordered by id."""
        yield from filter(None, (_read_record(Path(entry.path)) for entry in self._list_entries(kind)))

    @contextmanager
    def open_writer(self) -> Iterator["ArchiveWriter"]:
        # Imports threading, and every index build imports this module.
        from cleats.system.atomic_files import FileBatch  # noqa: PLC0415

        batch = FileBatch()
        try:
            self.prepare_folders()
            yield ArchiveWriter(self, batch, format_current_time())
            batch.flush()
        except OSError as error:
            raise build_write_error(self.folder, error, "CLEATS_DATA_DIR") from error
        finally:
            batch.discard()

    def prepare_folders(self) -> None:
        """Create the folders and remove temporary files that a crash left in them.

        Raises:
            OSError: The folders cannot be created.
        """
        from cleats.system.atomic_files import remove_stale_files  # noqa: PLC0415 - as above

        for name in FOLDERS_BY_TYPE.values():
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
            remove_stale_files(self.folder / name)

    def clear(self) -> None:
        """Remove every record.

        Raises:
            OSError: A record cannot be removed.
        """
        for kind in FOLDERS_BY_TYPE:
            for entry in self._list_entries(kind):
                Path(entry.path).unlink(missing_ok=True)

    @property
    def watched_folders(self) -> tuple[str, ...]:
        """The folders whose modification times change when a record is added."""
        return (str(self.folder), *(str(self.folder / name) for name in FOLDERS_BY_TYPE.values()))

    def list_files(self) -> list["DiscoveredFile"]:
        """Return the records as files of the repository, for building its index."""
        from cleats.toolsets.code.discovery.files import DiscoveredFile  # noqa: PLC0415 - a server starts

        files: list[DiscoveredFile] = []
        for kind in FOLDERS_BY_TYPE:
            for entry in self._list_entries(kind):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                path = virtual_path(entry.name.removesuffix(RECORD_SUFFIX))
                size, mtime = status.st_size, status.st_mtime_ns
                files.append(DiscoveredFile(path, size, mtime, TRIAGE_RECORD_LANGUAGE, "records", entry.path))
        return files

    def _list_entries(self, kind: RecordType) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder / FOLDERS_BY_TYPE[kind]) as entries:
                regular_files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        record_entries = [entry for entry in regular_files if _RECORD_NAME_PATTERN.fullmatch(entry.name)]
        return sorted(record_entries, key=lambda entry: entry.name)


@dataclass(frozen=True)
class ArchiveWriter:
    """Saves records to one archive."""

    archive: RecordArchive
    batch: "FileBatch"
    timestamp: str

    def save(self, records: Sequence[TriageRecord]) -> list[RecordChange]:
        changes: list[RecordChange] = []
        for record in records:
            path = self.archive.record_path(record)
            changes.append(update_timestamps(record, _read_record(path), self.timestamp))
            if changes[-1] != "unchanged":
                self.batch.add(path, encode_json(record))
        return changes


def parse_record(record_id: str, data: bytes) -> TriageRecord | None:
    """Return the record stored under an id, or None if the data is not that record."""
    try:
        record = decode_record(data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return record if record.record_id == record_id else None


def build_write_error(folder: Path, error: OSError, setting: str) -> ToolError:
    """Return the error for a failed write; a full disk is reported as temporary."""
    return ToolError(
        ErrorCode.UNAVAILABLE if error.errno in DISK_FULL_ERRNOS else ErrorCode.INVALID_REQUEST,
        f"Records cannot be written to {folder}: {error.strerror}.",
        hint=f"Free some space or allow writing, or set {setting} to another folder.",
    )


def _read_record(path: Path) -> TriageRecord | None:
    try:
        return parse_record(path.name.removesuffix(RECORD_SUFFIX), path.read_bytes())
    except OSError:
        return None
