"""Tests of the log lines about requests and calls: their content, their secrets, and a bad disk."""

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleats.runtime.background_writer import PROCESS_JOURNAL
from cleats.transports.http import monitoring
from cleats.transports.http.monitoring import MAX_OLD_FILES, RotatingLineFile
from tests.support.http_client import CLEATS_COMMAND, JSON_HEADERS, run_web_server
from tests.support.waiting import wait_until
from tests.transports.http.test_caller_access import TokenServer, build_bearer_header, build_token_row

SECRET_TEXT = "never-to-be-written"


def read_lines(path: Path) -> list[Any]:
    """Return the lines that were written completely."""
    complete_text, _, _ = (path.read_text() if path.exists() else "").rpartition("\n")
    return [json.loads(line) for line in complete_text.splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    home = tmp_path_factory.mktemp("records")
    (home / "repo").mkdir()
    tokens = home / "tokens.toml"
    tokens.write_text(build_token_row("ci") + build_token_row("assets", toolsets=("assets",)))
    tokens.chmod(0o600)
    with run_web_server(
        *CLEATS_COMMAND,
        "code",
        "assets",
        "--repo",
        str(home / "repo"),
        home=home,
        CLEATS_HTTP_TOKENS=str(tokens),
        CLEATS_HTTP_ACCESS_LOG=str(home / "logs" / "access.jsonl"),
        CLEATS_HTTP_AUDIT_LOG=str(home / "logs" / "audit.jsonl"),
        CLEATS_TELEMETRY="off",
    ) as web:
        yield TokenServer(web, home)


def wait_for_lines(server: TokenServer, name: str, request: str, count: int = 1) -> list[Any]:
    """Return the lines of a log about one request, once they are written."""
    path = server.home / "logs" / name

    def list_lines() -> list[Any]:
        return [line for line in read_lines(path) if line["requestId"] == request]

    wait_until(lambda: len(list_lines()) >= count)
    return list_lines()


def post_request(server: TokenServer, token_name: str, path: str, body: Any, request: str) -> None:
    headers = {**JSON_HEADERS, **build_bearer_header(token_name), "x-request-id": request}
    server.web.send_request("POST", path, json.dumps(body).encode(), headers)


# The audit log


def test_every_call_is_one_line_that_says_who_what_and_how_it_ended(server: TokenServer) -> None:
    post_request(server, "ci", "/tools/index_status", {}, "audit-1")
    [line] = wait_for_lines(server, "audit.jsonl", "audit-1")

    assert line.pop("time").endswith("Z")
    assert line.pop("ms") >= 0
    assert line == {
        "token": "ci",
        "tool": "index_status",
        "repo": str(server.home / "repo"),
        "outcome": "done",
        "code": None,
        "surface": "http",
        "requestId": "audit-1",
    }


def test_a_call_that_fails_is_in_the_audit_log_with_its_code(server: TokenServer) -> None:
    post_request(server, "ci", "/tools/search", {"query": SECRET_TEXT}, "audit-2")
    post_request(server, "ci", "/tools/search", {"wrong": SECRET_TEXT}, "audit-3")
    post_request(server, "ci", "/search/stream", {"query": SECRET_TEXT}, "audit-4")

    ends = [wait_for_lines(server, "audit.jsonl", f"audit-{number}")[0] for number in (2, 3, 4)]
    assert [(end["outcome"], end["code"]) for end in ends] == [
        ("failed", "NO_INDEX"),
        ("rejected", "INVALID_REQUEST"),
        ("failed", "NO_INDEX"),
    ]


def test_a_tool_that_the_token_does_not_have_is_in_the_audit_log(server: TokenServer) -> None:
    post_request(server, "assets", "/tools/search", {"query": SECRET_TEXT}, "audit-5")

    [line] = wait_for_lines(server, "audit.jsonl", "audit-5")
    assert (line["token"], line["tool"], line["code"]) == ("assets", "search", "UNKNOWN_TOOL")


@pytest.mark.anyio
async def test_calls_over_mcp_are_in_the_audit_log(server: TokenServer) -> None:
    async with server.connect_mcp("ci") as client:
        await client.call_tool("check_status", {})
    path = server.home / "logs" / "audit.jsonl"

    wait_until(lambda: any(line["surface"] == "mcp" for line in read_lines(path)))
    [line] = [line for line in read_lines(path) if line["surface"] == "mcp"]
    assert (line["token"], line["tool"], line["outcome"]) == ("ci", "check_status", "done")


# The access log


def test_every_request_is_one_line_refused_ones_too(server: TokenServer) -> None:
    server.get("ci", f"/tools?q={SECRET_TEXT}", **{"x-request-id": "access-1"})
    server.get("nobody", "/tools", **{"x-request-id": "access-2"})
    server.get("ci", f"/{SECRET_TEXT}", **{"x-request-id": "access-3"})
    [done] = wait_for_lines(server, "access.jsonl", "access-1")
    [refused_line] = wait_for_lines(server, "access.jsonl", "access-2")
    [missing] = wait_for_lines(server, "access.jsonl", "access-3")

    assert done.pop("time").endswith("Z")
    assert done.pop("ms") >= 0
    assert done.pop("bytes") > 1000
    assert done == {
        "method": "GET",
        "route": "/tools",
        "status": 200,
        "token": "ci",
        "client": "127.0.0.1",
        "requestId": "access-1",
    }
    assert (refused_line["status"], refused_line["token"]) == (401, "")
    assert (missing["status"], missing["route"]) == (404, "other")


def test_no_log_has_arguments_addresses_or_tokens(server: TokenServer) -> None:
    post_request(server, "ci", "/tools/search", {"query": SECRET_TEXT}, "secret-1")
    post_request(server, "ci", f"/tools/search?x={SECRET_TEXT}", {SECRET_TEXT: SECRET_TEXT}, "secret-2")
    for number in (1, 2):
        wait_for_lines(server, "audit.jsonl", f"secret-{number}")
        wait_for_lines(server, "access.jsonl", f"secret-{number}")

    for path in (server.home / "logs").iterdir():
        assert SECRET_TEXT not in path.read_text()
        assert "secret of" not in path.read_text()
        assert path.stat().st_mode & 0o077 == 0


def test_the_access_log_may_go_to_stderr(tmp_path: Path) -> None:
    with run_web_server(*CLEATS_COMMAND, "assets", home=tmp_path, CLEATS_HTTP_ACCESS_LOG="stderr") as web:
        web.get("/health")

        wait_until(lambda: '"route":"/health"' in web.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
def test_a_full_disk_fails_no_call(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    limited = (
        "import resource, sys, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "from cleats.cli.main import main\n"
        "sys.argv = ['cleats', 'http', 'assets', '--port', '0', '--json']\n"
        "main()\n"
    )
    environ = {"CLEATS_HTTP_AUDIT_LOG": str(audit), "CLEATS_TELEMETRY": "off"}
    environ["PYTHONDONTWRITEBYTECODE"] = "1"  # half of a module would stay for everybody
    with run_web_server(sys.executable, "-c", limited, home=tmp_path, CLEATS_LOG_LEVEL="error", **environ) as web:
        wait_until(lambda: web.call_tool("list_schemas").status != 200 or "lines.lost" in web.stderr)

        assert web.call_tool("list_schemas").status == 200
        web.process.send_signal(signal.SIGTERM)
        assert web.wait_for_exit() == 0
        assert web.stderr.count("lines.lost") == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 300


# The file


def test_a_file_that_is_full_is_kept_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lines.jsonl"
    out = RotatingLineFile(path, 10)

    for number in range(8):
        out(b"line %d\n" % number)

    older = [path.with_name(f"lines.jsonl.{number}") for number in range(1, MAX_OLD_FILES + 1)]
    assert [log_file.read_bytes() for log_file in (path, *older)] == [
        b"line %d\n" % number for number in (7, 6, 5, 4, 3)
    ]
    assert len(list(path.parent.iterdir())) == MAX_OLD_FILES + 1


def test_a_batch_larger_than_a_file_is_written_all_the_same(tmp_path: Path) -> None:
    out = RotatingLineFile(tmp_path / "lines", 10)

    out(b"x" * 50 + b"\n")

    assert (tmp_path / "lines").stat().st_size == 51


def test_a_file_that_somebody_moved_away_is_begun_anew(tmp_path: Path) -> None:
    out = RotatingLineFile(tmp_path / "lines", 1000)
    out(b"one\n")
    (tmp_path / "lines").rename(tmp_path / "moved")
    out(b"two\n")

    assert (tmp_path / "lines").read_bytes() == b"two\n"


def test_lines_that_cannot_be_written_are_counted_and_never_raised(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    out = RotatingLineFile(tmp_path / "folder", 1000)

    before = PROCESS_JOURNAL.dropped
    out(b"one\ntwo\n")

    assert (out.lost_lines, PROCESS_JOURNAL.dropped - before) == (2, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"kept")
    (tmp_path / "lines").symlink_to(tmp_path / "precious")
    out = RotatingLineFile(tmp_path / "lines", 1000)

    out(b"one\n")

    assert (tmp_path / "precious").read_bytes() == b"kept"
    assert out.lost_lines == 1


def test_a_line_after_half_a_line_begins_on_a_line_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = RotatingLineFile(tmp_path / "lines", 1000)
    room = [3]
    real_write = os.write

    def write_partly(file: int, data: Any) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        size = real_write(file, bytes(data)[: room[0]])
        room[0] -= size
        return size

    monkeypatch.setattr(os, "write", write_partly)
    out(b"lost\n")
    monkeypatch.undo()
    out(b"kept\n")

    assert (tmp_path / "lines").read_bytes() == b"los\nkept\n"


@pytest.mark.parametrize("text", ["x" * 1000, "\ud800 lone", "a\nb"])
def test_a_text_from_outside_is_short_and_stays_on_its_line(tmp_path: Path, text: str) -> None:
    write = monitoring.build_writer(RotatingLineFile(tmp_path / "lines", 10_000))
    assert write is not None

    write({"tool": monitoring.clean_text(text)})
    PROCESS_JOURNAL.close()

    [line] = (tmp_path / "lines").read_text().splitlines()
    assert len(json.loads(line)["tool"]) <= monitoring.MAX_TEXT_CHARS


def test_without_a_setting_there_are_no_lines() -> None:
    assert monitoring.build_writer(monitoring.open_outlet("", 1)) is None
