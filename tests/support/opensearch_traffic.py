"""The requests to an OpenSearch cluster under test: recorded, and answered by faults that a test injects."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class OpenSearchError(Exception):
    """An error that OpenSearch answers a request with, usually with status 400."""

    def __init__(self, kind: str, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.status = kind, reason, status


@dataclass
class ClusterRequest:
    """One request to the cluster."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        if not self.body.endswith(b"\n"):
            raise OpenSearchError("illegal_argument_exception", "must be terminated by a newline [\\n]")
        return [json.loads(line) for line in self.body.splitlines()]


ClusterFault = Callable[[ClusterRequest], tuple[int, Any] | None]
"""A function that answers a request in place of the cluster; None passes it on, status 0 hangs
up."""


@dataclass
class ObservedOpenSearch:
    """A cluster behind a port that records requests and injects faults."""

    requests: list[ClusterRequest] = field(default_factory=list)
    faults: list[ClusterFault] = field(default_factory=list)
    required_authorization: str = ""
    """The authorization header that every request must have; empty accepts all."""
    rejected_documents: int = 0
    """The number of documents in the next requests that are rejected because the queue is full."""
    base: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def route(self, request: ClusterRequest) -> tuple[int, Any]:
        """Return what the cluster answers.

        Raises:
            OpenSearchError: The cluster rejects the request.
        """
        raise NotImplementedError

    def answer_request(self, request: ClusterRequest) -> tuple[int, Any]:
        """Return the status and the body of the answer to a request."""
        self.requests.append(request)
        for fault in self.faults:
            if (reply := fault(request)) is not None:
                return reply
        if self.required_authorization and request.headers.get("authorization") != self.required_authorization:
            return 401, {"error": "Unauthorized", "status": 401}
        try:
            if self.rejected_documents and request.path.endswith("/_bulk"):
                return self._reject_documents(request)
            return self.route(request)
        except OpenSearchError as error:
            return error.status, format_error(error)

    def _reject_documents(self, request: ClusterRequest) -> tuple[int, Any]:
        lines = request.body.splitlines(keepends=True)
        count = min(self.rejected_documents, len(lines) // 2)
        self.rejected_documents -= count
        error = OpenSearchError("rejected_execution_exception", "the queue is full", 429)
        cause = {"type": error.kind, "reason": error.reason}
        identifiers = [json.loads(line)["index"]["_id"] for line in lines[: 2 * count : 2]]
        rejected = [{"index": {"_id": name, "status": 429, "error": cause}} for name in identifiers]
        rest = b"".join(lines[2 * count :])
        accepted: list[Any] = []
        if rest:
            passed_on = ClusterRequest(request.method, request.path, request.query, request.headers, rest)
            _, answer = self.route(passed_on)
            accepted = answer["items"]
        return 200, {"errors": True, "items": [*rejected, *accepted]}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the cluster's answer to a request of the test, which is not recorded and meets no fault."""
        data = b"" if body is None else json.dumps(body).encode()
        status, answer = self.route(ClusterRequest(method, path, {}, {}, data))
        assert status < 300, answer
        return answer

    @property
    def index_names(self) -> list[str]:
        """The names of all indexes, sorted."""
        return sorted(self.ask("GET", "/cleats-*"))

    def list_aliases(self, index: str) -> set[str]:
        """Return the aliases of an index."""
        return set(self.ask("GET", f"/{index}")[index]["aliases"])

    def read_meta(self, index: str) -> dict[str, Any]:
        """Return the metadata that Cleats keeps in an index."""
        meta: dict[str, Any] = self.ask("GET", f"/{index}")[index]["mappings"]["_meta"]["cleats"]
        return meta

    def write_meta(self, index: str, **changed: Any) -> None:
        """Change the metadata of an index."""
        meta = {**self.read_meta(index), **changed}
        self.ask("PUT", f"/{index}/_mapping", {"_meta": {"cleats": meta}})

    def remove_index(self, index: str) -> None:
        """Remove an index."""
        self.ask("DELETE", f"/{index}")


def format_error(error: OpenSearchError) -> dict[str, Any]:
    """Format an error as OpenSearch does."""
    cause = {"type": error.kind, "reason": error.reason}
    return {"error": {"root_cause": [cause], **cause}, "status": error.status}


def encode_basic_auth(user: str, password: str) -> str:
    """Encode a user name and a password as an authorization header."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def filter_fields(value: Any, patterns: list[str]) -> Any:
    """Return the fields of an object that match paths with wildcards."""
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        rest = [pattern.partition(".")[2] for pattern in patterns if fnmatchcase(name, pattern.partition(".")[0])]
        if "" in rest:
            result[name] = item
        elif rest and (inner := filter_fields(item, rest)) not in ({}, None):
            result[name] = inner
    return result


class _ClusterHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: ObservedOpenSearch

    def log_message(self, *_args: Any) -> None:
        pass

    def _handle_request(self) -> None:
        url = urlsplit(self.path)
        request_body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        request = ClusterRequest(self.command, unquote(url.path), query, headers, request_body)
        with self.cluster.lock:
            status, body = self.cluster.answer_request(request)
        if not status:
            self.close_connection = True
            return
        data = json.dumps(body).encode()
        with suppress(ConnectionError):  # a caller that was killed or gave up
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            if 300 <= status < 400:
                self.send_header("location", f"{self.cluster.base}/elsewhere")
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _handle_request  # noqa: N815 - the names the library calls


@contextmanager
def serve_cluster(cluster: ObservedOpenSearch) -> Iterator[None]:
    """Serve a cluster on a port of this machine until the block is left."""
    handler = type("Handler", (_ClusterHandler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    cluster.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
