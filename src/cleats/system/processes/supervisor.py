"""Start one command, or one after the other, and ensure that none of their descendants survives.

A program, not a library: `cleats.system.processes.process` runs this file in a separate Python process for
every command, and talks to it over a socket, the lifeline:

    python -I -S supervisor.py DESCRIPTOR

A command is `marshal.dumps((argv, env | None, grace, folder))`, preceded by its length in four bytes, which come with
the command's three streams. An end of file means "terminate the tree", whether the server cancelled the command or was
itself killed. The supervisor answers with lines: `started PID` or `failed ERRNO`, with `folder` if that is what failed,
then `exited CODE`, then `survived PID...` if a kill did not work, and `done` when the tree is gone. Then the next
command may come. The supervisor exits at the end of file, or with a command that it had to terminate.

Being a subreaper, it becomes the parent of every orphan below it. A daemon can leave its group, its
session and its environment, but not its line of descent; so "no children left" means "no
descendants left". Where there is no subreaper (only Linux has one), the group has to do.

Every command waits for this file to start. Hence the bare C modules: `os`, `signal` and `ctypes`
cost another 12 ms, which is more than Python itself takes to start.
"""

# ruff: noqa: SIM105 - contextlib is too dear, too
# ruff: noqa: SLF001 - posix._exit is as public as os._exit

import _signal  # type: ignore[import-not-found] # the face with stubs is `signal`: enums, 7 ms
import errno
import marshal
import posix
import select
import sys
import time

PR_SET_CHILD_SUBREAPER = 36

KILL_TIMEOUT_SECONDS = 5.0
"""Time without a death after SIGKILL before we give up on the remaining processes: those of another
user, or those waiting for a dead disk. As long as processes die, we continue."""

POLL_INTERVAL_SECONDS = 0.02
"""Time between two checks of the tree if no signal arrives sooner."""


class DescendantTree:
    """The command and everything that descends from it."""

    def __init__(self, command: int, lifeline: int, *, subreaper: bool) -> None:
        self.has_command_ended = False
        self.deaths = 0
        self._command = command
        self._lifeline = lifeline
        self._subreaper = subreaper
        self._signalled: set[int] = set()

    def reap(self) -> bool:
        """Reap dead processes; return True if any are left."""
        try:
            while (dead := posix.waitpid(-1, posix.WNOHANG))[0]:
                self.deaths += 1
                if dead[0] == self._command:
                    self.has_command_ended = True
                    write_report(self._lifeline, "exited", posix.waitstatus_to_exitcode(dead[1]))
        except ChildProcessError:
            return not self._subreaper and self._group_exists()
        return True

    def terminate(self) -> None:
        """Send SIGTERM once to every process; many programs handle a second one badly."""
        groups_by_pid = find_descendants()
        is_group_signalled = not self._signalled and self._signal_group(_signal.SIGTERM)
        for pid, group in groups_by_pid.items():
            if pid not in self._signalled and not (is_group_signalled and group == self._command):
                send_signal(pid, _signal.SIGTERM)
        self._signalled.update(groups_by_pid, [self._command])

    def kill(self) -> None:
        self._signal_group(_signal.SIGKILL)
        for pid in find_descendants():
            send_signal(pid, _signal.SIGKILL)

    def report_survivors(self) -> None:
        write_report(self._lifeline, "survived", *(list(find_descendants()) or [self._command])[:100])

    def _signal_group(self, number: int) -> bool:
        # Once its leader is reaped, the group's number may be reused by another group. Without a
        # subreaper there is nothing better, and it is reused only if no member is left.
        if self.has_command_ended and self._subreaper:
            return False
        send_signal(-self._command, number)
        return True

    def _group_exists(self) -> bool:
        if sys.platform == "linux":
            return any(group == self._command for _, _, group in list_processes(zombies=False))
        try:
            posix.kill(-self._command, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # a process exists that we may not signal
        return True


def send_signal(target: int, number: int) -> None:
    """Send a signal to a process or, if the target is negative, to a group."""
    try:
        posix.kill(target, number)
    except (ProcessLookupError, PermissionError):
        # A process that is gone needs no signal; one that refuses is reported as a survivor.
        pass


def write_report(lifeline: int, *words: object) -> None:
    try:
        posix.write(lifeline, " ".join(map(str, words)).encode() + b"\n")
    except OSError:
        pass  # the server is gone; the work stays the same


def find_descendants() -> dict[int, int]:
    """Map every process below this one to its group, as far as /proc shows.

    One that changes parents meanwhile may be missed: look again. Zombies are included, because a
    process whose first thread has ended is shown as one while its other threads run.
    """
    children: dict[int, dict[int, int]] = {}
    for pid, parent, group in list_processes(zombies=True):
        children.setdefault(parent, {})[pid] = group
    groups_by_pid: dict[int, int] = {}
    parents = [posix.getpid()]
    while parents:
        child_groups = children.get(parents.pop(), {})
        groups_by_pid.update(child_groups)
        parents.extend(child_groups)
    return groups_by_pid


def list_processes(*, zombies: bool) -> list[tuple[int, int, int]]:
    """List the pid, parent and group of every process of this machine.

    All of /proc is read, because not every kernel provides the `children` files in it.
    """
    return [
        (int(name), int(status[1]), int(status[2]))
        for name in (posix.listdir("/proc") if sys.platform == "linux" else ())
        if name.isdigit() and (status := read_status(name)) and (zombies or status[0] != b"Z")
    ]


def read_status(pid: str) -> list[bytes]:
    """Read the fields that follow the name of a process: its state, parent, group and more."""
    try:
        file = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY)
    except OSError:
        return []
    try:
        # The name is in brackets, and may itself contain brackets and spaces.
        return posix.read(file, 4096).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        posix.close(file)


def become_subreaper() -> bool:
    if sys.platform != "linux":
        return False
    try:
        from _ctypes import call_cdeclfunction, dlopen, dlsym  # noqa: PLC0415 - only Linux needs it

        prctl = dlsym(dlopen(None, 0), "prctl")  # type: ignore[arg-type] # None is this program
        return bool(call_cdeclfunction(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, OSError):
        return False


def start_command(argv: list[bytes], env: dict[bytes, bytes], streams: list[int], folder: bytes) -> tuple[int, str]:
    """Start the command in a new session; return its pid, and the failure if there is one."""
    # Python's pipes close on exec, so an empty read means that the command runs.
    read_descriptor, write_descriptor = posix.pipe()
    pid = posix.fork()
    if pid == 0:
        try:
            posix.setsid()
            for number, stream in enumerate(streams):
                posix.dup2(stream, number)
            place = "folder"
            if folder:
                posix.chdir(folder)
            place = ""
            # Python ignores these signals, and the command would inherit that.
            _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
            _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
            exec_command(argv, env)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            posix.write(write_descriptor, f"{number} {place}".encode())
        finally:
            posix._exit(127)
    posix.close(write_descriptor)
    failure = posix.read(read_descriptor, 32)
    posix.close(read_descriptor)
    return pid, failure.decode()


def exec_command(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become the command, looked up on the PATH that the command itself will have."""
    name = argv[0]
    if b"/" in name:
        posix.execve(name, argv, env)
    last_error: OSError = FileNotFoundError(errno.ENOENT, name)
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        try:
            posix.execve((folder or b".") + b"/" + name, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            last_error = error
    raise last_error


def close_inherited_descriptors(lifeline: int) -> None:
    """Close what the server has inherited from others, so that no command holds it open."""
    names = posix.listdir("/proc/self/fd") if sys.platform == "linux" else list(map(str, range(256)))
    for descriptor in map(int, names):
        if descriptor > lifeline:
            try:
                posix.close(descriptor)
            except OSError:
                pass


def listen_for_signals() -> int:
    """Return a descriptor that delivers the number of every relevant signal."""
    read_descriptor, write_descriptor = posix.pipe()
    posix.set_blocking(write_descriptor, False)
    _signal.set_wakeup_fd(write_descriptor, warn_on_full_buffer=False)
    for number in (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, lambda *_: None)
    return read_descriptor


def wait_for_end(tree: DescendantTree, lifeline: int, signals: int) -> None:
    """Wait until the command has ended or has to be terminated."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(signals, select.POLLIN)
    while not tree.has_command_ended:
        ready = dict(poll.poll())
        # Any signal but SIGCHLD asks this process to exit, which first terminates the tree.
        if lifeline in ready or set(posix.read(signals, 4096)) - {_signal.SIGCHLD}:
            return
        tree.reap()


def terminate_tree(tree: DescendantTree, signals: int, grace: float) -> None:
    """Ask all processes to stop, and kill those left after the grace period."""
    deadline = time.monotonic() + grace
    deaths = -1
    while tree.reap():
        if deaths != tree.deaths:
            deaths = tree.deaths
            tree.terminate()  # again after each death, which may have given us new orphans
        if time.monotonic() >= deadline:
            kill_tree(tree, signals)
            return
        wait_briefly(signals)


def kill_tree(tree: DescendantTree, signals: int) -> None:
    """Kill until no process is left, since one that keeps forking needs several passes."""
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    deaths = tree.deaths
    while tree.reap():
        if deaths != tree.deaths:
            deaths = tree.deaths
            deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
        elif time.monotonic() >= deadline:
            tree.report_survivors()
            return
        tree.kill()
        wait_briefly(signals)


def wait_briefly(signals: int) -> None:
    """Wait for a signal, but not long: only the deaths of direct children are signalled."""
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    if poll.poll(POLL_INTERVAL_SECONDS * 1000):
        posix.read(signals, 4096)


def receive_exactly(lifeline: int, size: int) -> bytes:
    """Read exactly `size` bytes; return nothing if the server is gone before."""
    data = b""
    while chunk := posix.read(lifeline, size - len(data)):
        data += chunk
    return data if len(data) == size else b""


def serve_commands(lifeline: int) -> None:
    """Run one command after the other, until the server sends no more."""
    from _socket import SOL_SOCKET, socket  # noqa: PLC0415 - only here

    wire = socket(fileno=lifeline)
    signals = listen_for_signals()
    subreaper = become_subreaper()
    while wait_for_command(lifeline, signals):
        size_bytes, ancillary_data, _, _ = wire.recvmsg(4, 256)
        payload = receive_exactly(lifeline, int.from_bytes(size_bytes, "big")) if size_bytes else b""
        if not payload:
            return
        argv, env, grace, folder = marshal.loads(payload)  # noqa: S302 - written by our own server
        streams = unpack_descriptors(b"".join(data for level, _, data in ancillary_data if level == SOL_SOCKET))
        command, failure = start_command(argv, posix.environ if env is None else env, streams, folder)
        for stream in streams:
            posix.close(stream)
        if failure:
            write_report(lifeline, "failed", failure)
            continue
        write_report(lifeline, "started", command)
        tree = DescendantTree(command, lifeline, subreaper=subreaper)
        wait_for_end(tree, lifeline, signals)
        exited_by_itself = tree.has_command_ended
        terminate_tree(tree, signals, grace)
        if not exited_by_itself:
            return
        write_report(lifeline, "done")


def wait_for_command(lifeline: int, signals: int) -> bool:
    """Wait for a command; return False if this process is asked to leave."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(signals, select.POLLIN)
    while lifeline not in (ready := dict(poll.poll())):
        if signals in ready and set(posix.read(signals, 4096)) - {_signal.SIGCHLD}:
            return False
    return True


def unpack_descriptors(packed: bytes) -> list[int]:
    """Return the descriptors received with a message; a command gets them only as its streams."""
    unpacked = [int.from_bytes(packed[offset : offset + 4], sys.byteorder) for offset in range(0, len(packed), 4)]
    for descriptor in unpacked:
        posix.set_inheritable(descriptor, False)
    return unpacked


def main() -> None:
    lifeline = int(sys.argv[1])
    # Were the command to inherit our end of the lifeline, a dead supervisor would go unnoticed.
    posix.set_inheritable(lifeline, False)
    close_inherited_descriptors(lifeline)
    serve_commands(lifeline)


if __name__ == "__main__":
    main()
    posix._exit(0)  # an orderly shutdown of the interpreter would take a millisecond or two
