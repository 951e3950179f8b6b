"""Tests of spans: steps, gates, model calls and publications have one below their call."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ToolError
from cleats.runtime.background_writer import PROCESS_JOURNAL
from cleats.runtime.child_spans import SpanReference
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import LocalTracer
from cleats.toolsets.launch.drive.pipeline import STEP_KINDS, StepWork
from cleats.toolsets.launch.drive.run_driver import PATCH_CONFLICT_CODE, Caller
from cleats.toolsets.launch.drive.spans import DriveSpans
from cleats.toolsets.launch.drive.step_events import WorkItem
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.telemetry.ledger import TelemetryLedger
from tests.support.launch_client import open_launch_client
from tests.support.launch_runs import TEST_RUN_ID, build_config, create_engine, create_run
from tests.support.requirements import requirement
from tests.support.spans import EndedSpan, pair_with_parents, read_home_spans, read_span_files, run_span_collector
from tests.support.waiting import wait_until

pytestmark = pytest.mark.anyio

TRACEPARENT_META = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
CALL_TRACE = TraceIds("7" * 32, "8" * 16)

STEP_SPAN_NAMES = [
    *("step clone", "step inventory", "step facts", "step snippets", "step plan", "step draft"),
    *("step link", "step apply"),
]


def list_event_ids(events: list[dict[str, Any]], kind: str) -> list[tuple[str, str, str]]:
    """Return the IDs that events of a type carry."""
    return [
        (event["trace_id"], event["span_id"], event.get("parent_span_id", ""))
        for event in events
        if event["type"] == kind
    ]


def filter_spans(spans: list[EndedSpan], *names: str) -> list[EndedSpan]:
    return [span for span in spans if span.name.startswith(names)]


@requirement("e:accept:trace", "e:telemetry:call", "e:telemetry:work-items")
def test_a_whole_run_is_a_tree_of_spans_whose_ids_are_in_its_log_and_its_records(
    tmp_path: Path,
) -> None:
    with open_launch_client(tmp_path) as launch_client:
        launch_client.set_trouble(page="BAD1\n")
        run_id = launch_client.start_run()
        for _ in range(3):
            launch_client.call_for_run(run_id, "resume")
        launch_client.peer.send_call(99, "launch_fix_next", TRACEPARENT_META, run_id=run_id)
        launch_client.peer.wait_for_answer(99)
        launch_client.call_for_run(run_id, "open_pr")
        events = launch_client.read_events(run_id)
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    spans = read_home_spans(tmp_path)
    below = [pair for pair in pair_with_parents(spans) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_resume", name) for name in STEP_SPAN_NAMES),
        ("call launch_resume", "step validate"),
        ("step validate", "gate words"),
        ("call launch_fix_next", "step fix"),
        ("call launch_fix_next", "step apply"),
        ("call launch_fix_next", "step validate"),
        ("step validate", "gate words"),
        ("call launch_open_pr", "publication"),
        ("publication", "step commit"),
        ("publication", "step request"),
    ]
    steps, gates = filter_spans(spans, "step "), filter_spans(spans, "gate ")
    assert list_event_ids(events, "WORK_ITEM_STARTED") == [entry.ids for entry in steps]
    assert list_event_ids(events, "WORK_ITEM_FINISHED") == [entry.ids for entry in steps]
    assert list_event_ids(events, "GATE_RUN_STARTED") == [entry.ids for entry in gates]
    assert list_event_ids(events, "GATE_RUN_FINISHED") == [entry.ids for entry in gates]
    assert list_event_ids(events, "PR_OPENED") == [entry.ids for entry in filter_spans(spans, "publication")]
    assert steps[-3].trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert {entry.attributes["cleats.run_id"] for entry in spans} == {run_id}
    [draft] = filter_spans(spans, "step draft")
    assert draft.attributes == {
        "cleats.run_id": run_id,
        "cleats.step": "draft:docs",
        "cleats.worker": "W5",
        "cleats.section": "docs",
        "cleats.attempt": 1,
        "cleats.work_item_id": f"{run_id}:W5:1:draft:docs",
        "cleats.outcome": "Done",
    }
    verdicts = [(g.attributes["cleats.gate"], g.attributes["cleats.outcome"]) for g in gates]
    assert verdicts == [("words", "Failed"), ("words", "Done")]
    assert all(step.start_ns <= step.end_ns for step in spans)
    ledger = TelemetryLedger(tmp_path / ".local/share/cleats/launch/telemetry.sqlite")
    try:
        records = ledger.list_run_records(run_id)
    finally:
        ledger.close()
    record_ids = {(entry["job_type"], entry["context_json"]["span_id"]) for entry in records}
    assert {("worker", entry.span_id) for entry in steps} <= record_ids
    assert {("gate", entry.span_id) for entry in gates} <= record_ids
    assert {("commit_service", entry.span_id) for entry in filter_spans(spans, "publication")} <= record_ids


def test_a_collector_gets_the_spans_of_a_run_with_those_of_its_calls(tmp_path: Path) -> None:
    with (
        run_span_collector() as collector,
        open_launch_client(
            tmp_path,
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.url,
            OTEL_BSP_SCHEDULE_DELAY="100",
        ) as launch_client,
    ):
        run_id = launch_client.start_run()
        for _ in range(3):
            launch_client.call_for_run(run_id, "resume")
        events = launch_client.read_events(run_id)
        # A machine that is held up may have no time for the last ones when the server ends.
        wait_until(lambda: len(filter_spans(collector.spans, "call launch_resume")) == 3)
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    below = [pair for pair in pair_with_parents(collector.spans) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_resume", name) for name in STEP_SPAN_NAMES),
        ("call launch_resume", "step validate"),
        ("step validate", "gate words"),
    ]
    sent_ids = {span.ids for span in filter_spans(collector.spans, "step ", "gate ")}
    assert {*list_event_ids(events, "WORK_ITEM_STARTED"), *list_event_ids(events, "GATE_RUN_STARTED")} == sent_ids
    assert not (tmp_path / ".local/share/cleats/telemetry").exists()


def test_a_run_that_goes_on_by_itself_stays_below_the_call_that_started_it(tmp_path: Path) -> None:
    with open_launch_client(tmp_path) as launch_client:
        run_id = launch_client.start_run(drive={"mode": "auto"})
        wait_until(lambda: launch_client.call_for_run(run_id, "get_status")["status"]["state"] == "READY_FOR_PR")
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    below = [pair for pair in pair_with_parents(read_home_spans(tmp_path)) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_start_run", name) for name in STEP_SPAN_NAMES),
        ("call launch_start_run", "step validate"),
        ("step validate", "gate words"),
    ]


def test_with_telemetry_off_there_are_no_spans_and_the_log_has_ids_all_the_same(
    tmp_path: Path,
) -> None:
    with open_launch_client(tmp_path, CLEATS_TELEMETRY="off") as launch_client:
        run_id = launch_client.start_run()
        launch_client.call_for_run(run_id, "resume")
        events = launch_client.read_events(run_id)
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    items = list_event_ids(events, "WORK_ITEM_STARTED")
    assert len({span_id for _, span_id, _ in items}) == len(items) == 5
    assert all(int(span_id, 16) and int(parent, 16) for _, span_id, parent in items)
    assert not (tmp_path / ".local/share/cleats/telemetry").exists()


async def drive_run(tmp_path: Path, by: Caller, **changes: Any) -> tuple[list[EndedSpan], Any]:
    """Drive a run without a call; return its spans and the events of its log."""
    span_file = SpanFile(tmp_path / "spans")
    runs = create_engine(tmp_path, inline=True, tracer=LocalTracer(span_file))
    run = await create_run(runs, build_config(**changes), caller=by)
    with suppress(ToolError):
        await runs.resume(run.run_id)
    PROCESS_JOURNAL.close()
    events = [event.as_json() for event in runs.store.list_events(run.run_id)]
    runs.store.close()
    return read_span_files(*(tmp_path / "spans").iterdir()), events


async def test_a_drive_without_a_call_hangs_below_the_call_that_started_the_run(
    tmp_path: Path,
) -> None:
    spans, events = await drive_run(tmp_path, Caller(CALL_TRACE))

    [drive] = filter_spans(spans, "drive")
    assert (drive.trace_id, drive.parent_id) == CALL_TRACE[:2]
    assert {entry.parent_id for entry in filter_spans(spans, "step ")} == {drive.span_id}
    assert {entry["trace_id"] for entry in events} == {CALL_TRACE.trace_id}
    assert drive.ids in list_event_ids(events, "RUN_STATE_CHANGED")  # one between two steps


async def test_a_drive_of_a_run_that_no_call_started_begins_a_trace(tmp_path: Path) -> None:
    spans, events = await drive_run(tmp_path, Caller())

    [drive] = filter_spans(spans, "drive")
    assert drive.parent_id == ""
    assert {entry.trace_id for entry in spans} == {drive.trace_id}
    assert {entry["trace_id"] for entry in events[1:]} == {drive.trace_id}


async def test_a_step_that_fails_says_so_on_its_span(tmp_path: Path) -> None:
    fault = {"raise": {"facts": {"code": "REPO_NOT_FOUND", "retryable": True}}}

    spans, _ = await drive_run(tmp_path, Caller(CALL_TRACE), test=fault)

    ends = [(span.name, span.attributes.get("error.type", "")) for span in spans]
    assert ends == [
        *(("step clone", ""), ("step inventory", "")),
        *(("step facts", "REPO_NOT_FOUND"), ("drive", "REPO_NOT_FOUND")),
    ]
    assert "fails in" not in str(spans)  # what went wrong is told in the run, not in spans


async def test_a_step_that_fails_in_a_run_that_goes_on_is_still_a_failure(tmp_path: Path) -> None:
    details = {"error_code": PATCH_CONFLICT_CODE}
    fault = {"apply": {"times": 1, "code": "INTERNAL", "retryable": False, "details": details}}

    spans, _ = await drive_run(tmp_path, Caller(CALL_TRACE), test={"raise": fault})

    ends = [span.attributes["cleats.outcome"] for span in filter_spans(spans, "step link", "step apply", "dri")]
    assert ends == ["Done", "Failed", "Done", "Done", "Done"]


async def test_a_step_whose_run_is_cancelled_ends_as_cancelled(tmp_path: Path) -> None:
    file = SpanFile(tmp_path / "spans")
    runs = create_engine(tmp_path, tracer=LocalTracer(file))
    gate = tmp_path / "gate"
    run = await create_run(runs, build_config(test={"block": {"clone": str(gate)}}))

    async def resume_run() -> None:
        with pytest.raises(ToolError):
            await runs.resume(run.run_id, Caller(CALL_TRACE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resume_run)
        with anyio.fail_after(30):
            while not gate.exists():
                await anyio.sleep(0.005)
        await runs.cancel(run.run_id)
    PROCESS_JOURNAL.close()
    runs.store.close()

    [step] = read_span_files(*(tmp_path / "spans").iterdir())
    assert (step.name, step.attributes["cleats.outcome"]) == ("step clone", "Cancelled")
    assert step.ids[::2] == CALL_TRACE[:2]


def record_model_calls(tmp_path: Path, *drafts: EventDraft) -> tuple[list[EventDraft], list[EndedSpan]]:
    """Record the events of a worker that asked a model; return the drafts and the spans."""
    span_file = SpanFile(tmp_path)
    trail = DriveSpans(LocalTracer(span_file), TEST_RUN_ID, SpanReference(*CALL_TRACE[:2]))
    work = StepWork("draft:docs", STEP_KINDS["draft"], "docs")
    with trail.open_step(work, WorkItem(f"{TEST_RUN_ID}:W5:1:draft:docs", 1)) as step:
        recorded_drafts = trail.add_worker_spans(step, drafts)
    PROCESS_JOURNAL.close()
    return recorded_drafts, read_span_files(*tmp_path.iterdir())


def build_call_draft(call_id: str, ns: int, model: str = "m") -> EventDraft:
    payload = {"call_id": call_id, "model": model, "prompt_hash": "p" + call_id}
    return EventDraft("LLM_CALL_STARTED", payload, "t", ns)


def test_model_calls_that_overlap_have_a_span_each_with_tokens_and_reasons(tmp_path: Path) -> None:
    token_usage = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    answer = {"call_id": "a", "token_usage": token_usage, "finish_reason": "stop"}
    failure = {"call_id": "b", "error_class": "HttpStatus", "http_status": 503}

    drafts, spans = record_model_calls(
        tmp_path,
        build_call_draft("a", 10),
        build_call_draft("b", 11),
        build_call_draft("c", 12),
        EventDraft("LLM_CALL_FAILED", failure, "t", 13),
        build_call_draft("b", 14, "fallback"),
        EventDraft("LLM_CALL_FINISHED", answer, "t", 15),
        EventDraft("NOTE"),
    )

    *calls, step = spans
    by_start = sorted(calls, key=lambda span: span.start_ns)
    assert [(entry.name, entry.attributes["cleats.outcome"]) for entry in by_start] == [
        *(("chat m", "Done"), ("chat m", "Failed"), ("chat m", "Cancelled")),
        ("chat fallback", "Cancelled"),
    ]
    first, second, third, fourth = by_start
    assert {entry.parent_id for entry in calls} == {step.span_id}
    assert (first.start_ns, first.end_ns, second.start_ns, second.end_ns) == (10, 15, 11, 13)
    assert first.attributes == {
        "cleats.run_id": TEST_RUN_ID,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "cleats.call_id": "a",
        "cleats.prompt_hash": "pa",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.response.finish_reasons": ["stop"],
        "cleats.outcome": "Done",
    }
    assert second.attributes["error.type"] == "HttpStatus"
    assert second.attributes["http.response.status_code"] == 503
    carried = [entry.trace.span_id if entry.trace else "" for entry in drafts]
    ids = (first, second, third, second, fourth, first)
    assert carried == [*(entry.span_id for entry in ids), ""]
