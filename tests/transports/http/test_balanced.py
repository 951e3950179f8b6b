"""Tests of two servers behind a load balancer: either answers any request, and one may die."""

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
from conformance.balancer import run_balancer
from tests.support.assets import SHOWCASE_FOLDER
from tests.support.http_client import CLEATS_COMMAND, JSON_HEADERS, WebServer, parse_events, run_web_server
from tests.support.mcp_client import ENVELOPE_META
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgres import create_database
from tests.support.surfaces import HttpSurfaceClient, McpSurfaceClient, SurfaceAnswer
from tests.support.waiting import wait_until
from tests.surfaces.test_parity import CALL_CASES, TOOL_PAYLOADS, drop_volatile_fields

MCP_HEADERS = {**JSON_HEADERS, "accept": "application/json, text/event-stream"}
STATELESS_ENVIRON = {"CLEATS_HTTP_SESSIONS": "off", "CLEATS_TELEMETRY": "off"}


class StatelessMcpSurface(McpSurfaceClient):
    """The MCP surface without sessions, as clients of 2026 use it."""

    def __init__(self, web: WebServer) -> None:
        self.web = web

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        params = {"name": tool, "arguments": dict(arguments), "_meta": ENVELOPE_META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            **MCP_HEADERS,
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        reply = self.web.send_request("POST", "/mcp", json.dumps(message).encode(), headers)
        if reply.headers["content-type"].startswith("text/event-stream"):
            [answer] = [event for _, event in parse_events(reply.body.replace(b"\r", b"")) if "id" in event]
            return self._normalize_answer(payload, answer)
        return self._normalize_answer(payload, reply.json)


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Start one server alone and two behind a balancer, with one home and one database."""
    home = tmp_path_factory.mktemp("balanced")
    folders = [home / "first", home / "second"]
    for folder in folders:
        folder.mkdir()
    environ = {
        **STATELESS_ENVIRON,
        "HOME": str(home),
        "SYN_SCHEMAS_DIR": str(SHOWCASE_FOLDER / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(SHOWCASE_FOLDER / "examples"),
        "CLEATS_SKILL_DIRS": str(REPOSITORY_ROOT / "examples" / "skills"),
        "CLEATS_DATABASE_URL": create_database(),
    }
    with ExitStack() as stack:
        command = (*CLEATS_COMMAND, "--repo", str(home))
        first, second = (stack.enter_context(run_web_server(*command, home=folder, **environ)) for folder in folders)
        balancer = stack.enter_context(run_balancer(first.port, second.port))
        balanced_web = WebServer(first.process, {"baseUrl": balancer.url}, folders[0] / "stderr.txt")
        yield {
            "one": HttpSurfaceClient(first),
            "http": HttpSurfaceClient(balanced_web),
            "mcp": StatelessMcpSurface(balanced_web),
            "balancer": balancer,
        }


@pytest.mark.parametrize(("tool", "arguments"), CALL_CASES)
def test_a_call_has_the_same_end_through_a_balancer_as_on_one_server(
    surfaces: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    def call_surface(name: str) -> SurfaceAnswer:
        outcome = surfaces[name].call(tool, TOOL_PAYLOADS[tool], copy.deepcopy(arguments))
        return SurfaceAnswer(outcome.ok, drop_volatile_fields(outcome.payload))

    expected = call_surface("one")

    for name in ("http", "mcp"):  # once on each server behind it
        assert [call_surface(name), call_surface(name)] == [expected, expected], name


def test_every_server_behind_the_balancer_had_its_share(surfaces: dict[str, Any]) -> None:
    surfaces["http"].call("check_status", TOOL_PAYLOADS["check_status"], {})
    surfaces["http"].call("check_status", TOOL_PAYLOADS["check_status"], {})
    first, second = surfaces["balancer"].request_counts.values()

    assert abs(first - second) <= 1
    assert first > 0


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_calls_go_on_when_a_server_is_killed(tmp_path: Path, mode: Any) -> None:
    with (
        run_web_server(home=tmp_path, **STATELESS_ENVIRON) as first,
        run_web_server(home=tmp_path, **STATELESS_ENVIRON) as second,
        run_balancer(first.port, second.port) as balancer,
    ):
        async with Client(streamable_http_client(f"{balancer.url}/mcp"), mode=mode) as client:
            for number in range(4):
                done = await client.call_tool("echo", {"text": f"before {number}"})
                assert not done.is_error
            first.process.kill()
            first.wait_for_exit()
            wait_until(lambda: _is_refused(first))
            before = balancer.request_counts[first.port]
            results = [await client.call_tool("echo", {"text": f"{number}"}) for number in range(6)]

    assert before > 0
    assert balancer.request_counts[first.port] == before
    assert [result.structured_content["result"]["text"] for result in results] == list("012345")


def _is_refused(web: WebServer) -> bool:
    try:
        web.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_with_sessions_a_client_of_2025_belongs_to_one_server(tmp_path: Path) -> None:
    """Show the reason for `http_sessions`: such clients need it off behind a balancer."""
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
    with run_web_server(home=tmp_path) as web:
        assert "mcp-session-id" in web.send_request("POST", "/mcp", body, MCP_HEADERS).headers
    with run_web_server(home=tmp_path, **STATELESS_ENVIRON) as web:
        assert "mcp-session-id" not in web.send_request("POST", "/mcp", body, MCP_HEADERS).headers


# Readiness


def test_a_server_is_ready_until_something_it_needs_is_gone(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path) as web:
        wait_until(lambda: web.get("/ready").json.get("result") == {"ready": True})
        (tmp_path / "unreachable").touch()
        wait_until(lambda: web.get("/ready").status == 503)
        error = web.get("/ready").error
        assert web.get("/health").status == 200
        assert web.call_tool("echo", text="x").status == 200
        (tmp_path / "unreachable").unlink()
        wait_until(lambda: web.get("/ready").status == 200)
        missing = "ready.missing check=surfaces: OSError: the store is away"
        wait_until(lambda: missing in web.stderr)

    assert error["code"] == "UNAVAILABLE"
    assert error["details"]["retryable"] is True
    assert "the store" not in json.dumps(error)


def test_a_server_that_is_asked_to_stop_says_so_and_goes_on_for_a_while(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_HTTP_LINGER="600") as web:
        wait_until(lambda: web.get("/ready").status == 200)
        web.process.send_signal(signal.SIGTERM)

        wait_until(lambda: web.get("/ready").status == 503)
        assert web.get("/ready").error["message"] == "The server is stopping."
        # So many that a server which had stopped listening would have been noticed.
        assert {web.call_tool("echo", text="x").status for _ in range(200)} == {200}


def test_after_the_while_it_ends_and_answers_what_is_in_flight(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_HTTP_LINGER="0.2", CLEATS_DRAIN="60") as web:
        with web.stream_events("/tools/hold/stream", {"folder": str(tmp_path), "name": "x"}) as events:
            assert next(events)[0] == "start"
            web.process.send_signal(signal.SIGTERM)
            (tmp_path / "go-x").touch()
            assert [name for name, _ in events] == ["result", "done"]

        assert web.wait_for_exit() == 0


def test_open_probes_want_neither_a_token_nor_a_known_name(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_HTTP_TOKEN="x", CLEATS_HTTP_PROBES="open") as web:
        for path in ("/health", "/ready"):
            wait_until(lambda path=path: web.get(path, Host="10.1.2.3:8080").status == 200)  # type: ignore[misc]
            assert web.get(path, Origin="https://evil.example").status == 403
            assert web.send_request("POST", path).status == 401
        assert web.get("/metrics").status == 401
        assert web.get("/health/").status == 401


def test_guarded_probes_want_both(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_HTTP_TOKEN="x") as web:
        assert web.get("/ready").status == 401
        assert web.get("/ready", authorization="Bearer x", Host="10.1.2.3").status == 403
        wait_until(lambda: web.get("/ready", authorization="Bearer x").status == 200)
