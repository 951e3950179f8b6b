"""Tests of running commands: they do what is asked, and leave no process behind."""

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
from cleats.settings import Settings
from cleats.system.processes import command, process, supervisor, tree
from tests.support import process_trees as trees
from tests.support.requirements import requirement

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the tests look for processes in /proc"),
]

CONDITION_TIMEOUT_SECONDS = 60
"""The time that a condition may take to come true; a busy machine needs a few seconds."""


EVENT_LOOPS = ["asyncio", *(["uvloop"] if find_spec("uvloop") else [])]


@pytest.fixture(params=EVENT_LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run each test on every event loop: they differ in how they treat pipes and processes."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(CONDITION_TIMEOUT_SECONDS):
        while not condition():
            await anyio.sleep(0.01)


def build_python_command(code: str, *args: object) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *map(str, args)]


def build_shell_command(code: str, *args: object) -> list[str]:
    return ["/bin/sh", "-c", code, "sh", *map(str, args)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in which a process tree registers; afterwards kill what is left."""
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    for pid in trees.find_living(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def alter_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run commands under a supervisor that some lines of code have changed."""

    def write_altered(change: str) -> None:
        source = Path(supervisor.__file__)
        entry = 'if __name__ == "__main__":'
        before, separator, after = source.read_text().partition(entry)
        assert separator
        altered = tmp_path / "altered.py"
        altered.write_text(f"{before}\n{change}\n{entry}{after}")
        monkeypatch.setattr(command, "find_supervisor", lambda: str(altered))

    return write_altered


@asynccontextmanager
async def check_nothing_left() -> AsyncIterator[None]:
    """Check that no child is left at the end, and soon no descriptor either."""
    children, descriptors = trees.find_children(), trees.find_open_descriptors()
    yield
    assert trees.find_children() <= children
    await wait_until(lambda: trees.find_open_descriptors() <= descriptors)


# What a command says


async def test_a_finished_command_reports_its_output_and_exit_code() -> None:
    result = await process.run(build_shell_command("echo out; echo err >&2; exit 3"))

    assert result == process.CompletedCommand(3, b"out\n", b"err\n", truncated=False)


async def test_a_command_ended_by_a_signal_reports_it_as_a_negative_exit_code() -> None:
    result = await process.run(build_shell_command("kill -SEGV $$"))

    assert result.exit_code == -signal.SIGSEGV


async def test_a_command_reads_what_it_is_given() -> None:
    stdin_bytes = b"line\n" * 100_000

    result = await process.run(["cat"], stdin=stdin_bytes)

    assert result.stdout == stdin_bytes


async def test_a_command_need_not_read_what_it_is_given() -> None:
    result = await process.run(["true"], stdin=b"x" * 1_000_000)

    assert result.exit_code == 0


async def test_a_command_that_is_given_nothing_reads_an_empty_file() -> None:
    result = await process.run(build_shell_command("cat; readlink /proc/self/fd/0"))

    assert result.stdout == b"/dev/null\n"


async def test_a_given_environment_is_the_whole_environment() -> None:
    result = await process.run(["/usr/bin/env"], env={"COLOUR": "grün"})

    assert result.stdout == "COLOUR=grün\n".encode()


async def test_without_a_given_environment_ours_is_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLOUR", "red")

    result = await process.run(build_shell_command("echo $COLOUR"))

    assert result.stdout == b"red\n"


async def test_a_command_is_looked_up_on_its_own_path(tmp_path: Path) -> None:
    tool = tmp_path / "a-tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    result = await process.run(["a-tool"], env={"PATH": f"/nowhere:{tmp_path}"})

    assert result.stdout == b"found\n"


async def test_a_command_runs_in_the_given_folder(tmp_path: Path) -> None:
    result = await process.run(["pwd", "-P"], cwd=tmp_path)

    assert result.stdout == os.fsencode(tmp_path) + b"\n"


async def test_a_command_starts_with_the_signals_that_our_python_ignores_restored() -> None:
    result = await process.run(["grep", "SigIgn", "/proc/self/status"])

    # Whoever started the tests may ignore others, and those are not ours to restore.
    restored_signals = sum(1 << number - 1 for number in (signal.SIGPIPE, signal.SIGXFSZ))
    assert int(result.stdout.split()[1], 16) & restored_signals == 0


async def test_a_script_can_open_its_streams_by_name() -> None:
    result = await process.run(build_shell_command("echo out > /dev/stdout; echo err > /dev/stderr"))

    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


async def test_only_the_end_of_a_long_output_is_kept() -> None:
    result = await process.run(build_shell_command("seq 100000; echo short >&2"), output_limit=13)

    assert result == process.CompletedCommand(0, b"99999\n100000\n", b"short\n", truncated=True)


async def test_output_of_just_the_limit_is_not_truncated() -> None:
    result = await process.run(["printf", "12345"], output_limit=5)

    assert result == process.CompletedCommand(0, b"12345", b"", truncated=False)


async def test_lines_are_handed_on_with_the_name_of_their_stream() -> None:
    output_lines: list[tuple[str, bytes]] = []

    await process.run(
        build_shell_command("printf 'one\\n\\ntwo'; printf 'three\\n' >&2"),
        on_output=lambda stream, line: output_lines.append((stream, line)),
    )

    assert [line for stream, line in output_lines if stream == "stdout"] == [b"one", b"", b"two"]
    assert [line for stream, line in output_lines if stream == "stderr"] == [b"three"]


async def test_a_line_without_an_end_is_handed_on_in_pieces() -> None:
    pieces: list[bytes] = []

    result = await process.run(["head", "-c", "1000000", "/dev/zero"], on_output=lambda _, line: pieces.append(line))

    assert b"".join(pieces) == result.stdout
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
    async with check_nothing_left():
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

    async with check_nothing_left():
        with pytest.raises(process.StartError, match="supervisor"):
            await process.run(["true"])


# What a cancel leaves


@pytest.mark.parametrize("kind", trees.PROCESS_COUNTS)
@requirement("a:kill:all-descendants", "a:kill:tree-test", "a:kill:setsid-grandchild")
async def test_a_cancelled_command_leaves_no_descendant(folder: Path, kind: str) -> None:
    async with check_nothing_left():
        async with anyio.create_task_group() as calls:
            calls.start_soon(partial(process.run, trees.build_command(folder, kind), grace=0.2))
            await wait_until(lambda: trees.is_grown(folder, kind))
            calls.cancel_scope.cancel()

        assert trees.find_living(folder) == []


@pytest.mark.parametrize("cancels", [1, 100])
async def test_a_cancel_at_any_moment_of_the_start_leaves_nothing(folder: Path, cancels: int) -> None:
    async with check_nothing_left():
        for milliseconds in range(30):
            call = asyncio.create_task(process.run(trees.build_command(folder, "plain"), grace=0))
            await anyio.sleep(milliseconds / 1000)
            await cancel_call(call, cancels)

        assert trees.find_living(folder) == []


@pytest.mark.parametrize("cancels", [1, 100])
async def test_cancels_of_the_asyncio_kind_leave_nothing_either(folder: Path, cancels: int) -> None:
    async with check_nothing_left():
        command = trees.build_command(folder, "ignoreterm")
        call = asyncio.create_task(process.run(command, grace=0.2))
        await wait_until(lambda: trees.is_grown(folder, "ignoreterm"))

        await cancel_call(call, cancels)

        assert call.cancelled()
        assert trees.find_living(folder) == []


async def cancel_call(call: asyncio.Task[process.CompletedCommand], times: int) -> None:
    for _ in range(times):
        call.cancel()
        await checkpoint()
    await asyncio.wait([call])


TERM_HANDLER_SCRIPT = """
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

    async def run_tree() -> None:
        with stopped:
            await process.run(build_python_command(TERM_HANDLER_SCRIPT, folder), grace=CONDITION_TIMEOUT_SECONDS)

    async with anyio.create_task_group() as calls:
        calls.start_soon(run_tree)
        await wait_until(lambda: len(trees.find_living(folder)) == len(list(folder.iterdir())) == 3)
        stopped.cancel()
        # The daemon's end makes the supervisor look again for somebody to ask.
        await wait_until(lambda: len(trees.find_living(folder)) == 2)
        await wait_until(lambda: all((folder / name).exists() for name in ("leader", "member")))
        (folder / "go").touch()

    received_by_name = {name: (folder / name).read_text() for name in ("leader", "member", "daemon")}
    assert received_by_name == {"leader": "asked ", "member": "asked ", "daemon": "asked "}


@requirement("a:kill:posix-group")
async def test_a_command_leads_a_session_and_a_group_of_its_own() -> None:
    result = await process.run(build_python_command("import os; print(os.getpid(), os.getpgrp(), os.getsid(0))"))

    pid, group, session = result.stdout.split()
    assert pid == group == session


@requirement("a:kill:grace")
def test_the_grace_is_two_seconds_unless_it_is_set() -> None:
    assert process.GRACE_SECONDS == Settings().grace == 2.0


@requirement("a:kill:term-grace-kill", "a:kill:all-descendants")
async def test_who_ignores_the_request_is_killed_after_the_grace(folder: Path) -> None:
    async with process.start_command(trees.build_command(folder, "ignoreterm"), grace=0.2) as child:
        await wait_until(lambda: trees.is_grown(folder, "ignoreterm"))

    assert trees.find_living(folder) == []
    assert await child.wait() == -signal.SIGKILL


LATE_OUTPUT_SCRIPT = """
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
    output_lines: list[bytes] = []
    written_path = tmp_path / "written"

    with anyio.CancelScope() as scope:

        def cancel_on_line(_: str, line: bytes) -> None:
            output_lines.append(line)
            scope.cancel()

        await process.run(
            build_python_command(LATE_OUTPUT_SCRIPT, written_path),
            grace=CONDITION_TIMEOUT_SECONDS,
            on_output=cancel_on_line,
        )

    assert written_path.exists()
    assert output_lines == [b"ready"]


# What an end leaves


LEFTOVER_TREE_SCRIPT = """
expected=$1 folder=$2; shift 2
"$@" &
while sleep 0.01; do
    set -- "$folder"/*
    test $# -ge $expected && break
done
echo done
"""


def build_leaving_command(folder: Path, kind: str) -> list[str]:
    """Build a command that grows a process tree and ends without it."""
    return build_shell_command(
        LEFTOVER_TREE_SCRIPT, trees.PROCESS_COUNTS[kind], folder, *trees.build_command(folder, kind)
    )


@requirement("a:kill:all-descendants")
@pytest.mark.parametrize("kind", ["plain", "double", "clearenv", "ignoreterm"])
async def test_what_a_finished_command_left_running_is_ended(folder: Path, kind: str) -> None:
    result = await process.run(build_leaving_command(folder, kind), grace=0.2)

    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert trees.is_grown(folder, kind)
    assert trees.find_living(folder) == []


async def test_a_cancel_while_left_overs_are_ended_does_not_spare_them(folder: Path) -> None:
    async with check_nothing_left():
        call = asyncio.create_task(process.run(build_leaving_command(folder, "ignoreterm"), grace=0.5))
        await wait_until(lambda: trees.is_grown(folder, "ignoreterm"))
        await wait_until(lambda: len(trees.find_living(folder)) <= trees.PROCESS_COUNTS["ignoreterm"])

        await cancel_call(call, 100)

        assert trees.find_living(folder) == []


@requirement("a:kill:exit-race-ignored")
async def test_ending_a_command_that_has_exited_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with process.start_command(["true"]) as child:
        await child.wait()

    assert caplog.records == []


@requirement("a:kill:exit-race-ignored")
def test_signalling_a_process_that_is_gone_is_no_error() -> None:
    ended_process = subprocess.Popen(["true"])
    ended_process.wait()

    supervisor.send_signal(ended_process.pid, signal.SIGTERM)
    supervisor.send_signal(-ended_process.pid, signal.SIGKILL)


# A child to talk to


async def test_a_started_command_can_be_talked_to() -> None:
    async with process.start_command(["cat"]) as child:
        child.stdin.write(b"hello")
        reply = await child.stdout.read(100)
        child.stdin.close()
        exit_code = await child.wait()

    assert (reply, exit_code) == (b"hello", 0)


async def test_the_end_of_a_stream_is_seen_while_the_command_lives() -> None:
    async with process.start_command(build_shell_command("exec >&-; sleep 60")) as child:
        with anyio.fail_after(CONDITION_TIMEOUT_SECONDS):
            assert await child.stdout.read(1) == b""


async def test_a_started_command_that_is_not_read_ends_with_its_block() -> None:
    async with check_nothing_left(), process.start_command(["yes"]) as child:
        await child.stdout.read(1)

    assert await child.wait() == -signal.SIGTERM


async def test_a_started_command_ends_when_its_block_fails(folder: Path) -> None:
    async def fail_in_block() -> None:
        async with process.start_command(trees.build_command(folder, "plain")):
            await wait_until(lambda: trees.is_grown(folder, "plain"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail_in_block()

    assert trees.find_living(folder) == []


# When the server or the supervisor is killed


SERVER_SCRIPT = """
import sys
import anyio
from cleats.system.processes import process

async def main():
    async with anyio.create_task_group() as calls:
        for folder in sys.argv[4:]:
            calls.start_soon(process.run, [sys.executable, *sys.argv[1:4], folder, "4", "double"])

anyio.run(main)
"""


def start_server(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SERVER_SCRIPT, *args])


@requirement("a:kill:server-sigkill")
async def test_nothing_outlives_a_killed_server(folder: Path) -> None:
    # Two trees: if their supervisors held each other's lifelines, neither would see an end.
    folders = [folder / "one", folder / "two"]
    for tree_folder in folders:
        tree_folder.mkdir()
    server = start_server(*trees.build_command(folder, "")[1:4], *map(str, folders))
    await wait_until(lambda: all(trees.is_grown(tree_folder, "double") for tree_folder in folders))
    supervisors = trees.find_children(server.pid)

    server.kill()
    server.wait()

    await wait_until(lambda: trees.find_living(folder) == [])
    await wait_until(lambda: not any(map(trees.is_alive, supervisors)))
    assert len(supervisors) == 2


async def test_ending_one_command_leaves_another_alone() -> None:
    async with process.start_command(["cat"]) as first, process.start_command(["cat"]) as second:
        async with process.start_command(["cat"]):
            pass
        first.stdin.write(b"1")
        second.stdin.write(b"2")

        assert [await first.stdout.read(100), await second.stdout.read(100)] == [b"1", b"2"]


async def test_a_command_holds_nothing_open_but_its_three_streams() -> None:
    open_files = 'for file in /proc/$$/fd/*; do readlink "$file"; done'

    async with process.start_command(["cat"]):
        result = await process.run(build_shell_command(open_files))

    null, *pipes = result.stdout.split()
    assert null == b"/dev/null"
    assert [pipe.partition(b":")[0] for pipe in pipes] == [b"pipe", b"pipe"]


async def test_a_killed_supervisor_takes_the_group_with_it(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with process.start_command(trees.build_command(folder, "plain")) as child:
        await wait_until(lambda: trees.is_grown(folder, "plain"))
        os.kill(trees.read_parent_pid(child.pid), signal.SIGKILL)
        exit_code = await child.wait()

    await wait_until(lambda: trees.find_living(folder) == [])
    assert exit_code == -signal.SIGKILL
    assert "supervisor.lost" in caplog.text


async def test_a_stopped_supervisor_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "SUPERVISOR_TIMEOUT_SECONDS", 0.1)

    command = trees.build_command(folder, "plain")
    async with check_nothing_left(), process.start_command(command, grace=0.1) as child:
        await wait_until(lambda: trees.is_grown(folder, "plain"))
        os.kill(trees.read_parent_pid(child.pid), signal.SIGSTOP)

    await wait_until(lambda: trees.find_living(folder) == [])


async def test_a_supervisor_that_is_asked_to_leave_takes_the_tree_along(folder: Path) -> None:
    async with process.start_command(trees.build_command(folder, "double")) as child:
        await wait_until(lambda: trees.is_grown(folder, "double"))
        os.kill(trees.read_parent_pid(child.pid), signal.SIGTERM)
        exit_code = await child.wait()
        await wait_until(lambda: trees.find_living(folder) == [])

    assert exit_code == -signal.SIGTERM


# When a kill fails


@requirement("a:kill:failure-logged")
async def test_a_failed_kill_is_logged_with_the_pids_and_does_not_hold_up_the_call(
    folder: Path,
    alter_supervisor: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "DRAIN_TIMEOUT_SECONDS", 0.1)
    alter_supervisor("""
KILL_TIMEOUT_SECONDS = 0.1
def refuse(*_):
    raise PermissionError(errno.EPERM, "not yours")
posix.kill = refuse
""")

    result = await process.run(build_leaving_command(folder, "plain"), grace=0.1)

    assert (result.exit_code, result.stdout) == (0, b"done\n")
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("kill.fail pids=")
    survivors = {int(pid) for pid in record.getMessage().partition("=")[2].split(",")}
    assert survivors
    assert survivors <= set(trees.find_living(folder))


@requirement("a:kill:failure-logged")
async def test_a_failed_kill_of_an_abandoned_group_is_logged(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_permission_error(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", raise_permission_error)

    async with process.start_command(trees.build_command(folder, "plain")) as child:
        os.kill(trees.read_parent_pid(child.pid), signal.SIGKILL)

    assert f"kill.fail pids={child.pid}" in caplog.text
    assert {record.levelname for record in caplog.records} == {"ERROR"}


# Without a subreaper


@pytest.mark.parametrize("kind", ["plain", "ignoreterm"])
@requirement("a:kill:posix-group")
async def test_without_a_subreaper_the_group_is_ended(
    folder: Path, kind: str, alter_supervisor: Callable[[str], None]
) -> None:
    alter_supervisor("become_subreaper = lambda: False\nfind_descendants = dict")

    async with process.start_command(trees.build_command(folder, kind), grace=0.2):
        await wait_until(lambda: trees.is_grown(folder, kind))

    assert trees.find_living(folder) == []


@requirement("a:kill:posix-group")
async def test_without_a_subreaper_what_a_finished_command_left_in_its_group_is_ended(
    folder: Path, alter_supervisor: Callable[[str], None]
) -> None:
    alter_supervisor("become_subreaper = lambda: False\nfind_descendants = dict")

    result = await process.run(build_leaving_command(folder, "plain"))

    assert result.stdout == b"done\n"
    assert trees.find_living(folder) == []


# Windows


class FakeTaskKill:
    """A stand-in for `taskkill` that records its commands, ends the process or not, and answers."""

    def __init__(self, code: int, *, ends: bool) -> None:
        self.commands: list[list[str]] = []
        self._code = code
        self._ends = ends

    async def __call__(self, argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(argv)
        if self._ends:
            os.kill(int(argv[2]), signal.SIGKILL)
        return subprocess.CompletedProcess(argv, self._code, b"", b"ERROR: Access is denied.")


@requirement("a:kill:windows-taskkill")
async def test_on_windows_taskkill_ends_the_tree(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taskkill = FakeTaskKill(0, ends=True)
    monkeypatch.setattr(tree, "IS_WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", taskkill)

    async with check_nothing_left(), process.start_command(["yes"]) as child:
        await child.stdout.read(1)

    assert taskkill.commands == [["taskkill", "/pid", str(child.pid), "/T", "/F"]]
    assert caplog.records == []


@requirement("a:kill:windows-exited-ignored")
async def test_on_windows_a_process_that_exited_before_taskkill_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taskkill = FakeTaskKill(128, ends=True)
    monkeypatch.setattr(tree, "IS_WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", taskkill)

    async with process.start_command(["cat"]):
        pass
    result = await process.run(["cat"], stdin=b"by itself")

    assert result.stdout == b"by itself"
    assert len(taskkill.commands) == 1
    assert caplog.records == []


@requirement("a:kill:failure-logged")
async def test_on_windows_a_failed_taskkill_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tree, "IS_WINDOWS", True)
    monkeypatch.setattr(anyio, "run_process", FakeTaskKill(1, ends=False))

    async with process.start_command(["cat"]) as child:
        pass

    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert f"kill.fail pids={child.pid}" in record.getMessage()
    assert "Access is denied" in record.getMessage()


# One primitive


PROCESS_CALL_PATTERN = re.compile(
    r"(os|posix)\.(exec|fork|kill|popen|posix_spawn|spawn|system)|signal\.pidfd_send_signal"
    r"|(anyio|asyncio)\.(create_subprocess|open_process|run_process)"
    r"|multiprocessing|subprocess|concurrent\.futures\.Process"
)


@requirement("a:kill:one-primitive")
def test_no_other_module_starts_or_ends_processes() -> None:
    package = Path(cleats.__file__).parent

    module_names = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(map(PROCESS_CALL_PATTERN.match, list_used_names(path)))
    }

    assert module_names == {
        "system/processes/command.py",
        "system/processes/fence.py",
        "system/processes/fork.py",
        "system/processes/process.py",
        "system/processes/shared_supervisor.py",
        "system/processes/supervisor.py",
        "system/processes/tree.py",
        "system/processes/worker_group.py",
        "system/worker_pool.py",
    }


def list_used_names(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports or uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=modules):
                yield from (module.name for module in modules)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                yield f"{module}.{name}"
