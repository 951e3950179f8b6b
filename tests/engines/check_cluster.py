"""Three nodes: what publishing and searching promise when nodes are killed and the layout changes.

The moments of the kills come from seeds. `CLEATS_ENGINE_KILLS` sets their number; a failure names its seed.
"""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Self

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.sharing.opensearch import documents, publishing
from cleats.toolsets.code.sharing.opensearch.cluster import ClusterError
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
from tests.engines.opensearch_nodes import OpenSearchCluster, OpenSearchNode
from tests.engines.opensearch_relay import RelayedOpenSearch
from tests.support.opensearch_clients import list_serving_indexes, open_remote_index, publish_generation, run_search
from tests.support.opensearch_traffic import ClusterRequest, serve_cluster
from tests.support.search import build_generation, build_shop_files

pytestmark = pytest.mark.timeout(1800)

KILL_SEEDS = range(int(os.environ.get("CLEATS_ENGINE_KILLS", "1")))
MAX_KILL_DELAY_SECONDS = 0.05
GENERATIONS = ("000001-0badcafe", "000002-0badcafe")
QUERIES = ("cart", "Cart.add", "parse error")

Names = tuple[tuple[str, ...], ...]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two generations by name; the second lacks a file that the first has."""
    root = tmp_path_factory.mktemp("generations")
    files = (build_shop_files(), build_shop_files()[1:])
    return {name: build_generation(root / name, content) for name, content in zip(GENERATIONS, files, strict=True)}


@pytest.fixture
def relay(three_nodes: OpenSearchCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[RelayedOpenSearch]:
    """Yield the empty cluster behind a port for publishing, with small batches."""
    monkeypatch.setattr(publishing, "BATCH_DOCUMENTS", 6)
    relayed = RelayedOpenSearch(cluster=three_nodes)
    with serve_cluster(relayed):
        yield relayed
    for node in three_nodes.nodes:
        if not node.is_running():
            node.start()
    three_nodes.wait_for_nodes(3)
    for index in relayed.index_names:
        relayed.remove_index(index)


def publish(relay: RelayedOpenSearch, folder: Path, tries: int = 5) -> None:
    """Publish a generation with a replica of each of two shards, with pauses of a real builder."""
    publish_generation(relay, folder, shards=2, replicas=1, tries=tries, retry_pause=0.5)


def search_remotely(index: RemoteIndex) -> Names:
    """Return the names of the hits of every query."""
    return tuple(_list_names(run_search(index, query=query, mode="code")) for query in QUERIES)


def search_locally(folder: Path) -> Names:
    """Return what the embedded index answers."""
    engine = SearchEngine.open(folder)
    requests = [parse_request({"query": query, "mode": "code"}, demote_tests=True) for query in QUERIES]
    return tuple(_list_names(render_answer(engine, search_generation(engine, request))) for request in requests)


def _list_names(answer: dict[str, object]) -> tuple[str, ...]:
    hits = answer["code"]
    assert isinstance(hits, list)
    return tuple(str(hit["name"]) for hit in hits)


class BackgroundSearches:
    """Searches in a thread; every answer and every error is kept."""

    def __init__(self, three_nodes: OpenSearchCluster) -> None:
        self.answers: list[Names] = []
        self.errors: list[ToolError] = []
        self._relay = RelayedOpenSearch(cluster=three_nodes)
        self._stopped = threading.Event()
        self._failure: list[BaseException] = []

    def __enter__(self) -> Self:
        self._server = serve_cluster(self._relay)
        self._server.__enter__()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self) -> None:
        index = open_remote_index(self._relay, pause=0.1)
        while not self._stopped.is_set():
            try:
                self.answers.append(search_remotely(index))
            except ToolError as error:
                self.errors.append(error)
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                self._failure.append(error)
                return

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._server.__exit__(None, None, None)
        if self._failure:
            raise self._failure[0]


def kill_at_request(number: int, delay: float, node: OpenSearchNode) -> Callable[[ClusterRequest], None]:
    """Return a fault that kills a node some time after a request arrives, while it is answered."""
    remaining = [number]

    def count_request(_request: ClusterRequest) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            threading.Timer(delay, node.kill).start()

    return count_request


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_a_node_killed_at_a_random_moment_leaves_whole_answers_only(
    relay: RelayedOpenSearch, folders: dict[str, Path], seed: int
) -> None:
    random = Random(seed)
    first, second = (folders[name] for name in GENERATIONS)
    expected = {search_locally(first), search_locally(second)}
    publish(relay, first)
    relay.cluster.wait_for_nodes(3, "green")
    moment, delay = random.randrange(1, 30), random.random() * MAX_KILL_DELAY_SECONDS
    victim = random.choice(relay.cluster.nodes)
    relay.faults = [kill_at_request(moment, delay, victim)]

    with BackgroundSearches(relay.cluster) as searches:
        possible = {second.name}
        try:
            publish(relay, second)
        except ClusterError:
            possible.add(first.name)
        relay.faults = []
        restart_ended_nodes(relay.cluster)

    [serving] = list_serving_indexes(relay)
    assert any(name in serving for name in possible), f"seed {seed}"
    assert set(searches.answers) <= expected, f"seed {seed}"
    assert searches.answers
    assert all(error.code is ErrorCode.UNAVAILABLE and error.retryable for error in searches.errors), f"seed {seed}"
    publish(relay, second)
    assert search_remotely(open_remote_index(relay)) == search_locally(second)


def restart_ended_nodes(cluster: OpenSearchCluster) -> None:
    """Start the nodes that were killed, and wait until all data has its replicas again."""
    for node in cluster.nodes:
        if not node.is_running():
            node.start()
    cluster.wait_for_nodes(3, "green")


def test_an_index_of_an_older_layout_is_replaced_and_never_searched(
    relay: RelayedOpenSearch, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = folders[GENERATIONS[0]]
    with monkeypatch.context() as older:
        older.setattr(documents, "DOCUMENT_FORMAT", documents.DOCUMENT_FORMAT - 1)
        publish(relay, first)
    with pytest.raises(ToolError, match="another version") as caught:
        search_remotely(open_remote_index(relay))
    assert caught.value.code is ErrorCode.NO_INDEX

    publish(relay, first)

    assert search_remotely(open_remote_index(relay)) == search_locally(first)
    assert len(relay.index_names) == 2
