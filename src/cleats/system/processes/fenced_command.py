"""Commands behind a fence: no network, no files but the named ones, limits, and nothing left behind.

The fence itself is `fence.py`, a program. Like every command it runs under a supervisor, so that a cancelled call, a
shutdown and the death of this process end it with everything in it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cleats.system.processes import process
from cleats.system.processes.command import StartError

PROGRAM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
HOME: Final = "/home/user"

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_SYSTEM_FILES: Final = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)
"""What programs need of the system: code and the settings of the linker. No other file of the machine is visible."""

WORK_FOLDER: Final = "/work"
"""The current folder of a command, a name that only its fence has."""

_WRITABLE_FOLDERS: Final = ("/dev/shm", "/tmp", WORK_FOLDER, HOME)  # noqa: S108 - names inside the fence
"""Empty folders in memory, which disappear with the fence."""

_WRITTEN_FILES: Final = {
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/passwd": f"user:x:1000:1000::{HOME}:/bin/sh\n",
    "/etc/group": "user:x:1000:\n",
    "/etc/resolv.conf": "nameserver 192.0.2.1\n",  # no machine has it (RFC 5737): a look-up fails at once
}

GRACE_SECONDS: Final = 0.5
"""Time for the fence to end when a call is cancelled; it has nothing to save."""


class FenceUnavailable(Exception):  # noqa: N818 - a condition of the machine
    """Raised when this machine cannot fence a command; nothing was run."""


@dataclass(frozen=True, slots=True)
class FenceLimits:
    """Limits of a command and everything that it starts."""

    wall_seconds: float = 60.0
    cpu_seconds: int = 20
    """CPU time of one process."""
    memory_bytes: int = 1 << 30
    """Memory in use of all processes together."""
    address_bytes: int | None = 8 << 30
    """Addresses of one process; None for programs that reserve more than they use."""
    disk_bytes: int = 128 << 20
    """Size of each writable folder."""
    file_bytes: int = 64 << 20
    processes: int = 64
    open_files: int = 256
    output_bytes: int = 64 << 10
    """The part of each stream that is kept, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedCommand:
    """A command, and all that it may see."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = WORK_FOLDER
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts by path; they are written into the folders in memory."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders of this machine that can be read, by path inside the fence."""
    writable_folders: Mapping[str, Path] = field(default_factory=dict)
    limits: FenceLimits = FenceLimits()


@dataclass(frozen=True, slots=True)
class FencedResult:
    """The end of a fenced command."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    limit: str
    """The limit at which it was ended: `time`, `memory`, `processes`, or `listening` if it waited for connections."""
    network_attempts: int
    """How often it tried to leave this machine."""


def get_interpreter() -> tuple[Path, Path]:
    """Return the Python that this one is based on, and the folder that it is installed in."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve(), Path(sys.base_prefix).resolve()


async def run_fenced(command: FencedCommand, root: Path) -> FencedResult:
    """Run a command behind a fence; `root` is an empty folder, which several fences may use at the same time.

    Raises:
        FenceUnavailable: This machine cannot fence a command.
    """
    if sys.platform != "linux":
        raise FenceUnavailable("only Linux can cut a program off from the network")
    interpreter, prefix = get_interpreter()
    fence = str(Path(__file__).with_name("fence.py"))
    order = _build_order(command, root, prefix)
    try:
        completed = await process.run(
            [str(interpreter), "-I", "-S", fence],
            env={},
            stdin=json.dumps(order).encode(),
            grace=GRACE_SECONDS,
            output_limit=command.limits.output_bytes,
        )
    except StartError as error:
        raise FenceUnavailable(str(error)) from error
    stderr, _, last_line = completed.stderr.rstrip(b"\n").rpartition(b"\n")
    try:
        report = json.loads(last_line)
    except ValueError:
        reason = completed.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise FenceUnavailable(f"the fence ended without a report: {reason[-200:]}") from None
    if "unavailable" in report:
        raise FenceUnavailable(str(report["unavailable"]))
    ended = report["ended"]
    return FencedResult(
        ended["exit_code"], completed.stdout, stderr, ended["limit"] or "", int(ended["network_attempts"])
    )


def _build_order(command: FencedCommand, root: Path, prefix: Path) -> dict[str, Any]:
    system_paths = [path for path in (*_SYSTEM_FOLDERS, *_SYSTEM_FILES) if Path(path).exists()]
    links = {path: str(Path(path).readlink()) for path in system_paths if Path(path).is_symlink()}
    readable = {path: path for path in system_paths if path not in links}
    if not any(prefix.is_relative_to(path) for path in readable):
        readable[str(prefix)] = str(prefix)
    readable |= {target: str(source) for target, source in command.folders.items()}
    return {
        "root": str(root),
        "argv": list(command.argv),
        "env": {"PATH": PROGRAM_PATH, "HOME": HOME, "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", **command.env},  # noqa: S108
        "cwd": command.cwd,
        "files": {**_WRITTEN_FILES, **command.files},
        "links": links,
        "folders": list(_WRITABLE_FOLDERS),
        "binds": [
            *([source, target, False] for target, source in readable.items()),
            *([str(source), target, True] for target, source in command.writable_folders.items()),
        ],
        "limits": asdict(command.limits),
    }
