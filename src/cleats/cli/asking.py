"""Commands that ask one tool: the same call that an agent makes, with an answer for people."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import click
from msgspec.structs import replace

from cleats.cli import completing
from cleats.cli.printing import asked_for_json, echo_json
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
_REPO: Final = "cleats.repo"
"""Where the value of --repo waits for the argument that it stands for."""


def path_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """PATH, which may be given as --repo too, as it is to the commands that search."""
    named = click.option(
        "--repo",
        metavar="DIR",
        shell_complete=completing.folders,
        is_eager=True,
        expose_value=False,
        callback=lambda ctx, _option, value: ctx.meta.__setitem__(_REPO, value),
        help="The same as PATH.",
    )
    path = click.argument(
        "path", required=False, callback=_meant, shell_complete=completing.folders
    )
    return path(named(command))


def _meant(ctx: click.Context, _argument: click.Parameter, path: str | None) -> str | None:
    named: str | None = ctx.meta.get(_REPO)
    if path is not None and named is not None:
        raise click.UsageError("PATH and --repo are the same; give one of them.")
    return named if path is None else path


def asked(
    settings: Settings, tool: str, flags: Mapping[str, str] | None = None, /, **arguments: Any
) -> dict[str, Any]:
    """What a tool answers; leaves with a word on stderr when it does not.

    Arguments that are None are left out. What is said of one is said of its flag.
    """
    from cleats.cli.call import Ticker, run  # noqa: PLC0415 - help needs none of these
    from cleats.contract.outcome import Cancelled, Done  # noqa: PLC0415

    given = {name: value for name, value in arguments.items() if value is not None}
    quiet = replace(settings, log_level="error")  # a person wants the answer alone
    ending = run(quiet, tool, given, Ticker(elsewhere=False))
    outcome = ending.outcome
    if isinstance(outcome, Cancelled):
        click.echo("Cancelled.", err=True)
        sys.exit(INTERRUPTED)
    if not isinstance(outcome, Done):
        fail(outcome.error, flags)
    warnings = ending.call.meta.warnings
    if asked_for_json():
        return {**outcome.result, **({"warnings": warnings} if warnings else {})}
    for warning in warnings:
        click.echo(f"Note: {warning['message']}", err=True)
    return dict(outcome.result)


def fail(error: ToolError, flags: Mapping[str, str] | None = None) -> NoReturn:
    """Say what went wrong, and leave: 2 when it was asked wrongly, else 1."""
    if asked_for_json():
        echo_json({"ok": False, "error": error.as_json()})
    else:
        click.echo(f"Error: {worded(error.message, flags or {})}", err=True)
        if error.hint:
            click.echo(worded(error.hint, flags or {}), err=True)
    sys.exit(2 if error.code is ErrorCode.INVALID_REQUEST else 1)


def worded(text: str, flags: Mapping[str, str]) -> str:
    """A text of a tool with the flags of the command line for the names of its arguments.

    An argument that is called like a word of the language is one only where a text begins with it.
    """
    for name, flag in flags.items():
        text = re.sub(rf"\A{name}(?=: )", flag, text)
        if not name.islower():
            text = re.sub(rf"(?<![\w/'\"-]){name}(?![\w/'\"-])", flag, text)
    return text


def root_of(answer: Mapping[str, Any]) -> str:
    """The repository of an answer, or of an index whose repository is not known."""
    return answer["root"] or f"{answer['path']} (of an unknown repository)"
