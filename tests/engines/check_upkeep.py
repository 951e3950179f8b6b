"""Three nodes: what publishing and searching promise while a cluster is kept up: restarts, full disks, new layouts."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.sharing.opensearch import documents
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
from tests.engines.opensearch_relay import RelayedOpenSearch
from tests.support.opensearch_clients import list_serving_indexes, open_remote_index

pytestmark = pytest.mark.timeout(1800)

PUBLISHING_TRIES = 8
"""The attempts of a builder by default."""

WATERMARK_PREFIX = "cluster.routing.allocation.disk.watermark"
FULL_DISK = {
    f"{WATERMARK_PREFIX}.low": "1002tb",
    f"{WATERMARK_PREFIX}.high": "1001tb",
    f"{WATERMARK_PREFIX}.flood_stage": "1000tb",
    "cluster.info.update.interval": "10s",
}
"""The free space that a node must have, which none has; a cluster looks every ten seconds at most."""

BLOCK_LIMIT_SECONDS = 300.0


def test_a_rolling_restart_interrupts_neither_searches_nor_publications(
    relay: RelayedOpenSearch, folders: dict[str, Path]
) -> None:
    first, second = (folders[name] for name in GENERATIONS)
    publish(relay, first)
    relay.cluster.wait_for_nodes(3, "green")

    with BackgroundSearches(relay.cluster) as searches:
        for node, folder in zip(relay.cluster.nodes, (second, first, second), strict=True):
            answer_count = len(searches.answers)
            node.kill(SIGTERM)
            publish(relay, folder, tries=PUBLISHING_TRIES)
            restart_ended_nodes(relay.cluster)
            assert len(searches.answers) > answer_count
            assert search_remotely(open_remote_index(relay)) == search_locally(folder)

    searches.check(search_locally(first), search_locally(second))


@contextmanager
def fill_disks(relay: RelayedOpenSearch) -> Iterator[None]:
    """Make the disks of all nodes count as full until the block is left."""
    relay.ask("PUT", "/_cluster/settings", {"transient": FULL_DISK})
    try:
        yield
    finally:
        free_disks(relay)


def free_disks(relay: RelayedOpenSearch) -> None:
    """Make the disks count as free again, and wait until the cluster has lifted its blocks."""
    relaxed = {**dict.fromkeys(FULL_DISK), "cluster.info.update.interval": "10s"}
    relay.ask("PUT", "/_cluster/settings", {"transient": relaxed})
    wait_for(lambda: not relay.ask("GET", "/_cluster/state/blocks").get("blocks"))


def wait_for_blocks(relay: RelayedOpenSearch) -> None:
    """Wait until the cluster has made all indexes read-only."""
    wait_for(lambda: all(map(_is_read_only, relay.ask("GET", "/cleats-*/_settings").values())))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the cluster has looked at its disks; it is asked rarely, because it works meanwhile."""
    give_up_at = time.monotonic() + BLOCK_LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, "the cluster did not notice"
        time.sleep(0.5)


def _is_read_only(described: dict[str, Any]) -> bool:
    return bool(described["settings"]["index"].get("blocks", {}).get("read_only_allow_delete") == "true")


def test_full_disks_stop_publications_but_not_searches(relay: RelayedOpenSearch, folders: dict[str, Path]) -> None:
    first, second = (folders[name] for name in GENERATIONS)
    publish(relay, first)
    relay.cluster.wait_for_nodes(3, "green")
    with fill_disks(relay):
        wait_for_blocks(relay)

        with pytest.raises(ClusterError, match="cluster create-index blocked"):
            publish(relay, second, tries=2)

        assert search_remotely(open_remote_index(relay)) == search_locally(first)
        assert all(first.name in index for index in relay.index_names)
    publish(relay, second)
    assert search_remotely(open_remote_index(relay)) == search_locally(second)


def test_disks_that_fill_up_during_a_publication_leave_the_previous_index(
    relay: RelayedOpenSearch, folders: dict[str, Path]
) -> None:
    first, second = (folders[name] for name in GENERATIONS)
    publish(relay, first)
    relay.cluster.wait_for_nodes(3, "green")
    batches = [number for number, request in enumerate(relay.requests) if request.path.endswith("/_bulk")]

    def fill_up() -> None:
        relay.ask("PUT", "/_cluster/settings", {"transient": FULL_DISK})
        wait_for_blocks(relay)

    relay.faults = [act_at_request(batches[1] + 1, fill_up)]
    try:
        with pytest.raises(ClusterError, match="disk usage exceeded flood-stage watermark"):
            publish(relay, second, tries=2)
        relay.faults = []
        assert search_remotely(open_remote_index(relay)) == search_locally(first)
        [serving] = list_serving_indexes(relay)
        assert relay.index_names == [serving]
    finally:
        relay.faults = []
        free_disks(relay)
    publish(relay, second)
    assert search_remotely(open_remote_index(relay)) == search_locally(second)


@pytest.mark.parametrize("difference", [-1, 1], ids=["older", "newer"])
def test_an_index_of_another_layout_is_replaced_and_never_searched(
    relay: RelayedOpenSearch, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, difference: int
) -> None:
    first, second = (folders[name] for name in GENERATIONS)
    with monkeypatch.context() as other_version:
        other_version.setattr(documents, "DOCUMENT_FORMAT", documents.DOCUMENT_FORMAT + difference)
        publish(relay, first)
    with pytest.raises(ToolError, match="another version") as caught:
        search_remotely(open_remote_index(relay))
    assert caught.value.code is ErrorCode.NO_INDEX

    publish(relay, first)

    assert search_remotely(open_remote_index(relay)) == search_locally(first)
    assert len(relay.index_names) == 2
    publish(relay, second)
    assert search_remotely(open_remote_index(relay)) == search_locally(second)
    assert {documents.format_version()} == {relay.read_meta(index)["form"] for index in relay.index_names}
