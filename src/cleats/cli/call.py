"""The `cleats call` command: a surface for one call by one person."""

import re
import sys
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from cleats.cli import tool_command
from cleats.cli.output import ProgressPrinter
from cleats.settings import Settings
from cleats.transports.jsonrpc import InvalidJsonError, decode_json


@click.command()
@click.argument("tool", shell_complete=tool_command.complete_tools)
@click.argument("json_text", default="{}", metavar="[JSON]")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="Set one argument.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, also in a terminal.")
@click.option("-v", "--verbose", count=True, help="Show the log of the call; -vv shows debug messages too.")
@click.pass_obj
def call(settings: Settings, tool: str, json_text: str, *, pairs: tuple[str, ...], as_json: bool, verbose: int) -> None:
    """Call TOOL the way an agent does and print the answer.

    JSON is an object with the arguments; `-` reads it from stdin, `@FILE` from a file. Each --arg adds one
    argument; VALUE is parsed as JSON if possible and is text otherwise.

    Examples:
      cleats call check_status
      cleats call search '{"query": "parse config", "top": 5}'
      cleats call search --arg query="parse config" --arg top=5
      cleats call search @query.json | jq .result

    The answer goes to stdout, progress and warnings to stderr. Ctrl-C cancels the call.

    Exits 0  if the tool succeeded,
          1  if it failed, timed out or was cancelled,
          2  if it was not run: unknown tool or invalid arguments.
    """
    from cleats.cli.call_runner import render_result, run_call, suggest_next_step  # noqa: PLC0415 - help needs none of these
    from cleats.contract.outcome import Rejected  # noqa: PLC0415

    arguments = {**_parse_arguments(json_text), **dict(map(_parse_pair, pairs))}
    # A person wants the answer, not a log line per call.
    quiet_level = "error" if settings.log_level == "error" else "warning"
    settings = structs.replace(settings, log_level=(quiet_level, "info", "debug")[min(verbose, 2)])
    result = run_call(settings, tool, arguments, ProgressPrinter(), show_traces=bool(verbose))

    ok, text = render_result(result, as_json=as_json)
    click.echo(text, nl=False)
    for line in suggest_next_step(result, verbose=verbose):
        click.echo(line, err=True)
    sys.exit(2 if isinstance(result.outcome, Rejected) else int(not ok))


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        if text == "-":
            raw = sys.stdin.buffer.read()
        elif text.startswith("@"):
            raw = Path(text[1:]).read_bytes()
        else:
            raw = text.encode(errors="surrogateescape")
        value = decode_json(raw)
    except OSError as error:
        raise click.UsageError(f"{text[1:]}: {error.strerror}") from None
    except InvalidJsonError as error:
        hint = " Use --arg for NAME=VALUE." if re.match(r"\w+=", text) else ""
        raise click.UsageError(f"The arguments are not valid JSON: {error}.{hint}") from None
    if not isinstance(value, dict):
        raise click.UsageError('The arguments must be a JSON object, such as {"name": "value"}.')
    return value


def _parse_pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--arg takes NAME=VALUE, not {text!r}.")
    try:
        return name, decode_json(value.encode(errors="surrogateescape"))
    except InvalidJsonError:
        return name, value
