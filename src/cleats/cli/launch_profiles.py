"""`cleats launch profiles`: the profiles there are, and whether they can be used."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.printing import columns, counted, echo_json, heading
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.launch.profiles.model import Profile


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_obj
def profiles(settings: Settings, name: str | None, *, as_json: bool) -> None:
    """List the profiles and check them; with NAME say all about one.

    A profile is a folder with a profile.toml and templates; CLEATS_LAUNCH_PROFILES names folders
    with your own. docs/writing-a-profile.md says how to write one.

    \b
    Examples:
      cleats launch profiles
      cleats launch profiles plain

    \b
    Exits 0  when all of them can be used,
          1  when one cannot,
          2  when there is none of this name.
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.launch.profiles import model  # noqa: PLC0415 - help needs none of it

    known = model.places(settings.launch_profiles)
    if name is not None and name not in known:
        raise click.UsageError(f"There is no profile {name!r}; there are {', '.join(known)}.")
    found = [_checked(each, settings) for each in known if name in (None, each)]
    if as_json:
        echo_json(found)
    else:
        click.echo("\n".join(line for each in found for line in _lines(each, whole=bool(name))))
    sys.exit(0 if all(each["ok"] for each in found) else 1)


def _checked(name: str, settings: Settings) -> dict[str, Any]:
    from cleats.toolsets.launch.gates import registry  # noqa: PLC0415 - as above
    from cleats.toolsets.launch.profiles import model  # noqa: PLC0415

    place = model.places(settings.launch_profiles)[name]
    try:
        profile = model.load(name, settings.launch_profiles)
        registry.chosen(gate for level in LEVELS for gate in profile.gates.of(level))
    except ToolError as error:
        found = (error.details or {}).get("violations", [{"message": error.message}])
        return {"name": name, "folder": str(place), "ok": False, "errors": found}
    return {"name": name, "folder": str(place), "ok": True, "errors": [], **_facts(profile)}


LEVELS = ("local", "ci", "prod")


def _facts(profile: "Profile") -> dict[str, Any]:
    return {
        "title": profile.title,
        "version": profile.version,
        "hosts": sorted(profile.hosts),
        "sections": [each.name for each in profile.sections],
        "families": "any" if profile.families.open else [f.name for f in profile.families.known],
        "platforms": [each.name for each in profile.platforms],
        "gates": {level: list(profile.gates.of(level)) for level in LEVELS},
    }


def _lines(found: dict[str, Any], *, whole: bool) -> Iterator[str]:
    if not found["ok"]:
        yield f"{heading(found['name'])}  {click.style('cannot be used', fg='red')}"
        rows = [(each.get("instancePath", "") or "/", each["message"]) for each in found["errors"]]
        yield columns(rows)
        return
    yield f"{heading(found['name'])}  {found['title']} ({found['version']})"
    families = found["families"]
    count = "any family" if families == "any" else counted(len(families), "family", "families")
    rows = [
        ("sections", ", ".join(found["sections"])),
        ("for", f"{count}, {counted(len(found['platforms']), 'platform')}"),
        ("folder", found["folder"]),
    ]
    if whole:
        rows += [
            ("hosts", ", ".join(found["hosts"]) or "none"),
            ("families", families if families == "any" else ", ".join(families)),
            ("platforms", ", ".join(found["platforms"])),
            *((f"gates {level}", ", ".join(names)) for level, names in found["gates"].items()),
        ]
    yield columns(rows)
