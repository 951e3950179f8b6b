"""A command does what it is told, and nothing of it is left behind."""

import ast
import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

import cleats
from cleats.runtime import process, supervisor, tree
from cleats.settings import Settings
from tests import trees
from tests.requirements import requirement

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the tests look for processes in /proc"),
]

PATIENCE = 60
"""Seconds until a condition that must come true is given up; a busy machine needs a few."""


LOOPS = ["asyncio", *(["uvloop"] if find_spec("uvloop") else [])]


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run each test on every event loop: they differ in how they treat pipes and processes."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.01)


def python(code: str, *args: object) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *map(str, args)]


def shell(code: str, *args: object) -> list[str]:
    return ["/bin/sh", "-c", code, "sh", *map(str, args)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A place where a tree registers, and after which nobody of it is left."""
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    for pid in trees.living(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def alter_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run commands under a supervisor that some lines of code have changed."""

    def alter(change: str) -> None:
        source = Path(supervisor.__file__)
        entry = 'if __name__ == "__main__":'
        before, found, after = source.read_text().partition(entry)
        assert found
        altered = tmp_path / "altered.py"
        altered.write_text(f"{before}\n{change}\n{entry}{after}")
        monkeypatch.setattr(tree, "find_supervisor", lambda: str(altered))

    return alter


@asynccontextmanager
async def leaving_nothing() -> AsyncIterator[None]:
    """See that no child is left at the end, and soon no descriptor either."""
    children, descriptors = trees.children(), trees.descriptors()
    yield
    assert trees.children() <= children
    await until(lambda: trees.descriptors() <= descriptors)


# What a command says


async def test_a_finished_command_reports_its_output_and_exit_code() -> None:
    done = await process.run(shell("echo out; echo err >&2; exit 3"))

    assert done == process.Completed(3, b"out\n", b"err\n", truncated=False)


async def test_a_command_ended_by_a_signal_reports_it_as_a_negative_exit_code() -> None:
    done = await process.run(shell("kill -SEGV $$"))

    assert done.exit_code == -signal.SIGSEGV


async def test_a_command_reads_what_it_is_given() -> None:
    told = b"line\n" * 100_000

    done = await process.run(["cat"], stdin=told)

    assert done.stdout == told


async def test_a_command_need_not_read_what_it_is_given() -> None:
    done = await process.run(["true"], stdin=b"x" * 1_000_000)

    assert done.exit_code == 0


async def test_a_command_that_is_given_nothing_reads_an_empty_file() -> None:
    done = await process.run(shell("cat; readlink /proc/self/fd/0"))

    assert done.stdout == b"/dev/null\n"


async def test_a_given_environment_is_the_whole_environment() -> None:
    done = await process.run(["/usr/bin/env"], env={"COLOUR": "grün"})

    assert done.stdout == "COLOUR=grün\n".encode()


async def test_without_a_given_environment_ours_is_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLOUR", "red")

    done = await process.run(shell("echo $COLOUR"))

    assert done.stdout == b"red\n"


async def test_a_command_is_looked_up_on_its_own_path(tmp_path: Path) -> None:
    tool = tmp_path / "a-tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    done = await process.run(["a-tool"], env={"PATH": f"/nowhere:{tmp_path}"})

    assert done.stdout == b"found\n"


async def test_a_command_runs_in_the_given_folder(tmp_path: Path) -> None:
    done = await process.run(["pwd", "-P"], cwd=tmp_path)

    assert done.stdout == os.fsencode(tmp_path) + b"\n"


async def test_a_command_starts_with_the_signals_that_our_python_ignores_restored() -> None:
    done = await process.run(["grep", "SigIgn", "/proc/self/status"])

    # Whoever started the tests may ignore others, and those are not ours to restore.
    ours = sum(1 << number - 1 for number in (signal.SIGPIPE, signal.SIGXFSZ))
    assert int(done.stdout.split()[1], 16) & ours == 0


async def test_a_script_can_open_its_streams_by_name() -> None:
    done = await process.run(shell("echo out > /dev/stdout; echo err > /dev/stderr"))

    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


async def test_only_the_end_of_a_long_output_is_kept() -> None:
    done = await process.run(shell("seq 100000; echo short >&2"), output_limit=13)

    assert done == process.Completed(0, b"99999\n100000\n", b"short\n", truncated=True)


async def test_output_of_just_the_limit_is_not_truncated() -> None:
    done = await process.run(["printf", "12345"], output_limit=5)

    assert done == process.Completed(0, b"12345", b"", truncated=False)


async def test_lines_are_handed_on_with_the_name_of_their_stream() -> None:
    heard: list[tuple[str, bytes]] = []

    await process.run(
        shell("printf 'one\\n\\ntwo'; printf 'three\\n' >&2"),
        on_output=lambda stream, line: heard.append((stream, line)),
    )

    assert [line for stream, line in heard if stream == "stdout"] == [b"one", b"", b"two"]
    assert [line for stream, line in heard if stream == "stderr"] == [b"three"]


async def test_a_line_without_an_end_is_handed_on_in_pieces() -> None:
    pieces: list[bytes] = []

    done = await process.run(
        ["head", "-c", "1000000", "/dev/zero"], on_output=lambda _, line: pieces.append(line)
    )

    assert b"".join(pieces) == done.stdout
    assert max(map(len, pieces)) < 200_000


# What cannot be started


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (["no-such-command"], None, "No such file or directory"),
        (["/no/such/command"], None, "No such file or directory"),
        (["/etc/passwd"], None, "Permission denied"),
        (["/"], None, "Permission denied"),
        (["true"], Path("/no/such/folder"), "No such file or directory: /no/such/folder"),
        (["true"], Path("/etc/passwd"), "Not a directory: /etc/passwd"),
        (["true", "zero\0byte"], None, "Invalid argument"),
    ],
)
async def test_a_command_that_cannot_be_started_says_why_and_leaves_no_supervisor(
    argv: list[str], cwd: Path | None, reason: str
) -> None:
    async with leaving_nothing():
        with pytest.raises(process.StartError) as caught:
            await process.run(argv, cwd=cwd)

    assert (caught.value.command, caught.value.reason) == (argv[0], reason)


async def test_a_command_on_the_path_that_may_not_be_executed_says_so() -> None:
    with pytest.raises(process.StartError, match="Permission denied"):
        await process.run(["passwd"], env={"PATH": "/etc:/nowhere"})


async def test_a_server_without_free_descriptors_cannot_start_a_command() -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, usual[1]))
    try:
        with pytest.raises(process.StartError) as caught:
            await process.run(["true"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)

    assert caught.value.reason == "Too many open files"


async def test_a_supervisor_that_does_not_run_is_a_failed_start(
    alter_supervisor: Callable[[str], None],
) -> None:
    alter_supervisor("posix._exit(1)")

    async with leaving_nothing():
        with pytest.raises(process.StartError, match="supervisor"):
            await process.run(["true"])


# What a cancel leaves


@pytest.mark.parametrize("kind", trees.KINDS)
@requirement("a:kill:all-descendants", "a:kill:tree-test", "a:kill:setsid-grandchild")
async def test_a_cancelled_command_leaves_no_descendant(folder: Path, kind: str) -> None:
    async with leaving_nothing():
        async with anyio.create_task_group() as calls:
            calls.start_soon(partial(process.run, trees.command(folder, kind), grace=0.2))
            await until(lambda: trees.is_grown(folder, kind))
            calls.cancel_scope.cancel()

        assert trees.living(folder) == []


@pytest.mark.parametrize("cancels", [1, 100])
async def test_a_cancel_at_any_moment_of_the_start_leaves_nothing(
    folder: Path, cancels: int
) -> None:
    async with leaving_nothing():
        for milliseconds in range(30):
            call = asyncio.create_task(process.run(trees.command(folder, "plain"), grace=0))
            await anyio.sleep(milliseconds / 1000)
            await cancel(call, cancels)

        assert trees.living(folder) == []


@pytest.mark.parametrize("cancels", [1, 100])
async def test_cancels_of_the_asyncio_kind_leave_nothing_either(folder: Path, cancels: int) -> None:
    async with leaving_nothing():
        command = trees.command(folder, "ignoreterm")
        call = asyncio.create_task(process.run(command, grace=0.2))
        await until(lambda: trees.is_grown(folder, "ignoreterm"))

        await cancel(call, cancels)

        assert call.cancelled()
        assert trees.living(folder) == []


async def cancel(call: asyncio.Task[process.Completed], times: int) -> None:
    for _ in range(times):
        call.cancel()
        await checkpoint()
    await asyncio.wait([call])


ASKED = """
import os, signal, sys, time

def asked(*_):
    with open(f"{folder}/{name}", "a") as file:
        file.write("asked ")
    if name == "daemon":
        os._exit(0)

folder, name = sys.argv[1], "leader"
signal.signal(signal.SIGTERM, asked)
if os.fork() == 0:
    name = "member"
elif os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    name = "daemon"
os.mkdir(f"{folder}/{name}.pid={os.getpid()}")
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.01)
"""


@requirement("a:kill:posix-group", "a:kill:term-grace-kill")
async def test_everyone_is_asked_once_to_stop_and_has_the_grace_to_do_so(folder: Path) -> None:
    stopped = anyio.CancelScope()

    async def call() -> None:
        with stopped:
            await process.run(python(ASKED, folder), grace=PATIENCE)

    async with anyio.create_task_group() as calls:
        calls.start_soon(call)
        await until(lambda: len(trees.living(folder)) == len(list(folder.iterdir())) == 3)
        stopped.cancel()
        # The daemon's end makes the supervisor look again for somebody to ask.
        await until(lambda: len(trees.living(folder)) == 2)
        await until(lambda: all((folder / name).exists() for name in ("leader", "member")))
        (folder / "go").touch()

    asked = {name: (folder / name).read_text() for name in ("leader", "member", "daemon")}
    assert asked == {"leader": "asked ", "member": "asked ", "daemon": "asked "}


@requirement("a:kill:posix-group")
async def test_a_command_leads_a_session_and_a_group_of_its_own() -> None:
    done = await process.run(python("import os; print(os.getpid(), os.getpgrp(), os.getsid(0))"))

    pid, group, session = done.stdout.split()
    assert pid == group == session


@requirement("a:kill:grace")
def test_the_grace_is_two_seconds_unless_it_is_set() -> None:
    assert process.GRACE == Settings().grace == 2.0


@requirement("a:kill:term-grace-kill", "a:kill:all-descendants")
async def test_who_ignores_the_request_is_killed_after_the_grace(folder: Path) -> None:
    async with process.start(trees.command(folder, "ignoreterm"), grace=0.2) as child:
        await until(lambda: trees.is_grown(folder, "ignoreterm"))

    assert trees.living(folder) == []
    assert await child.wait() == -signal.SIGKILL


LATE = """
import os, signal, sys, time

def late(*_):
    print("late", flush=True)
    open(sys.argv[1], "w").close()
    os._exit(0)

signal.signal(signal.SIGTERM, late)
os.write(1, b"ready\\nin the same breath\\n")
time.sleep(60)
"""


@requirement("a:kill:no-output-after-abort")
async def test_no_output_is_handed_on_after_a_cancel(tmp_path: Path) -> None:
    heard: list[bytes] = []
    written = tmp_path / "written"

    with anyio.CancelScope() as scope:

        def cancel(_: str, line: bytes) -> None:
            heard.append(line)
            scope.cancel()

        await process.run(python(LATE, written), grace=PATIENCE, on_output=cancel)

    assert written.exists()
    assert heard == [b"ready"]


# What an end leaves


LEFT_OVER = """
expected=$1 folder=$2; shift 2
"$@" &
while sleep 0.01; do
    set -- "$folder"/*
    test $# -ge $expected && break
done
echo done
"""


def leave(folder: Path, kind: str) -> list[str]:
    """Make a command that grows a tree and ends without it."""
    return shell(LEFT_OVER, trees.KINDS[kind], folder, *trees.command(folder, kind))


@requirement("a:kill:all-descendants")
@pytest.mark.parametrize("kind", ["plain", "double", "clearenv", "ignoreterm"])
async def test_what_a_finished_command_left_running_is_ended(folder: Path, kind: str) -> None:
    done = await process.run(leave(folder, kind), grace=0.2)

    assert (done.exit_code, done.stdout) == (0, b"done\n")
    assert trees.is_grown(folder, kind)
    assert trees.living(folder) == []


async def test_a_cancel_while_left_overs_are_ended_does_not_spare_them(folder: Path) -> None:
    async with leaving_nothing():
        call = asyncio.create_task(process.run(leave(folder, "ignoreterm"), grace=0.5))
        await until(lambda: trees.is_grown(folder, "ignoreterm"))
        await until(lambda: len(trees.living(folder)) <= trees.KINDS["ignoreterm"])

        await cancel(call, 100)

        assert trees.living(folder) == []


@requirement("a:kill:exit-race-ignored")
async def test_ending_a_command_that_has_exited_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with process.start(["true"]) as child:
        await child.wait()

    assert caplog.records == []


@requirement("a:kill:exit-race-ignored")
def test_signalling_a_process_that_is_gone_is_no_error() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    supervisor.send(gone.pid, signal.SIGTERM)
    supervisor.send(-gone.pid, signal.SIGKILL)


# A child to talk to


async def test_a_started_command_can_be_talked_to() -> None:
    async with process.start(["cat"]) as child:
        await child.stdin.send(b"hello")
        reply = await child.stdout.receive()
        await child.stdin.aclose()
        exit_code = await child.wait()

    assert (reply, exit_code) == (b"hello", 0)


async def test_the_end_of_a_stream_is_seen_while_the_command_lives() -> None:
    async with process.start(shell("exec >&-; sleep 60")) as child:
        with anyio.fail_after(PATIENCE), pytest.raises(anyio.EndOfStream):
            await child.stdout.receive()


async def test_a_started_command_that_is_not_read_ends_with_its_block() -> None:
    async with leaving_nothing(), process.start(["yes"]) as child:
        await child.stdout.receive(1)

    assert await child.wait() == -signal.SIGTERM


async def test_a_started_command_ends_when_its_block_fails(folder: Path) -> None:
    async def fail() -> None:
        async with process.start(trees.command(folder, "plain")):
            await until(lambda: trees.is_grown(folder, "plain"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()

    assert trees.living(folder) == []


# When the server or the supervisor is killed


SERVER = """
import sys
import anyio
from cleats.runtime import process

async def main():
    async with anyio.create_task_group() as calls:
        for folder in sys.argv[4:]:
            calls.start_soon(process.run, [sys.executable, *sys.argv[1:4], folder, "4", "double"])

anyio.run(main)
"""


def serve(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SERVER, *args])


@requirement("a:kill:server-sigkill")
async def test_nothing_outlives_a_killed_server(folder: Path) -> None:
    # Two trees: if their supervisors held each other's lifelines, neither would see an end.
    folders = [folder / "one", folder / "two"]
    for each in folders:
        each.mkdir()
    server = serve(*trees.command(folder, "")[1:4], *map(str, folders))
    await until(lambda: all(trees.is_grown(each, "double") for each in folders))
    supervisors = trees.children(server.pid)

    server.kill()
    server.wait()

    await until(lambda: trees.living(folder) == [])
    await until(lambda: not any(map(trees.is_alive, supervisors)))
    assert len(supervisors) == 2


async def test_ending_one_command_leaves_another_alone() -> None:
    async with process.start(["cat"]) as first, process.start(["cat"]) as second:
        async with process.start(["cat"]):
            pass
        await first.stdin.send(b"1")
        await second.stdin.send(b"2")

        assert [await first.stdout.receive(), await second.stdout.receive()] == [b"1", b"2"]


async def test_a_command_holds_nothing_open_but_its_three_streams() -> None:
    open_files = 'for file in /proc/$$/fd/*; do readlink "$file"; done'

    async with process.start(["cat"]):
        done = await process.run(shell(open_files))

    null, *pipes = done.stdout.split()
    assert null == b"/dev/null"
    assert [pipe.partition(b":")[0] for pipe in pipes] == [b"pipe", b"pipe"]


async def test_a_killed_supervisor_takes_the_group_with_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with process.start(trees.command(folder, "plain")) as child:
        await until(lambda: trees.is_grown(folder, "plain"))
        os.kill(trees.parent(child.pid), signal.SIGKILL)
        exit_code = await child.wait()

    await until(lambda: trees.living(folder) == [])
    assert exit_code == -signal.SIGKILL
    assert "supervisor.lost" in caplog.text


async def test_a_stopped_supervisor_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "PATIENCE", 0.1)

    command = trees.command(folder, "plain")
    async with leaving_nothing(), process.start(command, grace=0.1) as child:
        await until(lambda: trees.is_grown(folder, "plain"))
        os.kill(trees.parent(child.pid), signal.SIGSTOP)

    await until(lambda: trees.living(folder) == [])


async def test_a_supervisor_that_is_asked_to_leave_takes_the_tree_along(folder: Path) -> None:
    async with process.start(trees.command(folder, "double")) as child:
        await until(lambda: trees.is_grown(folder, "double"))
        os.kill(trees.parent(child.pid), signal.SIGTERM)
        exit_code = await child.wait()
        await until(lambda: trees.living(folder) == [])

    assert exit_code == -signal.SIGTERM


# When a kill fails


@requirement("a:kill:failure-logged")
async def test_a_failed_kill_is_logged_with_the_pids_and_does_not_hold_up_the_call(
    folder: Path,
    alter_supervisor: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "DRAIN", 0.1)
    alter_supervisor("""
STUCK = 0.1
def refuse(*_):
    raise PermissionError(errno.EPERM, "not yours")
posix.kill = refuse
""")

    done = await process.run(leave(folder, "plain"), grace=0.1)

    assert (done.exit_code, done.stdout) == (0, b"done\n")
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("kill.fail pids=")
    survivors = {int(pid) for pid in record.getMessage().partition("=")[2].split(",")}
    assert survivors
    assert survivors <= set(trees.living(folder))


@requirement("a:kill:failure-logged")
async def test_a_failed_kill_of_an_abandoned_group_is_logged(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)

    async with process.start(trees.command(folder, "plain")) as child:
        os.kill(trees.parent(child.pid), signal.SIGKILL)

    assert f"kill.fail pids={child.pid}" in caplog.text
    assert {record.levelname for record in caplog.records} == {"ERROR"}


# Without a subreaper


@pytest.mark.parametrize("kind", ["plain", "ignoreterm"])
@requirement("a:kill:posix-group")
async def test_without_a_subreaper_the_group_is_ended(
    folder: Path, kind: str, alter_supervisor: Callable[[str], None]
) -> None:
    alter_supervisor("become_subreaper = lambda: False\ndescendants = dict")

    async with process.start(trees.command(folder, kind), grace=0.2):
        await until(lambda: trees.is_grown(folder, kind))

    assert trees.living(folder) == []


@requirement("a:kill:posix-group")
async def test_without_a_subreaper_what_a_finished_command_left_in_its_group_is_ended(
    folder: Path, alter_supervisor: Callable[[str], None]
) -> None:
    alter_supervisor("become_subreaper = lambda: False\ndescendants = dict")

    done = await process.run(leave(folder, "plain"))

    assert done.stdout == b"done\n"
    assert trees.living(folder) == []


# Windows


class TaskKill:
    """Stands for `taskkill`: notes what it was asked, ends the process or not, and answers."""

    def __init__(self, code: int, *, ends: bool) -> None:
        self.asked: list[list[str]] = []
        self._code = code
        self._ends = ends

    async def __call__(self, argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        self.asked.append(argv)
        if self._ends:
            os.kill(int(argv[2]), signal.SIGKILL)
        return subprocess.CompletedProcess(argv, self._code, b"", b"ERROR: Access is denied.")


@requirement("a:kill:windows-taskkill")
async def test_on_windows_taskkill_ends_the_tree(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taskkill = TaskKill(0, ends=True)
    monkeypatch.setattr(tree, "WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", taskkill)

    async with leaving_nothing(), process.start(["yes"]) as child:
        await child.stdout.receive(1)

    assert taskkill.asked == [["taskkill", "/pid", str(child.pid), "/T", "/F"]]
    assert caplog.records == []


@requirement("a:kill:windows-exited-ignored")
async def test_on_windows_a_process_that_exited_before_taskkill_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taskkill = TaskKill(128, ends=True)
    monkeypatch.setattr(tree, "WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", taskkill)

    async with process.start(["cat"]):
        pass
    done = await process.run(["cat"], stdin=b"by itself")

    assert done.stdout == b"by itself"
    assert len(taskkill.asked) == 1
    assert caplog.records == []


@requirement("a:kill:failure-logged")
async def test_on_windows_a_failed_taskkill_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tree, "WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", TaskKill(1, ends=False))

    async with process.start(["cat"]) as child:
        pass

    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert f"kill.fail pids={child.pid}" in record.getMessage()
    assert "Access is denied" in record.getMessage()


# One primitive


STARTS_OR_ENDS = re.compile(
    r"(os|posix)\.(exec|fork|kill|popen|posix_spawn|spawn|system)|signal\.pidfd_send_signal"
    r"|(anyio|asyncio)\.(create_subprocess|open_process|run_process)"
    r"|multiprocessing|subprocess|concurrent\.futures\.Process"
)


@requirement("a:kill:one-primitive")
def test_no_other_module_starts_or_ends_processes() -> None:
    package = Path(cleats.__file__).parent

    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(map(STARTS_OR_ENDS.match, names_in(path)))
    }

    assert found == {
        "runtime/attendant.py",
        "runtime/forks.py",
        "runtime/pool.py",
        "runtime/process.py",
        "runtime/supervisor.py",
        "runtime/tree.py",
    }


def names_in(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports or uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=modules):
                yield from (module.name for module in modules)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                yield f"{module}.{name}"
