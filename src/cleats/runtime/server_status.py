"""The status of a running server."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

from msgspec import Struct

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


class OpenCall(Struct, frozen=True):
    """One call that runs or waits."""

    tool: str
    request_id: str | None
    ms: int


class StatusFigures(Struct, frozen=True):
    """The figures of one server process, for the other processes of the same server."""

    load: dict[str, int]
    open_calls: list[OpenCall]
    outcome_counts: dict[str, dict[str, int]]
    """The number of finished calls by tool and outcome."""
    duration_counts: dict[str, list[int]]
    total_seconds: dict[str, float]


async def _find_no_figures() -> Sequence[StatusFigures]:
    return ()


class ServerStatus:
    """Uptime, open calls and outcome counts. Written by the dispatcher, read by anyone."""

    def __init__(self) -> None:
        self.read_other_processes: Callable[[], Awaitable[Sequence[StatusFigures]]] = _find_no_figures
        """Reads the figures of the other processes of this server."""
        self._foreign_load: Counter[str] = Counter()
        self._foreign_calls: list[OpenCall] = []
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
        slots, foreign = self.slots, self._foreign_load
        return {
            "running": slots.running + foreign["running"],
            "maxRunning": slots.concurrency + foreign["maxRunning"],
            "waiting": slots.waiting + foreign["waiting"],
            "maxWaiting": slots.queue + foreign["maxWaiting"],
        }

    def cancel_open_calls(self) -> None:
        """Cancel every call that still runs, whatever surface it came from."""
        for call in list(self._open_calls):
            call.cancel()

    def list_open_calls(self) -> list[dict[str, Any]]:
        """Return the open calls, oldest first; a tool gets only those of tools its caller has."""
        caller_registry = CALLER_REGISTRY.get()
        return [
            {"tool": call.tool, "requestId": call.request_id, "ms": call.ms}
            for call in (*self._own_calls(), *self._foreign_calls)
            if caller_registry is None or caller_registry.has_tool(call.tool)
        ]

    def _own_calls(self) -> Iterator[OpenCall]:
        now = monotonic()
        for call, started_at in self._open_calls.items():
            yield OpenCall(call.tool, call.id, round((now - started_at) * 1000))

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

    def export_figures(self) -> StatusFigures:
        """Return the figures of this process."""
        outcome_counts: dict[str, dict[str, int]] = {}
        for (tool, outcome_type), count in self._outcome_counts.items():
            outcome_counts.setdefault(tool, {})[outcome_type.__name__.lower()] = count
        return StatusFigures(
            load=self.get_queue_load(),
            open_calls=list(self._own_calls()),
            outcome_counts=outcome_counts,
            duration_counts=self._duration_counts,
            total_seconds=dict(self._total_seconds),
        )

    def add_counts(self, figures: StatusFigures) -> None:
        """Add the finished calls of another process."""
        for tool, counts in figures.outcome_counts.items():
            for outcome_type in _OUTCOME_TYPES:
                self._outcome_counts[tool, outcome_type] += counts.get(outcome_type.__name__.lower(), 0)
        for tool, buckets in figures.duration_counts.items():
            own_buckets = self._duration_counts.setdefault(tool, [0] * len(buckets))
            self._duration_counts[tool] = [own + other for own, other in zip(own_buckets, buckets, strict=True)]
            self._total_seconds[tool] += figures.total_seconds[tool]  # type: ignore[assignment] # a Counter adds floats

    async def collect(self) -> "ServerStatus":
        """Return the status of the whole server, added up over its processes; the same object if there is only one."""
        others = await self.read_other_processes()
        if not others:
            return self
        total = ServerStatus()
        total._started_at, total.registry = self._started_at, self.registry
        for figures in (self.export_figures(), *others):
            total.add_counts(figures)
            total._foreign_load.update(figures.load)
            total._foreign_calls += figures.open_calls
        return total


_OUTCOME_TYPES = (Done, Failed, Rejected, Cancelled)
