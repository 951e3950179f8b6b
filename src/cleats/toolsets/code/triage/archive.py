"""The records of one repository on disk: a file of JSON each, findings and decisions apart.

A reader sees a record whole or not at all, and what was saved is on the disk itself when
`writing` ends. A file that holds no record is not one, whoever put it there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.facts import RECORD
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.triage.records import ID, Record, RecordType, decode, encode

if TYPE_CHECKING:
    from cleats.toolsets.code.discovery.files import Found
    from cleats.toolsets.code.triage.batch import Batch

Change = Literal["created", "updated", "unchanged"]

FOLDERS: Final[dict[RecordType, str]] = {"finding": "findings", "decision": "decisions"}

VIRTUAL: Final = ".cleats/records"
"""Where the index shows records: a folder that the repository does not have."""

LANGUAGE: Final = RECORD
"""What the index takes a record for when it reads it."""

SUFFIX: Final = ".json"


def virtual_path(record_id: str) -> str:
    """The file that a search shows for a record."""
    return f"{VIRTUAL}/{record_id}.md"


class Archive:
    """The records of a repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, records: Path, repository: Repository) -> "Archive":
        """Those of a repository, below the folder for all."""
        return cls(records / repository.id)

    def place(self, record: Record) -> Path:
        """Where a record is kept."""
        return self.folder / FOLDERS[record.record_type] / f"{record.record_id}{SUFFIX}"

    def finding_place(self, record_id: str) -> Path:
        """Where the finding with an id is kept."""
        return self.folder / FOLDERS["finding"] / f"{record_id}{SUFFIX}"

    def find(self, record_id: str) -> Record | None:
        """A record by its id; None when there is none."""
        if not ID.fullmatch(record_id):
            return None
        for name in FOLDERS.values():
            if found := _read(self.folder / name / f"{record_id}{SUFFIX}"):
                return found
        return None

    def beginning(self, start: str) -> list[str]:
        """The ids of all records that begin so."""
        names = (
            entry.name.removesuffix(SUFFIX) for kind in FOLDERS for entry in self._entries(kind)
        )
        return [name for name in names if name.startswith(start)]

    def records(self, kind: RecordType) -> Iterator[Record]:
        """All findings or all decisions, in the order of their ids."""
        for entry in self._entries(kind):
            if found := _read(Path(entry.path)):
                yield found

    @contextmanager
    def writing(self) -> Iterator["Writer"]:
        """Save records; they are on the disk when this ends.

        Raises:
            ToolError: INVALID_REQUEST, nothing can be written there.
        """
        # Loads threads, and every build looks for records.
        from cleats.toolsets.code.triage.batch import Batch, tidy  # noqa: PLC0415

        batch = Batch()
        try:
            for name in FOLDERS.values():
                (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
                tidy(self.folder / name)
            yield Writer(self, batch)
            batch.flush()
        except OSError as error:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"Records cannot be written to {self.folder}: {error.strerror}.",
                hint="Make room and allow it, or set CLEATS_DATA_DIR to another folder.",
            ) from error
        finally:
            batch.discard()

    @property
    def watched(self) -> tuple[str, ...]:
        """The folders in which a new record leaves its mark."""
        return (str(self.folder), *(str(self.folder / name) for name in FOLDERS.values()))

    def found(self) -> list["Found"]:
        """The records as files of the repository, for whoever builds its index."""
        from cleats.toolsets.code.discovery.files import Found  # noqa: PLC0415 - a server starts

        listed: list[Found] = []
        for kind in FOLDERS:
            for entry in self._entries(kind):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                path = virtual_path(entry.name.removesuffix(SUFFIX))
                size, mtime = status.st_size, status.st_mtime_ns
                listed.append(Found(path, size, mtime, LANGUAGE, "records", entry.path))
        return listed

    def _entries(self, kind: RecordType) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder / FOLDERS[kind]) as entries:
                named = [each for each in entries if _is_named(each.name)]
        except OSError:
            return []
        plain = [each for each in named if each.is_file(follow_symlinks=False)]
        return sorted(plain, key=lambda entry: entry.name)


@dataclass(frozen=True)
class Writer:
    """Saves records of one archive, each once."""

    archive: Archive
    batch: "Batch"

    def save(self, record: Record, now: str) -> Change:
        """Keep a record; one that is known keeps its age, and its time if nothing has changed.

        Raises:
            OSError: it cannot be written.
        """
        place = self.archive.place(record)
        before = _read(place)
        if before is None:
            record.created_at = record.updated_at = now
            self.batch.add(place, encode(record))
            return "created"
        record.created_at, record.updated_at = before.created_at, before.updated_at
        if record == before:
            return "unchanged"
        record.updated_at = now
        self.batch.add(place, encode(record))
        return "updated"


def _is_named(name: str) -> bool:
    return name.endswith(SUFFIX) and ID.fullmatch(name.removesuffix(SUFFIX)) is not None


def _read(place: Path) -> Record | None:
    try:
        found = decode(place.read_bytes())
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return found if found.record_id == place.name.removesuffix(SUFFIX) else None
