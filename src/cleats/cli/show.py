"""`cleats show`: lines of a file, and what the index has there."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cleats.cli import completing
from cleats.cli.asking import asked, json_option
from cleats.cli.printing import echo_json, heading
from cleats.settings import Settings

_PLACE = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:-(?P<end>\d+))?")

_FLAGS = {
    "repoPath": "--repo",
    "maxBytes": "--max-bytes",
    "startLine": "LINE",
    "endLine": "END",
}


@click.command()
@click.argument("place", metavar="PATH[:LINE[-END]]", shell_complete=completing.files)
@click.option("-C", "--context", type=click.IntRange(0, 10_000), default=0, help="Lines around.")
@click.option("--max-bytes", type=click.IntRange(1), help="Bytes of text at most.")
@click.option("--repo", metavar="DIR", help="The repository; that around here without it.")
@json_option
@click.pass_obj
def show(
    settings: Settings, /, place: str, *, as_json: bool, repo: str | None, **given: Any
) -> None:
    """Show a file of a repository, or some of its lines.

    A LINE alone is shown by itself, with --context around it. PATH is from here, or from the root
    of the repository, as `cleats search` prints it. Files outside of the repository are not shown.

    \b
    Examples:
      cleats show src/app.py:10-40
      cleats show src/app.py:25 -C 5
      cleats show README.md --json

    \b
    Exits 0  when there is something to show,
          1  when there is no such file, or it may not be shown,
          2  when the lines make no sense, or it is no text.
    """  # noqa: D301 - click reads the backspace
    path, start, end = _parsed(place)
    found = asked(
        settings,
        "show_file",
        _FLAGS,
        path=_meant(path, repo),
        startLine=start,
        endLine=end,
        context=given["context"],
        maxBytes=given["max_bytes"],
        repoPath=repo,
    )
    if as_json:
        echo_json(found)
    elif sys.stdout.isatty():
        click.echo(_numbered(found))
    else:
        click.echo(found["text"], nl=False)
    if found["truncated"] and not as_json:
        click.echo(f"... cut after line {found['endLine']:,}; --max-bytes gives more.", err=True)


def _parsed(place: str) -> tuple[str, int | None, int | None]:
    match = _PLACE.fullmatch(place)
    if match is None or Path(place).exists():
        return place, None, None
    start = int(match["start"])
    if not start:
        raise click.UsageError("Lines are counted from 1.")
    return match["path"], start, int(match["end"] or start)


def _meant(path: str, repo: str | None) -> str:
    """The path as the tool takes it: one from here becomes absolute."""
    here = Path.cwd() / path
    return str(here) if repo is None and here.exists() else path


def _numbered(found: Mapping[str, Any]) -> str:
    first, last = found["startLine"], found["endLine"]
    room = len(str(last))
    of = f"{found['path']}:{first}-{last} of {found['totalLines']:,} lines"
    lines = found["text"].splitlines()
    return "\n".join(
        [heading(of), *(f"{first + at:>{room}}  {line}" for at, line in enumerate(lines))]
    )
