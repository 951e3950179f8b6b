"""`cache_gc` and `clean_artifacts`: they remove exactly what is meant."""

import fcntl
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Done
from cleats.system import atomic_files
from cleats.toolsets.code.index import cache, generations
from cleats.toolsets.code.index.generations import BUILDING_PREFIX, LOCK_FILE_NAME, GenerationLease, GenerationStore
from cleats.toolsets.code.repository import Repository
from tests.support.indexes import IndexedRepository
from tests.support.maintenance import MaintenanceClient, create_maintenance_client, list_file_stats
from tests.support.requirements import requirement


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    upkeep = create_maintenance_client(tmp_path)
    upkeep.repository.build_index()
    return upkeep


def build_other_index(upkeep: MaintenanceClient, name: str, age_days: float = 0.0) -> GenerationStore:
    """Build the index of another repository in the same cache."""
    folder = upkeep.repository.folder / name
    world = IndexedRepository(folder, cache_name="../cache")
    world.write_file("only.py", f"name = {name!r}\n")
    world.build_index()
    store = world.generation_store
    published = cache.StoredIndex(store.folder).published_at - age_days * 86_400
    os.utime(store.folder / "current", (published, published))
    return GenerationStore(upkeep.repository.cache, Repository(world.root))


def replace_generation(upkeep: MaintenanceClient) -> GenerationLease:
    """Publish a new generation and return the lease of the one before, which is still read."""
    lease = upkeep.repository.lease_current()
    upkeep.repository.write_file("app/more.py", "x = 1\n")
    upkeep.repository.build_index()
    return lease


# cache_gc


@requirement("b:tools:required:cache_gc")
def test_without_a_limit_only_what_nobody_needs_goes(upkeep: MaintenanceClient) -> None:
    old = replace_generation(upkeep)
    old.close()
    rest = old.folder.with_name(f"{BUILDING_PREFIX}1-dead")
    rest.mkdir()
    (rest / "part").write_bytes(b"x" * 100)

    result = upkeep.expect_result("cache_gc")

    reasons = {Path(entry["path"]).name: entry["reason"] for entry in result["removals"]}
    assert result["mode"] == "leftovers"
    assert reasons == {rest.name: "unfinished", old.name: "old"}
    assert not rest.exists()
    assert not old.folder.exists()
    assert result["freedBytes"] == sum(entry["bytes"] for entry in result["removals"]) > 100
    assert upkeep.repository.list_paths() == {"app/core.py", "app/more.py", "README.md"}
    assert upkeep.expect_result("cache_gc")["removals"] == []


@requirement("b:tools:required:cache_gc")
def test_whole_indexes_go_oldest_first_until_the_rest_fits(upkeep: MaintenanceClient) -> None:
    older, oldest = build_other_index(upkeep, "older", 3), build_other_index(upkeep, "oldest", 9)
    sizes = {store.folder.name: cache.measure_disk_usage(store.folder) for store in (older, oldest)}
    own_bytes = cache.measure_disk_usage(upkeep.repository.generation_store.folder)

    result = upkeep.expect_result("cache_gc", maxBytes=own_bytes + sizes[older.folder.name])

    assert [(entry["id"], entry["reason"]) for entry in result["removals"]] == [(oldest.folder.name, "quota")]
    assert result["removals"][0]["root"] == str(oldest.root)
    assert result["freedBytes"] == sizes[oldest.folder.name]
    assert result["totals"] == {"repos": 3, "bytes": own_bytes + sum(sizes.values())}
    assert not oldest.folder.exists()
    assert older.read_current_name()


def test_age_alone_is_a_reason_and_limits_are_combined(upkeep: MaintenanceClient) -> None:
    aged, rest = build_other_index(upkeep, "aged", 40), build_other_index(upkeep, "rest", 5)

    result = upkeep.expect_result("cache_gc", maxAgeDays=30, maxGb=0, maxBytes=10**9, dryRun=True)

    assert [(entry["id"], entry["reason"]) for entry in result["removals"]] == [
        (aged.folder.name, "age"),
        (rest.folder.name, "quota"),
        (upkeep.repository.generation_store.folder.name, "quota"),
    ]
    assert result["limits"] == {"maxAgeDays": 30, "maxGb": 0, "maxBytes": 10**9}


def test_a_limit_with_more_digits_than_a_float_has_lets_everything_stay(upkeep: MaintenanceClient) -> None:
    build_other_index(upkeep, "old", 4000)

    result = upkeep.expect_result("cache_gc", maxAgeDays=10**400, maxGb=10**400, maxBytes=10**400)

    assert result["removals"] == []


@pytest.mark.parametrize("arguments", [{}, {"maxBytes": 0}, {"maxAgeDays": 0}])
def test_a_dry_run_changes_nothing_and_says_what_the_real_one_does(
    upkeep: MaintenanceClient, arguments: dict[str, Any]
) -> None:
    replace_generation(upkeep).close()
    build_other_index(upkeep, "older", 3)
    before = list_file_stats(upkeep.repository.cache)

    dry = upkeep.expect_result("cache_gc", dryRun=True, **arguments)
    unchanged = list_file_stats(upkeep.repository.cache)
    real = upkeep.expect_result("cache_gc", **arguments)

    assert unchanged == before
    assert dry["removals"]
    assert real == {**dry, "dryRun": False}


def test_an_index_that_somebody_reads_or_builds_stays(upkeep: MaintenanceClient) -> None:
    built = build_other_index(upkeep, "built", 3)
    lock = built.try_build_lock()
    assert lock is not None
    with upkeep.repository.lease_current() as lease:
        result = upkeep.expect_result("cache_gc", maxBytes=0)

        assert lease.catalogue_path.exists()
    lock.release()

    assert result["removals"] == []
    assert {entry["problem"] for entry in result["failedRemovals"]} == {
        "it is being read",
        "it is being built",
    }
    assert result["freedBytes"] == 0
    assert upkeep.repository.list_paths()
    assert built.read_current_name()


def test_a_replaced_generation_that_somebody_reads_stays(upkeep: MaintenanceClient) -> None:
    with replace_generation(upkeep) as old:
        blocked = upkeep.expect_result("cache_gc")

        assert old.catalogue_path.exists()
    free = upkeep.expect_result("cache_gc")

    assert [entry["problem"] for entry in blocked["failedRemovals"]] == ["it is being read"]
    assert len(free["removals"]) == 1
    assert not old.folder.exists()


def test_only_one_repository_can_be_meant(upkeep: MaintenanceClient) -> None:
    rest = build_other_index(upkeep, "rest", 9)

    result = upkeep.expect_result("cache_gc", maxBytes=0, repoPath=str(upkeep.repository.root))

    assert result["totals"]["repos"] == 1
    assert rest.read_current_name()
    assert upkeep.repository.generation_store.read_current_name() is None


def test_bad_limits_and_unknown_repositories_are_refused(upkeep: MaintenanceClient) -> None:
    for arguments in ({"maxBytes": -1}, {"maxGb": "5"}, {"older": 1}, {"repoPath": "nowhere"}):
        upkeep.expect_error("cache_gc", ErrorCode.INVALID_REQUEST, **arguments)


# clean_artifacts


@requirement("b:tools:required:clean_artifacts")
def test_the_index_of_a_repository_is_removed_and_downloads_stay(upkeep: MaintenanceClient) -> None:
    rest, folder = build_other_index(upkeep, "rest"), upkeep.repository.generation_store.folder
    (upkeep.repository.cache / "models").mkdir()
    (upkeep.repository.cache / "models" / "one").write_text("weights")
    size = cache.measure_disk_usage(folder)

    result = upkeep.expect_result("clean_artifacts")

    assert result["targets"] == [
        {
            "id": folder.name,
            "root": str(upkeep.repository.root),
            "path": str(folder),
            "bytes": size,
            "deleted": True,
        }
    ]
    assert result["freedBytes"] == size
    assert result["kept"] == ["models"]
    assert not folder.exists()
    assert rest.read_current_name()
    assert (upkeep.repository.cache / "models" / "one").exists()
    assert upkeep.expect_result("clean_artifacts")["targets"] == []
    assert upkeep.repository.build_index().files.added == 2


def test_all_means_every_repository_and_no_other(upkeep: MaintenanceClient) -> None:
    rest = build_other_index(upkeep, "rest")
    upkeep.expect_error("clean_artifacts", ErrorCode.INVALID_REQUEST, all=True, repoPath=".")

    result = upkeep.expect_result("clean_artifacts", all=True)

    assert {entry["path"] for entry in result["targets"] if entry["deleted"]} == {
        str(rest.folder),
        str(upkeep.repository.generation_store.folder),
    }
    assert cache.list_indexes(upkeep.repository.cache) == []
    assert not rest.folder.exists()


def test_a_dry_clean_changes_nothing(upkeep: MaintenanceClient) -> None:
    before = list_file_stats(upkeep.repository.cache)

    result = upkeep.expect_result("clean_artifacts", dryRun=True)

    assert [entry["deleted"] for entry in result["targets"]] == [False]
    assert result["freedBytes"] > 0
    assert list_file_stats(upkeep.repository.cache) == before


def test_an_index_that_is_held_is_said_and_stays_whole(upkeep: MaintenanceClient) -> None:
    with upkeep.repository.lease_current():
        result = upkeep.expect_result("clean_artifacts", all=True)

    [target] = result["targets"]
    assert (target["deleted"], target["problem"]) == (False, "it is being read")
    assert upkeep.repository.list_paths() == {"app/core.py", "README.md"}


def test_a_server_lets_go_of_what_it_kept_for_the_next_search(upkeep: MaintenanceClient) -> None:
    search = ("search", {"query": "first"})

    searched, cleaned, gone = upkeep.call_tools(search, ("clean_artifacts", {}), search)

    assert isinstance(searched, Done)
    assert upkeep.check_result("clean_artifacts", cleaned)["targets"][0]["deleted"]
    assert not isinstance(gone, Done)
    assert gone.error.code is ErrorCode.NO_INDEX  # type: ignore[union-attr]


def test_what_is_not_ours_is_never_touched(upkeep: MaintenanceClient) -> None:
    repos, elsewhere = upkeep.repository.cache / "repos", upkeep.repository.folder / "elsewhere"
    for strange in (repos / "my-clone" / "generations", repos / "x-0123456789ab", elsewhere):
        strange.mkdir(parents=True)
        (strange / "work.txt").write_text("mine")
    (repos / "link-0123456789ab").symlink_to(elsewhere)
    note = upkeep.repository.generation_store.folder / "note.txt"
    note.write_text("mine")

    upkeep.expect_result("clean_artifacts", all=True)
    upkeep.expect_result("cache_gc", maxBytes=0)

    assert (repos / "my-clone" / "generations" / "work.txt").exists()
    assert (repos / "x-0123456789ab" / "work.txt").exists()
    assert (elsewhere / "work.txt").exists()
    assert [path.name for path in note.parent.iterdir()] in (
        ["note.txt", "build.lock"],
        ["build.lock", "note.txt"],
    )


def test_a_dangerous_root_is_refused(upkeep: MaintenanceClient) -> None:
    home, project = upkeep.repository.folder / "home", upkeep.repository.root
    before = list_file_stats(upkeep.repository.folder)

    for root in (Path("/"), home, upkeep.repository.folder, project):
        upkeep.extra_settings["cache_dir"] = root
        for tool in ("clean_artifacts", "cache_gc"):
            error = upkeep.expect_error(tool, ErrorCode.INVALID_REQUEST)

            assert "CLEATS_CACHE_DIR" in error.hint

    assert list_file_stats(upkeep.repository.folder) == before


def test_what_may_not_be_touched_is_said(upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "try_exclusive_lock", refuse)

    [failed] = upkeep.expect_result("cache_gc", maxBytes=0)["failedRemovals"]

    assert failed["problem"] == "Permission denied"


def test_what_cannot_be_removed_is_said(upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "bury_generation", refuse)

    [target] = upkeep.expect_result("clean_artifacts")["targets"]

    assert (target["deleted"], target["problem"]) == (False, "Permission denied")


# Who comes while it goes


def test_a_reader_who_comes_while_an_index_goes_gets_nothing(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = generations.bury_generation
    locks_taken: list[atomic_files.FileLock | None] = []
    threads: list[Thread] = []

    def bury(generation: Path) -> Path:
        threads.append(
            Thread(target=lambda: locks_taken.append(atomic_files.acquire_shared_lock(generation / LOCK_FILE_NAME)))
        )
        threads[-1].start()
        return real(generation)

    monkeypatch.setattr(cache, "bury_generation", bury)
    result = upkeep.expect_result("clean_artifacts")
    for thread in threads:
        thread.join()

    assert result["targets"][0]["deleted"]
    assert locks_taken == [None]


def test_a_builder_who_comes_while_an_index_goes_starts_anew(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = upkeep.repository.generation_store, fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        (store.folder / "build.lock").unlink(missing_ok=True)
        real(descriptor, how)

    with monkeypatch.context() as while_it_goes:
        while_it_goes.setattr(fcntl, "flock", flock)
        too_late = store.try_build_lock()
    new_lock = store.try_build_lock()

    assert too_late is None
    assert new_lock is not None
    new_lock.release()
