"""`cleats download`: fetch word lists and extensions, and say what is there already."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from cleats.cli.asking import asked, json_option
from cleats.cli.printing import columns, echo_json, size
from cleats.settings import Settings

_repo = click.option("--repo", metavar="DIR", help="The repository, instead of the one here.")
_update = click.option("--update", is_flag=True, help="Take another version, if there is one.")
_force = click.option("--force", is_flag=True, help="Download also what is there and unchanged.")
_dir = click.option("--dir", "folder", metavar="DIR", help="In the cache or the repository.")
_platform = click.option("--platform", help="linux, darwin or windows; this one by default.")
_arch = click.option("--arch", help="x64 or arm64; this one by default.")
_provider = click.option("--provider", help="The extension; sqlite-vec by default.")


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
@_repo
@json_option
@click.pass_obj
def models(settings: Settings, /, *, as_json: bool, **given: Any) -> None:
    """Say which model searches by meaning use.

    It comes with this program, so nothing is downloaded.

    \b
    Examples:
      cleats download models
    """  # noqa: D301 - click reads the backspace
    found = asked(
        _of_a_person(settings),
        "download_models",
        model=given["model"],
        cacheDir=_absolute(given["cache_dir"]),
        repoPath=given["repo"],
    )
    if as_json:
        echo_json(found)
        return
    click.echo(
        f"{found['model']} comes with this program: {found['words']:,} words, "
        f"{found['dims']} dimensions, {size(found['bytes'])}, in {found['output']}."
    )


@download.command()
@click.option("--lang", metavar="NAMES", help="Lists that are wanted, with commas; en is built in.")
@click.option("--url", "urls", multiple=True, metavar="NAME=SOURCE", help="Where a list is.")
@_dir
@_update
@_force
@_repo
@json_option
@click.pass_obj
def dictionaries(settings: Settings, /, *, as_json: bool, **given: Any) -> None:
    """Download word lists and keep them.

    A dictionaries.json beside them describes them.

    \b
    Examples:
      cleats download dictionaries --url de=https://example.org/de.txt
      cleats download dictionaries --url de=./de.txt --update
    """  # noqa: D301 - click reads the backspace
    urls = [_named(each) for each in given["urls"]]
    found = asked(
        _of_a_person(settings),
        "download_dictionaries",
        lang=given["lang"],
        url=urls or None,
        dir=_absolute(given["folder"]),
        update=given["update"],
        force=given["force"],
        repoPath=given["repo"],
    )
    if as_json:
        echo_json(found)
        return
    rows = [
        (each["name"], f"{each['words']:,} words", each["path"]) for each in found["downloaded"]
    ]
    rows += [
        (each["name"], f"{each['words']:,} words", each["reason"]) for each in found["skipped"]
    ]
    click.echo(columns(rows))


@download.command()
@_provider
@click.option("--url", metavar="SOURCE", help="An archive or a library; https, or with a sha256.")
@_dir
@click.option("--out", metavar="DIR", help="A new or empty folder for this extension.")
@_platform
@_arch
@_update
@_force
@_repo
@json_option
@click.pass_obj
def extensions(settings: Settings, /, *, as_json: bool, **given: Any) -> None:
    """Download an extension of SQLite; searches need none.

    \b
    Examples:
      cleats download extensions --url ./sqlite-vec.tar.gz
      cleats download extensions --url https://example.org/vec0.so#sha256=…
    """  # noqa: D301 - click reads the backspace
    found = asked(
        _of_a_person(settings),
        "download_extensions",
        provider=given["provider"],
        url=_source(given["url"]),
        dir=_absolute(given["folder"]),
        out=_absolute(given["out"]),
        platform=given["platform"],
        arch=given["arch"],
        update=given["update"],
        force=given["force"],
        repoPath=given["repo"],
    )
    if as_json:
        echo_json(found)
        return
    done = found["skipped"][0]["reason"] if found["skipped"] else "downloaded"
    click.echo(f"{found['provider']} is {done}: {found['extensionPath']}")


@download.command()
@_provider
@_dir
@click.option("--path", metavar="FILE", help="The library, instead of the one in DIR.")
@_platform
@_arch
@click.option("--module", help="The module that it brings.")
@click.option("--table", help="Name of the table that is tried.")
@click.option("--column", help="Name of its column.")
@click.option("--encoding", help="How a vector is given to it: float32 or json.")
@click.option("--options", help="What follows the column where the table is made.")
@click.option("--ann-mode", help="extension, or built-in to load nothing.")
@click.option("--load/--no-load", default=True, help="Load it, or only look for it.")
@_repo
@json_option
@click.pass_obj
def verify(settings: Settings, /, *, as_json: bool, **given: Any) -> None:
    """Load an extension of SQLite and try it.

    It is loaded in a process of its own, which a bad one may end.

    \b
    Examples:
      cleats download verify
      cleats download verify --path ./vec0.so
    """  # noqa: D301 - click reads the backspace
    same = ("provider", "platform", "arch", "module", "table", "column", "encoding", "options")
    found = asked(
        _of_a_person(settings),
        "verify_extensions",
        **{name: given[name] for name in same},
        dir=_absolute(given["folder"]),
        path=_absolute(given["path"]),
        annMode=given["ann_mode"],
        load=given["load"],
        repoPath=given["repo"],
    )
    if as_json:
        echo_json(found)
    else:
        steps = [(name, _worded(found[name])) for name in ("load", "smoke")]
        there = "there" if found["exists"] else "not there"
        click.echo(columns([("library", f"{found['path']} ({there})"), *steps]))
    works = found["exists"] and all(
        found[name]["ok"] or not found[name]["attempted"] for name in ("load", "smoke")
    )
    sys.exit(0 if works else 1)


def _worded(step: Mapping[str, Any]) -> str:
    if step["ok"]:
        return "works"
    return f"{'fails' if step['attempted'] else 'not tried'}: {step['reason']}"


def _of_a_person(settings: Settings) -> Settings:
    """What holds for the one who types: any file of theirs, and any host unless some are named."""
    return replace(
        settings,
        download_roots=(Path(Path.cwd().anchor),),
        download_hosts=settings.download_hosts or ("*",),
    )


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _source(text: str | None) -> str | None:
    """A path from where the command runs; the tool would begin at the root of the repository."""
    if text is None or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", text):
        return text
    path, mark, pin = text.partition("#")
    return f"{_absolute(path)}{mark}{pin}" if path else text


def _named(text: str) -> str:
    name, equals, source = text.partition("=")
    return f"{name}{equals}{_source(source)}"
