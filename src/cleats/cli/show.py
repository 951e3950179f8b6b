"""The `cleats show` command: lines of a file and the indexed chunks there."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cleats.cli import completion
from cleats.cli.output import echo_json, is_json_requested, style_heading
from cleats.cli.tool_command import call_tool, json_command, repo_option
from cleats.settings import Settings

_LOCATION_PATTERN = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:-(?P<end>\d+))?")

_ARGUMENT_FLAGS = {"repoPath": "--repo", "maxBytes": "--max-bytes", "startLine": "LINE", "endLine": "END"}


@click.command()
@click.argument("place", metavar="PATH[:LINE[-END]]", shell_complete=completion.complete_files)
@click.option("-C", "--context", type=click.IntRange(0, 10_000), default=0, help="Lines around.")
@click.option("--max-bytes", type=click.IntRange(1), help="Bytes of text at most.")
@repo_option
@json_command
def show(settings: Settings, /, place: str, *, repo: str | None, **option_values: Any) -> None:
    """Show a file of a repository, or some of its lines.

    A LINE alone is shown by itself, with --context around it. PATH is from here, or from the root
    of the repository, as `cleats search` prints it. Files outside of the repository are not shown.

    Examples:
      cleats show src/app.py:10-40
      cleats show src/app.py:25 -C 5
      cleats show README.md --json

    Exits 0  when there is something to show,
          1  when there is no such file, or it may not be shown,
          2  when the lines make no sense, or it is no text.
    """
    path, start, end = _parse_location(place)
    location = {"path": _resolve_path(path, repo), "startLine": start, "endLine": end, "repoPath": repo}
    answer = call_tool(settings, "show_file", _ARGUMENT_FLAGS, **location, **option_values)
    if is_json_requested():
        echo_json(answer)
        return
    if sys.stdout.isatty():
        click.echo(_number_lines(answer))
    else:
        click.echo(answer["text"], nl=False)
    if answer["truncated"]:
        click.echo(f"... cut after line {answer['endLine']:,}; --max-bytes gives more.", err=True)


def _parse_location(location: str) -> tuple[str, int | None, int | None]:
    match = _LOCATION_PATTERN.fullmatch(location)
    if match is None or Path(location).exists():
        return location, None, None
    start = int(match["start"])
    if not start:
        raise click.UsageError("Lines are counted from 1.")
    return match["path"], start, int(match["end"] or start)


def _resolve_path(path: str, repo: str | None) -> str:
    """Return the path for the tool; a path that exists in the current folder becomes absolute."""
    local_path = Path.cwd() / path
    return str(local_path) if repo is None and local_path.exists() else path


def _number_lines(answer: Mapping[str, Any]) -> str:
    first, last = answer["startLine"], answer["endLine"]
    digits = len(str(last))
    title = f"{answer['path']}:{first}-{last} of {answer['totalLines']:,} lines"
    lines = answer["text"].splitlines()
    return "\n".join(
        [style_heading(title), *(f"{first + offset:>{digits}}  {line}" for offset, line in enumerate(lines))]
    )
