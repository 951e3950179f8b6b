"""The `cleats sqlite` command: build and compact the SQLite files of an index."""

from collections.abc import Mapping
from typing import Any

import click

from cleats.cli.output import echo_json, format_bytes
from cleats.cli.tool_command import call_tool, json_option, path_argument
from cleats.settings import Settings

_mode_option = click.option(
    "--mode",
    type=click.Choice(["all", "code", "prose", "extracted-prose", "records"]),
    default="all",
    show_default=True,
    help="What the index must have; one file holds all modes.",
)


@click.group()
def sqlite() -> None:
    """Make the SQLite full-text index of a repository, or pack its SQLite files.

    \b
    Examples:
      cleats sqlite build               for `cleats search --backend sqlite-fts`
      cleats sqlite compact --dry-run   how much packing would gain

    \b
    Exits 0  when it is done,
          1  when there is no index, or it could not be done; the earlier one still answers,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace


@sqlite.command()
@path_argument
@_mode_option
@click.option("--incremental", is_flag=True, help="Do nothing when it is there already.")
@click.option("--compact", is_flag=True, help="Also pack.")
@json_option
@click.pass_obj
def build(settings: Settings, /, path: str | None, *, as_json: bool, **option_values: Any) -> None:
    """Add the full-text index of SQLite to an index.

    It is that of the repository around PATH.

    \b
    Examples:
      cleats sqlite build
      cleats search parse --backend sqlite-fts
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(settings, "build_sqlite_index", repoPath=path, **option_values)
    if as_json:
        echo_json(answer)
    else:
        verb = "made" if answer["published"] else "is there already"
        click.echo(f"{answer['outPath']} {verb}: {format_bytes(answer['bytes'])}, {_format_chunk_count(answer)}.")


@sqlite.command()
@path_argument
@_mode_option
@click.option("--dry-run", is_flag=True, help="Measure what it would gain, change nothing.")
@click.option("--keep-backup", is_flag=True, help="Keep the files as they were.")
@json_option
@click.pass_obj
def compact(
    settings: Settings,
    path: str | None,
    *,
    mode: str,
    dry_run: bool,
    keep_backup: bool,
    as_json: bool,
) -> None:
    """Pack the SQLite files of the index of the repository around PATH.

    \b
    Examples:
      cleats sqlite compact --dry-run
      cleats sqlite compact ~/src/app
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(
        settings,
        "compact_sqlite_index",
        repoPath=path,
        mode=mode,
        dryRun=dry_run,
        keepBackup=keep_backup,
    )
    if as_json:
        echo_json(answer)
        return
    before, after = answer["beforeBytes"]["total"], answer["afterBytes"]["total"]
    would = "would be" if dry_run else "is"
    click.echo(
        f"{answer['repoPath']}: {format_bytes(before)} {would} {format_bytes(after)}, {_format_chunk_count(answer)}."
        if answer["freedBytes"]
        else f"{answer['repoPath']}: {format_bytes(before)}, nothing to gain."
    )
    if answer["backupPath"]:
        click.echo(f"As it was: {answer['backupPath']}")


def _format_chunk_count(answer: Mapping[str, Any]) -> str:
    return f"{answer['chunks']:,} pieces"
