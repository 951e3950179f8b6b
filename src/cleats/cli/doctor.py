"""`cleats doctor`: look first, then say; the JSON and the text are the same findings."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path

import click

from cleats.cli import config
from cleats.cli.printing import columns, echo_json, heading, size
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.settings import SettingError, Settings, Source, variable

FOLDERS = ("cache_dir", "data_dir")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """Say what is installed, what is missing, and how to get it.

    Nothing is changed and nothing is sent anywhere. Optional capabilities may be missing; each
    says what it is good for.

    Exits 0 when all that Cleats needs is there, 1 when something has to be put right.

    \b
    Examples:
      cleats doctor
      cleats doctor --json | jq .problems
    """  # noqa: D301 - click reads the backspace
    findings = examine(os.environ)
    if as_json:
        echo_json(asdict(findings))
    else:
        click.echo("\n\n".join(_blocks(findings)))
    sys.exit(0 if findings.ok else 1)


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
    files: Mapping[str, bool]
    settings: list[Value]
    folders: list[Folder]
    capabilities: list[Ability]


def examine(environ: Mapping[str, str], start: Path | None = None) -> Findings:
    """Look at this machine as this process sees it."""
    from cleats.runtime.capabilities import CAPABILITIES  # noqa: PLC0415 - help needs none of it

    libraries = list(_libraries())
    problems = [_not_installed(each) for each in libraries if each.version is None]
    settings, sources = None, []
    try:
        sources = config.sources(environ, start)
        settings = config.load(environ, start)
    except SettingError as error:
        problems.append(Problem(str(error), "Correct it; docs/settings.md has every setting."))
    toolsets = dict(_toolsets(settings, problems)) if settings and not problems else {}
    folders = [_folder(name, getattr(settings, name)) for name in FOLDERS if settings]
    problems += [_not_writable(folder) for folder in folders if not folder.writable]
    return Findings(
        ok=not problems,
        problems=problems,
        notes=list(_notes(environ, settings)),
        versions=_versions(),
        libraries=libraries,
        toolsets=toolsets,
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


def _toolsets(settings: Settings, problems: list[Problem]) -> Iterator[tuple[str, int | None]]:
    """How many tools each toolset has; None for one that cannot start."""
    try:
        from cleats import app  # noqa: PLC0415 - a library that is broken shows here
    except ImportError as error:
        problems.append(Problem(f"an import fails: {error}", "Install Cleats anew."))
        return
    for name in app.TOOLSETS:
        try:
            yield name, len(list(app.catalogue(settings, [name])))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs in the findings
            problems.append(Problem(f"toolset {name}: {error}", f"Or serve without {name}."))
            yield name, None


def _files(environ: Mapping[str, str], start: Path | None) -> dict[str, bool]:
    repository = config.repository_file(start or Path.cwd())
    found = {} if repository is None else {str(repository): True}
    user = config.user_file(environ)
    return found | {str(user): user.is_file()}


def _values(settings: Settings, sources: list[Source]) -> list[Value]:
    return [
        Value(
            item.name,
            _public(getattr(settings, item.name)),
            next((source.name for source in sources if item.name in source.values), "default"),
        )
        for item in fields(Settings)
    ]


def _public(value: object) -> object:
    """Findings are pasted into bug reports; the password in a URL must not be."""
    if isinstance(value, str):
        return re.sub(r"//[^/@]*@", "//***@", value)
    return str(value) if isinstance(value, Path) else value


def _folder(name: str, path: Path) -> Folder:
    standing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    writable = standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)
    return Folder(name, str(path), path.is_dir(), writable, shutil.disk_usage(standing).free)


def _not_installed(library: Library) -> Problem:
    wanted = library.name + library.wanted
    return Problem(f"{library.name} is not installed", f"pip install '{wanted}'")


def _not_writable(folder: Folder) -> Problem:
    item = next(item for item in fields(Settings) if item.name == folder.name)
    return Problem(
        f"{folder.name}: {folder.path} cannot be written to",
        f"Set {variable(item)} to a folder that can.",
    )


def _notes(environ: Mapping[str, str], settings: Settings | None) -> Iterator[str]:
    known = [variable(item) for item in fields(Settings)]
    for name in config.strays(environ):
        near = get_close_matches(name, known, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        yield f"{name} is set, but there is no such setting.{advice}"
    if settings and settings.otlp_endpoint and _version("opentelemetry-sdk") is None:
        yield "otlp_endpoint is set, but nothing here can send to it; see Capabilities."


def _blocks(findings: Findings) -> Iterator[str]:
    for title, rows in _tables(findings).items():
        if rows:
            yield heading(title) + "\n" + columns(rows)
    if findings.notes:
        yield "\n".join(findings.notes)
    for problem in findings.problems:
        yield f"{_bad('Problem:')} {problem.what}\n{problem.remedy}"
    if findings.ok:
        yield _good("Ready.")


def _tables(findings: Findings) -> dict[str, list[tuple[str, ...]]]:
    return {
        "Versions": list(findings.versions.items()),
        "Libraries": [
            (each.name, each.version or _bad("missing"), each.wanted) for each in findings.libraries
        ],
        "Toolsets": [
            (
                name,
                _bad("cannot start")
                if count is None
                else f"{count} tool{'s' if count != 1 else ''}",
            )
            for name, count in findings.toolsets.items()
        ],
        "Settings": [(each.name, _shown(each.value), each.source) for each in findings.settings],
        "Files": [("read" if there else "none", path) for path, there in findings.files.items()],
        "Folders": [_row(folder) for folder in findings.folders],
        "Capabilities": [
            (f"{each.group}.{each.name}", _good("yes"), each.purpose)
            if each.present
            else (f"{each.group}.{each.name}", "no", f"{each.purpose}\n{each.remedy}")
            for each in findings.capabilities
        ],
    }


def _row(folder: Folder) -> tuple[str, ...]:
    state = _good("writable") if folder.writable else _bad("not writable")
    made = "" if folder.exists else ", not made yet"
    return folder.name, state, f"{folder.path} ({size(folder.free)} free{made})"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={seconds:g}" for name, seconds in value.items()) or "-"
    if isinstance(value, float):
        return f"{value:g} s"
    return str(value) or "-"


def _counted(tools: int) -> str:
    return f"{tools} tool" if tools == 1 else f"{tools} tools"


def _good(text: str) -> str:
    return click.style(text, fg="green")


def _bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)
