"""The real servers of the checks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.toolsets.code.sharing.opensearch import publishing
from tests.engines.cluster_world import GENERATIONS
from tests.engines.opensearch_nodes import OpenSearchCluster, make_node_folder, start_cluster
from tests.engines.opensearch_relay import RelayedOpenSearch
from tests.support.opensearch_server import HOME_VARIABLE
from tests.support.opensearch_traffic import serve_cluster
from tests.support.search import build_generation, build_shop_files

NODE_NAMES = ("left", "middle", "right")


@pytest.fixture(scope="session")
def opensearch_home() -> Path:
    """Return the folder of the server that `make engines` installed."""
    if HOME_VARIABLE not in os.environ:
        pytest.skip("run make engines, which installs OpenSearch")
    return Path(os.environ[HOME_VARIABLE])


@pytest.fixture(scope="session")
def three_nodes(opensearch_home: Path) -> Iterator[OpenSearchCluster]:
    """Run a cluster of three nodes for all checks."""
    with make_node_folder() as folder:
        started = start_cluster(opensearch_home, folder, NODE_NAMES)
        try:
            yield started
        finally:
            started.stop()


@pytest.fixture(scope="session")
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
