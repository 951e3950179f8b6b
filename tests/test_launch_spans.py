"""Every step, gate, model call and publication is a span below its call; the log has its ids."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ToolError
from cleats.runtime.branch import Place
from cleats.runtime.journal import JOURNAL
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import LocalTracer
from cleats.toolsets.launch.drive.course import CONFLICT, Caller
from cleats.toolsets.launch.drive.records import Item
from cleats.toolsets.launch.drive.steps import KINDS, Work
from cleats.toolsets.launch.drive.trail import Trail
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.telemetry.ledger import Ledger
from tests.launch_client import client
from tests.launch_world import RUN_ID, config, engine, start
from tests.requirements import requirement
from tests.span_world import Seen, of_file, of_home, span_collector, tree
from tests.waiting import until

pytestmark = pytest.mark.anyio

TRACEPARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
CALL = Trace("7" * 32, "8" * 16)

DRIVEN = [
    *("step clone", "step inventory", "step facts", "step snippets", "step plan", "step draft"),
    *("step link", "step apply"),
]


def told(events: list[dict[str, Any]], kind: str) -> list[tuple[str, str, str]]:
    """The ids that events of a kind carry."""
    return [
        (each["trace_id"], each["span_id"], each.get("parent_span_id", ""))
        for each in events
        if each["type"] == kind
    ]


def named(spans: list[Seen], *names: str) -> list[Seen]:
    return [each for each in spans if each.name.startswith(names)]


@requirement("e:accept:trace", "e:telemetry:call", "e:telemetry:work-items")
def test_a_whole_run_is_a_tree_of_spans_whose_ids_are_in_its_log_and_its_records(
    tmp_path: Path,
) -> None:
    with client(tmp_path) as asked:
        asked.trouble(page="BAD1\n")
        run_id = asked.start()
        for _ in range(3):
            asked.on(run_id, "resume")
        asked.peer.call(99, "launch_fix_next", TRACEPARENT, run_id=run_id)
        asked.peer.answer(99)
        asked.on(run_id, "open_pr")
        events = asked.events(run_id)
        asked.peer.end_input()
        asked.peer.wait()

    spans = of_home(tmp_path)
    below = [pair for pair in tree(spans) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_resume", name) for name in DRIVEN),
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
    steps, gates = named(spans, "step "), named(spans, "gate ")
    assert told(events, "WORK_ITEM_STARTED") == [each.ids for each in steps]
    assert told(events, "WORK_ITEM_FINISHED") == [each.ids for each in steps]
    assert told(events, "GATE_RUN_STARTED") == [each.ids for each in gates]
    assert told(events, "GATE_RUN_FINISHED") == [each.ids for each in gates]
    assert told(events, "PR_OPENED") == [each.ids for each in named(spans, "publication")]
    assert steps[-3].trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert {each.attributes["cleats.run_id"] for each in spans} == {run_id}
    [draft] = named(spans, "step draft")
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
    assert all(step.began <= step.ended for step in spans)
    kept = Ledger(tmp_path / ".local/share/cleats/launch/telemetry.sqlite")
    try:
        records = kept.of_run(run_id)
    finally:
        kept.close()
    known = {(each["job_type"], each["context_json"]["span_id"]) for each in records}
    assert {("worker", each.span_id) for each in steps} <= known
    assert {("gate", each.span_id) for each in gates} <= known
    assert {("commit_service", each.span_id) for each in named(spans, "publication")} <= known


def test_a_collector_gets_the_spans_of_a_run_with_those_of_its_calls(tmp_path: Path) -> None:
    with (
        span_collector() as collector,
        client(
            tmp_path,
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.url,
            OTEL_BSP_SCHEDULE_DELAY="100",
        ) as asked,
    ):
        run_id = asked.start()
        for _ in range(3):
            asked.on(run_id, "resume")
        events = asked.events(run_id)
        # A machine that is held up may have no time for the last ones when the server ends.
        until(lambda: len(named(collector.spans, "call launch_resume")) == 3)
        asked.peer.end_input()
        asked.peer.wait()

    below = [pair for pair in tree(collector.spans) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_resume", name) for name in DRIVEN),
        ("call launch_resume", "step validate"),
        ("step validate", "gate words"),
    ]
    sent = {each.ids for each in named(collector.spans, "step ", "gate ")}
    assert {*told(events, "WORK_ITEM_STARTED"), *told(events, "GATE_RUN_STARTED")} == sent
    assert not (tmp_path / ".local/share/cleats/telemetry").exists()


def test_a_run_that_goes_on_by_itself_stays_below_the_call_that_started_it(tmp_path: Path) -> None:
    with client(tmp_path) as asked:
        run_id = asked.start(drive={"mode": "auto"})
        until(lambda: asked.on(run_id, "get_status")["status"]["state"] == "READY_FOR_PR")
        asked.peer.end_input()
        asked.peer.wait()

    below = [pair for pair in tree(of_home(tmp_path)) if not pair[1].startswith("call ")]
    assert below == [
        *(("call launch_start_run", name) for name in DRIVEN),
        ("call launch_start_run", "step validate"),
        ("step validate", "gate words"),
    ]


def test_with_telemetry_off_there_are_no_spans_and_the_log_has_ids_all_the_same(
    tmp_path: Path,
) -> None:
    with client(tmp_path, CLEATS_TELEMETRY="off") as asked:
        run_id = asked.start()
        asked.on(run_id, "resume")
        events = asked.events(run_id)
        asked.peer.end_input()
        asked.peer.wait()

    items = told(events, "WORK_ITEM_STARTED")
    assert len({span_id for _, span_id, _ in items}) == len(items) == 5
    assert all(int(span_id, 16) and int(parent, 16) for _, span_id, parent in items)
    assert not (tmp_path / ".local/share/cleats/telemetry").exists()


async def driven(tmp_path: Path, by: Caller, **given: Any) -> tuple[list[Seen], Any]:
    """A run that no call drives: its spans and the ids in its log."""
    file = SpanFile(tmp_path / "spans")
    runs = engine(tmp_path, inline=True, tracer=LocalTracer(file))
    run = await start(runs, config(**given), by=by)
    with suppress(ToolError):
        await runs.resume(run.run_id)
    JOURNAL.close()
    events = [each.as_json() for each in runs.store.events(run.run_id)]
    runs.store.close()
    return of_file(*(tmp_path / "spans").iterdir()), events


async def test_a_drive_without_a_call_hangs_below_the_call_that_started_the_run(
    tmp_path: Path,
) -> None:
    spans, events = await driven(tmp_path, Caller(CALL))

    [drive] = named(spans, "drive")
    assert (drive.trace_id, drive.parent_id) == CALL[:2]
    assert {each.parent_id for each in named(spans, "step ")} == {drive.span_id}
    assert {each["trace_id"] for each in events} == {CALL.trace_id}
    assert drive.ids in told(events, "RUN_STATE_CHANGED")  # one between two steps


async def test_a_drive_of_a_run_that_no_call_started_begins_a_trace(tmp_path: Path) -> None:
    spans, events = await driven(tmp_path, Caller())

    [drive] = named(spans, "drive")
    assert drive.parent_id == ""
    assert {each.trace_id for each in spans} == {drive.trace_id}
    assert {each["trace_id"] for each in events[1:]} == {drive.trace_id}


async def test_a_step_that_fails_says_so_on_its_span(tmp_path: Path) -> None:
    fault = {"raise": {"facts": {"code": "REPO_NOT_FOUND", "retryable": True}}}

    spans, _ = await driven(tmp_path, Caller(CALL), test=fault)

    ends = [(each.name, each.attributes.get("error.type", "")) for each in spans]
    assert ends == [
        *(("step clone", ""), ("step inventory", "")),
        *(("step facts", "REPO_NOT_FOUND"), ("drive", "REPO_NOT_FOUND")),
    ]
    assert "fails in" not in str(spans)  # what went wrong is told in the run, not in spans


async def test_a_step_that_fails_in_a_run_that_goes_on_is_still_a_failure(tmp_path: Path) -> None:
    details = {"error_code": CONFLICT}
    fault = {"apply": {"times": 1, "code": "INTERNAL", "retryable": False, "details": details}}

    spans, _ = await driven(tmp_path, Caller(CALL), test={"raise": fault})

    ends = [
        each.attributes["cleats.outcome"] for each in named(spans, "step link", "step apply", "dri")
    ]
    assert ends == ["Done", "Failed", "Done", "Done", "Done"]


async def test_a_step_whose_run_is_cancelled_ends_as_cancelled(tmp_path: Path) -> None:
    file = SpanFile(tmp_path / "spans")
    runs = engine(tmp_path, tracer=LocalTracer(file))
    gate = tmp_path / "gate"
    run = await start(runs, config(test={"block": {"clone": str(gate)}}))

    async def drive() -> None:
        with pytest.raises(ToolError):
            await runs.resume(run.run_id, Caller(CALL))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drive)
        with anyio.fail_after(30):
            while not gate.exists():
                await anyio.sleep(0.005)
        await runs.cancel(run.run_id)
    JOURNAL.close()
    runs.store.close()

    [step] = of_file(*(tmp_path / "spans").iterdir())
    assert (step.name, step.attributes["cleats.outcome"]) == ("step clone", "Cancelled")
    assert step.ids[::2] == CALL[:2]


def model_calls(tmp_path: Path, *drafts: Draft) -> tuple[list[Draft], list[Seen]]:
    """What becomes of the events of a worker that asked a model."""
    file = SpanFile(tmp_path)
    trail = Trail(LocalTracer(file), RUN_ID, Place(*CALL[:2]))
    work = Work("draft:docs", KINDS["draft"], "docs")
    with trail.step(work, Item(f"{RUN_ID}:W5:1:draft:docs", 1)) as step:
        made = trail.told(step, drafts)
    JOURNAL.close()
    return made, of_file(*tmp_path.iterdir())


def asked(call_id: str, ns: int, model: str = "m") -> Draft:
    payload = {"call_id": call_id, "model": model, "prompt_hash": "p" + call_id}
    return Draft("LLM_CALL_STARTED", payload, "t", ns)


def test_model_calls_that_overlap_have_a_span_each_with_tokens_and_reasons(tmp_path: Path) -> None:
    used = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    answer = {"call_id": "a", "token_usage": used, "finish_reason": "stop"}
    failure = {"call_id": "b", "error_class": "HttpStatus", "http_status": 503}

    drafts, spans = model_calls(
        tmp_path,
        asked("a", 10),
        asked("b", 11),
        asked("c", 12),
        Draft("LLM_CALL_FAILED", failure, "t", 13),
        asked("b", 14, "fallback"),
        Draft("LLM_CALL_FINISHED", answer, "t", 15),
        Draft("NOTE"),
    )

    *calls, step = spans
    by_start = sorted(calls, key=lambda span: span.began)
    assert [(each.name, each.attributes["cleats.outcome"]) for each in by_start] == [
        *(("chat m", "Done"), ("chat m", "Failed"), ("chat m", "Cancelled")),
        ("chat fallback", "Cancelled"),
    ]
    first, second, third, fourth = by_start
    assert {each.parent_id for each in calls} == {step.span_id}
    assert (first.began, first.ended, second.began, second.ended) == (10, 15, 11, 13)
    assert first.attributes == {
        "cleats.run_id": RUN_ID,
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
    carried = [each.trace.span_id if each.trace else "" for each in drafts]
    ids = (first, second, third, second, fourth, first)
    assert carried == [*(each.span_id for each in ids), ""]
