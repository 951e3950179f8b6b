"""A build that is cancelled, on every surface that can.

It stops, nothing of it is left, and the index from before it still answers.
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

from tests import trees
from tests.index_world import World
from tests.peer import Peer, legacy, started
from tests.requirements import requirement
from tests.shell import PATIENCE, Shell
from tests.waiting import until
from tests.web import CLEATS, Web, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SERVE = (sys.executable, "-m", "cleats", "serve", "code")
MODULE = b"cleats.toolsets.code.indexing"
WORKERS = 2
FILES, FUNCTIONS = 400, 300
"""More than is read before a cancel arrives, on whatever machine."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A repository whose index has one file, and whose next build takes long."""
    world = World(tmp_path_factory.mktemp("cancel"))
    world.write("settled.py", "def before_the_flood():\n    return 1\n")
    world.build()
    for number in range(FILES):
        lines = [f"def flood_{number}_{each}(x):\n    return x\n\n" for each in range(FUNCTIONS)]
        world.write(f"flood/part_{number}.py", "".join(lines))
    return world


def environ(world: World) -> dict[str, str]:
    return {
        "CLEATS_CACHE_DIR": str(world.cache),
        "CLEATS_PROJECT_DIR": str(world.root),
        "CLEATS_INDEX_WORKERS": str(WORKERS),
        "CLEATS_INDEX_LINT": "off",
        "CLEATS_TELEMETRY": "off",
    }


class Client(ABC):
    """Somebody who asks for a build, changes their mind, and searches."""

    pid: int
    """The server's."""

    @abstractmethod
    def begin(self) -> None:
        """Ask for a build, and see it report where that can be seen."""

    @abstractmethod
    def cancel(self) -> None:
        """Change their mind."""

    @abstractmethod
    def call(self, tool: str, **arguments: Any) -> Any:
        """What another call answers."""


class McpClient(Client):
    cancelling = ("notifications/cancelled", "requestId")

    def __init__(self, peer: Peer) -> None:
        self.peer, self.pid = peer, peer.process.pid

    def begin(self) -> None:
        self.peer.call(1, "build_index", {"progressToken": 1})
        assert self.peer.receive()["method"] == "notifications/progress"

    def cancel(self) -> None:
        method, name = self.cancelling
        self.peer.notify(method, {name: 1})

    def call(self, tool: str, **arguments: Any) -> Any:
        self.peer.call(2, tool, **arguments)
        return self.payload(self.peer.answer(2)["result"])

    def payload(self, result: Any) -> Any:
        return result["structuredContent"]["result"]


class LegacyClient(McpClient):
    cancelling = ("$/cancelRequest", "id")

    def cancel(self) -> None:
        super().cancel()
        error = self.payload(self.peer.answer(1)["result"])
        assert error["code"] == "CANCELLED"

    def payload(self, result: Any) -> Any:
        return json.loads(result["content"][0]["text"])


class HttpClient(Client):
    """Who hangs up."""

    path = "/tools/build_index"

    def __init__(self, web: Web) -> None:
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
        return self.web.call(tool, **arguments).result


class StreamClient(HttpClient):
    path = "/tools/build_index/stream"

    def begin(self) -> None:
        super().begin()
        heard = b""
        while b"event: progress" not in heard:
            more = self.link.recv(65536)
            assert more, "the stream is over"
            heard += more


Started: TypeAlias = Callable[[Path, World], AbstractContextManager[Client]]


@contextmanager
def mcp(home: Path, world: World) -> Iterator[Client]:
    with started(*SERVE, home=home, ready=True, **environ(world)) as peer:
        yield McpClient(peer)


@contextmanager
def legacy_wire(home: Path, world: World) -> Iterator[Client]:
    words = (*SERVE, "--wire", "legacy")
    with legacy(*words, home=home, ready=True, **environ(world)) as peer:
        yield LegacyClient(peer)


@contextmanager
def http(home: Path, world: World) -> Iterator[Client]:
    with serving(*CLEATS, "code", home=home, **environ(world)) as web:
        yield HttpClient(web)


@contextmanager
def stream(home: Path, world: World) -> Iterator[Client]:
    with serving(*CLEATS, "code", home=home, **environ(world)) as web:
        yield StreamClient(web)


def descendants(pid: int) -> set[int]:
    found = trees.children(pid)
    return found.union(*map(descendants, found))


def at_work(server: int) -> set[int]:
    """Wait until the workers read; every process of the build, of which they are forks."""

    def building() -> set[int]:
        return {pid for pid in descendants(server) if MODULE in trees.command_line(pid)}

    until(lambda: len(building()) > WORKERS)
    return descendants(server)


def is_over(server: int, processes: set[int]) -> bool:
    """Whether nothing of a build is left, wherever it has moved to."""
    return not descendants(server) and not any(map(trees.is_alive, processes))


@requirement(
    "a:cancel:stops-the-work",
    "a:cancel:answer",
    "a:cancel:never-success",
    "a:kill:all-descendants",
    "b:legacy:cancel",
    "b:cancel:supported",
)
@pytest.mark.parametrize("start", [mcp, legacy_wire, http, stream])
def test_a_cancelled_build_leaves_no_process_and_the_index_from_before(
    world: World, tmp_path: Path, start: Started
) -> None:
    before = world.lease().name
    with start(tmp_path, world) as client:
        client.begin()
        processes = at_work(client.pid)

        client.cancel()
        until(lambda: is_over(client.pid, processes))
        old = client.call("search", query="before_the_flood", mode="code")
        new = client.call("search", query="flood_0_0", mode="code")
        status = client.call("index_status")

    assert [hit["name"] for hit in old["code"]] == ["before_the_flood"]
    assert not [hit for hit in new["code"] if hit["name"] == "flood_0_0"]
    assert status["index"]["generation"] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_process_and_the_index_from_before(
    world: World, tmp_path: Path, number: signal.Signals
) -> None:
    before = world.lease().name
    words = ("call", "build_index", "--json")
    with Shell(tmp_path).start(*words, module="cleats", **environ(world)) as process:
        processes = at_work(process.pid)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)

    assert process.returncode != 0
    assert not any(map(trees.is_alive, processes))
    assert world.lease().name == before
