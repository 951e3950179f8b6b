"""Tests of the disk space that ended runs take: it is freed, and nothing else is touched."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store import databases
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run, RunLease
from cleats.toolsets.launch.store.run_files import clean_runs
from cleats.toolsets.launch.store.run_store import RunStore

CREATED_DRAFT = EventDraft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "zip"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    run_store = SqliteStore(tmp_path / "runs.db")
    yield run_store
    run_store.close()


def create_ended_run(store: RunStore, runs: Path, name: str) -> RunFolder:
    config = {"product_slug": "zip"}
    new_run = Run(
        run_id=name,
        product_slug="zip",
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    store.create(new_run, [CREATED_DRAFT], NO_TRACE)
    store.cancel(name, lambda _snapshot: (), NO_TRACE)
    folder = RunFolder(runs / name)
    folder.site.mkdir(parents=True)
    (folder.site / "page.md").write_text("0123456789")
    folder.put_object(b"an artifact")
    return folder


def test_more_runs_than_a_page_lists_are_all_cleaned(store: RunStore, tmp_path: Path) -> None:
    folders = [create_ended_run(store, tmp_path, f"r_number_{number}") for number in range(230)]

    cleaned_runs = clean_runs(store, tmp_path, dry_run=False)

    assert len(cleaned_runs) == 230
    assert {(item.size, item.problem) for item in cleaned_runs} == {(10, "")}
    assert not any(item.checkouts.exists() or item.leftovers for item in folders)
    assert all(item.objects.is_dir() for item in folders)


def test_a_run_that_somebody_validates_stays_as_it_is(store: RunStore, tmp_path: Path) -> None:
    folder = create_ended_run(store, tmp_path, "r_in_use_now")
    lease = store.acquire("r_in_use_now", "somebody", 60)
    assert lease is not None

    (cleaned_runs,) = clean_runs(store, tmp_path, dry_run=False)

    assert cleaned_runs.problem == "another process is using it"
    assert (folder.site / "page.md").is_file()
    assert store.is_held(lease)


def test_two_who_remove_the_same_checkout_leave_nothing_of_it(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = create_ended_run(store, tmp_path, "r_of_two_now")
    removed_folders: list[Path] = []

    def remove_in_race(folder: Path) -> None:
        removed_folders.append(folder)
        if len(removed_folders) == 1:
            raise FileNotFoundError  # the other one has a file already, and stops at one of ours
        rmtree(folder)
        rmtree(folder)  # the other one was quicker

    monkeypatch.setattr("shutil.rmtree", remove_in_race)

    (cleaned_runs,) = clean_runs(store, tmp_path, dry_run=False)

    assert (cleaned_runs.size, cleaned_runs.problem) == (10, "")
    assert not folder.leftovers


class RacedStore(SqliteStore):
    """A store that grants a lease just after another process has cleaned the run."""

    def acquire(self, run_id: str, owner: str, seconds: float) -> RunLease | None:
        other = SqliteStore(self.path)
        clean_runs(other, self.path.parent, [run_id], dry_run=False)
        other.close()
        return super().acquire(run_id, owner, seconds) if self.free else None

    path: Path
    free: bool


@pytest.mark.parametrize("free", [True, False])
def test_a_checkout_that_somebody_else_just_took_aside_is_no_problem(
    store: RunStore, tmp_path: Path, free: bool
) -> None:
    folder = create_ended_run(store, tmp_path, "r_raced_for")
    raced = RacedStore(tmp_path / "runs.db")
    raced.path, raced.free = tmp_path / "runs.db", free

    (cleaned_runs,) = clean_runs(raced, tmp_path, dry_run=False)
    raced.close()

    assert cleaned_runs.problem == ""
    assert not folder.checkouts.exists()


class FullDiskStore(SqliteStore):
    """A store on a full disk."""

    def acquire(self, *_args: object) -> RunLease | None:
        raise storage.make_disk_full_error("SQLITE_FULL")


def test_a_disk_that_is_full_can_be_emptied(store: RunStore, tmp_path: Path) -> None:
    free_run, used_run = (create_ended_run(store, tmp_path, item) for item in ("r_free_now", "r_used_now"))
    assert store.acquire("r_used_now", "somebody", 60) is not None
    full = FullDiskStore(tmp_path / "runs.db")

    cleaned_runs = clean_runs(full, tmp_path, dry_run=False)
    full.close()

    assert {item.run_id: item.problem for item in cleaned_runs} == {
        "r_free_now": "",
        "r_used_now": "another process is using it",
    }
    assert (free_run.checkouts.exists(), used_run.checkouts.exists()) == (False, True)


def test_a_store_that_finds_no_room_to_be_read_says_so() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = 4874
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"

    assert databases.wrap_sqlite_error(error).message.startswith("The disk with the runs is full")


def test_what_a_killed_clean_up_has_left_is_removed_by_the_next(store: RunStore, tmp_path: Path) -> None:
    folder = create_ended_run(store, tmp_path, "r_half_gone")
    folder.checkouts.rename(folder.make_leftover_path("abc"))

    (cleaned_runs,) = clean_runs(store, tmp_path, ["r_half_gone"], dry_run=False)

    assert (cleaned_runs.size, cleaned_runs.problem, folder.leftovers) == (10, "", [])


def test_a_link_in_a_checkout_leads_nowhere_for_those_who_remove_it(store: RunStore, tmp_path: Path) -> None:
    kept_file = tmp_path / "kept.txt"
    kept_file.write_text("mine")
    folder = create_ended_run(store, tmp_path, "r_with_link")
    (folder.site / "link").symlink_to(tmp_path, target_is_directory=True)

    clean_runs(store, tmp_path, dry_run=False)

    assert kept_file.read_text() == "mine"
    assert not folder.checkouts.exists()
