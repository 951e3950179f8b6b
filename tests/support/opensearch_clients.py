"""A generation in an OpenSearch under test, and searches in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from cleats.toolsets.code.query.request import SearchRequest, parse_request
from cleats.toolsets.code.sharing.opensearch.cluster import Cluster, ClusterAddress
from cleats.toolsets.code.sharing.opensearch.publishing import ClusterPublisher
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex, RemoteIndexGroup
from tests.support.opensearch_traffic import ObservedOpenSearch


def build_cluster_address(cluster: ObservedOpenSearch, **overrides: Any) -> ClusterAddress:
    """Build the address of the cluster, with short pauses between retries."""
    return ClusterAddress(cluster.base, **{"pause": 0.001, **overrides})


def publish_generation(
    cluster: ObservedOpenSearch,
    folder: Path,
    *,
    name: str = "shop",
    builder: str = "builder",
    shards: int = 1,
    replicas: int = 0,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    clock: float | None = None,
    tries: int = 5,
    retry_pause: float = 0.001,
) -> str:
    """Publish a generation as a builder does."""

    async def run_publisher() -> str:
        address = build_cluster_address(cluster, tries=tries, pause=retry_pause)
        async with Cluster(address, address.create_ssl_context()) as connected:
            clock_options = {} if clock is None else {"clock": lambda: clock}
            publisher = ClusterPublisher(connected, name, builder, shards, replicas, **clock_options)
            return await publisher.publish(folder, on_progress)

    return anyio.run(run_publisher)


def open_remote_index(
    cluster: ObservedOpenSearch, *, name: str = "shop", pause: float = 0.0, **overrides: Any
) -> RemoteIndex:
    """Open the index as a server does that only searches."""
    address = build_cluster_address(cluster, **overrides)
    return RemoteIndex(address, address.create_ssl_context(), name, False, Path("/nowhere"), pause)


def run_search(index: RemoteIndex | RemoteIndexGroup, **arguments: Any) -> dict[str, Any]:
    """Run a search and return its answer."""

    def build_request() -> SearchRequest:
        return parse_request(arguments, demote_tests=True)

    return anyio.run(index.search, build_request)


def search_names(index: RemoteIndex | RemoteIndexGroup, query: str, **arguments: Any) -> list[str]:
    """Return the names of the hits of all modes, best first."""
    answer = run_search(index, query=query, **arguments)
    modes = ("code", "prose", "extractedProse", "records")
    return [hit["name"] for mode in modes for hit in answer[mode]]


def list_serving_indexes(cluster: ObservedOpenSearch, name: str = "shop") -> list[str]:
    """Return the indexes that answer searches for this name."""
    indexes = cluster.ask("GET", "/cleats-*")
    return [index for index, described in indexes.items() if f"cleats-{name}" in described["aliases"]]
