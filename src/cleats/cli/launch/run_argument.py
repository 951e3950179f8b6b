"""The argument RUN: the id of a run, a short form of it, or the word `last`."""

import re
import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Final

import click

from cleats.cli.launch.calls import LaunchClient, call_launch_tool, run_with_client
from cleats.cli.output import json_option
from cleats.settings import Settings

LAST_RUN_WORD: Final = "last"

MAX_SEARCHED_RUNS: Final = 10_000
"""The newest runs that a short form is compared with."""

MAX_LISTED_MATCHES: Final = 5

_COMPLETE_ID_PATTERN: Final = re.compile(r"r_[\w-]+Z_[0-9a-f]{8}")


class RunIdParameter(click.ParamType[str]):
    """A run: its id, the first characters of the id or of its last part, or `last`."""

    name = "RUN"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the complete id; an unknown one is returned as it is, for the tool to reject."""
        assert ctx is not None  # noqa: S101 - click passes it for arguments and options
        settings = ctx.find_object(Settings)
        assert settings is not None  # noqa: S101 - the group sets it
        if value == LAST_RUN_WORD:
            return find_last_run(settings)
        if _COMPLETE_ID_PATTERN.fullmatch(value):
            return value
        matches = [run_id for run_id in _list_run_ids(settings) if _matches(run_id, value)]
        if len(matches) > 1 and value not in matches:
            shown = ", ".join(matches[:MAX_LISTED_MATCHES]) + (", ..." if len(matches) > MAX_LISTED_MATCHES else "")
            self.fail(f"{value!r} matches {len(matches)} runs: {shown}. Give more characters.", param, ctx)
        return matches[0] if len(matches) == 1 else value


RUN: Final = RunIdParameter()


def run_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add RUN, the last run by default, and --json to a command, and pass it the settings."""

    def call_with_run(settings: Settings, /, run_id: str | None, **options: Any) -> Any:
        return command(settings, run_id=run_id or find_last_run(settings), **options)

    update_wrapper(call_with_run, command)
    return click.argument("run_id", metavar="[RUN]", type=RUN, required=False)(
        json_option(click.pass_obj(call_with_run))
    )


def named_run_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add a required RUN and --json to a command that cannot be undone, and pass it the settings."""
    return click.argument("run_id", metavar="RUN", type=RUN)(json_option(click.pass_obj(command)))


def find_last_run(settings: Settings) -> str:
    """Return the id of the last run; print an error and exit if there is none."""
    runs = call_launch_tool(settings, "list_runs", filter={}, limit=1)["runs"]
    if not runs:
        click.echo("Error: No run has been started yet.", err=True)
        click.echo("Start one with `cleats launch start`.", err=True)
        sys.exit(2)
    return str(runs[0]["run_id"])


def _matches(run_id: str, text: str) -> bool:
    return run_id.startswith(text) or run_id.rpartition("_")[2].startswith(text)


def _list_run_ids(settings: Settings) -> list[str]:
    async def list_ids(client: LaunchClient) -> list[str]:
        from anyio import to_thread  # noqa: PLC0415 - help needs none of these

        list_runs = partial(client.launches.engine.store.list_runs, limit=MAX_SEARCHED_RUNS)
        return [run.run_id for run in await to_thread.run_sync(list_runs)]

    return run_with_client(settings, list_ids)
