"""Launch tools called by a person: the same calls that an agent makes, in this process.

A person has Ctrl-C and needs no deadline; a run that is left stays at its last recorded step, and
can be resumed from anywhere.
"""

import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar

import click
from msgspec.structs import replace

from cleats.cli.printing import asked_for_json, echo_json
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.runtime.dispatcher import Dispatcher
    from cleats.runtime.progress import Report
    from cleats.runtime.shutdown import Shutdown
    from cleats.toolsets.launch.service import Launches

T = TypeVar("T")

PATIENCE: Final = 86_400.0
"""Seconds that a call may take: as long as somebody waits for it."""

WRONG: Final = frozenset(
    {
        "INVALID_INPUT",
        "INVALID_URL",
        "RUN_NOT_FOUND",
        "SCHEMA_VALIDATION_FAILED",
        "UNSUPPORTED_SITE",
    }
)
"""Codes of what was asked wrongly: exit code 2."""

COMMANDS: Final = {
    "launch_cancel": "cancel",
    "launch_fix_next": "fix",
    "launch_get_artifact": "artifact",
    "launch_get_status": "status",
    "launch_list_runs": "list",
    "launch_open_pr": "open-pr",
    "launch_resume": "resume",
    "launch_start_run": "start",
    "launch_validate": "validate",
}
"""What a person types where an agent calls a tool."""

DECIDE, INTERRUPTED = 3, 130
"""Exit codes of a run that waits for a decision, and of Ctrl-C."""


class Stopped(Exception):  # noqa: N818 - it is what happened
    """Raised when somebody pressed Ctrl-C, with the id of the run if it is known."""


class Listener(Protocol):
    """Whoever wants to hear how far a call is."""

    async def show(self, report: "Report") -> None:
        """Take up a report."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The launch tools, open for calls."""

    launches: "Launches"
    dispatcher: "Dispatcher"
    stop: "Shutdown"
    """Asked when somebody pressed Ctrl-C."""

    async def call(
        self, tool: str, listener: Listener | None = None, /, **arguments: Any
    ) -> dict[str, Any]:
        """The payload of one call.

        Raises:
            Stopped: somebody pressed Ctrl-C, and the call was withdrawn.
        """
        import asyncio  # noqa: PLC0415 - help needs none of these

        from cleats.contract.outcome import Cancelled  # noqa: PLC0415
        from cleats.contract.payload import LAUNCH  # noqa: PLC0415
        from cleats.runtime.call import Call  # noqa: PLC0415
        from cleats.runtime.progress import Progress  # noqa: PLC0415

        given = {name: value for name, value in arguments.items() if value is not None}
        reporter = Progress(listener.show) if listener else None
        call = Call(tool=f"launch_{tool}", arguments=given, surface="cli", reporter=reporter)

        async def watch() -> None:
            await self.stop.asked.wait()
            call.cancel()

        watching = asyncio.create_task(watch())
        try:
            outcome = await self.dispatcher.dispatch(call)
        finally:
            watching.cancel()
        if isinstance(outcome, Cancelled):
            raise Stopped(given.get("run_id", ""))
        return LAUNCH.seal(outcome, call.meta).body or {}


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Desk]:
    """The tools over the runs of this user, until the block ends."""
    from cleats import app  # noqa: PLC0415 - help needs none of these
    from cleats.runtime import shutdown  # noqa: PLC0415
    from cleats.runtime.vitals import Vitals  # noqa: PLC0415
    from cleats.toolsets.launch.service import Launches  # noqa: PLC0415
    from cleats.toolsets.launch.tools import over  # noqa: PLC0415

    launches = Launches(settings, background=False)
    toolset = over(launches)
    patient = dict.fromkeys((tool.name for tool in toolset.tools), PATIENCE)
    settings = replace(settings, log_level="error", timeouts={**patient, **settings.timeouts})
    with shutdown.on_signals() as stop:
        async with app.dispatching(settings, [toolset], Vitals()) as dispatcher:
            yield Desk(launches, dispatcher, stop)


def run(settings: Settings, work: Callable[[Desk], Coroutine[Any, Any, T]]) -> T:
    """Do something with the tools; Ctrl-C leaves with 130."""
    import anyio  # noqa: PLC0415 - help needs none of these

    from cleats.runtime.journal import JOURNAL, StderrHandler  # noqa: PLC0415

    # What fails is told as the answer; the log is for those who look for the place.
    level = logging.DEBUG if settings.log_level == "debug" else logging.CRITICAL
    logging.basicConfig(handlers=[StderrHandler()], level=level)

    async def main() -> T | Stopped:
        async with opened(settings) as desk:
            try:
                return await work(desk)
            except Stopped as stopped:
                return stopped

    try:
        done = anyio.run(main)
    finally:
        JOURNAL.close()
    if isinstance(done, Stopped):
        click.echo("Stopped. The run is at its last recorded step.", err=True)
        click.echo(f"`cleats launch resume {str(done) or 'RUN_ID'}` goes on with it.", err=True)
        sys.exit(INTERRUPTED)
    return done


def asked(settings: Settings, tool: str, **arguments: Any) -> dict[str, Any]:
    """What one call answers; leaves with a word on stderr when it is a failure."""
    from cleats.cli.call import Ticker  # noqa: PLC0415 - help needs none of these

    ticker = Ticker(elsewhere=False)

    answer = run(settings, lambda desk: desk.call(tool, ticker, **arguments))
    ticker.clear()
    return answer if answer["ok"] else fail(answer)


def fail(answer: Mapping[str, Any]) -> NoReturn:
    """Say what went wrong, and leave: 2 when it was asked wrongly, else 1."""
    error = answer["error"]
    if asked_for_json():
        echo_json(answer)
    else:
        click.echo(f"Error: {error['message']} ({error['code']})", err=True)
        for line in _facts(error["details"], error["message"]):
            click.echo(line, err=True)
    sys.exit(2 if error["code"] in WRONG else 1)


def _facts(details: Mapping[str, Any], said: str) -> list[str]:
    """The details that help a person and were not said yet, in lines."""
    faults = [f"{each['path'] or '/'}: {each['message']}" for each in details.get("errors", ())]
    lines = [f"  {each}" for each in faults if not said.endswith(each)]
    if fields := details.get("missing_fields"):
        lines.append(f"  Missing: {', '.join(fields)}")
    for name, values in details.get("suggested_values", {}).items():
        lines.append(f"  {name} could be: {', '.join(map(str, values))}")
    if known := details.get("known"):
        lines.append(f"  Known: {', '.join(map(str, known))}")
    return [*lines, _typed(details["hint"])] if details.get("hint") else lines


def _typed(hint: str) -> str:
    """A hint with commands in the place of tools."""

    def command(match: re.Match[str]) -> str:
        name = COMMANDS.get(match[0])
        return f"cleats launch {name}" if name else match[0]

    return re.sub(r"\blaunch_\w+", command, hint)
