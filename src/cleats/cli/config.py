"""The `cleats config` command: the effective settings and their consequences."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cleats.cli.output import echo_json, format_columns, style_heading
from cleats.cli.tool_command import call_tool, json_option, path_argument
from cleats.settings import Settings


@click.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="Every setting, not only the changed ones.")
@json_option
@click.pass_obj
def config(settings: Settings, path: str | None, *, everything: bool, as_json: bool) -> None:
    """Show the settings that count for the repository around PATH, and what is missing.

    \b
    Examples:
      cleats config
      cleats config --all
      cleats config ~/src/app --json

    \b
    Exits 0  when nothing is missing,
          1  when something is,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace
    status = call_tool(settings, "config_status", repoPath=path)
    status["config"]["settings"]["log_level"] = settings.log_level  # a command logs less
    if as_json:
        echo_json(status)
    else:
        click.echo("\n".join(_render_status(status, everything=everything)))
    sys.exit(1 if status["warnings"] else 0)


def _render_status(status: Mapping[str, Any], *, everything: bool) -> Iterator[str]:
    config, cache = status["config"], status["cache"]
    yield style_heading(status["repoPath"])
    yield format_columns(
        [
            ("index", f"{cache['index']}, in {config['repoCacheRoot']}"),
            ("sqlite", config["sqlite"]["path"] or "none"),
            ("cache", config["cacheRoot"]),
            ("data", config["dataRoot"]),
        ]
    )
    shown_settings = config["settings"] if everything else _select_changed(config["settings"])
    if shown_settings:
        yield style_heading("Settings")
        yield format_columns([(name, _format_value(value)) for name, value in shown_settings.items()])
    if status["warnings"]:
        yield style_heading("Missing")
        yield format_columns([(warning["code"], warning["message"]) for warning in status["warnings"]])


def _select_changed(values: Mapping[str, Any]) -> dict[str, Any]:
    from cleats.settings import list_setting_rows  # noqa: PLC0415 - help needs no table

    defaults = {row.name: row.default for row in list_setting_rows()}
    return {name: value for name, value in values.items() if _format_value(value) not in ("", defaults[name])}


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items())
    return ",".join(value) if isinstance(value, list) else str(value)
