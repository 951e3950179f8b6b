"""Records in a PostgreSQL database that many machines share, with one book per repository.

Every change increments the revision of its book. A writer locks the book, so changes are serialized, and a machine that
knows a revision fetches only newer records. The database is authoritative; each machine caches the records as files,
from which it builds its index. Timestamps come from the clock of the database, which is the same for all machines.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import postgres
from cleats.system.atomic_files import replace_text, try_exclusive_lock
from cleats.toolsets.code.records.archive import (
    FOLDERS_BY_TYPE,
    RECORD_SUFFIX,
    RecordArchive,
    RecordChange,
    build_write_error,
    parse_record,
    update_timestamps,
)
from cleats.toolsets.code.records.model import RECORD_ID_PATTERN, RecordType, TriageRecord, encode_json

if TYPE_CHECKING:
    from cleats.system.postgres import Connection

log = logging.getLogger(__name__)

CREATE_TABLES_SQL: Final = """
CREATE TABLE IF NOT EXISTS cleats_record_books (
  name TEXT PRIMARY KEY,
  book TEXT NOT NULL,
  revision BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS cleats_records (
  name TEXT NOT NULL REFERENCES cleats_record_books,
  record_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  revision BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (name, record_id)
);
CREATE INDEX IF NOT EXISTS cleats_records_by_revision ON cleats_records (name, revision);
"""

_SELECT_NOW_SQL: Final = """SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_UPSERT_RECORD_SQL: Final = (
    "INSERT INTO cleats_records (name, record_id, kind, revision, body) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (name, record_id) DO UPDATE SET revision = excluded.revision,"
    " kind = excluded.kind, body = excluded.body"
)

_SET_TIMEOUTS_SQL: Final = ("SET LOCAL lock_timeout = '10s'", "SET LOCAL idle_in_transaction_session_timeout = '10s'")
"""Timeouts of a write transaction. A change takes milliseconds: a stalled writer is disconnected,
and other writers wait no longer than this."""

REVISION_FILE_NAME: Final = "shared.json"
"""The file next to the cached records that names the revision they were copied from."""

LOCK_FILE_NAME: Final = "copying.lock"

FETCH_BATCH_RECORDS: Final = 500
"""Records fetched from the database at a time."""

LOCK_RETRY_SECONDS: Final = 0.02
"""Seconds between two attempts to lock the local copy."""


class BookRevision(msgspec.Struct, frozen=True):
    """The identity and revision of a book; empty before its first record."""

    book: str = ""
    revision: int = 0


# Created at import: msgspec crashes if two threads are the first to use a type.
_decode_revision = msgspec.json.Decoder(BookRevision).decode


class RecordDatabase:
    """The database with the books of all repositories."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._has_tables = False

    @contextmanager
    def connect(self) -> "Iterator[Connection]":
        """Open a connection outside of any transaction.

        Raises:
            ToolError: UNAVAILABLE if the database does not answer or the connection is lost.
        """
        try:
            with postgres.open_connection(self._url, autocommit=True) as connection:
                if not self._has_tables:
                    with connection.transaction():
                        postgres.create_tables(connection, CREATE_TABLES_SQL)
                    self._has_tables = True
                yield connection
        except postgres.UnreachableError as error:
            message = f"The records cannot be reached: {error}."
            raise ToolError(ErrorCode.UNAVAILABLE, message, hint="Try again; the failed change was undone.") from None


@dataclass(frozen=True)
class DatabaseRecordStore:
    """The records of one repository, shared by all machines that use the same name for it."""

    database: RecordDatabase
    name: str
    local_archive: RecordArchive
    """The cached records on this machine."""

    def refresh(self) -> RecordArchive:
        with self.database.connect() as connection:
            self._update_copy(connection)
        return self.local_archive

    @contextmanager
    def open_writer(self) -> Iterator["DatabaseRecordWriter"]:
        with self.database.connect() as connection:
            yield DatabaseRecordWriter(connection, self.name)
        try:
            self.refresh()
        except ToolError as error:  # the records are saved; the next read copies them
            log.warning("records.copy name=%s error=%s", self.name, error.message)

    def _update_copy(self, connection: "Connection") -> None:
        """Bring the cached records up to date; costs one query if nothing has changed."""
        if _fetch_revision(connection, self.name) == self._read_copied_revision():
            return
        try:
            self.local_archive.prepare_folders()
            with _hold_lock(self.local_archive.folder / LOCK_FILE_NAME):
                self._copy_new_records(connection)
        except OSError as error:
            raise build_write_error(self.local_archive.folder, error, "CLEATS_CACHE_DIR") from error

    def _copy_new_records(self, connection: "Connection") -> None:
        from cleats.system.atomic_files import FileBatch  # noqa: PLC0415 - loads threads

        latest, copied = _fetch_revision(connection, self.name), self._read_copied_revision()
        if copied.book != latest.book or copied.revision > latest.revision:  # the book was replaced
            (self.local_archive.folder / REVISION_FILE_NAME).unlink(missing_ok=True)
            self.local_archive.clear()
            copied = BookRevision()
        batch = FileBatch()
        try:
            for kind, record_id, body in _iter_newer_records(connection, self.name, copied.revision):
                if kind in FOLDERS_BY_TYPE and RECORD_ID_PATTERN.fullmatch(record_id):
                    folder = self.local_archive.folder / FOLDERS_BY_TYPE[kind]
                    batch.add(folder / f"{record_id}{RECORD_SUFFIX}", body.encode())
            batch.flush()
        finally:
            batch.discard()
        replace_text(self.local_archive.folder / REVISION_FILE_NAME, msgspec.json.encode(latest).decode() + "\n")

    def _read_copied_revision(self) -> BookRevision:
        try:
            return _decode_revision((self.local_archive.folder / REVISION_FILE_NAME).read_bytes())
        except (OSError, msgspec.DecodeError):
            return BookRevision()


@dataclass(frozen=True)
class DatabaseRecordWriter:
    """Saves records to one book."""

    connection: "Connection"
    name: str

    def save(self, records: Sequence[TriageRecord]) -> list[RecordChange]:
        if not records:
            return []
        with self.connection.transaction():
            revision = self._lock_book() + 1
            existing = self._load_existing([record.record_id for record in records])
            [timestamp] = _fetch_one(self.connection, _SELECT_NOW_SQL)
            changes = [update_timestamps(record, existing.get(record.record_id), timestamp) for record in records]
            rows = [
                (self.name, record.record_id, record.record_type, revision, encode_json(record).decode())
                for record, change in zip(records, changes, strict=True)
                if change != "unchanged"
            ]
            if rows:
                with self.connection.cursor() as cursor:
                    cursor.executemany(_UPSERT_RECORD_SQL, rows)
                update = "UPDATE cleats_record_books SET revision = %s WHERE name = %s"
                self.connection.execute(update, (revision, self.name))
        return changes

    def _lock_book(self) -> int:
        for statement in _SET_TIMEOUTS_SQL:
            self.connection.execute(statement)
        insertion = "INSERT INTO cleats_record_books (name, book) VALUES (%s, %s) ON CONFLICT DO NOTHING"
        self.connection.execute(insertion, (self.name, uuid4().hex))
        query = "SELECT revision FROM cleats_record_books WHERE name = %s FOR UPDATE"
        [revision] = _fetch_one(self.connection, query, self.name)
        return int(revision)

    def _load_existing(self, record_ids: Sequence[str]) -> dict[str, TriageRecord | None]:
        query = "SELECT record_id, body FROM cleats_records WHERE name = %s AND record_id = ANY(%s)"
        rows = self.connection.execute(query, (self.name, record_ids))
        return {record_id: parse_record(record_id, body.encode()) for record_id, body in rows}


def _fetch_revision(connection: "Connection", name: str) -> BookRevision:
    row = connection.execute("SELECT book, revision FROM cleats_record_books WHERE name = %s", (name,)).fetchone()
    return BookRevision() if row is None else BookRevision(*row)


def _iter_newer_records(connection: "Connection", name: str, revision: int) -> Iterator[tuple[RecordType, str, str]]:
    with connection.transaction(), connection.cursor(name="cleats_records") as cursor:
        cursor.itersize = FETCH_BATCH_RECORDS
        query = "SELECT kind, record_id, body FROM cleats_records WHERE name = %s AND revision > %s"
        cursor.execute(query, (name, revision))
        yield from cursor


def _fetch_one(connection: "Connection", query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query, values).fetchone()
    assert row is not None  # noqa: S101 - it was put there, or has no table
    return row


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    while (lock := try_exclusive_lock(path)) is None:
        time.sleep(LOCK_RETRY_SECONDS)
    try:
        yield
    finally:
        lock.release()
