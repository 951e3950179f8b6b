"""A worker that builds, two servers that read: one index, on three machines."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.indexes import IndexedRepository
from tests.support.mcp_client import ServerPeer, start_server
from tests.support.postgres import create_database
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are

SEARCH_REQUESTS: list[dict[str, Any]] = [
    {"query": "total of the prices", "output": "full"},
    {"query": "Cart", "output": "json"},
    {"query": "how to buy things", "mode": "prose"},
    {"query": "price", "type": "method", "explain": True},
]


class FleetMachine:
    """A folder with its own cache, and the processes that run there."""

    def __init__(self, folder: Path, shared: dict[str, str]) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.environ = {
            "CLEATS_CACHE_DIR": str(folder / "cache"),
            "CLEATS_DATA_DIR": str(folder / "data"),
            "CLEATS_PROJECT_DIR": str(self.project),
            "CLEATS_INDEX_POLL": "0.05",
            "CLEATS_INDEX_NAME": "shop",
            "CLEATS_TELEMETRY": "off",
            **shared,
        }

    @contextmanager
    def start_server(self) -> Iterator[ServerPeer]:
        argv = [sys.executable, "-m", "cleats", "serve", "code"]
        with start_server(*argv, home=self.folder, ready=True, **self.environ) as peer:
            yield peer

    @contextmanager
    def start_worker(self, repo: Path) -> Iterator[subprocess.Popen[bytes]]:
        environ = {**os.environ, **self.environ, "CLEATS_LOG_LEVEL": "info"}
        argv = [sys.executable, "-m", "cleats", "worker", "--repo", str(repo)]
        process = subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(WAIT_TIMEOUT_SECONDS)


class CountingClient:
    """A client that counts its calls."""

    def __init__(self, peer: ServerPeer) -> None:
        self.peer = peer
        self.number = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.number += 1
        self.peer.send_call(self.number, tool, **arguments)
        body: dict[str, Any] = self.peer.wait_for_answer(self.number)["result"]["structuredContent"]
        return body

    def search(self, **question: Any) -> Any:
        """Return the hits of a search, without fields that differ between machines."""
        body = self.call("search", **question)
        return drop_machine_fields(body["result"]) if body["ok"] else body["error"]["code"]


MACHINE_SPECIFIC_FIELDS = {"repoPath", "repo", "generation", "ms", "timings", "elapsedMs", "durationMs"}


def drop_machine_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: drop_machine_fields(item) for name, item in value.items() if name not in MACHINE_SPECIFIC_FIELDS}
    return [drop_machine_fields(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    repository = IndexedRepository(tmp_path / "builder")
    repository.write_file("shop/cart.py", "class Cart:\n    def total(self, prices):\n        return sum(prices)\n")
    repository.write_file("README.md", "# Shop\n\nHow to buy things.\n")
    return repository


@pytest.mark.parametrize("pointers", ["beside", "database"])
def test_two_servers_without_the_files_answer_as_the_embedded_index_does(
    world: IndexedRepository, tmp_path: Path, pointers: str
) -> None:
    shared = {"CLEATS_INDEX_URL": str(tmp_path / "shared")}
    if pointers == "database":
        shared["CLEATS_DATABASE_URL"] = create_database()
    left_machine, right_machine = FleetMachine(tmp_path / "left", shared), FleetMachine(tmp_path / "right", shared)
    local_machine = FleetMachine(tmp_path / "alone", {})
    local_machine.environ["CLEATS_PROJECT_DIR"] = str(world.root)
    builder = FleetMachine(tmp_path / "maker", shared)

    with left_machine.start_server() as one, right_machine.start_server() as two, local_machine.start_server() as three:
        readers, embedded = (CountingClient(one), CountingClient(two)), CountingClient(three)
        assert readers[0].search(query="cart") == "NO_INDEX"
        with builder.start_worker(world.root):
            wait_until(lambda: all(reader.search(query="cart") != "NO_INDEX" for reader in readers))
            assert embedded.call("build_index")["ok"]
            for question in SEARCH_REQUESTS:
                expected = embedded.search(**question)
                assert [reader.search(**question) for reader in readers] == [expected, expected]
                assert "shop/cart.py" in str(expected) or "README.md" in str(expected)
            assert readers[0].call("build_index")["error"]["code"] == "FORBIDDEN"

            world.write_file("shop/tax.py", "def tax_of(price):\n    return price / 5\n")
            wait_until(lambda: all("tax.py" in str(client.search(query="tax_of")) for client in readers))
        assert "tax.py" in str(readers[0].search(query="tax_of"))  # the worker is gone by now
