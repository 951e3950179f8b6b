"""What a running server can say about itself."""

from collections import Counter
from time import monotonic
from typing import Any

from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.runtime.call import Call
from cleats.runtime.slots import Slots


class Vitals:
    """Uptime, open calls and how calls ended. Written by the dispatcher, read by anyone."""

    def __init__(self) -> None:
        self._started = monotonic()
        self._open: dict[Call, float] = {}
        self._ended: Counter[type[Outcome]] = Counter()
        self.slots: Slots | None = None
        self.registry: Registry | None = None

    def opened(self, call: Call, moment: float) -> None:
        self._open[call] = moment

    def closed(self, call: Call, outcome: Outcome) -> None:
        self._open.pop(call, None)
        self._ended[type(outcome)] += 1

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
        """The open calls, oldest first."""
        now = monotonic()
        return [
            {"tool": call.tool, "requestId": call.id, "ms": round((now - begun) * 1000)}
            for call, begun in self._open.items()
        ]

    def ended(self) -> dict[str, int]:
        """How many calls ended in each way."""
        ways = (Done, Failed, Rejected, Cancelled)
        return {way.__name__.lower(): self._ended[way] for way in ways}

    def tools(self) -> dict[str, int]:
        """Every tool that is served, with the version of its schema."""
        return {tool.name: tool.version for tool in self.registry or ()}
