"""The command: `python -m conformance`, also known as `make conformance`.

It runs the official MCP conformance suite, and the MCP Inspector as a second client, against a
fixture toolset on the real kernel, and prints what passed.

The suite runs six times: for the revisions 2025-11-25 and 2026-07-28, each over streamable HTTP,
over HTTP to two servers without sessions behind a round-robin balancer (`balancer`), and over
stdio. It speaks only HTTP, so on the way to stdio there is a relay (`relay`); HTTP
statuses, headers and sessions seen through it are the relay's own. Every scenario of a revision
runs, also those that the suite does not score. A scenario passes when no check of it failed or
warned and at least one succeeded. What may fail is in `exclusions`, each with its reason, and it
must fail: an exclusion that passes is an error too. If anything is wrong, everything is tried once
more, one thing at a time, and that counts.

The Inspector starts its own servers over stdio and speaks to them in both eras: it lists tools,
lints their schemas (those of `cleats serve` as well), calls one that works and one that fails, and
sends arguments that are refused.

Both tools come from npm in exact versions and live in `.conformance/`, as do the results and logs
of the last run. To try another version, edit `package.json`, delete the lock file, run `npm install
--package-lock-only --omit-lockfile-registry-resolved` there, and read the diff.

Exit codes: 0 when all is as it should be, 1 when something is not, 2 when it could not be tried.
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
from conformance.exclusions import BALANCED, EXCLUSIONS, HTTP, RELAYED, STDIO, TRANSPORTS, applying
from conformance.fixture.server import KEY_BYTES
from conformance.npm import NotInstalled, Tools, install, installed
from conformance.processes import Broken, listening
from conformance.report import Report, lines
from conformance.verdict import judge, unknown

LISTENERS = {
    HTTP: (sys.executable, "-m", "conformance.fixture", "http"),
    BALANCED: (
        *(sys.executable, "-m", "conformance.balancer"),
        *(sys.executable, "-m", "conformance.fixture", "stateless", token_hex(KEY_BYTES)),
    ),
    STDIO: (sys.executable, "-m", "conformance.relay", *inspector.FIXTURE),
}


async def conform(tools: Tools, at_once: int) -> Report:
    """Run everything, so many things at a time."""
    report = Report(suite={_title(*run): [] for run in product(TRANSPORTS, suite.REVISIONS)})
    turns = asyncio.Semaphore(at_once)

    async def in_turn(part: Awaitable[None]) -> None:
        async with turns:
            await part

    async with asyncio.TaskGroup() as group:
        group.create_task(in_turn(_suites(report, tools, HTTP, BALANCED)))
        group.create_task(in_turn(_suites(report, tools, STDIO)))
        group.create_task(in_turn(_inspector(report, tools)))
        group.create_task(in_turn(skills.conform(report, tools)))
    return report


async def _suites(report: Report, tools: Tools, *transports: str) -> None:
    for transport in transports:
        await _suite(report, tools, transport)


async def _suite(report: Report, tools: Tools, transport: str) -> None:
    try:
        async with listening(LISTENERS[transport], _log(tools, transport)) as url:
            # The newest first: its scenarios want some answers within half a second, and the older
            # one keeps every core busy by starting a server for each session on stdio.
            for revision in reversed(suite.REVISIONS):
                with _timed(_title(transport, revision)):
                    await _revision(report, tools, transport, revision, url)
    except Broken as error:
        report.wrong.append(f"{transport}: {error}")


async def _revision(report: Report, tools: Tools, transport: str, revision: str, url: str) -> None:
    title = _title(transport, revision)
    out = tools.home / "results" / title.replace(" ", "-")
    scenarios = await suite.run(tools, url, revision, out)
    excluded = applying(transport, revision)
    report.suite[title] = judge(scenarios, excluded, RELAYED if transport == STDIO else ())
    report.wrong += [f"{title}: {problem}" for problem in unknown(scenarios, excluded)]


async def _inspector(report: Report, tools: Tools) -> None:
    with _timed("inspector"):
        for probe in inspector.PROBES:
            found = {era: await inspector.ask(tools, probe, era) for era in inspector.ERAS}
            report.inspector[probe.name] = found


def _log(tools: Tools, transport: str) -> Path:
    folder = tools.home / "logs"
    folder.mkdir(exist_ok=True)
    return folder / f"{transport}.txt"


def _title(transport: str, revision: str) -> str:
    return f"{transport} {revision}"


@contextmanager
def _timed(what: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    _say(f"{what}: {time.monotonic() - begun:.0f} s")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def main() -> int:
    """The exit code; see above."""
    task = asyncio.current_task()
    assert task is not None
    # Children are ended in `finally` blocks, which a plain SIGTERM would skip.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if not installed():
        _say("installing the suite and the Inspector")
    try:
        tools = await install()
    except NotInstalled as error:
        _say(f"not run: {error}")
        return 2
    report = await conform(tools, at_once=4)
    if problems := report.problems():
        # What has to be answered within half a second may have been held up by the rest. A server
        # that is wrong is wrong by itself too.
        _say("\n".join([*problems, "trying again, one thing at a time"]))
        report = await conform(tools, at_once=1)
    print("\n".join(lines(report, EXCLUSIONS)))
    return 1 if report.problems() else 0


if __name__ == "__main__":
    try:
        code = asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = 130
    sys.exit(code)
