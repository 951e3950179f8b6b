"""A worker that publishes to a cluster, and a server and a command that search in it."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.app import load_toolsets
from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.server_status import ServerStatus
from cleats.settings import SettingError, Settings
from cleats.settings import make_settings as make_settings_flat
from cleats.system.atomic_files import try_exclusive_lock
from cleats.toolsets.code.composition import open_indexes
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.sharing.opensearch.remote_index import LOCK_FILENAME
from tests.support.indexes import QUICK_OPTIONS, IndexedRepository
from tests.support.opensearch_clients import list_serving_indexes, open_remote_index, search_names
from tests.support.opensearch_server import run_opensearch
from tests.support.opensearch_traffic import ObservedOpenSearch, encode_basic_auth
from tests.support.waiting import wait_until
from tests.toolsets.code.sharing.test_fleet_servers import CountingClient, FleetMachine

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are

TOTAL_LOCATION, CART_LOCATION, GUIDE_LOCATION = (
    ("shop/cart.py", 2, "Cart.total"),
    ("shop/cart.py", 1, "Cart"),
    ("README.md", 1, "Shop"),
)
SEARCH_CASES: list[tuple[dict[str, Any], tuple[str, int, str]]] = [
    ({"query": "total of the prices", "output": "full"}, TOTAL_LOCATION),
    ({"query": "Cart", "output": "json"}, CART_LOCATION),
    ({"query": "how to buy things", "mode": "prose"}, GUIDE_LOCATION),
    ({"query": "price", "type": "method", "explain": True}, TOTAL_LOCATION),
]


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    repository = IndexedRepository(tmp_path / "builder")
    repository.write_file("shop/cart.py", "class Cart:\n    def total(self, prices):\n        return sum(prices)\n")
    repository.write_file("README.md", "# Shop\n\nHow to buy things.\n")
    return repository


def make_settings(world: IndexedRepository, cluster: ObservedOpenSearch, **changed: Any) -> Settings:
    values: dict[str, Any] = {
        "project_dir": world.root,
        "cache_dir": world.cache,
        "opensearch_url": cluster.base,
        "index_name": "shop",
        "index_share": "publish",
        **changed,
    }
    return make_settings_flat(**values)


def test_a_server_without_the_files_answers_from_the_cluster(world: IndexedRepository, tmp_path: Path) -> None:
    with run_opensearch() as cluster:
        cluster.required_authorization = encode_basic_auth("cleats", "hush")
        shared = {
            "CLEATS_OPENSEARCH_URL": cluster.base,
            "CLEATS_OPENSEARCH_USER": "cleats",
            "CLEATS_OPENSEARCH_PASSWORD": "hush",
            "CLEATS_OPENSEARCH_SHARDS": "2",
        }
        machine, builder = FleetMachine(tmp_path / "left", shared), FleetMachine(tmp_path / "maker", shared)
        builder.environ["CLEATS_INDEX_POLL"] = "0.5"
        with machine.start_server() as one:
            reader = CountingClient(one)
            assert reader.search(query="cart") == "NO_INDEX"
            with builder.start_worker(world.root):
                wait_until(lambda: reader.search(query="cart") != "NO_INDEX")
                for question, first in SEARCH_CASES:
                    result = reader.search(**question)
                    assert result["backend"] == "opensearch"
                    assert list_locations(result)[0] == first
                world.write_file("shop/tax.py", "def tax_of(price):\n    return price / 5\n")
                wait_until(lambda: "tax.py" in str(reader.search(query="tax_of")))
            for options in ({"refresh": True}, {}):
                tool = "search" if options else "build_index"
                arguments = {"query": "cart", **options} if options else {}
                assert reader.call(tool, **arguments)["error"]["code"] == "FORBIDDEN"
            assert "hush" not in json.dumps(reader.call("config_status"))
            assert not any(b"hush" in request.body for request in cluster.requests)
            cluster.faults = [lambda _: (503, {})]
            gone = reader.call("search", query="cart")["error"]
            assert (gone["code"], gone["details"]["retryable"]) == ("UNAVAILABLE", True)


def list_locations(result: dict[str, Any]) -> list[tuple[str, int, str]]:
    modes = ("code", "prose", "extractedProse", "records")
    return [(hit["file"], hit["startLine"], hit["name"]) for m in modes for hit in result[m]]


def test_one_build_publishes_and_the_command_searches_there(world: IndexedRepository, tmp_path: Path) -> None:
    with run_opensearch() as cluster:
        progress: list[BuildProgress] = []
        indexes = open_indexes(make_settings(world, cluster))
        report = anyio.run(indexes.build_index, indexes.find_repository(None), QUICK_OPTIONS, progress.append)
        argv = [sys.executable, "-m", "cleats", "search", "total of the prices", "--json"]
        environ = {
            "CLEATS_OPENSEARCH_URL": cluster.base,
            "CLEATS_INDEX_NAME": "shop",
            "CLEATS_CACHE_DIR": str(tmp_path / "other"),
            "CLEATS_DATA_DIR": str(tmp_path / "data"),
        }
        (tmp_path / "elsewhere").mkdir()

        process = subprocess.run(
            argv,
            env={**os.environ, **environ},
            cwd=tmp_path / "elsewhere",
            capture_output=True,
            check=True,
        )

        assert not report.warnings
        assert progress[-1].phase == "publish"
        assert progress[-1].done == progress[-1].total > 0
        assert len(list_serving_indexes(cluster)) == 1
        answer = json.loads(process.stdout)
        assert answer["backend"] == "opensearch"
        assert answer["code"][0]["name"] == "Cart.total"


def test_a_build_whose_index_could_not_be_published_says_so_and_the_next_does_it(
    world: IndexedRepository,
) -> None:
    with run_opensearch() as cluster:
        indexes = open_indexes(make_settings(world, cluster))
        repository = indexes.find_repository(None)
        cluster.faults = [lambda _: (403, {"error": {"type": "security", "reason": "no"}})]

        failed = anyio.run(indexes.build_index, repository, QUICK_OPTIONS, lambda _: None)
        cluster.faults = []
        report = anyio.run(indexes.build_index, repository, QUICK_OPTIONS, lambda _: None)

        assert "could not be published to OpenSearch" in failed.warnings[0]
        assert not report.warnings
        assert search_names(open_remote_index(cluster), "Cart.total")[0] == "Cart.total"


def test_two_publishers_of_one_machine_do_not_write_at_the_same_time(world: IndexedRepository) -> None:
    with run_opensearch() as cluster:
        indexes = open_indexes(make_settings(world, cluster))
        repository = indexes.find_repository(None)
        world.build_index()
        lock = try_exclusive_lock(indexes.open_store(repository).folder / LOCK_FILENAME)
        assert lock is not None
        try:
            report = anyio.run(indexes.build_index, repository, QUICK_OPTIONS, lambda _: None)
        finally:
            lock.release()

        assert "Another process" in report.warnings[0]
        assert not cluster.index_names


def load_ready_check(settings: Settings) -> Callable[[], Awaitable[None]] | None:
    [code] = load_toolsets(settings, ["code"], ServerStatus())
    return code.ready


def test_a_server_is_ready_while_its_cluster_answers(world: IndexedRepository) -> None:
    with run_opensearch() as cluster:
        reads = load_ready_check(make_settings(world, cluster, index_share="read"))
        several = make_settings(world, cluster, index_share="read", opensearch_indexes=("a", "b"))
        builds = load_ready_check(make_settings(world, cluster))
        assert reads is not None
        assert builds is not None
        anyio.run(reads)
        anyio.run(open_indexes(several).check_reachable)
        cluster.faults = [lambda _: (503, {})]

        for waits in (reads, open_indexes(several).check_reachable):
            with pytest.raises(OSError, match="503"):
                anyio.run(waits)

        anyio.run(builds)  # whoever builds can do so, and publishes later


def test_who_only_searches_builds_nothing(world: IndexedRepository) -> None:
    with run_opensearch() as cluster:
        indexes = open_indexes(make_settings(world, cluster, index_share="read"))
        repository = indexes.find_repository(None)

        with pytest.raises(ToolError) as caught:
            anyio.run(indexes.build_index, repository, QUICK_OPTIONS, lambda _: None)

        assert caught.value.code is ErrorCode.FORBIDDEN
        assert anyio.run(indexes.check_freshness, repository) is None
        assert not cluster.requests


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"opensearch_url": "host:9200"}, "opensearch_url"),
        ({"index_name": "Not A Name"}, "index_name"),
        ({"opensearch_url": "https://host", "opensearch_ca": "/nowhere.pem"}, "opensearch_ca"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(world: IndexedRepository, changed: dict[str, Any], why: str) -> None:
    world.root.mkdir(parents=True, exist_ok=True)
    values = {"project_dir": world.root, "cache_dir": world.cache, "opensearch_url": "http://host"}

    with pytest.raises(SettingError, match=why):
        _ = open_indexes(make_settings_flat(**{**values, **changed})).remotes
