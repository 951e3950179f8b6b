"""Start one command, or one after the other, and see to it that nothing they start survives.

A program, not a library: `cleats.runtime.process` runs this file in a Python of its own for
every command, and talks to it over a socket, the lifeline:

    python -I -S supervisor.py DESCRIPTOR SIZE

The first SIZE bytes on the lifeline are `marshal.dumps((argv, env | None, grace))`. After that
the server sends nothing: an end of file means "end the tree", whether the server cancelled the
command or was itself killed. The supervisor answers with lines: `started PID` or
`failed ERRNO`, then `exited CODE`, and `survived PID...` if a kill did not work. It exits once
the tree is gone.

With a SIZE of 0 it serves `cleats.runtime.blocking`: each order has the folder as a fourth part,
comes behind its length in four bytes and with the command's three streams, and is answered with
`done` when the tree is gone. Then the next may come; an end of file means the same as above.

Being a subreaper, it becomes the parent of every orphan below it. A daemon can leave its group,
its session and its environment, but not its line of descent; so "no children left" means "no
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

STUCK = 5.0
"""Seconds without a death after SIGKILL before we give up on whoever is left: someone else's
process, or one that waits for a dead disk. As long as there are deaths, we go on."""

PAUSE = 0.02
"""Seconds between two looks at the tree when no signal tells us to look sooner."""


class Tree:
    """The command and everything that descends from it."""

    def __init__(self, command: int, lifeline: int, *, subreaper: bool) -> None:
        self.ended = False
        self.deaths = 0
        self._command = command
        self._lifeline = lifeline
        self._subreaper = subreaper
        self._asked: set[int] = set()

    def reap(self) -> bool:
        """Collect the dead, and say whether anyone is left."""
        try:
            while (dead := posix.waitpid(-1, posix.WNOHANG))[0]:
                self.deaths += 1
                if dead[0] == self._command:
                    self.ended = True
                    report(self._lifeline, "exited", posix.waitstatus_to_exitcode(dead[1]))
        except ChildProcessError:
            return not self._subreaper and self._group_exists()
        return True

    def ask(self) -> None:
        """Send SIGTERM to whoever has not had one; many programs take a second one badly."""
        found = descendants()
        grouped = not self._asked and self._signal_group(_signal.SIGTERM)
        for pid, group in found.items():
            if pid not in self._asked and not (grouped and group == self._command):
                send(pid, _signal.SIGTERM)
        self._asked.update(found, [self._command])

    def kill(self) -> None:
        self._signal_group(_signal.SIGKILL)
        for pid in descendants():
            send(pid, _signal.SIGKILL)

    def report_survivors(self) -> None:
        report(self._lifeline, "survived", *(list(descendants()) or [self._command])[:100])

    def _signal_group(self, number: int) -> bool:
        # Once its leader is reaped, the group's number may be a stranger's. Without a subreaper
        # we have nothing better, and the number is free only if nobody of the group is left.
        if self.ended and self._subreaper:
            return False
        send(-self._command, number)
        return True

    def _group_exists(self) -> bool:
        if sys.platform == "linux":
            return any(group == self._command for _, _, group in processes(zombies=False))
        try:
            posix.kill(-self._command, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # somebody is there, and will not be signalled by us
        return True


def send(target: int, number: int) -> None:
    """Signal a process or, if negative, a group."""
    try:
        posix.kill(target, number)
    except (ProcessLookupError, PermissionError):
        # Gone already is what we wanted; whoever refuses will be among the survivors.
        pass


def report(lifeline: int, *words: object) -> None:
    try:
        posix.write(lifeline, " ".join(map(str, words)).encode() + b"\n")
    except OSError:
        pass  # nobody listens any more; the work is the same


def descendants() -> dict[int, int]:
    """Map every process below us to its group, as far as /proc tells.

    One that changes parents meanwhile may be missed: look again. Zombies are included, because
    so is shown a process whose first thread has ended, while its others run on.
    """
    children: dict[int, dict[int, int]] = {}
    for pid, parent, group in processes(zombies=True):
        children.setdefault(parent, {})[pid] = group
    found: dict[int, int] = {}
    parents = [posix.getpid()]
    while parents:
        below = children.get(parents.pop(), {})
        found.update(below)
        parents.extend(below)
    return found


def processes(*, zombies: bool) -> list[tuple[int, int, int]]:
    """List the pid, parent and group of every process of this machine.

    We read all of /proc, because not every kernel has the `children` files in it.
    """
    return [
        (int(name), int(status[1]), int(status[2]))
        for name in (posix.listdir("/proc") if sys.platform == "linux" else ())
        if name.isdigit() and (status := read_status(name)) and (zombies or status[0] != b"Z")
    ]


def read_status(pid: str) -> list[bytes]:
    """Read what follows a process's name: its state, parent, group and more."""
    try:
        file = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY)
    except OSError:
        return []
    try:
        # The name stands in brackets, and may itself hold brackets and spaces.
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


def start(
    argv: list[bytes], env: dict[bytes, bytes], streams: list[int], folder: bytes
) -> tuple[int, int]:
    """Start the command in a session of its own; return its pid, and an errno or 0."""
    # Python's pipes close on exec, so an empty read means that the command runs.
    reading, writing = posix.pipe()
    pid = posix.fork()
    if pid == 0:
        try:
            posix.setsid()
            for number, stream in enumerate(streams):
                posix.dup2(stream, number)
            if folder:
                posix.chdir(folder)
            # Python ignores these, and what is ignored stays so in the command.
            _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
            _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
            execute(argv, env)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            posix.write(writing, str(number).encode())
        finally:
            posix._exit(127)
    posix.close(writing)
    failure = posix.read(reading, 16)
    posix.close(reading)
    return pid, int(failure or 0)


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become the command, looked up on the PATH that the command itself will have."""
    name = argv[0]
    if b"/" in name:
        posix.execve(name, argv, env)
    refusal: OSError = FileNotFoundError(errno.ENOENT, name)
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        try:
            posix.execve((folder or b".") + b"/" + name, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refusal = error
    raise refusal


def release_streams() -> None:
    """Leave the streams to the command, or their ends would not be seen before ours."""
    null = posix.open("/dev/null", posix.O_RDWR)
    for stream in range(3):
        posix.dup2(null, stream)
    posix.close(null)


def listen_for_signals() -> int:
    """Return a descriptor that delivers the number of every signal that matters to us."""
    reading, writing = posix.pipe()
    posix.set_blocking(writing, False)
    _signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, lambda *_: None)
    return reading


def await_end(tree: Tree, lifeline: int, signals: int) -> None:
    """Wait until the command has ended or has to."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(signals, select.POLLIN)
    while not tree.ended:
        ready = dict(poll.poll())
        # Any signal but SIGCHLD asks us to leave, and we do not leave without the tree.
        if lifeline in ready or set(posix.read(signals, 4096)) - {_signal.SIGCHLD}:
            return
        tree.reap()


def end(tree: Tree, signals: int, grace: float) -> None:
    """Ask everyone to stop, and kill whoever is left after the grace period."""
    deadline = time.monotonic() + grace
    deaths = -1
    while tree.reap():
        if deaths != tree.deaths:
            deaths = tree.deaths
            tree.ask()  # again after each death: it may have made new orphans ours
        if time.monotonic() >= deadline:
            kill(tree, signals)
            return
        pause(signals)


def kill(tree: Tree, signals: int) -> None:
    """Kill until nobody is left, since one that forks all the time needs several passes."""
    deadline = time.monotonic() + STUCK
    deaths = tree.deaths
    while tree.reap():
        if deaths != tree.deaths:
            deaths = tree.deaths
            deadline = time.monotonic() + STUCK
        elif time.monotonic() >= deadline:
            tree.report_survivors()
            return
        tree.kill()
        pause(signals)


def pause(signals: int) -> None:
    """Wait for a signal, but not long: only our own children's deaths are signalled to us."""
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    if poll.poll(PAUSE * 1000):
        posix.read(signals, 4096)


def receive(lifeline: int, size: int) -> bytes:
    """Read the order; less than all of it means that the server is gone."""
    order = b""
    while chunk := posix.read(lifeline, size - len(order)):
        order += chunk
    return order if len(order) == size else b""


def attend(lifeline: int) -> None:
    """Run one command after the other, until nobody orders any more."""
    from _socket import SOL_SOCKET, socket  # noqa: PLC0415 - only here

    posix.setsid()  # a Ctrl-C at the terminal is not for us
    wire = socket(fileno=lifeline)
    signals = listen_for_signals()
    subreaper = become_subreaper()
    while awaits_order(lifeline, signals):
        head, passed, _, _ = wire.recvmsg(4, 256)
        order = receive(lifeline, int.from_bytes(head, "big")) if head else b""
        if not order:
            return
        argv, env, grace, folder = marshal.loads(order)  # noqa: S302 - written by our own server
        streams = descriptors(b"".join(data for level, _, data in passed if level == SOL_SOCKET))
        command, failure = start(argv, posix.environ if env is None else env, streams, folder)
        for stream in streams:
            posix.close(stream)
        if failure:
            report(lifeline, "failed", failure)
            continue
        report(lifeline, "started", command)
        tree = Tree(command, lifeline, subreaper=subreaper)
        await_end(tree, lifeline, signals)
        by_itself = tree.ended
        end(tree, signals, grace)
        if not by_itself:
            return
        report(lifeline, "done")


def awaits_order(lifeline: int, signals: int) -> bool:
    """Wait for an order; false when we are asked to leave."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(signals, select.POLLIN)
    while lifeline not in (ready := dict(poll.poll())):
        if signals in ready and set(posix.read(signals, 4096)) - {_signal.SIGCHLD}:
            return False
    return True


def descriptors(packed: bytes) -> list[int]:
    """The descriptors that came with a message; a command gets them only as its streams."""
    found = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    for descriptor in found:
        posix.set_inheritable(descriptor, False)
    return found


def main() -> None:
    lifeline, size = int(sys.argv[1]), int(sys.argv[2])
    # Were the command to inherit our end of the lifeline, a dead supervisor would go unnoticed.
    posix.set_inheritable(lifeline, False)
    if not size:
        attend(lifeline)
        return
    order = receive(lifeline, size)
    if not order:
        return
    argv, env, grace = marshal.loads(order)  # noqa: S302 - written by our own server
    signals = listen_for_signals()
    subreaper = become_subreaper()
    command, failure = start(argv, posix.environ if env is None else env, [], b"")
    if failure:
        report(lifeline, "failed", failure)
        return
    report(lifeline, "started", command)
    release_streams()
    tree = Tree(command, lifeline, subreaper=subreaper)
    await_end(tree, lifeline, signals)
    end(tree, signals, grace)


if __name__ == "__main__":
    main()
    posix._exit(0)  # an orderly shutdown of the interpreter would take a millisecond or two
