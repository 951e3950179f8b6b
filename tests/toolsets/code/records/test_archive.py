"""Records on disk: complete or absent, whatever happens on the way."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import atomic_files
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.records.model import TriageRecord, Vulnerability
from cleats.toolsets.code.triage.ingest import Documents, ingest_documents

REPORT_ENTRIES = [{"cve": f"CVE-2022-{number:04}"} for number in range(25)]


@pytest.fixture
def archive(tmp_path: Path) -> RecordArchive:
    return RecordArchive(tmp_path / "records")


def make_record(title: str = "") -> TriageRecord:
    return TriageRecord(record_id="a" * 40, source="manual", vuln=Vulnerability("X-1", title=title))


def list_temporary_files(archive: RecordArchive) -> list[str]:
    """Return the names of temporary files that are left."""
    return [path.name for path in archive.folder.rglob("*.tmp")]


def test_a_record_that_does_not_reach_the_disk_leaves_the_one_before(
    archive: RecordArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    with archive.open_writer() as writer:
        writer.save([make_record("before")])

    def fail_full_disk(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files, "sync_path", fail_full_disk)
    with pytest.raises(ToolError) as caught, archive.open_writer() as writer:
        writer.save([make_record("after")])

    saved_record = archive.find("a" * 40)
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert "No space left on device" in caught.value.message
    assert saved_record is not None
    assert saved_record.vuln.title == "before"
    assert not list_temporary_files(archive)


def test_what_a_crash_left_aside_is_removed_when_it_is_old(archive: RecordArchive) -> None:
    with archive.open_writer() as writer:
        writer.save([make_record()])
    folder = archive.record_path(make_record()).parent
    for name, age in ((".old.tmp", 2 * atomic_files.STALE_TEMP_SECONDS), (".new.tmp", 0)):
        (folder / name).touch()
        status = (folder / name).stat()
        os.utime(folder / name, (status.st_atime - age, status.st_mtime - age))

    with archive.open_writer():
        pass

    assert list_temporary_files(archive) == [".new.tmp"]


def test_a_batch_reaches_its_places_part_by_part(archive: RecordArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_files, "MAX_PENDING_FILES", 10)

    with archive.open_writer() as writer:
        ingest_documents(writer, "generic", Documents([(0, REPORT_ENTRIES)]), {})
        early = len(archive.list_files())

    assert (early, len(archive.list_files())) == (20, 25)


def test_an_archive_that_is_not_there_is_empty(archive: RecordArchive) -> None:
    assert archive.list_files() == []
    assert list(archive.iter_records("finding")) == []
    assert archive.find("a" * 40) is None
    assert archive.find_ids("a") == []
