"""`cleats artifacts`: what the indexes of this machine cost."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cleats.cli.asking import asked, json_option, path_argument, root_of
from cleats.cli.printing import columns, echo_json, heading, size
from cleats.settings import Settings


@click.command()
@path_argument
@json_option
@click.pass_obj
def artifacts(settings: Settings, path: str | None, *, as_json: bool) -> None:
    """Say what the index of the repository around PATH is made of, and what all indexes cost.

    \b
    Examples:
      cleats artifacts
      cleats artifacts ~/src/app --json

    \b
    Exits 0  when the index is whole and up to date,
          1  when something is to be done about it; it says what,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace
    found = asked(settings, "report_artifacts", repoPath=path)
    if as_json:
        echo_json(found)
    else:
        click.echo("\n".join(_lines(found)))
    sys.exit(1 if found["health"]["issues"] else 0)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    repo, health, overall = found["repo"], found["health"], found["overall"]
    yield heading(repo["root"])
    rows = [(kind, size(count)) for kind, count in repo["artifacts"].items() if count]
    yield columns([("index", repo["cacheRoot"]), *rows, ("total", size(repo["totalBytes"]))])
    for line in (*(issue["message"] for issue in health["issues"]), *health["hints"]):
        yield f"  {line}"
    yield heading(f"{overall['cacheRoot']}: {size(overall['totalBytes'])}")
    listed = [
        (size(each["bytes"]), (each["publishedAt"] or "")[:10], _of(each))
        for each in found["allRepos"]
    ]
    yield columns(listed) if listed else "  no indexes"


def _of(each: Mapping[str, Any]) -> str:
    gone = "" if each["rootExists"] or not each["root"] else " (does not exist any more)"
    return root_of(each) + gone
