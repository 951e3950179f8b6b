"""The scripted model: an HTTP server on this machine that makes a client call one tool after another.

It is also the proxy of the client, and refuses to pass anything on. So a client that asks for
another host is seen, and stays on this machine.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conformance.clients.wires import MODEL_NAME, MODEL_WIRES, ModelReply, ModelRequest, is_streaming

MODEL_LIST = {
    "object": "list",
    "data": [{"id": MODEL_NAME, "object": "model", "created": 1, "owned_by": "conformance"}],
    "models": [],
}
TOKEN_COUNTS = {"input_tokens": 10, "totalTokens": 10}


@dataclass(slots=True)
class ScriptedModel:
    """The server's state: what decides a reply, and what was asked."""

    choose_reply: Callable[[ModelRequest], ModelReply]
    log: Path
    """The folder for the bodies of all requests."""

    url: str = ""
    foreign_hosts: set[str] = field(default_factory=set)
    """Other hosts that the client asked for."""

    unknown_paths: set[str] = field(default_factory=set)
    request_count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, path: str, body: Any) -> None:
        """Keep a request for debugging."""
        self.request_count += 1
        record = json.dumps({"path": path, "body": body}, indent=1, ensure_ascii=False)
        (self.log / f"{self.request_count:03}.json").write_text(record, "utf-8")


@contextmanager
def serve_model(model: ScriptedModel) -> Iterator[ScriptedModel]:
    """Serve the model until the block is left."""
    model.log.mkdir(parents=True, exist_ok=True)

    class Handler(_ModelHandler):
        served_model = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


class _ModelHandler(BaseHTTPRequestHandler):
    served_model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self) -> None:
        self._refuse_host(self.path)

    def do_GET(self) -> None:
        self._answer_other()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"null")
        except ValueError:
            body = None
        path = urlsplit(self.path).path
        wire = next((wire for wire in MODEL_WIRES if wire.matches(path)), None)
        if wire is None or not isinstance(body, dict) or self._is_foreign():
            self._answer_other()
            return
        with self.served_model.lock:
            self.served_model.record(self.path, body)
            reply = self.served_model.choose_reply(wire.read_request(body))
        if is_streaming(path, body):
            events = b"".join(event.encode() for event in wire.build_events(reply))
            self._send(200, events, "text/event-stream")
        else:
            self._send_json(200, wire.build_body(reply))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Write nothing: the requests themselves are kept."""

    def _answer_other(self) -> None:
        path = urlsplit(self.path).path
        if self._is_foreign():
            self._refuse_host(urlsplit(self.path).netloc)
        elif path.endswith("/models"):
            self._send_json(200, MODEL_LIST)
        elif path.endswith(("/count_tokens", ":countTokens")):
            self._send_json(200, TOKEN_COUNTS)
        else:
            self.served_model.unknown_paths.add(path)
            self._send_json(404, {"error": {"message": "not here", "type": "not_found_error"}})

    def _is_foreign(self) -> bool:
        return self.path.startswith("http") and urlsplit(self.path).hostname != "127.0.0.1"

    def _refuse_host(self, host: str) -> None:
        self.served_model.foreign_hosts.add(host)
        self.close_connection = True
        self._send_json(403, {"error": "only this machine"})

    def _send_json(self, status: int, body: Any) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
