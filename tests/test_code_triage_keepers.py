"""What keeps records. Every keeper passes the first tests; the last are about the shared one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage import books
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.books import Book, Books
from cleats.toolsets.code.triage.documents import Documents
from cleats.toolsets.code.triage.ingest import EVERY, ingest
from cleats.toolsets.code.triage.keeping import Change, Keeper, Writer, hand_over, settle
from cleats.toolsets.code.triage.records import Record, Vulnerability, record_id
from tests.postgres import away, database
from tests.triage_world import KEEPERS, REPORTS, Shop
from tests.waiting import until

Factory = Callable[[], Keeper]
"""The same records once more, as another server has them."""


@pytest.fixture(params=KEEPERS)
def factory(tmp_path: Path, request: pytest.FixtureRequest) -> Factory:
    if request.param == "folder":
        return lambda: Archive(tmp_path / "records")
    return machines(tmp_path, database())


def machines(folder: Path, url: str, name: str = "shop") -> Callable[[], Book]:
    """Servers that have nothing in common but the database."""
    number = count()
    return lambda: Book(Books(url), name, Archive(folder / f"machine-{next(number)}"))


def record(name: str = "X-1", title: str = "") -> Record:
    vuln = Vulnerability(name, title=title)
    return Record(record_id=record_id("manual", name), source="manual", vuln=vuln)


def save(keeper: Keeper, *records: Record) -> list[Change]:
    with keeper.writing() as writer:
        return writer.save(records)


def titles(keeper: Keeper) -> dict[str, str]:
    return {each.vuln.vuln_id: each.vuln.title for each in keeper.current().records("finding")}


def test_what_one_saves_everybody_has(factory: Factory) -> None:
    one, other = factory(), factory()
    nothing = titles(other)

    save(one, record("X-1", "first"), record("X-2"))
    both = titles(other)
    save(other, record("X-1", "again"))

    assert nothing == {}
    assert both == {"X-1": "first", "X-2": ""}
    assert titles(one) == {"X-1": "again", "X-2": ""}


def test_it_is_told_what_became_of_each_record(factory: Factory) -> None:
    one, other = factory(), factory()
    first = save(one, record("X-1"), record("X-2"))
    [before] = [each for each in one.current().records("finding") if each.name == "X-1"]

    again = save(other, record("X-1"), record("X-2", "changed"), record("X-3"))
    same = other.current().find(before.record_id)
    other_one = other.current().find(record_id("manual", "X-2"))

    assert first == ["created", "created"]
    assert again == ["unchanged", "updated", "created"]
    assert same == before
    assert other_one is not None
    assert other_one.created_at == before.created_at < other_one.updated_at


def test_writers_at_the_same_time_lose_nothing(factory: Factory) -> None:
    keepers = [factory() for _ in range(6)]

    def write(number: int) -> list[list[Change]]:
        return [
            save(keepers[number], record(f"X-{number}-{turn}"), record("X-all", f"{number}"))
            for turn in range(5)
        ]

    with ThreadPoolExecutor(len(keepers)) as pool:
        told = [changes for each in pool.map(write, range(len(keepers))) for changes in each]

    found = titles(factory())
    assert len(found) == 31
    assert found["X-all"] in map(str, range(6))
    assert all(own == "created" for own, _ in told)
    assert [titles(keeper) for keeper in keepers] == [found] * 6


def test_work_that_is_given_up_ends_and_keeps_what_it_has(factory: Factory) -> None:
    keeper, told = factory(), []
    things = [{"cve": f"CVE-2022-{number:04}"} for number in range(3 * EVERY)]

    def advance(done: int, total: int) -> bool:
        told.append((done, total))
        return done < EVERY

    with keeper.writing() as writer:
        done = ingest(writer, "generic", Documents([(0, things)]), {}, advance)

    assert told == [(0, len(things)), (EVERY, len(things))]
    assert done.total == EVERY == len(list(factory().current().records("finding")))


def test_what_was_saved_before_a_failure_stays(factory: Factory) -> None:
    keeper = factory()

    def failing(writer: Writer) -> None:
        for number in range(3):
            writer.save([record(f"X-{number}")])
        raise ToolError(ErrorCode.NOT_FOUND, "gone")

    with pytest.raises(ToolError, match="gone"), keeper.writing() as writer:
        failing(writer)

    assert len(titles(factory())) in (0, 3)


# Records in a database


def test_a_connection_that_breaks_leaves_nothing_of_what_was_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database()
    machine = machines(tmp_path, url)
    one = machine()
    save(one, record("X-1"))

    def break_off(*given: Any) -> Change:
        if given[0].name == "X-3":
            with away(url):
                pass
        return settle(*given)

    monkeypatch.setattr(books, "settle", break_off)
    with pytest.raises(ToolError) as caught:
        save(one, record("X-2"), record("X-3"))

    assert (caught.value.code, caught.value.retryable) == (ErrorCode.UNAVAILABLE, True)
    assert titles(machine()) == titles(one) == {"X-1": ""}
    assert save(machine(), record("X-2"), record("X-1")) == ["created", "unchanged"]


def test_nobody_waits_for_long_for_one_who_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database()
    machine = machines(tmp_path, url)
    save(machine(), record("X-1"))
    monkeypatch.setattr(books, "_PATIENCE", ("SET LOCAL lock_timeout = '10ms'",))

    with psycopg.connect(url) as stalled:
        stalled.execute("SELECT * FROM cleats_record_books FOR UPDATE")
        with pytest.raises(ToolError) as caught:
            save(machine(), record("X-2"))

    assert (caught.value.code, caught.value.retryable) == (ErrorCode.UNAVAILABLE, True)
    assert save(machine(), record("X-2")) == ["created"]


def test_one_who_stalls_is_put_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database()
    machine = machines(tmp_path, url)
    quick = ("SET LOCAL idle_in_transaction_session_timeout = '10ms'",)

    def stall(*given: Any) -> Change:
        with psycopg.connect(url, autocommit=True) as connection:
            until(lambda: connection.execute(OTHERS).fetchone() == (0,))
        return settle(*given)

    with monkeypatch.context() as patched:
        patched.setattr(books, "_PATIENCE", quick)
        patched.setattr(books, "settle", stall)
        with pytest.raises(ToolError) as caught:
            save(machine(), record("X-1"))

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert titles(machine()) == {}


OTHERS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_a_record_counts_from_the_time_of_the_database(tmp_path: Path) -> None:
    url = database()
    with psycopg.connect(url) as connection:
        [before] = connection.execute("SELECT clock_timestamp()").fetchone() or [None]

    save(machines(tmp_path, url)(), record())

    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT %s <= at AND at <= clock_timestamp() FROM"
            " (SELECT (body::jsonb ->> 'createdAt')::timestamptz AS at FROM cleats_records) _",
            (before,),
        ).fetchone()
    assert row == (True,)


def test_repositories_of_other_names_have_records_of_their_own(tmp_path: Path) -> None:
    url = database()
    shop, till = machines(tmp_path / "a", url, "shop"), machines(tmp_path / "b", url, "till")

    save(shop(), record("X-1"))
    save(till(), record("X-1", "till"))

    assert titles(shop()) == {"X-1": ""}
    assert titles(till()) == {"X-1": "till"}


def test_copies_of_another_database_are_forgotten(tmp_path: Path) -> None:
    here = Archive(tmp_path / "copies")
    old = Book(Books(database()), "shop", here)
    save(old, *(record(f"X-{number}") for number in range(3)))
    new = Book(Books(database()), "shop", here)

    empty = titles(new)
    save(new, record("X-1", "new"))

    assert empty == {}
    assert titles(new) == {"X-1": "new"}


def test_copies_that_were_being_forgotten_are_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Archive(tmp_path / "copies")
    old = Book(Books(database()), "shop", here)
    save(old, record("X-1"))
    new = Book(Books(database()), "shop", here)

    with monkeypatch.context() as patched:
        patched.setattr(books, "replace_text", full)
        with pytest.raises(ToolError):
            new.current()

    assert titles(old) == {"X-1": ""}


def test_copies_of_a_database_that_was_put_back_are_made_anew(tmp_path: Path) -> None:
    url = database()
    book = machines(tmp_path, url)()
    save(book, record("X-1"))
    save(book, record("X-2"))
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM cleats_records WHERE revision = 2")
        connection.execute("UPDATE cleats_record_books SET revision = 1")

    assert titles(book) == {"X-1": ""}


def test_copies_that_were_not_finished_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machines(tmp_path, database())
    save(machine(), record("X-1"), record("X-2"))
    late = machine()

    with monkeypatch.context() as patched:
        patched.setattr(books, "replace_text", full)
        with pytest.raises(ToolError) as caught:
            late.current()
    next(late.here.folder.rglob("*.json")).unlink()

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert "CLEATS_CACHE_DIR" in caught.value.hint
    assert titles(late) == {"X-1": "", "X-2": ""}


def full(*_given: Any) -> None:
    raise OSError(28, "No space left on device")


def test_servers_of_one_machine_copy_one_after_the_other(tmp_path: Path) -> None:
    url = database()
    save(machines(tmp_path, url)(), *(record(f"X-{number}") for number in range(200)))
    here = Archive(tmp_path / "copies")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(titles(Book(Books(url), "shop", here))), range(4)))

    assert found == [200] * 4


def test_a_row_that_is_no_record_does_no_harm(tmp_path: Path) -> None:
    url = database()
    machine = machines(tmp_path, url)
    save(machine(), record("X-1"), record("X-2"))
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE cleats_records SET body = '{' WHERE record_id = %s",
            (record_id("manual", "X-1"),),
        )
        connection.execute(
            "INSERT INTO cleats_records VALUES ('shop', '../../outside', 'finding', 1, 'x'),"
            " ('shop', 'abc', '../..', 1, 'x')"
        )

    found = titles(machine())
    again = save(machine(), record("X-1"))

    assert found == {"X-2": ""}
    assert again == ["created"]
    assert not list(tmp_path.rglob("outside*"))


def test_a_database_that_is_away_is_said_to_be_and_can_be_asked_again(tmp_path: Path) -> None:
    shop = Shop.at(tmp_path, "database")
    [first, _] = shop.ingest("dependabot")["recordIds"]
    shop.build()
    report = str(REPORTS / "sarif.json")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("triage_ingest", {"source": "sarif", "inputPath": report}),
        ("triage_decision", {"finding": first, "status": "fix"}),
        ("triage_context_pack", {"recordId": first}),
    ]
    shop.database_url = "postgresql://cleats:hunter2@127.0.0.1:1/cleats"

    errors = [shop.refused(tool, **given) for tool, given in calls]
    found = shop.call("search", query="validation", mode="records", meta={"severity": "critical"})
    built = shop.warned("build_index", incremental=True)
    still = shop.call("search", query="validation", mode="records")

    assert {error.code for error in errors} == {ErrorCode.UNAVAILABLE}
    assert all(error.retryable and "hunter2" not in str(error.message) for error in errors)
    assert [hit["file"] for hit in found["records"]] == [f".cleats/records/{first}.md"]
    assert built == ["index_incomplete"]
    assert len(still["records"]) == 1


def test_a_decision_without_room_for_copies_is_kept_all_the_same(tmp_path: Path) -> None:
    shop = Shop.at(tmp_path, "database")
    elsewhere = Shop.at(tmp_path / "elsewhere", "database", shop.index_name)
    shop.cache.write_text("in the way")

    done = shop.ingest("dependabot")
    refused = shop.refused("triage_context_pack", recordId=done["recordIds"][0])
    pack = elsewhere.call("triage_context_pack", recordId=done["recordIds"][0])

    assert done["created"] == 2
    assert refused.code is ErrorCode.INVALID_REQUEST
    assert "CLEATS_CACHE_DIR" in refused.hint
    assert pack["finding"]["recordId"] == done["recordIds"][0]


def test_a_folder_hands_its_records_over_as_old_as_they_are(tmp_path: Path) -> None:
    mine, shared = Archive(tmp_path / "mine"), machines(tmp_path, database())()
    save(mine, *(record(f"X-{number}") for number in range(70)))
    save(shared, record("X-1", "theirs"))

    counts = [hand_over(mine, shared), hand_over(mine, shared)]

    [old] = [each for each in mine.records("finding") if each.name == "X-2"]
    assert counts == [69, 0]
    assert shared.current().find(old.record_id) == old
    assert titles(shared)["X-1"] == "theirs"
    assert len(titles(mine)) == 70
