"""`cleats cache`: make the cache of indexes smaller, or remove indexes."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from cleats.cli.asking import asked, json_option, path_argument, root_of
from cleats.cli.printing import columns, echo_json, size
from cleats.settings import Settings

_dry = click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")


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
@_dry
@click.option("--max-bytes", type=click.IntRange(0), help="Keep so many bytes at most.")
@click.option("--max-gb", type=click.FloatRange(0), help="Keep so many GiB at most.")
@click.option("--max-age-days", type=click.FloatRange(0), help="Keep what is not older.")
@click.option("--repo", metavar="DIR", help="Look only at the index of this repository.")
@json_option
@click.pass_obj
def gc(settings: Settings, /, *, dry_run: bool, as_json: bool, **given: Any) -> None:
    """Remove what nobody needs any more.

    That is what builds have left. With a limit whole indexes go too, the oldest first.

    \b
    Examples:
      cleats cache gc
      cleats cache gc --max-gb 5 --dry-run
      cleats cache gc --max-age-days 90
    """  # noqa: D301 - click reads the backspace
    found = asked(
        settings,
        "cache_gc",
        dryRun=dry_run,
        maxBytes=given["max_bytes"],
        maxGb=given["max_gb"],
        maxAgeDays=given["max_age_days"],
        repoPath=given["repo"],
    )
    removed = [(size(each["bytes"]), each["reason"], _of(each)) for each in found["removals"]]
    _print(found, removed, found["failedRemovals"], as_json=as_json)


@cache.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="The indexes of every repository.")
@_dry
@json_option
@click.pass_obj
def clean(
    settings: Settings, path: str | None, *, everything: bool, dry_run: bool, as_json: bool
) -> None:
    """Remove the index of the repository around PATH, or all indexes.

    Models, dictionaries, extensions and records stay.

    \b
    Examples:
      cleats cache clean
      cleats cache clean ~/src/app --dry-run
      cleats cache clean --all
    """  # noqa: D301 - click reads the backspace
    found = asked(
        settings, "clean_artifacts", all=everything or None, dryRun=dry_run, repoPath=path
    )
    failed = [each for each in found["targets"] if "problem" in each]
    removed = [
        (size(each["bytes"]), "index", _of(each))
        for each in found["targets"]
        if "problem" not in each
    ]
    _print(found, removed, failed, as_json=as_json)


def _of(each: Mapping[str, Any]) -> str:
    return f"{root_of(each)}: {each['path']}"


def _print(
    found: Mapping[str, Any],
    removed: list[tuple[str, str, str]],
    failed: Iterable[Mapping[str, Any]],
    *,
    as_json: bool,
) -> None:
    left = [f"  {root_of(each)} stays: {each['problem']}." for each in failed]
    if as_json:
        echo_json(found)
    else:
        if removed:
            click.echo(columns(removed))
        freed = size(found["freedBytes"])
        click.echo(f"{freed} would be freed." if found["dryRun"] else f"{freed} freed.")
        for line in left:
            click.echo(line, err=True)
    sys.exit(1 if left else 0)
