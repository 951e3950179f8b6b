"""A generation in the OpenSearch of the tests, and searches in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from cleats.toolsets.code.opensearch.cluster import Cluster, Place
from cleats.toolsets.code.opensearch.publishing import Publisher
from cleats.toolsets.code.opensearch.remote import Remote
from cleats.toolsets.code.opensearch.together import Together
from cleats.toolsets.code.search.request import Request, read
from tests.opensearch import OpenSearch


def place(cluster: OpenSearch, **changed: Any) -> Place:
    """Where it is; who waits there for another try does not wait long."""
    return Place(cluster.base, **{"pause": 0.001, **changed})


def publish(
    cluster: OpenSearch,
    folder: Path,
    *,
    name: str = "shop",
    builder: str = "builder",
    shards: int = 1,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
    clock: float | None = None,
    tries: int = 5,
) -> str:
    """Publish a generation, as a builder does."""

    async def work() -> str:
        where = place(cluster, tries=tries)
        async with Cluster(where, where.verified()) as connected:
            times = {} if clock is None else {"clock": lambda: clock}
            publisher = Publisher(connected, name, builder, shards, 0, **times)
            return await publisher.publish(folder, tell)

    return anyio.run(work)


def remote(cluster: OpenSearch, *, name: str = "shop", pause: float = 0.0, **who: Any) -> Remote:
    """The index as a server has it that only searches."""
    where = place(cluster, **who)
    return Remote(where, where.verified(), name, False, Path("/nowhere"), pause)


def answer(searched: Remote | Together, **given: Any) -> dict[str, Any]:
    """What a search answers."""

    def make() -> Request:
        return read(given, tests_lower=True)

    return anyio.run(searched.search, make)


def names(searched: Remote | Together, query: str, **given: Any) -> list[str]:
    """The names of the hits of all modes, best first."""
    found = answer(searched, query=query, **given)
    modes = ("code", "prose", "extractedProse", "records")
    return [hit["name"] for mode in modes for hit in found[mode]]


def serving(cluster: OpenSearch, name: str = "shop") -> list[str]:
    """The indexes that a search of this name is answered from."""
    return [each.name for each in cluster.indexes.values() if f"cleats-{name}" in each.aliases]
