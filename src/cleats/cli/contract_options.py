"""What the `cleats contract` commands take: whose contract it is, and how a report is written."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from cleats.contract.compat import (
    RULES,
    Report,
    SnapshotError,
    compare,
    explain,
    markdown,
    render,
    sarif,
)

FORMATS = ("text", "json", "markdown", "sarif")
COLOURS = {"major": "red", "minor": "yellow", "patch": "cyan", "none": "bright_black"}

Command: TypeAlias = Callable[..., None]


class CannotRunError(click.ClickException):
    """Raised when there is nothing to compare; a contract problem has exit code 1 instead."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is not ours."""

    command: str | None
    url: str | None
    headers: dict[str, str]
    timeout: float
    grace: float

    def snapshot(self) -> dict[str, Any]:
        """Read its surface."""
        import anyio  # noqa: PLC0415

        from cleats.transports.mcp import client  # noqa: PLC0415 - imports the SDK

        async def read() -> dict[str, Any]:
            return await client.surface(
                command=self.command,
                url=self.url,
                env=dict(os.environ),
                headers=self.headers,
                timeout=self.timeout,
                grace=self.grace,
            )

        try:
            return anyio.run(read)
        except client.ServerFaultError as error:
            raise CannotRunError(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a report is written, and what is left out of it."""

    shape: str
    ignore: tuple[str, ...]

    def report(self, old: Any, new: Any, path: Path) -> Report:
        """Compare two snapshots and print the report; `path` is the file it is about."""
        try:
            report = compare(old, new, ignore=self.ignore)
        except SnapshotError as error:
            raise CannotRunError(str(error)) from None
        # As bytes when it is for a machine: UTF-8 whatever the locale says.
        written = self._written(report, path).rstrip("\n")
        click.echo(written if self.shape == "text" else written.encode())
        return report

    def _written(self, report: Report, path: Path) -> str:
        match self.shape:
            case "json":
                return json.dumps(report.as_json(), indent=2, ensure_ascii=False)
            case "markdown":
                return markdown(report)
            case "sarif":
                return json.dumps(sarif(report, path.as_posix()), indent=2, ensure_ascii=False)
            case _:
                return "\n".join(map(_coloured, render(report).splitlines()))


def takes_server(action: Command) -> Command:
    """Add the options that say whose contract it is.

    `server` is None for our own, and for that of `toolset` when this is given.
    """

    @click.option("--toolset", metavar="NAME", help="The contract of this installed toolset.")
    @click.option("--server", "command", metavar="COMMAND", help="Start this MCP server, read it.")
    @click.option("--url", metavar="URL", help="Read the MCP server at this address.")
    @click.option("--header", metavar="'NAME: VALUE'", multiple=True, help="Sent to the URL.")
    @click.option("--timeout", default=30.0, show_default=True, help="Seconds that may take.")
    @wraps(action)
    def wrapped(
        *args: Any,
        command: str | None,
        url: str | None,
        header: tuple[str, ...],
        timeout: float,
        **options: Any,
    ) -> None:
        if command is not None and url is not None:
            raise click.UsageError("--server and --url are two servers; give one")
        if command is not None or url is not None:
            _refuse("what is installed here", "toolset")
        if url is None:
            _refuse("--url", "header")
        if url is None and command is None:
            _refuse("--server or --url", "timeout", "lock", "fail_on")
        else:
            _refuse("our own contract", "against", "against_ref")
        server = Server(
            command=command,
            url=url,
            headers=_headers(header),
            timeout=timeout,
            grace=click.get_current_context().obj.grace,
        )
        action(*args, server=None if command is None and url is None else server, **options)

    return wrapped


def takes_style(action: Command) -> Command:
    """Add the options about the report."""

    @click.option(
        "--format",
        "shape",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="How the report is written.",
    )
    @click.option(
        "--ignore",
        metavar="RULE",
        multiple=True,
        callback=known_rules,
        help="Leave this rule out; may be given more than once.",
    )
    @wraps(action)
    def wrapped(*args: Any, shape: str, ignore: tuple[str, ...], **options: Any) -> None:
        action(*args, style=Style(shape=shape, ignore=ignore), **options)

    return wrapped


def _refuse(only_for: str, *names: str) -> None:
    """Refuse options that would do nothing here."""
    ctx = click.get_current_context()
    for name in names:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is only for {only_for}")


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon:
            raise click.UsageError(f"--header takes 'NAME: VALUE', not {text!r}")
        headers[name.strip()] = value.strip()
    return headers


def known_rules(_ctx: click.Context, _param: click.Parameter, names: Any) -> Any:
    for name in filter(None, names if isinstance(names, tuple) else [names]):
        if name not in RULES:
            raise click.BadParameter(f"no rule is called {name!r}; see: cleats contract rules")
    return names


def explained(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is not None and not ctx.resilient_parsing:
        click.echo(explain(RULES[known_rules(ctx, param, name)]))
        ctx.exit()


def _coloured(line: str) -> str:
    word = line[2:7].strip() if line.startswith("  ") else ""
    if word in COLOURS:
        return line[:2] + click.style(line[2:7], fg=COLOURS[word], bold=True) + line[7:]
    return line if line.startswith(" ") else click.style(line, bold=True)
