"""A worker that builds, two servers that read: one index, on three machines."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.index_world import World
from tests.peer import Peer, started
from tests.postgres import database
from tests.waiting import LIMIT, until

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are

QUESTIONS: list[dict[str, Any]] = [
    {"query": "total of the prices", "output": "full"},
    {"query": "Cart", "output": "json"},
    {"query": "how to buy things", "mode": "prose"},
    {"query": "price", "type": "method", "explain": True},
]


class Machine:
    """A folder with a cache of its own, and what runs there."""

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
    def server(self) -> Iterator[Peer]:
        argv = [sys.executable, "-m", "cleats", "serve", "code"]
        with started(*argv, home=self.folder, ready=True, **self.environ) as peer:
            yield peer

    @contextmanager
    def worker(self, repo: Path) -> Iterator[subprocess.Popen[bytes]]:
        environ = {**os.environ, **self.environ, "CLEATS_LOG_LEVEL": "info"}
        argv = [sys.executable, "-m", "cleats", "worker", "--repo", str(repo)]
        process = subprocess.Popen(
            argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(LIMIT)


class Asking:
    """A client that counts its calls."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.number = 0

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        self.number += 1
        self.peer.call(self.number, tool, **given)
        body: dict[str, Any] = self.peer.answer(self.number)["result"]["structuredContent"]
        return body

    def hits(self, **question: Any) -> Any:
        """What a search finds, without what differs between two machines."""
        body = self.call("search", **question)
        return steady(body["result"]) if body["ok"] else body["error"]["code"]


PASSING = {"repoPath", "repo", "generation", "ms", "timings", "elapsedMs", "durationMs"}


def steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: steady(each) for name, each in value.items() if name not in PASSING}
    return [steady(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "builder")
    made.write(
        "shop/cart.py", "class Cart:\n    def total(self, prices):\n        return sum(prices)\n"
    )
    made.write("README.md", "# Shop\n\nHow to buy things.\n")
    return made


@pytest.mark.parametrize("pointers", ["beside", "database"])
def test_two_servers_without_the_files_answer_as_the_embedded_index_does(
    world: World, tmp_path: Path, pointers: str
) -> None:
    shared = {"CLEATS_INDEX_URL": str(tmp_path / "shared")}
    if pointers == "database":
        shared["CLEATS_DATABASE_URL"] = database()
    left, right = Machine(tmp_path / "left", shared), Machine(tmp_path / "right", shared)
    alone = Machine(tmp_path / "alone", {})
    alone.environ["CLEATS_PROJECT_DIR"] = str(world.root)
    builder = Machine(tmp_path / "maker", shared)

    with left.server() as one, right.server() as two, alone.server() as three:
        readers, embedded = (Asking(one), Asking(two)), Asking(three)
        assert readers[0].hits(query="cart") == "NO_INDEX"
        with builder.worker(world.root):
            until(lambda: all(reader.hits(query="cart") != "NO_INDEX" for reader in readers))
            assert embedded.call("build_index")["ok"]
            for question in QUESTIONS:
                wanted = embedded.hits(**question)
                assert [reader.hits(**question) for reader in readers] == [wanted, wanted]
                assert "shop/cart.py" in str(wanted) or "README.md" in str(wanted)
            assert readers[0].call("build_index")["error"]["code"] == "FORBIDDEN"

            world.write("shop/tax.py", "def tax_of(price):\n    return price / 5\n")
            until(lambda: all("tax.py" in str(each.hits(query="tax_of")) for each in readers))
        assert "tax.py" in str(readers[0].hits(query="tax_of"))  # the worker is gone by now
