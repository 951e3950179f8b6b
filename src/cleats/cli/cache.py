"""The `cleats cache` command: shrink the index cache, or remove indexes from it."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from cleats.cli.output import format_bytes, format_columns, is_json_requested, print_answer, style_heading
from cleats.cli.tool_command import call_tool, json_command, path_argument
from cleats.settings import Settings

_dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")


@click.group()
def cache() -> None:
    """Make the cache of indexes smaller, or remove indexes from it.

    What somebody reads or builds stays. Whatever is removed can be built again.

    Examples:
      cleats cache gc                    what nobody needs any more
      cleats cache gc --max-gb 5         whole indexes, the oldest first, until the rest fits
      cleats cache clean --dry-run       what the index of this repository takes
      cleats cache clean --all           the indexes of every repository

    Exits 0  when all that was meant is gone,
          1  when something is still there,
          2  when nothing may be removed here.
    """


@cache.command()
@_dry_run_option
@click.option("--max-bytes", type=click.IntRange(0), help="Keep so many bytes at most.")
@click.option("--max-gb", type=click.FloatRange(0), help="Keep so many GiB at most.")
@click.option("--max-age-days", type=click.FloatRange(0), help="Keep what is not older.")
@click.option("--repo", metavar="DIR", help="Look only at the index of this repository.")
@json_command
def gc(settings: Settings, /, *, repo: str | None, **option_values: Any) -> None:
    """Remove what nobody needs any more.

    That is what builds have left. With a limit whole indexes go too, the oldest first.

    Examples:
      cleats cache gc
      cleats cache gc --max-gb 5 --dry-run
      cleats cache gc --max-age-days 90
    """
    answer = call_tool(settings, "cache_gc", repoPath=repo, **option_values)
    _print_and_exit(answer, answer["removals"], answer["failedRemovals"])


@cache.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="The indexes of every repository.")
@_dry_run_option
@json_command
def clean(settings: Settings, path: str | None, *, everything: bool, dry_run: bool) -> None:
    """Remove the index of the repository around PATH, or all indexes.

    Models, dictionaries, extensions and records stay.

    Examples:
      cleats cache clean
      cleats cache clean ~/src/app --dry-run
      cleats cache clean --all
    """
    answer = call_tool(settings, "clean_artifacts", all=everything or None, dry_run=dry_run, repoPath=path)
    failures = [target for target in answer["targets"] if "problem" in target]
    _print_and_exit(answer, [target for target in answer["targets"] if "problem" not in target], failures)


def _print_and_exit(
    answer: Mapping[str, Any], removals: Iterable[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]]
) -> None:
    print_answer(answer, lambda _answer: _render_removals(answer, removals))
    for failure in () if is_json_requested() else failures:
        click.echo(f"  {_describe_root(failure)} stays: {failure['problem']}.", err=True)
    sys.exit(1 if failures else 0)


def _render_removals(answer: Mapping[str, Any], removals: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    rows = [
        (
            format_bytes(removal["bytes"]),
            removal.get("reason", "index"),
            f"{_describe_root(removal)}: {removal['path']}",
        )
        for removal in removals
    ]
    if rows:
        yield format_columns(rows)
    yield f"{format_bytes(answer['freedBytes'])} {'would be freed' if answer['dryRun'] else 'freed'}."


def _describe_root(answer: Mapping[str, Any]) -> str:
    """Return the repository root of an answer, or a placeholder if the repository is unknown."""
    return answer["root"] or f"{answer['path']} (of an unknown repository)"


@click.command()
@path_argument
@json_command
def artifacts(settings: Settings, path: str | None) -> None:
    """Say what the index of the repository around PATH is made of, and what all indexes cost.

    Examples:
      cleats artifacts
      cleats artifacts ~/src/app --json

    Exits 0  when the index is whole and up to date,
          1  when something is to be done about it; it says what,
          2  when there is no such folder.
    """
    report = call_tool(settings, "report_artifacts", repoPath=path)
    print_answer(report, _render_report)
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
    return _describe_root(index) + suffix
