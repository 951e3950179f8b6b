"""A build that is cancelled, on every surface that can cancel.

It stops, leaves no process or file behind, and the previous index still answers.
"""

import json
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support import process_trees as trees
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.indexes import IndexedRepository
from tests.support.mcp_client import ServerPeer, start_legacy_server, start_server
from tests.support.requirements import requirement
from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "code")
INDEXING_MODULE = b"cleats.toolsets.code.index"
WORKER_COUNT = 2
FLOOD_FILE_COUNT, FLOOD_FUNCTION_COUNT = 400, 300
"""More files and functions than are read before a cancel arrives, on any machine."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> IndexedRepository:
    """Return a repository whose index has one file, and whose next build takes long."""
    world = IndexedRepository(tmp_path_factory.mktemp("cancel"))
    world.write_file("settled.py", "def before_the_flood():\n    return 1\n")
    world.build_index()
    for number in range(FLOOD_FILE_COUNT):
        lines = [
            f"def flood_{number}_{function_number}(x):\n    return x\n\n"
            for function_number in range(FLOOD_FUNCTION_COUNT)
        ]
        world.write_file(f"flood/part_{number}.py", "".join(lines))
    return world


def make_environ(world: IndexedRepository) -> dict[str, str]:
    return {
        "CLEATS_CACHE_DIR": str(world.cache),
        "CLEATS_PROJECT_DIR": str(world.root),
        "CLEATS_INDEX_WORKERS": str(WORKER_COUNT),
        "CLEATS_INDEX_LINT": "off",
        "CLEATS_TELEMETRY": "off",
    }


class BuildClient(ABC):
    """A client that starts a build, cancels it and searches."""

    pid: int
    """Process id of the server."""

    @abstractmethod
    def begin(self) -> None:
        """Start a build, and wait for its first report where reports are visible."""

    @abstractmethod
    def cancel(self) -> None:
        """Cancel the build."""

    @abstractmethod
    def call(self, tool: str, **arguments: Any) -> Any:
        """Return the answer to another call."""


class McpBuildClient(BuildClient):
    cancel_notification = ("notifications/cancelled", "requestId")

    def __init__(self, peer: ServerPeer) -> None:
        self.peer, self.pid = peer, peer.process.pid

    def begin(self) -> None:
        self.peer.send_call(1, "build_index", {"progressToken": 1})
        assert self.peer.receive()["method"] == "notifications/progress"

    def cancel(self) -> None:
        method, name = self.cancel_notification
        self.peer.send_notification(method, {name: 1})

    def call(self, tool: str, **arguments: Any) -> Any:
        self.peer.send_call(2, tool, **arguments)
        return self.extract_payload(self.peer.wait_for_answer(2)["result"])

    def extract_payload(self, result: Any) -> Any:
        return result["structuredContent"]["result"]


class LegacyBuildClient(McpBuildClient):
    cancel_notification = ("$/cancelRequest", "id")

    def cancel(self) -> None:
        super().cancel()
        error = self.extract_payload(self.peer.wait_for_answer(1)["result"])
        assert error["code"] == "CANCELLED"

    def extract_payload(self, result: Any) -> Any:
        return json.loads(result["content"][0]["text"])


class HttpBuildClient(BuildClient):
    """A client that cancels by closing its connection."""

    path = "/tools/build_index"

    def __init__(self, web: WebServer) -> None:
        self.web, self.pid = web, web.process.pid

    def begin(self) -> None:
        self.link = self.web.connect()
        self.link.sendall(
            f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n{}".encode()
        )

    def cancel(self) -> None:
        self.link.close()

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.web.call_tool(tool, **arguments).result


class StreamBuildClient(HttpBuildClient):
    path = "/tools/build_index/stream"

    def begin(self) -> None:
        super().begin()
        received = b""
        while b"event: progress" not in received:
            piece = self.link.recv(65536)
            assert piece, "the stream is over"
            received += piece


ClientFactory: TypeAlias = Callable[[Path, IndexedRepository], AbstractContextManager[BuildClient]]


@contextmanager
def connect_mcp(home: Path, world: IndexedRepository) -> Iterator[BuildClient]:
    with start_server(*SERVE_COMMAND, home=home, ready=True, **make_environ(world)) as peer:
        yield McpBuildClient(peer)


@contextmanager
def connect_legacy(home: Path, world: IndexedRepository) -> Iterator[BuildClient]:
    words = (*SERVE_COMMAND, "--wire", "legacy")
    with start_legacy_server(*words, home=home, ready=True, **make_environ(world)) as peer:
        yield LegacyBuildClient(peer)


@contextmanager
def connect_http(home: Path, world: IndexedRepository) -> Iterator[BuildClient]:
    with run_web_server(*CLEATS_COMMAND, "code", home=home, **make_environ(world)) as web:
        yield HttpBuildClient(web)


@contextmanager
def connect_stream(home: Path, world: IndexedRepository) -> Iterator[BuildClient]:
    with run_web_server(*CLEATS_COMMAND, "code", home=home, **make_environ(world)) as web:
        yield StreamBuildClient(web)


def find_descendants(pid: int) -> set[int]:
    children = trees.find_children(pid)
    return children.union(*map(find_descendants, children))


def wait_for_workers(server: int) -> set[int]:
    """Wait until the workers read, and return every process of the build; workers are its forks."""

    def find_builders() -> set[int]:
        return {pid for pid in find_descendants(server) if INDEXING_MODULE in trees.read_command_line(pid)}

    wait_until(lambda: len(find_builders()) > WORKER_COUNT)
    return find_descendants(server)


def is_build_over(server: int, processes: set[int]) -> bool:
    """Return whether no process of a build is left, even one that has a new parent."""
    return not find_descendants(server) and not any(map(trees.is_alive, processes))


@requirement(
    "a:cancel:stops-the-work",
    "a:cancel:answer",
    "a:cancel:never-success",
    "a:kill:all-descendants",
    "b:legacy:cancel",
    "b:cancel:supported",
)
@pytest.mark.parametrize("start", [connect_mcp, connect_legacy, connect_http, connect_stream])
def test_a_cancelled_build_leaves_no_process_and_the_index_from_before(
    world: IndexedRepository, tmp_path: Path, start: ClientFactory
) -> None:
    before = world.lease_current().name
    with start(tmp_path, world) as client:
        client.begin()
        processes = wait_for_workers(client.pid)

        client.cancel()
        wait_until(lambda: is_build_over(client.pid, processes))
        old = client.call("search", query="before_the_flood", mode="code")
        new = client.call("search", query="flood_0_0", mode="code")
        status = client.call("index_status")

    assert [hit["name"] for hit in old["code"]] == ["before_the_flood"]
    assert not [hit for hit in new["code"] if hit["name"] == "flood_0_0"]
    assert status["index"]["generation"] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_process_and_the_index_from_before(
    world: IndexedRepository, tmp_path: Path, number: signal.Signals
) -> None:
    before = world.lease_current().name
    words = ("call", "build_index", "--json")
    with Shell(tmp_path).start_process(*words, module="cleats", **make_environ(world)) as process:
        processes = wait_for_workers(process.pid)
        process.send_signal(number)
        process.communicate(timeout=EXIT_TIMEOUT_SECONDS)

    assert process.returncode != 0
    assert not any(map(trees.is_alive, processes))
    assert world.lease_current().name == before
