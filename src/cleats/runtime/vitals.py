"""What a running server can say about itself."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

from cleats.contract.errors import ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.runtime.call import Call
from cleats.runtime.slots import Slots

BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0)
"""Seconds that calls are sorted by; what took longer is beyond the last."""

UNKNOWN: Final = "(unknown)"
"""Stands for every name that is no tool's: callers must not be able to make up figures."""

SEEN: ContextVar[Registry | None] = ContextVar("seen", default=None)
"""The tools that the caller of the running tool has; a tool must not tell it of others."""


class Vitals:
    """Uptime, open calls and how calls ended. Written by the dispatcher, read by anyone."""

    def __init__(self) -> None:
        self._started = monotonic()
        self._open: dict[Call, float] = {}
        self._ended: Counter[tuple[str, type[Outcome]]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.slots: Slots | None = None
        self.registry: Registry | None = None

    def opened(self, call: Call, moment: float) -> None:
        self._open[call] = moment

    def closed(self, call: Call, outcome: Outcome) -> None:
        self._open.pop(call, None)
        name = self._name(call)
        seconds = (call.meta.duration_ms or 0.0) / 1000
        self._ended[name, type(outcome)] += 1
        times = self._times.setdefault(name, [0] * (len(BOUNDS) + 1))
        times[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[name] += seconds  # type: ignore[assignment] # a Counter adds floats

    def _name(self, call: Call) -> str:
        try:
            return UNKNOWN if self.registry is None else self.registry.find(call.tool).name
        except ToolError:
            return UNKNOWN

    @property
    def uptime(self) -> float:
        """Seconds since the server started."""
        return monotonic() - self._started

    def queue(self) -> dict[str, int]:
        """The load now, and the most that is taken."""
        slots = self.slots
        if slots is None:
            return {"running": 0, "maxRunning": 0, "waiting": 0, "maxWaiting": 0}
        return {
            "running": slots.running,
            "maxRunning": slots.concurrency,
            "waiting": slots.waiting,
            "maxWaiting": slots.queue,
        }

    def in_flight(self) -> list[dict[str, Any]]:
        """The open calls, oldest first; to a tool only those of tools that its caller has."""
        now = monotonic()
        seen = SEEN.get()
        return [
            {"tool": call.tool, "requestId": call.id, "ms": round((now - begun) * 1000)}
            for call, begun in self._open.items()
            if seen is None or seen.has(call.tool)
        ]

    def ended(self) -> dict[str, int]:
        """How many calls ended in each way."""
        total: Counter[str] = Counter()
        for (_, way), number in self._ended.items():
            total[way.__name__.lower()] += number
        return {way.__name__.lower(): total[way.__name__.lower()] for way in _WAYS}

    def by_tool(self) -> Iterator[tuple[str, str, int]]:
        """Tools with calls that ended, each with every way and how many ended so."""
        for name in sorted(self._times):
            for way in _WAYS:
                yield name, way.__name__.lower(), self._ended[name, way]

    def times(self) -> Mapping[str, tuple[list[int], float]]:
        """By tool: how many calls took up to each of `BOUNDS` and longer, and all their seconds."""
        return {name: (self._times[name], self._seconds[name]) for name in sorted(self._times)}

    def tools(self) -> dict[str, int]:
        """Every tool that is served, with the version of its schema."""
        return {tool.name: tool.version for tool in SEEN.get() or self.registry or ()}


_WAYS = (Done, Failed, Rejected, Cancelled)
