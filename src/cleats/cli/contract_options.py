"""Options of the `cleats contract` commands: the contract to read, and the format of the report."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from cleats.cli.contract_config import ContractServer, load_config
from cleats.cli.output import UnusableInput
from cleats.contract.compat import (
    RULES,
    BumpLevel,
    ContractPolicy,
    ContractReport,
    SnapshotError,
    render_markdown,
    render_sarif,
    render_text,
)
from cleats.contract.compat.ci_report import render_annotations, render_junit
from cleats.system.contract_comparison import compare_bounded

REPORT_FORMATS = ("text", "json", "markdown", "sarif", "junit", "github")
LEVEL_COLOURS = {"major": "red", "minor": "yellow", "patch": "cyan", "none": "bright_black"}

CommandFunction: TypeAlias = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStyle:
    """The format of a report, and the policy by which changes are judged."""

    shape: str
    policy: ContractPolicy
    fail_on: BumpLevel = BumpLevel.MAJOR
    """The level from which a finding is a failed case in JUnit."""

    def print_report(self, old: Any, new: Any, path: Path) -> ContractReport:
        """Compare two snapshots and print the report about the file at `path`."""
        try:
            report = compare_bounded(old, new, self.policy)
        except SnapshotError as error:
            raise UnusableInput(f"{path}: {error}") from None
        # Reports for programs are written as bytes, so that they are UTF-8 in every locale.
        text = self._render_report(report, path).rstrip("\n")
        if text:
            click.echo(text if self.shape == "text" else text.encode())
        return report

    def _render_report(self, report: ContractReport, path: Path) -> str:
        file_text = path.read_text("utf-8") if path.is_file() else ""
        match self.shape:
            case "text":
                return "\n".join(map(_colour_line, render_text(report).splitlines()))
            case "markdown":
                return render_markdown(report)
            case "junit":
                return render_junit(report, self.fail_on)
            case "github":
                return render_annotations(report, path.as_posix(), file_text)
        is_json = self.shape == "json"
        document = report.as_json() if is_json else render_sarif(report, path.as_posix(), file_text)
        return json.dumps(document, indent=2, ensure_ascii=False)


def with_server_options(action: CommandFunction) -> CommandFunction:
    """Add the options that select the contract; `server` is None for our own and for that of a `toolset`."""

    @click.option("--toolset", metavar="NAME", help="Name of an installed toolset.")
    @click.option("--server", "command", metavar="COMMAND", help="Start this MCP server and read its contract.")
    @click.option("--url", metavar="URL", help="Read the MCP server at this address.")
    @click.option(
        "--header",
        metavar="'NAME: VALUE'",
        multiple=True,
        help="Header to send to the URL; repeatable.",
    )
    @click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for the server.")
    @wraps(action)
    def run_action(
        *args: Any, command: str | None, url: str | None, header: tuple[str, ...], timeout: float, **options: Any
    ) -> None:
        if command is not None and url is not None:
            raise click.UsageError("--server and --url name two servers; give one of them")
        if command is not None or url is not None:
            reject_options("what is installed here", "toolset")
        if url is None:
            reject_options("--url", "header")
        if url is None and command is None:
            reject_options("--server or --url", "timeout", "lock")
        else:
            reject_options("our own contract", "against")
        headers, grace = _parse_headers(header), click.get_current_context().obj.grace
        server = ContractServer(command=command, url=url, headers=headers, timeout=timeout, grace=grace)
        action(*args, server=None if command is None and url is None else server, **options)

    return run_action


def with_style_options(action: CommandFunction) -> CommandFunction:
    """Add the options that control the report."""
    format_choice: Any = {"type": click.Choice(REPORT_FORMATS), "default": "text", "show_default": True}
    config_help = "Read rules and servers from this file. [default: cleats-contract.toml, if it exists]"
    ignore_help = "Ignore this rule; repeatable."

    @click.option("--format", "shape", help="Format of the report.", **format_choice)
    @click.option("--ignore", metavar="RULE", multiple=True, callback=check_rule_names, help=ignore_help)
    @click.option(
        "--strict", is_flag=True, help="Use the strict rules, which can count an optional addition as breaking."
    )
    @click.option("--config", "config_path", type=click.Path(path_type=Path), help=config_help)
    @wraps(action)
    def run_action(
        *args: Any, shape: str, ignore: tuple[str, ...], strict: bool, config_path: Path | None, **options: Any
    ) -> None:
        config = load_config(config_path)
        policy = config.build_policy()
        levels = {**policy.levels, **dict.fromkeys(ignore, BumpLevel.NONE)}
        policy = replace(policy, levels=levels, strict=policy.strict or strict)
        action(*args, style=ReportStyle(shape=shape, policy=policy), config=config, **options)

    return run_action


def reject_options(only_for: str, *names: str) -> None:
    """Reject options of the command line that would have no effect."""
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
            raise click.BadParameter(f"unknown rule {name!r}; list them with: cleats contract rules")
    return names


def _colour_line(line: str) -> str:
    word = line[2:7].strip() if line.startswith("  ") else ""
    if word in LEVEL_COLOURS:
        return line[:2] + click.style(line[2:7], fg=LEVEL_COLOURS[word], bold=True) + line[7:]
    return line if line.startswith(" ") else click.style(line, bold=True)
