"""A fake language model: an OpenAI-compatible server with scripted answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ModelServer:
    """The requests received, and the answers: a body for a body, with a finish reason."""

    reply: Callable[[str], str] = lambda body: body
    finish_reason: str = "stop"
    statuses: list[int] = field(default_factory=list)
    """Statuses for the next requests; after them the server answers."""
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""

    def answer_request(self, request: dict[str, Any]) -> dict[str, Any]:
        body = request["messages"][1]["content"].split("\n\n", 1)[1]
        return {
            "choices": [{"message": {"content": self.reply(body)}, "finish_reason": self.finish_reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
        }


@contextmanager
def serve_model(model: ModelServer) -> Iterator[ModelServer]:
    """Serve the model on this machine until the block is left."""

    class ModelHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.requests.append(request)
            model.keys.append(self.headers.get("authorization", ""))
            status = model.statuses.pop(0) if model.statuses else 200
            payload = json.dumps(model.answer_request(request) if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            for name, value in model.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ModelHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
