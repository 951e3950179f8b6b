"""The table of servers: the name of each, and how it is installed and started."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PEERS_FOLDER = Path(__file__).parent / "peers"
CACHE_FOLDER = Path(__file__).parents[2] / ".bench"
"""The folder for peers that are not our dependencies, with one folder per version."""

FASTMCP_VERSION = "4.1.2"
"""The newest release whose requirements could be met when it was chosen."""

INSTALL_TIMEOUT_SECONDS = 600.0
"""Seconds for one install; a cold cache on a slow line."""


class PeerNotInstalledError(Exception):
    """A peer cannot be installed here. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class PeerServer:
    """One row of the comparison."""

    name: str
    title: Callable[[], str]
    prepare: Callable[[], Sequence[str]]
    """Install what is missing and return the command; raises PeerNotInstalledError."""


def _build_python_command(script: str) -> Sequence[str]:
    return [sys.executable, str(PEERS_FOLDER / script)]


def _prepare_fastmcp() -> Sequence[str]:
    home = CACHE_FOLDER / f"fastmcp-{FASTMCP_VERSION}"
    python = home / "bin" / "python"
    if not _get_ready_marker(home).exists():
        _run_installer([sys.executable, "-m", "venv", "--clear", str(home)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run_installer([*pip, f"fastmcp=={FASTMCP_VERSION}"])
        _get_ready_marker(home).touch()
    return [str(python), str(PEERS_FOLDER / "fastmcp_server.py")]


def _prepare_typescript() -> Sequence[str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise PeerNotInstalledError("install Node.js 20 or newer, with npm")
    home = CACHE_FOLDER / f"typescript-{_read_typescript_version()}"
    home.mkdir(parents=True, exist_ok=True)
    # Node looks for packages next to the script, so the script is copied there.
    for file in ("package.json", "server.mjs"):
        shutil.copyfile(PEERS_FOLDER / "ts" / file, home / file)
    if not _get_ready_marker(home).exists():
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]
        _run_installer([npm, "install", *flags], cwd=home)
        _get_ready_marker(home).touch()
    return [node, str(home / "server.mjs")]


def _read_typescript_version() -> str:
    package = json.loads((PEERS_FOLDER / "ts" / "package.json").read_text())
    return str(package["dependencies"]["@modelcontextprotocol/sdk"])


def _get_ready_marker(home: Path) -> Path:
    """Return the file that is created last, so that an interrupted install is started again."""
    return home / ".ready"


def _run_installer(command: Sequence[str], cwd: Path | None = None) -> None:
    command_line = " ".join([Path(command[0]).name, *command[1:]])
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_SECONDS)
    except subprocess.CalledProcessError as error:
        output_lines = [line for line in (error.stderr + error.stdout).splitlines() if line.strip()]
        reason = output_lines[-1].strip() if output_lines else f"exit code {error.returncode}"
        raise PeerNotInstalledError(f"`{command_line}` failed: {reason[:200]}; the next run tries again") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerNotInstalledError(f"`{command_line}` failed: {error}; the next run tries again") from None


BASELINE_NAME = "stock"
OUR_NAME = "cleats"

BENCH_SERVERS: Sequence[PeerServer] = (
    PeerServer(
        OUR_NAME,
        lambda: f"cleats {metadata.version('cleats')}",
        lambda: _build_python_command("cleats_echo.py"),
    ),
    PeerServer(
        BASELINE_NAME,
        lambda: f"mcp {metadata.version('mcp')} low-level",
        lambda: _build_python_command("stock_sdk.py"),
    ),
    PeerServer("fastmcp", lambda: f"fastmcp {FASTMCP_VERSION}", _prepare_fastmcp),
    PeerServer("typescript", lambda: f"TypeScript SDK {_read_typescript_version()}", _prepare_typescript),
    PeerServer("bare", lambda: "bare asyncio + msgspec", lambda: _build_python_command("bare_asyncio.py")),
)
