"""Watching folders: what is reported, and where watching would miss changes."""

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cleats.system import folder_watch
from cleats.system.folder_watch import FolderWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is part of Linux")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file and a subfolder."""
    (tmp_path / "watched" / "sub").mkdir(parents=True)
    (tmp_path / "watched" / "file.py").write_text("x = 1\n")
    return tmp_path / "watched"


def open_watch(*folders: Path) -> FolderWatch:
    watch = FolderWatch.open(map(str, folders))
    if watch is None:
        pytest.skip("folders cannot be watched here")
    return watch


def write_in_place(folder: Path) -> None:
    with (folder / "file.py").open("r+") as file:
        file.write("y")


def write_mapped(folder: Path) -> None:
    with (folder / "file.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = ord("y")


def replace_file(folder: Path) -> None:
    (folder / "new.py").write_text("y = 1\n")
    (folder / "new.py").replace(folder / "file.py")


def set_time(folder: Path) -> None:
    os.utime(folder / "file.py", (1, 1))


CHANGES: tuple[Callable[[Path], object], ...] = (
    write_in_place,
    write_mapped,
    replace_file,
    set_time,
    lambda folder: (folder / "file.py").unlink(),
    lambda folder: (folder / "other.py").touch(),
    lambda folder: (folder / "sub").rmdir(),
    lambda folder: folder.rename(folder.with_name("moved")),
)


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_an_entry_is_reported_once(folder: Path, change: Callable[[Path], object]) -> None:
    watch = open_watch(folder)
    before = watch.read_events()

    change(folder)

    assert not before
    assert watch.read_events()
    assert not watch.read_events()


def test_reading_a_file_is_no_change(folder: Path) -> None:
    watch = open_watch(folder)

    (folder / "file.py").read_text()
    list(folder.iterdir())

    assert not watch.read_events()


def test_a_folder_that_does_not_exist_is_named(folder: Path) -> None:
    watch = open_watch(folder, folder / "absent")

    assert watch.missing_folders == (str(folder / "absent"),)


def test_more_reports_than_are_read_at_once_are_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "EVENT_BYTES", 64)
    monkeypatch.setattr(folder_watch, "MAX_EVENT_READS", 2)
    watch = open_watch(folder)
    for number in range(20):
        (folder / f"{number}.py").touch()

    reports = [watch.read_events() for _ in range(60)]

    assert reports[0]
    assert not reports[-1]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("1 0 8:1 / / rw - ext4 /dev/a rw", True),
        ("1 0 8:1 / / rw - nfs4 server:/a rw", False),
        ("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {folder} rw shared:1 - fuse.sshfs a rw", False),
        ("1 0 8:1 / / rw - nfs a rw\n2 1 8:2 / {folder} rw - xfs /dev/b rw", True),
    ],
)
def test_only_file_systems_of_this_machine_are_watched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, *, expected: bool
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(table.format(folder=str(folder).replace(" ", "\\040")))
    monkeypatch.setattr(folder_watch, "MOUNTS_FILE", mounts)

    watch = FolderWatch.open([str(folder), str(folder / "sub")])

    assert (watch is not None) is expected


def test_most_of_the_watches_that_a_user_has_are_left_to_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limit").write_text("7\n")
    monkeypatch.setattr(folder_watch, "MAX_WATCHES_FILE", tmp_path / "limit")

    assert FolderWatch.open([str(folder)]) is not None
    assert FolderWatch.open([str(folder), str(folder / "sub")]) is None
