"""Three nodes: what publishing and searching promise when a node is killed.

The moments of the kills come from seeds. `CLEATS_ENGINE_KILLS` sets their number; a failure names its seed.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from cleats.contract.errors import ToolError
from cleats.toolsets.code.sharing.opensearch.cluster import ClusterError
from tests.engines.cluster_world import (
    GENERATIONS,
    BackgroundSearches,
    act_at_request,
    publish,
    restart_ended_nodes,
    search_locally,
    search_remotely,
)
from tests.engines.opensearch_nodes import OpenSearchCluster, OpenSearchNode
from tests.engines.opensearch_relay import RelayedOpenSearch
from tests.support.opensearch_clients import list_serving_indexes, open_remote_index
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

KILL_SEEDS = range(int(os.environ.get("CLEATS_ENGINE_KILLS", "1")))
MAX_KILL_DELAY_SECONDS = 0.05
SEARCH_REQUESTS = 40
"""Requests of about three rounds of searches, during any of which a node may be killed."""


class Kill:
    """The death of a random node, a random time after a request arrives, usually while it is answered."""

    def __init__(self, random: Random, cluster: OpenSearchCluster) -> None:
        self.victim: OpenSearchNode = random.choice(cluster.nodes)
        self._delay = random.random() * MAX_KILL_DELAY_SECONDS
        self._is_over = threading.Event()

    def begin(self) -> None:
        """Start the timer of the kill."""
        threading.Timer(self._delay, self._kill).start()

    def _kill(self) -> None:
        self.victim.kill()
        self._is_over.set()

    def wait(self) -> None:
        """Wait until the node is dead; fail if the kill never began."""
        assert self._is_over.wait(60), "the chosen moment never came"


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_a_node_killed_at_a_random_moment_of_publishing_leaves_whole_answers_only(
    relay: RelayedOpenSearch, folders: dict[str, Path], seed: int
) -> None:
    random = Random(seed)
    first, second = (folders[name] for name in GENERATIONS)
    moment = random.randrange(_count_publishing_requests(relay, second)) + 1
    publish(relay, first)
    relay.cluster.wait_for_nodes(3, "green")
    kill = Kill(random, relay.cluster)
    relay.faults = [act_at_request(moment, kill.begin)]

    with BackgroundSearches(relay.cluster) as searches:
        possible = {second.name}
        try:
            publish(relay, second)
        except ClusterError:
            possible.add(first.name)
        kill.wait()
        relay.faults = []
        restart_ended_nodes(relay.cluster)

    [serving] = list_serving_indexes(relay)
    assert any(name in serving for name in possible)
    searches.check(search_locally(first), search_locally(second))
    publish(relay, second)
    assert search_remotely(open_remote_index(relay)) == search_locally(second)


def _count_publishing_requests(relay: RelayedOpenSearch, folder: Path) -> int:
    """Publish a generation that nothing disturbs, and remove it again."""
    publish(relay, folder)
    count = len(relay.requests)
    for index in relay.index_names:
        relay.remove_index(index)
    return count


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_a_node_killed_at_a_random_moment_of_searching_does_not_end_the_searches(
    relay: RelayedOpenSearch, folders: dict[str, Path], seed: int
) -> None:
    random = Random(1000 + seed)
    folder = folders[GENERATIONS[0]]
    expected = search_locally(folder)
    publish(relay, folder)
    relay.cluster.wait_for_nodes(3, "green")
    kill = Kill(random, relay.cluster)

    with BackgroundSearches(
        relay.cluster, [act_at_request(random.randrange(SEARCH_REQUESTS) + 1, kill.begin)]
    ) as searches:
        kill.wait()
        wait_until(_make_search(relay, expected))  # with the two nodes that are left
        restart_ended_nodes(relay.cluster)

    searches.check(expected)


def _make_search(relay: RelayedOpenSearch, expected: object) -> Callable[[], bool]:
    def is_answered() -> bool:
        try:
            return search_remotely(open_remote_index(relay)) == expected
        except ToolError:
            return False

    return is_answered
