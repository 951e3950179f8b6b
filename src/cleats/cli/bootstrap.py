"""The `cleats bootstrap` command: run every step that makes a repository searchable."""

from collections.abc import Mapping
from typing import Any

import click

from cleats.cli.output import echo_json, format_columns, style_heading
from cleats.cli.tool_command import call_tool, json_option, path_argument
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
def bootstrap(settings: Settings, /, path: str | None, *, as_json: bool, **option_values: Any) -> None:
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
    tool_arguments = {_to_camel_case(name): value for name, value in option_values.items()}
    answer = call_tool(settings, "bootstrap", repoPath=path, **tool_arguments)
    if as_json:
        echo_json(answer)
        return
    click.echo(style_heading(answer["repoPath"]))
    click.echo(format_columns([(name, *_describe_step(step)) for name, step in answer["steps"].items()]))


def _to_camel_case(name: str) -> str:
    first_word, *other_words = name.split("_")
    return first_word + "".join(map(str.title, other_words))


def _describe_step(step: Mapping[str, Any]) -> tuple[str, str]:
    if step["skipped"]:
        return "skipped", step["reason"]
    if "generation" in step:
        chunk_count = sum(step["chunks"].values())
        return "done", f"{step['files']:,} files, {chunk_count:,} pieces"
    missing = ", ".join(tool["name"] for tool in step.get("missing", ()))
    return "done", f"missing: {missing}" if missing else ""
