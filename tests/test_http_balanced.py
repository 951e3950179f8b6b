"""Two servers behind a load balancer: any of them answers any request, and one may die."""

import copy
import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cleats.contract.payload import Payload
from conformance.balancer import balanced
from tests.assets_world import SHOWCASE
from tests.peer import ENVELOPE, ROOT
from tests.postgres import database
from tests.surfaces import Http, Mcp, Seen
from tests.test_parity import CASES, PAYLOADS, steady
from tests.waiting import until
from tests.web import CLEATS, JSON, Web, parsed, serving

ACCEPT = {**JSON, "accept": "application/json, text/event-stream"}
STATELESS = {"CLEATS_HTTP_SESSIONS": "off", "CLEATS_TELEMETRY": "off"}


class McpHttp(Mcp):
    """MCP without sessions, as clients of 2026 speak it."""

    def __init__(self, web: Web) -> None:
        self.web = web

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        params = {"name": tool, "arguments": dict(arguments), "_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            **ACCEPT,
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        reply = self.web.ask("POST", "/mcp", json.dumps(message).encode(), headers)
        if reply.headers["content-type"].startswith("text/event-stream"):
            [answer] = [each for _, each in parsed(reply.body.replace(b"\r", b"")) if "id" in each]
            return self._seen(payload, answer)
        return self._seen(payload, reply.json)


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One server by itself, and two behind a balancer, in one home and on one database."""
    home = tmp_path_factory.mktemp("balanced")
    folders = [home / "first", home / "second"]
    for folder in folders:
        folder.mkdir()
    environ = {
        **STATELESS,
        "HOME": str(home),
        "SYN_SCHEMAS_DIR": str(SHOWCASE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(SHOWCASE / "examples"),
        "CLEATS_SKILL_DIRS": str(ROOT / "examples" / "skills"),
        "CLEATS_DATABASE_URL": database(),
    }
    with ExitStack() as stack:
        command = (*CLEATS, "--repo", str(home))
        first, second = (
            stack.enter_context(serving(*command, home=folder, **environ)) for folder in folders
        )
        balancer = stack.enter_context(balanced(first.port, second.port))
        through = Web(first.process, {"baseUrl": balancer.url}, folders[0] / "stderr.txt")
        yield {
            "one": Http(first),
            "http": Http(through),
            "mcp": McpHttp(through),
            "balancer": balancer,
        }


@pytest.mark.parametrize(("tool", "arguments"), CASES)
def test_a_call_has_the_same_end_through_a_balancer_as_on_one_server(
    surfaces: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    def seen(name: str) -> Seen:
        told = surfaces[name].call(tool, PAYLOADS[tool], copy.deepcopy(arguments))
        return Seen(told.ok, steady(told.payload))

    expected = seen("one")

    for name in ("http", "mcp"):  # once on each server behind it
        assert [seen(name), seen(name)] == [expected, expected], name


def test_every_server_behind_the_balancer_had_its_share(surfaces: dict[str, Any]) -> None:
    surfaces["http"].call("check_status", PAYLOADS["check_status"], {})
    surfaces["http"].call("check_status", PAYLOADS["check_status"], {})
    first, second = surfaces["balancer"].served.values()

    assert abs(first - second) <= 1
    assert first > 0


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_calls_go_on_when_a_server_is_killed(tmp_path: Path, mode: Any) -> None:
    with (
        serving(home=tmp_path, **STATELESS) as first,
        serving(home=tmp_path, **STATELESS) as second,
        balanced(first.port, second.port) as balancer,
    ):
        async with Client(streamable_http_client(f"{balancer.url}/mcp"), mode=mode) as client:
            for number in range(4):
                done = await client.call_tool("echo", {"text": f"before {number}"})
                assert not done.is_error
            first.process.kill()
            first.wait()
            until(lambda: _refused(first))
            before = balancer.served[first.port]
            told = [await client.call_tool("echo", {"text": f"{number}"}) for number in range(6)]

    assert before > 0
    assert balancer.served[first.port] == before
    assert [each.structured_content["result"]["text"] for each in told] == list("012345")


def _refused(web: Web) -> bool:
    try:
        web.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_with_sessions_a_client_of_2025_belongs_to_one_server(tmp_path: Path) -> None:
    """What `http_sessions` is for: this is why such clients need it off behind a balancer."""
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        },
    }
    body = json.dumps(opening).encode()
    with serving(home=tmp_path) as web:
        assert "mcp-session-id" in web.ask("POST", "/mcp", body, ACCEPT).headers
    with serving(home=tmp_path, **STATELESS) as web:
        assert "mcp-session-id" not in web.ask("POST", "/mcp", body, ACCEPT).headers


# Readiness


def test_a_server_is_ready_until_something_it_needs_is_gone(tmp_path: Path) -> None:
    with serving(home=tmp_path) as web:
        until(lambda: web.get("/ready").json.get("result") == {"ready": True})
        (tmp_path / "unreachable").touch()
        until(lambda: web.get("/ready").status == 503)
        error = web.get("/ready").error
        assert web.get("/health").status == 200
        assert web.call("echo", text="x").status == 200
        (tmp_path / "unreachable").unlink()
        until(lambda: web.get("/ready").status == 200)
        missing = "ready.missing check=surfaces: OSError: the store is away"
        until(lambda: missing in web.stderr)

    assert error["code"] == "UNAVAILABLE"
    assert error["retryable"] is True
    assert "the store" not in json.dumps(error)


def test_a_server_that_is_asked_to_stop_says_so_and_goes_on_for_a_while(tmp_path: Path) -> None:
    with serving(home=tmp_path, CLEATS_HTTP_LINGER="600") as web:
        until(lambda: web.get("/ready").status == 200)
        web.process.send_signal(signal.SIGTERM)

        until(lambda: web.get("/ready").status == 503)
        assert web.get("/ready").error["message"] == "The server is about to stop."
        # So many that a server which had stopped listening would have been noticed.
        assert {web.call("echo", text="x").status for _ in range(200)} == {200}


def test_after_the_while_it_ends_and_answers_what_is_in_flight(tmp_path: Path) -> None:
    with serving(home=tmp_path, CLEATS_HTTP_LINGER="0.2", CLEATS_DRAIN="60") as web:
        with web.streaming("/tools/hold/stream", {"folder": str(tmp_path), "name": "x"}) as events:
            assert next(events)[0] == "start"
            web.process.send_signal(signal.SIGTERM)
            (tmp_path / "go-x").touch()
            assert [name for name, _ in events] == ["result", "done"]

        assert web.wait() == 0


def test_open_probes_want_neither_a_token_nor_a_known_name(tmp_path: Path) -> None:
    with serving(home=tmp_path, CLEATS_HTTP_TOKEN="x", CLEATS_HTTP_PROBES="open") as web:
        for path in ("/health", "/ready"):
            until(lambda path=path: web.get(path, Host="10.1.2.3:8080").status == 200)  # type: ignore[misc]
            assert web.get(path, Origin="https://evil.example").status == 403
            assert web.ask("POST", path).status == 401
        assert web.get("/metrics").status == 401
        assert web.get("/health/").status == 401


def test_guarded_probes_want_both(tmp_path: Path) -> None:
    with serving(home=tmp_path, CLEATS_HTTP_TOKEN="x") as web:
        assert web.get("/ready").status == 401
        assert web.get("/ready", authorization="Bearer x", Host="10.1.2.3").status == 403
        until(lambda: web.get("/ready", authorization="Bearer x").status == 200)
