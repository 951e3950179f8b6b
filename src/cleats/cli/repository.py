"""Commands about one repository or workspace: `show`, `bootstrap`, `workspace`, `config` and `sqlite`."""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from cleats.cli import tool_command
from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import (
    echo_json,
    format_bytes,
    format_columns,
    is_json_requested,
    print_answer,
    print_page,
    style_heading,
    terminal_options,
)
from cleats.cli.tool_command import call_tool, json_command, mode_choice, path_argument, repo_option
from cleats.settings import SETTINGS_BY_NAME, Settings

_LOCATION_PATTERN = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:-(?P<end>\d+))?")

MAX_LINES = 1_000_000_000
"""More lines than a file has: a person means the whole file."""

_ARGUMENT_FLAGS = {"repoPath": "--repo", "maxBytes": "--max-bytes", "startLine": "LINE", "endLine": "END"}


@click.command()
@click.argument("place", metavar="PATH[:LINE[-END]]", shell_complete=tool_command.complete_files)
@click.option("-C", "--context", type=click.IntRange(0, 10_000), default=0, help="Number of lines before and after.")
@click.option("--max-bytes", type=click.IntRange(1), help="Maximum number of bytes.")
@repo_option
@terminal_options
@json_command
def show(settings: Settings, /, place: str, *, repo: str | None, **option_values: Any) -> None:
    """Show a file of a repository, or some of its lines.

    A single LINE is shown with --context lines around it. PATH is relative to the current folder or to the
    root of the repository. Files outside the repository are not shown.

    Examples:
      cleats show src/app.py:10-40
      cleats show src/app.py:25 -C 5
      cleats show README.md --json

    Exits 0  if the lines were shown,
          1  if the file does not exist or may not be shown,
          2  if the lines are invalid or the file is not text.
    """
    path, start, end = _parse_location(place)
    location = {"path": _resolve_path(path, repo), "startLine": start, "endLine": end or MAX_LINES, "repoPath": repo}
    answer = call_tool(settings, "show_file", _ARGUMENT_FLAGS, **location, **option_values)
    if is_json_requested():
        echo_json(answer)
        return
    if sys.stdout.isatty():
        print_page(_number_lines(answer))
    else:
        click.echo(answer["text"], nl=False)
    if answer["truncated"]:
        click.echo(f"... cut after line {answer['endLine']:,}; raise --max-bytes to see more.", err=True)


def _parse_location(location: str) -> tuple[str, int | None, int | None]:
    match = _LOCATION_PATTERN.fullmatch(location)
    if match is None or Path(location).exists():
        return location, None, None
    start = int(match["start"])
    if not start:
        raise click.UsageError("Lines are counted from 1.")
    return match["path"], start, int(match["end"] or start)


def _resolve_path(path: str, repo: str | None) -> str:
    """Return the path for the tool; a path that exists in the current folder becomes absolute."""
    local_path = Path.cwd() / path
    return str(local_path) if repo is None and local_path.exists() else path


def _number_lines(answer: Mapping[str, Any]) -> str:
    first, last = answer["startLine"], answer["endLine"]
    digits = len(str(last))
    title = f"{answer['path']}:{first}-{last} of {answer['totalLines']:,} lines"
    lines = answer["text"].splitlines()
    return "\n".join(
        [style_heading(title), *(f"{first + offset:>{digits}}  {line}" for offset, line in enumerate(lines))]
    )


@click.command()
@path_argument
@click.option("--skip-install", is_flag=True, help="Skip the check for package manifests.")
@click.option("--skip-dicts", is_flag=True, help="Skip the check of dictionaries.")
@click.option("--skip-index", is_flag=True, help="Do not build the index.")
@click.option("--skip-artifacts", is_flag=True, help="Do not start from an index in the folder ci-artifacts.")
@click.option("--skip-tooling", is_flag=True, help="Skip the check for linters and other tools.")
@click.option("--with-sqlite", is_flag=True, help="Create the SQLite index too.")
@click.option("--incremental", is_flag=True, help="Read only changed files.")
@json_command
def bootstrap(settings: Settings, /, path: str | None, **option_values: Any) -> None:
    """Prepare a repository for search, step by step.

    Runs no code of the repository and installs nothing.

    Examples:
      cleats bootstrap
      cleats bootstrap ~/src/app --with-sqlite

    Exits 0  if every step succeeded or was skipped,
          1  if a step failed,
          2  if the folder does not exist.
    """
    print_answer(call_tool(settings, "bootstrap", repoPath=path, **option_values), _render_steps)


def _render_steps(answer: Mapping[str, Any]) -> Iterator[str]:
    yield style_heading(answer["repoPath"])
    yield format_columns([(name, *_describe_step(step)) for name, step in answer["steps"].items()])


def _describe_step(step: Mapping[str, Any]) -> tuple[str, str]:
    if step["skipped"]:
        return "skipped", step["reason"]
    if "generation" in step:
        chunk_count = sum(step["chunks"].values())
        return "done", f"{step['files']:,} files, {chunk_count:,} chunks"
    missing = ", ".join(tool["name"] for tool in step.get("missing", ()))
    return "done", f"missing: {missing}" if missing else ""


@click.command()
@click.argument("file", shell_complete=tool_command.complete_files)
@json_command
def workspace(settings: Settings, file: str) -> None:
    """Show the repositories of the workspace FILE and whether each can be searched.

    A workspace is a JSON file; comments are allowed:
      {"schemaVersion": 1, "repos": [{"root": "../app"}, {"root": "../lib", "alias": "lib"}]}

    Examples:
      cleats workspace all.jsonc
      cleats search "parse" --workspace all.jsonc

    Exits 0  if every enabled repository can be searched,
          1  if one cannot, or the file does not exist,
          2  if the file is not a workspace.
    """
    answer = call_tool(settings, "workspace_status", workspacePath=file)
    print_answer(answer, _render_workspace)
    sys.exit(0 if answer["ready"] else 1)


def _render_workspace(answer: Mapping[str, Any]) -> Iterator[str]:
    yield style_heading(f"{answer['name']} ({answer['workspacePath']})")
    rows = [(repo["alias"], _describe_state(repo), repo["root"]) for repo in answer["repos"]]
    yield format_columns(rows) if rows else "  no repositories"


def _describe_state(repo: Mapping[str, Any]) -> str:
    if not repo["enabled"]:
        return "off"
    if not repo["exists"]:
        return "does not exist"
    if repo["signature"] is None:
        return "no index"
    return f"{sum(mode['chunks'] for mode in repo['modes'].values()):,} chunks"


@click.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="Show every setting, not only the changed ones.")
@json_command
def config(settings: Settings, path: str | None, *, everything: bool) -> None:
    """Show the effective settings for a repository and what is missing.

    Examples:
      cleats config
      cleats config --all
      cleats config ~/src/app --json

    Exits 0  if nothing is missing,
          1  if something is missing,
          2  if the folder does not exist.
    """
    status = call_tool(settings, "config_status", repoPath=path)
    status["config"]["settings"]["log_level"] = settings.log_level  # a command logs less
    print_answer(status, lambda answer: _render_config(answer, everything=everything))
    sys.exit(1 if status["warnings"] else 0)


def _render_config(status: Mapping[str, Any], *, everything: bool) -> Iterator[str]:
    config, cache = status["config"], status["cache"]
    yield style_heading(status["repoPath"])
    index = ("index", f"{cache['index']}, in {config['repoCacheRoot']}")
    sqlite_index = ("sqlite", config["sqlite"]["path"] or "none")
    yield format_columns([index, sqlite_index, ("cache", config["cacheRoot"]), ("data", config["dataRoot"])])
    values = {name: _format_value(value) for name, value in config["settings"].items()}
    defaults = {name: setting.default_text for name, setting in SETTINGS_BY_NAME.items()}
    shown = [(name, value) for name, value in values.items() if everything or value not in ("", defaults[name])]
    if shown:
        yield style_heading("Settings")
        yield format_columns(shown)
    if status["warnings"]:
        yield style_heading("Missing")
        yield format_columns([(warning["code"], warning["message"]) for warning in status["warnings"]])


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items())
    return ",".join(value) if isinstance(value, list) else str(value)


_mode_help = "Fail unless the index has exactly this content; all accepts any index."
_mode_option = click.option("--mode", type=mode_choice, default="all", show_default=True, help=_mode_help)


@click.group(cls=GuessingGroup)
def sqlite() -> None:
    """Create the SQLite full-text index of a repository, or compact its SQLite files.

    Examples:
      cleats sqlite build               for `cleats search --backend sqlite-fts`
      cleats sqlite compact --dry-run   show how much space compacting would free

    Exits 0  if it succeeded,
          1  if there is no index or it failed; the previous index remains,
          2  if the folder does not exist.
    """


@sqlite.command()
@path_argument
@_mode_option
@click.option("--incremental", is_flag=True, help="Do nothing if it already exists.")
@click.option("--compact", is_flag=True, help="Compact it too.")
@json_command
def build(settings: Settings, /, path: str | None, **option_values: Any) -> None:
    """Add the SQLite full-text index to the index of a repository.

    The repository is the one that contains PATH.

    Examples:
      cleats sqlite build
      cleats search parse --backend sqlite-fts
    """
    print_answer(call_tool(settings, "build_sqlite_index", repoPath=path, **option_values), _describe_build)


def _describe_build(answer: Mapping[str, Any]) -> str:
    verb = "created" if answer["published"] else "already exists"
    return f"{answer['outPath']} {verb}: {format_bytes(answer['bytes'])}, {answer['chunks']:,} chunks."


@sqlite.command()
@path_argument
@_mode_option
@click.option("--dry-run", is_flag=True, help="Show the possible gain without changing anything.")
@click.option("--keep-backup", is_flag=True, help="Keep a backup of the files.")
@json_command
def compact(settings: Settings, /, path: str | None, *, dry_run: bool, **option_values: Any) -> None:
    """Compact the SQLite files of the index of a repository.

    Examples:
      cleats sqlite compact --dry-run
      cleats sqlite compact ~/src/app
    """
    answer = call_tool(settings, "compact_sqlite_index", repoPath=path, dry_run=dry_run, **option_values)
    print_answer(answer, lambda answer: _describe_packing(answer, dry_run=dry_run))


def _describe_packing(answer: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    before, after = (format_bytes(answer[key]["total"]) for key in ("beforeBytes", "afterBytes"))
    if answer["freedBytes"]:
        verb = "would shrink" if dry_run else "shrank"
        yield f"{answer['repoPath']}: {verb} from {before} to {after}, {answer['chunks']:,} chunks."
    else:
        yield f"{answer['repoPath']}: {before}, already compact."
    if answer["backupPath"]:
        yield f"Backup: {answer['backupPath']}"
