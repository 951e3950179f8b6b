"""The command: `python -m conformance`, also available as `make conformance`.

It runs the official MCP conformance suite, and the MCP Inspector as a second client, against a
fixture toolset on the real kernel, and prints the results.

The suite runs six times: for the revisions 2025-11-25 and 2026-07-28, each over streamable HTTP,
over HTTP to two servers without sessions behind a round-robin balancer (`balancer`), and over
stdio. It speaks only HTTP, so there is a relay in front of stdio (`relay`); HTTP statuses, headers
and sessions seen through it are the relay's own. Every scenario of a revision runs, including those
that the suite does not score. A scenario passes if no check of it failed or warned and at least one
succeeded. The failures that are allowed are in `exclusions`, each with its reason, and they must
fail: an exclusion that passes is an error too. If anything is wrong, everything is run once more,
one thing at a time, and that result counts.

The Inspector starts its own servers over stdio and speaks to them in both eras: it lists tools,
lints their schemas (those of `cleats serve` as well), calls one that works and one that fails, and
sends arguments that are rejected.

Both tools come from npm in exact versions and are installed in `.conformance/`, where the results
and logs of the last run are, too. To try another version, edit `package.json`, delete the lock
file, run `npm install --package-lock-only --omit-lockfile-registry-resolved` there, and read the
diff.

Exit codes: 0 if everything is as it should be, 1 if something is not, 2 if it could not be run.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from secrets import token_hex

from conformance import inspector, skills, suite
from conformance.exclusions import (
    ALL_TRANSPORTS,
    BALANCED_TRANSPORT,
    HTTP_TRANSPORT,
    RELAYED_SCENARIOS,
    STDIO_TRANSPORT,
    SUITE_EXCLUSIONS,
    select_exclusions,
)
from conformance.fixture.server import KEY_BYTES
from conformance.npm import ConformanceTools, ToolsNotInstalledError, install_tools, is_installed
from conformance.processes import BrokenProcessError, run_listener
from conformance.report import ConformanceReport, render_report
from conformance.verdict import find_unknown_exclusions, judge_scenarios

LISTENER_COMMANDS = {
    HTTP_TRANSPORT: (sys.executable, "-m", "conformance.fixture", "http"),
    BALANCED_TRANSPORT: (
        *(sys.executable, "-m", "conformance.balancer"),
        *(sys.executable, "-m", "conformance.fixture", "stateless", token_hex(KEY_BYTES)),
    ),
    STDIO_TRANSPORT: (sys.executable, "-m", "conformance.relay", *inspector.FIXTURE_COMMAND),
}


async def run_conformance(tools: ConformanceTools, concurrency: int) -> ConformanceReport:
    """Run everything with at most this many parts at a time."""
    report = ConformanceReport(
        suite={_format_title(*run): [] for run in product(ALL_TRANSPORTS, suite.SUITE_REVISIONS)}
    )
    turns = asyncio.Semaphore(concurrency)

    async def run_in_turn(part: Awaitable[None]) -> None:
        async with turns:
            await part

    async with asyncio.TaskGroup() as group:
        group.create_task(run_in_turn(_run_suites(report, tools, HTTP_TRANSPORT, BALANCED_TRANSPORT)))
        group.create_task(run_in_turn(_run_suites(report, tools, STDIO_TRANSPORT)))
        group.create_task(run_in_turn(_run_inspector(report, tools)))
        group.create_task(run_in_turn(skills.run_skill_scenarios(report, tools)))
    return report


async def _run_suites(report: ConformanceReport, tools: ConformanceTools, *transports: str) -> None:
    for transport in transports:
        await _run_suite(report, tools, transport)


async def _run_suite(report: ConformanceReport, tools: ConformanceTools, transport: str) -> None:
    try:
        async with run_listener(LISTENER_COMMANDS[transport], _get_log_file(tools, transport)) as url:
            # The newest first: its scenarios need some answers within half a second, and the older
            # revision keeps every core busy by starting a server for each session on stdio.
            for revision in reversed(suite.SUITE_REVISIONS):
                with _report_duration(_format_title(transport, revision)):
                    await _run_revision(report, tools, transport, revision, url)
    except BrokenProcessError as error:
        report.errors.append(f"{transport}: {error}")


async def _run_revision(
    report: ConformanceReport, tools: ConformanceTools, transport: str, revision: str, url: str
) -> None:
    title = _format_title(transport, revision)
    out = tools.home / "results" / title.replace(" ", "-")
    scenarios = await suite.run_suite(tools, url, revision, out)
    exclusions = select_exclusions(transport, revision)
    report.suite[title] = judge_scenarios(
        scenarios, exclusions, RELAYED_SCENARIOS if transport == STDIO_TRANSPORT else ()
    )
    report.errors += [f"{title}: {problem}" for problem in find_unknown_exclusions(scenarios, exclusions)]


async def _run_inspector(report: ConformanceReport, tools: ConformanceTools) -> None:
    with _report_duration("inspector"):
        for probe in inspector.INSPECTOR_PROBES:
            problems_by_era = {era: await inspector.run_probe(tools, probe, era) for era in inspector.PROTOCOL_ERAS}
            report.inspector[probe.name] = problems_by_era


def _get_log_file(tools: ConformanceTools, transport: str) -> Path:
    folder = tools.home / "logs"
    folder.mkdir(exist_ok=True)
    return folder / f"{transport}.txt"


def _format_title(transport: str, revision: str) -> str:
    return f"{transport} {revision}"


@contextmanager
def _report_duration(label: str) -> Iterator[None]:
    start_time = time.monotonic()
    yield
    _print_status(f"{label}: {time.monotonic() - start_time:.0f} s")


def _print_status(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def main() -> int:
    """Return the exit code described in the module docstring."""
    task = asyncio.current_task()
    assert task is not None
    # Children are ended in `finally` blocks, which a plain SIGTERM would skip.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if not is_installed():
        _print_status("installing the suite and the Inspector")
    try:
        tools = await install_tools()
    except ToolsNotInstalledError as error:
        _print_status(f"not run: {error}")
        return 2
    report = await run_conformance(tools, concurrency=4)
    if problems := report.list_problems():
        # An answer that is due within half a second may have been delayed by the other parts. A
        # server with a real fault fails on its own too.
        _print_status("\n".join([*problems, "trying again, one thing at a time"]))
        report = await run_conformance(tools, concurrency=1)
    print("\n".join(render_report(report, SUITE_EXCLUSIONS)))
    return 1 if report.list_problems() else 0


if __name__ == "__main__":
    try:
        code = asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = 130
    sys.exit(code)
