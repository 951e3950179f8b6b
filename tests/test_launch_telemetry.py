"""Records of runs: made from journals, kept here, sent on, and none twice."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.routes import RouteAnswer, RouteHandler, RouteRequest
from cleats.toolsets.launch.drive.records import cancelled
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.store.port import NewRun
from cleats.toolsets.launch.store.sqlite import SqliteStore
from cleats.toolsets.launch.telemetry import ledger as ledgers
from cleats.toolsets.launch.telemetry import records
from cleats.toolsets.launch.telemetry.api import Api
from cleats.toolsets.launch.telemetry.ledger import Collector as Somebody
from cleats.toolsets.launch.telemetry.ledger import Ledger
from cleats.toolsets.launch.telemetry.sender import Sender
from cleats.toolsets.launch.telemetry.watch import Watch
from tests.held import held
from tests.launch_world import RUN_ID
from tests.requirements import requirement

OTHER = "r_2026-01-21T10-00-00Z_ffffffff"
TRACE = Trace("1" * 32, "2" * 16)
RECORD = {
    "event_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "run_id": "nightly-1",
    "agent_name": "nightly",
    "job_type": "sweep",
    "start_time": "2026-01-21T10:00:00Z",
}


@dataclass
class Collector:
    """Somebody who takes records, or does not for a while."""

    url: str = ""
    status: int = 200
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None:
            pass

        def _any(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            collector.tokens.add(self.headers.get("authorization", ""))
            if collector.status < 300:
                collector.seen.append((self.command, self.path, body))
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_PATCH = _any  # noqa: N815 - the names the library calls

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_run(tmp_path: Path) -> SqliteStore:
    """A store with one run that went all the way."""
    store = held(SqliteStore(tmp_path / "runs.sqlite"))
    config = {"product_name": "Shop", "family": "shop", "target_platform": "python"}
    new = NewRun(
        run_id=RUN_ID, product_slug="shop", config=config, shown_config=config, config_hash="h"
    )
    store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], TRACE)
    lease = store.acquire(RUN_ID, "me", 60)
    assert lease is not None
    item = {"work_item_id": f"{RUN_ID}:W1:1:", "worker": "W1", "attempt": 1, "scope_key": ""}
    store.record(lease, [Draft("WORK_ITEM_STARTED", {**item, "inputs": []})], TRACE)
    gate = {"gate": "schema", "profile": "local"}
    store.record(
        lease,
        [
            Draft("GATE_RUN_STARTED", gate),
            Draft("GATE_RUN_FINISHED", {**gate, "ok": False, "issues": 2, "duration_ms": 7}),
            Draft("GATE_RUN_STARTED", gate),
            Draft("GATE_RUN_FINISHED", {**gate, "ok": True, "issues": 0, "duration_ms": 5}),
            Draft("WORK_ITEM_FINISHED", {**item, "outputs": []}),
            Draft("PR_OPENED", {"pr_url": "local:site#b", "branch": "b", "commit_sha": "c" * 40}),
            Draft("RUN_STATE_CHANGED", {"old_state": "CREATED", "new_state": "CANCELLED"}),
        ],
        TRACE,
    )
    return store


def watch(tmp_path: Path, store: SqliteStore, collector: Collector | None = None) -> Watch:
    to = None if collector is None else Somebody(collector.url, "WORD")
    made = Watch(tmp_path, lambda: store, to, lambda: {"WORD": "word"})
    held(made.ledger)
    return made


def test_a_journal_becomes_a_record_of_the_run_and_one_for_all_that_happened_in_it(
    tmp_path: Path,
) -> None:
    watching = watch(tmp_path, a_run(tmp_path))

    watching.catch_up(RUN_ID)

    found = watching.ledger.of_run(RUN_ID)
    told = {(each["job_type"], each.get("item_name"), each["status"]) for each in found}
    [parent] = [each for each in found if each["job_type"] == "launch"]
    assert parent["status"] == "cancelled"
    assert parent["product"] == "Shop"
    assert [each["commit_hash"] for each in parent["commits"]] == ["c" * 40]
    assert ("gate", "schema", "failure") in told
    assert ("gate", "schema", "success") in told
    assert ("worker", "W1:1:", "success") in told
    assert all(
        (each["context_json"]["trace_id"], each["context_json"]["span_id"]) == TRACE[:2]
        for each in found
    )
    assert {UUID(each["event_id"]).version for each in found} == {4}


def test_a_journal_that_is_read_in_pieces_gives_the_same_records(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    whole, pieces = watch(tmp_path / "a", store), watch(tmp_path / "b", store)
    whole.catch_up(RUN_ID)

    pieces.catch_up(RUN_ID)
    pieces.catch_up(RUN_ID)
    again = watch(tmp_path / "b", store)
    again.catch_up(RUN_ID)

    assert again.ledger.of_run(RUN_ID) == whole.ledger.of_run(RUN_ID)


def test_two_who_read_the_same_journal_at_once_write_it_down_once(tmp_path: Path) -> None:
    first, second = held(Ledger(tmp_path / "t.sqlite")), held(Ledger(tmp_path / "t.sqlite"))

    told = [each.keep([RECORD], read=("r", 0, 5)) for each in (first, second)]

    assert told == [True, False]
    assert first.read_up_to("r") == 5


@requirement("e:telemetry:work-items")
def test_what_was_done_for_a_run_that_is_cancelled_ends_with_it(tmp_path: Path) -> None:
    store = held(SqliteStore(tmp_path / "runs.sqlite"))
    new = NewRun(run_id=RUN_ID, product_slug="", config={}, shown_config={}, config_hash="h")
    store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], TRACE)
    lease = store.acquire(RUN_ID, "me", 60)
    assert lease is not None
    store.record(lease, [begun("W5", "draft:docs")], TRACE)
    watching = watch(tmp_path, store)

    store.cancel(RUN_ID, cancelled, TRACE)
    watching.catch_up(RUN_ID)
    store.close()

    found = watching.ledger.of_run(RUN_ID)
    assert sorted((each["job_type"], each["status"]) for each in found) == [
        ("launch", "cancelled"),
        ("worker", "cancelled"),
    ]


def test_a_record_names_the_section_that_a_step_wrote_and_no_other_step_as_one(
    tmp_path: Path,
) -> None:
    store = held(SqliteStore(tmp_path / "runs.sqlite"))
    new = NewRun(run_id=RUN_ID, product_slug="", config={}, shown_config={}, config_hash="h")
    first = Draft("RUN_CREATED", {"required_sections": ["docs"]})
    store.create(new, [first, begun("W5", "draft:docs"), begun("W7", "validate:1")], TRACE)
    watching = watch(tmp_path, store)

    watching.catch_up(RUN_ID)

    found = watching.ledger.of_run(RUN_ID)
    assert [each["website_section"] for each in found if "website_section" in each] == ["docs"]


def begun(worker: str, step: str) -> Draft:
    """A step begins."""
    item = {"work_item_id": f"{RUN_ID}:{worker}:1:{step}", "scope_key": step, "inputs": []}
    return Draft("WORK_ITEM_STARTED", {**item, "worker": worker, "attempt": 1})


def test_a_collector_that_is_away_gets_everything_later_in_order_and_once(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.status = 503
        watching = watch(tmp_path, a_run(tmp_path), collector)
        watching.catch_up(RUN_ID)
        sender = Sender(watching.ledger, watching.tokens())

        away = anyio.run(sender.flush)
        collector.status = 200
        there = anyio.run(sender.flush)
        anyio.run(sender.flush)

    assert (away, there) == (False, True)
    assert collector.seen[0][:2] == ("POST", "/api/v1/runs")
    begun = [body["event_id"] for method, path, body in collector.seen if path == "/api/v1/runs"]
    assert sorted(begun) == sorted(each["event_id"] for each in watching.ledger.list({}, limit=50))
    assert len(begun) == len(set(begun))
    assert any(path.endswith("associate-commit") for _, path, _ in collector.seen)
    assert collector.tokens == {"Bearer word"}
    assert watching.ledger.collectors() == []


def test_a_collector_that_refuses_a_record_is_not_asked_again(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.status = 422
        kept = held(Ledger(tmp_path / "t.sqlite"))
        kept.keep([RECORD], to=Somebody(collector.url))

        assert anyio.run(Sender(kept).flush)

    assert kept.collectors() == []


def test_a_collector_that_is_away_does_not_keep_another_from_its_records(tmp_path: Path) -> None:
    with collecting() as collector:
        kept = held(Ledger(tmp_path / "t.sqlite"))
        kept.keep([RECORD], to=Somebody("http://127.0.0.1:9"))
        kept.keep([{**RECORD, "event_id": str(UUID(int=7))}], to=Somebody(collector.url))

        assert not anyio.run(Sender(kept).flush)

    assert [body["event_id"] for _, _, body in collector.seen] == [str(UUID(int=7))]
    assert kept.collectors() == ["http://127.0.0.1:9"]


def test_only_one_process_sends_at_a_time(tmp_path: Path) -> None:
    with collecting() as collector:
        kept = held(Ledger(tmp_path / "t.sqlite"))
        kept.keep([RECORD], to=Somebody(collector.url))
        kept.claim("another process", 1e11, 30)

        anyio.run(Sender(kept).flush)

    assert collector.seen == []
    assert kept.collectors() == [collector.url]


def test_a_run_that_names_a_collector_is_told_there(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    told = {"endpoint_url": "https://there.example", "auth_token_env": "WORD", "project": "p"}
    config = {"product_name": "Shop", "telemetry": told}
    new = NewRun(
        run_id=OTHER, product_slug="shop", config=config, shown_config=config, config_hash="h"
    )
    store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], TRACE)
    watching = watch(tmp_path, store)

    watching.catch_up(OTHER)
    watching.catch_up(RUN_ID)

    [message] = watching.ledger.waiting("https://there.example", 10)
    assert (message.token, json.loads(message.body)["run_id"]) == ("WORD", OTHER)
    assert json.loads(message.body)["context_json"]["project"] == "p"


def test_a_call_about_a_run_is_told_where_the_run_is_and_repeats_no_address(
    tmp_path: Path,
) -> None:
    store = a_run(tmp_path)
    config = {"product_name": "Shop", "telemetry": {"endpoint_url": "https://there.example"}}
    new = NewRun(
        run_id=OTHER, product_slug="shop", config=config, shown_config=config, config_hash="h"
    )
    store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], TRACE)
    arguments = {"run_id": OTHER, "url": "https://products.example/a?word=sesame"}
    record = records.tool_call(
        tool="launch_get_status",
        run_id=OTHER,
        arguments=arguments,
        begun=1.0,
        ended=2.0,
        status="success",
        trace=("1" * 32, "2" * 16),
        summary="ok",
    )

    async def run() -> list[Mapping[str, Any]]:
        watching = watch(tmp_path, store)
        async with watching.running():
            watching.called(record)
            watching.called({**record, "event_id": "other", "parent_run_id": "r_not_there"})
        kept = held(Ledger(tmp_path / "telemetry.sqlite"))
        return [json.loads(each.body) for each in kept.waiting("https://there.example", 10)]

    [sent] = anyio.run(run)

    assert (sent["job_type"], sent["parent_run_id"]) == ("mcp_tool_call", OTHER)
    assert sent["context_json"]["arguments"] == {"run_id": OTHER, "url": "(not told)"}


def test_an_outbox_that_grows_too_large_loses_its_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "OUTBOX_CAP", 1000)
    kept, to = held(Ledger(tmp_path / "t.sqlite")), Somebody("https://there.example")

    for number in range(20):
        record = {**RECORD, "event_id": str(UUID(int=number)), "item_name": str(number)}
        kept.keep([record], to=to)

    waiting = [json.loads(each.body)["item_name"] for each in kept.waiting(to.url, 50)]
    assert waiting[-1] == "19"
    assert 0 < len(waiting) < 20
    assert kept.dropped == 20 - len(waiting)


def test_a_watch_whose_disk_is_full_does_not_disturb_the_run(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    (tmp_path / "blocked").write_text("a file, where a folder should be")

    async def run() -> None:
        watching = Watch(tmp_path / "blocked" / "telemetry", lambda: store)
        async with watching.running():
            watching.moved(RUN_ID)

    anyio.run(run)


def test_what_a_server_did_not_get_to_is_written_down_when_it_ends(tmp_path: Path) -> None:
    store = a_run(tmp_path)

    async def run() -> None:
        watching = watch(tmp_path, store)
        async with watching.running():
            watching.moved(RUN_ID)

    anyio.run(run)

    assert len(held(Ledger(tmp_path / "telemetry.sqlite")).of_run(RUN_ID)) == 5


class Asked:
    """The API, asked directly."""

    def __init__(self, tmp_path: Path) -> None:
        store = a_run(tmp_path)
        watching = watch(tmp_path, store)
        self.routes: dict[tuple[str, str], RouteHandler] = {
            (route.method, route.path): route.run
            for route in Api(
                lambda: watching.ledger,
                watching.catch_up,
                lambda run_id: [each.as_json() for each in store.events(run_id)],
            ).routes()
        }

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        **names: str,
    ) -> RouteAnswer:
        request = RouteRequest(path=names, query=query or {}, body=body)
        return anyio.run(self.routes[method, path], request)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


ONE = "/api/v1/runs/{event_id}"


def test_a_record_that_is_sent_twice_is_there_once(asked: Asked) -> None:
    first = asked("POST", "/api/v1/runs", RECORD)
    second = asked("POST", "/api/v1/runs", {**RECORD, "item_name": "other"})

    assert (first.status, second.status) == (201, 200)
    assert second.body == first.body == {**RECORD, "status": "running"}


def test_a_record_is_ended_and_given_its_commit(asked: Asked) -> None:
    asked("POST", "/api/v1/runs", {**RECORD, "metrics_json": {"a": 1}})
    name = RECORD["event_id"]
    end = {"status": "success", "end_time": "2026-01-21T10:00:02Z", "metrics_json": {"b": 2}}
    commit = {"commit_hash": "abcdef1", "commit_source": "manual"}

    asked("PATCH", ONE, end, event_id=name)
    asked("POST", ONE + "/associate-commit", commit, event_id=name)
    asked("POST", ONE + "/associate-commit", commit, event_id=name)

    found = asked("GET", ONE, event_id=name).body
    assert found["status"] == "success"
    assert found["duration_ms"] == 2000
    assert found["metrics_json"] == {"a": 1, "b": 2}
    assert found["commits"] == [commit]


def test_many_records_at_once_are_taken_where_they_are_good(asked: Asked) -> None:
    other = {**RECORD, "event_id": str(UUID(int=7))}

    answer = asked("POST", "/api/v1/runs/batch", [RECORD, other, RECORD, {"run_id": "x"}])

    assert answer.body["inserted"] == 2
    assert answer.body["duplicates"] == 1
    assert [each["index"] for each in answer.body["errors"]] == [3]


def test_the_records_of_a_run_are_up_to_date_when_they_are_asked_for(asked: Asked) -> None:
    answer = asked("GET", "/telemetry/{run_id}", run_id=RUN_ID)

    assert len(answer.body["records"]) == 5
    name = answer.body["records"][0]["event_id"]
    events = asked("GET", ONE + "/events", event_id=name).body["events"]
    assert events[0]["type"] == "RUN_CREATED"


def test_records_are_found_by_their_kind_and_counted(asked: Asked) -> None:
    asked("GET", "/telemetry/{run_id}", run_id=RUN_ID)

    found = asked("GET", "/api/v1/runs", query={"job_type": "gate", "limit": "1"}).body
    counts = asked("GET", "/api/v1/metadata").body["counts"]

    assert (found["count"], found["runs"][0]["job_type"]) == (1, "gate")
    assert counts["job_type"] == {"commit_service": 1, "gate": 2, "launch": 1, "worker": 1}


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "code"),
    [
        ("POST", "/api/v1/runs", {"run_id": "x"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", [], {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**RECORD, "event_id": "no"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**RECORD, "status": "odd"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**RECORD, "start_time": ""}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", ONE, {"end_time": "yesterday"}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", ONE, {}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", ONE, {"status": "success"}, {}, ErrorCode.NOT_FOUND),
        ("GET", ONE, None, {}, ErrorCode.NOT_FOUND),
        ("GET", "/telemetry/{run_id}", None, {}, ErrorCode.NOT_FOUND),
        ("GET", "/api/v1/runs", None, {"limit": "-1"}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"limit": "501"}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"offset": "9" * 5000}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"colour": "red"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_taken_is_refused(
    asked: Asked, *, method: str, path: str, body: Any, query: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(ToolError) as caught:
        asked(method, path, body, query=query, event_id="none", run_id="r_unknown1")

    assert caught.value.code is code
