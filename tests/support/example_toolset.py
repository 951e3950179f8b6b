"""Packages with toolsets: the example as pip installs it, and small ones made by the tests."""

import subprocess
import sys
from pathlib import Path

from tests.support.paths import REPOSITORY_ROOT

EXAMPLE_FOLDER = REPOSITORY_ROOT / "examples" / "toolset"

VALID_TOOLSET_SOURCE = """
from cleats.contract.tools import Tool, Toolset, arguments

SHAPE = {"type": "object"}

async def run(given, context):
    return {}

def tool(name="wave", **rest):
    rest = {"description": "Wave.", "input": arguments(), "output": SHAPE, **rest}
    return Tool(name=name, run=run, **rest)

def toolset(settings, *tools, **rest):
    rest = {"name": NAME, "schema_version": "1.0.0", **rest}
    return Toolset(purpose="Be there.", tools=tools or [tool()], **rest)
"""
"""A module with a toolset that follows every rule; a test appends code that breaks one."""


def install_example(target: Path) -> Path:
    """Install the example into a folder with pip, without a network."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)),
            str(EXAMPLE_FOLDER),
        ],
        check=True,
        timeout=200,
    )
    return target


def install_toolset(folder: Path, name: str, code: str = "", *, package: str = "") -> Path:
    """Create a package with the toolset `name` in a folder that can be put on Python's path."""
    package = package or f"acme-{name}"
    module = package.replace("-", "_")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{VALID_TOOLSET_SOURCE}\n{code}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[cleats.toolsets]\n{name} = {module}:toolset\n")
    return folder
