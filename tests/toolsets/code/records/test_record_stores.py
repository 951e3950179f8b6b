"""Stores of records. Every store passes the first tests; the last are about the shared one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.records import postgres_records
from cleats.toolsets.code.records.archive import (
    RecordArchive,
    RecordChange,
    RecordStore,
    RecordWriter,
    copy_records,
    update_timestamps,
)
from cleats.toolsets.code.records.model import TriageRecord, Vulnerability, compute_record_id
from cleats.toolsets.code.records.postgres_records import DatabaseRecordStore, RecordDatabase
from cleats.toolsets.code.triage.ingest import SAVE_BATCH_FINDINGS, Documents, ingest_documents
from tests.support.postgres import create_database, make_unreachable
from tests.support.triage import RECORD_STORES, REPORTS_FOLDER, TriageShop
from tests.support.waiting import wait_until

StoreFactory = Callable[[], RecordStore]
"""A function that opens the same records once more, as another server has them."""


@pytest.fixture(params=RECORD_STORES)
def factory(tmp_path: Path, request: pytest.FixtureRequest) -> StoreFactory:
    if request.param == "folder":
        return lambda: RecordArchive(tmp_path / "records")
    return make_machines(tmp_path, create_database())


def make_machines(folder: Path, url: str, name: str = "shop") -> Callable[[], DatabaseRecordStore]:
    """Return a factory of stores on servers that share nothing but the database."""
    number = count()
    return lambda: DatabaseRecordStore(RecordDatabase(url), name, RecordArchive(folder / f"machine-{next(number)}"))


def make_record(name: str = "X-1", title: str = "") -> TriageRecord:
    vuln = Vulnerability(name, title=title)
    return TriageRecord(record_id=compute_record_id("manual", name), source="manual", vuln=vuln)


def save_records(store: RecordStore, *records: TriageRecord) -> list[RecordChange]:
    with store.open_writer() as writer:
        return writer.save(records)


def read_titles(store: RecordStore) -> dict[str, str]:
    return {finding.vuln.vuln_id: finding.vuln.title for finding in store.refresh().iter_records("finding")}


def test_what_one_saves_everybody_has(factory: StoreFactory) -> None:
    one, other = factory(), factory()
    nothing = read_titles(other)

    save_records(one, make_record("X-1", "first"), make_record("X-2"))
    both = read_titles(other)
    save_records(other, make_record("X-1", "again"))

    assert nothing == {}
    assert both == {"X-1": "first", "X-2": ""}
    assert read_titles(one) == {"X-1": "again", "X-2": ""}


def test_it_is_told_what_became_of_each_record(factory: StoreFactory) -> None:
    one, other = factory(), factory()
    first = save_records(one, make_record("X-1"), make_record("X-2"))
    [before] = [finding for finding in one.refresh().iter_records("finding") if finding.name == "X-1"]

    changes_again = save_records(other, make_record("X-1"), make_record("X-2", "changed"), make_record("X-3"))
    same = other.refresh().find(before.record_id)
    other_one = other.refresh().find(compute_record_id("manual", "X-2"))

    assert first == ["created", "created"]
    assert changes_again == ["unchanged", "updated", "created"]
    assert same == before
    assert other_one is not None
    assert other_one.created_at == before.created_at < other_one.updated_at


def test_writers_at_the_same_time_lose_nothing(factory: StoreFactory) -> None:
    stores = [factory() for _ in range(6)]

    def write_records(number: int) -> list[list[RecordChange]]:
        return [
            save_records(stores[number], make_record(f"X-{number}-{turn}"), make_record("X-all", f"{number}"))
            for turn in range(5)
        ]

    with ThreadPoolExecutor(len(stores)) as pool:
        saved_changes = [
            changes for writer_changes in pool.map(write_records, range(len(stores))) for changes in writer_changes
        ]

    titles_by_id = read_titles(factory())
    assert len(titles_by_id) == 31
    assert titles_by_id["X-all"] in map(str, range(6))
    assert all(own_change == "created" for own_change, _ in saved_changes)
    assert [read_titles(store) for store in stores] == [titles_by_id] * 6


def test_work_that_is_given_up_ends_and_keeps_what_it_has(factory: StoreFactory) -> None:
    store, progress = factory(), []
    things = [{"cve": f"CVE-2022-{number:04}"} for number in range(3 * SAVE_BATCH_FINDINGS)]

    def advance(done: int, total: int) -> bool:
        progress.append((done, total))
        return done < SAVE_BATCH_FINDINGS

    with store.open_writer() as writer:
        done = ingest_documents(writer, "generic", Documents([(0, things)]), {}, advance)

    assert progress == [(0, len(things)), (SAVE_BATCH_FINDINGS, len(things))]
    assert done.total == SAVE_BATCH_FINDINGS == len(list(factory().refresh().iter_records("finding")))


def test_what_was_saved_before_a_failure_stays(factory: StoreFactory) -> None:
    store = factory()

    def write_and_fail(writer: RecordWriter) -> None:
        for number in range(3):
            writer.save([make_record(f"X-{number}")])
        raise ToolError(ErrorCode.NOT_FOUND, "gone")

    with pytest.raises(ToolError, match="gone"), store.open_writer() as writer:
        write_and_fail(writer)

    assert len(read_titles(factory())) in (0, 3)


# Records in a database


def test_a_connection_that_breaks_leaves_nothing_of_what_was_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = create_database()
    machine = make_machines(tmp_path, url)
    one = machine()
    save_records(one, make_record("X-1"))

    def break_off(*args: Any) -> RecordChange:
        if args[0].name == "X-3":
            with make_unreachable(url):
                pass
        return update_timestamps(*args)

    monkeypatch.setattr(postgres_records, "update_timestamps", break_off)
    with pytest.raises(ToolError) as caught:
        save_records(one, make_record("X-2"), make_record("X-3"))

    assert (caught.value.code, caught.value.retryable) == (ErrorCode.UNAVAILABLE, True)
    assert read_titles(machine()) == read_titles(one) == {"X-1": ""}
    assert save_records(machine(), make_record("X-2"), make_record("X-1")) == ["created", "unchanged"]


def test_nobody_waits_for_long_for_one_who_stalls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = create_database()
    machine = make_machines(tmp_path, url)
    save_records(machine(), make_record("X-1"))
    monkeypatch.setattr(postgres_records, "_SET_TIMEOUTS_SQL", ("SET LOCAL lock_timeout = '10ms'",))

    with psycopg.connect(url) as stalled:
        stalled.execute("SELECT * FROM cleats_record_books FOR UPDATE")
        with pytest.raises(ToolError) as caught:
            save_records(machine(), make_record("X-2"))

    assert (caught.value.code, caught.value.retryable) == (ErrorCode.UNAVAILABLE, True)
    assert save_records(machine(), make_record("X-2")) == ["created"]


def test_one_who_stalls_is_put_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = create_database()
    machine = make_machines(tmp_path, url)
    quick = ("SET LOCAL idle_in_transaction_session_timeout = '10ms'",)

    def stall(*args: Any) -> RecordChange:
        with psycopg.connect(url, autocommit=True) as connection:
            wait_until(lambda: connection.execute(OTHER_CONNECTIONS_SQL).fetchone() == (0,))
        return update_timestamps(*args)

    with monkeypatch.context() as patched:
        patched.setattr(postgres_records, "_SET_TIMEOUTS_SQL", quick)
        patched.setattr(postgres_records, "update_timestamps", stall)
        with pytest.raises(ToolError) as caught:
            save_records(machine(), make_record("X-1"))

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert read_titles(machine()) == {}


OTHER_CONNECTIONS_SQL = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_a_record_counts_from_the_time_of_the_database(tmp_path: Path) -> None:
    url = create_database()
    with psycopg.connect(url) as connection:
        [before] = connection.execute("SELECT clock_timestamp()").fetchone() or [None]

    save_records(make_machines(tmp_path, url)(), make_record())

    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT %s <= at AND at <= clock_timestamp() FROM"
            " (SELECT (body::jsonb ->> 'createdAt')::timestamptz AS at FROM cleats_records) _",
            (before,),
        ).fetchone()
    assert row == (True,)


def test_repositories_of_other_names_have_records_of_their_own(tmp_path: Path) -> None:
    url = create_database()
    shop, till = make_machines(tmp_path / "a", url, "shop"), make_machines(tmp_path / "b", url, "till")

    save_records(shop(), make_record("X-1"))
    save_records(till(), make_record("X-1", "till"))

    assert read_titles(shop()) == {"X-1": ""}
    assert read_titles(till()) == {"X-1": "till"}


def test_copies_of_another_database_are_forgotten(tmp_path: Path) -> None:
    here = RecordArchive(tmp_path / "copies")
    old = DatabaseRecordStore(RecordDatabase(create_database()), "shop", here)
    save_records(old, *(make_record(f"X-{number}") for number in range(3)))
    new = DatabaseRecordStore(RecordDatabase(create_database()), "shop", here)

    empty = read_titles(new)
    save_records(new, make_record("X-1", "new"))

    assert empty == {}
    assert read_titles(new) == {"X-1": "new"}


def test_copies_that_were_being_forgotten_are_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = RecordArchive(tmp_path / "copies")
    old = DatabaseRecordStore(RecordDatabase(create_database()), "shop", here)
    save_records(old, make_record("X-1"))
    new = DatabaseRecordStore(RecordDatabase(create_database()), "shop", here)

    with monkeypatch.context() as patched:
        patched.setattr(postgres_records, "replace_text", fail_full_disk)
        with pytest.raises(ToolError):
            new.refresh()

    assert read_titles(old) == {"X-1": ""}


def test_copies_of_a_database_that_was_put_back_are_made_anew(tmp_path: Path) -> None:
    url = create_database()
    book = make_machines(tmp_path, url)()
    save_records(book, make_record("X-1"))
    save_records(book, make_record("X-2"))
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM cleats_records WHERE revision = 2")
        connection.execute("UPDATE cleats_record_books SET revision = 1")

    assert read_titles(book) == {"X-1": ""}


def test_copies_that_were_not_finished_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make_machines(tmp_path, create_database())
    save_records(machine(), make_record("X-1"), make_record("X-2"))
    late = machine()

    with monkeypatch.context() as patched:
        patched.setattr(postgres_records, "replace_text", fail_full_disk)
        with pytest.raises(ToolError) as caught:
            late.refresh()
    next(late.local_archive.folder.rglob("*.json")).unlink()

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert "CLEATS_CACHE_DIR" in caught.value.hint
    assert read_titles(late) == {"X-1": "", "X-2": ""}


def fail_full_disk(*_args: Any) -> None:
    raise OSError(28, "No space left on device")


def test_servers_of_one_machine_copy_one_after_the_other(tmp_path: Path) -> None:
    url = create_database()
    save_records(make_machines(tmp_path, url)(), *(make_record(f"X-{number}") for number in range(200)))
    here = RecordArchive(tmp_path / "copies")

    with ThreadPoolExecutor(4) as pool:
        record_counts = list(
            pool.map(lambda _: len(read_titles(DatabaseRecordStore(RecordDatabase(url), "shop", here))), range(4))
        )

    assert record_counts == [200] * 4


def test_a_row_that_is_no_record_does_no_harm(tmp_path: Path) -> None:
    url = create_database()
    machine = make_machines(tmp_path, url)
    save_records(machine(), make_record("X-1"), make_record("X-2"))
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE cleats_records SET body = '{' WHERE record_id = %s",
            (compute_record_id("manual", "X-1"),),
        )
        connection.execute(
            "INSERT INTO cleats_records VALUES ('shop', '../../outside', 'finding', 1, 'x'),"
            " ('shop', 'abc', '../..', 1, 'x')"
        )

    titles_by_id = read_titles(machine())
    changes_again = save_records(machine(), make_record("X-1"))

    assert titles_by_id == {"X-2": ""}
    assert changes_again == ["created"]
    assert not list(tmp_path.rglob("outside*"))


def test_a_database_that_is_away_is_said_to_be_and_can_be_asked_again(tmp_path: Path) -> None:
    shop = TriageShop.create(tmp_path, "database")
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    shop.build_index()
    report = str(REPORTS_FOLDER / "sarif.json")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("triage_ingest", {"source": "sarif", "inputPath": report}),
        ("triage_decision", {"finding": first, "status": "fix"}),
        ("triage_context_pack", {"recordId": first}),
    ]
    shop.database_url = "postgresql://cleats:hunter2@127.0.0.1:1/cleats"

    errors = [shop.expect_error(tool, **arguments) for tool, arguments in calls]
    result = shop.call_tool("search", query="validation", mode="records", meta={"severity": "critical"})
    built = shop.list_warning_codes("build_index", incremental=True)
    later_result = shop.call_tool("search", query="validation", mode="records")

    assert {error.code for error in errors} == {ErrorCode.UNAVAILABLE}
    assert all(error.retryable and "hunter2" not in str(error.message) for error in errors)
    assert [hit["file"] for hit in result["records"]] == [f".cleats/records/{first}.md"]
    assert built == ["index_incomplete"]
    assert len(later_result["records"]) == 1


def test_a_decision_without_room_for_copies_is_kept_all_the_same(tmp_path: Path) -> None:
    shop = TriageShop.create(tmp_path, "database")
    elsewhere = TriageShop.create(tmp_path / "elsewhere", "database", shop.index_name)
    shop.cache.write_text("in the way")

    result = shop.ingest_report("dependabot")
    refused = shop.expect_error("triage_context_pack", recordId=result["recordIds"][0])
    pack = elsewhere.call_tool("triage_context_pack", recordId=result["recordIds"][0])

    assert result["created"] == 2
    assert refused.code is ErrorCode.INVALID_REQUEST
    assert "CLEATS_CACHE_DIR" in refused.hint
    assert pack["finding"]["recordId"] == result["recordIds"][0]


def test_a_folder_hands_its_records_over_as_old_as_they_are(tmp_path: Path) -> None:
    mine, shared = RecordArchive(tmp_path / "mine"), make_machines(tmp_path, create_database())()
    save_records(mine, *(make_record(f"X-{number}") for number in range(70)))
    save_records(shared, make_record("X-1", "theirs"))

    counts = [copy_records(mine, shared), copy_records(mine, shared)]

    [old] = [finding for finding in mine.iter_records("finding") if finding.name == "X-2"]
    assert counts == [69, 0]
    assert shared.refresh().find(old.record_id) == old
    assert read_titles(shared)["X-1"] == "theirs"
    assert len(read_titles(mine)) == 70
