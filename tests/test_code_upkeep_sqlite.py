"""`build_sqlite_index` and `compact_sqlite_index`: the same index, with more or in less space."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Cancelled, Outcome
from cleats.runtime import process
from cleats.runtime.call import Call
from cleats.runtime.progress import Progress, Report
from cleats.runtime.vitals import Vitals
from cleats.toolsets.code.upkeep import packing
from tests.requirements import requirement
from tests.upkeep_world import Upkeep, files, made


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    upkeep = made(tmp_path)
    upkeep.world.build()
    return upkeep


def loose(upkeep: Upkeep) -> None:
    """Leave space in the catalogue that nothing uses."""
    for number in range(40):
        upkeep.world.write(f"gone/{number}.txt", f"word{number} and others\n" * 400)
    upkeep.world.build()
    for path in (upkeep.world.root / "gone").iterdir():
        path.unlink()
    upkeep.world.build()


def carried_out(upkeep: Upkeep, **how: Any) -> packing.Packed:
    order = packing.Order(root=str(upkeep.world.root), cache_dir=str(upkeep.world.cache), **how)
    return packing.carried_out(order, upkeep.world.seen.append)


@requirement("b:tools:required:build_sqlite_index")
def test_the_sqlite_index_is_added_to_the_index_as_it_is(upkeep: Upkeep) -> None:
    before = upkeep.world.content()
    upkeep.error("search", ErrorCode.NO_INDEX, query="first", backend="sqlite-fts")
    upkeep.world.write("app/more.py", "def unseen(): ...\n")

    done = upkeep.result("build_sqlite_index")

    found = upkeep.result("search", query="first", backend="sqlite-fts")
    assert found["code"][0]["name"] == "first"
    assert done["published"]
    assert done["generation"] == upkeep.world.lease().name
    assert Path(done["outPath"]).stat().st_size == done["bytes"] > 0
    assert set(done["outputPaths"]) == {"code", "prose", "extracted-prose"}
    assert (
        done["chunks"] == done["vectors"] == sum(upkeep.world.meta()["counts"]["chunks"].values())
    )
    after = upkeep.world.content()
    assert after["files"] == before["files"]
    assert after["meta"] == {**before["meta"], "sqlite": True}
    assert upkeep.world.build(incremental=True).files.added == 1
    assert upkeep.world.meta()["sqlite"]


@requirement("a:kill:grace")
def test_every_process_of_a_tool_has_the_grace_that_is_set(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep.more["grace"] = 0.7
    run, graces = process.run, []

    async def noted(argv: Sequence[str], **how: Any) -> process.Completed:
        graces.append(how.get("grace"))
        return await run(argv, **how)

    monkeypatch.setattr(process, "run", noted)
    library = upkeep.world.cache / "vec0.so"
    library.write_bytes(b"\x7fELF and so on")

    upkeep.result("build_index", mode="code")
    upkeep.result("build_sqlite_index")
    upkeep.result("verify_extensions", path=str(library))

    assert graces == [0.7, 0.7, 0.7]


@requirement("b:tools:required:build_sqlite_index")
def test_one_that_is_there_stays_when_only_changes_count(upkeep: Upkeep) -> None:
    first = upkeep.result("build_sqlite_index")

    same = upkeep.result("build_sqlite_index", incremental=True, mode="code")
    again = upkeep.result("build_sqlite_index", compact=True)

    assert (same["published"], same["generation"]) == (False, first["generation"])
    assert set(same["outputPaths"]) == {"code"}
    assert (again["published"], again["compacted"]) == (True, True)
    assert again["generation"] != first["generation"]
    assert upkeep.result("search", query="first", backend="sqlite")["code"]


def test_without_an_index_or_that_mode_there_is_nothing_to_make_it_from(tmp_path: Path) -> None:
    upkeep = made(tmp_path)
    for tool in ("build_sqlite_index", "compact_sqlite_index"):
        upkeep.error(tool, ErrorCode.NO_INDEX)
    upkeep.world.build(modes=("code",))
    for tool in ("build_sqlite_index", "compact_sqlite_index"):
        error = upkeep.error(tool, ErrorCode.NO_INDEX, mode="prose")

        assert "without prose" in error.message
    assert not upkeep.world.meta()["sqlite"]


def test_the_server_itself_does_not_keep_what_was_replaced(upkeep: Upkeep) -> None:
    before = upkeep.world.lease()
    before.close()

    _, built = upkeep.calls(("search", {"query": "first"}), ("build_sqlite_index", {}))

    assert upkeep.done("build_sqlite_index", built)["published"]
    assert not before.folder.exists()


def test_places_of_other_servers_are_reserved(upkeep: Upkeep) -> None:
    for name in ("codeDir", "proseDir", "out"):
        upkeep.error("build_sqlite_index", ErrorCode.INVALID_REQUEST, **{name: "/tmp/x"})
    upkeep.error("build_sqlite_index", ErrorCode.INVALID_REQUEST, repoPath="nowhere")
    upkeep.error("compact_sqlite_index", ErrorCode.INVALID_REQUEST, mode="every")


@requirement("b:tools:required:compact_sqlite_index")
def test_packing_gains_space_and_loses_nothing(upkeep: Upkeep) -> None:
    loose(upkeep)
    upkeep.result("build_sqlite_index")
    before, old = upkeep.world.content(), upkeep.world.lease().name
    answer = upkeep.result("search", query="first value", backend="sqlite-fts")

    dry = upkeep.result("compact_sqlite_index", dryRun=True)
    after_dry = upkeep.world.lease().name
    done = upkeep.result("compact_sqlite_index", keepBackup=True)

    assert (dry["published"], after_dry) == (False, old)
    assert dry["freedBytes"] == done["freedBytes"] > 10_000
    assert dry["afterBytes"] == done["afterBytes"]
    assert done["published"]
    assert upkeep.world.lease().catalogue.stat().st_size == done["afterBytes"]["catalogue"]
    assert upkeep.world.content() == before
    assert upkeep.result("search", query="first value", backend="sqlite-fts") == answer
    backup = Path(done["backupPath"])
    assert {path.name for path in backup.iterdir()} == {"catalogue.db", "fts.db"}
    assert upkeep.world.build().published is False
    removed = upkeep.result("cache_gc")["removals"]
    assert [each["reason"] for each in removed] == ["backup"]
    assert not backup.exists()


@requirement("b:tools:required:compact_sqlite_index")
def test_where_there_is_nothing_to_gain_nothing_is_published(upkeep: Upkeep) -> None:
    before = files(upkeep.world.cache)

    done = upkeep.result("compact_sqlite_index", keepBackup=True)

    assert (done["published"], done["freedBytes"], done["backupPath"]) == (False, 0, None)
    assert done["beforeBytes"] == done["afterBytes"]
    assert files(upkeep.world.cache) == before


def test_a_reader_goes_on_with_the_generation_it_has(upkeep: Upkeep) -> None:
    loose(upkeep)

    with upkeep.world.lease() as lease:
        done = carried_out(upkeep, task="pack")

        assert lease.catalogue.is_file()
        assert done.generation != lease.name
    assert done.after.total < done.before.total


def test_a_packer_that_fails_leaves_the_index_as_it_was(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = upkeep.world.lease().name

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packing, "_vacuum", full)
    with pytest.raises(Exception, match="disk is full"):
        carried_out(upkeep, task="pack")

    assert upkeep.world.lease().name == before
    assert [path.name for path in upkeep.world.lease().folder.parent.iterdir()] == [before]


def test_a_cancelled_call_leaves_the_index_as_it_was(upkeep: Upkeep) -> None:
    before = upkeep.world.lease().name
    lock = upkeep.world.shelf.claim()
    assert lock is not None

    async def main() -> Outcome:
        async def send(report: Report) -> None:
            assert report.phase == "wait"
            call.cancel()

        call = Call(tool="build_sqlite_index", arguments={}, reporter=Progress(send))
        vitals = Vitals()
        toolsets = app.toolsets(upkeep.settings, ["code"], vitals)
        async with app.dispatching(upkeep.settings, toolsets, vitals) as dispatcher:
            return await dispatcher.dispatch(call)

    outcome = anyio.run(main)
    lock.release()

    assert isinstance(outcome, Cancelled)
    assert upkeep.world.lease().name == before
    assert upkeep.result("build_sqlite_index")["published"]
