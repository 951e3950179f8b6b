"""`build_sqlite_index` and `compact_sqlite_index`: the same index, with more or in less space."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Cancelled, Outcome
from cleats.runtime.call import ToolCall
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.system.processes import process
from cleats.toolsets.code.index import catalogue_layers
from cleats.toolsets.code.index.catalogue_schema import BASE_FILE_NAME
from cleats.toolsets.code.maintenance import packing
from tests.support.maintenance import MaintenanceClient, create_maintenance_client, list_file_stats
from tests.support.requirements import requirement


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    upkeep = create_maintenance_client(tmp_path)
    upkeep.repository.build_index()
    return upkeep


def leave_free_space(upkeep: MaintenanceClient) -> None:
    """Leave unused space in the catalogue."""
    for number in range(40):
        upkeep.repository.write_file(f"gone/{number}.txt", f"word{number} and others\n" * 400)
    upkeep.repository.build_index()
    for path in (upkeep.repository.root / "gone").iterdir():
        path.unlink()
    upkeep.repository.build_index()


def run_packing(upkeep: MaintenanceClient, **options: Any) -> packing.PackingResult:
    order = packing.PackingOrder(root=str(upkeep.repository.root), cache_dir=str(upkeep.repository.cache), **options)
    return packing.execute_order(order, upkeep.repository.progress_reports.append)


@requirement("b:tools:required:build_sqlite_index")
def test_the_sqlite_index_is_added_to_the_index_as_it_is(upkeep: MaintenanceClient) -> None:
    before = upkeep.repository.read_content()
    upkeep.expect_error("search", ErrorCode.NO_INDEX, query="first", backend="sqlite-fts")
    upkeep.repository.write_file("app/more.py", "def unseen(): ...\n")

    result = upkeep.expect_result("build_sqlite_index")

    search_result = upkeep.expect_result("search", query="first", backend="sqlite-fts")
    assert search_result["code"][0]["name"] == "first"
    assert result["published"]
    assert result["generation"] == upkeep.repository.lease_current().name
    assert Path(result["outPath"]).stat().st_size == result["bytes"] > 0
    assert set(result["outputPaths"]) == {"code", "prose", "extracted-prose"}
    assert result["chunks"] == result["vectors"] == sum(upkeep.repository.read_meta()["counts"]["chunks"].values())
    after = upkeep.repository.read_content()
    assert after["files"] == before["files"]
    assert after["meta"] == {**before["meta"], "sqlite": True}
    assert upkeep.repository.build_index(incremental=True).files.added == 1
    assert upkeep.repository.read_meta()["sqlite"]


@requirement("a:kill:grace")
def test_every_process_of_a_tool_has_the_grace_that_is_set(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep.extra_settings["grace"] = 0.7
    run, graces = process.run, []

    async def record_grace(argv: Sequence[str], **how: Any) -> process.CompletedCommand:
        graces.append(how.get("grace"))
        return await run(argv, **how)

    monkeypatch.setattr(process, "run", record_grace)
    library = upkeep.repository.cache / "vec0.so"
    library.write_bytes(b"\x7fELF and so on")

    upkeep.expect_result("build_index", mode="code")
    upkeep.expect_result("build_sqlite_index")
    upkeep.expect_result("verify_extensions", path=str(library))

    assert graces == [0.7, 0.7, 0.7]


@requirement("b:tools:required:build_sqlite_index")
def test_one_that_is_there_stays_when_only_changes_count(upkeep: MaintenanceClient) -> None:
    first = upkeep.expect_result("build_sqlite_index")

    same = upkeep.expect_result("build_sqlite_index", incremental=True)
    second = upkeep.expect_result("build_sqlite_index", compact=True)

    assert (same["published"], same["generation"]) == (False, first["generation"])
    assert same["outputPaths"] == first["outputPaths"]
    assert (second["published"], second["compacted"]) == (True, True)
    assert second["generation"] != first["generation"]
    assert upkeep.expect_result("search", query="first", backend="sqlite")["code"]


def test_without_an_index_or_that_mode_there_is_nothing_to_make_it_from(tmp_path: Path) -> None:
    upkeep = create_maintenance_client(tmp_path)
    for tool in ("build_sqlite_index", "compact_sqlite_index"):
        upkeep.expect_error(tool, ErrorCode.NO_INDEX)
    upkeep.repository.build_index(modes=("code",))
    for tool in ("build_sqlite_index", "compact_sqlite_index"):
        error = upkeep.expect_error(tool, ErrorCode.NO_INDEX, mode="prose")

        assert "without prose" in error.message
    assert not upkeep.repository.read_meta()["sqlite"]


@pytest.mark.parametrize("tool", ["build_sqlite_index", "compact_sqlite_index"])
def test_a_mode_is_refused_where_one_file_holds_others_too(tool: str, tmp_path: Path) -> None:
    upkeep = create_maintenance_client(tmp_path)
    upkeep.repository.build_index(modes=("code",))
    upkeep.expect_result(tool, mode="code")
    upkeep.repository.build_index()

    error = upkeep.expect_error(tool, ErrorCode.INVALID_REQUEST, mode="code")

    assert "cannot be done for code alone" in error.message


def test_the_server_itself_does_not_keep_what_was_replaced(upkeep: MaintenanceClient) -> None:
    before = upkeep.repository.lease_current()
    before.close()

    _, built = upkeep.call_tools(("search", {"query": "first"}), ("build_sqlite_index", {}))

    assert upkeep.check_result("build_sqlite_index", built)["published"]
    assert not before.folder.exists()


def test_places_of_other_servers_are_reserved(upkeep: MaintenanceClient) -> None:
    for name in ("codeDir", "proseDir", "out"):
        upkeep.expect_error("build_sqlite_index", ErrorCode.INVALID_REQUEST, **{name: "/tmp/x"})
    upkeep.expect_error("build_sqlite_index", ErrorCode.INVALID_REQUEST, repoPath="nowhere")
    upkeep.expect_error("compact_sqlite_index", ErrorCode.INVALID_REQUEST, mode="every")


@requirement("b:tools:required:compact_sqlite_index")
def test_packing_gains_space_and_loses_nothing(upkeep: MaintenanceClient) -> None:
    leave_free_space(upkeep)
    upkeep.expect_result("build_sqlite_index")
    before, old = upkeep.repository.read_content(), upkeep.repository.lease_current().name
    answer = upkeep.expect_result("search", query="first value", backend="sqlite-fts")

    dry = upkeep.expect_result("compact_sqlite_index", dryRun=True)
    after_dry = upkeep.repository.lease_current().name
    result = upkeep.expect_result("compact_sqlite_index", keepBackup=True)

    assert (dry["published"], after_dry) == (False, old)
    assert dry["freedBytes"] == result["freedBytes"] > 10_000
    assert dry["afterBytes"] == result["afterBytes"]
    assert result["published"]
    assert upkeep.repository.lease_current().catalogue_path.stat().st_size == result["afterBytes"]["catalogue"]
    assert upkeep.repository.read_content() == before
    assert upkeep.expect_result("search", query="first value", backend="sqlite-fts") == answer
    backup = Path(result["backupPath"])
    assert {path.name for path in backup.iterdir()} == {"catalogue.db", "fts.db"}
    assert upkeep.repository.build_index().published is False
    removed = upkeep.expect_result("cache_gc")["removals"]
    assert [entry["reason"] for entry in removed] == ["backup"]
    assert not backup.exists()


@requirement("b:tools:required:compact_sqlite_index")
def test_where_there_is_nothing_to_gain_nothing_is_published(upkeep: MaintenanceClient) -> None:
    before = list_file_stats(upkeep.repository.cache)

    result = upkeep.expect_result("compact_sqlite_index", keepBackup=True)

    assert (result["published"], result["freedBytes"], result["backupPath"]) == (False, 0, None)
    assert result["beforeBytes"] == result["afterBytes"]
    assert list_file_stats(upkeep.repository.cache) == before


def test_a_reader_goes_on_with_the_generation_it_has(upkeep: MaintenanceClient) -> None:
    leave_free_space(upkeep)

    with upkeep.repository.lease_current() as lease:
        result = run_packing(upkeep, task="pack")

        assert lease.catalogue_path.is_file()
        assert result.generation != lease.name
    assert result.after.total < result.before.total


def test_a_packer_that_fails_leaves_the_index_as_it_was(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = upkeep.repository.lease_current().name

    def fail_full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packing, "_vacuum_database", fail_full_disk)
    with pytest.raises(Exception, match="disk is full"):
        run_packing(upkeep, task="pack")

    assert upkeep.repository.lease_current().name == before
    assert [path.name for path in upkeep.repository.lease_current().folder.parent.iterdir()] == [before]


def test_a_cancelled_call_leaves_the_index_as_it_was(upkeep: MaintenanceClient) -> None:
    before = upkeep.repository.lease_current().name
    lock = upkeep.repository.generation_store.try_build_lock()
    assert lock is not None

    async def main() -> Outcome:
        async def send(report: ProgressReport) -> None:
            assert report.phase == "wait"
            call.cancel()

        call = ToolCall(tool="build_sqlite_index", arguments={}, reporter=ProgressReporter(send))
        server_status = ServerStatus()
        toolsets = app.load_toolsets(upkeep.settings, ["code"], server_status)
        async with app.open_dispatcher(upkeep.settings, toolsets, server_status) as dispatcher:
            return await dispatcher.dispatch(call)

    outcome = anyio.run(main)
    lock.release()

    assert isinstance(outcome, Cancelled)
    assert upkeep.repository.lease_current().name == before
    assert upkeep.expect_result("build_sqlite_index")["published"]


def test_packing_makes_one_file_of_a_catalogue_in_two(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_layers, "MIN_BASE_BYTES", 0)
    upkeep.repository.write_file("app/more.py", "def unseen(): ...\n")
    upkeep.repository.build_index()
    before = upkeep.repository.read_content()
    old = upkeep.repository.lease_current()
    base = (old.folder / BASE_FILE_NAME).stat().st_size

    result = run_packing(upkeep, task="pack", keep_backup=True)

    assert result.before.catalogue == base + old.catalogue_path.stat().st_size > result.after.catalogue
    assert not (upkeep.repository.lease_current().folder / BASE_FILE_NAME).exists()
    assert upkeep.repository.read_content() == before
    assert result.backup is not None
    assert {path.name for path in Path(result.backup).iterdir()} == {BASE_FILE_NAME, "catalogue.db"}


def test_an_index_without_the_base_of_its_catalogue_is_no_index(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_layers, "MIN_BASE_BYTES", 0)
    upkeep.repository.write_file("app/more.py", "def unseen(): ...\n")
    upkeep.repository.build_index()
    (upkeep.repository.lease_current().folder / BASE_FILE_NAME).unlink()

    upkeep.expect_error("search", ErrorCode.NO_INDEX, query="first")
    upkeep.repository.build_index()

    assert "app/more.py" in upkeep.repository.list_paths()
