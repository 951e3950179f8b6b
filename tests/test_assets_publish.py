"""Publishing, against a real HTTP server that behaves, misbehaves or is not there."""

import asyncio
import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cleats.settings import SettingError, Settings
from cleats.toolsets.assets import backend
from tests.assets_world import SHOWCASE, WIRES, Client, Wire, client, failed
from tests.peer import started
from tests.requirements import requirement

TONE = {
    "$schemaRef": "jsonschema/tone.schema.json",
    "name": "lead",
    "waveform": "sine",
    "frequency": 440,
}

Respond = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


@dataclass
class Server:
    """What was posted, and what is answered."""

    respond: Respond
    url: str = ""
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(respond: Respond) -> Iterator[Server]:
    server = Server(respond)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append((self.path, headers, body))
            with suppress(OSError):
                server.respond(self)

        do_GET = do_POST  # noqa: N815 - the library's name

        def log_message(self, *_args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_args: object) -> None:
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()


PATIENT = (
    "from cleats.toolsets.assets import backend; from cleats.__main__ import main; "
    "backend.TIMEOUT = 80.0; main()"
)
"""`cleats` with a backend that may be as busy as the machine that runs the tests."""


@contextmanager
def publisher(wire: Wire, home: Path, url: str, **environ: str) -> Iterator[Client]:
    settings = {
        "SYN_SCHEMAS_DIR": str(SHOWCASE),
        "SYN_BACKEND_URL": url,
        "MCP_READY_FILE": str(home / "ready"),
        "CLEATS_TIMEOUTS": "populate_backend=80",
        **environ,
    }
    words = (sys.executable, "-c", PATIENT, "serve", "assets", "--wire", wire)
    with started(*words, home=home, ready=wire == "mcp", **settings) as peer:
        yield Client(peer, wire)


OK = answer(201, b'{"id": 7}')


@requirement("d:populate", "d:backend:path", "d:guard:validated-first")
@pytest.mark.parametrize("wire", WIRES)
def test_a_valid_asset_is_posted_as_it_is_and_its_id_answered(tmp_path: Path, wire: Wire) -> None:
    with serving(OK) as server, publisher(wire, tmp_path, server.url) as c:
        found = c.call("populate_backend", asset=TONE)

    assert found == {"ok": True, "asset_id": "7", "backend_url": server.url}
    ((path, headers, body),) = server.seen
    assert path == "/synesthetic-assets/"
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == TONE


@requirement("d:populate")
@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (b'{"id": "a"}', "a"),
        (b'{"asset_id": "a"}', "a"),
        (b'{"asset_id": 7, "id": null}', "7"),
        (b'{"asset_id": "a", "id": "b"}', "b"),
    ],
)
def test_a_backend_may_call_the_id_as_the_answer_does(body: bytes, identity: str) -> None:
    with serving(answer(201, body)) as server:
        assert post(server.url)["asset_id"] == identity


@requirement("d:guard:validated-first", "d:populate:error")
@pytest.mark.parametrize("wire", WIRES)
def test_an_invalid_asset_is_never_sent(tmp_path: Path, wire: Wire) -> None:
    with serving(OK) as server, publisher(wire, tmp_path, server.url) as c:
        wrong = c.call("populate_backend", asset={**TONE, "frequency": 0})
        unknown = c.call("populate_backend", asset={"$schemaRef": "nope.json"}, validate_first=True)
        unmarked = c.call("populate_backend", asset={"name": "x"})

    assert wrong == failed(("/frequency", "expected more than 0"))
    assert unknown == failed(("/schema", "schema_not_found"))
    assert unmarked == failed(("", 'missing required property "tone"'))
    assert server.seen == []


def test_validation_can_be_left_out_on_purpose(tmp_path: Path) -> None:
    with serving(OK) as server, publisher("rpc", tmp_path, server.url) as c:
        found = c.call("populate_backend", asset=[1], validate_first=False)

    assert found["ok"] is True
    assert server.seen[0][2] == b"[1]"


@requirement("d:backend:only-if-set", "d:populate:error")
@pytest.mark.parametrize("wire", WIRES)
def test_without_a_backend_publishing_is_unsupported(tmp_path: Path, wire: Wire) -> None:
    with client(wire, tmp_path) as c:
        found = c.call("populate_backend", asset={})

    assert found == {"ok": False, "reason": "unsupported", "detail": "backend disabled"}


@requirement("d:error:backend", "d:populate:error", "d:backend:no-retries")
@pytest.mark.parametrize("wire", WIRES)
def test_what_the_backend_refuses_or_says_wrong_is_an_error_after_one_try(
    tmp_path: Path, wire: Wire
) -> None:
    cases = [
        (answer(500, b"internal error"), 500, "internal error"),
        (answer(404, b'{"detail":"no"}'), 404, '{"detail":"no"}'),
        (answer(503), 503, "service unavailable"),
        (answer(422, b"x" * 2000), 422, "x" * 499 + "…"),
        (answer(400, b"\xff"), 400, "\ufffd"),
        (answer(599, b" \n"), 599, "no explanation"),
        (answer(302, location="/elsewhere"), 302, "found"),
        (answer(307, location="http://127.0.0.1:1/"), 307, "temporary redirect"),
        (answer(200, b"not json"), 200, "invalid_response"),
        (answer(200, b"[]"), 200, "invalid_response"),
        (answer(200, b'{"id": null}'), 200, "invalid_response"),
        (answer(200, b'{"id": true}'), 200, "invalid_response"),
        (answer(200, b'{"id": ""}'), 200, "invalid_response"),
        (answer(204), 204, "invalid_response"),
        (answer(200, b" " * 100_000 + b'{"id": 1}'), 200, "invalid_response"),
    ]
    with serving(OK) as server, publisher(wire, tmp_path, server.url) as c:
        for respond, status, detail in cases:
            server.respond = respond
            server.seen.clear()
            found = c.call("populate_backend", asset=TONE)

            assert found == {
                "ok": False,
                "reason": "backend_error",
                "status": status,
                "detail": detail,
            }
            assert len(server.seen) == 1


@requirement("d:error:network", "d:backend:no-retries")
@pytest.mark.parametrize("wire", WIRES)
def test_a_backend_that_cannot_be_reached_is_a_network_error(tmp_path: Path, wire: Wire) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        port = free.getsockname()[1]
        with publisher(wire, tmp_path, f"http://127.0.0.1:{port}") as c:
            found = c.call("populate_backend", asset=TONE)

    assert found == {
        "ok": False,
        "reason": "backend_error",
        "status": 503,
        "detail": "network_unreachable",
    }


@requirement("d:error:network")
def test_a_connection_that_is_cut_or_a_host_that_is_none_is_a_network_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.shutdown(socket.SHUT_RDWR)

    def unknown(*_given: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with serving(cut) as server:
        found = [post(server.url)]
        # Some networks take longer to say so than the exchange may take.
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        found.append(post("http://no-such-host.invalid"))

    assert [(each["status"], each["detail"]) for each in found] == [
        (503, "network_unreachable"),
        (503, "network_unreachable"),
    ]
    assert len(server.seen) == 1


@requirement("d:backend:timeout")
def test_the_timeout_is_five_seconds() -> None:
    assert backend.TIMEOUT == 5.0


@requirement("d:backend:timeout", "d:backend:no-retries")
@pytest.mark.parametrize("kind", ["silent", "dribbling"])
def test_a_backend_that_takes_too_long_is_given_up(kind: str) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        if kind == "dribbling":  # each byte in time, all of them too late
            handler.send_response(200)
            handler.send_header("content-length", "1000000")
            handler.end_headers()
            while not server.closing.wait(0.05):
                handler.wfile.write(b" ")
        server.closing.wait(30)

    tries = 0
    with serving(respond) as server:
        while not server.seen:  # a busy machine may not even ask in this time
            tries += 1
            found = post(server.url, timeout=1.0)

    assert found == {"ok": False, "reason": "backend_error", "status": 504, "detail": "timeout"}
    assert len(server.seen) <= tries


def post(url: str, *, timeout: float = 80.0, **settings: Any) -> dict[str, Any]:
    """Post, with more patience than the backend has: these tests are about something else."""
    target = backend.backend(Settings(backend_url=url, **settings))
    assert target is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "TIMEOUT", timeout)
        return asyncio.run(target.post(TONE))


# Settings


@requirement("d:backend:path", "d:environment")
@pytest.mark.parametrize(
    ("base", "path", "asked"),
    [
        ("", "/synesthetic-assets/", "/synesthetic-assets/"),
        ("/", "assets", "/assets"),
        ("/api/v1", "/assets/", "/api/v1/assets/"),
        ("/api/v1/", "assets", "/api/v1/assets"),
        ("", "", "/"),
    ],
)
def test_the_path_is_put_below_the_url(base: str, path: str, asked: str) -> None:
    with serving(OK) as server:
        found = post(server.url + base, backend_assets_path=path)

    assert found["backend_url"] == server.url + base
    assert server.seen[0][0] == asked


@requirement("d:backend:path", "d:environment")
def test_the_variable_of_the_path_says_where_assets_are_posted(tmp_path: Path) -> None:
    with (
        serving(OK) as server,
        publisher("rpc", tmp_path, server.url, SYN_BACKEND_ASSETS_PATH="/own/place") as c,
    ):
        found = c.call("populate_backend", asset=TONE)

    assert found == {"ok": True, "asset_id": "7", "backend_url": server.url}
    assert [path for path, _, _ in server.seen] == ["/own/place"]


def test_a_password_in_the_url_is_used_and_neither_answered_nor_logged(tmp_path: Path) -> None:
    with serving(OK) as server:
        url = server.url.replace("//", "//user:p%40ss@")
        with publisher("rpc", tmp_path, url, CLEATS_LOG_LEVEL="debug") as c:
            found = c.call("populate_backend", asset=TONE)
            c.peer.end_input()
            c.peer.wait()

    assert found["backend_url"] == server.url
    assert server.seen[0][1]["authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()
    said = c.peer.stderr.decode()
    assert server.url in said  # the client's own log line is there, so the rest means something
    for secret in ("p%40ss", "p@ss", base64.b64encode(b"user:p@ss").decode()):
        assert secret not in said


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://[bad",
        "https://user:secret@host/?token=secret",
        "https://host/#secret",
    ],
)
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        backend.backend(Settings(backend_url=url))

    assert str(caught.value) == "SYN_BACKEND_URL: expected http(s)://HOST[:PORT][/PATH]"


def test_proxies_and_netrc_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    with serving(OK) as server:
        found = post(server.url)

    assert found["ok"] is True
    assert "authorization" not in server.seen[0][1]
