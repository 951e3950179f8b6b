"""`cleats bootstrap`: everything that makes a repository searchable."""

from collections.abc import Mapping
from typing import Any

import click

from cleats.cli.asking import asked, json_option, path_argument
from cleats.cli.printing import columns, echo_json, heading
from cleats.settings import Settings


@click.command()
@path_argument
@click.option("--skip-install", is_flag=True, help="Nothing is ever installed.")
@click.option("--skip-dicts", is_flag=True, help="Leave the dictionaries alone.")
@click.option("--skip-index", is_flag=True, help="Build nothing.")
@click.option("--skip-artifacts", is_flag=True, help="Do not begin from ci-artifacts.")
@click.option("--skip-tooling", is_flag=True, help="Do not look for tools.")
@click.option("--with-sqlite", is_flag=True, help="Also make the SQLite index.")
@click.option("--incremental", is_flag=True, help="Read only what has changed.")
@json_option
@click.pass_obj
def bootstrap(settings: Settings, /, path: str | None, *, as_json: bool, **given: Any) -> None:
    """Make the repository around PATH searchable, step by step.

    Nothing of the repository is run, and nothing is installed.

    \b
    Examples:
      cleats bootstrap
      cleats bootstrap ~/src/app --with-sqlite

    \b
    Exits 0  when every step is done or skipped,
          1  when one could not be done,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace
    named = {_camel(name): value for name, value in given.items()}
    found = asked(settings, "bootstrap", repoPath=path, **named)
    if as_json:
        echo_json(found)
        return
    click.echo(heading(found["repoPath"]))
    click.echo(columns([(name, *_told(step)) for name, step in found["steps"].items()]))


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _told(step: Mapping[str, Any]) -> tuple[str, str]:
    if step["skipped"]:
        return "skipped", step["reason"]
    if "generation" in step:
        pieces = sum(step["chunks"].values())
        return "done", f"{step['files']:,} files, {pieces:,} pieces"
    missing = ", ".join(each["name"] for each in step.get("missing", ()))
    return "done", f"missing: {missing}" if missing else ""
