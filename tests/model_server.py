"""A language model for tests: an OpenAI-compatible server that answers as it is told to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ModelServer:
    """What it was asked, and how it answers: a body to a body, with a reason to stop."""

    reply: Callable[[str], str] = lambda body: body
    finish: str = "stop"
    statuses: list[int] = field(default_factory=list)
    """Statuses for the next requests; after them it answers."""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        body = request["messages"][1]["content"].split("\n\n", 1)[1]
        return {
            "choices": [{"message": {"content": self.reply(body)}, "finish_reason": self.finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
        }


@contextmanager
def serving(model: ModelServer) -> Iterator[ModelServer]:
    """Serve it on this machine while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.asked.append(request)
            model.keys.append(self.headers.get("authorization", ""))
            status = model.statuses.pop(0) if model.statuses else 200
            said = json.dumps(model.answer(request) if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            for name, value in model.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
