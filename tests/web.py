"""A real HTTP server in a process of its own, and a client that waits with a limit."""

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

from tests.peer import INITIALIZE, LIMIT, ROOT

PROBES = (sys.executable, "-m", "tests.servers.surfaces", "http")
CLEATS = (sys.executable, "-m", "cleats", "http", "--port", "0", "--json")
JSON = {"content-type": "application/json"}
MCP_ACCEPT = {"accept": "application/json, text/event-stream", **JSON}


@dataclass
class Reply:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The error of the envelope, checked against what holds for every one."""
        assert self.headers["content-type"] == "application/json"
        assert self.json.keys() == {"ok", "error", "_meta"}
        assert self.json["ok"] is False
        assert self.json["_meta"].keys() >= {"schemaVersion", "toolingVersion", "ts"}
        return self.json["error"]

    @property
    def result(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        assert self.json.keys() == {"ok", "result", "_meta"}, self.json
        assert self.json["ok"] is True
        assert self.json["_meta"].keys() >= {"schemaVersion", "toolingVersion", "ts"}
        return self.json["result"]


class Web:
    """One server process and how to reach it."""

    def __init__(self, process: "subprocess.Popen[bytes]", started: Any, log: Path) -> None:
        self.process = process
        self.started = started
        self.host, port = started["baseUrl"].removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self._log = log

    @property
    def url(self) -> str:
        return str(self.started["baseUrl"])

    @property
    def stderr(self) -> str:
        return self._log.read_text()

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), LIMIT)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Reply:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, None, _named(headers))

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        return self.ask("POST", path, json.dumps(value).encode(), {**JSON, **_named(headers)})

    def call(self, tool: str, /, **arguments: Any) -> Reply:
        return self.post(f"/tools/{tool}", arguments)

    def events(self, method: str, path: str, value: Any = None) -> list[tuple[str, Any]]:
        """Every event of a stream that ends."""
        body = None if value is None else json.dumps(value).encode()
        reply = self.ask(method, path, body, JSON)
        assert reply.status == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        return parsed(reply.body)

    @contextmanager
    def streaming(self, path: str, value: Any) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of a stream as they come; leaving the block hangs up."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        try:
            connection.request("POST", path, json.dumps(value).encode(), JSON)
            answer = connection.getresponse()
            assert answer.status == 200
            yield _read(answer)
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes and read until the server closes."""
        with self.connect() as link:
            link.sendall(data)
            return b"".join(iter(lambda: link.recv(65536), b""))

    def wait(self) -> int:
        return self.process.wait(LIMIT)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def parsed(body: bytes) -> list[tuple[str, Any]]:
    found = []
    for block in body.decode().split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def _read(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    block = b""
    while line := answer.readline():
        block += line
        if block.endswith(b"\n\n"):
            yield from parsed(block)
            block = b""


def handshake(web: Web, version: str = "2025-11-25") -> dict[str, str]:
    """Open a session at `/mcp`: the headers of the answer, and the version it says."""
    params = {**INITIALIZE, "protocolVersion": version}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    reply = web.ask("POST", "/mcp", json.dumps(message).encode(), MCP_ACCEPT)
    assert reply.status == 200
    [(_, answer)] = [each for each in parsed(reply.body.replace(b"\r", b"")) if each[1]]
    return {**reply.headers, "version": answer["result"]["protocolVersion"]}


@contextmanager
def serving(*command: str, home: Path, **environ: str) -> Iterator[Web]:
    """A server in a home of its own; killed if the test leaves it running."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLEATS_", "PAIROFCLEATS_", "XDG_", "SYN_", "OTEL_"))
    }
    log = home / "stderr.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command or PROBES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**clean, "HOME": str(home), "PYTHONPATH": str(ROOT), **environ},
            cwd=home,
        )
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], LIMIT)[0], log.read_text()
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Web(process, json.loads(line), log)
    finally:
        process.kill()
        process.wait(LIMIT)
        process.stdout.close()
