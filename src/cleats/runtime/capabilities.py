"""Optional capabilities of this machine, detected without importing anything."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from cleats.runtime.installation import format_install_command
from cleats.settings import Settings


@dataclass(frozen=True, slots=True)
class Capability:
    """One optional capability: its name for clients, how it is detected, how to install it."""

    group: str
    name: str
    probe: Literal["command", "module", "platform", "checkout"]
    target: str
    purpose: str
    package: str = ""
    """The package or the extra that brings it; empty if none does."""
    advice: str = ""
    """What to do without a package, or instead of installing it."""

    @property
    def remedy(self) -> str:
        """How to get the capability, for the way in which Cleats was installed."""
        command = format_install_command(self.package) if self.package else ""
        return f"{command} ({self.advice})" if command and self.advice else command or self.advice

    def is_present(self, lint_root: Path | None = None) -> bool:
        """Return whether the capability is available now; `lint_root` is the checkout whose own linters may run."""
        match self.probe:
            case "command":
                return _is_runnable(self.target)
            case "module":
                return _is_importable(self.target)
            case "checkout":
                if lint_root is None or not _is_runnable("node"):
                    return False
                return shutil.which(self.target, path=str(lint_root / "node_modules" / ".bin")) is not None
            case _:
                return sys.platform == self.target


def _is_runnable(name: str) -> bool:
    python_folder = Path(sys.executable).parent  # commands of this environment may not be on the PATH
    return shutil.which(name) is not None or shutil.which(name, path=str(python_folder)) is not None


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


CAPABILITIES = tuple(Capability(**row) for row in json.loads(Path(__file__).with_suffix(".json").read_bytes()))
"""The table of capabilities. The capability block, `check_status` and `cleats doctor` read it."""


BUILT_IN_SUPPORT: Mapping[str, Mapping[str, bool]] = {
    "mcp": {"legacy": True},
    "vector": {"wordTable": True, "hnsw": False, "sqliteVec": False},
    "docs": {"markdown": True, "rst": True, "asciidoc": True, "tex": True, "pdf": False, "docx": False},
}
"""Facts about this program that no machine changes: wires, kinds of vector search, documents that it reads."""


def find_lint_root(settings: Settings) -> Path | None:
    """Return the project if the settings let the linters of a repository run, else None."""
    return settings.project_dir if settings.code.index_lint == "repository" else None


@cache
def detect_capabilities(lint_root: Path | None = None) -> Mapping[str, Mapping[str, bool]]:
    """Detect every capability, by group and name; the result is cached."""
    block = {group: dict(support) for group, support in BUILT_IN_SUPPORT.items()}
    for capability in CAPABILITIES:
        block.setdefault(capability.group, {})[capability.name] = capability.is_present(lint_root)
    return block
