"""Commands that a thread waits for: they do what they are told, and nothing of them is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import anyio
import pytest

from cleats.runtime import blocking
from cleats.runtime.blocking import CommandError, Completed, StartError, attended, run
from tests import trees
from tests.requirements import requirement
from tests.waiting import LIMIT, until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the tests look for processes in /proc"
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A place where a tree registers, and after which nobody of it is left."""
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    for pid in trees.living(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def shell(code: str) -> list[str]:
    return ["/bin/sh", "-c", code]


def test_a_finished_command_reports_its_output_and_exit_code() -> None:
    assert run(shell("echo a; echo b >&2; exit 3")) == Completed(3, b"a\n", b"b\n", truncated=False)


def test_a_command_ended_by_a_signal_reports_it_as_a_negative_exit_code() -> None:
    assert run(shell("kill -TERM $$")).exit_code == -signal.SIGTERM


def test_a_command_gets_its_input_its_folder_and_its_environment(tmp_path: Path) -> None:
    done = run(shell("cat; pwd; echo $NAME"), cwd=tmp_path, env={"NAME": "x"}, stdin=b"in\n")

    assert done.stdout.decode().split() == ["in", str(tmp_path), "x"]


def test_input_longer_than_a_pipe_is_given_and_need_not_be_read() -> None:
    long = b"x" * 300_000

    assert run(["cat"], stdin=long).stdout == long
    assert run(["head", "-c", "1"], stdin=long).stdout == b"x"


def test_a_command_that_is_given_nothing_reads_an_empty_file() -> None:
    assert run(["cat"], timeout=30).stdout == b""


def test_only_the_end_of_a_long_output_is_kept() -> None:
    assert run(shell("echo 123456"), output_limit=4) == Completed(0, b"456\n", b"", truncated=True)


def test_a_command_that_cannot_be_started_says_why_and_the_next_one_runs(tmp_path: Path) -> None:
    with attended():
        with pytest.raises(StartError, match="No such file"):
            run(["no-such-command"])
        with pytest.raises(StartError, match="No such file"):
            run(["true"], cwd=tmp_path / "nowhere")

        assert run(["true"]).exit_code == 0


def test_commands_share_a_supervisor_which_ends_with_the_block() -> None:
    before = trees.children()

    with attended():
        parents = {int(run(shell("echo $PPID")).stdout) for _ in range(3)}
        started = trees.children() - before

    assert len(parents) == 1
    assert parents <= started
    assert not parents & trees.children()
    until(lambda: trees.children() <= before)  # others belong to threads of an earlier test


def test_alone_each_command_has_its_own_supervisor_and_leaves_no_descriptor() -> None:
    descriptors, children = trees.descriptors(), trees.children()

    parents = {run(shell("echo $PPID")).stdout for _ in range(2)}

    assert len(parents) == 2
    until(lambda: trees.descriptors() <= descriptors and trees.children() <= children)


@pytest.mark.parametrize("kind", ["setsid", "double", "ignoreterm"])
@requirement("a:kill:all-descendants")
def test_a_command_that_takes_too_long_leaves_no_descendant(folder: Path, kind: str) -> None:
    with attended():
        with pytest.raises(TimeoutError):
            run(trees.command(folder, kind), timeout=1.0)
        left = trees.living(folder)

        assert run(["true"]).exit_code == 0
    assert left == []


def test_what_a_finished_command_left_running_is_ended(folder: Path) -> None:
    keep = trees.command(folder, "plain")

    done = run([*shell('"$@" >/dev/null 2>&1 & echo done'), "sh", *keep])

    assert done.stdout == b"done\n"
    assert trees.living(folder) == []


WAITER = """
import sys
from cleats.runtime.blocking import attended, run
with attended():
    run(["true"])
    run([sys.executable, *sys.argv[1:]])
"""


@requirement("a:kill:server-sigkill")
def test_nothing_outlives_a_killed_caller(folder: Path) -> None:
    words = trees.command(folder, "double")[1:]
    waiter = subprocess.Popen([sys.executable, "-c", WAITER, *words])
    until(lambda: trees.is_grown(folder, "double"))
    supervisors = trees.children(waiter.pid)

    waiter.kill()
    waiter.wait()

    until(lambda: trees.living(folder) == [])
    until(lambda: not any(map(trees.is_alive, supervisors)))
    assert len(supervisors) == 1


def test_a_killed_supervisor_takes_the_group_with_it_and_another_takes_its_place(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int] = []

    def main() -> None:
        with attended():
            codes.append(run(trees.command(folder, "plain")).exit_code)
            codes.append(run(["true"]).exit_code)

    thread = Thread(target=main)
    thread.start()
    until(lambda: trees.is_grown(folder, "plain"))
    tree = {int(each.name) for each in folder.iterdir()}
    (supervisor,) = set(map(trees.parent, tree)) - tree
    os.kill(supervisor, signal.SIGKILL)
    thread.join(LIMIT)

    assert codes == [-signal.SIGKILL, 0]
    until(lambda: trees.living(folder) == [])
    assert "supervisor.lost" in caplog.text


def test_a_long_answer_is_read_in_pieces_while_another_command_runs(tmp_path: Path) -> None:
    with (
        attended(),
        blocking.reading(shell("echo a; echo b"), cwd=tmp_path, env=None, silence=30) as it,
    ):
        first = next(it)
        other = run(["echo", "other"]).stdout
        rest = b"".join(it)

    assert (first + rest, other) == (b"a\nb\n", b"other\n")


def test_an_answer_ends_with_an_error_when_its_command_fails(tmp_path: Path) -> None:
    with blocking.reading(shell("echo a; exit 3"), cwd=tmp_path, env=None, silence=30) as pieces:
        said = next(pieces)

        with pytest.raises(CommandError, match="exit code 3"):
            next(pieces)

    assert said == b"a\n"


def test_a_command_that_falls_silent_is_ended(folder: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(TimeoutError),
        blocking.reading(
            trees.command(folder, "plain"), cwd=tmp_path, env=None, silence=0.2
        ) as pieces,
    ):
        list(pieces)

    assert trees.living(folder) == []


def test_an_answer_that_is_not_read_to_its_end_ends_with_its_block(tmp_path: Path) -> None:
    with attended():
        with blocking.reading(["yes"], cwd=tmp_path, env=None, silence=30) as pieces:
            next(pieces)

        assert run(["echo", "next"]).stdout == b"next\n"


@pytest.mark.anyio
@requirement("a:kill:tree-test")
async def test_a_cancelled_thread_has_its_command_ended(folder: Path) -> None:
    async with anyio.create_task_group() as calls:
        calls.start_soon(blocking.in_thread, run, trees.command(folder, "double"))
        await anyio.to_thread.run_sync(until, lambda: trees.is_grown(folder, "double"))
        calls.cancel_scope.cancel()

    await anyio.to_thread.run_sync(until, lambda: trees.living(folder) == [])


@pytest.mark.anyio
async def test_a_thread_returns_what_its_work_returns() -> None:
    assert (await blocking.in_thread(run, ["echo", "a"])).stdout == b"a\n"
