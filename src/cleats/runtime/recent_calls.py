"""The latest calls of a server, with their durations, for people who watch it. Arguments are never kept."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from time import time

from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.runtime.call import ToolCall

MAX_RECENT_CALLS = 1000
"""The number of calls that are kept: some hundred bytes each."""


MAX_NAME_CHARS = 100
"""The length at which the name of an unknown tool, which a caller chose, is cut."""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """One call that has ended."""

    tool: str
    caller: str
    """The name of the token; empty if none was needed."""
    surface: str
    outcome: str
    code: str
    """The error code; empty without an error."""
    duration_ms: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """The durations of the calls of one tool, in milliseconds."""

    tool: str
    count: int
    failures: int
    p50: float
    p90: float
    p99: float


async def _find_no_calls() -> Sequence[FinishedCall]:
    return ()


class RecentCalls:
    """A bounded record of finished calls, newest last."""

    def __init__(self) -> None:
        self.read_other_processes: Callable[[], Awaitable[Sequence[FinishedCall]]] = _find_no_calls
        """Reads the calls of the other processes of this server."""
        self._calls: deque[FinishedCall] = deque(maxlen=MAX_RECENT_CALLS)

    def record_end(self, caller: str, call: ToolCall, outcome: Outcome) -> None:
        """Record a call. Cheap, and never raises."""
        code = "" if isinstance(outcome, Done | Cancelled) else outcome.error.code.name
        name, duration = type(outcome).__name__.lower(), call.meta.duration_ms or 0.0
        self._calls.append(FinishedCall(call.tool[:MAX_NAME_CHARS], caller, call.surface, name, code, duration, time()))

    def export_calls(self) -> list[FinishedCall]:
        """Return the calls of this process, oldest first."""
        return list(self._calls)

    def add_calls(self, calls: Iterable[FinishedCall]) -> None:
        """Add the calls of another process, oldest first."""
        self._calls.extend(calls)

    async def list_calls(self, is_visible: Callable[[FinishedCall], bool]) -> list[FinishedCall]:
        """Return the calls of the whole server that a reader may see, newest first."""
        others = await self.read_other_processes()
        calls = [call for call in (*reversed(self._calls), *others) if is_visible(call)]
        return sorted(calls, key=lambda call: call.ended_at, reverse=True)[:MAX_RECENT_CALLS]


def summarize_durations(calls: Iterable[FinishedCall]) -> list[DurationSummary]:
    """Return the percentiles of each tool, the most used tool first."""
    calls_by_tool: dict[str, list[FinishedCall]] = {}
    for call in calls:
        calls_by_tool.setdefault(call.tool, []).append(call)
    summaries = [_summarize_tool(tool, tool_calls) for tool, tool_calls in calls_by_tool.items()]
    return sorted(summaries, key=lambda summary: (-summary.count, summary.tool))


def _summarize_tool(tool: str, calls: Sequence[FinishedCall]) -> DurationSummary:
    durations = sorted(call.duration_ms for call in calls)
    failures = sum(call.outcome in {"failed", "rejected"} for call in calls)
    percentiles = [find_percentile(durations, share) for share in (0.5, 0.9, 0.99)]
    return DurationSummary(tool, len(durations), failures, *percentiles)


def find_percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    index = max(0, min(len(sorted_values) - 1, int(share * len(sorted_values) + 0.999999) - 1))
    return sorted_values[index]
