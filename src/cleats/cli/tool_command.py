"""Helpers for commands that call one tool, as an agent would, and print the answer for people."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import click
from msgspec.structs import replace

from cleats.cli import completion
from cleats.cli.output import INTERRUPTED_EXIT_CODE, ProgressPrinter, echo_json, is_json_requested, json_option
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings

_REPO_META_KEY: Final = "cleats.repo"
"""The key under which the value of --repo is kept until the PATH argument is resolved."""

repo_option = click.option("--repo", metavar="DIR", help="The repository; that around here without it.")

mode_choice = click.Choice(["all", "code", "prose", "extracted-prose", "records"])


def json_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json to a command, as its last option, and pass it the settings."""
    return json_option(click.pass_obj(command))


def path_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATH to a command; as in the search commands, it may also be given as --repo."""
    repo_alias = click.option(
        "--repo",
        metavar="DIR",
        shell_complete=completion.complete_folders,
        is_eager=True,
        expose_value=False,
        callback=lambda ctx, _option, value: ctx.meta.__setitem__(_REPO_META_KEY, value),
        help="The same as PATH.",
    )
    path_parameter = click.argument(
        "path", required=False, callback=_resolve_path, shell_complete=completion.complete_folders
    )
    return path_parameter(repo_alias(command))


def _resolve_path(ctx: click.Context, _argument: click.Parameter, path: str | None) -> str | None:
    repo: str | None = ctx.meta.get(_REPO_META_KEY)
    if path is not None and repo is not None:
        raise click.UsageError("PATH and --repo are the same; give one of them.")
    return repo if path is None else path


def call_tool(
    settings: Settings, tool: str, flags: Mapping[str, str] | None = None, /, **arguments: Any
) -> dict[str, Any]:
    """Call a tool and return its result; print the error and exit if the call fails.

    Names of options become names of arguments: `dry_run` is `dryRun`. Arguments that are None are
    omitted. Error texts name the flag of an argument instead of its name.
    """
    from cleats.cli.call import run_call  # noqa: PLC0415 - help needs none of these
    from cleats.contract.outcome import Cancelled, Done  # noqa: PLC0415

    present_arguments = {_to_camel_case(name): value for name, value in arguments.items() if value is not None}
    quiet_settings = replace(settings, log_level="error")  # a person wants only the answer
    call_result = run_call(quiet_settings, tool, present_arguments, ProgressPrinter(outside_terminal=False))
    outcome = call_result.outcome
    if isinstance(outcome, Cancelled):
        click.echo("Cancelled.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    if not isinstance(outcome, Done):
        exit_with_error(outcome.error, flags)
    warnings = call_result.call.meta.warnings
    if is_json_requested():
        return {**outcome.result, **({"warnings": warnings} if warnings else {})}
    for warning in warnings:
        click.echo(f"Note: {warning['message']}", err=True)
    return dict(outcome.result)


def _to_camel_case(name: str) -> str:
    first_word, *other_words = name.split("_")
    return first_word + "".join(map(str.title, other_words))


def exit_with_error(error: ToolError, flags: Mapping[str, str] | None = None) -> NoReturn:
    """Print an error and exit with code 2 if the request was invalid, otherwise with 1."""
    if is_json_requested():
        echo_json({"ok": False, "error": error.as_json()})
    else:
        click.echo(f"Error: {replace_argument_names(error.message, flags or {})}", err=True)
        if error.hint:
            click.echo(replace_argument_names(error.hint, flags or {}), err=True)
    sys.exit(2 if error.code is ErrorCode.INVALID_REQUEST else 1)


def replace_argument_names(text: str, flags: Mapping[str, str]) -> str:
    """Replace the names of arguments in a tool's text with the flags of the command line.

    The name of an argument that is also an ordinary word is replaced only at the start of the text.
    """
    for name, flag in flags.items():
        text = re.sub(rf"\A{name}(?=: )", flag, text)
        if not name.islower():
            text = re.sub(rf"(?<![\w/'\"-]){name}(?![\w/'\"-])", flag, text)
    return text
