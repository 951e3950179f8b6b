"""The `cleats workspace` command: the repositories of a workspace file and their indexes."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from cleats.cli import completion
from cleats.cli.output import echo_json, format_columns, style_heading
from cleats.cli.tool_command import call_tool, json_option
from cleats.settings import Settings


@click.command()
@click.argument("file", shell_complete=completion.complete_files)
@json_option
@click.pass_obj
def workspace(settings: Settings, file: str, *, as_json: bool) -> None:
    """Show the repositories of the workspace FILE, and whether they can be searched.

    \b
    A workspace is JSON, with comments if you like:
      {"schemaVersion": 1, "repos": [{"root": "../app"}, {"root": "../lib", "alias": "lib"}]}

    \b
    Examples:
      cleats workspace all.jsonc
      cleats search "parse" --workspace all.jsonc

    \b
    Exits 0  when every repository that is enabled can be searched,
          1  when one cannot, or there is no such file,
          2  when the file is no workspace.
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(settings, "workspace_status", workspacePath=file)
    if as_json:
        echo_json(answer)
    else:
        click.echo(style_heading(f"{answer['name']} ({answer['workspacePath']})"))
        rows = [(repo["alias"], _describe_state(repo), repo["root"]) for repo in answer["repos"]]
        click.echo(format_columns(rows) if rows else "  no repositories")
    sys.exit(0 if answer["ready"] else 1)


def _describe_state(repo: Mapping[str, Any]) -> str:
    if not repo["enabled"]:
        return "off"
    if not repo["exists"]:
        return "does not exist"
    if repo["signature"] is None:
        return "no index"
    return f"{sum(mode['chunks'] for mode in repo['modes'].values()):,} pieces"
