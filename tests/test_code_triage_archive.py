"""Records on disk: whole or not there, whatever happens on the way."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage import batch
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.documents import Documents
from cleats.toolsets.code.triage.ingest import ingest
from cleats.toolsets.code.triage.records import Record, Vulnerability

THINGS = [{"cve": f"CVE-2022-{number:04}"} for number in range(25)]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "records")


def record(title: str = "") -> Record:
    return Record(record_id="a" * 40, source="manual", vuln=Vulnerability("X-1", title=title))


def rests(archive: Archive) -> list[str]:
    """The files that are no records."""
    return [path.name for path in archive.folder.rglob("*.tmp")]


def test_a_record_that_does_not_reach_the_disk_leaves_the_one_before(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    with archive.writing() as writer:
        writer.save([record("before")])

    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(batch, "sync", full)
    with pytest.raises(ToolError) as caught, archive.writing() as writer:
        writer.save([record("after")])

    kept = archive.find("a" * 40)
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert "No space left on device" in caught.value.message
    assert kept is not None
    assert kept.vuln.title == "before"
    assert not rests(archive)


def test_what_a_crash_left_aside_is_removed_when_it_is_old(archive: Archive) -> None:
    with archive.writing() as writer:
        writer.save([record()])
    folder = archive.place(record()).parent
    for name, age in ((".old.tmp", 2 * batch.OLD), (".new.tmp", 0)):
        (folder / name).touch()
        status = (folder / name).stat()
        os.utime(folder / name, (status.st_atime - age, status.st_mtime - age))

    with archive.writing():
        pass

    assert rests(archive) == [".new.tmp"]


def test_a_batch_reaches_its_places_part_by_part(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "MOST", 10)

    with archive.writing() as writer:
        ingest(writer, "generic", Documents([(0, THINGS)]), {})
        early = len(archive.found())

    assert (early, len(archive.found())) == (20, 25)


def test_an_archive_that_is_not_there_is_empty(archive: Archive) -> None:
    assert archive.found() == []
    assert list(archive.records("finding")) == []
    assert archive.find("a" * 40) is None
    assert archive.beginning("a") == []
