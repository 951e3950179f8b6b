"""Tests of a server with several worker processes behind one port."""

import http.client
import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cleats.transports.http.service import CLEANUP_TIMEOUT_SECONDS
from cleats.transports.http.tokens import hash_token
from tests.support.console import ConsoleBrowser
from tests.support.http_client import (
    CLEATS_COMMAND,
    JSON_HEADERS,
    MCP_HEADERS,
    WebServer,
    run_web_server,
)
from tests.support.mcp_client import INITIALIZE_PARAMS, WAIT_TIMEOUT_SECONDS
from tests.support.shell import Shell
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    not hasattr(os, "register_at_fork") or os.uname().sysname != "Linux", reason="Linux only"
)

WORKERS = 2


@contextmanager
def run_workers(home: Path, **environ: str) -> Iterator[WebServer]:
    with run_web_server(home=home, TEST_WORKERS=str(WORKERS), **environ) as web:
        yield web


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_workers(tmp_path_factory.mktemp("workers")) as server:
        yield server


class HeldConnections:
    """Connections that stay open, so that they are on different workers."""

    def __init__(self, web: WebServer, count: int = 4) -> None:
        self.connections = [
            http.client.HTTPConnection(web.host, web.port, timeout=WAIT_TIMEOUT_SECONDS) for _ in range(count)
        ]

    def request(
        self, number: int, method: str, path: str, value: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = self.connections[number]
        body = None if value is None else json.dumps(value).encode()
        connection.request(method, path, body, headers or JSON_HEADERS)
        response = connection.getresponse()
        return response.status, {name.lower(): text for name, text in response.getheaders()}, response.read()

    def open_session(self, number: int) -> str:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}
        status, headers, _ = self.request(number, "POST", "/mcp", message, MCP_HEADERS)
        assert status == 200
        return headers["mcp-session-id"]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


@pytest.fixture
def held(web: WebServer) -> Iterator[HeldConnections]:
    connections = HeldConnections(web)
    yield connections
    connections.close()


def list_workers(web: WebServer) -> list[int]:
    path = Path(f"/proc/{web.process.pid}/task/{web.process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def read_counter(text: str, name: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def test_connections_are_spread_evenly(held: HeldConnections) -> None:
    slots = [held.open_session(number).partition("-")[0] for number in range(4)]

    assert sorted(slots) == ["0", "0", "1", "1"]


def test_every_worker_serves_every_session(held: HeldConnections) -> None:
    sessions = [held.open_session(number) for number in range(4)]

    for session in sessions:
        for number in range(4):
            message = {"jsonrpc": "2.0", "id": number + 2, "method": "tools/list"}
            status, _, body = held.request(number, "POST", "/mcp", message, {**MCP_HEADERS, "mcp-session-id": session})
            assert status == 200
            assert b'"name":"hold"' in body


def test_a_session_that_was_deleted_on_one_worker_is_gone_on_all(held: HeldConnections) -> None:
    session = {**MCP_HEADERS, "mcp-session-id": held.open_session(0)}

    assert held.request(1, "DELETE", "/mcp", None, session)[0] == 200
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert [held.request(number, "POST", "/mcp", message, session)[0] for number in range(4)] == [404] * 4


@pytest.mark.parametrize(
    "session", ["7-0123456789abcdef0123456789abcdef", "0-unknown", "unknown", "-", "99999999999-x"]
)
def test_an_unknown_session_is_not_found(web: WebServer, session: str) -> None:
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    reply = web.send_request("POST", "/mcp", json.dumps(message).encode(), {**MCP_HEADERS, "mcp-session-id": session})

    assert reply.status == 404


@pytest.mark.anyio
async def test_the_official_client_gets_progress_and_answers_whichever_worker_accepts(web: WebServer) -> None:
    async with Client(streamable_http_client(f"{web.url}/mcp"), mode="legacy") as client:
        for number in range(8):
            result = await client.call_tool("echo", {"text": f"number {number}"})
            assert not result.is_error


def test_figures_are_added_up_over_all_workers(held: HeldConnections) -> None:
    def count_requests(number: int) -> float:
        text = held.request(number, "GET", "/metrics")[2].decode()
        return read_counter(text, 'cleats_http_requests_total{method="PUT",route="/health",status="404"}')

    for number in range(4):
        assert held.request(number, "PUT", "/health")[0] == 404

    # A worker that is too busy to answer the others is read from its latest copy.
    for number in range(4):
        wait_until(lambda number=number: count_requests(number) == 4)  # type: ignore[misc]


def test_workers_reach_each_other_under_a_temporary_folder_with_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with run_workers(tmp_path, TMPDIR=str(folder)) as web:
        connections = HeldConnections(web)
        sessions = [connections.open_session(number) for number in range(2)]
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        statuses = [
            connections.request(number, "POST", "/mcp", message, {**MCP_HEADERS, "mcp-session-id": session})[0]
            for session in sessions
            for number in range(2)
        ]
        connections.close()

    assert statuses == [200] * 4


def test_a_limit_counts_the_requests_of_all_workers(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    # One request in an hour, after five at once: the machine may be as slow as it likes.
    sha256 = hash_token("secret")
    tokens.write_text(f'[[token]]\nname = "ci"\nsha256 = "{sha256}"\nper_minute = 0.01\nburst = 5\n')
    tokens.chmod(0o600)
    with run_workers(tmp_path, CLEATS_HTTP_TOKENS=str(tokens)) as web:
        connections = HeldConnections(web)
        headers = {"authorization": "Bearer secret"}
        statuses = [connections.request(number % 4, "GET", "/health", None, headers)[0] for number in range(8)]
        connections.close()

    assert statuses == [200] * 5 + [429] * 3


def test_a_worker_that_crashes_is_replaced_and_its_counts_stay(tmp_path: Path) -> None:
    with run_workers(tmp_path) as web:
        for _ in range(6):
            assert web.get("/health").status == 200
        wait_until(lambda: "/health" in web.get("/metrics").body.decode())
        before = read_counter(web.get("/metrics").body.decode(), "cleats_http_requests_total")
        workers = list_workers(web)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: pid not in list_workers(web) and len(list_workers(web)) == WORKERS)  # type: ignore[misc]
            assert web.get("/health").status == 200

        assert set(list_workers(web)).isdisjoint(workers)
        assert read_counter(web.get("/metrics").body.decode(), "cleats_http_requests_total") >= before
        assert web.stderr.count("worker.exit") == WORKERS


def test_sessions_of_a_dead_worker_are_not_found_and_the_others_go_on(tmp_path: Path) -> None:
    with run_workers(tmp_path) as web:
        connections = HeldConnections(web)
        sessions = {connections.open_session(number).partition("-")[0]: number for number in range(4)}
        ids = {slot: connections.open_session(number) for slot, number in sessions.items()}
        pids = dict(re.findall(r"worker\.ready slot=(\d) pid=(\d+)", web.stderr))
        os.kill(int(pids["1"]), signal.SIGKILL)
        wait_until(lambda: web.stderr.count("worker.ready") == WORKERS + 1)

        message = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
        statuses = {
            slot: web.send_request("POST", "/mcp", message, {**MCP_HEADERS, "mcp-session-id": session}).status
            for slot, session in ids.items()
        }
        connections.close()

    assert statuses == {"0": 200, "1": 404}


def test_calls_on_all_workers_are_answered_before_the_server_ends(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = stack.enter_context(run_workers(tmp_path, CLEATS_DRAIN="60"))
        pool = stack.enter_context(ThreadPoolExecutor(6))
        calls = [pool.submit(web.call_tool, "hold", folder=str(tmp_path), name=f"call{number}") for number in range(6)]
        wait_until(lambda: read_counter(web.get("/metrics").body.decode(), "cleats_calls_running ") == 6)
        web.process.send_signal(signal.SIGTERM)
        wait_until(lambda: web.stderr.count("workers.stop") == 1)
        for number in range(6):
            (tmp_path / f"go-call{number}").touch()

        assert [call.result(WAIT_TIMEOUT_SECONDS).status for call in calls] == [200] * 6
        assert web.wait_for_exit() == 0
        assert web.stderr.count("serve.end") == WORKERS


def hold_on_other_workers(
    stack: ExitStack, web: WebServer, folder: Path
) -> list[Future[tuple[int, dict[str, str], bytes]]]:
    """Start four calls, each in a session of the worker that does not have the connection; return their answers."""
    connections = HeldConnections(web)
    stack.callback(connections.close)
    pool = stack.enter_context(ThreadPoolExecutor(4))
    sessions = [connections.open_session(number) for number in range(4)]
    owners = [session.partition("-")[0] for session in sessions]
    answers = []
    for number, owner in enumerate(owners):
        session = next(session for session in sessions if not session.startswith(f"{owner}-"))
        params = {"name": "hold", "arguments": {"folder": str(folder), "name": f"call{number}"}}
        message = {"jsonrpc": "2.0", "id": number + 2, "method": "tools/call", "params": params}
        headers = {**MCP_HEADERS, "mcp-session-id": session}
        answers.append(pool.submit(connections.request, number, "POST", "/mcp", message, headers))
    wait_until(lambda: read_counter(web.get("/metrics").body.decode(), "cleats_calls_running ") == 4)
    return answers


def test_calls_in_sessions_of_other_workers_are_answered_before_the_server_ends(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = stack.enter_context(run_workers(tmp_path, CLEATS_DRAIN="60"))
        answers = hold_on_other_workers(stack, web, tmp_path)
        web.process.send_signal(signal.SIGTERM)
        wait_until(lambda: web.stderr.count("workers.stop") == 1)
        for number in range(4):
            (tmp_path / f"go-call{number}").touch()
        results = [answer.result(WAIT_TIMEOUT_SECONDS) for answer in answers]

        assert web.wait_for_exit() == 0
    assert [status for status, _, _ in results] == [200] * 4
    assert all(f'"name":"call{number}"'.encode() in body for number, (_, _, body) in enumerate(results))


def test_a_worker_waits_for_the_answers_of_another_one_as_long_as_for_its_own(tmp_path: Path) -> None:
    # Longer than the time that connections have after the last call of a worker itself.
    drain = CLEANUP_TIMEOUT_SECONDS + 3
    with ExitStack() as stack:
        web = stack.enter_context(run_workers(tmp_path, CLEATS_DRAIN=str(drain)))
        answers = hold_on_other_workers(stack, web, tmp_path)
        for number in range(1, 4):
            (tmp_path / f"go-call{number}").touch()
        for answer in answers[1:]:
            answer.result(WAIT_TIMEOUT_SECONDS)
        web.process.send_signal(signal.SIGTERM)
        status, _, body = answers[0].result(WAIT_TIMEOUT_SECONDS)

        assert web.wait_for_exit() == 0
    assert status == 200
    assert b'"reason":"cancelled"' in body  # by the worker that has the session, at the end of its time


def test_workers_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with run_workers(tmp_path) as web:
        workers = list_workers(web)
        web.process.kill()

        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_the_console_is_one_whichever_worker_accepts(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    command = (*CLEATS_COMMAND, "skills", "--workers", "3", "--repo", str(tmp_path / "repo"))
    with run_web_server(*command, home=tmp_path, CLEATS_HTTP_TOKEN="secret") as web:
        browser = ConsoleBrowser(web)
        held = [web.connect() for _ in range(2)]  # so that the pages come from different workers
        browser.sign_in("secret")
        pages = [browser.get(path) for path in ("/console/tools", "/console/activity", "/console/contract") * 3]
        for connection in held:
            connection.close()

    assert [page.status for page in pages] == [200] * 9


def test_a_token_file_that_cannot_be_read_ends_the_command_before_any_worker(tmp_path: Path) -> None:
    process = Shell(tmp_path).run("http", "skills", "--workers", "2", CLEATS_HTTP_TOKENS=str(tmp_path / "absent"))

    assert process.returncode == 2
    assert "cannot read" in process.stderr


def test_workers_rotate_one_log_and_lose_no_line(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    environ = {"CLEATS_HTTP_ACCESS_LOG": str(log), "CLEATS_HTTP_LOG_BYTES": "20000"}
    with run_workers(tmp_path, **environ) as web:
        connections = HeldConnections(web)
        for number in range(200):
            headers = {"x-request-id": f"request-{number}"}
            assert connections.request(number % 4, "GET", "/health", None, headers)[0] == 200
        connections.close()
        web.process.send_signal(signal.SIGTERM)
        assert web.wait_for_exit() == 0

    files = sorted(tmp_path.glob("access.jsonl*"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(files) > 1
    assert sorted(line["requestId"] for line in lines) == sorted(f"request-{number}" for number in range(200))
    assert all(file.stat().st_size <= 20000 for file in files)
