"""Calls of launch tools by a person: the same calls that an agent makes, in this process.

A person can press Ctrl-C and needs no deadline. An interrupted run stays at its last recorded step and can be resumed
from anywhere.
"""

import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click
from msgspec.structs import replace

from cleats.cli.output import INTERRUPTED_EXIT_CODE, ProgressPrinter, echo_json, is_json_requested
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.runtime.dispatcher import Dispatcher
    from cleats.runtime.progress import SendProgress
    from cleats.runtime.shutdown import Shutdown
    from cleats.toolsets.launch.service import LaunchService

T = TypeVar("T")

CALL_TIMEOUT_SECONDS: Final = 86_400.0
"""The seconds that a call may take; as long as a person may want to wait."""

USAGE_ERROR_CODES: Final = frozenset(
    {"INVALID_INPUT", "INVALID_URL", "RUN_NOT_FOUND", "SCHEMA_VALIDATION_FAILED", "UNSUPPORTED_SITE"}
)
"""The error codes of invalid requests, which exit with code 2."""

COMMANDS_BY_TOOL: Final = {
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
"""The subcommand that corresponds to each tool."""

DECISION_EXIT_CODE: Final = 3
"""The exit code of a run that waits for a decision."""


class LaunchInterrupted(Exception):  # noqa: N818 - it is what happened
    """Raised after Ctrl-C, with the id of the run if it is known."""


@dataclass(frozen=True, slots=True)
class LaunchClient:
    """The launch tools, ready to be called."""

    launches: "LaunchService"
    dispatcher: "Dispatcher"
    stop: "Shutdown"
    """The shutdown request, set by Ctrl-C."""

    async def call(self, tool: str, show: "SendProgress | None" = None, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the payload; `show` receives its progress.

        Raises:
            LaunchInterrupted: Ctrl-C was pressed and the call was cancelled.
        """
        import asyncio  # noqa: PLC0415 - help needs none of these

        from cleats.contract.outcome import Cancelled  # noqa: PLC0415
        from cleats.contract.payload import LAUNCH  # noqa: PLC0415
        from cleats.runtime.call import ToolCall  # noqa: PLC0415
        from cleats.runtime.progress import ProgressReporter  # noqa: PLC0415

        present_arguments = {name: value for name, value in arguments.items() if value is not None}
        reporter = ProgressReporter(show) if show else None
        call = ToolCall(tool=f"launch_{tool}", arguments=present_arguments, surface="cli", reporter=reporter)

        async def cancel_on_stop() -> None:
            await self.stop.requested.wait()
            call.cancel()

        cancel_task = asyncio.create_task(cancel_on_stop())
        try:
            outcome = await self.dispatcher.dispatch(call)
        finally:
            cancel_task.cancel()
        if isinstance(outcome, Cancelled):
            raise LaunchInterrupted(present_arguments.get("run_id", ""))
        return LAUNCH.render_outcome(outcome, call.meta).body or {}


@asynccontextmanager
async def open_client(settings: Settings) -> AsyncIterator[LaunchClient]:
    """Open the launch tools over the runs of this user until the block ends."""
    from cleats import app  # noqa: PLC0415 - help needs none of these
    from cleats.runtime import shutdown  # noqa: PLC0415
    from cleats.runtime.server_status import ServerStatus  # noqa: PLC0415
    from cleats.toolsets.launch.service import LaunchService  # noqa: PLC0415
    from cleats.toolsets.launch.tools import build_service_toolset  # noqa: PLC0415

    launches = LaunchService(settings, background=False)
    toolset = build_service_toolset(launches)
    timeouts = dict.fromkeys((tool.name for tool in toolset.tools), CALL_TIMEOUT_SECONDS)
    settings = replace(settings, log_level="error", timeouts={**timeouts, **settings.timeouts})
    with shutdown.watch_signals() as stop:
        async with app.open_dispatcher(settings, [toolset], ServerStatus()) as dispatcher:
            yield LaunchClient(launches, dispatcher, stop)


def run_with_client(settings: Settings, work: Callable[[LaunchClient], Coroutine[Any, Any, T]]) -> T:
    """Run some work with the launch tools; exit with 130 on Ctrl-C."""
    import anyio  # noqa: PLC0415 - help needs none of these

    from cleats.runtime.background_writer import PROCESS_JOURNAL, StderrHandler  # noqa: PLC0415

    # The answer reports a failure; the log is only for debugging.
    level = logging.DEBUG if settings.log_level == "debug" else logging.CRITICAL
    logging.basicConfig(handlers=[StderrHandler()], level=level)

    async def run_work() -> T | LaunchInterrupted:
        async with open_client(settings) as client:
            try:
                return await work(client)
            except LaunchInterrupted as interruption:
                return interruption

    try:
        result = anyio.run(run_work)
    finally:
        PROCESS_JOURNAL.close()
    if isinstance(result, LaunchInterrupted):
        click.echo("Stopped. The run is at its last recorded step.", err=True)
        click.echo(f"Continue it with `cleats launch resume {str(result) or 'last'}`.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    return result


def call_launch_tool(settings: Settings, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a launch tool and return its answer; print the error and exit if the call fails."""
    with ProgressPrinter(outside_terminal=False) as progress_printer:
        answer = run_with_client(settings, lambda client: client.call(tool, progress_printer.show, **arguments))
    return check_answer(answer)


def check_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer that is ok; otherwise print the error and exit."""
    return answer if answer["ok"] else exit_with_failure(answer)


def exit_with_failure(answer: Mapping[str, Any]) -> NoReturn:
    """Print the error of an answer and exit: with 2 if the request was invalid, otherwise 1."""
    error = answer["error"]
    if is_json_requested():
        echo_json(answer)
    else:
        click.echo(f"Error: {error['message']} ({error['code']})", err=True)
        for line in _render_details(error["details"], error["message"]):
            click.echo(line, err=True)
    sys.exit(2 if error["code"] in USAGE_ERROR_CODES else 1)


def _render_details(details: Mapping[str, Any], message: str) -> list[str]:
    faults = [f"{fault['path'] or '/'}: {fault['message']}" for fault in details.get("errors", ())]
    lines = [f"  {fault}" for fault in faults if not message.endswith(fault)]
    if fields := details.get("missing_fields"):
        lines.append(f"  Missing: {', '.join(fields)}")
    for name, values in details.get("suggested_values", {}).items():
        lines.append(f"  {name} could be: {', '.join(map(str, values))}")
    if known_values := details.get("known"):
        lines.append(f"  Known: {', '.join(map(str, known_values))}")
    if hint := details.get("hint"):  # which names tools, while a person types commands
        for tool, command in COMMANDS_BY_TOOL.items():
            hint = re.sub(rf"\b{tool}\b", f"cleats launch {command}", hint)
        lines.append(hint)
    return lines
