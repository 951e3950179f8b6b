"""The official tools, from npm, in exactly the versions that `package.json` names.

They are installed into `.conformance/` and kept there until the pins change. The lock file holds
hashes and no addresses, so whatever registry npm is set up with will do. npm's own `node` package
is among them, because the Inspector wants a newer Node than many machines have; its binary is
fetched by an install script, by version, outside what the lock file's hashes cover.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from conformance.processes import Broken, finished

HERE = Path(__file__).parent
HOME = HERE.parent / ".conformance"
READY = "installed"
"""The file that is made last, so that an interrupted install is begun again."""

PINS = (HERE / "package.json", HERE / "package-lock.json")

LIMIT = 600.0
"""Seconds for the install; a cold cache on a slow line."""

# Not `npm ci`: it insists on optional packages for every platform, which not every registry has.
INSTALL = ("install", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error")


class NotInstalled(Exception):  # noqa: N818 - a state, not a fault
    """The tools cannot be had here. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The installed tools."""

    home: Path

    @property
    def suite(self) -> str:
        return str(self._bin / "conformance")

    @property
    def inspector(self) -> str:
        return str(self._bin / "mcp-inspector")

    @property
    def requirements(self) -> Path:
        """The folder with the suite's lists of scenarios."""
        return self.home / "node_modules" / "@modelcontextprotocol" / "conformance" / "requirements"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment to run them in: our Node first, and a home they may write to."""
        path = f"{self._bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**os.environ, "PATH": path, "HOME": str(self.scratch)}

    @property
    def scratch(self) -> Path:
        return self.home / "home"

    @property
    def _bin(self) -> Path:
        return self.home / "node_modules" / ".bin"


def installed(home: Path = HOME, pins: Sequence[Path] = PINS) -> bool:
    """Whether the tools are there, in the versions that are pinned now."""
    ready = home / READY
    return ready.exists() and ready.read_text() == _hashed(pins)


async def install() -> Tools:
    """The tools of the suite, installed now unless they already are.

    Raises:
        NotInstalled: npm is missing or failed.
    """
    await provide(HOME, PINS)
    return Tools(HOME)


async def provide(home: Path, pins: Sequence[Path]) -> Mapping[str, str]:
    """Have what is pinned in a folder; the environment to run it in.

    Raises:
        NotInstalled: npm is missing or failed.
    """
    if not installed(home, pins):
        (home / READY).unlink(missing_ok=True)
        await _install(home, pins)
        (home / READY).write_text(_hashed(pins))
    tools = Tools(home)
    tools.scratch.mkdir(exist_ok=True)
    return tools.env


def _hashed(pins: Sequence[Path]) -> str:
    return sha256(b"".join(pin.read_bytes() for pin in pins)).hexdigest()


async def _install(home: Path, pins: Sequence[Path]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm was not found: install Node.js 20 or newer, which brings it")
    _lay_out(home, pins)
    try:
        ended = await finished([npm, *INSTALL], env=os.environ, cwd=home, limit=LIMIT)
    except Broken as error:
        raise NotInstalled(str(error)) from None
    if ended.code != 0:
        raise NotInstalled(f"npm install failed:\n{ended.stderr or ended.stdout}")


def _lay_out(home: Path, pins: Sequence[Path]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / "node_modules", ignore_errors=True)
    for pin in pins:  # npm rewrites the lock file it uses, so it gets a copy
        shutil.copyfile(pin, home / pin.name)
