"""The records of one repository on disk: a file of JSON each, findings and decisions apart.

A reader sees a record whole or not at all, and what was saved is on the disk itself when
`writing` ends. A file that holds no record is not one, whoever put it there.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.facts import RECORD
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.triage.keeping import Change, settle
from cleats.toolsets.code.triage.records import ID, Record, RecordType, decode, encode, now

if TYPE_CHECKING:
    from cleats.toolsets.code.discovery.files import Found
    from cleats.toolsets.code.triage.batch import Batch

FOLDERS: Final[dict[RecordType, str]] = {"finding": "findings", "decision": "decisions"}

VIRTUAL: Final = ".cleats/records"
"""Where the index shows records: a folder that the repository does not have."""

LANGUAGE: Final = RECORD
"""What the index takes a record for when it reads it."""

SUFFIX: Final = ".json"

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What a disk says that has no room."""


def virtual_path(record_id: str) -> str:
    """The file that a search shows for a record."""
    return f"{VIRTUAL}/{record_id}.md"


class Archive:
    """The records of a repository: the keeper of those whom one machine is enough for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, records: Path, repository: Repository) -> "Archive":
        """Those of a repository, below the folder for all."""
        return cls(records / repository.id)

    @property
    def here(self) -> "Archive":
        return self

    def current(self) -> "Archive":
        return self

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
            if found := _at(self.folder / name / f"{record_id}{SUFFIX}"):
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
            if found := _at(Path(entry.path)):
                yield found

    @contextmanager
    def writing(self) -> Iterator["FileWriter"]:
        # Loads threads, and every build looks for records.
        from cleats.toolsets.code.triage.batch import Batch  # noqa: PLC0415

        batch = Batch()
        try:
            self.prepare()
            yield FileWriter(self, batch, now())
            batch.flush()
        except OSError as error:
            raise unwritable(self.folder, error, "CLEATS_DATA_DIR") from error
        finally:
            batch.discard()

    def prepare(self) -> None:
        """Make the folders, without what a crash left in them.

        Raises:
            OSError: they cannot be made.
        """
        from cleats.toolsets.code.triage.batch import tidy  # noqa: PLC0415 - as above

        for name in FOLDERS.values():
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
            tidy(self.folder / name)

    def empty(self) -> None:
        """Remove every record.

        Raises:
            OSError: one cannot be removed.
        """
        for kind in FOLDERS:
            for entry in self._entries(kind):
                Path(entry.path).unlink(missing_ok=True)

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
class FileWriter:
    """Saves records of one archive."""

    archive: Archive
    batch: "Batch"
    moment: str

    def save(self, records: Sequence[Record]) -> list[Change]:
        return [self._saved(record) for record in records]

    def _saved(self, record: Record) -> Change:
        place = self.archive.place(record)
        change = settle(record, _at(place), self.moment)
        if change != "unchanged":
            self.batch.add(place, encode(record))
        return change


def read(record_id: str, data: bytes) -> Record | None:
    """The record that somebody wrote under an id; None when it is not one."""
    try:
        found = decode(data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return found if found.record_id == record_id else None


def unwritable(folder: Path, error: OSError, setting: str) -> ToolError:
    """The error of every call that the disk does not let finish; a full one may have room later."""
    return ToolError(
        ErrorCode.UNAVAILABLE if error.errno in FULL else ErrorCode.INVALID_REQUEST,
        f"Records cannot be written to {folder}: {error.strerror}.",
        hint=f"Make room and allow it, or set {setting} to another folder.",
    )


def _is_named(name: str) -> bool:
    return name.endswith(SUFFIX) and ID.fullmatch(name.removesuffix(SUFFIX)) is not None


def _at(place: Path) -> Record | None:
    try:
        return read(place.name.removesuffix(SUFFIX), place.read_bytes())
    except OSError:
        return None
