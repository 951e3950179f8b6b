"""Commands that ask one tool: the same call that an agent makes, with an answer for people."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import click

from cleats.cli.printing import asked_for_json, echo_json
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
path_argument = click.argument("path", required=False)


def asked(settings: Settings, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; leaves with a word on stderr when it does not.

    Arguments that are None are left out.
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
        fail(outcome.error)
    warnings = ending.call.meta.warnings
    if asked_for_json():
        return {**outcome.result, **({"warnings": warnings} if warnings else {})}
    for warning in warnings:
        click.echo(f"Note: {warning['message']}", err=True)
    return dict(outcome.result)


def fail(error: ToolError) -> NoReturn:
    """Say what went wrong, and leave: 2 when it was asked wrongly, else 1."""
    if asked_for_json():
        echo_json({"ok": False, "error": error.as_json()})
    else:
        click.echo(f"Error: {error.message}", err=True)
        if error.hint:
            click.echo(error.hint, err=True)
    sys.exit(2 if error.code is ErrorCode.INVALID_REQUEST else 1)


def root_of(answer: Mapping[str, Any]) -> str:
    """The repository of an answer, or of an index whose repository is not known."""
    return answer["root"] or f"{answer['path']} (of an unknown repository)"
