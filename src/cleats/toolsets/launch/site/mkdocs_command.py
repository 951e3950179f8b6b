"""The command line and the environment of MkDocs: it runs fenced, from a configuration that Cleats has checked."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cleats.toolsets.launch.site.mkdocs import MkDocsConfig

RUNNER_PATH: Final = Path(__file__).with_name("mkdocs_runner.py")
PYTHON_OPTIONS: Final = ("-I", "-B")
"""Neither the folder of the site nor variables add modules, and no bytecode is written."""


def write_build_file(config: MkDocsConfig, site: Path, scratch: Path) -> Path:
    """Write the checked configuration into a folder for builds; return its path."""
    path = scratch / "mkdocs" / "mkdocs.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config.render_build_file(site.resolve()), encoding="utf-8")
    return path


def build_command(site: Path, scratch: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs MkDocs on a site; it writes to one folder only."""
    return [sys.executable, *PYTHON_OPTIONS, str(RUNNER_PATH), str(site.resolve()), str(scratch.resolve()), *arguments]


def build_environment(scratch: Path, outer_env: Mapping[str, str]) -> dict[str, str]:
    """Build the whole environment of MkDocs; its folder is created below `scratch`."""
    home = scratch / "mkdocs" / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "PATH"), str(home.resolve())),  # an empty PATH: no programs
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
        **{name: outer_env[name] for name in ("SYSTEMROOT",) if name in outer_env},  # Windows needs it
    }
