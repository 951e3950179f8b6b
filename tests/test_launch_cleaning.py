"""The disk that ended runs take: who gets it back, and what is never touched."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from cleats.toolsets.launch import disk
from cleats.toolsets.launch.cleaning import clean
from cleats.toolsets.launch.events import NO_TRACE, Draft
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.store import tables
from cleats.toolsets.launch.store.port import Lease, NewRun, RunStore
from cleats.toolsets.launch.store.sqlite import SqliteStore

CREATED = Draft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "zip"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = SqliteStore(tmp_path / "runs.db")
    yield made
    made.close()


def ended(store: RunStore, runs: Path, name: str) -> RunFolder:
    config = {"product_slug": "zip"}
    new = NewRun(
        run_id=name,
        product_slug="zip",
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    store.create(new, [CREATED], NO_TRACE)
    store.cancel(name, lambda _snapshot: (), NO_TRACE)
    folder = RunFolder(runs / name)
    folder.site.mkdir(parents=True)
    (folder.site / "page.md").write_text("0123456789")
    folder.put(b"an artifact")
    return folder


def test_more_runs_than_a_page_lists_are_all_cleaned(store: RunStore, tmp_path: Path) -> None:
    folders = [ended(store, tmp_path, f"r_number_{number}") for number in range(230)]

    freed = clean(store, tmp_path, dry_run=False)

    assert len(freed) == 230
    assert {(each.size, each.problem) for each in freed} == {(10, "")}
    assert not any(each.checkouts.exists() or each.leftovers for each in folders)
    assert all(each.objects.is_dir() for each in folders)


def test_a_run_that_somebody_validates_stays_as_it_is(store: RunStore, tmp_path: Path) -> None:
    folder = ended(store, tmp_path, "r_in_use_now")
    lease = store.acquire("r_in_use_now", "somebody", 60)
    assert lease is not None

    (freed,) = clean(store, tmp_path, dry_run=False)

    assert freed.problem == "somebody works with it"
    assert (folder.site / "page.md").is_file()
    assert store.held(lease)


def test_two_who_remove_the_same_checkout_leave_nothing_of_it(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ended(store, tmp_path, "r_of_two_now")
    tried: list[Path] = []

    def crossed(place: Path) -> None:
        tried.append(place)
        if len(tried) == 1:
            raise FileNotFoundError  # the other one has a file already, and stops at one of ours
        rmtree(place)
        rmtree(place)  # the other one was quicker

    monkeypatch.setattr("shutil.rmtree", crossed)

    (freed,) = clean(store, tmp_path, dry_run=False)

    assert (freed.size, freed.problem) == (10, "")
    assert not folder.leftovers


class Raced(SqliteStore):
    """A store whose right to a run comes just after somebody else has cleaned it."""

    def acquire(self, run_id: str, owner: str, seconds: float) -> Lease | None:
        other = SqliteStore(self.path)
        clean(other, self.path.parent, [run_id], dry_run=False)
        other.close()
        return super().acquire(run_id, owner, seconds) if self.free else None

    path: Path
    free: bool


@pytest.mark.parametrize("free", [True, False])
def test_a_checkout_that_somebody_else_just_took_aside_is_no_problem(
    store: RunStore, tmp_path: Path, free: bool
) -> None:
    folder = ended(store, tmp_path, "r_raced_for")
    raced = Raced(tmp_path / "runs.db")
    raced.path, raced.free = tmp_path / "runs.db", free

    (freed,) = clean(raced, tmp_path, dry_run=False)
    raced.close()

    assert freed.problem == ""
    assert not folder.checkouts.exists()


class Full(SqliteStore):
    """A store on a disk that takes nothing more."""

    def acquire(self, *_given: object) -> Lease | None:
        raise disk.no_room("SQLITE_FULL")


def test_a_disk_that_is_full_can_be_emptied(store: RunStore, tmp_path: Path) -> None:
    free, used = (ended(store, tmp_path, each) for each in ("r_free_now", "r_used_now"))
    assert store.acquire("r_used_now", "somebody", 60) is not None
    full = Full(tmp_path / "runs.db")

    freed = clean(full, tmp_path, dry_run=False)
    full.close()

    assert {each.run_id: each.problem for each in freed} == {
        "r_free_now": "",
        "r_used_now": "somebody works with it",
    }
    assert (free.checkouts.exists(), used.checkouts.exists()) == (False, True)


def test_a_store_that_finds_no_room_to_be_read_says_so() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = 4874
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"

    assert tables.trouble(error).message.startswith("There is no room left")


def test_what_a_killed_clean_up_has_left_is_removed_by_the_next(
    store: RunStore, tmp_path: Path
) -> None:
    folder = ended(store, tmp_path, "r_half_gone")
    folder.checkouts.rename(folder.leftover("abc"))

    (freed,) = clean(store, tmp_path, ["r_half_gone"], dry_run=False)

    assert (freed.size, freed.problem, folder.leftovers) == (10, "", [])


def test_a_link_in_a_checkout_leads_nowhere_for_those_who_remove_it(
    store: RunStore, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("mine")
    folder = ended(store, tmp_path, "r_with_link")
    (folder.site / "link").symlink_to(tmp_path, target_is_directory=True)

    clean(store, tmp_path, dry_run=False)

    assert kept.read_text() == "mine"
    assert not folder.checkouts.exists()
