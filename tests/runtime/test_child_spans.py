"""Spans below a call: whatever the tracer does, they have ids and nothing fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cleats.runtime import spans
from cleats.runtime.background_writer import PROCESS_JOURNAL
from cleats.runtime.child_spans import SpanReference, WorkSpan
from cleats.runtime.telemetry import LocalTracer, discard_spans
from cleats.settings import Settings

CALL_SPAN = SpanReference("1" * 32, "2" * 16)


def record_span(tracer: trace.Tracer) -> dict[str, Any]:
    """Return the one journal line that a span writes."""
    lines: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PROCESS_JOURNAL, "add_line", lambda _outlet, line: lines.append(line))
        span = WorkSpan(tracer, "step draft", CALL_SPAN, {"cleats.step": "draft:docs"}, started_at=5)
        span.end(finished=True, facts={"cleats.pages": 3}, ended_at=9)
    [line] = lines
    entry: dict[str, Any] = json.loads(line)
    return entry


def test_a_piece_of_work_is_one_line_below_its_call_with_its_own_moments() -> None:
    line = record_span(LocalTracer(lambda _batch: None))

    assert len(line.pop("span_id")) == 16
    assert line == {
        "name": "step draft",
        "trace_id": CALL_SPAN.trace_id,
        "parent_id": CALL_SPAN.span_id,
        "start_ns": 5,
        "end_ns": 9,
        "status": "UNSET",
        "attributes": {"cleats.step": "draft:docs", "cleats.pages": 3, "cleats.outcome": "Done"},
    }


def test_without_a_place_a_trace_begins() -> None:
    first = WorkSpan(LocalTracer(discard_spans), "drive", None, {})
    second = first.start_child("step clone", {})

    assert int(first.reference.trace_id, 16)
    assert first.parent is None
    assert second.reference.trace_id == first.reference.trace_id
    assert second.parent == first.reference
    assert second.reference.span_id != first.reference.span_id


def test_with_telemetry_off_nothing_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []
    monkeypatch.setattr(PROCESS_JOURNAL, "add_line", lambda _outlet, line: lines.append(line))
    tracer = spans.get_tracer(Settings(telemetry="off"))

    span = WorkSpan(tracer, "step clone", CALL_SPAN, {})
    span.end(finished=True)

    assert lines == []
    assert int(span.reference.span_id, 16)


def test_a_process_has_one_span_file_whoever_asks_for_it(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)

    assert spans.get_tracer(settings) is spans.get_tracer(settings)


class BrokenTracer(trace.Tracer):
    """A tracer that raises."""

    def start_span(self, *_args: Any, **_kwargs: Any) -> trace.Span:
        raise RuntimeError("no")

    def start_as_current_span(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize("tracer", [BrokenTracer(), trace.NoOpTracer()])
def test_a_tracer_that_fails_or_does_nothing_costs_the_span_and_not_its_ids(
    tracer: trace.Tracer,
) -> None:
    span = WorkSpan(tracer, "step clone", CALL_SPAN, {})
    below = span.start_child("gate schema", {})
    below.error = "GATE_FAILED"
    below.end(finished=True)
    span.end(finished=False)

    assert span.reference.trace_id == below.reference.trace_id == CALL_SPAN.trace_id
    assert len({CALL_SPAN.span_id, span.reference.span_id, below.reference.span_id}) == 3


@pytest.mark.parametrize("sampled", [True, False])
def test_what_hangs_below_a_call_is_kept_when_the_call_is(sampled: bool) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    call = SpanReference(CALL_SPAN.trace_id, CALL_SPAN.span_id, sampled)

    span = WorkSpan(provider.get_tracer("t"), "step clone", call, {}, started_at=5)
    below = span.start_child("gate schema", {}, started_at=6)
    below.error = "GATE_FAILED"
    below.end(finished=True, ended_at=7)
    span.end(finished=False, ended_at=8)

    exported_spans = exporter.get_finished_spans()
    provider.shutdown()
    assert [exported_span.name for exported_span in exported_spans] == (
        ["gate schema", "step clone"] if sampled else []
    )
    if sampled:
        gate, step = exported_spans
        assert gate.parent is not None
        assert gate.parent.span_id == int(span.reference.span_id, 16)
        assert step.parent is not None
        assert step.parent.span_id == int(CALL_SPAN.span_id, 16)
        assert (step.start_time, step.end_time) == (5, 8)
        assert gate.status.status_code is trace.StatusCode.ERROR
        assert dict(gate.attributes or {})["error.type"] == "GATE_FAILED"
        assert dict(step.attributes or {})["cleats.outcome"] == "Cancelled"
