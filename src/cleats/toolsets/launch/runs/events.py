"""The log of a run: append-only, each event chained to the one before.

    event_id   = "evt_" + the first 24 hex digits of sha256(run_id | seq | trace | span | parent)
    event_hash = sha256(event_id + ts + type + payload + prev_hash)

with the payload as compact JSON, keys in order. So every field of an event is in its hash, and a changed byte anywhere
breaks the chain; the number of events and the last hash are stored with the run, so a truncated log is detected too.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.artifacts import format_compact_json

GENESIS_HASH = "0" * 64
"""The hash that the first event is chained to."""


class TraceIds(NamedTuple):
    """The ids, in hexadecimal, of the span that caused an event."""

    trace_id: str = "0" * 32
    span_id: str = "0" * 16
    parent_span_id: str = ""


NO_TRACE = TraceIds()


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event that is not in the log yet."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    ts: str = ""
    """The time of the event, if it is not the time of writing."""
    ns: int = 0
    """The same for spans: nanoseconds since the epoch. Not stored."""
    trace: TraceIds | None = None
    """The span that caused the event, if it is not that of the writer."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event in the log. The payload is stored as the text that was hashed."""

    run_id: str
    seq: int
    event_id: str
    ts: str
    type: str
    text: str
    trace: TraceIds
    prev_hash: str
    event_hash: str

    @property
    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.text)
        return loaded

    def as_json(self) -> dict[str, Any]:
        """Return the event as a line of `events.ndjson`."""
        document = {
            "event_id": self.event_id,
            "run_id": self.run_id,
            "ts": self.ts,
            "type": self.type,
            "payload": self.payload,
            "trace_id": self.trace.trace_id,
            "span_id": self.trace.span_id,
            "prev_hash": self.prev_hash,
            "event_hash": self.event_hash,
        }
        if self.trace.parent_span_id:
            document["parent_span_id"] = self.trace.parent_span_id
        return document


class LogTail(NamedTuple):
    """The end of a log: the number of its events and the hash of the last one."""

    length: int = 0
    last_hash: str = GENESIS_HASH


class BrokenChainError(ToolError):
    """Raised when the log of a run is not as it was written; the run cannot continue."""

    def __init__(self, run_id: str, seq: int) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            f"the log of {run_id} was changed at event {seq}; the run cannot continue",
            hint="Keep the run for inspection, and start another one.",
            details={"cause_class": "EventChainBroken", "reason": "EVENT_CHAIN_BROKEN", "seq": seq},
        )


def chain_events(
    run_id: str, tail: LogTail, drafts: Iterable[EventDraft], trace: TraceIds, now: str
) -> tuple[list[RunEvent], LogTail]:
    """Append drafts to a log; return the events and the new end."""
    events: list[RunEvent] = []
    for draft in drafts:
        seq, ts, text = tail.length + 1, draft.ts or now, format_compact_json(dict(draft.payload))
        event_trace = draft.trace or trace
        event_id = _make_event_id(run_id, seq, event_trace)
        digest = _hash_parts(event_id, ts, draft.type, text, tail.last_hash)
        events.append(RunEvent(run_id, seq, event_id, ts, draft.type, text, event_trace, tail.last_hash, digest))
        tail = LogTail(seq, digest)
    return events, tail


def verify_chain(run_id: str, events: Sequence[RunEvent], tail: LogTail) -> None:
    """Check that a log is as it was written.

    Raises:
        BrokenChainError: it is not; the error names the first event that is wrong or missing.
    """
    last = GENESIS_HASH
    for seq, event in enumerate(events, start=1):
        digest = _hash_parts(event.event_id, event.ts, event.type, event.text, last)
        has_valid_id = event.run_id == run_id and event.event_id == _make_event_id(run_id, seq, event.trace)
        has_valid_hashes = event.prev_hash == last and event.event_hash == digest
        if event.seq != seq or not has_valid_id or not has_valid_hashes:
            raise BrokenChainError(run_id, seq)
        last = digest
    if tail != (len(events), last):
        raise BrokenChainError(run_id, len(events) + 1)


def _make_event_id(run_id: str, seq: int, trace: TraceIds) -> str:
    identity = "|".join((run_id, str(seq), *trace))
    return "evt_" + hashlib.sha256(identity.encode()).hexdigest()[:24]


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()
