"""`cleats config`: the settings as they count, and what they lead to."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cleats.cli.asking import asked, json_option, path_argument
from cleats.cli.printing import columns, echo_json, heading
from cleats.settings import Settings


@click.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="Every setting, not only the changed ones.")
@json_option
@click.pass_obj
def config(settings: Settings, path: str | None, *, everything: bool, as_json: bool) -> None:
    """Show the settings that count for the repository around PATH, and what is missing.

    \b
    Examples:
      cleats config
      cleats config --all
      cleats config ~/src/app --json

    \b
    Exits 0  when nothing is missing,
          1  when something is,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace
    found = asked(settings, "config_status", repoPath=path)
    found["config"]["settings"]["log_level"] = settings.log_level  # a command logs less
    if as_json:
        echo_json(found)
    else:
        click.echo("\n".join(_lines(found, everything=everything)))
    sys.exit(1 if found["warnings"] else 0)


def _lines(found: Mapping[str, Any], *, everything: bool) -> Iterator[str]:
    config, cache = found["config"], found["cache"]
    yield heading(found["repoPath"])
    yield columns(
        [
            ("index", f"{cache['index']}, in {config['repoCacheRoot']}"),
            ("sqlite", config["sqlite"]["path"] or "none"),
            ("cache", config["cacheRoot"]),
            ("data", config["dataRoot"]),
        ]
    )
    shown = config["settings"] if everything else _changed(config["settings"])
    if shown:
        yield heading("Settings")
        yield columns([(name, _value(value)) for name, value in shown.items()])
    if found["warnings"]:
        yield heading("Missing")
        yield columns([(each["code"], each["message"]) for each in found["warnings"]])


def _changed(shown: Mapping[str, Any]) -> dict[str, Any]:
    from cleats.settings import rows  # noqa: PLC0415 - help needs no table

    defaults = {row.name: row.default for row in rows()}
    return {
        name: value for name, value in shown.items() if _value(value) not in ("", defaults[name])
    }


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(value) if isinstance(value, list) else str(value)
