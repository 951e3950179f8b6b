"""The command: `python -m conformance`, also known as `make conformance`.

It runs the official MCP conformance suite, and the MCP Inspector as a second client, against a
fixture toolset on the real kernel, and prints what passed.

The suite runs four times: for the revisions 2025-11-25 and 2026-07-28, each over streamable HTTP
and over stdio. It speaks only HTTP, so on the way to stdio there is a relay (`relay`); HTTP
statuses, headers and sessions seen through it are the relay's own. Every scenario of a revision
runs, also those that the suite does not score. A scenario passes when no check of it failed or
warned and at least one succeeded. What may fail is in `exclusions`, each with its reason, and it
must fail: an exclusion that passes is an error too.

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance import inspector, suite
from conformance.exclusions import EXCLUSIONS, HANDSHAKE, HTTP, STATELESS, STDIO, applying
from conformance.npm import HOME, NotInstalled, Tools, install
from conformance.processes import Broken, listening
from conformance.report import Report, lines
from conformance.verdict import judge, unknown

LISTENERS = {
    HTTP: (sys.executable, "-m", "conformance.fixture", "http"),
    STDIO: (sys.executable, "-m", "conformance.relay", *inspector.FIXTURE),
}


async def conform(tools: Tools) -> Report:
    """Run everything, two or three things at a time."""
    report = Report(suite={_title(t, r): [] for r in (HANDSHAKE, STATELESS) for t in LISTENERS})
    logs = tools.home / "logs"
    logs.mkdir(exist_ok=True)
    async with (
        listening(LISTENERS[HTTP], logs / "http.txt") as http,
        listening(LISTENERS[STDIO], logs / "stdio.txt") as stdio,
    ):
        # The stateless scenarios wait a lot and want some answers within half a second, so they
        # come before the part that keeps every core busy starting servers.
        async with asyncio.TaskGroup() as group:
            group.create_task(_suite(report, tools, HTTP, STATELESS, http))
            group.create_task(_suite(report, tools, STDIO, STATELESS, stdio))
        async with asyncio.TaskGroup() as group:
            group.create_task(_suite(report, tools, HTTP, HANDSHAKE, http))
            group.create_task(_suite(report, tools, STDIO, HANDSHAKE, stdio))
            group.create_task(_inspector(report, tools))
    return report


async def _suite(report: Report, tools: Tools, transport: str, revision: str, url: str) -> None:
    title = _title(transport, revision)
    with _timed(title):
        excluded = applying(transport, revision)
        out = tools.home / "results" / title.replace(" ", "-")
        try:
            scenarios = await suite.run(tools, url, revision, out)
        except Broken as error:
            report.wrong.append(f"{title}: {error}")
            return
        report.suite[title] = judge(scenarios, excluded)
        report.wrong += [f"{title}: {problem}" for problem in unknown(scenarios, excluded)]


async def _inspector(report: Report, tools: Tools) -> None:
    with _timed("inspector"):
        for probe in inspector.PROBES:
            found = {era: await inspector.ask(tools, probe, era) for era in inspector.ERAS}
            report.inspector[probe] = found


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
    try:
        _say(f"tools from npm in {_short(HOME)}")
        report = await conform(await install())
    except (NotInstalled, Broken) as error:
        _say(f"conformance was not run: {error}")
        return 2
    print("\n".join(lines(report, EXCLUSIONS)))
    return 1 if report.problems() else 0


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    try:
        code = asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = 130
    sys.exit(code)
