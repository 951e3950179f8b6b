"""`cleats workspace`: the repositories that a file names, and what can be searched in them."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from cleats.cli import completing
from cleats.cli.asking import asked, json_option
from cleats.cli.printing import columns, echo_json, heading
from cleats.settings import Settings


@click.command()
@click.argument("file", shell_complete=completing.files)
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
    found = asked(settings, "workspace_status", workspacePath=file)
    if as_json:
        echo_json(found)
    else:
        click.echo(heading(f"{found['name']} ({found['workspacePath']})"))
        rows = [(each["alias"], _state(each), each["root"]) for each in found["repos"]]
        click.echo(columns(rows) if rows else "  no repositories")
    sys.exit(0 if found["ready"] else 1)


def _state(each: Mapping[str, Any]) -> str:
    if not each["enabled"]:
        return "off"
    if not each["exists"]:
        return "does not exist"
    if each["signature"] is None:
        return "no index"
    return f"{sum(mode['chunks'] for mode in each['modes'].values()):,} pieces"
