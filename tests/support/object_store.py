"""A fake object store with the part of S3's REST interface that is used here.

Requests must be signed; the signature itself is not checked, because the client library makes it.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PROGRAM_VARIABLE = "CLEATS_TEST_S3_PROGRAM"
"""The environment variable with the program of a real S3 server, which is then used in place of the fake."""


@dataclass
class ObservedBucket:
    """A bucket, and the requests that were made."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    denies_access: bool = False
    base: str = ""

    @property
    def objects(self) -> dict[str, bytes]:
        """The objects by key."""
        raise NotImplementedError

    def list_put_keys(self) -> list[str]:
        return [key for method, key in self.requests if method == "PUT"]


@dataclass
class FakeBucket(ObservedBucket):
    """A bucket in memory."""

    contents: dict[str, bytes] = field(default_factory=dict)

    @property
    def objects(self) -> dict[str, bytes]:
        return self.contents


class _BucketHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: FakeBucket

    def log_message(self, *_args: Any) -> None:
        pass

    def _handle_request(self) -> None:
        bucket = self.bucket
        _, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        request_body = self.rfile.read(int(self.headers.get("content-length", 0)))
        bucket.requests.append((self.command, key))
        if bucket.denies_access or "AWS4-HMAC-SHA256" not in self.headers.get("authorization", ""):
            return self._send_reply(403, b"<Error><Code>AccessDenied</Code></Error>")
        match self.command:
            case "PUT":
                bucket.objects[key] = request_body
                return self._send_reply(200, b"", etag=request_body)
            case "POST":  # deletes many at once; missing objects count as deleted
                keys = re.findall(rb"<Key>(.*?)</Key>", request_body)
                for object_key in keys:
                    bucket.objects.pop(object_key.decode(), None)
                deleted = b"".join(b"<Deleted><Key>%s</Key></Deleted>" % object_key for object_key in keys)
                return self._send_reply(200, b"<DeleteResult>%s</DeleteResult>" % deleted)
        content = bucket.objects.get(key)
        if content is None:
            return self._send_reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self._send_reply(200, content, etag=content)

    do_GET = do_PUT = do_HEAD = do_POST = _handle_request  # noqa: N815 - the names the library calls

    def _send_reply(self, status: int, body: bytes, etag: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", f'"{hashlib.md5(etag).hexdigest()}"')
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def run_object_store() -> Iterator[ObservedBucket]:
    """Run a store with one bucket: a fake one, or a real one if the environment says so."""
    program = os.environ.get(PROGRAM_VARIABLE)
    if program:
        from tests.engines.s3_server import relay_bucket, run_s3_server  # noqa: PLC0415 - for real servers only

        with run_s3_server(Path(program)) as server, relay_bucket(server) as relayed:
            yield relayed
        return
    bucket = FakeBucket()
    handler = type("Handler", (_BucketHandler,), {"bucket": bucket})
    with serve_requests(handler) as bucket.base:
        yield bucket


@contextmanager
def serve_requests(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve HTTP on a port of this machine until the block is left; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
