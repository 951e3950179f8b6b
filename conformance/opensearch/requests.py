"""Every kind of request that is sent: recorded while the tests' cluster is filled and searched."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.opensearch import Request, opensearch
from tests.opensearch_world import answer, publish, remote
from tests.search_world import build, shop
from tests.test_code_search_filters import CASES

QUERIES = ("cart", "Cart.add", '"parse error" x', "a AND b OR NOT c", "*", "cart.py -x")


def recorded() -> list[Request]:
    """What was sent to publish three generations, and to search with every filter."""
    with TemporaryDirectory() as scratch, opensearch() as cluster:
        folders = [build(Path(scratch, f"00000{n}-0badcafe"), shop()[n:]) for n in range(3)]
        for folder in folders:
            publish(cluster, folder, shards=2)
        searched = remote(cluster)
        publish(cluster, build(Path(scratch, "000009-0badcafe"), shop()))
        for given, _ in CASES:
            answer(searched, **{"query": "-nowhere", "mode": "all", **given})
        for query in QUERIES:
            answer(searched, query=query, mode="all", output="full")
        return cluster.seen
