"""The interface of a store of records: a folder on one machine, or a database for a fleet.

Guarantees:
1. A record is stored completely or not at all, and is durable once the writer has confirmed it.
2. Records of several writers are all stored; if several save the same record, the last one wins.
3. A known record keeps its creation time, and its update time if nothing has changed; a record from
   another store keeps its timestamps.
4. Saved records are part of every later result of `refresh`, on every machine.

Calls block and can be made from any thread.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

from cleats.toolsets.code.records.model import RecordType, TriageRecord

if TYPE_CHECKING:
    from cleats.toolsets.code.records.archive import RecordArchive

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
