"""Commands about the cache: what indexes cost, how to shrink it, and what can be downloaded into it."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cleats.cli.output import format_bytes, format_columns, is_json_requested, print_answer, style_heading
from cleats.cli.tool_command import call_tool, json_command, path_argument
from cleats.settings import Settings, replace_settings

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
    rows = []
    for removal in removals:
        reason, place = removal.get("reason", "index"), f"{_describe_root(removal)}: {removal['path']}"
        rows.append((format_bytes(removal["bytes"]), reason, place))
    if rows:
        yield format_columns(rows)
    yield f"{format_bytes(answer['freedBytes'])} {'would be freed' if answer['dryRun'] else 'freed'}."


def _describe_root(answer: Mapping[str, Any]) -> str:
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
    index_rows = []
    for index in report["allRepos"]:
        suffix = "" if index["rootExists"] or not index["root"] else " (does not exist any more)"
        date = (index["publishedAt"] or "")[:10]
        index_rows.append((format_bytes(index["bytes"]), date, _describe_root(index) + suffix))
    yield format_columns(index_rows) if index_rows else "  no indexes"


_repo_option = click.option("--repo", metavar="DIR", help="The repository, instead of the one here.")
_update_option = click.option("--update", is_flag=True, help="Take another version, if there is one.")
_force_option = click.option("--force", is_flag=True, help="Download also what is there and unchanged.")
_dir_option = click.option("--dir", "folder", metavar="DIR", help="In the cache or the repository.")
_platform_option = click.option("--platform", help="linux, darwin or windows; this one by default.")
_arch_option = click.option("--arch", help="x64 or arm64; this one by default.")
_provider_option = click.option("--provider", help="The extension; sqlite-vec by default.")


@click.group()
def download() -> None:
    """Download what can be added, and try it.

    A SOURCE is an http(s) or file URL or a path, with #sha256=... at its end to say what must come. A download that
    broke off goes on where it stopped, and what is in place stays as it is until the new one is whole and checked.

    Examples:
      cleats download models
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download verify

    Exits 0  when all of it is there,
          1  when something could not be had, or does not work,
          2  when it was asked wrongly.
    """


@download.command()
@click.option("--model", help="The model that is wanted.")
@click.option("--cache-dir", metavar="DIR", help="Report on the copy of the model in this folder.")
@_repo_option
@json_command
def models(settings: Settings, /, **option_values: Any) -> None:
    """Say which model searches by meaning use.

    It comes with this program, so nothing is downloaded.

    Examples:
      cleats download models
    """
    print_answer(_call_download_tool(settings, "download_models", option_values), _describe_model)


def _describe_model(answer: Mapping[str, Any]) -> str:
    return (
        f"{answer['model']} comes with this program: {answer['words']:,} words, "
        f"{answer['dims']} dimensions, {format_bytes(answer['bytes'])}, in {answer['output']}."
    )


@download.command()
@click.option("--lang", metavar="NAMES", help="Lists that are wanted, with commas; en is built in.")
@click.option("--url", "urls", multiple=True, metavar="NAME=SOURCE", help="Where a list is.")
@_dir_option
@_update_option
@_force_option
@_repo_option
@json_command
def dictionaries(settings: Settings, /, **option_values: Any) -> None:
    """Download word lists and keep them.

    A dictionaries.json beside them describes them.

    Examples:
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download dictionaries --url de=./de.txt --update
    """
    pairs = [entry.partition("=") for entry in option_values.pop("urls")]
    urls = [f"{name}{equals}{_resolve_source(source)}" for name, equals, source in pairs]
    answer = _call_download_tool(settings, "download_dictionaries", option_values, url=urls or None)
    print_answer(answer, _render_word_lists)


def _render_word_lists(answer: Mapping[str, Any]) -> str:
    entries = [(entry, entry["path"]) for entry in answer["downloaded"]]
    entries += [(entry, entry["reason"]) for entry in answer["skipped"]]
    return format_columns([(entry["name"], f"{entry['words']:,} words", note) for entry, note in entries])


@download.command()
@_provider_option
@click.option("--url", metavar="SOURCE", help="An archive or a library; https, or with a sha256.")
@_dir_option
@click.option("--out", metavar="DIR", help="A new or empty folder for this extension.")
@_platform_option
@_arch_option
@_update_option
@_force_option
@_repo_option
@json_command
def extensions(settings: Settings, /, **option_values: Any) -> None:
    """Download an extension of SQLite; searches need none.

    Examples:
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download extensions --url https://example.org/vec0.so#sha256=…
    """
    url = _resolve_source(option_values.pop("url"))
    print_answer(_call_download_tool(settings, "download_extensions", option_values, url=url), _describe_extension)


def _describe_extension(answer: Mapping[str, Any]) -> str:
    outcome = answer["skipped"][0]["reason"] if answer["skipped"] else "downloaded"
    return f"{answer['provider']} is {outcome}: {answer['extensionPath']}"


@download.command()
@_provider_option
@_dir_option
@click.option("--path", metavar="FILE", help="The library, instead of the one in DIR.")
@_platform_option
@_arch_option
@click.option("--module", help="The module that it brings.")
@click.option("--table", help="Name of the table that is tried.")
@click.option("--column", help="Name of its column.")
@click.option("--encoding", help="How a vector is given to it: float32 or json.")
@click.option("--options", help="What follows the column where the table is made.")
@click.option("--ann-mode", help="extension, or built-in to load nothing.")
@click.option("--load/--no-load", default=True, help="Load it, or only look for it.")
@_repo_option
@json_command
def verify(settings: Settings, /, **option_values: Any) -> None:
    """Load an extension of SQLite and try it.

    It is loaded in a process of its own, which a bad one may end.

    Examples:
      cleats download verify
      cleats download verify --path ./vec0.so
    """
    answer = _call_download_tool(settings, "verify_extensions", option_values)
    print_answer(answer, _render_verification)
    works = answer["exists"] and all(answer[name]["ok"] or not answer[name]["attempted"] for name in ("load", "smoke"))
    sys.exit(0 if works else 1)


def _render_verification(answer: Mapping[str, Any]) -> str:
    steps = [(name, _describe_step(answer[name])) for name in ("load", "smoke")]
    existence = "there" if answer["exists"] else "not there"
    return format_columns([("library", f"{answer['path']} ({existence})"), *steps])


def _describe_step(step: Mapping[str, Any]) -> str:
    if step["ok"]:
        return "works"
    return f"{'fails' if step['attempted'] else 'not tried'}: {step['reason']}"


def _call_download_tool(
    settings: Settings, tool: str, option_values: Mapping[str, Any], **arguments: Any
) -> dict[str, Any]:
    """Call a tool as an interactive user: with every local file, and every host unless some are configured."""
    user_settings = replace_settings(
        settings, download_roots=(Path(Path.cwd().anchor),), download_hosts=settings.code.download_hosts or ("*",)
    )
    for name, value in option_values.items():
        path = _absolute_path(value) if name in _PATH_OPTIONS else value
        arguments[_ARGUMENT_NAMES.get(name, name)] = path
    return call_tool(user_settings, tool, **arguments)


_ARGUMENT_NAMES = {"folder": "dir", "repo": "repoPath"}
_PATH_OPTIONS = ("cache_dir", "folder", "out", "path")


def _absolute_path(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _resolve_source(text: str | None) -> str | None:
    """Resolve a path against the current folder; the tool would use the repository root."""
    if text is None or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", text):
        return text
    path, mark, pin = text.partition("#")
    return f"{_absolute_path(path)}{mark}{pin}" if path else text
