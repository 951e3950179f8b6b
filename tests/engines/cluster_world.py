"""Two generations in a real cluster: published and searched through ports with faults, compared with a local index."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
from tests.engines.opensearch_nodes import OpenSearchCluster
from tests.engines.opensearch_relay import RelayedOpenSearch
from tests.support.opensearch_clients import open_remote_index, publish_generation, run_search
from tests.support.opensearch_traffic import ClusterFault, ClusterRequest, serve_cluster

GENERATIONS = ("000001-0badcafe", "000002-0badcafe")
QUERIES = ("cart", "Cart.add", "parse error")

Names = tuple[tuple[str, ...], ...]


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


def find_mixed_answers(rounds: Iterable[Names], *expected: Names) -> list[tuple[str, ...]]:
    """Return the answers that none of the generations gives; a round may meet a switch between two queries."""
    possible = [set(answers) for answers in zip(*expected, strict=True)]
    return [
        answer for answers in rounds for answer, choices in zip(answers, possible, strict=True) if answer not in choices
    ]


class BackgroundSearches:
    """Searches in a thread; every answer and every error is kept."""

    def __init__(self, cluster: OpenSearchCluster, faults: "list[ClusterFault] | None" = None) -> None:
        self.answers: list[Names] = []
        self.errors: list[ToolError] = []
        self._relay = RelayedOpenSearch(cluster=cluster, faults=faults or [])
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

    def check(self, *expected: Names) -> None:
        """Check that there were answers, all of them complete, and that every error said to try again."""
        assert self.answers
        assert find_mixed_answers(self.answers, *expected) == []
        assert all(error.code is ErrorCode.UNAVAILABLE and error.retryable for error in self.errors), self.errors


def act_at_request(number: int, action: Callable[[], object]) -> Callable[[ClusterRequest], None]:
    """Return a fault that acts once, when the request with this number arrives, and then lets it pass."""
    remaining = [number]

    def count_request(_request: ClusterRequest) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            action()

    return count_request


def restart_ended_nodes(cluster: OpenSearchCluster) -> None:
    """Start the nodes that were killed, and wait until all data has its replicas again."""
    for node in cluster.nodes:
        if not node.is_running():
            node.start()
    cluster.wait_for_nodes(3, "green")
