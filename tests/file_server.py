"""A real HTTP server for the tests of downloads: ranges, validators, redirects, and lies."""

import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Seen:
    """One request."""

    path: str
    headers: dict[str, str]


@dataclass
class Files:
    """What the server has, and how it behaves."""

    content: dict[str, bytes] = field(default_factory=dict)
    odd: "dict[str, Callable[[Handler], None]]" = field(default_factory=dict)
    """Paths with a behaviour of their own."""
    validators: bool = True
    seen: list[Seen] = field(default_factory=list)
    base: str = ""

    def url(self, path: str) -> str:
        return f"{self.base}{path}"

    def asked(self, name: str) -> list[str]:
        """A header of each request, empty where it was missing."""
        return [each.headers.get(name, "") for each in self.seen]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    files: Files
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.files.seen.append(Seen(self.path, headers))
        path = self.path.partition("?")[0]
        if path in self.files.odd:
            self.files.odd[path](self)
            return
        content = self.files.content.get(path)
        if content is None:
            self.reply(404)
            return
        self._serve(content, headers)

    def _serve(self, content: bytes, headers: dict[str, str]) -> None:
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        about = {"ETag": etag, "Accept-Ranges": "bytes"} if self.files.validators else {}
        if self.files.validators and headers.get("if-none-match") == etag:
            self.reply(304, b"", **about)
            return
        wanted = headers.get("range", "")
        if wanted and headers.get("if-range", etag) == etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.reply(416)
                return
            about["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.reply(206, content[start:], **about)
            return
        self.reply(200, content, **about)

    def reply(self, status: int, body: bytes = b"", **headers: Any) -> None:
        """Answer; a header that is given replaces the honest one."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        said = {"Content-Length": len(body), **named}
        self.send_response(status)
        for name, value in said.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        """Close the connection after what was said."""
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def serving(files: Files, tls: ssl.SSLContext | None = None) -> Iterator[Files]:
    """A server on a free port, until the block is left."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"files": files}))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    files.base = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    try:
        yield files
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
