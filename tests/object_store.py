"""An object store as far as S3's REST interface goes for us: objects put, read, asked for, removed.

Requests must be signed; what is signed is not checked here, the client library is not ours.
"""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Bucket:
    """The objects, and what was asked."""

    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    broken: bool = False
    base: str = ""

    def puts(self) -> list[str]:
        return [key for method, key in self.asked if method == "PUT"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *_args: Any) -> None:
        pass

    def _any(self) -> None:
        bucket = self.bucket
        _, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        bucket.asked.append((self.command, key))
        if bucket.broken or "AWS4-HMAC-SHA256" not in self.headers.get("authorization", ""):
            return self._reply(403, b"<Error><Code>AccessDenied</Code></Error>")
        match self.command:
            case "PUT":
                bucket.objects[key] = sent
                return self._reply(200, b"", etag=sent)
            case "POST":  # many removed at once; those that are not there count as removed
                keys = re.findall(rb"<Key>(.*?)</Key>", sent)
                for each in keys:
                    bucket.objects.pop(each.decode(), None)
                gone = b"".join(b"<Deleted><Key>%s</Key></Deleted>" % each for each in keys)
                return self._reply(200, b"<DeleteResult>%s</DeleteResult>" % gone)
        found = bucket.objects.get(key)
        if found is None:
            return self._reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self._reply(200, found, etag=found)

    do_GET = do_PUT = do_HEAD = do_POST = _any  # noqa: N815 - the names the library calls

    def _reply(self, status: int, body: bytes, etag: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", f'"{hashlib.md5(etag).hexdigest()}"')
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def object_store() -> Iterator[Bucket]:
    """A store with one bucket, whatever it is called."""
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    bucket.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
