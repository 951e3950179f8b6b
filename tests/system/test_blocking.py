"""Commands that a thread waits for do what they are told, and leave no process behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

import anyio
import pytest

from cleats.system.processes import blocking
from cleats.system.processes.blocking import CommandError, CompletedCommand, StartError, run_command, shared_supervisor
from tests.support import process_trees as trees
from tests.support.requirements import requirement
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests look for processes in /proc")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder where a process tree registers; kill what is left of the tree afterwards."""
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    for pid in trees.find_living(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def make_shell_command(code: str) -> list[str]:
    return ["/bin/sh", "-c", code]


def test_a_finished_command_reports_its_output_and_exit_code() -> None:
    assert run_command(make_shell_command("echo a; echo b >&2; exit 3")) == CompletedCommand(
        3, b"a\n", b"b\n", truncated=False
    )


def test_a_command_ended_by_a_signal_reports_it_as_a_negative_exit_code() -> None:
    assert run_command(make_shell_command("kill -TERM $$")).exit_code == -signal.SIGTERM


def test_a_command_gets_its_input_its_folder_and_its_environment(tmp_path: Path) -> None:
    completed_command = run_command(
        make_shell_command("cat; pwd; echo $NAME"), cwd=tmp_path, env={"NAME": "x"}, stdin=b"in\n"
    )

    assert completed_command.stdout.decode().split() == ["in", str(tmp_path), "x"]


def test_input_longer_than_a_pipe_is_given_and_need_not_be_read() -> None:
    long = b"x" * 300_000

    assert run_command(["cat"], stdin=long).stdout == long
    assert run_command(["head", "-c", "1"], stdin=long).stdout == b"x"


def test_a_command_that_is_given_nothing_reads_an_empty_file() -> None:
    assert run_command(["cat"], timeout=30).stdout == b""


def test_only_the_end_of_a_long_output_is_kept() -> None:
    assert run_command(make_shell_command("echo 123456"), output_limit=4) == CompletedCommand(
        0, b"456\n", b"", truncated=True
    )


def test_a_command_that_cannot_be_started_says_why_and_the_next_one_runs(tmp_path: Path) -> None:
    with shared_supervisor():
        with pytest.raises(StartError, match="No such file"):
            run_command(["no-such-command"])
        with pytest.raises(StartError, match="No such file"):
            run_command(["true"], cwd=tmp_path / "nowhere")

        assert run_command(["true"]).exit_code == 0


def test_commands_share_a_supervisor_which_ends_with_the_block() -> None:
    before = trees.find_children()

    with shared_supervisor():
        parents = {int(run_command(make_shell_command("echo $PPID")).stdout) for _ in range(3)}
        started = trees.find_children() - before

    assert len(parents) == 1
    assert parents <= started
    assert not parents & trees.find_children()
    wait_until(lambda: trees.find_children() <= before)  # others belong to threads of an earlier test


def test_alone_each_command_has_its_own_supervisor_and_leaves_no_descriptor() -> None:
    descriptors, children = trees.find_open_descriptors(), trees.find_children()

    parents = {run_command(make_shell_command("echo $PPID")).stdout for _ in range(2)}

    assert len(parents) == 2
    wait_until(lambda: trees.find_open_descriptors() <= descriptors and trees.find_children() <= children)


@pytest.mark.parametrize("kind", ["setsid", "double", "ignoreterm"])
@requirement("a:kill:all-descendants")
def test_a_command_that_takes_too_long_leaves_no_descendant(folder: Path, kind: str) -> None:
    with shared_supervisor():
        with pytest.raises(TimeoutError):
            run_command(trees.build_command(folder, kind), timeout=1.0)
        survivors = trees.find_living(folder)

        assert run_command(["true"]).exit_code == 0
    assert survivors == []


def test_what_a_finished_command_left_running_is_ended(folder: Path) -> None:
    keep = trees.build_command(folder, "plain")

    completed_command = run_command([*make_shell_command('"$@" >/dev/null 2>&1 & echo done'), "sh", *keep])

    assert completed_command.stdout == b"done\n"
    assert trees.find_living(folder) == []


WAITER_SOURCE = """
import sys
from cleats.system.processes.blocking import run_command, shared_supervisor
with shared_supervisor():
    run_command(["true"])
    run_command([sys.executable, *sys.argv[1:]])
"""


@requirement("a:kill:server-sigkill")
def test_nothing_outlives_a_killed_caller(folder: Path) -> None:
    words = trees.build_command(folder, "double")[1:]
    waiter = subprocess.Popen([sys.executable, "-c", WAITER_SOURCE, *words])
    wait_until(lambda: trees.is_grown(folder, "double"))
    supervisors = trees.find_children(waiter.pid)

    waiter.kill()
    waiter.wait()

    wait_until(lambda: trees.find_living(folder) == [])
    wait_until(lambda: not any(map(trees.is_alive, supervisors)))
    assert len(supervisors) == 1


def test_a_killed_supervisor_takes_the_group_with_it_and_another_takes_its_place(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int] = []

    def main() -> None:
        with shared_supervisor():
            codes.append(run_command(trees.build_command(folder, "plain")).exit_code)
            codes.append(run_command(["true"]).exit_code)

    thread = Thread(target=main)
    thread.start()
    wait_until(lambda: trees.is_grown(folder, "plain"))
    tree = {int(path.name) for path in folder.iterdir()}
    (supervisor,) = set(map(trees.read_parent_pid, tree)) - tree
    os.kill(supervisor, signal.SIGKILL)
    thread.join(WAIT_TIMEOUT_SECONDS)

    assert codes == [-signal.SIGKILL, 0]
    wait_until(lambda: trees.find_living(folder) == [])
    assert "supervisor.lost" in caplog.text


def test_a_long_answer_is_read_in_pieces_while_another_command_runs(tmp_path: Path) -> None:
    with (
        shared_supervisor(),
        blocking.stream_output(
            make_shell_command("echo a; echo b"), cwd=tmp_path, env=None, silence_timeout=30
        ) as pieces,
    ):
        first = next(pieces)
        other = run_command(["echo", "other"]).stdout
        rest = b"".join(pieces)

    assert (first + rest, other) == (b"a\nb\n", b"other\n")


def test_an_answer_ends_with_an_error_when_its_command_fails(tmp_path: Path) -> None:
    with blocking.stream_output(
        make_shell_command("echo a; exit 3"), cwd=tmp_path, env=None, silence_timeout=30
    ) as pieces:
        first_piece = next(pieces)

        with pytest.raises(CommandError, match="exit code 3"):
            next(pieces)

    assert first_piece == b"a\n"


def test_a_command_that_falls_silent_is_ended(folder: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(TimeoutError),
        blocking.stream_output(
            trees.build_command(folder, "plain"), cwd=tmp_path, env=None, silence_timeout=0.2
        ) as pieces,
    ):
        list(pieces)

    assert trees.find_living(folder) == []


def test_an_answer_that_is_not_read_to_its_end_ends_with_its_block(tmp_path: Path) -> None:
    with shared_supervisor():
        with blocking.stream_output(["yes"], cwd=tmp_path, env=None, silence_timeout=30) as pieces:
            next(pieces)

        assert run_command(["echo", "next"]).stdout == b"next\n"


@pytest.mark.anyio
@requirement("a:kill:tree-test")
async def test_a_cancelled_thread_has_its_command_ended(folder: Path) -> None:
    async with anyio.create_task_group() as calls:
        calls.start_soon(blocking.run_in_thread, run_command, trees.build_command(folder, "double"))
        await anyio.to_thread.run_sync(wait_until, lambda: trees.is_grown(folder, "double"))
        calls.cancel_scope.cancel()

    await anyio.to_thread.run_sync(wait_until, lambda: trees.find_living(folder) == [])


@pytest.mark.anyio
async def test_a_thread_returns_what_its_work_returns() -> None:
    assert (await blocking.run_in_thread(run_command, ["echo", "a"])).stdout == b"a\n"


def read_stream(argv: list[str]) -> None:
    with blocking.stream_output(argv, cwd=Path(), env=None, silence_timeout=WAIT_TIMEOUT_SECONDS) as pieces:
        list(pieces)


@pytest.mark.anyio
@requirement("a:cancel:stops-the-work", "a:kill:all-descendants")
@pytest.mark.parametrize("run_tree", [run_command, read_stream])
async def test_a_cancelled_thread_ends_both_commands_that_it_runs_and_tries_nothing_else(
    folder: Path, run_tree: Callable[[list[str]], object]
) -> None:
    ended, tried_again = Event(), Event()

    def run_two() -> None:
        try:
            with blocking.stream_output(["yes"], cwd=folder, env=None, silence_timeout=WAIT_TIMEOUT_SECONDS):
                run_tree(trees.build_command(folder, "ignoreterm"))
        except Exception:  # noqa: BLE001 - as work that has another way when a command fails
            tried_again.set()
        except blocking.WorkStopped:
            ended.set()
            raise

    async with anyio.create_task_group() as calls:
        calls.start_soon(partial(blocking.run_in_thread, run_two, grace=0.1))
        await anyio.to_thread.run_sync(wait_until, lambda: trees.is_grown(folder, "ignoreterm"))
        calls.cancel_scope.cancel()

    assert await anyio.to_thread.run_sync(ended.wait, WAIT_TIMEOUT_SECONDS)
    assert not tried_again.is_set()
    await anyio.to_thread.run_sync(wait_until, lambda: trees.find_living(folder) == [])


@pytest.mark.anyio
async def test_work_that_computes_learns_that_its_caller_has_gone() -> None:
    begun, ended = Event(), Event()

    def compute() -> None:
        begun.set()
        try:
            wait_until(blocking.raise_if_stopped)  # which never returns anything true
        finally:
            ended.set()

    blocking.raise_if_stopped()  # nothing has ended here
    async with anyio.create_task_group() as calls:
        calls.start_soon(blocking.run_in_thread, compute)
        await anyio.to_thread.run_sync(begun.wait, WAIT_TIMEOUT_SECONDS)
        calls.cancel_scope.cancel()

    assert await anyio.to_thread.run_sync(ended.wait, WAIT_TIMEOUT_SECONDS)
