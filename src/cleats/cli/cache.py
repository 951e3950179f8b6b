"""Commands about the cache: what indexes cost, how to shrink it, and what can be downloaded into it."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import format_bytes, format_columns, is_json_requested, print_answer, style_heading
from cleats.cli.tool_command import call_tool, json_command, path_argument
from cleats.settings import Settings, replace_settings

_dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")


@click.group(cls=GuessingGroup)
def cache() -> None:
    """Shrink the cache of indexes, or remove indexes.

    Indexes in use are kept. Removed indexes can be rebuilt.

    Examples:
      cleats cache gc                    remove what is no longer needed
      cleats cache gc --max-gb 5         remove the oldest indexes until the rest fits
      cleats cache clean --dry-run       show the size of the index of this repository
      cleats cache clean --all           remove the indexes of all repositories

    Exits 0  if everything selected was removed,
          1  if something could not be removed,
          2  if removing is not allowed here.
    """


@cache.command()
@_dry_run_option
@click.option("--max-bytes", type=click.IntRange(0), help="Keep at most this many bytes.")
@click.option("--max-gb", type=click.FloatRange(0), help="Keep at most this many GiB.")
@click.option("--max-age-days", type=click.FloatRange(0), help="Remove indexes that are older than this.")
@click.option("--repo", metavar="DIR", help="Consider only the index of this repository.")
@json_command
def gc(settings: Settings, /, *, repo: str | None, **option_values: Any) -> None:
    """Remove what is no longer needed.

    Removes leftovers of builds. With a limit, the oldest indexes are removed too.

    Examples:
      cleats cache gc
      cleats cache gc --max-gb 5 --dry-run
      cleats cache gc --max-age-days 90
    """
    answer = call_tool(settings, "cache_gc", repoPath=repo, **option_values)
    _print_and_exit(answer, answer["removals"], answer["failedRemovals"])


@cache.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="Remove the indexes of all repositories.")
@_dry_run_option
@json_command
def clean(settings: Settings, path: str | None, *, everything: bool, dry_run: bool) -> None:
    """Remove the index of one repository, or all indexes.

    Models, dictionaries, extensions and records are kept.

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
        click.echo(f"  {_describe_root(failure)} was not removed: {failure['problem']}.", err=True)
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
    """Show the parts of the index of a repository and the disk usage of all indexes.

    Examples:
      cleats artifacts
      cleats artifacts ~/src/app --json

    Exits 0  if the index is complete and up to date,
          1  if it needs attention; the output says what to do,
          2  if the folder does not exist.
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
        suffix = "" if index["rootExists"] or not index["root"] else " (no longer exists)"
        date = (index["publishedAt"] or "")[:10]
        index_rows.append((format_bytes(index["bytes"]), date, _describe_root(index) + suffix))
    yield format_columns(index_rows) if index_rows else "  no indexes"


_repo_option = click.option(
    "--repo", metavar="DIR", help="Repository. [default: the one that contains the current folder]"
)
_update_option = click.option("--update", is_flag=True, help="Replace an installed version if the source differs.")
_force_option = click.option("--force", is_flag=True, help="Download again even if unchanged.")
_dir_option = click.option("--dir", "folder", metavar="DIR", help="Target folder, in the cache or the repository.")
_platform_option = click.option("--platform", help="linux, darwin or windows. [default: this system]")
_arch_option = click.option("--arch", help="x64 or arm64. [default: this system]")
_provider_option = click.option("--provider", help="Name of the extension. [default: sqlite-vec]")


@click.group(cls=GuessingGroup)
def download() -> None:
    """Download and verify optional parts.

    A SOURCE is an http(s) or file URL, or a path; append #sha256=... to verify it. An interrupted download
    continues where it stopped, and the installed version is replaced only after the new one is complete and
    verified.

    Examples:
      cleats download models
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download verify

    Exits 0  if everything is in place,
          1  if a download failed or does not load,
          2  if the arguments are invalid.
    """


@download.command()
@click.option("--model", help="Name of the model.")
@click.option("--cache-dir", metavar="DIR", help="Check the copy of the model in this folder.")
@_repo_option
@json_command
def models(settings: Settings, /, **option_values: Any) -> None:
    """Show the model that search by meaning uses.

    The model ships with Cleats; nothing is downloaded.

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
@click.option("--lang", metavar="NAMES", help="Names of the lists, separated by commas; en is built in.")
@click.option("--url", "urls", multiple=True, metavar="NAME=SOURCE", help="Source of a list.")
@_dir_option
@_update_option
@_force_option
@_repo_option
@json_command
def dictionaries(settings: Settings, /, **option_values: Any) -> None:
    """Download word lists.

    The file dictionaries.json in the same folder describes them.

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
@click.option("--url", metavar="SOURCE", help="Archive or library; must use https or have a sha256.")
@_dir_option
@click.option("--out", metavar="DIR", help="New or empty folder for this extension.")
@_platform_option
@_arch_option
@_update_option
@_force_option
@_repo_option
@json_command
def extensions(settings: Settings, /, **option_values: Any) -> None:
    """Download a SQLite extension; searches do not need one.

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
@click.option("--path", metavar="FILE", help="Path of the library. [default: the one in DIR]")
@_platform_option
@_arch_option
@click.option("--module", help="Name of the SQLite module that the extension adds. [default: vec0]")
@click.option("--table", help="Name of the test table.")
@click.option("--column", help="Name of the test column.")
@click.option("--encoding", help="Encoding of vectors: float32 or json.")
@click.option("--options", help="Options after the column in the table definition.")
@click.option("--ann-mode", help="extension tests the extension; built-in tests nothing.")
@click.option("--load/--no-load", default=True, help="Load it, or only check that the file exists.")
@_repo_option
@json_command
def verify(settings: Settings, /, **option_values: Any) -> None:
    """Load a SQLite extension and test it.

    The extension is loaded in a separate process, so a faulty one cannot harm the server.

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
