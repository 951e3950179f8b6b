"""Tests of the records of runs: derived from event logs, stored, sent on, and never twice."""

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
from cleats.toolsets.launch.drive.step_events import make_cancellation_events
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.telemetry import journal_records
from cleats.toolsets.launch.telemetry import ledger as ledgers
from cleats.toolsets.launch.telemetry.api import TelemetryApi
from cleats.toolsets.launch.telemetry.ledger import TelemetryCollector as Somebody
from cleats.toolsets.launch.telemetry.ledger import TelemetryLedger
from cleats.toolsets.launch.telemetry.recorder import TelemetryRecorder, TelemetrySender
from tests.support.held_locks import close_after_test
from tests.support.launch_runs import TEST_RUN_ID
from tests.support.requirements import requirement

OTHER_RUN_ID = "r_2026-01-21T10-00-00Z_ffffffff"
CALL_TRACE = TraceIds("1" * 32, "2" * 16)
SAMPLE_RECORD = {
    "event_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "run_id": "nightly-1",
    "agent_name": "nightly",
    "job_type": "sweep",
    "start_time": "2026-01-21T10:00:00Z",
}


@dataclass
class RecordCollector:
    """A server that accepts records, or refuses them for a while."""

    url: str = ""
    status: int = 200
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


@contextmanager
def serve_collector() -> Iterator[RecordCollector]:
    collector = RecordCollector()

    class CollectorHandler(BaseHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None:
            pass

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            collector.tokens.add(self.headers.get("authorization", ""))
            if collector.status < 300:
                collector.requests.append((self.command, self.path, body))
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_PATCH = _answer  # noqa: N815 - the names the library calls

    server = ThreadingHTTPServer(("127.0.0.1", 0), CollectorHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def create_finished_run(tmp_path: Path) -> SqliteStore:
    """Create a store with one run that went all the way."""
    store = close_after_test(SqliteStore(tmp_path / "runs.sqlite"))
    config = {"product_name": "Shop", "family": "shop", "target_platform": "python"}
    new_run = Run(run_id=TEST_RUN_ID, product_slug="shop", config=config, shown_config=config, config_hash="h")
    store.create(new_run, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], CALL_TRACE)
    lease = store.acquire(TEST_RUN_ID, "me", 60)
    assert lease is not None
    item = {"work_item_id": f"{TEST_RUN_ID}:W1:1:", "worker": "W1", "attempt": 1, "scope_key": ""}
    store.record(lease, [EventDraft("WORK_ITEM_STARTED", {**item, "inputs": []})], CALL_TRACE)
    gate = {"gate": "schema", "profile": "local"}
    store.record(
        lease,
        [
            EventDraft("GATE_RUN_STARTED", gate),
            EventDraft("GATE_RUN_FINISHED", {**gate, "ok": False, "issues": 2, "duration_ms": 7}),
            EventDraft("GATE_RUN_STARTED", gate),
            EventDraft("GATE_RUN_FINISHED", {**gate, "ok": True, "issues": 0, "duration_ms": 5}),
            EventDraft("WORK_ITEM_FINISHED", {**item, "outputs": []}),
            EventDraft("PR_OPENED", {"pr_url": "local:site#b", "branch": "b", "commit_sha": "c" * 40}),
            EventDraft("RUN_STATE_CHANGED", {"old_state": "CREATED", "new_state": "CANCELLED"}),
        ],
        CALL_TRACE,
    )
    return store


def build_watcher(tmp_path: Path, store: SqliteStore, collector: RecordCollector | None = None) -> TelemetryRecorder:
    to = None if collector is None else Somebody(collector.url, "WORD")
    watcher = TelemetryRecorder(tmp_path, lambda: store, to, lambda: {"WORD": "word"})
    close_after_test(watcher.ledger)
    return watcher


def test_a_journal_becomes_a_record_of_the_run_and_one_for_all_that_happened_in_it(
    tmp_path: Path,
) -> None:
    watcher = build_watcher(tmp_path, create_finished_run(tmp_path))

    watcher.catch_up(TEST_RUN_ID)

    run_records = watcher.ledger.list_run_records(TEST_RUN_ID)
    record_kinds = {(record["job_type"], record.get("item_name"), record["status"]) for record in run_records}
    [parent] = [record for record in run_records if record["job_type"] == "launch"]
    assert parent["status"] == "cancelled"
    assert parent["product"] == "Shop"
    assert [record["commit_hash"] for record in parent["commits"]] == ["c" * 40]
    assert ("gate", "schema", "failure") in record_kinds
    assert ("gate", "schema", "success") in record_kinds
    assert ("worker", "W1:1:", "success") in record_kinds
    assert all(
        (record["context_json"]["trace_id"], record["context_json"]["span_id"]) == CALL_TRACE[:2]
        for record in run_records
    )
    assert {UUID(record["event_id"]).version for record in run_records} == {4}


def test_a_journal_that_is_read_in_pieces_gives_the_same_records(tmp_path: Path) -> None:
    store = create_finished_run(tmp_path)
    full_watcher, pieces = build_watcher(tmp_path / "a", store), build_watcher(tmp_path / "b", store)
    full_watcher.catch_up(TEST_RUN_ID)

    pieces.catch_up(TEST_RUN_ID)
    pieces.catch_up(TEST_RUN_ID)
    again = build_watcher(tmp_path / "b", store)
    again.catch_up(TEST_RUN_ID)

    assert again.ledger.list_run_records(TEST_RUN_ID) == full_watcher.ledger.list_run_records(TEST_RUN_ID)


def test_two_who_read_the_same_journal_at_once_write_it_down_once(tmp_path: Path) -> None:
    first, second = (
        close_after_test(TelemetryLedger(tmp_path / "t.sqlite")),
        close_after_test(TelemetryLedger(tmp_path / "t.sqlite")),
    )

    results = [ledger.store_records([SAMPLE_RECORD], read_range=("r", 0, 5)) for ledger in (first, second)]

    assert results == [True, False]
    assert first.get_read_position("r") == 5


@requirement("e:telemetry:work-items")
def test_what_was_done_for_a_run_that_is_cancelled_ends_with_it(tmp_path: Path) -> None:
    store = close_after_test(SqliteStore(tmp_path / "runs.sqlite"))
    new = Run(run_id=TEST_RUN_ID, product_slug="", config={}, shown_config={}, config_hash="h")
    store.create(new, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], CALL_TRACE)
    lease = store.acquire(TEST_RUN_ID, "me", 60)
    assert lease is not None
    store.record(lease, [build_started_draft("W5", "draft:docs")], CALL_TRACE)
    watcher = build_watcher(tmp_path, store)

    store.cancel(TEST_RUN_ID, make_cancellation_events, CALL_TRACE)
    watcher.catch_up(TEST_RUN_ID)
    store.close()

    run_records = watcher.ledger.list_run_records(TEST_RUN_ID)
    assert sorted((record["job_type"], record["status"]) for record in run_records) == [
        ("launch", "cancelled"),
        ("worker", "cancelled"),
    ]


def test_a_record_names_the_section_that_a_step_wrote_and_no_other_step_as_one(
    tmp_path: Path,
) -> None:
    store = close_after_test(SqliteStore(tmp_path / "runs.sqlite"))
    new = Run(run_id=TEST_RUN_ID, product_slug="", config={}, shown_config={}, config_hash="h")
    first = EventDraft("RUN_CREATED", {"required_sections": ["docs"]})
    store.create(
        new, [first, build_started_draft("W5", "draft:docs"), build_started_draft("W7", "validate:1")], CALL_TRACE
    )
    watcher = build_watcher(tmp_path, store)

    watcher.catch_up(TEST_RUN_ID)

    run_records = watcher.ledger.list_run_records(TEST_RUN_ID)
    assert [record["website_section"] for record in run_records if "website_section" in record] == ["docs"]


def build_started_draft(worker: str, step: str) -> EventDraft:
    """Return the event of a step that starts."""
    item = {"work_item_id": f"{TEST_RUN_ID}:{worker}:1:{step}", "scope_key": step, "inputs": []}
    return EventDraft("WORK_ITEM_STARTED", {**item, "worker": worker, "attempt": 1})


def test_a_collector_that_is_away_gets_everything_later_in_order_and_once(tmp_path: Path) -> None:
    with serve_collector() as collector:
        collector.status = 503
        watcher = build_watcher(tmp_path, create_finished_run(tmp_path), collector)
        watcher.catch_up(TEST_RUN_ID)
        sender = TelemetrySender(watcher.ledger, watcher.tokens())

        away = anyio.run(sender.flush)
        collector.status = 200
        is_flushed = anyio.run(sender.flush)
        anyio.run(sender.flush)

    assert (away, is_flushed) == (False, True)
    assert collector.requests[0][:2] == ("POST", "/api/v1/runs")
    started_ids = [body["event_id"] for method, path, body in collector.requests if path == "/api/v1/runs"]
    assert sorted(started_ids) == sorted(record["event_id"] for record in watcher.ledger.list_records({}, limit=50))
    assert len(started_ids) == len(set(started_ids))
    assert any(path.endswith("associate-commit") for _, path, _ in collector.requests)
    assert collector.tokens == {"Bearer word"}
    assert watcher.ledger.list_collectors() == []


def test_a_collector_that_refuses_a_record_is_not_asked_again(tmp_path: Path) -> None:
    with serve_collector() as collector:
        collector.status = 422
        ledger = close_after_test(TelemetryLedger(tmp_path / "t.sqlite"))
        ledger.store_records([SAMPLE_RECORD], collector=Somebody(collector.url))

        assert anyio.run(TelemetrySender(ledger).flush)

    assert ledger.list_collectors() == []


def test_a_collector_that_is_away_does_not_keep_another_from_its_records(tmp_path: Path) -> None:
    with serve_collector() as collector:
        ledger = close_after_test(TelemetryLedger(tmp_path / "t.sqlite"))
        ledger.store_records([SAMPLE_RECORD], collector=Somebody("http://127.0.0.1:9"))
        ledger.store_records([{**SAMPLE_RECORD, "event_id": str(UUID(int=7))}], collector=Somebody(collector.url))

        assert not anyio.run(TelemetrySender(ledger).flush)

    assert [body["event_id"] for _, _, body in collector.requests] == [str(UUID(int=7))]
    assert ledger.list_collectors() == ["http://127.0.0.1:9"]


def test_only_one_process_sends_at_a_time(tmp_path: Path) -> None:
    with serve_collector() as collector:
        ledger = close_after_test(TelemetryLedger(tmp_path / "t.sqlite"))
        ledger.store_records([SAMPLE_RECORD], collector=Somebody(collector.url))
        ledger.claim_sender("another process", 1e11, 30)

        anyio.run(TelemetrySender(ledger).flush)

    assert collector.requests == []
    assert ledger.list_collectors() == [collector.url]


def test_a_run_that_names_a_collector_is_told_there(tmp_path: Path) -> None:
    store = create_finished_run(tmp_path)
    telemetry_config = {"endpoint_url": "https://there.example", "auth_token_env": "WORD", "project": "p"}
    config = {"product_name": "Shop", "telemetry": telemetry_config}
    new = Run(run_id=OTHER_RUN_ID, product_slug="shop", config=config, shown_config=config, config_hash="h")
    store.create(new, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], CALL_TRACE)
    watcher = build_watcher(tmp_path, store)

    watcher.catch_up(OTHER_RUN_ID)
    watcher.catch_up(TEST_RUN_ID)

    [message] = watcher.ledger.list_waiting("https://there.example", 10)
    assert (message.token, json.loads(message.body)["run_id"]) == ("WORD", OTHER_RUN_ID)
    assert json.loads(message.body)["context_json"]["project"] == "p"


def test_a_call_about_a_run_is_told_where_the_run_is_and_repeats_no_address(
    tmp_path: Path,
) -> None:
    store = create_finished_run(tmp_path)
    config = {"product_name": "Shop", "telemetry": {"endpoint_url": "https://there.example"}}
    new = Run(run_id=OTHER_RUN_ID, product_slug="shop", config=config, shown_config=config, config_hash="h")
    store.create(new, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], CALL_TRACE)
    arguments = {"run_id": OTHER_RUN_ID, "url": "https://products.example/a?word=sesame"}
    record = journal_records.make_call_record(
        "launch_get_status",
        arguments,
        run_id=OTHER_RUN_ID,
        started=1.0,
        trace=("1" * 32, "2" * 16),
        result=("success", "ok"),
    )

    async def record_calls() -> list[Mapping[str, Any]]:
        watcher = build_watcher(tmp_path, store)
        async with watcher.running():
            watcher.queue_call(record)
            watcher.queue_call({**record, "event_id": "other", "parent_run_id": "r_not_there"})
        ledger = close_after_test(TelemetryLedger(tmp_path / "telemetry.sqlite"))
        return [json.loads(entry.body) for entry in ledger.list_waiting("https://there.example", 10)]

    [sent_record] = anyio.run(record_calls)

    assert (sent_record["job_type"], sent_record["parent_run_id"]) == ("mcp_tool_call", OTHER_RUN_ID)
    assert sent_record["context_json"]["arguments"] == {"run_id": OTHER_RUN_ID, "url": "(not recorded)"}


def test_an_outbox_that_grows_too_large_loses_its_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MAX_OUTBOX_BYTES", 1000)
    ledger, to = close_after_test(TelemetryLedger(tmp_path / "t.sqlite")), Somebody("https://there.example")

    for number in range(20):
        record = {**SAMPLE_RECORD, "event_id": str(UUID(int=number)), "item_name": str(number)}
        ledger.store_records([record], collector=to)

    item_names = [json.loads(queued_record.body)["item_name"] for queued_record in ledger.list_waiting(to.url, 50)]
    assert item_names[-1] == "19"
    assert 0 < len(item_names) < 20
    assert ledger.dropped_count == 20 - len(item_names)


def test_a_watch_whose_disk_is_full_does_not_disturb_the_run(tmp_path: Path) -> None:
    store = create_finished_run(tmp_path)
    (tmp_path / "blocked").write_text("a file, where a folder should be")

    async def watch_run() -> None:
        watcher = TelemetryRecorder(tmp_path / "blocked" / "telemetry", lambda: store)
        async with watcher.running():
            watcher.queue_run(TEST_RUN_ID)

    anyio.run(watch_run)


def test_what_a_server_did_not_get_to_is_written_down_when_it_ends(tmp_path: Path) -> None:
    store = create_finished_run(tmp_path)

    async def watch_run() -> None:
        watcher = build_watcher(tmp_path, store)
        async with watcher.running():
            watcher.queue_run(TEST_RUN_ID)

    anyio.run(watch_run)

    assert len(close_after_test(TelemetryLedger(tmp_path / "telemetry.sqlite")).list_run_records(TEST_RUN_ID)) == 5


class TelemetryApiClient:
    """The routes of the telemetry API, called directly."""

    def __init__(self, tmp_path: Path) -> None:
        store = create_finished_run(tmp_path)
        watcher = build_watcher(tmp_path, store)
        self.routes: dict[tuple[str, str], RouteHandler] = {
            (route.method, route.path): route.run for route in TelemetryApi(watcher).build_routes()
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
def telemetry_api(tmp_path: Path) -> TelemetryApiClient:
    return TelemetryApiClient(tmp_path)


RECORD_PATH = "/api/v1/runs/{event_id}"


def test_a_record_that_is_sent_twice_is_there_once(telemetry_api: TelemetryApiClient) -> None:
    first = telemetry_api("POST", "/api/v1/runs", SAMPLE_RECORD)
    second = telemetry_api("POST", "/api/v1/runs", {**SAMPLE_RECORD, "item_name": "other"})

    assert (first.status, second.status) == (201, 200)
    assert second.body == first.body == {**SAMPLE_RECORD, "status": "running"}


def test_a_record_is_ended_and_given_its_commit(telemetry_api: TelemetryApiClient) -> None:
    telemetry_api("POST", "/api/v1/runs", {**SAMPLE_RECORD, "metrics_json": {"a": 1}})
    name = SAMPLE_RECORD["event_id"]
    end = {"status": "success", "end_time": "2026-01-21T10:00:02Z", "metrics_json": {"b": 2}}
    commit = {"commit_hash": "abcdef1", "commit_source": "manual"}

    telemetry_api("PATCH", RECORD_PATH, end, event_id=name)
    telemetry_api("POST", RECORD_PATH + "/associate-commit", commit, event_id=name)
    telemetry_api("POST", RECORD_PATH + "/associate-commit", commit, event_id=name)

    stored_record = telemetry_api("GET", RECORD_PATH, event_id=name).body
    assert stored_record["status"] == "success"
    assert stored_record["duration_ms"] == 2000
    assert stored_record["metrics_json"] == {"a": 1, "b": 2}
    assert stored_record["commits"] == [commit]


def test_many_records_at_once_are_taken_where_they_are_good(telemetry_api: TelemetryApiClient) -> None:
    other = {**SAMPLE_RECORD, "event_id": str(UUID(int=7))}

    answer = telemetry_api("POST", "/api/v1/runs/batch", [SAMPLE_RECORD, other, SAMPLE_RECORD, {"run_id": "x"}])

    assert answer.body["inserted"] == 2
    assert answer.body["duplicates"] == 1
    assert [batch_error["index"] for batch_error in answer.body["errors"]] == [3]


def test_the_records_of_a_run_are_up_to_date_when_they_are_asked_for(telemetry_api: TelemetryApiClient) -> None:
    answer = telemetry_api("GET", "/telemetry/{run_id}", run_id=TEST_RUN_ID)

    assert len(answer.body["records"]) == 5
    name = answer.body["records"][0]["event_id"]
    events = telemetry_api("GET", RECORD_PATH + "/events", event_id=name).body["events"]
    assert events[0]["type"] == "RUN_CREATED"


def test_records_are_found_by_their_kind_and_counted(telemetry_api: TelemetryApiClient) -> None:
    telemetry_api("GET", "/telemetry/{run_id}", run_id=TEST_RUN_ID)

    found_runs = telemetry_api("GET", "/api/v1/runs", query={"job_type": "gate", "limit": "1"}).body
    counts = telemetry_api("GET", "/api/v1/metadata").body["counts"]

    assert (found_runs["count"], found_runs["runs"][0]["job_type"]) == (1, "gate")
    assert counts["job_type"] == {"commit_service": 1, "gate": 2, "launch": 1, "worker": 1}


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "code"),
    [
        ("POST", "/api/v1/runs", {"run_id": "x"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", [], {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**SAMPLE_RECORD, "event_id": "no"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**SAMPLE_RECORD, "status": "odd"}, {}, ErrorCode.INVALID_REQUEST),
        ("POST", "/api/v1/runs", {**SAMPLE_RECORD, "start_time": ""}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", RECORD_PATH, {"end_time": "yesterday"}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", RECORD_PATH, {}, {}, ErrorCode.INVALID_REQUEST),
        ("PATCH", RECORD_PATH, {"status": "success"}, {}, ErrorCode.NOT_FOUND),
        ("GET", RECORD_PATH, None, {}, ErrorCode.NOT_FOUND),
        ("GET", "/telemetry/{run_id}", None, {}, ErrorCode.NOT_FOUND),
        ("GET", "/api/v1/runs", None, {"limit": "-1"}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"limit": "501"}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"offset": "9" * 5000}, ErrorCode.INVALID_REQUEST),
        ("GET", "/api/v1/runs", None, {"colour": "red"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_taken_is_refused(
    telemetry_api: TelemetryApiClient, *, method: str, path: str, body: Any, query: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(ToolError) as caught:
        telemetry_api(method, path, body, query=query, event_id="none", run_id="r_unknown1")

    assert caught.value.code is code
