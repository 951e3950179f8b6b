"""Options of the `cleats contract` commands: the contract to read, and the format of the report."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from cleats.cli.output import UnusableInput
from cleats.contract.compat import (
    RULES,
    ContractReport,
    SnapshotError,
    compare_snapshots,
    explain_rule,
    render_markdown,
    render_sarif,
    render_text,
)

REPORT_FORMATS = ("text", "json", "markdown", "sarif")
LEVEL_COLOURS = {"major": "red", "minor": "yellow", "patch": "cyan", "none": "bright_black"}

CommandFunction: TypeAlias = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractServer:
    """An MCP server other than ours."""

    command: str | None
    url: str | None
    headers: dict[str, str]
    timeout: float
    grace: float

    def take_snapshot(self) -> dict[str, Any]:
        """Read the surface of the server."""
        import anyio  # noqa: PLC0415

        from cleats.transports.mcp import client  # noqa: PLC0415 - imports the SDK

        read_surface = partial(client.read_surface, env=dict(os.environ), **asdict(self))
        try:
            return anyio.run(read_surface)
        except client.ServerFaultError as error:
            raise UnusableInput(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStyle:
    """The format of a report, and the rules that it ignores."""

    shape: str
    ignore: tuple[str, ...]

    def print_report(self, old: Any, new: Any, path: Path) -> ContractReport:
        """Compare two snapshots and print the report about the file at `path`."""
        try:
            report = compare_snapshots(old, new, ignore=self.ignore)
        except SnapshotError as error:
            raise UnusableInput(str(error)) from None
        # Reports for programs are written as bytes, so that they are UTF-8 in every locale.
        text = self._render_report(report, path).rstrip("\n")
        click.echo(text if self.shape == "text" else text.encode())
        return report

    def _render_report(self, report: ContractReport, path: Path) -> str:
        if self.shape == "text":
            return "\n".join(map(_colour_line, render_text(report).splitlines()))
        if self.shape == "markdown":
            return render_markdown(report)
        document = report.as_json() if self.shape == "json" else render_sarif(report, path.as_posix())
        return json.dumps(document, indent=2, ensure_ascii=False)


def with_server_options(action: CommandFunction) -> CommandFunction:
    """Add the options that select the contract; `server` is None for our own and for that of a `toolset`."""

    @click.option("--toolset", metavar="NAME", help="The contract of this installed toolset.")
    @click.option("--server", "command", metavar="COMMAND", help="Start this MCP server, read it.")
    @click.option("--url", metavar="URL", help="Read the MCP server at this address.")
    @click.option("--header", metavar="'NAME: VALUE'", multiple=True, help="Sent to the URL.")
    @click.option("--timeout", default=30.0, show_default=True, help="Seconds that may take.")
    @wraps(action)
    def run_action(
        *args: Any, command: str | None, url: str | None, header: tuple[str, ...], timeout: float, **options: Any
    ) -> None:
        if command is not None and url is not None:
            raise click.UsageError("--server and --url are two servers; give one")
        if command is not None or url is not None:
            _reject_options("what is installed here", "toolset")
        if url is None:
            _reject_options("--url", "header")
        if url is None and command is None:
            _reject_options("--server or --url", "timeout", "lock", "fail_on")
        else:
            _reject_options("our own contract", "against", "against_ref")
        headers, grace = _parse_headers(header), click.get_current_context().obj.grace
        server = ContractServer(command=command, url=url, headers=headers, timeout=timeout, grace=grace)
        action(*args, server=None if command is None and url is None else server, **options)

    return run_action


def with_style_options(action: CommandFunction) -> CommandFunction:
    """Add the options that control the report."""
    format_choice: Any = {"type": click.Choice(REPORT_FORMATS), "default": "text", "show_default": True}
    ignore_help = "Leave this rule out; may be given more than once."

    @click.option("--format", "shape", help="How the report is written.", **format_choice)
    @click.option("--ignore", metavar="RULE", multiple=True, callback=check_rule_names, help=ignore_help)
    @wraps(action)
    def run_action(*args: Any, shape: str, ignore: tuple[str, ...], **options: Any) -> None:
        action(*args, style=ReportStyle(shape=shape, ignore=ignore), **options)

    return run_action


def _reject_options(only_for: str, *names: str) -> None:
    for name in names:
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is only for {only_for}")


def _parse_headers(header_texts: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for text in header_texts:
        name, colon, value = text.partition(":")
        if not colon:
            raise click.UsageError(f"--header takes 'NAME: VALUE', not {text!r}")
        headers[name.strip()] = value.strip()
    return headers


def check_rule_names(_ctx: click.Context, _param: click.Parameter, names: Any) -> Any:
    """Reject the names of rules that do not exist."""
    for name in filter(None, names if isinstance(names, tuple) else [names]):
        if name not in RULES:
            raise click.BadParameter(f"no rule is called {name!r}; see: cleats contract rules")
    return names


def print_rule_explanation(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    """Print the explanation of a rule and exit."""
    if name is not None and not ctx.resilient_parsing:
        click.echo(explain_rule(RULES[check_rule_names(ctx, param, name)]))
        ctx.exit()


def _colour_line(line: str) -> str:
    word = line[2:7].strip() if line.startswith("  ") else ""
    if word in LEVEL_COLOURS:
        return line[:2] + click.style(line[2:7], fg=LEVEL_COLOURS[word], bold=True) + line[7:]
    return line if line.startswith(" ") else click.style(line, bold=True)
