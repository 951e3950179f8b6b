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

from cleats.settings import SettingError, make_settings
from cleats.toolsets.assets import backend
from tests.support.assets import ASSET_WIRES, SHOWCASE_FOLDER, AssetClient, Wire, build_failure, open_asset_client
from tests.support.mcp_client import start_server
from tests.support.requirements import requirement

TONE_ASSET = {
    "$schemaRef": "jsonschema/tone.schema.json",
    "name": "lead",
    "waveform": "sine",
    "frequency": 440,
}

Responder = Callable[[BaseHTTPRequestHandler], None]


def make_responder(status: int, body: bytes = b"", **headers: str) -> Responder:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


@dataclass
class FakeBackendServer:
    """The requests that were posted and the response to give."""

    respond: Responder
    url: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serve_backend(respond: Responder) -> Iterator[FakeBackendServer]:
    server = FakeBackendServer(respond)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append((self.path, headers, body))
            with suppress(OSError):
                server.respond(self)

        do_GET = do_POST  # noqa: N815 - the library's name

        def log_message(self, *_args: object) -> None:
            pass

    class QuietHTTPServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_args: object) -> None:
            pass

    http = QuietHTTPServer(("127.0.0.1", 0), Handler)
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


PATIENT_CLEATS_SOURCE = """
from cleats.__main__ import main
from cleats.toolsets.assets import backend

backend.BACKEND_TIMEOUT_SECONDS = 80.0
main()
"""
"""A `cleats` whose backend timeout is long enough for a busy test machine."""


@contextmanager
def start_publisher(wire: Wire, home: Path, url: str, **environ: str) -> Iterator[AssetClient]:
    settings = {
        "SYN_SCHEMAS_DIR": str(SHOWCASE_FOLDER),
        "SYN_BACKEND_URL": url,
        "MCP_READY_FILE": str(home / "ready"),
        "CLEATS_TIMEOUTS": "populate_backend=80",
        **environ,
    }
    words = (sys.executable, "-c", PATIENT_CLEATS_SOURCE, "serve", "assets", "--wire", wire)
    with start_server(*words, home=home, ready=wire == "mcp", **settings) as peer:
        yield AssetClient(peer, wire)


CREATED_RESPONDER = make_responder(201, b'{"id": 7}')


@requirement("d:populate", "d:backend:path", "d:guard:validated-first")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_a_valid_asset_is_posted_as_it_is_and_its_id_answered(tmp_path: Path, wire: Wire) -> None:
    with serve_backend(CREATED_RESPONDER) as server, start_publisher(wire, tmp_path, server.url) as c:
        result = c.call("populate_backend", asset=TONE_ASSET)

    assert result == {"ok": True, "asset_id": "7", "backend_url": server.url}
    ((path, headers, body),) = server.requests
    assert path == "/synesthetic-assets/"
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == TONE_ASSET


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
    with serve_backend(make_responder(201, body)) as server:
        assert post_tone(server.url)["asset_id"] == identity


@requirement("d:guard:validated-first", "d:populate:error")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_an_invalid_asset_is_never_sent(tmp_path: Path, wire: Wire) -> None:
    with serve_backend(CREATED_RESPONDER) as server, start_publisher(wire, tmp_path, server.url) as c:
        wrong = c.call("populate_backend", asset={**TONE_ASSET, "frequency": 0})
        unknown = c.call("populate_backend", asset={"$schemaRef": "nope.json"}, validate_first=True)
        unmarked = c.call("populate_backend", asset={"name": "x"})

    assert wrong == build_failure(("/frequency", "expected more than 0"))
    assert unknown == build_failure(("/schema", "schema_not_found"))
    assert unmarked == build_failure(("", 'missing required property "tone"'))
    assert server.requests == []


def test_validation_can_be_left_out_on_purpose(tmp_path: Path) -> None:
    with serve_backend(CREATED_RESPONDER) as server, start_publisher("rpc", tmp_path, server.url) as c:
        result = c.call("populate_backend", asset=[1], validate_first=False)

    assert result["ok"] is True
    assert server.requests[0][2] == b"[1]"


@requirement("d:backend:only-if-set", "d:populate:error")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_without_a_backend_publishing_is_unsupported(tmp_path: Path, wire: Wire) -> None:
    with open_asset_client(wire, tmp_path) as c:
        result = c.call("populate_backend", asset={})

    assert result == {"ok": False, "reason": "unsupported", "detail": "backend disabled"}


@requirement("d:error:backend", "d:populate:error", "d:backend:no-retries")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_what_the_backend_refuses_or_says_wrong_is_an_error_after_one_try(tmp_path: Path, wire: Wire) -> None:
    cases = [
        (make_responder(500, b"internal error"), 500, "internal error"),
        (make_responder(404, b'{"detail":"no"}'), 404, '{"detail":"no"}'),
        (make_responder(503), 503, "service unavailable"),
        (make_responder(422, b"x" * 2000), 422, "x" * 499 + "…"),
        (make_responder(400, b"\xff"), 400, "\ufffd"),
        (make_responder(599, b" \n"), 599, "no explanation"),
        (make_responder(302, location="/elsewhere"), 302, "found"),
        (make_responder(307, location="http://127.0.0.1:1/"), 307, "temporary redirect"),
        (make_responder(200, b"not json"), 200, "invalid_response"),
        (make_responder(200, b"[]"), 200, "invalid_response"),
        (make_responder(200, b'{"id": null}'), 200, "invalid_response"),
        (make_responder(200, b'{"id": true}'), 200, "invalid_response"),
        (make_responder(200, b'{"id": ""}'), 200, "invalid_response"),
        (make_responder(204), 204, "invalid_response"),
        (make_responder(200, b" " * 100_000 + b'{"id": 1}'), 200, "invalid_response"),
    ]
    with serve_backend(CREATED_RESPONDER) as server, start_publisher(wire, tmp_path, server.url) as c:
        for respond, status, detail in cases:
            server.respond = respond
            server.requests.clear()
            result = c.call("populate_backend", asset=TONE_ASSET)

            assert result == {
                "ok": False,
                "reason": "backend_error",
                "status": status,
                "detail": detail,
            }
            assert len(server.requests) == 1


@requirement("d:error:network", "d:backend:no-retries")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_a_backend_that_cannot_be_reached_is_a_network_error(tmp_path: Path, wire: Wire) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        port = free.getsockname()[1]
        with start_publisher(wire, tmp_path, f"http://127.0.0.1:{port}") as c:
            result = c.call("populate_backend", asset=TONE_ASSET)

    assert result == {
        "ok": False,
        "reason": "backend_error",
        "status": 503,
        "detail": "network_unreachable",
    }


@requirement("d:error:network")
def test_a_connection_that_is_cut_or_a_host_that_is_none_is_a_network_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut_connection(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.shutdown(socket.SHUT_RDWR)

    def fail_lookup(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with serve_backend(cut_connection) as server:
        results = [post_tone(server.url)]
        # Some networks take longer to say so than the exchange may take.
        monkeypatch.setattr(socket, "getaddrinfo", fail_lookup)
        results.append(post_tone("http://no-such-host.invalid"))

    assert [(result["status"], result["detail"]) for result in results] == [
        (503, "network_unreachable"),
        (503, "network_unreachable"),
    ]
    assert len(server.requests) == 1


@requirement("d:backend:timeout")
def test_the_timeout_is_five_seconds() -> None:
    assert backend.BACKEND_TIMEOUT_SECONDS == 5.0


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
    with serve_backend(respond) as server:
        while not server.requests:  # a busy machine may not even ask in this time
            tries += 1
            result = post_tone(server.url, timeout=1.0)

    assert result == {"ok": False, "reason": "backend_error", "status": 504, "detail": "timeout"}
    assert len(server.requests) <= tries


def post_tone(url: str, *, timeout: float = 80.0, **settings: Any) -> dict[str, Any]:
    """Post the tone with a longer timeout than the default; these tests are not about timeouts."""
    target = backend.create_backend(make_settings(backend_url=url, **settings))
    assert target is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "BACKEND_TIMEOUT_SECONDS", timeout)
        return asyncio.run(target.post(TONE_ASSET))


# Settings


@requirement("d:backend:path", "d:environment")
@pytest.mark.parametrize(
    ("base", "path", "requested_path"),
    [
        ("", "/synesthetic-assets/", "/synesthetic-assets/"),
        ("/", "assets", "/assets"),
        ("/api/v1", "/assets/", "/api/v1/assets/"),
        ("/api/v1/", "assets", "/api/v1/assets"),
        ("", "", "/"),
    ],
)
def test_the_path_is_put_below_the_url(base: str, path: str, requested_path: str) -> None:
    with serve_backend(CREATED_RESPONDER) as server:
        result = post_tone(server.url + base, backend_assets_path=path)

    assert result["backend_url"] == server.url + base
    assert server.requests[0][0] == requested_path


@requirement("d:backend:path", "d:environment")
def test_the_variable_of_the_path_says_where_assets_are_posted(tmp_path: Path) -> None:
    with (
        serve_backend(CREATED_RESPONDER) as server,
        start_publisher("rpc", tmp_path, server.url, SYN_BACKEND_ASSETS_PATH="/own/place") as c,
    ):
        result = c.call("populate_backend", asset=TONE_ASSET)

    assert result == {"ok": True, "asset_id": "7", "backend_url": server.url}
    assert [path for path, _, _ in server.requests] == ["/own/place"]


def test_a_password_in_the_url_is_used_and_neither_answered_nor_logged(tmp_path: Path) -> None:
    with serve_backend(CREATED_RESPONDER) as server:
        url = server.url.replace("//", "//user:p%40ss@")
        with start_publisher("rpc", tmp_path, url, CLEATS_LOG_LEVEL="debug") as c:
            result = c.call("populate_backend", asset=TONE_ASSET)
            c.peer.close_input()
            c.peer.wait_for_exit()

    assert result["backend_url"] == server.url
    assert server.requests[0][1]["authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()
    log_text = c.peer.stderr.decode()
    assert server.url in log_text  # the client's own log line is there, so the rest means something
    for secret in ("p%40ss", "p@ss", base64.b64encode(b"user:p@ss").decode()):
        assert secret not in log_text


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
        backend.create_backend(make_settings(backend_url=url))

    assert str(caught.value) == "SYN_BACKEND_URL: expected http(s)://HOST[:PORT][/PATH]"


def test_proxies_and_netrc_of_the_environment_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    with serve_backend(CREATED_RESPONDER) as server:
        result = post_tone(server.url)

    assert result["ok"] is True
    assert "authorization" not in server.requests[0][1]
