"""A real S3 server on this machine, built from its Go module, and a port before it that fails when a test says so."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.engines.opensearch_nodes import InstallError
from tests.engines.ports import find_free_ports
from tests.support.object_store import ObservedBucket, serve_requests
from tests.support.waiting import wait_until

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
BUILD_TIMEOUT_SECONDS = 900
START_TIMEOUT_SECONDS = 60
BUCKET = "team"
ACCESS_KEY, SECRET_KEY, REGION = "key", "secret", "eu-central-1"


def install_s3_server(folder: Path) -> Path:
    """Build the server into a folder and return its program.

    Raises:
        InstallError: Go failed.
    """
    environ = {**os.environ, "GOBIN": str(folder)}
    try:
        completed = subprocess.run(
            ["go", "install", MODULE],
            env=environ,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"go did not finish in {BUILD_TIMEOUT_SECONDS} s") from None
    if completed.returncode:
        raise InstallError(f"go install failed: {completed.stderr[-300:]}")
    return folder / "versitygw"


@dataclass
class S3Server:
    """A server whose objects are files of a folder."""

    program: Path
    folder: Path
    port: int
    host: str = "127.0.0.1"
    secret: str = SECRET_KEY
    process: subprocess.Popen[bytes] | None = None

    @property
    def argv(self) -> list[str]:
        argv = [str(self.program), "--port", f"{self.host}:{self.port}", "--region", REGION, "--quiet"]
        return [*argv, "posix", "--sidecar", str(self.folder / "meta"), str(self.folder / "data")]

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": self.secret}

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        with (self.folder / "output.log").open("ab") as output:
            self.process = subprocess.Popen(self.argv, env=self.environ, stdout=output, stderr=output)
        wait_until(self._accepts_connections, limit=START_TIMEOUT_SECONDS)

    def _accepts_connections(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "output.log").read_text()
        with closing(HTTPConnection(self.host, self.port)) as connection:
            try:
                connection.connect()
            except OSError:
                return False
        return True

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(START_TIMEOUT_SECONDS)
            self.process = None


@contextmanager
def run_s3_server(program: Path) -> Iterator[S3Server]:
    """Run a server with one empty bucket until the block is left."""
    folder = Path(mkdtemp(prefix="cleats-s3-"))
    (folder / "data" / BUCKET).mkdir(parents=True)
    (folder / "meta").mkdir()
    server = S3Server(program, folder, find_free_ports(1)[0])
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class StoreRequest:
    """One request to the store; a fault may change its headers."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


StoreFault = Callable[[StoreRequest], bool]
"""A function that sees a request before the server does; if it returns true, the connection is cut."""


@dataclass
class RelayedBucket(ObservedBucket):
    """The bucket of a real server behind a port that records requests and injects faults."""

    folder: Path = field(default_factory=Path)
    faults: list[StoreFault] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    """The path and query of every request."""
    cuts_responses: bool = False
    """Cut the connection in the middle of every response."""

    @property
    def objects(self) -> dict[str, bytes]:
        """The objects by key."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".sgwtmp" not in path.parts]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files}


class _RelayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: RelayedBucket
    server_port: int

    def log_message(self, *_args: Any) -> None:
        pass

    def _handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = StoreRequest(self.command, self.path, dict(self.headers.items()), body)
        bucket = self.bucket
        _, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        bucket.requests.append((self.command, key))
        bucket.targets.append(self.path)
        if any(fault(request) for fault in bucket.faults):
            self.close_connection = True
            return
        if bucket.denies_access:
            request.headers = {
                name: value for name, value in request.headers.items() if name.lower() != "authorization"
            }
        with closing(HTTPConnection("127.0.0.1", self.server_port, timeout=60)) as connection:
            try:
                connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
                for name, value in request.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(request.body or None)
                response = connection.getresponse()
                self._send_reply(response, response.read())
            except OSError:
                self.close_connection = True

    def _send_reply(self, response: HTTPResponse, body: bytes) -> None:
        self.send_response(response.status)
        skipped = {"connection", "transfer-encoding", "date", "server", "content-length"}
        for name, value in response.getheaders():
            if name.lower() not in skipped:
                self.send_header(name, value)
        length = response.getheader("content-length") if self.command == "HEAD" else str(len(body))
        self.send_header("content-length", length or "0")
        self.end_headers()
        if self.bucket.cuts_responses and body:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle_request  # noqa: N815 - the names the library calls


@contextmanager
def relay_bucket(server: S3Server) -> Iterator[RelayedBucket]:
    """Serve the bucket of a server on another port until the block is left."""
    bucket = RelayedBucket(folder=server.folder / "data" / BUCKET)
    attributes: Mapping[str, Any] = {"bucket": bucket, "server_port": server.port}
    with serve_requests(type("Handler", (_RelayHandler,), dict(attributes))) as bucket.base:
        yield bucket
