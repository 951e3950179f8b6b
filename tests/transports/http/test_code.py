"""Tests of the API's routes over a real index, compared with the same tools over MCP."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.indexes import IndexedRepository
from tests.support.mcp_client import ServerPeer, start_server
from tests.support.requirements import requirement

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "code")


class ServerPair:
    """One repository with an index and one without, on two servers."""

    def __init__(self, world: IndexedRepository, web: WebServer, peer: ServerPeer) -> None:
        self.root = str(world.root)
        self.unindexed_root = str(world.root / "bare")
        self.web = web
        self._peer = peer
        self._request_id = 0

    def call_mcp(self, tool: str, **args: Any) -> dict[str, Any]:
        """Return the envelope of MCP's answer."""
        self._request_id += 1
        self._peer.send_call(self._request_id, tool, **args)
        envelope: dict[str, Any] = self._peer.wait_for_answer(self._request_id)["result"]["structuredContent"]
        return envelope


@pytest.fixture(scope="module")
def server_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerPair]:
    home = tmp_path_factory.mktemp("home")
    world = IndexedRepository(home)
    world.write_file("app/core.py", 'def first(value):\n    """Give it back."""\n    return value\n')
    world.write_file("README.md", "# Title\n\nSome words about first things.\n")
    world.build_index()
    (world.root / "bare" / ".git").mkdir(parents=True)
    environ: dict[str, Any] = {
        "CLEATS_CACHE_DIR": str(world.cache),
        "CLEATS_INDEX_LINT": "off",
        "CLEATS_AUTO_INDEX": "off",
    }
    repo = ("--repo", str(world.root))
    with (
        start_server(*SERVE_COMMAND, *repo, home=home, **environ) as peer,
        run_web_server(*CLEATS_COMMAND, "code", *repo, home=home, **environ) as web,
    ):
        yield ServerPair(world, web, peer)


def drop_volatile_fields(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return an envelope without the fields that differ between any two calls."""
    volatile_names = {"ts", "durationMs", "requestId"}
    meta = {name: value for name, value in envelope["_meta"].items() if name not in volatile_names}
    return {**envelope, "_meta": meta}


SEARCH_ARGUMENTS: list[dict[str, Any]] = [
    {"query": "first"},
    {"query": "first", "mode": "code", "output": "full", "top": 1},
    {"query": "words", "mode": "prose", "context": 1},
    {"query": "nothing-of-the-kind", "ext": "py"},
]


@requirement("b:parity:outputs", "b:http:search")
@pytest.mark.parametrize("args", SEARCH_ARGUMENTS)
def test_a_search_by_route_has_the_envelope_that_mcp_has(server_pair: ServerPair, args: dict[str, Any]) -> None:
    envelope = server_pair.call_mcp("search", **args)

    reply = server_pair.web.post("/search", args)

    assert reply.result == {"repo": server_pair.root, "search": envelope["result"]}
    assert drop_volatile_fields(reply.json) == {**drop_volatile_fields(envelope), "result": reply.result}


@requirement("b:parity:outputs", "b:http:409-index", "b:http:error-envelope")
def test_a_search_without_an_index_fails_alike(server_pair: ServerPair) -> None:
    args = {"query": "first", "repoPath": server_pair.unindexed_root}

    reply = server_pair.web.post("/search", args)

    assert reply.status == 409
    assert drop_volatile_fields(reply.json) == drop_volatile_fields(server_pair.call_mcp("search", **args))


@requirement("b:http:search-stream")
def test_a_stream_of_a_search_ends_in_what_the_search_answers(server_pair: ServerPair) -> None:
    events = server_pair.web.read_events("POST", "/search/stream", SEARCH_ARGUMENTS[0])

    names = [name for name, _ in events]
    assert (names[0], names[1:-2], names[-2:]) == ("start", ["progress"], ["result", "done"])
    assert set(events[1][1]["result"]) == {"phase", "message"}
    assert events[-2][1]["result"] == server_pair.web.post("/search", SEARCH_ARGUMENTS[0]).result


@requirement("b:parity:outputs", "b:http:status", "b:http:status-stream")
def test_a_status_by_route_is_that_of_the_tool(server_pair: ServerPair) -> None:
    tool_status = server_pair.call_mcp("report_artifacts")["result"]

    status = server_pair.web.get("/status").result
    events = server_pair.web.read_events("GET", "/status/stream")

    assert status == {"repo": server_pair.root, "status": tool_status}
    assert [name for name, _ in events] == ["start", "result", "done"]
    assert [envelope["result"] for _, envelope in events] == [{"repo": server_pair.root}, status, {}]
