"""One span and one log line for every call.

Spans follow the OpenTelemetry API. If the host program has installed an OpenTelemetry SDK, or an
OTLP endpoint is configured, spans go there; otherwise to our local tracer, which writes one JSON
line per span to a file. In either case nothing here waits, and nothing here fails a call.
"""

import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import time_ns
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.runtime.background_writer import PROCESS_JOURNAL, LineSink, write_to_stderr
from cleats.runtime.call import ToolCall

log = logging.getLogger("cleats.call")

_TRACE_PROPAGATOR = TraceContextTextMapPropagator()
_SAMPLED_FLAGS = trace.TraceFlags(trace.TraceFlags.SAMPLED)
_encode = msgspec.json.Encoder(enc_hook=str).encode


def discard_spans(_batch: bytes) -> None:
    """Discard a batch: the sink of a server that records no spans."""


class LocalSpan(trace.Span):
    """A span that becomes one line when it ends."""

    __slots__ = ("_attributes", "_began", "_context", "_ended", "_name", "_sink", "_status", "ids")

    def __init__(self, name: str, ids: tuple[int, int, int], sink: LineSink, began: int | None = None) -> None:
        self._name = name
        self.ids = ids  # of the trace, of the span, of the one above it or 0
        self._context: trace.SpanContext | None = None
        self._sink = sink
        self._began = began or time_ns()
        self._attributes: dict[str, Any] = {}
        self._status = "UNSET"
        self._ended = False

    def end(self, end_time: int | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if self._sink is discard_spans:
            return
        trace_id, span_id, parent_id = self.ids
        line = {
            "name": self._name,
            "trace_id": f"{trace_id:032x}",
            "span_id": f"{span_id:016x}",
            "parent_id": f"{parent_id:016x}" if parent_id else None,
            "start_ns": self._began,
            "end_ns": end_time or time_ns(),
            "status": self._status,
            "attributes": self._attributes,
        }
        PROCESS_JOURNAL.add_line(self._sink, _encode(line) + b"\n")

    def get_span_context(self) -> trace.SpanContext:
        if self._context is None:  # built when somebody nests below us; most spans have no child
            trace_id, span_id, _ = self.ids
            self._context = trace.SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED_FLAGS)
        return self._context

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self._attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        self._attributes[key] = value

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        event = {"name": name, "ns": timestamp or time_ns(), "attributes": dict(attributes or {})}
        self._attributes.setdefault("events", []).append(event)

    def update_name(self, name: str) -> None:
        self._name = name

    def is_recording(self) -> bool:
        return not self._ended

    def set_status(self, status: Any, description: str | None = None) -> None:
        code = status.status_code if isinstance(status, trace.Status) else status
        self._status = code.name
        if description:
            self._attributes["status.description"] = description

    def record_exception(
        self,
        exception: BaseException,
        attributes: Any = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: ARG002 - the API's signature
    ) -> None:
        facts = {"exception.type": type(exception).__qualname__, **dict(attributes or {})}
        self.add_event("exception", facts, timestamp)


class LocalTracer(trace.Tracer):
    """Creates local spans, with ids as the W3C trace context requires them."""

    def __init__(self, sink: LineSink) -> None:
        self._sink = sink
        # Not for secrets: a generator of this process, cheap and seeded by the system.
        self._random_bits = random.Random().getrandbits  # noqa: S311

    def start_span(
        self,
        name: str,
        context: otel_context.Context | None = None,
        *_args: Any,
        attributes: Mapping[str, Any] | None = None,
        start_time: int | None = None,
        **_kwargs: Any,
    ) -> LocalSpan:
        parent = trace.get_current_span(context).get_span_context()
        span_id = self._random_bits(64) | 1
        child_ids = (parent.trace_id, span_id, parent.span_id)
        ids = child_ids if parent.is_valid else (self._random_bits(128) | 1, span_id, 0)
        span = LocalSpan(name, ids, self._sink, start_time)
        if attributes:
            span.set_attributes(attributes)
        return span

    def start_root_span(self, name: str) -> LocalSpan:
        """Start a span without a parent."""
        return LocalSpan(name, (self._random_bits(128) | 1, self._random_bits(64) | 1, 0), self._sink)

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # ours is a plain context manager
        self, name: str, *_args: Any, **_kwargs: Any
    ) -> Iterator[LocalSpan]:
        span = self.start_span(name)
        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            yield span
        finally:
            otel_context.detach(token)
            span.end()


def get_span_ids(span: trace.Span) -> tuple[int, int]:
    """Return the trace id and the span id of a span."""
    if isinstance(span, LocalSpan):
        return span.ids[:2]
    context = span.get_span_context()
    return context.trace_id, context.span_id


def is_sampled(span: trace.Span) -> bool:
    """Return True if a span is recorded, so that spans below it should be recorded too."""
    return isinstance(span, LocalSpan) or span.get_span_context().trace_flags.sampled


def escape_log_word(value: object) -> str:
    """Format an external value as one word of a log line, which cannot start another line."""
    text = str(value)[:200]
    return text if text.isprintable() and " " not in text else ascii(text)


class CallTelemetry:
    """Records a span and a log line for every call."""

    def __init__(self, tracer: trace.Tracer | None = None, *, log_calls: bool = True) -> None:
        self.tracer = tracer or LocalTracer(discard_spans)
        self._local = self.tracer if isinstance(self.tracer, LocalTracer) else None
        self._log_calls = log_calls

    def begin_call(self, call: ToolCall) -> trace.Span:
        """Open the span of a call, below the caller's span if it sent one."""
        name = "call " + call.tool
        if call.traceparent is None:
            return self._local.start_root_span(name) if self._local else self.tracer.start_span(name)
        parent = _TRACE_PROPAGATOR.extract({"traceparent": call.traceparent})
        return self.tracer.start_span(name, parent)

    def end_call(self, span: trace.Span, call: ToolCall, outcome: Outcome) -> None:
        """Close the span and write the log line of the call."""
        try:
            self._record_end(span, call, outcome)
        except Exception:
            log.exception("telemetry.lost tool=%s", escape_log_word(call.tool))

    def _record_end(self, span: trace.Span, call: ToolCall, outcome: Outcome) -> None:
        outcome_name = type(outcome).__name__
        attributes = {
            "cleats.tool": call.tool,
            "cleats.surface": call.surface,
            "cleats.outcome": outcome_name,
            "cleats.request_id": call.id or "",
        }
        note_words = ""
        for name, value in call.meta.notes.items():
            attributes["cleats." + name] = value
            note_words += f" {name}={escape_log_word(value)}"
        code = ""
        if not isinstance(outcome, Done | Cancelled):
            attributes["error.type"] = outcome.error.code.name
            code = f" code={outcome.error.code.name}"
            span.set_status(trace.StatusCode.ERROR)
        span.set_attributes(attributes)
        span.end()
        if self._log_calls:
            trace_id, span_id = get_span_ids(span)
            line = (
                f"call.end surface={call.surface} id={escape_log_word(call.id)} tool={escape_log_word(call.tool)} "
                f"outcome={outcome_name}{code}{note_words} ms={call.meta.duration_ms or 0.0:.1f} "
                f"trace={trace_id:032x} span={span_id:016x}\n"
            )
            PROCESS_JOURNAL.add_line(write_to_stderr, line.encode(errors="replace"))
