"""Tests of the HTTP server as a process: its start, its load, its end; and MCP over it."""

import http.client
import json
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.http_client import CLEATS_COMMAND, MCP_HEADERS, WebServer, open_mcp_session, run_web_server
from tests.support.mcp_client import WAIT_TIMEOUT_SECONDS
from tests.support.requirements import requirement
from tests.support.shell import Shell
from tests.support.waiting import wait_until

# The start


def test_the_first_line_says_where_it_listens_and_nothing_follows_it(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    with run_web_server(*CLEATS_COMMAND, "code", "--repo", str(repo), home=tmp_path) as web:
        assert web.get("/health").status == 200
        assert web.startup_info == {
            "ok": True,
            "host": "127.0.0.1",
            "port": web.port,
            "repo": str(repo),
            "baseUrl": f"http://127.0.0.1:{web.port}",
        }
        web.process.send_signal(signal.SIGTERM)
        assert web.wait_for_exit() == 0
        assert web.process.stdout is not None
        assert web.process.stdout.read() == b""


@pytest.mark.parametrize(("token", "more"), [("", "open it in a browser"), ("secret", "callers need a token")])
def test_a_person_is_told_on_stderr(tmp_path: Path, token: str, more: str) -> None:
    shell = Shell(tmp_path)
    words = ("http", "assets", "--port", "0")
    with shell.start_process(*words, module="cleats", CLEATS_HTTP_TOKEN=token) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("Listening"))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=WAIT_TIMEOUT_SECONDS)

    assert "http://127.0.0.1:" in line
    assert more in line
    assert (out, process.returncode) == ("", 0)


def test_an_ipv6_address_is_bracketed(tmp_path: Path) -> None:
    with run_web_server(*CLEATS_COMMAND, "assets", "--host", "::1", home=tmp_path) as web:
        assert web.startup_info["baseUrl"] == f"http://[::1]:{web.port}"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nope"], "Unknown toolset 'nope'"),
        (["--port", "70000"], "70000"),
        (["--repo", "/no/such/folder"], "/no/such/folder"),
        (["--host", "no.such.host.invalid", "--port", "0"], "CLEATS_HTTP_TOKEN"),
    ],
)
def test_what_cannot_be_served_is_exit_code_2(shell: Shell, words: list[str], complaint: str) -> None:
    process = shell.run("http", *words)

    assert process.returncode == 2
    assert complaint in process.stderr


def test_what_a_tool_prints_is_not_on_stdout(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path) as web:
        assert web.call_tool("noisy").status == 200
        web.process.send_signal(signal.SIGTERM)
        assert web.wait_for_exit() == 0
        assert web.process.stdout is not None

        assert web.process.stdout.read() == b""
        assert "a stray print" in web.stderr


@requirement("b:http:error-envelope")
@pytest.mark.parametrize("path", ["/search", "/mcp"])
def test_a_request_whose_body_never_comes_is_answered_with_an_envelope_when_the_server_ends(
    tmp_path: Path, path: str
) -> None:
    with run_web_server(*CLEATS_COMMAND, "code", home=tmp_path) as web:
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=WAIT_TIMEOUT_SECONDS)
        connection.putrequest("POST", path)
        for name, value in {**MCP_HEADERS, "content-length": "100"}.items():
            connection.putheader(name, value)
        connection.endheaders(b"{")
        wait_until(lambda: b"cleats_http_open 2\n" in web.get("/metrics").body)
        web.process.send_signal(signal.SIGTERM)
        response = connection.getresponse()
        body = json.loads(response.read())

        assert web.wait_for_exit() == 0
    assert (response.status, body["ok"], body["error"]["code"]) == (503, False, "UNAVAILABLE")
    assert body["_meta"]["schemaVersion"]
    assert "Traceback" not in web.stderr


# Load and time


def test_a_full_queue_is_503_and_says_when_to_come_back(tmp_path: Path) -> None:
    with (
        run_web_server(home=tmp_path, CLEATS_CONCURRENCY="1", CLEATS_QUEUE="0") as web,
        web.stream_events("/tools/block/stream", {"folder": str(tmp_path), "name": "x"}),
    ):
        wait_until((tmp_path / "began-x").exists)
        reply = web.call_tool("echo", text="x")

        assert (reply.status, reply.error["code"]) == (503, "QUEUE_OVERLOADED")
        assert reply.headers["retry-after"] == "1"
        assert reply.error["details"]["queue"] == {"max": 0, "size": 0}
        assert web.get("/health").status == 200


@requirement("a:timeout:aborts")
def test_a_call_past_its_deadline_is_504(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_TIMEOUTS="block=0.2") as web:
        reply = web.call_tool("block", folder=str(tmp_path), name="x")

        assert (reply.status, reply.error["code"]) == (504, "TOOL_TIMEOUT")
        assert reply.error["details"]["timeoutMs"] == 200
        assert (tmp_path / "stopped-x").exists()


def test_one_log_line_tells_of_each_call(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path) as web:
        web.post("/tools/echo", {"text": "x"}, x_request_id="find-me")

        wait_until(lambda: "surface=http id=find-me tool=echo outcome=Done" in web.stderr)


# The end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_a_signal_what_runs_is_finished_and_nothing_new_is_taken(tmp_path: Path, number: signal.Signals) -> None:
    with run_web_server(home=tmp_path, CLEATS_DRAIN="20") as web, ThreadPoolExecutor() as pool:
        held_call = pool.submit(web.call_tool, "hold", folder=str(tmp_path), name="h")
        wait_until((tmp_path / "order").exists)
        web.process.send_signal(number)
        wait_until(lambda: not _can_connect(web))
        (tmp_path / "go-h").touch()

        assert held_call.result(WAIT_TIMEOUT_SECONDS).result == {"ok": True, "name": "h"}
        assert web.wait_for_exit() == 0


def _can_connect(web: WebServer) -> bool:
    try:
        web.connect().close()
    except OSError:
        return False
    return True


def test_what_does_not_finish_in_time_is_answered_cancelled(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_DRAIN="0.1") as web, ThreadPoolExecutor() as pool:
        plain = pool.submit(web.call_tool, "block", folder=str(tmp_path), name="a")
        stream = pool.submit(web.read_events, "POST", "/tools/block/stream", {"folder": str(tmp_path), "name": "b"})
        wait_until(lambda: all((tmp_path / f"began-{call_name}").exists() for call_name in "ab"))
        web.process.send_signal(signal.SIGTERM)

        reply = plain.result(WAIT_TIMEOUT_SECONDS)
        events = stream.result(WAIT_TIMEOUT_SECONDS)
        assert (reply.status, reply.error["code"]) == (499, "CANCELLED")
        assert [name for name, _ in events][-2:] == ["error", "done"]
        assert events[-2][1]["error"]["code"] == "CANCELLED"
        assert web.wait_for_exit() == 0
    assert all((tmp_path / f"stopped-{call_name}").exists() for call_name in "ab")


@pytest.mark.parametrize("sessions", ["on", "off"])
def test_an_mcp_call_that_does_not_finish_in_time_is_answered_cancelled(tmp_path: Path, sessions: str) -> None:
    arguments = {"folder": str(tmp_path), "name": "a"}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "block", "arguments": arguments}}
    environ = {"CLEATS_DRAIN": "0.1", "CLEATS_HTTP_SESSIONS": sessions}
    with run_web_server(home=tmp_path, **environ) as web, ThreadPoolExecutor() as pool:
        session = open_mcp_session(web).get("mcp-session-id")
        headers = {**MCP_HEADERS, "mcp-protocol-version": "2025-11-25"}
        if session is not None:
            headers["mcp-session-id"] = session
        reply = pool.submit(web.send_request, "POST", "/mcp", json.dumps(call).encode(), headers)
        wait_until((tmp_path / "began-a").exists)
        web.process.send_signal(signal.SIGTERM)

        answer = json.loads(reply.result(WAIT_TIMEOUT_SECONDS).body.partition(b"data: ")[2])
        assert web.wait_for_exit() == 0
    assert (session is not None) is (sessions == "on")
    assert (answer["id"], answer["result"]["isError"]) == (7, True)
    assert "CANCELLED" in answer["result"]["content"][0]["text"]
    assert (tmp_path / "stopped-a").exists()


def test_idle_connections_and_open_mcp_streams_do_not_keep_it_from_leaving(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path) as web:
        idle = http.client.HTTPConnection(web.host, web.port, timeout=WAIT_TIMEOUT_SECONDS)
        idle.request("GET", "/health")
        idle.getresponse().read()
        session = {**MCP_HEADERS, "mcp-session-id": open_mcp_session(web)["mcp-session-id"]}
        listening = http.client.HTTPConnection(web.host, web.port, timeout=WAIT_TIMEOUT_SECONDS)
        listening.request("GET", "/mcp", headers=session)
        stream = listening.getresponse()
        assert stream.status == 200
        web.process.send_signal(signal.SIGTERM)

        assert web.wait_for_exit() == 0
        stream.read()
        for connection in (idle, listening):
            connection.close()
        assert "Traceback" not in web.stderr


# MCP at /mcp


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_web_server(home=tmp_path_factory.mktemp("mcp")) as server:
        yield server


@requirement("b:mcp:protocol-pin")
@pytest.mark.parametrize("requested_version", ["2024-11-05", "2025-06-18", "2025-11-25", "2099-01-01"])
def test_a_handshake_over_http_is_answered_with_the_one_version_too(web: WebServer, requested_version: str) -> None:
    assert open_mcp_session(web, requested_version)["version"] == "2025-11-25"


def test_with_negotiation_an_older_client_gets_its_own_version(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_PROTOCOL="negotiate") as server:
        assert open_mcp_session(server, "2024-11-05")["version"] == "2024-11-05"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_gets_the_same_envelopes_over_mcp(web: WebServer, mode: Any) -> None:
    async with Client(streamable_http_client(f"{web.url}/mcp"), mode=mode) as client:
        tool_names = {tool.name for tool in (await client.list_tools()).tools}
        done = await client.call_tool("echo", {"text": "hi"})
        failed = await client.call_tool("refuse", {})

    assert tool_names == set(web.get("/capabilities").result["tools"])
    assert done.structured_content is not None
    assert done.structured_content["result"] == web.call_tool("echo", text="hi").result
    assert failed.is_error
    assert failed.structured_content is not None
    assert failed.structured_content["error"] == web.call_tool("refuse").error


@requirement("b:http:403-repo")
@pytest.mark.anyio
async def test_the_fence_and_the_redaction_hold_over_mcp_as_well(web: WebServer) -> None:
    async with Client(streamable_http_client(f"{web.url}/mcp")) as client:
        result = await client.call_tool("search", {"query": "x", "repoPath": "/etc"})
        leaked = await client.call_tool("leak", {})

    assert result.structured_content is not None
    assert result.structured_content["error"]["code"] == "FORBIDDEN"
    assert leaked.structured_content is not None
    assert leaked.structured_content["error"]["message"].startswith("neither <path> nor")


@pytest.mark.skipif(sys.platform == "win32", reason="reads /proc or ps")
def test_contract_snapshot_reads_the_server_over_its_url(web: WebServer, shell: Shell) -> None:
    process = shell.run("contract", "snapshot", "--url", f"{web.url}/mcp")

    assert process.returncode == 0, process.stderr
    assert '"echo"' in process.stdout
