"""Run one command without network, without the files of this machine, and within limits.

A program, not a library: `fenced_command.py` runs this file in a separate Python process and sends the order as JSON to
its stdin. Only on Linux 5.12 or newer, and only where the kernel lets users create namespaces.

The command gets namespaces of its own: a network that has only the loopback device, a process table that holds only its
own processes, and a file system that holds only what the order names, nearly all of it read-only. It runs as an
ordinary user without capabilities, cannot gain any, and cannot create further namespaces. The first process of its
table, which is this program, enforces the limits and outlives it; with this process, the kernel ends all others.

The last line of stderr is the report, written when no other process is left: `{"ended": {...}}`, or
`{"unavailable": REASON}` if there is no fence, in which case nothing was run.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

USER_ID: Final = 1000
"""The user of the command in its namespace. Not 0: the kernel takes the capabilities from other users only."""

POLL_SECONDS: Final = 0.05
"""Time between two checks of the limits that the kernel does not enforce."""

NAMESERVER_ADDRESS: Final = "192.0.2.1"
"""An address that no machine has (RFC 5737): looking up a name fails at once, and counts as use of the network."""

_CLONE_FLAGS: Final = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
"""New namespaces for users, mounts, processes, network, IPC and the host name."""

_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 4096, 16384, 1 << 18, 2, 4
_MNT_DETACH: Final = 2
_MOUNT_SETATTR: Final = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID = 1, 2
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_PAGE_BYTES: Final = resource.getpagesize()

_libc = ctypes.CDLL(None, use_errno=True)


class FenceError(Exception):
    """Raised when the kernel refuses a part of the fence."""


def check_call(action: str, result: int) -> None:
    """Check the result of a system call.

    Raises:
        FenceError: The call failed.
    """
    if result != 0:
        number = ctypes.get_errno()
        raise FenceError(f"the kernel refused {action}: {os.strerror(number)}")


def mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), os.fsencode(target), kind.encode() or None, flags, options.encode() or None)
    check_call(f"to mount {kind or source}", _libc.mount(*arguments))


def protect_mount(target: Path, *, recursive: bool, attributes: int = _ATTR_RDONLY | _ATTR_NOSUID) -> None:
    """Make a mount read-only, and those below it."""
    attributes_struct = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attributes_struct, 32)
    check_call("to protect files (it must be Linux 5.12 or newer)", result)


def enter_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    check_call("new namespaces", _libc.unshare(_CLONE_FLAGS))
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{USER_ID} {user} 1"),
            ("gid_map", f"{USER_ID} {group} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    except OSError as error:
        raise FenceError(f"the kernel refused the user of the namespace: {error.strerror}") from error


def build_root(root: Path, order: Mapping[str, Any]) -> None:
    """Build the file system of the command on an empty folder, and enter it."""
    check_call("private mounts", _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    limit = f"size={order['limits']['disk_bytes']},nr_inodes=20000,mode=0755"
    mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, limit)
    for source, target, is_writable in order["binds"]:
        _bind(Path(source), root / target.lstrip("/"), is_writable=is_writable)
    for name in _DEVICES:
        _bind(Path("/dev") / name, root / "dev" / name, is_writable=True)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / name).symlink_to(target)
    for path, target in order["links"].items():
        _make_parents(root / path.lstrip("/")).symlink_to(target)
    for folder in order["folders"]:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mount("tmpfs", root / folder.lstrip("/"), "tmpfs", _MS_NOSUID | _MS_NODEV, limit)
    for path, text in order["files"].items():
        _make_parents(root / path.lstrip("/")).write_text(text, encoding="utf-8")
    (root / "proc").mkdir()
    mount("proc", root / "proc", "proc", _MS_NOSUID | _MS_NODEV)
    protect_mount(root, recursive=False)
    os.chdir(root)
    check_call("another root", _libc.pivot_root(b".", b"."))
    check_call("to leave the old root", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")


def _make_parents(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _bind(source: Path, target: Path, *, is_writable: bool) -> None:
    _make_parents(target)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(str(source), target, "", _MS_BIND | _MS_REC)
    protect_mount(target, recursive=True, attributes=_ATTR_NOSUID | (0 if is_writable else _ATTR_RDONLY))


def set_up_kernel_limits() -> None:
    """Forbid further namespaces, start the loopback device, and protect the settings of the kernel.

    For a server that runs as root, the kernel takes the command for root where it asks for no capability.
    """
    Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        name = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16xh14x", fcntl.ioctl(device, _SIOCGIFFLAGS, name))[0]
        fcntl.ioctl(device, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    protect_mount(Path("/proc"), recursive=True)


def exec_command(order: Mapping[str, Any]) -> NoReturn:
    """Become the command, without capabilities and within the limits that the kernel enforces."""
    limits = order["limits"]
    os.setsid()
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.closerange(3, 1 << 16)
    for kind, limit in (
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_AS, limits["address_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NPROC, 2 * limits["processes"]),  # until the next check; the kernel exempts root
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ):
        if limit is not None:
            resource.setrlimit(kind, (limit, limit))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    os.chdir(order["cwd"])
    # Not a user with the id 0: so the capabilities of this process end here.
    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - this is what it is for


def watch_command(command: int, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Wait for the command to end, or end it at a limit; then end what it has left behind."""
    deadline = time.monotonic() + limits["wall_seconds"]
    reason, exit_code = "", None
    while exit_code is None:
        signal.sigtimedwait([signal.SIGCHLD], POLL_SECONDS)
        exit_code = _reap(command)
        if exit_code is None and not reason and (reason := _find_exceeded_limit(deadline, limits)):
            is_listening = _is_listening()
            _kill_all()
            if reason == "time" and is_listening:
                reason = "listening"
    _kill_all()
    while _has_children():
        _kill_all()
        time.sleep(POLL_SECONDS)
    return {"exit_code": exit_code, "limit": reason, "network_attempts": _count_network_attempts()}


def _reap(command: int) -> int | None:
    exit_code = None
    with suppress(ChildProcessError):
        while (dead := os.waitpid(-1, os.WNOHANG))[0]:
            if dead[0] == command:
                exit_code = os.waitstatus_to_exitcode(dead[1])
    return exit_code


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill_all() -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # in this namespace, without this process


def _find_exceeded_limit(deadline: float, limits: Mapping[str, Any]) -> str:
    if time.monotonic() > deadline:
        return "time"
    pages = count = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and folder.name != "1":
            with suppress(OSError, IndexError):  # it has ended meanwhile
                pages += int((folder / "statm").read_bytes().split()[1])
                count += 1
    if count > limits["processes"]:
        return "processes"
    return "memory" if pages * _PAGE_BYTES > limits["memory_bytes"] else ""


def _is_listening() -> bool:
    return any(fields[3] == "0A" for name in ("tcp", "tcp6") for fields in _read_table(f"/proc/net/{name}"))


def _read_table(path: str) -> Iterator[list[str]]:
    try:
        lines = Path(path).read_text(encoding="ascii").split("\n")
    except OSError:
        return
    yield from (line.split() for line in lines[1:] if line.strip())


def _count_network_attempts() -> int:
    """Return how often the network had no route: every attempt to leave this machine is counted by the kernel."""
    names, counts = (line.split() for line in Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()[:2])
    attempts = int(dict(zip(names, counts, strict=True))["OutNoRoutes"])
    for fields in _read_table("/proc/net/snmp6"):
        attempts += int(fields[1]) if fields[0] == "Ip6OutNoRoutes" else 0
    return attempts


def write_report(report: Mapping[str, Any]) -> None:
    sys.stderr.write(f"\n{json.dumps(report)}\n")
    sys.stderr.flush()


def run_first_process(order: Mapping[str, Any]) -> None:
    """Be the first process of the namespace: build the fence, run the command, report how it ended."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        build_root(Path(order["root"]), order)
        set_up_kernel_limits()
    except (FenceError, OSError) as error:
        write_report({"unavailable": str(error)})
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    command = os.fork()
    if command == 0:
        try:
            exec_command(order)
        except OSError as error:
            sys.stderr.write(f"cannot start {order['argv'][0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127 if error.errno == errno.ENOENT else 126)
    write_report({"ended": watch_command(command, order["limits"])})


def main() -> None:
    """Run the command of the order."""
    order = json.load(sys.stdin)
    try:
        enter_namespaces()
    except FenceError as error:
        write_report({"unavailable": str(error)})
        return
    first_process = os.fork()
    if first_process == 0:
        run_first_process(order)
        os._exit(0)
    os.waitpid(first_process, 0)


if __name__ == "__main__":
    main()
