"""MCP messages at `/mcp`: those that are none, and clients that leave in the middle of a call."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.peer import ENVELOPE, LIMIT
from tests.waiting import until
from tests.web import MCP_ACCEPT, Reply, Web, handshake, serving

MODERN = {**MCP_ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def web(home: Path) -> Iterator[Web]:
    with serving(home=home) as server:
        yield server


@pytest.fixture(scope="module")
def session(web: Web) -> dict[str, str]:
    """The headers of a client of 2025 that has shaken hands."""
    headers = {
        **MCP_ACCEPT,
        "mcp-session-id": handshake(web)["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert web.ask("POST", "/mcp", json.dumps(ready).encode(), headers).status == 202
    return headers


NUMBERS = count(1000)


def calling(tool: str, arguments: dict[str, Any], request_id: Any = None, **more: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, **more}
    number = next(NUMBERS) if request_id is None else request_id
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def began(home: Path, name: str) -> bool:
    """Whether a call of `hold` runs."""
    order = home / "order"
    return order.exists() and f"began {name}\n" in order.read_text()


# What is no message


@pytest.mark.parametrize(
    ("body", "answer", "said"),
    [
        (b"{", (-32700, None), "truncated"),
        (rb'{"jsonrpc":"2.0","id":7,"method":"\ud800"}', (-32700, None), r"surrogate \ud800 (byte"),
        (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', (-32700, None), "invalid UTF-8 (byte 34)"),
        (calling("echo", {"text": float("nan")}), (-32700, None), "invalid character"),
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
    web: Web, session: dict[str, str], body: bytes, answer: tuple[int, object], said: str
) -> None:
    for headers in (session, MODERN, MCP_ACCEPT):
        reply = web.ask("POST", "/mcp", body, headers)

        error = reply.json["error"]
        assert (reply.status, (error["code"], reply.json["id"])) == (400, answer)
        assert said in error["message"]
        assert error["data"] == {"code": "INVALID_REQUEST"}
    assert web.ask("POST", "/mcp", calling("echo", {"text": "x"}), session).status == 200


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", MCP_ACCEPT, 400),  # no session
        ("POST", {**MCP_ACCEPT, "mcp-session-id": "unheard-of"}, 404),
        ("POST", {"content-type": "application/json"}, 406),
        ("POST", MODERN, 400),  # no envelope
        ("PUT", MCP_ACCEPT, 405),
    ],
)
def test_an_error_that_the_sdk_itself_answers_has_a_string_code_too(
    web: Web, method: str, headers: dict[str, str], status: int
) -> None:
    reply = web.ask(method, "/mcp", b'{"jsonrpc":"2.0","id":7,"method":"ping"}', headers)

    assert reply.status == status
    assert reply.json["error"]["data"]["code"] == "INVALID_REQUEST"


def test_an_id_that_is_in_use_is_refused_and_its_first_request_answered(
    web: Web, session: dict[str, str], home: Path
) -> None:
    with ThreadPoolExecutor() as pool:
        held = calling("hold", {"folder": str(home), "name": "first"}, 77)
        first = pool.submit(web.ask, "POST", "/mcp", held, session)
        until(lambda: began(home, "first"))
        for again in (77, "77"):
            reply = web.ask("POST", "/mcp", calling("echo", {"text": "x"}, again), session)

            assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
            assert reply.json["id"] == again
            assert "still running" in reply.json["error"]["message"]
        (home / "go-first").touch()

        assert b'"isError":false' in first.result(LIMIT).body


# A client that leaves


@contextmanager
def left_running(web: Web, headers: dict[str, str], body: bytes) -> Iterator[None]:
    """A request that is sent and not waited for; leaving the block hangs up."""
    lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
    with web.connect() as link:
        link.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n%b"
            % (lines, len(body), body)
        )
        yield


def test_a_client_of_2026_that_disconnects_cancels_its_call(web: Web, home: Path) -> None:
    body = calling("block", {"folder": str(home), "name": "modern"}, _meta=ENVELOPE)
    with left_running(web, {**MODERN, "mcp-name": "block"}, body):
        until((home / "began-modern").exists)

    until((home / "stopped-modern").exists)


def test_a_client_of_2025_that_disconnects_leaves_its_call_running(
    web: Web, session: dict[str, str], home: Path
) -> None:
    body = calling("hold", {"folder": str(home), "name": "on"}, "held-on")
    with left_running(web, session, body):
        until(lambda: began(home, "on"))
    for _ in range(3):
        assert web.ask("POST", "/mcp", calling("echo", {"text": "x"}), session).status == 200
    (home / "go-on").touch()

    until(lambda: "id=held-on tool=hold outcome=Done" in web.stderr)


def test_a_client_of_2025_cancels_by_a_notification(
    web: Web, session: dict[str, str], home: Path
) -> None:
    with left_running(
        web, session, calling("block", {"folder": str(home), "name": "told"}, "told")
    ):
        until((home / "began-told").exists)
        assert cancelled(web, session, "told").status == 202

        until((home / "stopped-told").exists)


def test_the_calls_of_a_session_that_is_ended_end(web: Web, home: Path) -> None:
    own = {**MCP_ACCEPT, "mcp-session-id": handshake(web)["mcp-session-id"]}
    with left_running(web, own, calling("block", {"folder": str(home), "name": "bye"})):
        until((home / "began-bye").exists)
        assert web.ask("DELETE", "/mcp", None, own).status == 200

        until((home / "stopped-bye").exists)


def cancelled(web: Web, session: dict[str, str], request_id: str) -> Reply:
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": request_id},
    }
    return web.ask("POST", "/mcp", json.dumps(message).encode(), session)
