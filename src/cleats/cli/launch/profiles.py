"""The `cleats launch profiles` command: list the profiles and check whether they can be used."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.output import echo_json, format_columns, format_count, style_heading
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

    profile_folders = model.find_profile_folders(settings.launch_profiles)
    if name is not None and name not in profile_folders:
        raise click.UsageError(f"There is no profile {name!r}; there are {', '.join(profile_folders)}.")
    results = [_check_profile(item, settings) for item in profile_folders if name in (None, item)]
    if as_json:
        echo_json(results)
    else:
        click.echo("\n".join(line for item in results for line in _render_profile(item, with_details=bool(name))))
    sys.exit(0 if all(item["ok"] for item in results) else 1)


def _check_profile(name: str, settings: Settings) -> dict[str, Any]:
    from cleats.toolsets.launch.gates import registry  # noqa: PLC0415 - as above
    from cleats.toolsets.launch.profiles import model  # noqa: PLC0415

    folder = model.find_profile_folders(settings.launch_profiles)[name]
    try:
        profile = model.load_named_profile(name, settings.launch_profiles)
        registry.select_gates(gate for level in GATE_LEVELS for gate in profile.gates.for_profile(level))
    except ToolError as error:
        errors = (error.details or {}).get("violations", [{"message": error.message}])
        return {"name": name, "folder": str(folder), "ok": False, "errors": errors}
    return {"name": name, "folder": str(folder), "ok": True, "errors": [], **_describe_profile(profile)}


GATE_LEVELS = ("local", "ci", "prod")


def _describe_profile(profile: "Profile") -> dict[str, Any]:
    return {
        "title": profile.title,
        "version": profile.version,
        "hosts": sorted(profile.sections_by_host),
        "sections": [item.name for item in profile.sections],
        "families": "any" if profile.families.open else [family.name for family in profile.families.known],
        "platforms": [item.name for item in profile.platforms],
        "gates": {level: list(profile.gates.for_profile(level)) for level in GATE_LEVELS},
    }


def _render_profile(result: dict[str, Any], *, with_details: bool) -> Iterator[str]:
    if not result["ok"]:
        yield f"{style_heading(result['name'])}  {click.style('cannot be used', fg='red')}"
        rows = [(error.get("instancePath", "") or "/", error["message"]) for error in result["errors"]]
        yield format_columns(rows)
        return
    yield f"{style_heading(result['name'])}  {result['title']} ({result['version']})"
    families = result["families"]
    count = "any family" if families == "any" else format_count(len(families), "family", "families")
    rows = [
        ("sections", ", ".join(result["sections"])),
        ("for", f"{count}, {format_count(len(result['platforms']), 'platform')}"),
        ("folder", result["folder"]),
    ]
    if with_details:
        rows += [
            ("hosts", ", ".join(result["hosts"]) or "none"),
            ("families", families if families == "any" else ", ".join(families)),
            ("platforms", ", ".join(result["platforms"])),
            *((f"gates {level}", ", ".join(names)) for level, names in result["gates"].items()),
        ]
    yield format_columns(rows)
