"""Spans below a call: what a long piece of work is made of.

The tracer is the one that calls have: it may write, send, sample or do nothing, and it may be
somebody else's and fail. Ids go into records either way, so where it gives none they are made
here. Nothing here waits or raises.
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
class Place:
    """Where a span hangs: the ids of the span above it, in hexadecimal."""

    trace_id: str
    span_id: str
    sampled: bool = True
    remote: bool = False
    """Whether the span above belongs to another process."""

    def context(self) -> otel_context.Context:
        """The place as OpenTelemetry has it."""
        flags = trace.TraceFlags.SAMPLED if self.sampled else trace.TraceFlags.DEFAULT
        above = trace.SpanContext(
            int(self.trace_id, 16), int(self.span_id, 16), self.remote, trace.TraceFlags(flags)
        )
        empty = otel_context.Context()
        return trace.set_span_in_context(trace.NonRecordingSpan(above), empty)


class Branch:
    """A piece of work with a span of its own, which begins now or at a moment given."""

    def __init__(
        self,
        tracer: trace.Tracer,
        name: str,
        under: Place | None,
        attributes: Mapping[str, Any],
        *,
        began: int | None = None,
    ) -> None:
        """Begin a span under another, or a trace of its own. Moments are nanoseconds."""
        self.under = under
        self.error = ""
        """Why the work failed, in a word; set by whoever knows."""
        self._tracer = tracer
        self._name = name
        self._span: trace.Span = trace.INVALID_SPAN
        try:
            # Never below whatever happens to be current: work goes on after its call has ended.
            context = under.context() if under else otel_context.Context()
            self._span = tracer.start_span(
                name, context, attributes=dict(attributes), start_time=began
            )
        except Exception as error:  # noqa: BLE001 - somebody else's tracer
            self._lost(error)
        self.place = self._placed()

    def below(
        self, name: str, attributes: Mapping[str, Any], *, began: int | None = None
    ) -> "Branch":
        """Begin a span under this one."""
        return Branch(self._tracer, name, self.place, attributes, began=began)

    def end(self, *, finished: bool, facts: Mapping[str, Any] | None = None, at: int = 0) -> None:
        """End the span; the outcome is told as that of a call is."""
        outcome = "Failed" if self.error else "Done" if finished else "Cancelled"
        told = {**(facts or {}), "cleats.outcome": outcome}
        try:
            if self.error:
                told["error.type"] = self.error
                self._span.set_status(trace.StatusCode.ERROR)
            self._span.set_attributes(told)
            self._span.end(at or None)
        except Exception as error:  # noqa: BLE001 - as above
            self._lost(error)

    def _placed(self) -> Place:
        made = self._span.get_span_context()
        above = self.under.span_id if self.under else ""
        own = f"{made.span_id:016x}"
        if not made.is_valid or own == above:  # a tracer that does nothing hands out its parent
            trace_id = self.under.trace_id if self.under else token_hex(16)
            return Place(trace_id, token_hex(8), sampled=False)
        return Place(f"{made.trace_id:032x}", own, made.trace_flags.sampled)

    def _lost(self, error: Exception) -> None:
        log.warning("span.lost name=%s error=%s", self._name, type(error).__name__)
