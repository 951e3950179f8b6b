"""The spans of a drive: one for each step and publication, one for each gate and model call.

A step is a child of the call that drives the run; so is a publication, which has its two steps as
children. Gates and model calls are children of their step. A drive without a call has its own span,
below the call that started the run, whose ids are in the log; otherwise it begins a new trace.

A worker reports its gates and model calls when it ends, with the times of each start and end, so
their spans are created afterwards. Their ids, like those of the step, are written to the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from opentelemetry.trace import Tracer

from cleats.contract.errors import ToolError
from cleats.runtime.child_spans import SpanReference, WorkSpan
from cleats.toolsets.launch.drive.pipeline import StepWork
from cleats.toolsets.launch.drive.step_events import WorkItem
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.store.model import LeaseLost


class DriveSpans:
    """The spans of one drive."""

    def __init__(self, tracer: Tracer, run_id: str, caller_span: SpanReference, parent: str = "") -> None:
        self.trace = TraceIds(caller_span.trace_id, caller_span.span_id, parent)
        """The ids for events that are logged between two steps."""
        self._tracer = tracer
        self._run_attributes = {"cleats.run_id": run_id}
        self._caller_span = caller_span
        self._publication: WorkSpan | None = None

    @contextmanager
    def open_step(self, work: StepWork, item: WorkItem) -> Iterator[WorkSpan]:
        """Open the span of a step, around all work for it."""
        attributes = {
            **self._run_attributes,
            "cleats.step": work.step,
            "cleats.worker": work.kind.worker,
            "cleats.attempt": item.attempt,
            "cleats.work_item_id": item.work_item_id,
        }
        if work.kind.name == "draft":
            attributes["cleats.section"] = work.scope
        parent_span = self._publication.reference if self._publication else self._caller_span
        span = WorkSpan(self._tracer, f"step {work.kind.name}", parent_span, attributes)
        with _end_span(span):
            yield span

    @contextmanager
    def open_publication(self) -> Iterator[None]:
        """Open the span of a publication, the parent of its steps."""
        self._publication = WorkSpan(self._tracer, "publication", self._caller_span, self._run_attributes)
        try:
            with _end_span(self._publication):
                yield
        finally:
            self._publication = None

    def add_worker_spans(self, step: WorkSpan, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """Create the spans that a worker reported; return its drafts with their ids."""
        open_spans: dict[tuple[str, str], WorkSpan] = {}
        traced_drafts = []
        for draft in drafts:
            span = self._record_part(step, draft, open_spans)
            traced_drafts.append(draft if span is None else replace(draft, trace=get_trace_ids(span)))
        for open_span in open_spans.values():
            open_span.end(finished=False)
        return traced_drafts

    def _record_part(
        self, step: WorkSpan, draft: EventDraft, open_spans: dict[tuple[str, str], WorkSpan]
    ) -> WorkSpan | None:
        if draft.type == "PR_OPENED":
            return self._publication
        if (part := _SPAN_EVENTS.get(draft.type)) is None:
            return None
        kind, identity_field, phase = part
        key = (kind, str(draft.payload.get(identity_field, "")))
        if phase == "begins":
            name = f"{kind} {draft.payload.get('gate') or draft.payload.get('model', '')}"
            attributes = {**self._run_attributes, **_describe_payload(draft.payload)}
            open_spans[key] = step.start_child(name, attributes, started_at=draft.ns or None)
            return open_spans[key]
        if (span := open_spans.pop(key, None)) is not None:
            if phase == "fails":
                span.error = str(draft.payload.get("error_class", "failed"))
            elif not draft.payload.get("ok", True):
                span.error = "GATE_FAILED"
            span.end(finished=True, facts=_describe_payload(draft.payload), ended_at=draft.ns)
        return span


@contextmanager
def trace_drive(
    tracer: Tracer, run_id: str, caller_span: SpanReference | None, first_trace: TraceIds
) -> Iterator[DriveSpans]:
    """Open the spans of a drive, below its call, else below the first event's span or a new trace.

    `first_trace` has the ids in the first event of the run: those of the call that started it.
    """
    if caller_span is not None:
        yield DriveSpans(tracer, run_id, caller_span)
        return
    has_first_trace = bool(first_trace.trace_id.strip("0") and first_trace.span_id.strip("0"))
    origin = SpanReference(*first_trace[:2], remote=True) if has_first_trace else None
    span = WorkSpan(tracer, "drive", origin, {"cleats.run_id": run_id})
    with _end_span(span):
        yield DriveSpans(tracer, run_id, span.reference, origin.span_id if origin else "")


def get_trace_ids(span: WorkSpan) -> TraceIds:
    """Return the ids of a span as events store them."""
    return TraceIds(span.reference.trace_id, span.reference.span_id, span.parent.span_id if span.parent else "")


@contextmanager
def _end_span(span: WorkSpan) -> Iterator[None]:
    finished = False
    try:
        yield
        finished = True
    except LeaseLost:  # cancelled, or taken over: nothing failed
        raise
    except ToolError as error:
        span.error = error.code.name
        raise
    except Exception as crash:
        span.error = type(crash).__name__
        raise
    finally:
        span.end(finished=finished)


_ATTRIBUTE_NAMES: Final = {
    "gate": "cleats.gate",
    "profile": "cleats.profile",
    "issues": "cleats.issues",
    "model": "gen_ai.request.model",
    "call_id": "cleats.call_id",
    "prompt_hash": "cleats.prompt_hash",
    "http_status": "http.response.status_code",
}
"""The attribute of each payload field; those of model calls are named by OpenTelemetry."""

_SPAN_EVENTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "GATE_RUN_STARTED": ("gate", "gate", "begins"),
    "GATE_RUN_FINISHED": ("gate", "gate", "ends"),
    "LLM_CALL_STARTED": ("chat", "call_id", "begins"),
    "LLM_CALL_FINISHED": ("chat", "call_id", "ends"),
    "LLM_CALL_FAILED": ("chat", "call_id", "fails"),
}
"""The kind of span that an event belongs to, the payload field that identifies it, and its phase."""


def _describe_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {attribute: payload[name] for name, attribute in _ATTRIBUTE_NAMES.items() if name in payload}
    if "call_id" in payload:
        attributes["gen_ai.operation.name"] = "chat"
    if token_usage := payload.get("token_usage"):
        attributes |= {f"gen_ai.usage.{name}": token_usage.get(name, 0) for name in ("input_tokens", "output_tokens")}
        attributes["gen_ai.response.finish_reasons"] = [str(payload.get("finish_reason", ""))]
    return attributes
