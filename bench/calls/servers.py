"""The table of servers: what each is called, and how it is made ready and started."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PEERS = Path(__file__).parent / "peers"
CACHE = Path(__file__).parents[2] / ".bench"
"""Peers that are not our dependencies are installed here, one folder per version."""

FASTMCP = "4.1.2"
"""The newest release whose requirements could be met when it was chosen."""

INSTALL_LIMIT = 600.0
"""Seconds for one install; a cold cache on a slow line."""


class NotInstalled(Exception):  # noqa: N818 - a state, not a fault
    """A peer cannot be had here. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    """One row of the comparison."""

    name: str
    title: Callable[[], str]
    prepare: Callable[[], Sequence[str]]
    """Install what is missing and give the command; raises NotInstalled."""


def _python(script: str) -> Sequence[str]:
    return [sys.executable, str(PEERS / script)]


def _fastmcp() -> Sequence[str]:
    home = CACHE / f"fastmcp-{FASTMCP}"
    python = home / "bin" / "python"
    if not _ready(home).exists():
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, f"fastmcp=={FASTMCP}"])
        _ready(home).touch()
    return [str(python), str(PEERS / "fastmcp_server.py")]


def _typescript() -> Sequence[str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotInstalled("install Node.js 20 or newer, with npm")
    home = CACHE / f"typescript-{_typescript_version()}"
    home.mkdir(parents=True, exist_ok=True)
    # Node finds packages from where a script lies, so the script goes beside them.
    for file in ("package.json", "server.mjs"):
        shutil.copyfile(PEERS / "ts" / file, home / file)
    if not _ready(home).exists():
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]
        _run([npm, "install", *flags], cwd=home)
        _ready(home).touch()
    return [node, str(home / "server.mjs")]


def _typescript_version() -> str:
    package = json.loads((PEERS / "ts" / "package.json").read_text())
    return str(package["dependencies"]["@modelcontextprotocol/sdk"])


def _ready(home: Path) -> Path:
    """Made last, so that an interrupted install is begun again."""
    return home / ".ready"


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    shown = " ".join([Path(command[0]).name, *command[1:]])
    try:
        subprocess.run(
            command, cwd=cwd, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT
        )
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stderr + error.stdout).splitlines() if line.strip()]
        reason = said[-1].strip() if said else f"exit code {error.returncode}"
        raise NotInstalled(f"`{shown}` failed: {reason[:200]}; the next run tries again") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"`{shown}` failed: {error}; the next run tries again") from None


BASELINE = "stock"
OURS = "cleats"

SERVERS: Sequence[Server] = (
    Server(
        OURS,
        lambda: f"cleats {metadata.version('cleats')}",
        lambda: _python("cleats_echo.py"),
    ),
    Server(
        BASELINE,
        lambda: f"mcp {metadata.version('mcp')} low-level",
        lambda: _python("stock_sdk.py"),
    ),
    Server("fastmcp", lambda: f"fastmcp {FASTMCP}", _fastmcp),
    Server("typescript", lambda: f"TypeScript SDK {_typescript_version()}", _typescript),
    Server("bare", lambda: "bare asyncio + msgspec", lambda: _python("bare_asyncio.py")),
)
