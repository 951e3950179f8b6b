"""A worker that publishes to a cluster, and a server and a command that search in it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.vitals import Vitals
from cleats.settings import SettingError, Settings
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.opensearch.remote import LOCK
from cleats.toolsets.code.store.locks import claim
from cleats.toolsets.code.tools import toolset
from tests.index_world import QUICK, World
from tests.opensearch import OpenSearch, basic, opensearch
from tests.opensearch_world import names, remote, serving
from tests.test_code_fleet_servers import Asking, Machine
from tests.waiting import until

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are

TOTAL, CART, GUIDE = (
    ("shop/cart.py", 2, "Cart.total"),
    ("shop/cart.py", 1, "Cart"),
    ("README.md", 1, "Shop"),
)
QUESTIONS: list[tuple[dict[str, Any], tuple[str, int, str]]] = [
    ({"query": "total of the prices", "output": "full"}, TOTAL),
    ({"query": "Cart", "output": "json"}, CART),
    ({"query": "how to buy things", "mode": "prose"}, GUIDE),
    ({"query": "price", "type": "method", "explain": True}, TOTAL),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "builder")
    made.write(
        "shop/cart.py", "class Cart:\n    def total(self, prices):\n        return sum(prices)\n"
    )
    made.write("README.md", "# Shop\n\nHow to buy things.\n")
    return made


def settings(world: World, cluster: OpenSearch, **changed: Any) -> Settings:
    given: dict[str, Any] = {
        "project_dir": world.root,
        "cache_dir": world.cache,
        "opensearch_url": cluster.base,
        "index_name": "shop",
        "index_share": "publish",
        **changed,
    }
    return Settings(**given)


def test_a_server_without_the_files_answers_from_the_cluster(world: World, tmp_path: Path) -> None:
    with opensearch() as cluster:
        cluster.wants = basic("cleats", "hush")
        shared = {
            "CLEATS_OPENSEARCH_URL": cluster.base,
            "CLEATS_OPENSEARCH_USER": "cleats",
            "CLEATS_OPENSEARCH_PASSWORD": "hush",
            "CLEATS_OPENSEARCH_SHARDS": "2",
        }
        machine, builder = Machine(tmp_path / "left", shared), Machine(tmp_path / "maker", shared)
        builder.environ["CLEATS_INDEX_POLL"] = "0.5"
        with machine.server() as one:
            reader = Asking(one)
            assert reader.hits(query="cart") == "NO_INDEX"
            with builder.worker(world.root):
                until(lambda: reader.hits(query="cart") != "NO_INDEX")
                for question, first in QUESTIONS:
                    found = reader.hits(**question)
                    assert found["backend"] == "opensearch"
                    assert places(found)[0] == first
                world.write("shop/tax.py", "def tax_of(price):\n    return price / 5\n")
                until(lambda: "tax.py" in str(reader.hits(query="tax_of")))
            for refused in ({"refresh": True}, {}):
                tool = "search" if refused else "build_index"
                given = {"query": "cart", **refused} if refused else {}
                assert reader.call(tool, **given)["error"]["code"] == "FORBIDDEN"
            assert "hush" not in json.dumps(reader.call("config_status"))
            assert "hush" not in str(cluster.indexes)
            cluster.faults = [lambda _: (503, {})]
            gone = reader.call("search", query="cart")["error"]
            assert (gone["code"], gone["retryable"]) == ("UNAVAILABLE", True)


def places(found: dict[str, Any]) -> list[tuple[str, int, str]]:
    modes = ("code", "prose", "extractedProse", "records")
    return [(hit["file"], hit["startLine"], hit["name"]) for m in modes for hit in found[m]]


def test_one_build_publishes_and_the_command_searches_there(world: World, tmp_path: Path) -> None:
    with opensearch() as cluster:
        told: list[Progress] = []
        indexes = Indexes(settings(world, cluster))
        made = anyio.run(indexes.build, indexes.repository(None), QUICK, told.append)
        argv = [sys.executable, "-m", "cleats", "search", "total of the prices", "--json"]
        environ = {
            "CLEATS_OPENSEARCH_URL": cluster.base,
            "CLEATS_INDEX_NAME": "shop",
            "CLEATS_CACHE_DIR": str(tmp_path / "other"),
            "CLEATS_DATA_DIR": str(tmp_path / "data"),
        }
        (tmp_path / "elsewhere").mkdir()

        said = subprocess.run(
            argv,
            env={**os.environ, **environ},
            cwd=tmp_path / "elsewhere",
            capture_output=True,
            check=True,
        )

        assert not made.warnings
        assert told[-1].phase == "publish"
        assert told[-1].done == told[-1].total > 0
        assert len(serving(cluster)) == 1
        answer = json.loads(said.stdout)
        assert answer["backend"] == "opensearch"
        assert answer["code"][0]["name"] == "Cart.total"


def test_a_build_whose_index_could_not_be_published_says_so_and_the_next_does_it(
    world: World,
) -> None:
    with opensearch() as cluster:
        indexes = Indexes(settings(world, cluster))
        repository = indexes.repository(None)
        cluster.faults = [lambda _: (403, {"error": {"type": "security", "reason": "no"}})]

        failed = anyio.run(indexes.build, repository, QUICK, lambda _: None)
        cluster.faults = []
        done = anyio.run(indexes.build, repository, QUICK, lambda _: None)

        assert "could not be published to OpenSearch" in failed.warnings[0]
        assert not done.warnings
        assert names(remote(cluster), "Cart.total")[0] == "Cart.total"


def test_two_publishers_of_one_machine_do_not_write_at_the_same_time(world: World) -> None:
    with opensearch() as cluster:
        indexes = Indexes(settings(world, cluster))
        repository = indexes.repository(None)
        world.build()
        lock = claim(indexes.shelf(repository).folder / LOCK)
        assert lock is not None
        try:
            made = anyio.run(indexes.build, repository, QUICK, lambda _: None)
        finally:
            lock.release()

        assert "Another process" in made.warnings[0]
        assert not cluster.indexes


def test_a_server_is_ready_while_its_cluster_answers(world: World) -> None:
    with opensearch() as cluster:
        reads = toolset(settings(world, cluster, index_share="read"), Vitals()).ready
        several = settings(world, cluster, index_share="read", opensearch_indexes=("a", "b"))
        builds = toolset(settings(world, cluster), Vitals()).ready
        assert reads is not None
        assert builds is not None
        anyio.run(reads)
        anyio.run(Indexes(several).answers)
        cluster.faults = [lambda _: (503, {})]

        for waits in (reads, Indexes(several).answers):
            with pytest.raises(OSError, match="503"):
                anyio.run(waits)

        anyio.run(builds)  # whoever builds can do so, and publishes later


def test_who_only_searches_builds_nothing(world: World) -> None:
    with opensearch() as cluster:
        indexes = Indexes(settings(world, cluster, index_share="read"))
        repository = indexes.repository(None)

        with pytest.raises(ToolError) as caught:
            anyio.run(indexes.build, repository, QUICK, lambda _: None)

        assert caught.value.code is ErrorCode.FORBIDDEN
        assert anyio.run(indexes.freshness, repository) is None
        assert not cluster.seen


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"opensearch_url": "host:9200"}, "opensearch_url"),
        ({"index_name": "Not A Name"}, "index_name"),
        ({"opensearch_url": "https://host", "opensearch_ca": "/nowhere.pem"}, "opensearch_ca"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    world: World, changed: dict[str, Any], why: str
) -> None:
    world.root.mkdir(parents=True, exist_ok=True)
    given = {"project_dir": world.root, "cache_dir": world.cache, "opensearch_url": "http://host"}

    with pytest.raises(SettingError, match=why):
        _ = Indexes(Settings(**{**given, **changed})).remote
