"""The `cleats download` command: fetch word lists and extensions, and report what is installed."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from cleats.cli.output import echo_json, format_bytes, format_columns
from cleats.cli.tool_command import call_tool, json_option
from cleats.settings import Settings

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

    A SOURCE is an http(s) or file URL or a path, with #sha256=... at its end to say what must
    come. A download that broke off goes on where it stopped, and what is in place stays as it is
    until the new one is whole and checked.

    \b
    Examples:
      cleats download models
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download verify

    \b
    Exits 0  when all of it is there,
          1  when something could not be had, or does not work,
          2  when it was asked wrongly.
    """  # noqa: D301 - click reads the backspace


@download.command()
@click.option("--model", help="The model that is wanted.")
@click.option("--cache-dir", metavar="DIR", help="For a model that has to be downloaded.")
@_repo_option
@json_option
@click.pass_obj
def models(settings: Settings, /, *, as_json: bool, **option_values: Any) -> None:
    """Say which model searches by meaning use.

    It comes with this program, so nothing is downloaded.

    \b
    Examples:
      cleats download models
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(
        _allow_user_downloads(settings),
        "download_models",
        model=option_values["model"],
        cacheDir=_absolute_path(option_values["cache_dir"]),
        repoPath=option_values["repo"],
    )
    if as_json:
        echo_json(answer)
        return
    click.echo(
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
@json_option
@click.pass_obj
def dictionaries(settings: Settings, /, *, as_json: bool, **option_values: Any) -> None:
    """Download word lists and keep them.

    A dictionaries.json beside them describes them.

    \b
    Examples:
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download dictionaries --url de=./de.txt --update
    """  # noqa: D301 - click reads the backspace
    urls = [_resolve_named_source(entry) for entry in option_values["urls"]]
    answer = call_tool(
        _allow_user_downloads(settings),
        "download_dictionaries",
        lang=option_values["lang"],
        url=urls or None,
        dir=_absolute_path(option_values["folder"]),
        update=option_values["update"],
        force=option_values["force"],
        repoPath=option_values["repo"],
    )
    if as_json:
        echo_json(answer)
        return
    rows = [(entry["name"], f"{entry['words']:,} words", entry["path"]) for entry in answer["downloaded"]]
    rows += [(entry["name"], f"{entry['words']:,} words", entry["reason"]) for entry in answer["skipped"]]
    click.echo(format_columns(rows))


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
@json_option
@click.pass_obj
def extensions(settings: Settings, /, *, as_json: bool, **option_values: Any) -> None:
    """Download an extension of SQLite; searches need none.

    \b
    Examples:
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download extensions --url https://example.org/vec0.so#sha256=…
    """  # noqa: D301 - click reads the backspace
    answer = call_tool(
        _allow_user_downloads(settings),
        "download_extensions",
        provider=option_values["provider"],
        url=_resolve_source(option_values["url"]),
        dir=_absolute_path(option_values["folder"]),
        out=_absolute_path(option_values["out"]),
        platform=option_values["platform"],
        arch=option_values["arch"],
        update=option_values["update"],
        force=option_values["force"],
        repoPath=option_values["repo"],
    )
    if as_json:
        echo_json(answer)
        return
    outcome = answer["skipped"][0]["reason"] if answer["skipped"] else "downloaded"
    click.echo(f"{answer['provider']} is {outcome}: {answer['extensionPath']}")


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
@json_option
@click.pass_obj
def verify(settings: Settings, /, *, as_json: bool, **option_values: Any) -> None:
    """Load an extension of SQLite and try it.

    It is loaded in a process of its own, which a bad one may end.

    \b
    Examples:
      cleats download verify
      cleats download verify --path ./vec0.so
    """  # noqa: D301 - click reads the backspace
    unchanged_names = ("provider", "platform", "arch", "module", "table", "column", "encoding", "options")
    answer = call_tool(
        _allow_user_downloads(settings),
        "verify_extensions",
        **{name: option_values[name] for name in unchanged_names},
        dir=_absolute_path(option_values["folder"]),
        path=_absolute_path(option_values["path"]),
        annMode=option_values["ann_mode"],
        load=option_values["load"],
        repoPath=option_values["repo"],
    )
    if as_json:
        echo_json(answer)
    else:
        steps = [(name, _describe_step(answer[name])) for name in ("load", "smoke")]
        existence = "there" if answer["exists"] else "not there"
        click.echo(format_columns([("library", f"{answer['path']} ({existence})"), *steps]))
    works = answer["exists"] and all(answer[name]["ok"] or not answer[name]["attempted"] for name in ("load", "smoke"))
    sys.exit(0 if works else 1)


def _describe_step(step: Mapping[str, Any]) -> str:
    if step["ok"]:
        return "works"
    return f"{'fails' if step['attempted'] else 'not tried'}: {step['reason']}"


def _allow_user_downloads(settings: Settings) -> Settings:
    """Allow an interactive user every local file, and every host unless some are configured."""
    return replace(
        settings,
        download_roots=(Path(Path.cwd().anchor),),
        download_hosts=settings.download_hosts or ("*",),
    )


def _absolute_path(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _resolve_source(text: str | None) -> str | None:
    """Resolve a path against the current folder; the tool would use the repository root."""
    if text is None or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", text):
        return text
    path, mark, pin = text.partition("#")
    return f"{_absolute_path(path)}{mark}{pin}" if path else text


def _resolve_named_source(text: str) -> str:
    name, equals, source = text.partition("=")
    return f"{name}{equals}{_resolve_source(source)}"
