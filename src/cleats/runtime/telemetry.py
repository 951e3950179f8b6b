"""One span and one log line for every call.

Spans follow the OpenTelemetry API. When the program around us has installed an OpenTelemetry SDK,
or an OTLP endpoint is configured, spans go there; otherwise to a local tracer of our own that
writes one JSON line a span to a file. Either way nothing here waits, and nothing here fails a call.
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
from cleats.runtime.call import Call
from cleats.runtime.journal import JOURNAL, Outlet, stderr

log = logging.getLogger("cleats.call")

_PROPAGATOR = TraceContextTextMapPropagator()
_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class LocalSpan(trace.Span):
    """A span that becomes one line when it ends."""

    def __init__(
        self, name: str, context: trace.SpanContext, parent: trace.SpanContext | None, sink: Outlet
    ) -> None:
        self._name = name
        self._context = context
        self._parent = parent
        self._sink = sink
        self._began = time_ns()
        self._attributes: dict[str, Any] = {}
        self._status = "UNSET"
        self._ended = False

    def end(self, end_time: int | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        line = {
            "name": self._name,
            "trace_id": trace.format_trace_id(self._context.trace_id),
            "span_id": trace.format_span_id(self._context.span_id),
            "parent_id": trace.format_span_id(self._parent.span_id) if self._parent else None,
            "start_ns": self._began,
            "end_ns": end_time or time_ns(),
            "status": self._status,
            "attributes": self._attributes,
        }
        JOURNAL.line(self._sink, msgspec.json.encode(line, enc_hook=str) + b"\n")

    def get_span_context(self) -> trace.SpanContext:
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
    """Makes local spans; ids as the W3C trace context wants them."""

    def __init__(self, sink: Outlet) -> None:
        self._sink = sink
        # Not for secrets: a per-process generator, cheap and seeded from the system.
        self._random = random.Random()  # noqa: S311

    def start_span(
        self,
        name: str,
        context: otel_context.Context | None = None,
        *_args: Any,
        **_kwargs: Any,
    ) -> LocalSpan:
        parent = trace.get_current_span(context).get_span_context()
        known = parent if parent.is_valid else None
        trace_id = known.trace_id if known else self._random.getrandbits(128) or 1
        own = trace.SpanContext(
            trace_id, self._random.getrandbits(64) or 1, is_remote=False, trace_flags=_SAMPLED
        )
        return LocalSpan(name, own, known, self._sink)

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


def plain(value: object) -> str:
    """A value from outside as one word of a log line: it cannot start a line of its own."""
    text = str(value)[:200]
    return text if text.isprintable() and " " not in text else ascii(text)


def discard(_batch: bytes) -> None:
    """The sink of a server that keeps no spans."""


class Telemetry:
    """What is recorded of every call."""

    def __init__(self, tracer: trace.Tracer | None = None, *, log_calls: bool = True) -> None:
        self.tracer = tracer or LocalTracer(discard)
        self._log_calls = log_calls

    def begin(self, call: Call) -> trace.Span:
        """Open the span of a call, below the caller's own if it sent one."""
        parent = None
        if call.traceparent is not None:
            parent = _PROPAGATOR.extract({"traceparent": call.traceparent})
        return self.tracer.start_span("call " + call.tool, parent)

    def end(self, span: trace.Span, call: Call, outcome: Outcome) -> None:
        """Close the span and write the call's log line."""
        kind = type(outcome).__name__
        code = None if isinstance(outcome, Done | Cancelled) else outcome.error.code.name
        duration = call.meta.duration_ms or 0.0
        try:
            span.set_attributes(
                {
                    "cleats.tool": call.tool,
                    "cleats.surface": call.surface,
                    "cleats.outcome": kind,
                    "cleats.request_id": call.id or "",
                    **({"error.type": code} if code else {}),
                }
            )
            if code:
                span.set_status(trace.StatusCode.ERROR)
            span.end()
            if self._log_calls:
                ids = span.get_span_context()
                line = (
                    f"call.end surface={call.surface} id={plain(call.id)} tool={plain(call.tool)} "
                    f"outcome={kind} {f'code={code} ' if code else ''}ms={duration:.1f} "
                    f"trace={ids.trace_id:032x} span={ids.span_id:016x}\n"
                )
                JOURNAL.line(stderr, line.encode(errors="replace"))
        except Exception:
            log.exception("telemetry.lost tool=%s", call.tool)
