"""Packages that bring toolsets: the example as pip installs it, and small ones made on the spot."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "toolset"

SOUND = """
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
"""A module with a toolset that keeps every rule; what a test appends breaks one."""


def install_example(target: Path) -> Path:
    """The example into a folder, as pip does it, without a network."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)),
            str(EXAMPLE),
        ],
        check=True,
        timeout=200,
    )
    return target


def install(folder: Path, name: str, code: str = "", *, package: str = "") -> Path:
    """A package with the toolset `name`, as a folder that Python finds it in."""
    package = package or f"acme-{name}"
    module = package.replace("-", "_")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{SOUND}\n{code}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[cleats.toolsets]\n{name} = {module}:toolset\n")
    return folder
