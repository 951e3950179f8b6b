"""Tests of the one HTTP client: its limits, its retries, and the hosts that it does not contact."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cleats.system.http_client import HttpClient, RequestFailedError, RetryPolicy, is_public_address

pytestmark = pytest.mark.anyio


@dataclass
class ScriptedServer:
    """Answers with the given responses in turn, the last one for ever."""

    url: str = ""
    responses: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    delay: float = 0.0


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    script = ScriptedServer()

    class ScriptedHandler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.requests.append((self.command, self.path, headers, content))
            time.sleep(script.delay)
            status, body, headers = script.responses.pop(0) if len(script.responses) > 1 else script.responses[0]
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - the names that http.server looks up

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedHandler)
    script.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def make_client(server: ScriptedServer, **options: Any) -> HttpClient:
    return HttpClient(**{"base_url": server.url, "timeout": 20.0, "max_bytes": 1000, **options})


async def test_a_response_has_a_status_a_document_and_a_pause(server: ScriptedServer) -> None:
    server.responses = [(200, b'{"a": 1}', {"retry-after": "7"})]

    async with make_client(server, token="secret") as client:
        reply = await client.send("POST", "/x", b"{}", {"x-key": "1"})

    (request,) = server.requests
    assert (reply.status, reply.ok, reply.parse_json(), reply.retry_after) == (200, True, {"a": 1}, 7)
    assert request[:2] == ("POST", "/x")
    assert request[3] == b"{}"
    assert request[2]["content-type"] == "application/json"
    assert request[2]["authorization"] == "Bearer secret"
    assert request[2]["user-agent"].startswith("cleats/")
    assert request[2]["x-key"] == "1"
    assert "secret" not in repr(client)


async def test_a_redirect_is_a_response_like_any_other(server: ScriptedServer) -> None:
    server.responses = [(302, b"", {"location": "/elsewhere"})]

    async with make_client(server, token="secret") as client:
        reply = await client.send("GET", "/x")

    assert reply.status == 302
    assert [path for _, path, _, _ in server.requests] == ["/x"]


async def test_no_proxy_of_the_environment_is_used(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.responses = [(204, b"", {})]
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async with make_client(server) as client:
        assert (await client.send("GET")).status == 204


async def test_no_more_than_the_limit_is_read(server: ScriptedServer) -> None:
    server.responses = [(200, b"x" * 100_000, {})]

    async with make_client(server) as client:
        reply = await client.send("GET")

    assert reply.is_truncated
    assert reply.body == b"x" * 1000
    assert reply.parse_json() is None


async def test_a_slow_server_is_a_timeout(server: ScriptedServer) -> None:
    server.responses = [(200, b"", {})]
    server.delay = 2.0

    async with make_client(server, timeout=0.2) as client:
        with pytest.raises(RequestFailedError) as failed:
            await client.send("GET")

    assert failed.value.is_timeout
    assert str(failed.value) == "no answer in 0.2 s"


async def test_an_address_where_nobody_listens_is_named_by_its_fault_alone() -> None:
    async with HttpClient(base_url="http://127.0.0.1:9/secret", timeout=20.0, max_bytes=1) as client:
        with pytest.raises(RequestFailedError) as failed:
            await client.send("GET")

    assert not failed.value.is_timeout
    assert str(failed.value) == "ConnectError"


async def test_a_busy_server_is_asked_again_and_a_refusal_is_not(server: ScriptedServer) -> None:
    policy = RetryPolicy(3, 0.001, frozenset({503}))
    server.responses = [(503, b"", {}), (503, b"", {}), (200, b"", {})]
    async with make_client(server, retries=policy) as client:
        assert (await client.send("GET")).status == 200
        assert len(server.requests) == 3

        server.responses = [(503, b"", {})]
        assert (await client.send("GET")).status == 503
        assert len(server.requests) == 6

        server.responses = [(400, b"", {})]
        assert (await client.send("GET")).status == 400
        assert len(server.requests) == 7


async def test_a_pause_is_doubled_up_to_a_limit_unless_the_server_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("cleats.system.http_client.anyio.sleep", note)
    policy = RetryPolicy(9, 1.0, frozenset(), max_pause=5.0)

    for attempt in range(1, 5):
        await policy.wait(attempt)
    await policy.wait(1, 3)
    await policy.wait(1, 600)
    await RetryPolicy(9, 1.0, frozenset(), obeys_retry_after=False).wait(1, 600)

    assert pauses == [1.0, 2.0, 4.0, 5.0, 3, 5.0, 1.0]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "2002:a00:1::", "fe80::1%eth0"])
def test_an_address_of_a_private_network_is_not_public_however_it_is_written(address: str) -> None:
    assert not is_public_address(address)
