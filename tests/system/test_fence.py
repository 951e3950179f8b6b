"""Tests of the fence: real commands that try to get out, and what they find."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cleats.system.processes.fenced_command import (
    FencedCommand,
    FencedResult,
    FenceLimits,
    FenceUnavailable,
    get_interpreter,
    run_fenced,
)
from tests.support.namespaces import skip_without_namespaces
from tests.support.process_trees import find_children, read_command_line, read_parent_pid
from tests.support.waiting import wait_until

PYTHON = str(get_interpreter()[0])
NORMAL_LIMITS = FenceLimits()
SHORT_LIMITS = FenceLimits(wall_seconds=2.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    skip_without_namespaces()
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def run_program(root: Path, code: str, limits: FenceLimits = NORMAL_LIMITS, *arguments: str) -> FencedResult:
    command = FencedCommand(
        argv=[PYTHON, "/work/program.py", *arguments], files={"/work/program.py": code}, limits=limits
    )
    return asyncio.run(run_fenced(command, root))


def test_a_program_runs_and_its_outputs_and_exit_code_are_returned(root: Path) -> None:
    result = run_program(root, "import sys; print('out'); sys.stderr.write('err'); sys.exit(3)")

    assert result == FencedResult(3, b"out\n", b"err", "", 0)
    assert list(root.iterdir()) == []


def test_a_program_sees_no_variable_and_no_file_of_the_machine_and_is_not_root(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    monkeypatch.setenv("CLEATS_HTTP_TOKEN", "hunter2hunter2")
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    code = """
import os, sys
print(sorted(set(os.environ) - {"LC_CTYPE"}), os.path.exists(sys.argv[1]), os.getuid(), os.getpid())
print(os.listdir(os.environ["HOME"]), os.listdir("/work"), os.path.exists("/etc/shadow"), repr(sys.stdin.read()))
"""

    result = run_program(root, code, FenceLimits(), str(secret))

    assert result.stdout.decode().splitlines() == [
        "['HOME', 'LC_ALL', 'PATH', 'TMPDIR', 'TZ'] False 1000 2",
        "[] ['program.py'] False ''",
    ]


def test_what_a_program_writes_stays_in_memory_and_disappears(root: Path) -> None:
    code = """
import os
home = os.environ["HOME"]
open(f"{home}/left", "w").write("x")
open("/tmp/left", "w").write("x")
for path in ("/usr/left", "/etc/left", "/left"):
    try:
        open(path, "w")
    except OSError as error:
        print(type(error).__name__, error.errno)
"""

    result = run_program(root, code)
    second_result = run_program(root, "import os; print(os.listdir('/tmp'), os.listdir(os.environ['HOME']))")

    assert result.stdout.decode().splitlines() == ["OSError 30"] * 3
    assert second_result.stdout == b"[] []\n"
    assert not Path("/usr/left").exists()
    assert not Path("/tmp/left").exists()


def test_a_program_cannot_reach_the_network_and_every_attempt_is_counted(root: Path) -> None:
    address = run_program(root, "import socket; socket.create_connection(('192.0.2.7', 80), 5)")
    name = run_program(root, "import socket; socket.getaddrinfo('example.com', 80)")
    loopback = (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(server.getsockname())"
    )
    local = run_program(root, loopback)

    assert (address.exit_code, address.network_attempts) == (1, 1)
    assert b"Network is unreachable" in address.stderr
    assert name.exit_code == 1
    assert name.network_attempts > 0
    assert (local.exit_code, local.network_attempts) == (0, 0)


def test_a_program_cannot_gain_rights_or_make_namespaces(root: Path) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.mount(b"none", b"/usr", None, 4096 | 32, None))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "NoNewPrivs"))])
"""

    result = run_program(root, code)

    assert result.stdout.decode().splitlines() == ["-1 -1", "['0000000000000000', '0000000000000000', '1']"]


def test_a_program_cannot_change_the_kernel_even_if_the_server_runs_as_root(root: Path) -> None:
    code = """
for name in ("sys/kernel/core_pattern", "sys/vm/drop_caches", "sys/user/max_user_namespaces", "self/oom_score_adj"):
    try:
        open(f"/proc/{name}", "ab").close()
    except OSError as error:
        print(name, "refused", error)
"""

    result = run_program(root, code)

    assert result.stdout.decode().count(" refused ") == 4


@pytest.mark.parametrize(
    ("code", "limits", "reason"),
    [
        ("import time; time.sleep(1000)", SHORT_LIMITS, "time"),
        ("while True: pass", SHORT_LIMITS, "time"),
        ("import socket; socket.create_server(('127.0.0.1', 0)).accept()", SHORT_LIMITS, "listening"),
        ("x = []\nwhile True: x.append(bytearray(b'x') * (8 << 20))", FenceLimits(memory_bytes=64 << 20), "memory"),
        (
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
            FenceLimits(processes=20),
            "processes",
        ),
    ],
)
def test_a_program_is_ended_at_each_limit(root: Path, code: str, limits: FenceLimits, reason: str) -> None:
    result = run_program(root, code, limits)

    assert (result.limit, result.exit_code) == (reason, -9)


def test_a_program_cannot_fill_the_disk_or_the_addresses(root: Path) -> None:
    limits = FenceLimits(disk_bytes=4 << 20, file_bytes=2 << 20, address_bytes=1 << 30)
    code = """
for action in (
    lambda: open("/tmp/big", "wb").write(b"x" * (3 << 20)),
    lambda: [open(f"/tmp/{number}", "wb").write(b"x" * (1 << 20)) for number in range(9)],
    lambda: bytearray(2 << 30),
):
    try:
        action()
    except (OSError, MemoryError) as error:
        print(type(error).__name__, getattr(error, "errno", ""))
"""

    result = run_program(root, code, limits)

    assert result.stdout.decode().splitlines() == ["OSError 27", "OSError 28", "MemoryError "]


def test_a_process_that_leaves_its_session_ends_with_the_program(root: Path) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)"

    result = run_program(root, code, FenceLimits(), "left-behind-process")

    assert result.exit_code == 0
    assert find_processes(b"left-behind-process") == []


def test_cancelling_the_call_ends_everything_behind_the_fence(root: Path) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(1000)"

    async def cancel_when_running() -> None:
        command = FencedCommand(
            argv=[PYTHON, "/work/program.py", "cancelled-process"], files={"/work/program.py": code}
        )
        task = asyncio.create_task(run_fenced(command, root))
        await asyncio.to_thread(wait_until, lambda: len(find_processes(b"cancelled-process")) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    children = find_children()
    asyncio.run(cancel_when_running())

    assert find_processes(b"cancelled-process") == []
    assert find_children() == children
    assert list(root.iterdir()) == []


def test_the_end_of_the_first_process_ends_everything_behind_the_fence(root: Path) -> None:
    async def kill_when_running() -> None:
        command = FencedCommand(argv=[PYTHON, "-c", "import time; time.sleep(1000)", "orphaned-process"])
        task = asyncio.create_task(run_fenced(command, root))
        await asyncio.to_thread(wait_until, lambda: len(find_processes(b"orphaned-process")) == 1)
        [program] = find_processes(b"orphaned-process")
        os.kill(read_parent_pid(read_parent_pid(program)), 9)
        with pytest.raises(FenceUnavailable):
            await task

    asyncio.run(kill_when_running())

    assert find_processes(b"orphaned-process") == []


def test_a_machine_without_namespaces_runs_nothing(root: Path) -> None:
    fence = Path(sys.modules[FencedCommand.__module__].__file__ or "").with_name("fence.py")
    order = '{"root": "/tmp", "argv": ["/bin/touch", "/tmp/marker"]}'
    code = (
        "import os, subprocess, sys\n"
        f"done = subprocess.run([sys.executable, '/fence.py'], input={order!r}, text=True, capture_output=True)\n"
        "print(done.stderr.strip(), os.path.exists('/tmp/marker'))\n"
    )
    command = FencedCommand(
        argv=[PYTHON, "/work/program.py"], files={"/work/program.py": code}, folders={"/fence.py": fence}
    )

    result = asyncio.run(run_fenced(command, root))

    assert result.stdout.startswith(b'{"unavailable": "the kernel refused new namespaces')
    assert result.stdout.endswith(b" False\n")


def find_processes(word: bytes) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if word in read_command_line(pid) and pid != os.getpid()]
