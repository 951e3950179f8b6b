"""The laws of progress, with a clock that the test controls."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.runtime.progress import ProgressReport, ProgressReporter
from tests.support.requirements import requirement

ReportStep = tuple[float | None, float]
"""A number that a tool reports, and the seconds that it then works."""

CountedStep = tuple[float | None, float | None, float]
"""A number and a total that a tool reports, and the seconds that it then works."""


class FakeClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when there is nothing left to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        timers = [t for t in self._scheduled if not t.cancelled()]  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            self.now = max(self.now, min(timer.when() for timer in timers))
        super()._run_once()  # type: ignore[misc]


def collect_reports(steps: list[ReportStep], *, flush: bool = True) -> list[tuple[float, ProgressReport]]:
    """Return every report that is sent when a tool reports in these steps, with its time."""
    return collect_counted_reports([(count, None, seconds) for count, seconds in steps], flush=flush)


def collect_counted_reports(steps: list[CountedStep], *, flush: bool = True) -> list[tuple[float, ProgressReport]]:
    """Return every report that is sent for these numbers and totals, with its time."""
    reports: list[tuple[float, ProgressReport]] = []
    loop = FakeClockLoop()

    async def run() -> None:
        async def send(report: ProgressReport) -> None:
            reports.append((loop.now, report))

        progress = ProgressReporter(send)
        for number, (count, total, seconds) in enumerate(steps):
            progress.report(f"step {number}", phase="work", done=count, total=total)
            await asyncio.sleep(seconds)
        await progress.close(flush=flush)
        progress.report("too late", phase="work", done=None, total=None)
        await asyncio.sleep(10)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return reports


numbers = st.none() | st.floats(min_value=0, max_value=1e6) | st.just(float("nan"))
steps = st.lists(st.tuples(numbers, st.floats(min_value=0, max_value=2)), max_size=30)
slow_settings = settings(max_examples=150, deadline=None)


@requirement("b:progress:params")
@slow_settings
@given(steps)
def test_the_number_always_rises(given_steps: list[ReportStep]) -> None:
    reports = [report.number for _, report in collect_reports(given_steps)]

    assert all(before < after for before, after in pairwise(reports))


@requirement("a:progress:throttled", "a:progress:coalesced")
@slow_settings
@given(steps)
def test_no_second_has_more_than_four_reports(given_steps: list[ReportStep]) -> None:
    times = [time for time, _ in collect_reports(given_steps)]

    assert all(sum(start <= time < start + 1 for time in times) <= 4 for start in times)


@slow_settings
@given(steps.filter(bool))
def test_the_last_report_before_the_answer_is_not_lost(given_steps: list[ReportStep]) -> None:
    *_, (_, last) = collect_reports(given_steps)

    assert last.message == f"step {len(given_steps) - 1}"


@requirement("a:progress:none-after-end")
@pytest.mark.parametrize("flush", [True, False])
def test_nothing_leaves_after_the_end(flush: bool) -> None:
    reports = collect_reports([(None, 0.0), (None, 0.0)], flush=flush)

    assert [report.message for _, report in reports] == (["step 1"] if flush else [])


@requirement("a:cancel:no-progress-after")
def test_a_cancel_drops_what_has_not_left_yet() -> None:
    reports = collect_reports([(None, 1.0), (None, 0.0), (None, 0.0)], flush=False)

    assert [report.message for _, report in reports] == ["step 0"]


def test_a_surface_that_fails_does_not_fail_the_call(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_to_send(_report: ProgressReport) -> None:
        raise OSError("gone")

    async def run() -> None:
        progress = ProgressReporter(fail_to_send)
        progress.report("x", phase="work", done=None, total=None)
        await progress.close(flush=True)

    asyncio.run(run())

    assert "progress.lost" in caplog.text


def test_numbers_without_meaning_are_counted_instead() -> None:
    count: Callable[[Any], list[float]] = lambda reports: [report.number for _, report in reports]  # noqa: E731

    assert count(collect_reports([(None, 1.0), (None, 1.0), (float("inf"), 1.0)])) == [1.0, 2.0, 3.0]


amounts = st.none() | st.integers(min_value=0, max_value=1000)
totals = amounts | st.just(float("inf")) | st.just(float("nan"))
counts = st.lists(st.tuples(amounts, totals, st.floats(min_value=0, max_value=2)), max_size=30)


@slow_settings
@given(counts)
def test_a_number_never_passes_its_total_and_whole_numbers_stay_whole(
    given_steps: list[CountedStep],
) -> None:
    reports = [report for _, report in collect_counted_reports(given_steps)]

    assert all(report.total is None or report.number <= report.total for report in reports)
    assert all(type(report.number) is int for report in reports)
    assert all(before.number < after.number for before, after in pairwise(reports))


def test_a_total_is_told_to_the_end() -> None:
    phases: list[CountedStep] = [(None, None, 1.0), (4, 4, 1.0), (None, None, 1.0), (4, 4, 1.0)]

    reports = [(report.number, report.total) for _, report in collect_counted_reports(phases)]

    assert reports == [(1, None), (4, 4), (5, 5), (6, 6)]


def test_a_phase_without_numbers_does_not_fall_behind_a_count_that_was_coalesced() -> None:
    reports = [(r.number, r.total) for _, r in collect_counted_reports([(1, 9, 0.0), (9, 9, 0.0), (None, None, 1.0)])]

    assert reports == [(9, 9)]
