"""The checks of `cleats doctor`: versions, settings, folders, toolsets and capabilities.

The checks change nothing. Only click has to be importable, because the command must also work in a
broken installation.
"""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path

from cleats.cli import settings_loader
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.capabilities import CAPABILITIES
from cleats.settings import SETTINGS_BY_NAME, SettingError, Settings, SettingsSource

FOLDER_SETTINGS = ("cache_dir", "data_dir")

MIN_FREE_BYTES = 16 << 20
"""The free bytes below which a disk counts as full."""

DEFAULT_SOURCE = "default"
"""The source of a setting that nobody has set."""


@dataclass(frozen=True, slots=True)
class DoctorProblem:
    """A problem and its remedy."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RequiredLibrary:
    """A distribution that Cleats depends on."""

    name: str
    wanted: str
    version: str | None


@dataclass(frozen=True, slots=True)
class SettingValue:
    """The effective value of a setting, and its source."""

    name: str
    value: object
    source: str


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A folder that Cleats writes to; it is created when it is first needed."""

    name: str
    path: str
    exists: bool
    writable: bool
    free: int


@dataclass(frozen=True, slots=True)
class OptionalCapability:
    """An optional capability."""

    group: str
    name: str
    present: bool
    purpose: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that the doctor found out."""

    ok: bool
    problems: list[DoctorProblem]
    notes: list[str]
    versions: Mapping[str, str]
    libraries: list[RequiredLibrary]
    toolsets: Mapping[str, int | None]
    packages: Mapping[str, str]
    """The packages of the toolsets that are not built in."""
    files: Mapping[str, bool]
    settings: list[SettingValue]
    folders: list[CheckedFolder]
    capabilities: list[OptionalCapability]


def examine_machine(environ: Mapping[str, str], start: Path | None = None) -> DoctorReport:
    """Examine this machine as the current process sees it."""
    libraries = list(_list_libraries())
    problems = [_report_missing_library(item) for item in libraries if item.version is None]
    settings, sources = None, []
    try:
        sources = settings_loader.read_sources(environ, start)
        settings = settings_loader.load_settings(environ, start)
    except SettingError as error:
        problems.append(DoctorProblem(str(error), "Correct it; docs/settings.md has every setting."))
    tools_by_toolset = dict(_list_toolset_tools(settings, problems)) if settings and not problems else {}
    toolsets = {name: None if tool_names is None else len(tool_names) for name, tool_names in tools_by_toolset.items()}
    folders = [_check_folder(name, getattr(settings, name)) for name in FOLDER_SETTINGS if settings]
    problems += [_report_unwritable_folder(folder) for folder in folders if not folder.writable]
    problems += [_report_full_disk(folder) for folder in folders if folder.writable and folder.free < MIN_FREE_BYTES]
    return DoctorReport(
        ok=not problems,
        problems=problems,
        notes=[*_collect_notes(environ, settings), *_note_unknown_timeouts(settings, tools_by_toolset)],
        versions=_collect_versions(),
        libraries=libraries,
        toolsets=toolsets,
        packages=_map_packages(toolsets),
        files=_list_config_files(environ, start),
        settings=_list_setting_values(settings, sources) if settings else [],
        folders=folders,
        capabilities=[
            OptionalCapability(item.group, item.name, item.is_present, item.purpose, item.remedy)
            for item in CAPABILITIES
        ],
    )


def _collect_versions() -> dict[str, str]:
    return {
        "cleats": TOOLING_VERSION,
        "contract": SCHEMA_VERSION,
        "protocol": PROTOCOL_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _list_libraries() -> Iterator[RequiredLibrary]:
    """Yield the libraries that our metadata requires, without those behind an optional marker."""
    for line in metadata.requires("cleats") or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
        if not marker:
            yield RequiredLibrary(name, requirement.strip()[len(name) :].strip(), _find_version(name))


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _list_toolset_tools(settings: Settings, problems: list[DoctorProblem]) -> Iterator[tuple[str, list[str] | None]]:
    """Yield the tools of each toolset, or None for a toolset that cannot start."""
    try:
        from cleats import app  # noqa: PLC0415 - a library that is broken shows here
    except ImportError as error:
        problems.append(DoctorProblem(f"an import fails: {error}", "Install Cleats anew."))
        return
    for name in app.list_toolset_names():
        try:
            yield name, [tool.name for tool in app.build_registry(settings, [name])]
        except Exception as error:  # noqa: BLE001 - any error belongs in the report
            problems.append(DoctorProblem(_prefix_toolset_name(name, str(error)), f"Or serve without {name}."))
            yield name, None
    for name, package in _find_shadowed_toolsets(app.BUILTIN_TOOLSETS):
        message = f"toolset {name!r} of {package} is never served: the name is ours"
        problems.append(DoctorProblem(message, "It needs another name; uninstall it until it has one."))


def _prefix_toolset_name(name: str, error: str) -> str:
    return error if error.startswith("toolset ") else f"toolset {name}: {error}"


def _find_shadowed_toolsets(built_in_names: Iterable[str]) -> Iterator[tuple[str, str]]:
    from cleats.toolsets.plugins import describe_packages, installed_toolsets  # noqa: PLC0415 - see `_list_toolset_tools`

    return ((name, describe_packages(name)) for name in installed_toolsets() if name in built_in_names)


def _map_packages(toolsets: Iterable[str]) -> dict[str, str]:
    """Return the packages of the toolsets that are not built in."""
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


def _list_setting_values(settings: Settings, sources: list[SettingsSource]) -> list[SettingValue]:
    return [
        SettingValue(
            name,
            _redact_value(getattr(settings, name)),
            next((source.name for source in sources if name in source.values), DEFAULT_SOURCE),
        )
        for name in SETTINGS_BY_NAME
    ]


def _redact_value(value: object) -> object:
    """Remove the password from URLs, because findings are pasted into bug reports."""
    if isinstance(value, str):
        return re.sub(r"//[^/@]*@", "//***@", value)
    if isinstance(value, tuple):
        return [_redact_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _check_folder(name: str, path: Path) -> CheckedFolder:
    existing_folder = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    writable = existing_folder.is_dir() and os.access(existing_folder, os.W_OK | os.X_OK)
    return CheckedFolder(name, str(path), path.is_dir(), writable, shutil.disk_usage(existing_folder).free)


def _report_missing_library(library: RequiredLibrary) -> DoctorProblem:
    requirement = library.name + library.wanted
    return DoctorProblem(f"{library.name} is not installed", f"pip install '{requirement}'")


def _report_unwritable_folder(folder: CheckedFolder) -> DoctorProblem:
    return DoctorProblem(
        f"{folder.name}: {folder.path} cannot be written to",
        f"Set {SETTINGS_BY_NAME[folder.name].variable} to a folder that can.",
    )


def _report_full_disk(folder: CheckedFolder) -> DoctorProblem:
    return DoctorProblem(
        f"{folder.name}: the disk of {folder.path} is full",
        f"Make room, or set {SETTINGS_BY_NAME[folder.name].variable} to a folder on another one.",
    )


def _collect_notes(environ: Mapping[str, str], settings: Settings | None) -> Iterator[str]:
    variable_names = [setting.variable for setting in SETTINGS_BY_NAME.values()]
    for name in settings_loader.find_unknown_variables(environ):
        close_matches = get_close_matches(name, variable_names, n=1)
        advice = f" Did you mean {close_matches[0]}?" if close_matches else ""
        yield f"{name} is set, but there is no such setting.{advice}"
    if settings and settings.otlp_endpoint and _find_version("opentelemetry-sdk") is None:
        yield "otlp_endpoint is set, but nothing here can send to it; see Capabilities."


def _note_unknown_timeouts(
    settings: Settings | None, tools_by_toolset: Mapping[str, list[str] | None]
) -> Iterator[str]:
    """Yield a note for every timeout whose tool does not exist.

    Yield nothing if a toolset cannot start, because its tools are unknown.
    """
    if settings is None or not tools_by_toolset or None in tools_by_toolset.values():
        return
    known_tools = [tool for toolset_tools in tools_by_toolset.values() for tool in toolset_tools or ()]
    for name in settings.timeouts:
        if name not in known_tools:
            close_matches = get_close_matches(name, known_tools, n=1)
            advice = f" Did you mean {close_matches[0]}?" if close_matches else ""
            yield f"timeouts: there is no tool {name!r}.{advice}"
