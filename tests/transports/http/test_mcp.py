"""Tests of MCP messages at `/mcp`: invalid ones, and clients that leave during a call."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_client import MCP_HEADERS, HttpReply, WebServer, open_mcp_session, run_web_server
from tests.support.mcp_client import ENVELOPE_META, WAIT_TIMEOUT_SECONDS
from tests.support.requirements import requirement
from tests.support.waiting import wait_until

MODERN_HEADERS = {**MCP_HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def web(home: Path) -> Iterator[WebServer]:
    with run_web_server(home=home) as server:
        yield server


@pytest.fixture(scope="module")
def session(web: WebServer) -> dict[str, str]:
    """Return the headers of a client of 2025 after its handshake."""
    headers = {
        **MCP_HEADERS,
        "mcp-session-id": open_mcp_session(web)["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert web.send_request("POST", "/mcp", json.dumps(ready).encode(), headers).status == 202
    return headers


REQUEST_NUMBERS = count(1000)


def encode_call(tool: str, arguments: dict[str, Any], request_id: Any = None, **extra_params: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, **extra_params}
    number = next(REQUEST_NUMBERS) if request_id is None else request_id
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def has_begun(home: Path, name: str) -> bool:
    """Return whether a call of `hold` is running."""
    order = home / "order"
    return order.exists() and f"began {name}\n" in order.read_text()


# What is no message


@pytest.mark.parametrize(
    ("body", "answer", "message_part"),
    [
        (b"{", (-32700, None), "truncated"),
        (rb'{"jsonrpc":"2.0","id":7,"method":"\ud800"}', (-32700, None), r"surrogate \ud800 (byte"),
        (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', (-32700, None), "invalid UTF-8 (byte 34)"),
        (encode_call("echo", {"text": float("nan")}), (-32700, None), "invalid character"),
        (b"[]", (-32600, None), "batches are not supported"),
        (b"7", (-32600, None), "not an object"),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', (-32600, 7), '"jsonrpc"'),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', (-32600, 7), '"params"'),
        *(
            (b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % bad, (-32600, None), '"id"')
            for bad in (b"null", b"true", b"1.5", b"{}", b"[]")
        ),
    ],
)
def test_what_is_no_message_is_refused_in_both_eras_as_on_stdio(
    web: WebServer, session: dict[str, str], body: bytes, answer: tuple[int, object], message_part: str
) -> None:
    for headers in (session, MODERN_HEADERS, MCP_HEADERS):
        reply = web.send_request("POST", "/mcp", body, headers)

        error = reply.json["error"]
        assert (reply.status, (error["code"], reply.json["id"])) == (400, answer)
        assert message_part in error["message"]
        assert error["data"] == {"code": "INVALID_REQUEST"}
    assert web.send_request("POST", "/mcp", encode_call("echo", {"text": "x"}), session).status == 200


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", MCP_HEADERS, 400),  # no session
        ("POST", {**MCP_HEADERS, "mcp-session-id": "unheard-of"}, 404),
        ("POST", {"content-type": "application/json"}, 406),
        ("POST", MODERN_HEADERS, 400),  # no envelope
        ("PUT", MCP_HEADERS, 405),
    ],
)
def test_an_error_that_the_sdk_itself_answers_has_a_string_code_too(
    web: WebServer, method: str, headers: dict[str, str], status: int
) -> None:
    reply = web.send_request(method, "/mcp", b'{"jsonrpc":"2.0","id":7,"method":"ping"}', headers)

    assert reply.status == status
    assert reply.json["error"]["data"]["code"] == "INVALID_REQUEST"


def test_an_id_that_is_in_use_is_refused_and_its_first_request_answered(
    web: WebServer, session: dict[str, str], home: Path
) -> None:
    with ThreadPoolExecutor() as pool:
        held_body = encode_call("hold", {"folder": str(home), "name": "first"}, 77)
        first = pool.submit(web.send_request, "POST", "/mcp", held_body, session)
        wait_until(lambda: has_begun(home, "first"))
        for again in (77, "77"):
            reply = web.send_request("POST", "/mcp", encode_call("echo", {"text": "x"}, again), session)

            assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
            assert reply.json["id"] == again
            assert "still running" in reply.json["error"]["message"]
        (home / "go-first").touch()

        assert b'"isError":false' in first.result(WAIT_TIMEOUT_SECONDS).body


@requirement("b:http:415", "b:http:413", "b:http:error-envelope")
@pytest.mark.parametrize(
    ("changes", "body", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({}, b" " * 1_000_001, 413),
        ({"content-length": "1000001"}, b"", 413),
    ],
)
def test_a_body_that_will_not_do_is_refused_as_on_every_other_route(
    web: WebServer, session: dict[str, str], changes: dict[str, str], body: bytes, status: int
) -> None:
    for headers in (session, MODERN_HEADERS, MCP_HEADERS):
        reply = web.send_request("POST", "/mcp", body, {**headers, **changes, "x-request-id": "mine"})

        assert (reply.status, reply.error["code"]) == (status, "INVALID_REQUEST")
        assert reply.json["_meta"]["requestId"] == "mine"


@requirement("b:http:413")
def test_the_limit_of_a_body_is_the_setting_of_every_other_route(tmp_path: Path) -> None:
    call = encode_call("echo", {"text": "x" * 1000}, _meta=ENVELOPE_META)
    headers = {**MODERN_HEADERS, "mcp-name": "echo"}
    with run_web_server(home=tmp_path, CLEATS_HTTP_BODY_LIMIT="2000") as small:
        assert small.send_request("POST", "/mcp", call, headers).status == 200
        assert small.send_request("POST", "/mcp", call + b" " * 2000, headers).status == 413


# A client that leaves


@contextmanager
def send_request(web: WebServer, headers: dict[str, str], body: bytes) -> Iterator[None]:
    """Send a request without waiting for its answer; leaving the block closes the connection."""
    lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
    with web.connect() as link:
        link.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n%b" % (lines, len(body), body)
        )
        yield


def test_a_client_of_2026_that_disconnects_cancels_its_call(web: WebServer, home: Path) -> None:
    body = encode_call("block", {"folder": str(home), "name": "modern"}, _meta=ENVELOPE_META)
    with send_request(web, {**MODERN_HEADERS, "mcp-name": "block"}, body):
        wait_until((home / "began-modern").exists)

    wait_until((home / "stopped-modern").exists)


def test_a_client_of_2025_that_disconnects_leaves_its_call_running(
    web: WebServer, session: dict[str, str], home: Path
) -> None:
    body = encode_call("hold", {"folder": str(home), "name": "on"}, "held-on")
    with send_request(web, session, body):
        wait_until(lambda: has_begun(home, "on"))
    for _ in range(3):
        assert web.send_request("POST", "/mcp", encode_call("echo", {"text": "x"}), session).status == 200
    (home / "go-on").touch()

    wait_until(lambda: "id=held-on tool=hold outcome=Done" in web.stderr)


def test_a_client_of_2025_cancels_by_a_notification(web: WebServer, session: dict[str, str], home: Path) -> None:
    with send_request(web, session, encode_call("block", {"folder": str(home), "name": "told"}, "told")):
        wait_until((home / "began-told").exists)
        assert cancel_call(web, session, "told").status == 202

        wait_until((home / "stopped-told").exists)


@requirement("b:cancel:quiet")
def test_a_call_that_a_client_of_2025_cancels_gets_no_answer(
    web: WebServer, session: dict[str, str], home: Path
) -> None:
    body = encode_call("block", {"folder": str(home), "name": "quiet"}, "quiet")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(web.send_request, "POST", "/mcp", body, session)
        wait_until((home / "began-quiet").exists)
        assert cancel_call(web, session, "quiet").status == 202
        reply = waiting.result(WAIT_TIMEOUT_SECONDS)

    assert reply.status == 200
    assert b'"id"' not in reply.body


def test_the_calls_of_a_session_that_is_ended_end(web: WebServer, home: Path) -> None:
    ended_session = {**MCP_HEADERS, "mcp-session-id": open_mcp_session(web)["mcp-session-id"]}
    with send_request(web, ended_session, encode_call("block", {"folder": str(home), "name": "bye"})):
        wait_until((home / "began-bye").exists)
        assert web.send_request("DELETE", "/mcp", None, ended_session).status == 200

        wait_until((home / "stopped-bye").exists)


def cancel_call(web: WebServer, session: dict[str, str], request_id: str) -> HttpReply:
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": request_id},
    }
    return web.send_request("POST", "/mcp", json.dumps(message).encode(), session)
