"""The requests of a search, one after the other, and what is done when an index goes away."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from msgspec.json import encode
from msgspec.structs import replace

from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.opensearch.cluster import (
    Cluster,
    ClusterError,
    RefusedError,
    reason_of,
)
from cleats.toolsets.code.opensearch.searching import (
    Search,
    Searching,
    passing,
    shown,
    sources,
)
from cleats.toolsets.code.opensearch.told import Stored
from cleats.toolsets.code.search.request import Request
from cleats.toolsets.code.search.retrieval import Found, loosened, needs_loosening

CHUNKS, FILES = 500, 50
"""Documents that one request fetches: of hits, and of whole files."""


class Asking:
    """One index of a cluster, asked by one search."""

    def __init__(self, cluster: Cluster, index: str, meta: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._index = index
        self._meta = meta

    async def search(self, request: Request) -> tuple[Stored, Found]:
        """What is found, and what is known of it.

        Raises:
            ToolError: INVALID_REQUEST, it cannot be asked here.
            ClusterError: the cluster cannot be reached, or refuses.
        """
        stored, found = await self._once(request)
        if not needs_loosening(found):
            return stored, found
        stored, found = await self._once(loosened(request))
        return stored, replace(found, loosened=True)

    async def _once(self, request: Request) -> tuple[Stored, Found]:
        # The first search of a process loads libraries, and a pattern may take a while.
        searching = await to_thread.run_sync(Searching, request, self._meta)
        if not searching.on_branch:
            return Stored({}, {}), searching.found({})
        asked = await to_thread.run_sync(searching.asked)
        answers = await self._answers({mode: each.listed() for mode, each in asked.items()})
        found = await to_thread.run_sync(searching.found, answers)
        if not any(found.considered.values()):
            named = searching.alone()
            counted = await self._msearch([search for _, search in named])
            names = [name for name, _ in named]
            return Stored({}, {}), passing(found, zip(names, counted, strict=True))
        known = sources(each for responses in answers.values() for each in responses)
        return await self._stored(*shown(found, known)), found

    async def _answers(
        self, asked: Mapping[Mode, Sequence[Search]]
    ) -> dict[Mode, Sequence[Mapping[str, Any]]]:
        flat = await self._msearch([search for listed in asked.values() for search in listed])
        answers: dict[Mode, Sequence[Mapping[str, Any]]] = {}
        for mode, listed in asked.items():
            answers[mode], flat = flat[: len(listed)], flat[len(listed) :]
        return answers

    async def _msearch(self, searches: Sequence[Search]) -> list[Mapping[str, Any]]:
        if not searches:
            return []
        lines = b"".join(b"\n".join((*map(encode, (_head(s), s)), b"")) for s in searches)
        answer = await self._cluster.ask("POST", f"/{quote(self._index)}/_msearch", lines=lines)
        return [_checked(each) for each in answer["responses"]]

    async def _stored(self, chunks: Sequence[str], files: Sequence[str]) -> Stored:
        found = await self._fetched(chunks, CHUNKS)
        texts = await self._fetched(files, FILES)
        return Stored(
            {(each["hit"]["path"], each["hit"]["ordinal"]): each for each in found.values()},
            {int(name.rpartition("-")[2]): each["hit"] for name, each in texts.items()},
        )

    async def _fetched(self, ids: Sequence[str], most: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for at in range(0, len(ids), most):
            wanted = {"ids": list(ids[at : at + most])}
            answer = await self._cluster.ask("POST", f"/{quote(self._index)}/_mget", wanted)
            for each in answer["docs"]:
                if not each.get("found"):  # so says a cluster also when the whole index is gone
                    raise RefusedError(404, "", f"document {each.get('_id')} is missing")
                found[each["_id"]] = each["_source"]
        return found


def _head(search: Search) -> dict[str, str]:
    """How to search: what is ranked by words needs to know, first, how rare they are everywhere."""
    return {"search_type": "dfs_query_then_fetch"} if "sort" in search else {}


def gone(error: ClusterError) -> bool:
    """Whether an index was removed while it was searched."""
    return isinstance(error, RefusedError) and error.status == 404


def _checked(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer that is whole: half of one would say that the rest has nothing."""
    if "error" in response:
        raise RefusedError(int(response.get("status", 500)), *reason_of(response))
    shards = response["_shards"]
    if response["timed_out"] or shards["failed"]:
        raise ClusterError(f"{shards['failed']} of {shards['total']} shards did not answer in time")
    return response
