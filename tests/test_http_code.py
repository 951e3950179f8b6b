"""The routes of the API over a real index, beside the same tools over MCP."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.index_world import World
from tests.peer import Peer, started
from tests.requirements import requirement
from tests.web import CLEATS, Web, serving

SERVE = (sys.executable, "-m", "cleats", "serve", "code")


class Both:
    """One repository with an index and one without, on two servers."""

    def __init__(self, world: World, web: Web, peer: Peer) -> None:
        self.root = str(world.root)
        self.bare = str(world.root / "bare")
        self.web = web
        self._peer = peer
        self._number = 0

    def mcp(self, tool: str, **given: Any) -> dict[str, Any]:
        """The envelope that MCP answers."""
        self._number += 1
        self._peer.call(self._number, tool, **given)
        envelope: dict[str, Any] = self._peer.answer(self._number)["result"]["structuredContent"]
        return envelope


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    home = tmp_path_factory.mktemp("home")
    world = World(home)
    world.write("app/core.py", 'def first(value):\n    """Give it back."""\n    return value\n')
    world.write("README.md", "# Title\n\nSome words about first things.\n")
    world.build()
    (world.root / "bare" / ".git").mkdir(parents=True)
    environ: dict[str, Any] = {"CLEATS_CACHE_DIR": str(world.cache), "CLEATS_INDEX_LINT": "off"}
    repo = ("--repo", str(world.root))
    with (
        started(*SERVE, *repo, home=home, **environ) as peer,
        serving(*CLEATS, "code", *repo, home=home, **environ) as web,
    ):
        yield Both(world, web, peer)


def steady(envelope: dict[str, Any]) -> dict[str, Any]:
    """An envelope without what two calls of anything differ in."""
    moving = {"ts", "durationMs", "requestId"}
    meta = {name: value for name, value in envelope["_meta"].items() if name not in moving}
    return {**envelope, "_meta": meta}


ASKED: list[dict[str, Any]] = [
    {"query": "first"},
    {"query": "first", "mode": "code", "output": "full", "top": 1},
    {"query": "words", "mode": "prose", "context": 1},
    {"query": "nothing-of-the-kind", "ext": "py"},
]


@requirement("b:parity:outputs", "b:http:search")
@pytest.mark.parametrize("given", ASKED)
def test_a_search_by_route_has_the_envelope_that_mcp_has(both: Both, given: dict[str, Any]) -> None:
    told = both.mcp("search", **given)

    reply = both.web.post("/search", given)

    assert reply.result == {"repo": both.root, "search": told["result"]}
    assert steady(reply.json) == {**steady(told), "result": reply.result}


@requirement("b:parity:outputs", "b:http:409-index", "b:http:error-envelope")
def test_a_search_without_an_index_fails_alike(both: Both) -> None:
    given = {"query": "first", "repoPath": both.bare}

    reply = both.web.post("/search", given)

    assert reply.status == 409
    assert steady(reply.json) == steady(both.mcp("search", **given))


@requirement("b:http:search-stream")
def test_a_stream_of_a_search_ends_in_what_the_search_answers(both: Both) -> None:
    events = both.web.events("POST", "/search/stream", ASKED[0])

    names = [name for name, _ in events]
    assert (names[0], names[1:-2], names[-2:]) == ("start", ["progress"], ["result", "done"])
    assert set(events[1][1]["result"]) == {"phase", "message"}
    assert events[-2][1]["result"] == both.web.post("/search", ASKED[0]).result


@requirement("b:parity:outputs", "b:http:status", "b:http:status-stream")
def test_a_status_by_route_is_that_of_the_tool(both: Both) -> None:
    told = both.mcp("report_artifacts")["result"]

    status = both.web.get("/status").result
    events = both.web.events("GET", "/status/stream")

    assert status == {"repo": both.root, "status": told}
    assert [name for name, _ in events] == ["start", "result", "done"]
    assert [envelope["result"] for _, envelope in events] == [{"repo": both.root}, status, {}]
