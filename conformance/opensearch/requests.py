"""Every kind of request that is sent, recorded while the fake cluster is filled and searched."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.opensearch_clients import open_remote_index, publish_generation, run_search
from tests.support.opensearch_server import run_opensearch
from tests.support.opensearch_traffic import ClusterRequest
from tests.support.search import build_generation, build_shop_files
from tests.toolsets.code.search.test_filters import FILTER_CASES

RECORDED_QUERIES = ("cart", "Cart.add", '"parse error" x', "a AND b OR NOT c", "*", "cart.py -x")


def record_requests() -> list[ClusterRequest]:
    """Return the requests for publishing three generations and for searching with every filter."""
    with TemporaryDirectory() as scratch, run_opensearch() as cluster:
        folders = [
            build_generation(Path(scratch, f"00000{number}-0badcafe"), build_shop_files()[number:])
            for number in range(3)
        ]
        for folder in folders:
            publish_generation(cluster, folder, shards=2)
        index = open_remote_index(cluster)
        publish_generation(cluster, build_generation(Path(scratch, "000009-0badcafe"), build_shop_files()))
        for arguments, _ in FILTER_CASES:
            run_search(index, **{"query": "-nowhere", "mode": "all", **arguments})
        for query in RECORDED_QUERIES:
            run_search(index, query=query, mode="all", output="full")
        return cluster.requests
