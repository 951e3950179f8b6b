"""A real HTTP server in a separate process, and a client that waits with a timeout."""

import http.client
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.mcp_client import INITIALIZE_PARAMS, WAIT_TIMEOUT_SECONDS
from tests.support.paths import REPOSITORY_ROOT

PROBES_COMMAND = (sys.executable, "-m", "tests.support.servers.surfaces", "http")
CLEATS_COMMAND = (sys.executable, "-m", "cleats", "http", "--port", "0", "--json")
JSON_HEADERS = {"content-type": "application/json"}
MCP_HEADERS = {"accept": "application/json, text/event-stream", **JSON_HEADERS}


@dataclass
class HttpReply:
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The error in the envelope, after checks that hold for every error."""
        assert self.headers["content-type"] == "application/json"
        assert self.json.keys() == {"ok", "error", "_meta"}
        assert self.json["ok"] is False
        assert self.json["_meta"].keys() >= {"schemaVersion", "toolingVersion", "ts"}
        assert self.json["error"].keys() == {"code", "message", "details"}
        return self.json["error"]

    @property
    def result(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        assert self.json.keys() == {"ok", "result", "_meta"}, self.json
        assert self.json["ok"] is True
        assert self.json["_meta"].keys() >= {"schemaVersion", "toolingVersion", "ts"}
        return self.json["result"]


class WebServer:
    """One server process and a client of it."""

    def __init__(self, process: "subprocess.Popen[bytes]", startup_info: Any, log: Path) -> None:
        self.process = process
        self.startup_info = startup_info
        self.host, port = startup_info["baseUrl"].removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self._log = log

    @property
    def url(self) -> str:
        return str(self.startup_info["baseUrl"])

    @property
    def stderr(self) -> str:
        return self._log.read_text()

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), WAIT_TIMEOUT_SECONDS)

    def send_request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> HttpReply:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=WAIT_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            return HttpReply(response.status, response_headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> HttpReply:
        return self.send_request("GET", path, None, _format_header_names(headers))

    def post(self, path: str, value: Any, **headers: str) -> HttpReply:
        return self.send_request(
            "POST", path, json.dumps(value).encode(), {**JSON_HEADERS, **_format_header_names(headers)}
        )

    def call_tool(self, tool: str, /, **arguments: Any) -> HttpReply:
        return self.post(f"/tools/{tool}", arguments)

    def read_events(self, method: str, path: str, value: Any = None) -> list[tuple[str, Any]]:
        """Return every event of a stream that ends."""
        body = None if value is None else json.dumps(value).encode()
        reply = self.send_request(method, path, body, JSON_HEADERS)
        assert reply.status == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        return parse_events(reply.body)

    @contextmanager
    def stream_events(self, path: str, value: Any) -> Iterator[Iterator[tuple[str, Any]]]:
        """Yield the events of a stream as they arrive; leaving the block hangs up."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=WAIT_TIMEOUT_SECONDS)
        try:
            connection.request("POST", path, json.dumps(value).encode(), JSON_HEADERS)
            response = connection.getresponse()
            assert response.status == 200
            yield _read_events(response)
        finally:
            connection.close()

    def exchange_bytes(self, data: bytes) -> bytes:
        """Send bytes and read until the server closes the connection."""
        with self.connect() as link:
            link.sendall(data)
            return b"".join(iter(lambda: link.recv(65536), b""))

    def wait_for_exit(self) -> int:
        return self.process.wait(WAIT_TIMEOUT_SECONDS)


def _format_header_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def parse_events(body: bytes) -> list[tuple[str, Any]]:
    events = []
    for block in body.decode().split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def _read_events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    block = b""
    while line := response.readline():
        block += line
        if block.endswith(b"\n\n"):
            yield from parse_events(block)
            block = b""


def open_mcp_session(web: WebServer, version: str = "2025-11-25") -> dict[str, str]:
    """Open a session at `/mcp`; return the headers of the answer and its protocol version."""
    params = {**INITIALIZE_PARAMS, "protocolVersion": version}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    reply = web.send_request("POST", "/mcp", json.dumps(message).encode(), MCP_HEADERS)
    assert reply.status == 200
    [(_, answer)] = [event for event in parse_events(reply.body.replace(b"\r", b"")) if event[1]]
    return {**reply.headers, "version": answer["result"]["protocolVersion"]}


@contextmanager
def run_web_server(*command: str, home: Path, **environ: str) -> Iterator[WebServer]:
    """Run a server in a home of its own; it is killed if the test leaves it running."""
    inherited_environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLEATS_", "PAIROFCLEATS_", "XDG_", "SYN_", "OTEL_"))
    }
    log = home / "stderr.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command or PROBES_COMMAND,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**inherited_environ, "HOME": str(home), "PYTHONPATH": str(REPOSITORY_ROOT), **environ},
            cwd=home,
        )
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], WAIT_TIMEOUT_SECONDS)[0], log.read_text()
        line = process.stdout.readline()
        assert line, log.read_text()
        yield WebServer(process, json.loads(line), log)
    finally:
        process.kill()
        process.wait(WAIT_TIMEOUT_SECONDS)
        process.stdout.close()
