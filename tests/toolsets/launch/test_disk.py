"""Tests of a full, read-only or damaged disk: it is reported as such, and the run goes on later."""

import errno
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.routes import RouteRequest
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.store import databases
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.telemetry.api import TelemetryApi
from cleats.toolsets.launch.telemetry.ledger import TelemetryLedger
from cleats.toolsets.launch.telemetry.recorder import LEDGER_FILE_NAME, TelemetryRecorder, TelemetrySender
from tests.support.held_locks import close_after_test
from tests.support.launch_client import open_launch_client
from tests.support.launch_runs import TEST_RUN_ID, build_config, create_engine, create_run

pytestmark = pytest.mark.anyio

NO_ROOM_MESSAGE = "The disk with the runs is full."
DATA_FOLDER = ".local/share/cleats/launch"


def summarize_error(error: ToolError) -> tuple[ErrorCode, bool, str]:
    assert isinstance(error.details, dict)
    return error.code, error.retryable, error.details["cause_class"]


def build_new_run(key: str = "") -> Run:
    padding = {"padding": "x" * 50_000}
    return Run(run_id=TEST_RUN_ID, product_slug="s", config=padding, shown_config={}, config_hash="h", key=key)


def test_a_store_without_room_says_so_and_works_once_there_is_some(tmp_path: Path) -> None:
    store = close_after_test(SqliteStore(tmp_path / "runs.db"))
    store.list_runs()
    store._writer.execute("PRAGMA max_page_count = 10")

    with pytest.raises(ToolError, match=NO_ROOM_MESSAGE) as caught:
        store.create(build_new_run(), [EventDraft("NOTE")], TraceIds())
    store._writer.execute("PRAGMA max_page_count = 10000")
    run, was_created = store.create(build_new_run(), [EventDraft("NOTE")], TraceIds())
    store.close()

    assert summarize_error(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_FULL")
    assert (run.run_id, was_created) == (TEST_RUN_ID, True)


def test_a_store_that_is_damaged_says_so_at_once(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_bytes(b"this is no database\n" * 500)
    store = close_after_test(SqliteStore(tmp_path / "runs.db"))

    with pytest.raises(ToolError, match="damaged") as caught:
        store.list_runs()

    assert summarize_error(caught.value) == (ErrorCode.INTERNAL, False, "SQLITE_NOTADB")


def test_a_store_that_is_removed_under_an_open_one_records_no_run_that_nobody_sees(
    tmp_path: Path,
) -> None:
    store = close_after_test(SqliteStore(tmp_path / "data" / "runs.db"))
    store.create(build_new_run(), [EventDraft("NOTE")], TraceIds())
    shutil.rmtree(tmp_path / "data")

    store.create(replace(build_new_run(), run_id="r_after_that"), [EventDraft("NOTE")], TraceIds())

    other = close_after_test(SqliteStore(tmp_path / "data" / "runs.db"))
    assert [listed_run.run_id for listed_run in store.list_runs()] == ["r_after_that"]
    assert [listed_run.run_id for listed_run in other.list_runs()] == ["r_after_that"]


def test_a_copy_of_the_store_that_is_put_back_is_used_at_once(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with closing(SqliteStore(file)) as first:
        first.create(build_new_run(), [EventDraft("NOTE")], TraceIds())
    copy = file.read_bytes()
    file.write_bytes(b"this is no database\n" * 500)
    store = close_after_test(SqliteStore(file))
    with pytest.raises(ToolError, match="damaged"):
        store.list_runs()

    file.rename(tmp_path / "damaged")
    file.write_bytes(copy)

    assert [listed_run.run_id for listed_run in store.list_runs()] == [TEST_RUN_ID]


def test_a_store_that_somebody_else_holds_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "WRITE_TIMEOUT_SECONDS", 0.0)
    store = close_after_test(SqliteStore(tmp_path / "runs.db"))
    store.list_runs()
    holder = close_after_test(SqliteStore(tmp_path / "runs.db"))

    with holder._writer.transaction(), pytest.raises(ToolError, match="Another program has locked") as caught:
        store.create(build_new_run(), [EventDraft("NOTE")], TraceIds())

    assert summarize_error(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_BUSY")


def test_a_store_that_cannot_be_opened_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "WRITE_TIMEOUT_SECONDS", 10_000.0)  # a test that waits is ended by its timeout
    (tmp_path / "runs.db-journal").mkdir()

    with pytest.raises(ToolError, match="The database file of the runs cannot be used") as caught:
        close_after_test(SqliteStore(tmp_path / "runs.db")).list_runs()

    assert summarize_error(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_CANTOPEN")
    assert str(tmp_path) not in str(caught.value)


def test_a_data_folder_that_is_a_file_is_told_without_its_place(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")

    with pytest.raises(ToolError, match="is not writable") as caught:
        SqliteStore(tmp_path / "data" / "launch" / "runs.db").list_runs()

    assert summarize_error(caught.value) == (ErrorCode.INTERNAL, True, "NotADirectoryError")


@pytest.mark.parametrize(
    ("number", "is_known"),
    [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EMFILE, True), (errno.ENOENT, False)],
)
def test_what_an_operator_can_put_right_is_told_and_what_is_our_fault_is_not(number: int, is_known: bool) -> None:
    trouble = storage.wrap_os_error(OSError(number, "no", "/home/me/secret"))

    assert (trouble is not None and trouble.retryable) is is_known
    assert "/home" not in str(trouble)


async def test_a_step_that_finds_no_room_leaves_the_run_where_it_is(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    run = await create_run(runs, build_config(test={"errno": {"facts": errno.ENOSPC}}))

    with pytest.raises(ToolError, match=NO_ROOM_MESSAGE):
        await runs.resume(run.run_id)
    waits = await runs.get_status(run.run_id)
    after = await runs.resume(run.run_id)
    runs.store.close()

    assert waits["state"] == "INGESTED"
    assert [issue["title"] for issue in waits["open_issues"]] == [NO_ROOM_MESSAGE]
    assert (after["state"], after["open_issues"]) == ("READY_FOR_PR", [])


async def test_git_that_fails_without_a_word_about_it_is_out_of_room_when_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = HardenedGit({"PATH": os.environ["PATH"]}, tmp_path)

    async def read_failure() -> Any:
        with pytest.raises(ToolError) as caught:
            await git.run("", "config", "--get", "no.such")
        assert isinstance(caught.value.details, dict)
        return caught.value.retryable, caught.value.details["reason"]

    ordinary = await read_failure()
    monkeypatch.setattr("cleats.toolsets.launch.git.client._MIN_FREE_BYTES", 1 << 80)

    assert ordinary == (False, "git_failed")
    assert await read_failure() == (True, "no_room")


def test_records_that_cannot_be_kept_do_not_end_the_server(tmp_path: Path) -> None:
    place = tmp_path / DATA_FOLDER
    place.mkdir(parents=True)
    (place / "telemetry.sqlite").write_bytes(b"this is no database\n" * 500)
    ledger = close_after_test(TelemetryLedger(place / "telemetry.sqlite"))

    is_flushed = anyio.run(TelemetrySender(ledger).flush)
    with open_launch_client(tmp_path) as launch_client:
        run_id = launch_client.start_run()
        state = launch_client.call_for_run(run_id, "resume")["status"]["state"]
        launch_client.peer.close_input()
        code = launch_client.peer.wait_for_exit()

    assert not is_flushed
    assert (state, code) == ("PLAN_READY", 0)


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/runs"), ("GET", "/api/v1/metadata")])
def test_records_that_cannot_be_read_are_not_available(tmp_path: Path, method: str, path: str) -> None:
    (tmp_path / LEDGER_FILE_NAME).write_bytes(b"this is no database\n" * 500)
    recorder = TelemetryRecorder(tmp_path, lambda: SqliteStore(tmp_path / "runs.sqlite"))
    close_after_test(recorder.ledger)
    api = TelemetryApi(recorder)
    [run] = [route.run for route in api.build_routes() if (route.method, route.path) == (method, path)]

    with pytest.raises(ToolError) as caught:
        anyio.run(run, RouteRequest(path={}, query={}, body=None))

    assert caught.value.code is ErrorCode.UNAVAILABLE
