"""Tests of external links: requested politely, and never in a private network."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anyio
import pytest

from cleats.toolsets.launch.gates import external_links
from cleats.toolsets.launch.gates.model import IssueDraft
from tests.support.gates import GUIDE_PATH, create_gate_run, render_page


class _PageHandler(BaseHTTPRequestHandler):
    """A handler that answers by path and records its requests."""

    asked: list[str]

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        status = {"/gone": 404, "/shy": 200, "/broken": 500}.get(self.path, 200)
        if self.path == "/shy" and self.command == "HEAD":
            status = 405
        if self.path in ("/moved", "/loop", "/inside"):
            status = 302
        self.send_response(status)
        to = {"/moved": "/there", "/loop": "/loop", "/inside": "http://localhost:1/"}
        if self.path in to:
            self.send_header("Location", to[self.path])
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = _answer  # noqa: N815 - names of the library

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


@contextmanager
def serve_pages() -> Iterator[tuple[str, list[str]]]:
    requests: list[str] = []
    handler = type("Pages", (_PageHandler,), {"asked": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join(5)


def check_links(
    tmp_path: Path, body: str, *, offline_mode: bool = False, **settings: object
) -> tuple[list[tuple[str, str]], list[str]]:
    launch = create_gate_run(tmp_path, settings=settings, config={"offline_mode": offline_mode})
    launch.write_file(GUIDE_PATH, render_page("Guide", body))

    async def run_check() -> list[object]:
        return list(await external_links.check_external_links(await launch.open_site()))

    answers = anyio.run(run_check)
    findings: list[tuple[str, str]] = [
        (answer.severity, answer.kind.code) for answer in answers if isinstance(answer, IssueDraft)
    ]
    return findings, [answer for answer in answers if isinstance(answer, str)]


ANSWER_CASES = [
    ("/there", []),
    ("/moved", []),
    ("/shy", []),
    ("/gone", [("error", "GATE_EXTERNAL_GONE")]),
    ("/broken", [("warn", "GATE_EXTERNAL_UNREACHABLE")]),
    ("/loop", [("warn", "GATE_EXTERNAL_UNREACHABLE")]),
    ("/inside", [("warn", "GATE_EXTERNAL_UNREACHABLE")]),
]


def test_each_kind_of_answer_is_told(tmp_path: Path) -> None:
    with serve_pages() as (host, requests):
        body = "\n\n".join(f"[x](http://{host}{path}#part)" for path, _ in ANSWER_CASES)
        findings, log = check_links(tmp_path, body, link_hosts=[host])

    by_path = sorted(ANSWER_CASES)
    assert findings == [finding for _, expected in by_path for finding in expected]
    assert [line.split(host)[1].split(":")[0] for line in log] == [path for path, _ in by_path]
    assert "HEAD /there" in requests
    assert "GET /there" not in requests
    assert "GET /shy" in requests
    assert requests.count("HEAD /loop") == external_links.MAX_REDIRECTS + 1


def test_one_address_is_asked_once_and_told_for_every_place(tmp_path: Path) -> None:
    with serve_pages() as (host, requests):
        body = f"[x](http://{host}/gone#a)\n\n[y](http://{host}/gone#b)"
        findings, log = check_links(tmp_path, body, link_hosts=[host])

    assert len(findings) == 2
    assert requests == ["HEAD /gone", "GET /gone"]
    assert log == [f"http://{host}/gone: gone"]


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://user:pass@example.org/",
        "https://93.184.216.34:8443/",
        "https://",
        "ftp://example.org/",
        "https://example.org:bad/",
    ],
)
def test_only_public_https_addresses_may_be_asked(url: str) -> None:
    assert not anyio.run(external_links.is_allowed_url, url, ())


def test_a_public_address_may_be_asked_and_so_may_a_listed_host() -> None:
    assert anyio.run(external_links.is_allowed_url, "https://93.184.216.34/", ())
    assert anyio.run(external_links.is_allowed_url, "http://127.0.0.1:8000/", ("127.0.0.1:8000",))
    assert not anyio.run(external_links.is_allowed_url, "http://127.0.0.1:8001/", ("127.0.0.1:8000",))


def test_nothing_is_asked_offline(tmp_path: Path) -> None:
    with serve_pages() as (host, requests):
        findings, log = check_links(tmp_path, f"[x](http://{host}/gone)", link_hosts=[host], offline=True)

    assert (findings, requests) == ([], [])
    assert log == ["not checked: the operator works offline"]


def test_a_run_that_works_offline_asks_nothing_either(tmp_path: Path) -> None:
    with serve_pages() as (host, requests):
        body = f"[x](http://{host}/gone)"
        findings, log = check_links(tmp_path, body, link_hosts=[host], offline_mode=True)

    assert (findings, requests) == ([], [])
    assert log == ["not checked: the run works offline"]
