"""Spans below a call: the steps of a long piece of work.

The tracer is the one that calls use: it may write, send, sample or do nothing, and it may belong to
somebody else and fail. Records need ids in any case, so they are generated here if the tracer
provides none. Nothing here waits or raises.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SpanReference:
    """The ids of a span, in hexadecimal, by which other spans refer to it as their parent."""

    trace_id: str
    span_id: str
    sampled: bool = True
    remote: bool = False
    """True if the span belongs to another process."""

    def to_context(self) -> otel_context.Context:
        """Return the OpenTelemetry context of the span."""
        flags = trace.TraceFlags.SAMPLED if self.sampled else trace.TraceFlags.DEFAULT
        parent_context = trace.SpanContext(
            int(self.trace_id, 16), int(self.span_id, 16), self.remote, trace.TraceFlags(flags)
        )
        empty_context = otel_context.Context()
        return trace.set_span_in_context(trace.NonRecordingSpan(parent_context), empty_context)


class WorkSpan:
    """A piece of work with its span, which begins now or at a given time."""

    def __init__(
        self,
        tracer: trace.Tracer,
        name: str,
        parent: SpanReference | None,
        attributes: Mapping[str, Any],
        *,
        started_at: int | None = None,
    ) -> None:
        """Begin a span under another one, or a new trace. Times are in nanoseconds."""
        self.parent = parent
        self.error = ""
        """The reason why the work failed, in one word; set from outside."""
        self._tracer = tracer
        self._name = name
        self._span: trace.Span = trace.INVALID_SPAN
        try:
            # Never below whatever happens to be current: work goes on after its call has ended.
            context = parent.to_context() if parent else otel_context.Context()
            self._span = tracer.start_span(name, context, attributes=dict(attributes), start_time=started_at)
        except Exception as error:  # noqa: BLE001 - somebody else's tracer
            self._log_lost_span(error)
        self.reference = self._make_reference()

    def start_child(self, name: str, attributes: Mapping[str, Any], *, started_at: int | None = None) -> "WorkSpan":
        """Begin a span under this one."""
        return WorkSpan(self._tracer, name, self.reference, attributes, started_at=started_at)

    def end(self, *, finished: bool, facts: Mapping[str, Any] | None = None, ended_at: int = 0) -> None:
        """End the span; its outcome has the same names as that of a call."""
        outcome = "Failed" if self.error else "Done" if finished else "Cancelled"
        attributes = {**(facts or {}), "cleats.outcome": outcome}
        try:
            if self.error:
                attributes["error.type"] = self.error
                self._span.set_status(trace.StatusCode.ERROR)
            self._span.set_attributes(attributes)
            self._span.end(ended_at or None)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_lost_span(error)

    def _make_reference(self) -> SpanReference:
        span_context = self._span.get_span_context()
        parent_id = self.parent.span_id if self.parent else ""
        span_id = f"{span_context.span_id:016x}"
        if not span_context.is_valid or span_id == parent_id:  # a tracer that does nothing hands out its parent
            trace_id = self.parent.trace_id if self.parent else token_hex(16)
            return SpanReference(trace_id, token_hex(8), sampled=False)
        return SpanReference(f"{span_context.trace_id:032x}", span_id, span_context.trace_flags.sampled)

    def _log_lost_span(self, error: Exception) -> None:
        log.warning("span.lost name=%s error=%s", self._name, type(error).__name__)
