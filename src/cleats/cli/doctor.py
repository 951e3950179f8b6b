"""The `cleats doctor` command: checks of versions, settings, folders, toolsets and capabilities.

The checks change nothing. Only click has to be importable, because the command must also work in a broken installation.
"""

import logging
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import click

from cleats.cli import settings_loader
from cleats.cli.output import echo_json, format_bytes, format_columns, format_count, style_heading
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.capabilities import CAPABILITIES, find_lint_root
from cleats.runtime.installation import format_install_command, format_reinstall_command
from cleats.settings import SETTINGS_BY_NAME, SettingError, Settings, SettingsSource, get_setting

FOLDER_SETTINGS = ("cache_dir", "data_dir")

MIN_FREE_BYTES = 16 << 20
"""The free bytes below which a disk counts as full."""

DEFAULT_SOURCE = "default"
"""The source of a setting that nobody has set."""


Row: TypeAlias = dict[str, Any]
"""A finding with its facts, as in the JSON report."""


@click.command()
@click.option("--all", "whole", is_flag=True, help="Show every library and every setting.")
@click.option("--json", "as_json", is_flag=True, help="Print all findings as JSON.")
def doctor(*, whole: bool, as_json: bool) -> None:
    """Show what is installed, what is missing and how to get it.

    Changes nothing and sends nothing. Missing optional parts are listed with their purpose.

    Exits 0 if Cleats is ready, 1 if something needs fixing.

    Examples:
      cleats doctor
      cleats doctor --all
      cleats doctor --json | jq .problems
    """
    logging.disable()  # the report says what a server would log
    try:
        findings = examine_machine(os.environ)
    finally:
        logging.disable(logging.NOTSET)
    if as_json:
        echo_json(findings)
    else:
        click.echo("\n\n".join(_render_blocks(findings, show_all=whole)))
    sys.exit(0 if findings["ok"] else 1)


def _render_blocks(findings: Row, *, show_all: bool) -> Iterator[str]:
    for title, rows in _build_tables(findings, show_all=show_all).items():
        if rows:
            yield style_heading(title) + "\n" + format_columns(rows)
    if findings["notes"]:
        yield "\n".join(findings["notes"])
    for problem in findings["problems"]:
        yield f"{_style_bad('Problem:')} {problem['what']}\n{problem['remedy']}"
    if findings["ok"]:
        yield _style_good("Ready.")


def _build_tables(findings: Row, *, show_all: bool) -> dict[str, list[tuple[str, ...]]]:
    packages, counts = findings["packages"], findings["toolsets"].items()
    return {
        "Versions": list(findings["versions"].items()),
        "Libraries": list(_library_rows(findings["libraries"], show_all=show_all)),
        "Toolsets": [
            (
                name,
                _style_bad("cannot start") if count is None else format_count(count, "tool"),
                f"from {packages[name]}" if name in packages else "",
            )
            for name, count in counts
        ],
        "Settings": list(_setting_rows(findings["settings"], show_all=show_all)),
        "Configuration": [("read" if exists else "absent", path) for path, exists in findings["files"].items()],
        "Folders": [_folder_row(**folder) for folder in findings["folders"]],
        "Capabilities": [_capability_row(**capability) for capability in findings["capabilities"]],
    }


def _library_rows(libraries: list[Row], *, show_all: bool) -> Iterator[tuple[str, ...]]:
    shown = [library for library in libraries if show_all or library["version"] is None]
    for library in shown:
        yield library["name"], library["version"] or _style_bad("missing"), library["wanted"]
    if hidden := len(libraries) - len(shown):
        yield f"{hidden} installed", "", "(--all shows them)"


def _setting_rows(values: list[Row], *, show_all: bool) -> Iterator[tuple[str, ...]]:
    shown = [value for value in values if show_all or value["source"] != DEFAULT_SOURCE]
    for value in shown:
        yield value["name"], _format_value(value["value"]), value["source"]
    if hidden := len(values) - len(shown):
        yield f"{hidden} others", DEFAULT_SOURCE, "(--all shows them)"


def _folder_row(name: str, path: str, *, exists: bool, writable: bool, free: int) -> tuple[str, ...]:
    state = _style_good("writable") if writable else _style_bad("not writable")
    return name, state, f"{path} ({format_bytes(free)} free{'' if exists else ', not created yet'})"


def _capability_row(group: str, name: str, purpose: str, remedy: str, *, present: bool) -> tuple[str, ...]:
    if present:
        return f"{group}.{name}", _style_good("yes"), purpose
    return f"{group}.{name}", "no", f"{purpose}\n{remedy}"


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={seconds:g}" for name, seconds in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, float):
        return f"{value:g} s"
    return str(value) or "-"


def _style_good(text: str) -> str:
    return click.style(text, fg="green")


def _style_bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)


def examine_machine(environ: Mapping[str, str], start: Path | None = None) -> Row:
    """Examine this machine as the current process sees it; return the JSON report."""
    libraries = list(_list_libraries())
    problems = [
        _problem(f"{library['name']} is not installed", format_install_command(library["name"] + library["wanted"]))
        for library in libraries
        if library["version"] is None
    ]
    settings, sources = None, []
    try:
        sources = settings_loader.read_sources(environ, start)
        settings = settings_loader.load_settings(environ, start)
    except SettingError as error:
        problems.append(_problem(str(error), "Fix the value; docs/settings.md lists every setting."))
    tools_by_toolset = dict(_list_toolset_tools(settings, problems)) if settings and not problems else {}
    toolsets = {name: None if tool_names is None else len(tool_names) for name, tool_names in tools_by_toolset.items()}
    folders = [_check_folder(name, get_setting(settings, name)) for name in FOLDER_SETTINGS if settings]
    problems += [problem for folder in folders for problem in _find_folder_problems(**folder)]
    notes = [*_collect_notes(environ, settings), *_note_unknown_timeouts(settings, tools_by_toolset)]
    notes += _note_unusable_assets(settings) if settings and tools_by_toolset.get("assets") else ()
    versions = {"cleats": TOOLING_VERSION, "contract": SCHEMA_VERSION, "protocol": PROTOCOL_VERSION}
    lint_root = find_lint_root(settings) if settings else None
    return {
        "ok": not problems,
        "problems": problems,
        "notes": notes,
        "versions": {**versions, "python": platform.python_version(), "platform": platform.platform()},
        "libraries": libraries,
        "toolsets": toolsets,
        "packages": _map_packages(toolsets),
        "files": _list_config_files(environ, start),
        "settings": _list_setting_values(settings, sources) if settings else [],
        "folders": folders,
        "capabilities": [
            {
                "group": row.group,
                "name": row.name,
                "present": row.is_present(lint_root),
                "purpose": row.purpose,
                "remedy": row.remedy,
            }
            for row in CAPABILITIES
        ],
    }


def _problem(what: str, remedy: str) -> Row:
    return {"what": what, "remedy": remedy}


def _list_libraries() -> Iterator[Row]:
    for line in metadata.requires("cleats") or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
        if not marker:
            wanted = requirement.strip()[len(name) :].strip()
            yield {"name": name, "wanted": wanted, "version": _find_version(name)}


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _list_toolset_tools(settings: Settings, problems: list[Row]) -> Iterator[tuple[str, list[str] | None]]:
    try:
        from cleats import app  # noqa: PLC0415 - a library that is broken shows here
    except ImportError as error:
        problems.append(
            _problem(f"A library cannot be imported: {error}", f"Reinstall Cleats: {format_reinstall_command()}")
        )
        return
    for name in app.list_toolset_names():
        try:
            yield name, [tool.name for tool in app.build_registry(settings, [name])]
        except Exception as error:  # noqa: BLE001 - any error belongs in the report
            message = str(error) if str(error).startswith("toolset ") else f"toolset {name}: {error}"
            problems.append(_problem(message, f"Fix it, or serve without {name}."))
            yield name, None
    from cleats.toolsets.plugins import describe_packages, installed_toolsets  # noqa: PLC0415 - as above

    for name in (name for name in installed_toolsets() if name in app.BUILTIN_TOOLSETS):
        message = f"toolset {name!r} of {describe_packages(name)} is not served: a built-in toolset has this name"
        problems.append(_problem(message, "Uninstall the package, or use a version with another name."))


def _map_packages(toolsets: Iterable[str]) -> dict[str, str]:
    if not toolsets:
        return {}
    from cleats import app  # noqa: PLC0415 - loaded already
    from cleats.toolsets.plugins import describe_packages  # noqa: PLC0415

    return {name: describe_packages(name) for name in toolsets if name not in app.BUILTIN_TOOLSETS}


def _list_config_files(environ: Mapping[str, str], start: Path | None) -> dict[str, bool]:
    repository = settings_loader.find_repository_config(start or Path.cwd())
    files = {} if repository is None else {str(repository): True}
    user = settings_loader.user_config_path(environ)
    return files | {str(user): user.is_file()}


def _list_setting_values(settings: Settings, sources: list[SettingsSource]) -> list[Row]:
    rows = []
    for name in SETTINGS_BY_NAME:
        source = next((source.name for source in sources if name in source.values), DEFAULT_SOURCE)
        rows.append({"name": name, "value": _redact_value(get_setting(settings, name)), "source": source})
    return rows


def _redact_value(value: object) -> object:
    """Remove the password from URLs, because findings are pasted into bug reports."""
    if isinstance(value, str):
        return re.sub(r"//[^/@]*@", "//***@", value)
    if isinstance(value, tuple):
        return [_redact_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _check_folder(name: str, path: Path) -> Row:
    existing_folder = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    writable = existing_folder.is_dir() and os.access(existing_folder, os.W_OK | os.X_OK)
    free = shutil.disk_usage(existing_folder).free
    return {"name": name, "path": str(path), "exists": path.is_dir(), "writable": writable, "free": free}


def _find_folder_problems(name: str, path: str, *, writable: bool, free: int, **_facts: Any) -> Iterator[Row]:
    variable = SETTINGS_BY_NAME[name].variable
    if not writable:
        yield _problem(f"{name}: {path} cannot be written to", f"Set {variable} to a writable folder.")
    elif free < MIN_FREE_BYTES:
        remedy = f"Free some space, or set {variable} to a folder on another disk."
        yield _problem(f"{name}: the disk of {path} is full", remedy)


def _collect_notes(environ: Mapping[str, str], settings: Settings | None) -> Iterator[str]:
    yield from settings_loader.describe_unknown_variables(environ)
    if settings and settings.otlp_endpoint and _find_version("opentelemetry-sdk") is None:
        yield "otlp_endpoint is set, but the exporter is not installed; see Capabilities."


def _note_unknown_timeouts(
    settings: Settings | None, tools_by_toolset: Mapping[str, list[str] | None]
) -> Iterator[str]:
    # The tools of a toolset that cannot start are unknown.
    if settings is None or not tools_by_toolset or None in tools_by_toolset.values():
        return
    known_tools = [tool for toolset_tools in tools_by_toolset.values() for tool in toolset_tools or ()]
    for name in settings.timeouts:
        if name not in known_tools:
            yield f"timeouts: unknown tool {name!r}.{_suggest_name(name, known_tools)}"


def _note_unusable_assets(settings: Settings) -> Iterator[str]:
    from cleats.toolsets.assets.library import read_library  # noqa: PLC0415 - a broken installation has none of it
    from cleats.toolsets.assets.sources import locate_sources  # noqa: PLC0415
    from cleats.toolsets.assets.validation import AssetValidator  # noqa: PLC0415

    sources = locate_sources(settings)
    library = read_library(sources)
    for path, reason in library.skipped.items():
        code, _, detail = reason.partition(" ")
        yield f"assets: {path} is not served: {code.replace('_', ' ')}{detail and ' '}{detail}."
    for name, reason in AssetValidator(library.schemas, sources.schemas).broken_schemas.items():
        yield f"assets: the schema {name!r} cannot be used: {reason}."


def _suggest_name(name: str, known_names: list[str]) -> str:
    close_matches = get_close_matches(name, known_names, n=1)
    return f" Did you mean {close_matches[0]}?" if close_matches else ""
