"""The log of a run: append-only, each event chained to the one before.

    event_id   = "evt_" + the first 24 hex digits of sha256(run_id | seq | trace | span | parent)
    event_hash = sha256(event_id + ts + type + payload + prev_hash)

with the payload as compact JSON, keys in order. So every field of an event is in its hash, and a
changed byte anywhere breaks the chain; the number of events and the last hash are kept with the
run, so a cut-off tail does too.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.artifacts import compact

GENESIS = "0" * 64
"""What the first event is chained to."""


class Trace(NamedTuple):
    """Whose doing an event is: ids in hexadecimal."""

    trace_id: str = "0" * 32
    span_id: str = "0" * 16
    parent_span_id: str = ""


NO_TRACE = Trace()


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is not in the log yet."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    ts: str = ""
    """When it happened, if that was not now."""
    ns: int = 0
    """The same for spans: nanoseconds since the epoch. Not written down."""
    trace: Trace | None = None
    """Whose doing it is, if not of whoever writes it down."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the log. The payload is kept as the text that was hashed."""

    run_id: str
    seq: int
    event_id: str
    ts: str
    type: str
    text: str
    trace: Trace
    prev_hash: str
    event_hash: str

    @property
    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.text)
        return loaded

    def as_json(self) -> dict[str, Any]:
        """A line of `events.ndjson`."""
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


class Tail(NamedTuple):
    """Where a log ends: how many events it has, and the hash of the last."""

    length: int = 0
    last_hash: str = GENESIS


class BrokenChainError(ToolError):
    """The log of a run is not as it was written; nothing may be built on it."""

    def __init__(self, run_id: str, seq: int) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            f"the log of {run_id} was changed at event {seq}; the run cannot go on",
            hint="Keep the run for an inquiry, and start another.",
            details={"cause_class": "EventChainBroken", "reason": "EVENT_CHAIN_BROKEN", "seq": seq},
        )


def chain(
    run_id: str, tail: Tail, drafts: Iterable[Draft], trace: Trace, now: str
) -> tuple[list[Event], Tail]:
    """Put drafts at the end of a log; return the events and the new end."""
    events: list[Event] = []
    for draft in drafts:
        seq, ts, text = tail.length + 1, draft.ts or now, compact(dict(draft.payload))
        own = draft.trace or trace
        event_id = _id(run_id, seq, own)
        digest = _hash(event_id, ts, draft.type, text, tail.last_hash)
        events.append(
            Event(run_id, seq, event_id, ts, draft.type, text, own, tail.last_hash, digest)
        )
        tail = Tail(seq, digest)
    return events, tail


def verify(run_id: str, events: Sequence[Event], tail: Tail) -> None:
    """Let a log pass that is as it was written.

    Raises:
        BrokenChainError: it is not; it names the first event that is wrong or missing.
    """
    last = GENESIS
    for seq, event in enumerate(events, start=1):
        digest = _hash(event.event_id, event.ts, event.type, event.text, last)
        named = event.run_id == run_id and event.event_id == _id(run_id, seq, event.trace)
        linked = event.prev_hash == last and event.event_hash == digest
        if event.seq != seq or not named or not linked:
            raise BrokenChainError(run_id, seq)
        last = digest
    if tail != (len(events), last):
        raise BrokenChainError(run_id, len(events) + 1)


def _id(run_id: str, seq: int, trace: Trace) -> str:
    whole = "|".join((run_id, str(seq), *trace))
    return "evt_" + hashlib.sha256(whole.encode()).hexdigest()[:24]


def _hash(*parts: str) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()
