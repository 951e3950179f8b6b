"""The commands `cleats launch clean`, which frees disk space, and `profiles`, which checks profiles."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cleats.cli import output
from cleats.cli.launch.calls import LaunchClient, exit_with_failure, run_with_client
from cleats.cli.launch.run_argument import RUN
from cleats.cli.output import echo_json, format_bytes, format_columns, format_count, is_json_requested, style_heading
from cleats.cli.tool_command import json_command
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.launch.store.run_files import CleanedRun


GATE_LEVELS = ("local", "ci", "prod")


@click.command()
@click.argument("run_ids", nargs=-1, metavar="[RUN]...", type=RUN)
@click.option("--days", type=click.FloatRange(0), help="Only runs that ended at least this many days ago.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")
@json_command
def clean(settings: Settings, run_ids: tuple[str, ...], *, days: float | None, dry_run: bool) -> None:
    """Remove the checkouts of runs that have ended.

    Applies to all finished runs, or to the ones you name. Status, log and artifacts are kept. Waiting runs
    keep their checkouts; `cleats launch cancel` ends a run.

    Examples:
      cleats launch clean --dry-run
      cleats launch clean --days 30
      cleats launch clean fe3f
    """
    if run_ids and days is not None:
        raise click.UsageError("Give runs or --days, not both.")

    result = run_with_client(settings, lambda client: _clean_runs(client, run_ids, days or 0, dry_run=dry_run))
    if isinstance(result, dict):
        exit_with_failure(result)
    removed = [item for item in result if not item.problem]
    remaining = [item for item in result if item.problem]
    freed_bytes = sum(item.size for item in removed)
    if is_json_requested():
        kept = [_freed_as_json(item) | {"problem": item.problem} for item in remaining]
        report = {"ok": not remaining, "dry_run": dry_run, "freed_bytes": freed_bytes}
        echo_json(report | {"removed": [_freed_as_json(item) for item in removed], "kept": kept})
    else:
        if removed:
            click.echo(format_columns([(format_bytes(item.size), item.state.value, item.run_id) for item in removed]))
        click.echo(f"{format_bytes(freed_bytes)} {'would be freed' if dry_run else 'freed'}.")
        for item in remaining:
            click.echo(f"  {item.run_id} was not removed: {item.problem}.", err=True)
    sys.exit(1 if remaining else 0)


async def _clean_runs(
    client: LaunchClient, run_ids: tuple[str, ...], days: float, *, dry_run: bool
) -> "list[CleanedRun] | dict[str, Any]":
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    from cleats.contract.outcome import Failed  # noqa: PLC0415
    from cleats.contract.payload import LAUNCH, AnswerMeta  # noqa: PLC0415
    from cleats.toolsets.launch.store import run_files  # noqa: PLC0415

    def remove_checkouts() -> "list[CleanedRun]":
        engine = client.launches.engine
        return run_files.clean_runs(engine.store, engine.runs, run_ids, days=days, dry_run=dry_run)

    try:
        return await to_thread.run_sync(remove_checkouts)
    except ToolError as error:
        return LAUNCH.render_outcome(Failed(error), AnswerMeta()).body or {}


def _freed_as_json(item: "CleanedRun") -> dict[str, object]:
    return {"run_id": item.run_id, "state": item.state.value, "bytes": item.size}


@click.command()
@click.argument("name", required=False)
@json_command
def profiles(settings: Settings, name: str | None) -> None:
    """List and check the profiles, or show the profile NAME in detail.

    A profile is a folder with a profile.toml and templates; CLEATS_LAUNCH_PROFILES names folders with your
    own profiles. See docs/writing-a-profile.md.

    Examples:
      cleats launch profiles
      cleats launch profiles plain

    Exits 0  if all of them are valid,
          1  if one is invalid,
          2  if the name is unknown.
    """
    from cleats.toolsets.launch.profiles import model  # noqa: PLC0415 - help needs none of it

    profile_folders = model.find_profile_folders(settings.launch.profiles)
    if name is not None and name not in profile_folders:
        raise click.UsageError(f"Unknown profile {name!r}. Known profiles: {', '.join(profile_folders)}.")
    results = [_check_profile(item, settings) for item in profile_folders if name in (None, item)]
    output.print_answer(results, lambda results: (line for item in results for line in _render_profile(item, name)))
    sys.exit(0 if all(item["ok"] for item in results) else 1)


def _check_profile(name: str, settings: Settings) -> dict[str, Any]:
    from cleats.toolsets.launch.gates import registry  # noqa: PLC0415 - as above
    from cleats.toolsets.launch.profiles import model  # noqa: PLC0415

    result = {"name": name, "folder": str(model.find_profile_folders(settings.launch.profiles)[name])}
    try:
        profile = model.load_named_profile(name, settings.launch.profiles)
        registry.select_gates(gate for level in GATE_LEVELS for gate in profile.gates.for_profile(level))
    except ToolError as error:
        errors = (error.details or {}).get("violations", [{"message": error.message}])
        return {**result, "ok": False, "errors": errors}
    return {
        **result,
        "ok": True,
        "errors": [],
        "title": profile.title,
        "version": profile.version,
        "site": profile.site.kind,
        "hosts": sorted(profile.sections_by_host),
        "sections": [item.name for item in profile.sections],
        "families": "any" if profile.families.open else [family.name for family in profile.families.known],
        "platforms": [item.name for item in profile.platforms],
        "gates": {level: list(profile.gates.for_profile(level)) for level in GATE_LEVELS},
    }


def _render_profile(result: dict[str, Any], name: str | None) -> Iterator[str]:
    if not result["ok"]:
        yield f"{style_heading(result['name'])}  {click.style('cannot be used', fg='red')}"
        yield format_columns([(error.get("instancePath", "") or "/", error["message"]) for error in result["errors"]])
        return
    yield f"{style_heading(result['name'])}  {result['title']} ({result['version']})"
    families = result["families"]
    count = "any family" if families == "any" else format_count(len(families), "family", "families")
    rows = [
        ("sections", ", ".join(result["sections"])),
        ("for", f"{count}, {format_count(len(result['platforms']), 'platform')}"),
        ("folder", result["folder"]),
    ]
    if name is not None:
        rows += [
            ("site", result["site"]),
            ("hosts", ", ".join(result["hosts"]) or "none"),
            ("families", families if families == "any" else ", ".join(families)),
            ("platforms", ", ".join(result["platforms"])),
            *((f"gates {level}", ", ".join(names)) for level, names in result["gates"].items()),
        ]
    yield format_columns(rows)
