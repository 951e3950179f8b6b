"""A real OpenSearch behind the port that records requests and injects faults."""

import atexit
import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import quote, urlencode

from tests.engines.opensearch_nodes import OpenSearchCluster, start_cluster
from tests.support.opensearch_traffic import ClusterRequest, ObservedOpenSearch, serve_cluster

UPSTREAM_TIMEOUT_SECONDS = 120


@dataclass
class RelayedOpenSearch(ObservedOpenSearch):
    """A cluster that passes requests on to real nodes, as a load balancer does."""

    cluster: OpenSearchCluster = field(default_factory=OpenSearchCluster)

    def route(self, request: ClusterRequest) -> tuple[int, Any]:
        """Return what the next node that accepts a connection answers; status 0 if it goes away before it answers."""
        target = quote(request.path, safe="/*,-_") + (f"?{urlencode(request.query)}" if request.query else "")
        content_type = request.headers.get("content-type", "application/json")
        first = len(self.requests) % len(self.cluster.nodes)
        for node in [*self.cluster.nodes[first:], *self.cluster.nodes[:first]]:
            # A connection for each request: what a fault cut off cannot disturb the next request.
            with closing(HTTPConnection("127.0.0.1", node.http_port, timeout=UPSTREAM_TIMEOUT_SECONDS)) as connection:
                try:
                    connection.connect()
                except OSError:
                    continue
                try:
                    connection.request(request.method, target, request.body or None, {"content-type": content_type})
                    response = connection.getresponse()
                    return response.status, json.loads(response.read())
                except (OSError, HTTPException):
                    return 0, None
        return 0, None


_free_clusters: list[OpenSearchCluster] = []
_cluster_numbers = count(1)


@contextmanager
def borrow_cluster(home: Path) -> Iterator[RelayedOpenSearch]:
    """Yield an empty cluster of one node; nodes that are free again serve the next block."""
    cluster = _free_clusters.pop() if _free_clusters else _start_node(home)
    relayed = RelayedOpenSearch(cluster=cluster)
    try:
        with serve_cluster(relayed):
            yield relayed
    finally:
        for index in relayed.index_names:
            relayed.remove_index(index)
        _free_clusters.append(cluster)


def _start_node(home: Path) -> OpenSearchCluster:
    folder = Path(mkdtemp(prefix="cleats-node-"))
    folder.chmod(0o755)
    cluster = start_cluster(home, folder, [f"node-{next(_cluster_numbers)}"])
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(cluster.stop)
    return cluster
