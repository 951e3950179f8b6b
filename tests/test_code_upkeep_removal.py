"""`cache_gc` and `clean_artifacts`: they remove what is meant, all of it, and nothing else."""

import fcntl
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Done
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import cache, locks
from cleats.toolsets.code.store.generations import BUILDING, LOCK, Lease, Shelf
from tests.index_world import World
from tests.requirements import requirement
from tests.upkeep_world import Upkeep, files, made


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    upkeep = made(tmp_path)
    upkeep.world.build()
    return upkeep


def other(upkeep: Upkeep, name: str, age_days: float = 0.0) -> Shelf:
    """The index of another repository in the same cache."""
    folder = upkeep.world.folder / name
    world = World(folder, cache_name="../cache")
    world.write("only.py", f"name = {name!r}\n")
    world.build()
    shelf = world.shelf
    published = cache.Stored(shelf.folder).published - age_days * 86_400
    os.utime(shelf.folder / "current", (published, published))
    return Shelf(upkeep.world.cache, Repository(world.root))


def replaced(upkeep: Upkeep) -> Lease:
    """The generation before the current one, still read when the next one was published."""
    lease = upkeep.world.lease()
    upkeep.world.write("app/more.py", "x = 1\n")
    upkeep.world.build()
    return lease


# cache_gc


@requirement("b:tools:required:cache_gc")
def test_without_a_limit_only_what_nobody_needs_goes(upkeep: Upkeep) -> None:
    old = replaced(upkeep)
    old.close()
    rest = old.folder.with_name(f"{BUILDING}1-dead")
    rest.mkdir()
    (rest / "part").write_bytes(b"x" * 100)

    done = upkeep.result("cache_gc")

    reasons = {Path(each["path"]).name: each["reason"] for each in done["removals"]}
    assert done["mode"] == "leftovers"
    assert reasons == {rest.name: "unfinished", old.name: "old"}
    assert not rest.exists()
    assert not old.folder.exists()
    assert done["freedBytes"] == sum(each["bytes"] for each in done["removals"]) > 100
    assert upkeep.world.paths() == {"app/core.py", "app/more.py", "README.md"}
    assert upkeep.result("cache_gc")["removals"] == []


@requirement("b:tools:required:cache_gc")
def test_whole_indexes_go_oldest_first_until_the_rest_fits(upkeep: Upkeep) -> None:
    older, oldest = other(upkeep, "older", 3), other(upkeep, "oldest", 9)
    sizes = {shelf.folder.name: cache.used(shelf.folder) for shelf in (older, oldest)}
    own = cache.used(upkeep.world.shelf.folder)

    done = upkeep.result("cache_gc", maxBytes=own + sizes[older.folder.name])

    assert [(each["id"], each["reason"]) for each in done["removals"]] == [
        (oldest.folder.name, "quota")
    ]
    assert done["removals"][0]["root"] == str(oldest.root)
    assert done["freedBytes"] == sizes[oldest.folder.name]
    assert done["totals"] == {"repos": 3, "bytes": own + sum(sizes.values())}
    assert not oldest.folder.exists()
    assert older.name()


def test_age_alone_is_a_reason_and_limits_are_combined(upkeep: Upkeep) -> None:
    aged, rest = other(upkeep, "aged", 40), other(upkeep, "rest", 5)

    done = upkeep.result("cache_gc", maxAgeDays=30, maxGb=0, maxBytes=10**9, dryRun=True)

    assert [(each["id"], each["reason"]) for each in done["removals"]] == [
        (aged.folder.name, "age"),
        (rest.folder.name, "quota"),
        (upkeep.world.shelf.folder.name, "quota"),
    ]
    assert done["limits"] == {"maxAgeDays": 30, "maxGb": 0, "maxBytes": 10**9}


def test_a_limit_with_more_digits_than_a_float_has_lets_everything_stay(upkeep: Upkeep) -> None:
    other(upkeep, "old", 4000)

    done = upkeep.result("cache_gc", maxAgeDays=10**400, maxGb=10**400, maxBytes=10**400)

    assert done["removals"] == []


@pytest.mark.parametrize("arguments", [{}, {"maxBytes": 0}, {"maxAgeDays": 0}])
def test_a_dry_run_changes_nothing_and_says_what_the_real_one_does(
    upkeep: Upkeep, arguments: dict[str, Any]
) -> None:
    replaced(upkeep).close()
    other(upkeep, "older", 3)
    before = files(upkeep.world.cache)

    dry = upkeep.result("cache_gc", dryRun=True, **arguments)
    unchanged = files(upkeep.world.cache)
    real = upkeep.result("cache_gc", **arguments)

    assert unchanged == before
    assert dry["removals"]
    assert real == {**dry, "dryRun": False}


def test_an_index_that_somebody_reads_or_builds_stays(upkeep: Upkeep) -> None:
    built = other(upkeep, "built", 3)
    lock = built.claim()
    assert lock is not None
    with upkeep.world.lease() as lease:
        done = upkeep.result("cache_gc", maxBytes=0)

        assert lease.catalogue.exists()
    lock.release()

    assert done["removals"] == []
    assert {each["problem"] for each in done["failedRemovals"]} == {
        "it is being read",
        "it is being built",
    }
    assert done["freedBytes"] == 0
    assert upkeep.world.paths()
    assert built.name()


def test_a_replaced_generation_that_somebody_reads_stays(upkeep: Upkeep) -> None:
    with replaced(upkeep) as old:
        held = upkeep.result("cache_gc")

        assert old.catalogue.exists()
    free = upkeep.result("cache_gc")

    assert [each["problem"] for each in held["failedRemovals"]] == ["it is being read"]
    assert len(free["removals"]) == 1
    assert not old.folder.exists()


def test_only_one_repository_can_be_meant(upkeep: Upkeep) -> None:
    rest = other(upkeep, "rest", 9)

    done = upkeep.result("cache_gc", maxBytes=0, repoPath=str(upkeep.world.root))

    assert done["totals"]["repos"] == 1
    assert rest.name()
    assert upkeep.world.shelf.name() is None


def test_bad_limits_and_unknown_repositories_are_refused(upkeep: Upkeep) -> None:
    for given in ({"maxBytes": -1}, {"maxGb": "5"}, {"older": 1}, {"repoPath": "nowhere"}):
        upkeep.error("cache_gc", ErrorCode.INVALID_REQUEST, **given)


# clean_artifacts


@requirement("b:tools:required:clean_artifacts")
def test_the_index_of_a_repository_is_removed_and_downloads_stay(upkeep: Upkeep) -> None:
    rest, folder = other(upkeep, "rest"), upkeep.world.shelf.folder
    (upkeep.world.cache / "models").mkdir()
    (upkeep.world.cache / "models" / "one").write_text("weights")
    size = cache.used(folder)

    done = upkeep.result("clean_artifacts")

    assert done["targets"] == [
        {
            "id": folder.name,
            "root": str(upkeep.world.root),
            "path": str(folder),
            "bytes": size,
            "deleted": True,
        }
    ]
    assert done["freedBytes"] == size
    assert done["kept"] == ["models"]
    assert not folder.exists()
    assert rest.name()
    assert (upkeep.world.cache / "models" / "one").exists()
    assert upkeep.result("clean_artifacts")["targets"] == []
    assert upkeep.world.build().files.added == 2


def test_all_means_every_repository_and_no_other(upkeep: Upkeep) -> None:
    rest = other(upkeep, "rest")
    upkeep.error("clean_artifacts", ErrorCode.INVALID_REQUEST, all=True, repoPath=".")

    done = upkeep.result("clean_artifacts", all=True)

    assert {each["path"] for each in done["targets"] if each["deleted"]} == {
        str(rest.folder),
        str(upkeep.world.shelf.folder),
    }
    assert cache.stored(upkeep.world.cache) == []
    assert not rest.folder.exists()


def test_a_dry_clean_changes_nothing(upkeep: Upkeep) -> None:
    before = files(upkeep.world.cache)

    done = upkeep.result("clean_artifacts", dryRun=True)

    assert [each["deleted"] for each in done["targets"]] == [False]
    assert done["freedBytes"] > 0
    assert files(upkeep.world.cache) == before


def test_an_index_that_is_held_is_said_and_stays_whole(upkeep: Upkeep) -> None:
    with upkeep.world.lease():
        done = upkeep.result("clean_artifacts", all=True)

    [target] = done["targets"]
    assert (target["deleted"], target["problem"]) == (False, "it is being read")
    assert upkeep.world.paths() == {"app/core.py", "README.md"}


def test_a_server_lets_go_of_what_it_kept_for_the_next_search(upkeep: Upkeep) -> None:
    search = ("search", {"query": "first"})

    found, cleaned, gone = upkeep.calls(search, ("clean_artifacts", {}), search)

    assert isinstance(found, Done)
    assert upkeep.done("clean_artifacts", cleaned)["targets"][0]["deleted"]
    assert not isinstance(gone, Done)
    assert gone.error.code is ErrorCode.NO_INDEX  # type: ignore[union-attr]


def test_what_is_not_ours_is_never_touched(upkeep: Upkeep) -> None:
    repos, elsewhere = upkeep.world.cache / "repos", upkeep.world.folder / "elsewhere"
    for strange in (repos / "my-clone" / "generations", repos / "x-0123456789ab", elsewhere):
        strange.mkdir(parents=True)
        (strange / "work.txt").write_text("mine")
    (repos / "link-0123456789ab").symlink_to(elsewhere)
    note = upkeep.world.shelf.folder / "note.txt"
    note.write_text("mine")

    upkeep.result("clean_artifacts", all=True)
    upkeep.result("cache_gc", maxBytes=0)

    assert (repos / "my-clone" / "generations" / "work.txt").exists()
    assert (repos / "x-0123456789ab" / "work.txt").exists()
    assert (elsewhere / "work.txt").exists()
    assert [path.name for path in note.parent.iterdir()] in (
        ["note.txt", "build.lock"],
        ["build.lock", "note.txt"],
    )


def test_a_dangerous_root_is_refused(upkeep: Upkeep) -> None:
    home, project = upkeep.world.folder / "home", upkeep.world.root
    before = files(upkeep.world.folder)

    for place in (Path("/"), home, upkeep.world.folder, project):
        upkeep.more["cache_dir"] = place
        for tool in ("clean_artifacts", "cache_gc"):
            error = upkeep.error(tool, ErrorCode.INVALID_REQUEST)

            assert "CLEATS_CACHE_DIR" in error.hint

    assert files(upkeep.world.folder) == before


def test_what_may_not_be_touched_is_said(upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "claim", refuse)

    [failed] = upkeep.result("cache_gc", maxBytes=0)["failedRemovals"]

    assert failed["problem"] == "Permission denied"


def test_what_cannot_be_removed_is_said(upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "_bury", refuse)

    [target] = upkeep.result("clean_artifacts")["targets"]

    assert (target["deleted"], target["problem"]) == (False, "Permission denied")


# Who comes while it goes


def test_a_reader_who_comes_while_an_index_goes_gets_nothing(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cache._bury
    came: list[locks.Lock | None] = []
    threads: list[Thread] = []

    def bury(generation: Path) -> None:
        threads.append(Thread(target=lambda: came.append(locks.share(generation / LOCK))))
        threads[-1].start()
        real(generation)

    monkeypatch.setattr(cache, "_bury", bury)
    done = upkeep.result("clean_artifacts")
    for thread in threads:
        thread.join()

    assert done["targets"][0]["deleted"]
    assert came == [None]


def test_a_builder_who_comes_while_an_index_goes_starts_anew(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, real = upkeep.world.shelf, fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        (shelf.folder / "build.lock").unlink(missing_ok=True)
        real(descriptor, how)

    with monkeypatch.context() as while_it_goes:
        while_it_goes.setattr(fcntl, "flock", flock)
        too_late = shelf.claim()
    again = shelf.claim()

    assert too_late is None
    assert again is not None
    again.release()
