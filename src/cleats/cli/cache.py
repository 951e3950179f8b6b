"""The `cleats cache` command: shrink the index cache, or remove indexes from it."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from cleats.cli.output import echo_json, format_bytes, format_columns, style_heading
from cleats.cli.tool_command import call_tool, describe_root, json_option, path_argument
from cleats.settings import Settings

_dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")


@click.group()
def cache() -> None:
    """Make the cache of indexes smaller, or remove indexes from it.

    What somebody reads or builds stays. Whatever is removed can be built again.

    \b
    Examples:
      cleats cache gc                    what nobody needs any more
      cleats cache gc --max-gb 5         whole indexes, the oldest first, until the rest fits
      cleats cache clean --dry-run       what the index of this repository takes
      cleats cache clean --all           the indexes of every repository

    \b
    Exits 0  when all that was meant is gone,
          1  when something is still there,
          2  when nothing may be removed here.
    """  # noqa: D301 - click reads the backspace


@cache.command()
@_dry_run_option
@click.option("--max-bytes", type=click.IntRange(0), help="Keep so many bytes at most.")
@click.option("--max-gb", type=click.FloatRange(0), help="Keep so many GiB at most.")
@click.option("--max-age-days", type=click.FloatRange(0), help="Keep what is not older.")
@click.option("--repo", metavar="DIR", help="Look only at the index of this repository.")
@json_option
@click.pass_obj
def gc(settings: Settings, /, *, dry_run: bool, as_json: bool, **option_values: Any) -> None:
    """Remove what nobody needs any more.

    That is what builds have left. With a limit whole indexes go too, the oldest first.

    \b
    Examples:
      cleats cache gc
      cleats cache gc --max-gb 5 --dry-run
      cleats cache gc --max-age-days 90
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(
        settings,
        "cache_gc",
        dryRun=dry_run,
        maxBytes=option_values["max_bytes"],
        maxGb=option_values["max_gb"],
        maxAgeDays=option_values["max_age_days"],
        repoPath=option_values["repo"],
    )
    removed_rows = [
        (format_bytes(removal["bytes"]), removal["reason"], _describe_target(removal)) for removal in answer["removals"]
    ]
    _print_and_exit(answer, removed_rows, answer["failedRemovals"], as_json=as_json)


@cache.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="The indexes of every repository.")
@_dry_run_option
@json_option
@click.pass_obj
def clean(settings: Settings, path: str | None, *, everything: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the index of the repository around PATH, or all indexes.

    Models, dictionaries, extensions and records stay.

    \b
    Examples:
      cleats cache clean
      cleats cache clean ~/src/app --dry-run
      cleats cache clean --all
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(settings, "clean_artifacts", all=everything or None, dryRun=dry_run, repoPath=path)
    failures = [target for target in answer["targets"] if "problem" in target]
    removed_rows = [
        (format_bytes(target["bytes"]), "index", _describe_target(target))
        for target in answer["targets"]
        if "problem" not in target
    ]
    _print_and_exit(answer, removed_rows, failures, as_json=as_json)


def _describe_target(target: Mapping[str, Any]) -> str:
    return f"{describe_root(target)}: {target['path']}"


def _print_and_exit(
    answer: Mapping[str, Any],
    removed_rows: list[tuple[str, str, str]],
    failures: Iterable[Mapping[str, Any]],
    *,
    as_json: bool,
) -> None:
    failure_lines = [f"  {describe_root(failure)} stays: {failure['problem']}." for failure in failures]
    if as_json:
        echo_json(answer)
    else:
        if removed_rows:
            click.echo(format_columns(removed_rows))
        freed = format_bytes(answer["freedBytes"])
        click.echo(f"{freed} would be freed." if answer["dryRun"] else f"{freed} freed.")
        for line in failure_lines:
            click.echo(line, err=True)
    sys.exit(1 if failure_lines else 0)


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
    report = call_tool(settings, "report_artifacts", repoPath=path)
    if as_json:
        echo_json(report)
    else:
        click.echo("\n".join(_render_report(report)))
    sys.exit(1 if report["health"]["issues"] else 0)


def _render_report(report: Mapping[str, Any]) -> Iterator[str]:
    repo, health, overall = report["repo"], report["health"], report["overall"]
    yield style_heading(repo["root"])
    rows = [(kind, format_bytes(count)) for kind, count in repo["artifacts"].items() if count]
    yield format_columns([("index", repo["cacheRoot"]), *rows, ("total", format_bytes(repo["totalBytes"]))])
    for line in (*(issue["message"] for issue in health["issues"]), *health["hints"]):
        yield f"  {line}"
    yield style_heading(f"{overall['cacheRoot']}: {format_bytes(overall['totalBytes'])}")
    index_rows = [
        (format_bytes(index["bytes"]), (index["publishedAt"] or "")[:10], _describe_index(index))
        for index in report["allRepos"]
    ]
    yield format_columns(index_rows) if index_rows else "  no indexes"


def _describe_index(index: Mapping[str, Any]) -> str:
    suffix = "" if index["rootExists"] or not index["root"] else " (does not exist any more)"
    return describe_root(index) + suffix
