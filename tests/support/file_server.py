"""A real HTTP server for the tests of downloads: ranges, validators, redirects, wrong answers."""

import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FileRequest:
    """One request that the server received."""

    path: str
    headers: dict[str, str]


@dataclass
class ServedFiles:
    """The contents of the server, and its behaviour."""

    content: dict[str, bytes] = field(default_factory=dict)
    special_handlers: "dict[str, Callable[[FileRequestHandler], None]]" = field(default_factory=dict)
    """Handlers for paths that are not answered in the usual way."""
    validators: bool = True
    requests: list[FileRequest] = field(default_factory=list)
    base: str = ""

    def build_url(self, path: str) -> str:
        return f"{self.base}{path}"

    def list_header_values(self, name: str) -> list[str]:
        """Return one header of every request, empty where it was missing."""
        return [request.headers.get(name, "") for request in self.requests]


class FileRequestHandler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    files: ServedFiles
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.files.requests.append(FileRequest(self.path, headers))
        path = self.path.partition("?")[0]
        if path in self.files.special_handlers:
            self.files.special_handlers[path](self)
            return
        content = self.files.content.get(path)
        if content is None:
            self.send_reply(404)
            return
        self._serve_content(content, headers)

    def _serve_content(self, content: bytes, headers: dict[str, str]) -> None:
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        validator_headers = {"ETag": etag, "Accept-Ranges": "bytes"} if self.files.validators else {}
        if self.files.validators and headers.get("if-none-match") == etag:
            self.send_reply(304, b"", **validator_headers)
            return
        range_header = headers.get("range", "")
        if range_header and headers.get("if-range", etag) == etag:
            start = int(range_header.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_reply(416)
                return
            validator_headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.send_reply(206, content[start:], **validator_headers)
            return
        self.send_reply(200, content, **validator_headers)

    def send_reply(self, status: int, body: bytes = b"", **headers: Any) -> None:
        """Send a reply; a header passed here replaces the correct one."""
        header_overrides = {name.replace("_", "-"): value for name, value in headers.items()}
        reply_headers = {"Content-Length": len(body), **header_overrides}
        self.send_response(status)
        for name, value in reply_headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        """Close the connection after the bytes written so far."""
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def serve_files(files: ServedFiles, tls: ssl.SSLContext | None = None) -> Iterator[ServedFiles]:
    """Run a server on a free port until the block is left."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (FileRequestHandler,), {"files": files}))
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
