"""Tests of the record of recent calls."""

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome
from cleats.runtime.call import ToolCall
from cleats.runtime.recent_calls import MAX_RECENT_CALLS, RecentCalls, summarize_durations


def record_calls(recent: RecentCalls, tool: str, *durations: float, outcome: Outcome | None = None) -> None:
    for duration in durations:
        call = ToolCall(tool=tool, arguments={"secret": "x"})
        call.meta.duration_ms = duration
        recent.record_end("ci", call, outcome or Done(None))


@pytest.mark.anyio
async def test_percentiles_are_values_that_were_measured() -> None:
    recent = RecentCalls()
    record_calls(recent, "search", *range(1, 101))
    record_calls(recent, "skill", 7.0, outcome=Failed(ToolError(ErrorCode.NOT_FOUND, "none")))

    search, skill = summarize_durations(await recent.list_calls(lambda _call: True))

    assert (search.tool, search.count, search.p50, search.p90, search.p99) == ("search", 100, 50, 90, 99)
    assert (skill.tool, skill.failures, skill.p50, skill.p99) == ("skill", 1, 7.0, 7.0)


@pytest.mark.anyio
async def test_the_record_is_bounded_and_newest_first() -> None:
    recent = RecentCalls()
    record_calls(recent, "old" * 100, 1.0)
    record_calls(recent, "search", *[2.0] * MAX_RECENT_CALLS)
    record_calls(recent, "stopped", 3.0, outcome=Cancelled())

    calls = await recent.list_calls(lambda _call: True)

    assert len(calls) == MAX_RECENT_CALLS
    assert (calls[0].tool, calls[0].outcome, calls[0].code) == ("stopped", "cancelled", "")
    assert {call.tool for call in calls} == {"search", "stopped"}


@pytest.mark.anyio
async def test_a_reader_sees_what_it_may_see() -> None:
    recent = RecentCalls()
    record_calls(recent, "search", 1.0)
    record_calls(recent, "skill", 1.0)

    assert [call.tool for call in await recent.list_calls(lambda call: call.tool == "skill")] == ["skill"]
