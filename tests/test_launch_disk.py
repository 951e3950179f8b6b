"""A disk that is full, closed or damaged: told as what it is, and the run goes on afterwards."""

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
from cleats.toolsets.launch import disk
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.source.git import Git
from cleats.toolsets.launch.store import tables
from cleats.toolsets.launch.store.port import NewRun
from cleats.toolsets.launch.store.sqlite import SqliteStore
from cleats.toolsets.launch.telemetry.api import Api
from cleats.toolsets.launch.telemetry.ledger import Ledger
from cleats.toolsets.launch.telemetry.sender import Sender
from tests.held import held
from tests.launch_client import client
from tests.launch_world import RUN_ID, config, engine, start

pytestmark = pytest.mark.anyio

NO_ROOM = "There is no room left on the disk that the runs are kept on."
DATA = ".local/share/cleats/launch"


def facts(error: ToolError) -> tuple[ErrorCode, bool, str]:
    assert isinstance(error.details, dict)
    return error.code, error.retryable, error.details["cause_class"]


def new(key: str = "") -> NewRun:
    padding = {"padding": "x" * 50_000}
    return NewRun(
        run_id=RUN_ID, product_slug="s", config=padding, shown_config={}, config_hash="h", key=key
    )


def test_a_store_without_room_says_so_and_works_once_there_is_some(tmp_path: Path) -> None:
    store = held(SqliteStore(tmp_path / "runs.db"))
    store.list()
    store._writer.execute("PRAGMA max_page_count = 10")

    with pytest.raises(ToolError, match=NO_ROOM) as caught:
        store.create(new(), [Draft("NOTE")], Trace())
    store._writer.execute("PRAGMA max_page_count = 10000")
    run, made = store.create(new(), [Draft("NOTE")], Trace())
    store.close()

    assert facts(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_FULL")
    assert (run.run_id, made) == (RUN_ID, True)


def test_a_store_that_is_damaged_says_so_at_once(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_bytes(b"this is no database\n" * 500)
    store = held(SqliteStore(tmp_path / "runs.db"))

    with pytest.raises(ToolError, match="damaged") as caught:
        store.list()

    assert facts(caught.value) == (ErrorCode.INTERNAL, False, "SQLITE_NOTADB")


def test_a_store_that_is_removed_under_an_open_one_records_no_run_that_nobody_sees(
    tmp_path: Path,
) -> None:
    store = held(SqliteStore(tmp_path / "data" / "runs.db"))
    store.create(new(), [Draft("NOTE")], Trace())
    shutil.rmtree(tmp_path / "data")

    store.create(replace(new(), run_id="r_after_that"), [Draft("NOTE")], Trace())

    other = held(SqliteStore(tmp_path / "data" / "runs.db"))
    assert [each.run_id for each in store.list()] == ["r_after_that"]
    assert [each.run_id for each in other.list()] == ["r_after_that"]


def test_a_copy_of_the_store_that_is_put_back_is_used_at_once(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with closing(SqliteStore(file)) as first:
        first.create(new(), [Draft("NOTE")], Trace())
    copy = file.read_bytes()
    file.write_bytes(b"this is no database\n" * 500)
    store = held(SqliteStore(file))
    with pytest.raises(ToolError, match="damaged"):
        store.list()

    file.rename(tmp_path / "damaged")
    file.write_bytes(copy)

    assert [each.run_id for each in store.list()] == [RUN_ID]


def test_a_store_that_somebody_else_holds_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PATIENCE", 0.0)
    store = held(SqliteStore(tmp_path / "runs.db"))
    store.list()
    holder = held(SqliteStore(tmp_path / "runs.db"))

    with holder._writing(), pytest.raises(ToolError, match="Another program holds") as caught:
        store.create(new(), [Draft("NOTE")], Trace())

    assert facts(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_BUSY")


def test_a_store_that_cannot_be_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PATIENCE", 10_000.0)  # a test that waits is ended by its timeout
    (tmp_path / "runs.db-journal").mkdir()

    with pytest.raises(ToolError, match="cannot be used now") as caught:
        held(SqliteStore(tmp_path / "runs.db")).list()

    assert facts(caught.value) == (ErrorCode.INTERNAL, True, "SQLITE_CANTOPEN")
    assert str(tmp_path) not in str(caught.value)


def test_a_data_folder_that_is_a_file_is_told_without_its_place(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")

    with pytest.raises(ToolError, match="cannot be written") as caught:
        SqliteStore(tmp_path / "data" / "launch" / "runs.db").list()

    assert facts(caught.value) == (ErrorCode.INTERNAL, True, "NotADirectoryError")


@pytest.mark.parametrize(
    ("number", "known"),
    [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EMFILE, True), (errno.ENOENT, False)],
)
def test_what_an_operator_can_put_right_is_told_and_what_is_our_fault_is_not(
    number: int, known: bool
) -> None:
    told = disk.trouble(OSError(number, "no", "/home/me/secret"))

    assert (told is not None and told.retryable) is known
    assert "/home" not in str(told)


async def test_a_step_that_finds_no_room_leaves_the_run_where_it_is(tmp_path: Path) -> None:
    runs = engine(tmp_path)
    run = await start(runs, config(test={"errno": {"facts": errno.ENOSPC}}))

    with pytest.raises(ToolError, match=NO_ROOM):
        await runs.resume(run.run_id)
    waits = await runs.status(run.run_id)
    after = await runs.resume(run.run_id)
    runs.store.close()

    assert waits["state"] == "INGESTED"
    assert [each["title"] for each in waits["open_issues"]] == [NO_ROOM]
    assert (after["state"], after["open_issues"]) == ("READY_FOR_PR", [])


async def test_git_that_fails_without_a_word_about_it_is_out_of_room_when_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git({"PATH": os.environ["PATH"]}, tmp_path)

    async def reason() -> Any:
        with pytest.raises(ToolError) as caught:
            await git.ask("", "config", "--get", "no.such")
        assert isinstance(caught.value.details, dict)
        return caught.value.retryable, caught.value.details["reason"]

    ordinary = await reason()
    monkeypatch.setattr("cleats.toolsets.launch.source.git._ROOM", 1 << 80)

    assert ordinary == (False, "git_failed")
    assert await reason() == (True, "no_room")


def test_records_that_cannot_be_kept_do_not_end_the_server(tmp_path: Path) -> None:
    place = tmp_path / DATA
    place.mkdir(parents=True)
    (place / "telemetry.sqlite").write_bytes(b"this is no database\n" * 500)
    kept = held(Ledger(place / "telemetry.sqlite"))

    there = anyio.run(Sender(kept).flush)
    with client(tmp_path) as asked:
        run_id = asked.start()
        state = asked.on(run_id, "resume")["status"]["state"]
        asked.peer.end_input()
        code = asked.peer.wait()

    assert not there
    assert (state, code) == ("PLAN_READY", 0)


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/runs"), ("GET", "/api/v1/metadata")])
def test_records_that_cannot_be_read_are_not_available(
    tmp_path: Path, method: str, path: str
) -> None:
    (tmp_path / "t.sqlite").write_bytes(b"this is no database\n" * 500)
    kept = held(Ledger(tmp_path / "t.sqlite"))
    api = Api(lambda: kept, lambda _run_id: None, lambda _run_id: [])
    [run] = [each.run for each in api.routes() if (each.method, each.path) == (method, path)]

    with pytest.raises(ToolError) as caught:
        anyio.run(run, RouteRequest(path={}, query={}, body=None))

    assert caught.value.code is ErrorCode.UNAVAILABLE
