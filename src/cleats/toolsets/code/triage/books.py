"""Records in a PostgreSQL that any number of machines share: a book for each repository.

A book has a revision, which every change raises by one. Whoever writes locks the book, so changes
come one after the other, and a machine that knows a revision asks only for what is newer. What it
gets lies in its cache as files, which is what its index is built of; the database has the truth.
Times are those of the database's clock, which is one for all machines.
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
from cleats.runtime import postgres
from cleats.toolsets.code.store.files import replace_text
from cleats.toolsets.code.store.locks import claim
from cleats.toolsets.code.triage.archive import FOLDERS, SUFFIX, Archive, read, unwritable
from cleats.toolsets.code.triage.keeping import Change, settle
from cleats.toolsets.code.triage.records import ID, Record, RecordType, encode

if TYPE_CHECKING:
    from cleats.runtime.postgres import Connection

log = logging.getLogger(__name__)

TABLES: Final = """
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

_NOW: Final = (
    """SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
)
_KEEP: Final = (
    "INSERT INTO cleats_records (name, record_id, kind, revision, body) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (name, record_id) DO UPDATE SET revision = excluded.revision,"
    " kind = excluded.kind, body = excluded.body"
)

_PATIENCE: Final = (
    "SET LOCAL lock_timeout = '10s'",
    "SET LOCAL idle_in_transaction_session_timeout = '10s'",
)
"""A change takes milliseconds. Whoever stalls in one is put out, and nobody waits for longer."""

MARK: Final = "shared.json"
"""The file beside the copies that says of what they are copies."""

LOCK: Final = "copying.lock"

TOGETHER: Final = 500
"""Records that travel at once."""

PAUSE: Final = 0.02
"""Seconds between two attempts to become the one who copies."""


class Stand(msgspec.Struct, frozen=True):
    """Which book, and how far it has come; an empty one before its first record."""

    book: str = ""
    revision: int = 0


# At import: two threads that show msgspec a type for the first time bring the process down.
_read_stand = msgspec.json.Decoder(Stand).decode


class Books:
    """The books of a fleet."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made = False

    @contextmanager
    def connected(self) -> "Iterator[Connection]":
        """The database, outside of any transaction.

        Raises:
            ToolError: UNAVAILABLE, it does not answer, or went away.
        """
        try:
            with postgres.connected(self._url, autocommit=True) as connection:
                if not self._made:
                    with connection.transaction():
                        postgres.make_tables(connection, TABLES)
                    self._made = True
                yield connection
        except postgres.UnreachableError as error:
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                f"The records cannot be reached: {error}.",
                hint="Try again; nothing was half written.",
            ) from None


@dataclass(frozen=True)
class Book:
    """The records of one repository, for all who know it by its name."""

    books: Books
    name: str
    here: Archive
    """The copies on this machine."""

    def current(self) -> Archive:
        with self.books.connected() as connection:
            self._copy(connection)
        return self.here

    @contextmanager
    def writing(self) -> Iterator["BookWriter"]:
        with self.books.connected() as connection:
            yield BookWriter(connection, self.name)
        try:
            self.current()
        except ToolError as error:  # they are safe; whoever reads next looks again
            log.warning("records.copy name=%s error=%s", self.name, error.message)

    def _copy(self, connection: "Connection") -> None:
        """Have what the database has; for a look that finds nothing new, one question."""
        if _stand(connection, self.name) == self._mark():
            return
        try:
            self.here.prepare()
            with _alone(self.here.folder / LOCK):
                self._catch_up(connection)
        except OSError as error:
            raise unwritable(self.here.folder, error, "CLEATS_CACHE_DIR") from error

    def _catch_up(self, connection: "Connection") -> None:
        from cleats.toolsets.code.triage.batch import Batch  # noqa: PLC0415 - loads threads

        stand, mark = _stand(connection, self.name), self._mark()
        if mark.book != stand.book or mark.revision > stand.revision:  # it is not the same book
            (self.here.folder / MARK).unlink(missing_ok=True)
            self.here.empty()
            mark = Stand()
        batch = Batch()
        try:
            for kind, record_id, body in _newer(connection, self.name, mark.revision):
                if kind in FOLDERS and ID.fullmatch(record_id):
                    folder = self.here.folder / FOLDERS[kind]
                    batch.add(folder / f"{record_id}{SUFFIX}", body.encode())
            batch.flush()
        finally:
            batch.discard()
        replace_text(self.here.folder / MARK, msgspec.json.encode(stand).decode() + "\n")

    def _mark(self) -> Stand:
        try:
            return _read_stand((self.here.folder / MARK).read_bytes())
        except (OSError, msgspec.DecodeError):
            return Stand()


@dataclass(frozen=True)
class BookWriter:
    """Saves records of one book."""

    connection: "Connection"
    name: str

    def save(self, records: Sequence[Record]) -> list[Change]:
        if not records:
            return []
        with self.connection.transaction():
            revision = self._locked() + 1
            before = self._before([record.record_id for record in records])
            [now] = _one(self.connection, _NOW)
            changes = [settle(each, before.get(each.record_id), now) for each in records]
            rows = [
                (self.name, each.record_id, each.record_type, revision, encode(each).decode())
                for each, change in zip(records, changes, strict=True)
                if change != "unchanged"
            ]
            if rows:
                with self.connection.cursor() as cursor:
                    cursor.executemany(_KEEP, rows)
                self.connection.execute(
                    "UPDATE cleats_record_books SET revision = %s WHERE name = %s",
                    (revision, self.name),
                )
        return changes

    def _locked(self) -> int:
        """The revision of the book, which nobody else raises before this transaction ends."""
        for statement in _PATIENCE:
            self.connection.execute(statement)
        self.connection.execute(
            "INSERT INTO cleats_record_books (name, book) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (self.name, uuid4().hex),
        )
        query = "SELECT revision FROM cleats_record_books WHERE name = %s FOR UPDATE"
        [revision] = _one(self.connection, query, self.name)
        return int(revision)

    def _before(self, ids: Sequence[str]) -> dict[str, Record | None]:
        rows = self.connection.execute(
            "SELECT record_id, body FROM cleats_records WHERE name = %s AND record_id = ANY(%s)",
            (self.name, ids),
        )
        return {record_id: read(record_id, body.encode()) for record_id, body in rows}


def _stand(connection: "Connection", name: str) -> Stand:
    row = connection.execute(
        "SELECT book, revision FROM cleats_record_books WHERE name = %s", (name,)
    ).fetchone()
    return Stand() if row is None else Stand(*row)


def _newer(
    connection: "Connection", name: str, revision: int
) -> Iterator[tuple[RecordType, str, str]]:
    with connection.transaction(), connection.cursor(name="cleats_records") as cursor:
        cursor.itersize = TOGETHER
        cursor.execute(
            "SELECT kind, record_id, body FROM cleats_records WHERE name = %s AND revision > %s",
            (name, revision),
        )
        yield from cursor


def _one(connection: "Connection", query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query, values).fetchone()
    assert row is not None  # noqa: S101 - it was put there, or has no table
    return row


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Be the only one on this machine who copies; wait for the others."""
    while (lock := claim(path)) is None:
        time.sleep(PAUSE)
    try:
        yield
    finally:
        lock.release()
