"""What `cleats doctor` finds out: versions, settings, folders, toolsets and capabilities.

It only looks. Nothing but click has to be importable, since a broken installation is what it is
asked about.
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

from cleats.cli import config
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.capabilities import CAPABILITIES
from cleats.settings import TABLE, SettingError, Settings, Source

FOLDERS = ("cache_dir", "data_dir")

ROOM = 16 << 20
"""Bytes without which hardly anything can be kept."""

DEFAULT = "default"
"""The source of a setting that nobody set."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Library:
    """A distribution that Cleats depends on."""

    name: str
    wanted: str
    version: str | None


@dataclass(frozen=True, slots=True)
class Value:
    """A setting in force, and who set it."""

    name: str
    value: object
    source: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that Cleats writes to, made when it is first needed."""

    name: str
    path: str
    exists: bool
    writable: bool
    free: int


@dataclass(frozen=True, slots=True)
class Ability:
    """An optional capability."""

    group: str
    name: str
    present: bool
    purpose: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything the doctor saw."""

    ok: bool
    problems: list[Problem]
    notes: list[str]
    versions: Mapping[str, str]
    libraries: list[Library]
    toolsets: Mapping[str, int | None]
    packages: Mapping[str, str]
    """Where the toolsets are from that are not ours."""
    files: Mapping[str, bool]
    settings: list[Value]
    folders: list[Folder]
    capabilities: list[Ability]


def examine(environ: Mapping[str, str], start: Path | None = None) -> Findings:
    """Look at this machine as this process sees it."""
    libraries = list(_libraries())
    problems = [_not_installed(each) for each in libraries if each.version is None]
    settings, sources = None, []
    try:
        sources = config.sources(environ, start)
        settings = config.load(environ, start)
    except SettingError as error:
        problems.append(Problem(str(error), "Correct it; docs/settings.md has every setting."))
    tools = dict(_toolsets(settings, problems)) if settings and not problems else {}
    toolsets = {name: None if named is None else len(named) for name, named in tools.items()}
    folders = [_folder(name, getattr(settings, name)) for name in FOLDERS if settings]
    problems += [_not_writable(folder) for folder in folders if not folder.writable]
    problems += [_full(folder) for folder in folders if folder.writable and folder.free < ROOM]
    return Findings(
        ok=not problems,
        problems=problems,
        notes=[*_notes(environ, settings), *_untimed(settings, tools)],
        versions=_versions(),
        libraries=libraries,
        toolsets=toolsets,
        packages=_packages(toolsets),
        files=_files(environ, start),
        settings=_values(settings, sources) if settings else [],
        folders=folders,
        capabilities=[
            Ability(each.group, each.name, each.present, each.purpose, each.remedy)
            for each in CAPABILITIES
        ],
    )


def _versions() -> dict[str, str]:
    return {
        "cleats": TOOLING_VERSION,
        "contract": SCHEMA_VERSION,
        "protocol": PROTOCOL_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _libraries() -> Iterator[Library]:
    """What our own metadata asks for; what stands behind a marker is optional."""
    for line in metadata.requires("cleats") or ():
        wanted, _, marker = line.partition(";")
        name = re.split(r"[^\w.-]", wanted.strip(), maxsplit=1)[0]
        if not marker:
            yield Library(name, wanted.strip()[len(name) :].strip(), _version(name))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _toolsets(
    settings: Settings, problems: list[Problem]
) -> Iterator[tuple[str, list[str] | None]]:
    """The tools of each toolset; None for one that cannot start."""
    try:
        from cleats import app  # noqa: PLC0415 - a library that is broken shows here
    except ImportError as error:
        problems.append(Problem(f"an import fails: {error}", "Install Cleats anew."))
        return
    for name in app.names():
        try:
            yield name, [tool.name for tool in app.catalogue(settings, [name])]
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs in the findings
            problems.append(Problem(_named(name, str(error)), f"Or serve without {name}."))
            yield name, None
    for name, package in _shadowed(app.TOOLSETS):
        what = f"toolset {name!r} of {package} is never served: the name is ours"
        problems.append(Problem(what, "It needs another name; uninstall it until it has one."))


def _named(name: str, error: str) -> str:
    return error if error.startswith("toolset ") else f"toolset {name}: {error}"


def _shadowed(ours: Iterable[str]) -> Iterator[tuple[str, str]]:
    from cleats.toolsets.installed import offers, packages  # noqa: PLC0415 - see `_toolsets`

    return ((name, packages(name)) for name in offers() if name in ours)


def _packages(toolsets: Iterable[str]) -> dict[str, str]:
    """Where the toolsets are from that are not ours."""
    if not toolsets:
        return {}
    from cleats import app  # noqa: PLC0415 - loaded already
    from cleats.toolsets.installed import packages  # noqa: PLC0415

    return {name: packages(name) for name in toolsets if name not in app.TOOLSETS}


def _files(environ: Mapping[str, str], start: Path | None) -> dict[str, bool]:
    repository = config.repository_file(start or Path.cwd())
    found = {} if repository is None else {str(repository): True}
    user = config.user_file(environ)
    return found | {str(user): user.is_file()}


def _values(settings: Settings, sources: list[Source]) -> list[Value]:
    return [
        Value(
            name,
            _public(getattr(settings, name)),
            next((source.name for source in sources if name in source.values), DEFAULT),
        )
        for name in TABLE
    ]


def _public(value: object) -> object:
    """Findings are pasted into bug reports; the password in a URL must not be."""
    if isinstance(value, str):
        return re.sub(r"//[^/@]*@", "//***@", value)
    if isinstance(value, tuple):
        return [_public(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _folder(name: str, path: Path) -> Folder:
    standing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    writable = standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)
    return Folder(name, str(path), path.is_dir(), writable, shutil.disk_usage(standing).free)


def _not_installed(library: Library) -> Problem:
    wanted = library.name + library.wanted
    return Problem(f"{library.name} is not installed", f"pip install '{wanted}'")


def _not_writable(folder: Folder) -> Problem:
    return Problem(
        f"{folder.name}: {folder.path} cannot be written to",
        f"Set {TABLE[folder.name].variable} to a folder that can.",
    )


def _full(folder: Folder) -> Problem:
    return Problem(
        f"{folder.name}: the disk of {folder.path} is full",
        f"Make room, or set {TABLE[folder.name].variable} to a folder on another one.",
    )


def _notes(environ: Mapping[str, str], settings: Settings | None) -> Iterator[str]:
    known = [setting.variable for setting in TABLE.values()]
    for name in config.strays(environ):
        near = get_close_matches(name, known, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        yield f"{name} is set, but there is no such setting.{advice}"
    if settings and settings.otlp_endpoint and _version("opentelemetry-sdk") is None:
        yield "otlp_endpoint is set, but nothing here can send to it; see Capabilities."


def _untimed(settings: Settings | None, tools: Mapping[str, list[str] | None]) -> Iterator[str]:
    """The timeouts that nothing heeds. A toolset that cannot start may have tools of any name."""
    if settings is None or not tools or None in tools.values():
        return
    known = [tool for named in tools.values() for tool in named or ()]
    for name in settings.timeouts:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            advice = f" Did you mean {near[0]}?" if near else ""
            yield f"timeouts: there is no tool {name!r}.{advice}"
