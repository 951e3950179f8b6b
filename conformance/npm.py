"""The official tools, from npm, in exactly the versions that `package.json` names.

They are installed into `.conformance/` and kept there until the pins change. The lock file has
hashes and no addresses, so any registry that npm is configured with works. npm's own `node` package
is among them, because the Inspector needs a newer Node than many machines have; its binary is
fetched by an install script, by version, outside what the lock file's hashes cover.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from conformance.processes import BrokenProcessError, run_command

CONFORMANCE_FOLDER = Path(__file__).parent
INSTALL_FOLDER = CONFORMANCE_FOLDER.parent / ".conformance"
READY_FILE_NAME = "installed"
"""The file that is created last, so that an interrupted install is started again."""

PIN_FILES = (CONFORMANCE_FOLDER / "package.json", CONFORMANCE_FOLDER / "package-lock.json")

INSTALL_TIMEOUT_SECONDS = 600.0
"""Seconds for the install; a cold cache on a slow line."""

# Not `npm ci`: it insists on optional packages for every platform, which not every registry has.
INSTALL_ARGUMENTS = ("install", "--no-audit", "--no-fund", "--loglevel=error")


NETWORK_ERRORS = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "network")
"""Words in npm's output by which a machine without a network is recognized."""


class ToolsNotInstalledError(Exception):
    """The tools cannot be installed here. The text says why, and what to do."""


class OfflineError(ToolsNotInstalledError):
    """There is no npm or no network here, which is not a fault of the pins."""


@dataclass(frozen=True, slots=True)
class ConformanceTools:
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
        """The environment to run the tools in: our Node first, and a writable home."""
        path = f"{self._bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**os.environ, "PATH": path, "HOME": str(self.scratch)}

    @property
    def scratch(self) -> Path:
        return self.home / "home"

    @property
    def _bin(self) -> Path:
        return self.home / "node_modules" / ".bin"


def is_installed(home: Path = INSTALL_FOLDER, pins: Sequence[Path] = PIN_FILES) -> bool:
    """Return whether the tools are installed in the versions that are pinned now."""
    ready = home / READY_FILE_NAME
    return ready.exists() and ready.read_text() == _hash_pins(pins)


async def install_tools() -> ConformanceTools:
    """Return the tools of the suite, installed now if they are missing.

    Raises:
        ToolsNotInstalledError: npm is missing or failed.
    """
    await install_pinned(INSTALL_FOLDER, PIN_FILES)
    return ConformanceTools(INSTALL_FOLDER)


async def install_pinned(
    home: Path, pins: Sequence[Path], arguments: Sequence[str] = (*INSTALL_ARGUMENTS, "--omit=optional")
) -> Mapping[str, str]:
    """Install the pinned packages in a folder and return the environment to run them in.

    Raises:
        ToolsNotInstalledError: npm is missing or failed.
    """
    if not is_installed(home, pins):
        (home / READY_FILE_NAME).unlink(missing_ok=True)
        await _run_npm_install(home, pins, arguments)
        (home / READY_FILE_NAME).write_text(_hash_pins(pins))
    tools = ConformanceTools(home)
    tools.scratch.mkdir(exist_ok=True)
    return tools.env


def _hash_pins(pins: Sequence[Path]) -> str:
    return sha256(b"".join(pin.read_bytes() for pin in pins)).hexdigest()


async def _run_npm_install(home: Path, pins: Sequence[Path], arguments: Sequence[str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise OfflineError("npm was not found: install Node.js 20 or newer, which brings it")
    _copy_pins(home, pins)
    try:
        completed = await run_command([npm, *arguments], env=os.environ, cwd=home, limit=INSTALL_TIMEOUT_SECONDS)
    except BrokenProcessError as error:
        raise ToolsNotInstalledError(str(error)) from None
    if completed.code != 0:
        output = completed.stderr or completed.stdout
        error_type = OfflineError if any(word in output for word in NETWORK_ERRORS) else ToolsNotInstalledError
        raise error_type(f"npm install failed:\n{output}")


def _copy_pins(home: Path, pins: Sequence[Path]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / "node_modules", ignore_errors=True)
    for pin in pins:  # npm rewrites the lock file it uses, so it gets a copy
        shutil.copyfile(pin, home / pin.name)
