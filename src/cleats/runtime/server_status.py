"""The status of a running server."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.runtime.call import ToolCall
from cleats.runtime.concurrency import CallSlots

DURATION_BOUNDS_SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0)
"""The upper bounds of the duration histogram; longer calls go into a last bucket."""

UNKNOWN_TOOL_NAME: Final = "(unknown)"
"""Stands for every unknown tool name: callers must not be able to create metrics."""

CALLER_REGISTRY: ContextVar[Registry | None] = ContextVar("seen", default=None)
"""The tools available to the caller of the running tool, which must not report on any others."""


class ServerStatus:
    """Uptime, open calls and outcome counts. Written by the dispatcher, read by anyone."""

    def __init__(self) -> None:
        self._started_at = monotonic()
        self._open_calls: dict[ToolCall, float] = {}
        self._outcome_counts: Counter[tuple[str, type[Outcome]]] = Counter()
        self._duration_counts: dict[str, list[int]] = {}
        self._total_seconds: Counter[str] = Counter()
        self.slots = CallSlots(concurrency=0, queue=0)
        self.registry: Registry | None = None

    def record_start(self, call: ToolCall, started_at: float) -> None:
        self._open_calls[call] = started_at

    def record_end(self, call: ToolCall, outcome: Outcome) -> None:
        self._open_calls.pop(call, None)
        tool = self.registry.get(call.tool) if self.registry else None
        name = tool.name if tool else UNKNOWN_TOOL_NAME
        seconds = (call.meta.duration_ms or 0.0) / 1000
        self._outcome_counts[name, type(outcome)] += 1
        counts = self._duration_counts.setdefault(name, [0] * (len(DURATION_BOUNDS_SECONDS) + 1))
        counts[bisect_left(DURATION_BOUNDS_SECONDS, seconds)] += 1
        self._total_seconds[name] += seconds  # type: ignore[assignment] # a Counter adds floats

    @property
    def uptime(self) -> float:
        """Seconds since the server started."""
        return monotonic() - self._started_at

    def get_queue_load(self) -> dict[str, int]:
        """Return the current load and its limits."""
        slots = self.slots
        running = {"running": slots.running, "maxRunning": slots.concurrency}
        return {**running, "waiting": slots.waiting, "maxWaiting": slots.queue}

    def cancel_open_calls(self) -> None:
        """Cancel every call that still runs, whatever surface it came from."""
        for call in list(self._open_calls):
            call.cancel()

    def list_open_calls(self) -> list[dict[str, Any]]:
        """Return the open calls, oldest first; a tool gets only those of tools its caller has."""
        now = monotonic()
        caller_registry = CALLER_REGISTRY.get()
        return [
            {"tool": call.tool, "requestId": call.id, "ms": round((now - started_at) * 1000)}
            for call, started_at in self._open_calls.items()
            if caller_registry is None or caller_registry.has_tool(call.tool)
        ]

    def count_outcomes(self) -> dict[str, int]:
        """Return the number of calls by outcome."""
        total: Counter[str] = Counter()
        for (_, outcome_type), count in self._outcome_counts.items():
            total[outcome_type.__name__.lower()] += count
        return {outcome_type.__name__.lower(): total[outcome_type.__name__.lower()] for outcome_type in _OUTCOME_TYPES}

    def count_outcomes_by_tool(self) -> Iterator[tuple[str, str, int]]:
        """Yield tool, outcome and count for every tool with finished calls."""
        for name in sorted(self._duration_counts):
            for outcome_type in _OUTCOME_TYPES:
                yield name, outcome_type.__name__.lower(), self._outcome_counts[name, outcome_type]

    def get_duration_histograms(self) -> Mapping[str, tuple[list[int], float]]:
        """Return call counts per bucket of `DURATION_BOUNDS_SECONDS` and total seconds, by tool."""
        return {
            name: (self._duration_counts[name], self._total_seconds[name]) for name in sorted(self._duration_counts)
        }

    def list_tool_versions(self) -> dict[str, int]:
        """Return every tool that is served, with the version of its schema."""
        return {tool.name: tool.version for tool in CALLER_REGISTRY.get() or self.registry or ()}


_OUTCOME_TYPES = (Done, Failed, Rejected, Cancelled)
