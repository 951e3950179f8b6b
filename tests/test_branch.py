"""Spans below a call: whatever the tracer does, there are ids and nothing fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cleats.runtime import spans
from cleats.runtime.branch import Branch, Place
from cleats.runtime.journal import JOURNAL
from cleats.runtime.telemetry import LocalTracer, discard
from cleats.settings import Settings

CALL = Place("1" * 32, "2" * 16)


def written(tracer: trace.Tracer) -> dict[str, Any]:
    """The one line that a piece of work leaves."""
    lines: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOURNAL, "line", lambda _outlet, line: lines.append(line))
        span = Branch(tracer, "step draft", CALL, {"cleats.step": "draft:docs"}, began=5)
        span.end(finished=True, facts={"cleats.pages": 3}, at=9)
    [line] = lines
    told: dict[str, Any] = json.loads(line)
    return told


def test_a_piece_of_work_is_one_line_below_its_call_with_its_own_moments() -> None:
    line = written(LocalTracer(lambda _batch: None))

    assert len(line.pop("span_id")) == 16
    assert line == {
        "name": "step draft",
        "trace_id": CALL.trace_id,
        "parent_id": CALL.span_id,
        "start_ns": 5,
        "end_ns": 9,
        "status": "UNSET",
        "attributes": {"cleats.step": "draft:docs", "cleats.pages": 3, "cleats.outcome": "Done"},
    }


def test_without_a_place_a_trace_begins() -> None:
    first = Branch(LocalTracer(discard), "drive", None, {})
    second = first.below("step clone", {})

    assert int(first.place.trace_id, 16)
    assert first.under is None
    assert second.place.trace_id == first.place.trace_id
    assert second.under == first.place
    assert second.place.span_id != first.place.span_id


def test_with_telemetry_off_nothing_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []
    monkeypatch.setattr(JOURNAL, "line", lambda _outlet, line: lines.append(line))
    tracer = spans.tracer(Settings(telemetry="off"))

    span = Branch(tracer, "step clone", CALL, {})
    span.end(finished=True)

    assert lines == []
    assert int(span.place.span_id, 16)


def test_a_process_has_one_span_file_whoever_asks_for_it(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)

    assert spans.tracer(settings) is spans.tracer(settings)


class Broken(trace.Tracer):
    """Somebody's tracer that raises."""

    def start_span(self, *_args: Any, **_kwargs: Any) -> trace.Span:
        raise RuntimeError("no")

    def start_as_current_span(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize("tracer", [Broken(), trace.NoOpTracer()])
def test_a_tracer_that_fails_or_does_nothing_costs_the_span_and_not_its_ids(
    tracer: trace.Tracer,
) -> None:
    span = Branch(tracer, "step clone", CALL, {})
    below = span.below("gate schema", {})
    below.error = "GATE_FAILED"
    below.end(finished=True)
    span.end(finished=False)

    assert span.place.trace_id == below.place.trace_id == CALL.trace_id
    assert len({CALL.span_id, span.place.span_id, below.place.span_id}) == 3


@pytest.mark.parametrize("sampled", [True, False])
def test_what_hangs_below_a_call_is_kept_when_the_call_is(sampled: bool) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    call = Place(CALL.trace_id, CALL.span_id, sampled)

    span = Branch(provider.get_tracer("t"), "step clone", call, {}, began=5)
    below = span.below("gate schema", {}, began=6)
    below.error = "GATE_FAILED"
    below.end(finished=True, at=7)
    span.end(finished=False, at=8)

    kept = exporter.get_finished_spans()
    provider.shutdown()
    assert [each.name for each in kept] == (["gate schema", "step clone"] if sampled else [])
    if sampled:
        gate, step = kept
        assert gate.parent is not None
        assert gate.parent.span_id == int(span.place.span_id, 16)
        assert step.parent is not None
        assert step.parent.span_id == int(CALL.span_id, 16)
        assert (step.start_time, step.end_time) == (5, 8)
        assert gate.status.status_code is trace.StatusCode.ERROR
        assert dict(gate.attributes or {})["error.type"] == "GATE_FAILED"
        assert dict(step.attributes or {})["cleats.outcome"] == "Cancelled"
