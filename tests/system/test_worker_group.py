"""Tests of the supervisor of worker processes, with workers that do no more than a test needs."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.mcp_client import WAIT_TIMEOUT_SECONDS
from tests.support.paths import REPOSITORY_ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

SERVER = """
import logging, os, socket, sys
from cleats.system.processes import worker_group

logging.basicConfig(stream=sys.stderr, level="INFO", format="%(message)s")
listener = socket.create_server(("127.0.0.1", 0))
group = worker_group.WorkerGroup(
    listener,
    int(sys.argv[1]),
    on_ready=lambda: print(listener.getsockname()[1], flush=True),
    linger_seconds=0,
    stop_seconds=60,
)
seat = group.run()
if seat is None:
    sys.exit(group.exit_code)
seat.channel.send(worker_group.READY_BYTE)
while True:
    message, descriptors, _, _ = socket.recv_fds(seat.channel, 1, 1)
    if message == worker_group.CONNECTION_BYTE:
        connection = socket.socket(fileno=descriptors[0])
        if os.path.exists("busy"):  # the connection stays untaken
            logging.info("connection.kept")
            continue
        seat.channel.send(worker_group.TAKEN_BYTE)
        connection.sendall(b"%d" % os.getpid())
        connection.close()
        seat.channel.send(worker_group.ENDED_BYTE)
    elif message != worker_group.STOP_BYTE:
        break
"""


class Group:
    """A supervisor in a process of its own."""

    def __init__(self, folder: Path, count: int) -> None:
        self._log = folder / "stderr.txt"
        with self._log.open("wb") as stderr:
            self.process = subprocess.Popen(
                (sys.executable, "-c", SERVER, str(count)),
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT / "src")},
            )
        assert self.process.stdout is not None
        self._port = int(self.process.stdout.readline())

    @property
    def stderr(self) -> str:
        return self._log.read_text()

    def has_started(self, count: int) -> bool:
        """Return whether so many workers have become ready; fail if the supervisor has ended."""
        assert self.process.poll() is None, self.stderr
        return self.stderr.count("worker.ready") == count

    def list_workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), WAIT_TIMEOUT_SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_TIMEOUT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[list[Group]]:
    started: list[Group] = []
    yield started
    for group in started:
        group.close()


def test_connections_that_all_dead_workers_left_behind_go_to_their_successors(
    tmp_path: Path, groups: list[Group]
) -> None:
    group = Group(tmp_path, 2)
    groups.append(group)
    (tmp_path / "busy").touch()
    with group.connect() as first, group.connect() as second:
        wait_until(lambda: group.stderr.count("connection.kept") == 2)
        (tmp_path / "busy").unlink()
        dead_workers = group.list_workers()
        for pid in dead_workers:
            os.kill(pid, signal.SIGKILL)
        answers = [int(connection.recv(100)) for connection in (first, second)]

    assert set(answers).isdisjoint(dead_workers)


def test_the_supervisor_survives_workers_that_end_together(tmp_path: Path, groups: list[Group]) -> None:
    count = 48  # so many that some end while the supervisor looks at another one
    group = Group(tmp_path, count)
    groups.append(group)
    for ready_count in (2 * count, 3 * count, 4 * count):
        for pid in group.list_workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(partial(group.has_started, ready_count))
    group.process.send_signal(signal.SIGTERM)

    assert group.process.wait(WAIT_TIMEOUT_SECONDS) == 0, group.stderr
