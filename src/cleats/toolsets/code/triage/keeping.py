"""What keeps the records of a repository promises. A folder does it here, a database for a fleet.

Laws:
1. A record is there whole or not at all, and stays when whoever saved it was told so.
2. Records of several writers are all kept; of one record that several save, the last counts.
3. A record that is known keeps its age, and its time if nothing has changed; one that comes from
   elsewhere keeps the times it has.
4. What was saved is in what `current` gives from then on, wherever that is asked.

Calls block and may be made from any thread.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

from cleats.toolsets.code.triage.records import Record, RecordType

if TYPE_CHECKING:
    from cleats.toolsets.code.triage.archive import Archive

Change = Literal["created", "updated", "unchanged"]

TOGETHER: Final = 50
"""Records that are handed over at once."""


class Writer(Protocol):
    """Saves records, each once."""

    def save(self, records: Sequence[Record]) -> list[Change]:
        """Keep some records, with the times they should have; say what became of each."""


class Keeper(Protocol):
    """Keeps the records of one repository."""

    @property
    def here(self) -> "Archive":
        """The records on this machine, as they were when it last looked."""

    def current(self) -> "Archive":
        """The records on this machine, as they are.

        Raises:
            ToolError: UNAVAILABLE, nobody can tell now.
        """

    def writing(self) -> AbstractContextManager[Writer]:
        """Save records; they are safe when this ends.

        Raises:
            ToolError: INVALID_REQUEST, nothing can be written; UNAVAILABLE, not now.
        """


def hand_over(source: "Archive", keeper: Keeper) -> int:
    """Let a keeper have what a folder has and it has not; how many records that were.

    Raises:
        ToolError: as `current` and `writing` do; to try again finishes it.
    """
    known = set(keeper.current().beginning(""))
    records = (each for kind in get_args(RecordType) for each in source.records(kind))
    new = (each for each in records if each.record_id not in known)
    count = 0
    with keeper.writing() as writer:
        while some := list(islice(new, TOGETHER)):
            count += len(writer.save(some))
    return count


def settle(record: Record, before: Record | None, now: str) -> Change:
    """Put the times on a record that is to be kept in the place of another, or of none."""
    if before is None:
        record.created_at, record.updated_at = record.created_at or now, record.updated_at or now
        return "created"
    record.created_at, record.updated_at = before.created_at, before.updated_at
    if record == before:
        return "unchanged"
    record.updated_at = now
    return "updated"
