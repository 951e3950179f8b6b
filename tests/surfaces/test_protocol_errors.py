"""Tests that every JSON-RPC error has its string code, on every wire that speaks JSON-RPC."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from tests.support.http_client import MCP_HEADERS, HttpReply, open_mcp_session, parse_events, run_web_server
from tests.support.mcp_client import ENVELOPE_META, ServerPeer, encode_legacy_frame, start_legacy_server, start_server
from tests.support.requirements import requirement

Exchange = Callable[[bytes], Any]
"""Send one body, and return the answer to it."""

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "assets")


def encode_request(method: str, params: Any = None, **fields: Any) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": method, "params": {} if params is None else params, **fields}
    ).encode()


MALFORMED_BODIES = [
    b"{",
    b"\xff",
    b"[]",
    b"7",
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b"[" * 5000,
    encode_request("ping", jsonrpc="1.0"),
    encode_request("ping", params=[]),
    encode_request("ping", id=None),
    encode_request("ping", id={}),
    json.dumps({"jsonrpc": "2.0", "id": 7, "method": 7}).encode(),
]
"""Bodies that no wire can accept."""

REFUSED_REQUESTS = [
    encode_request("no/such/method"),
    encode_request("tools/call", {"name": "no_such_tool"}),
    encode_request("tools/call", {"name": 7}),
    encode_request("tools/call", {"name": "get_schema", "arguments": []}),
    encode_request("tools/call", {"name": "get_schema", "arguments": {"nmae": "x"}}),
    encode_request("tools/list", {"cursor": "x"}),
    encode_request("initialize", {"protocolVersion": {}}),
]
"""Requests that MCP refuses with a JSON-RPC error."""


def exchange_frames(peer: ServerPeer, frame: bytes) -> Any:
    peer.send(frame + b"\n")
    return peer.receive()


@contextmanager
def open_mcp(home: Path) -> Iterator[Exchange]:
    with start_server(*SERVE_COMMAND, home=home) as peer:
        yield partial(exchange_frames, peer)


@contextmanager
def open_rpc(home: Path) -> Iterator[Exchange]:
    command = (*SERVE_COMMAND, "--wire", "rpc")
    with start_server(*command, home=home, ready=False, MCP_READY_FILE=str(home / "ready")) as peer:
        yield partial(exchange_frames, peer)


@contextmanager
def open_legacy(home: Path) -> Iterator[Exchange]:
    with start_legacy_server(*SERVE_COMMAND, "--wire", "legacy", home=home) as peer:
        yield lambda body: exchange_frames(peer, encode_legacy_frame(body))


@contextmanager
def open_http(home: Path) -> Iterator[Exchange]:
    with run_web_server(home=home) as web:
        session = {**MCP_HEADERS, "mcp-session-id": open_mcp_session(web)["mcp-session-id"]}
        yield lambda body: read_message(web.send_request("POST", "/mcp", body, session))


@contextmanager
def open_stateless_http(home: Path) -> Iterator[Exchange]:
    headers = {**MCP_HEADERS, "mcp-protocol-version": "2026-07-28"}
    with run_web_server(home=home) as web:

        def exchange(body: bytes) -> Any:
            try:
                message = json.loads(body)
                message["params"]["_meta"] = ENVELOPE_META
                names = {"mcp-method": message["method"], "mcp-name": str(message["params"].get("name", ""))}
                body = json.dumps(message).encode()
            except (ValueError, TypeError, KeyError, RecursionError):
                names = {}
            return read_message(web.send_request("POST", "/mcp", body, headers | names))

        yield exchange


def read_message(reply: HttpReply) -> Any:
    is_stream = reply.headers["content-type"].startswith("text/event-stream")
    return parse_events(reply.body.replace(b"\r\n", b"\n"))[-1][1] if is_stream else reply.json


@requirement("b:errors:protocol-has-code")
@pytest.mark.parametrize(
    ("open_wire", "bodies"),
    [
        (open_mcp, [*MALFORMED_BODIES, *REFUSED_REQUESTS]),
        (open_http, [*MALFORMED_BODIES, *REFUSED_REQUESTS]),
        (open_stateless_http, [*MALFORMED_BODIES, *REFUSED_REQUESTS]),
        (open_rpc, MALFORMED_BODIES),
        (open_legacy, [*MALFORMED_BODIES, encode_request("no/such/method")]),
    ],
)
def test_every_json_rpc_error_has_its_string_code(
    tmp_path: Path, open_wire: Callable[[Path], Any], bodies: list[bytes]
) -> None:
    with open_wire(tmp_path) as exchange:
        errors = [exchange(body)["error"] for body in bodies]

    assert {error["data"]["code"] for error in errors} <= set(ErrorCode.__members__)
