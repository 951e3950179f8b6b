"""Fetching: from a real server with ranges, validators, redirects and lies, and from disk."""

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.downloads import sources
from cleats.toolsets.code.downloads.fetching import Arrived, Order, fetched
from cleats.toolsets.code.downloads.sources import Policy
from tests.file_server import Files, Handler, serving

BODY = bytes(range(256)) * 2000
SHA = hashlib.sha256(BODY).hexdigest()
LIMIT = 1 << 20


@pytest.fixture
def files() -> Iterator[Files]:
    with serving(Files({"/file": BODY})) as files:
        yield files


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "file"


def policy(target: Path, **more: Any) -> Policy:
    return Policy(**{"hosts": ("127.0.0.1",), "roots": (target.parent,), "limit": LIMIT, **more})


def order(text: str, target: Path, **known: str) -> Order:
    repository = target.parent.parent / "repository"
    repository.mkdir(exist_ok=True)
    return Order(sources.read(text, repository), target, repository, **known)


async def fetch(
    text: str,
    target: Path,
    allowed: Policy | None = None,
    *,
    reports: list[tuple[int, int]] | None = None,
    **known: Any,
) -> Arrived | None:
    """Fetch and put in place."""
    seen = [] if reports is None else reports
    wanted = order(text, target, **known)
    async with fetched(wanted, allowed or policy(target), lambda *at: seen.append(at)) as arrived:
        if arrived is not None:
            arrived.place()
        return arrived


def got(text: str, target: Path, allowed: Policy | None = None, **known: Any) -> Arrived:
    arrived = anyio.run(lambda: fetch(text, target, allowed, **known))
    assert arrived is not None
    return arrived


def refused(text: str, target: Path, allowed: Policy | None = None, **known: Any) -> ToolError:
    with pytest.raises(ToolError) as error:
        anyio.run(lambda: fetch(text, target, allowed, **known))
    assert not target.exists()
    return error.value


def left(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()}


# Good ways


def test_a_file_arrives_whole_and_progress_says_how_far_it_is(files: Files, target: Path) -> None:
    reports: list[tuple[int, int]] = []

    arrived = anyio.run(lambda: fetch(files.url("/file"), target, reports=reports))

    assert arrived is not None
    assert (arrived.sha256, arrived.bytes, arrived.resumed) == (SHA, len(BODY), 0)
    assert target.read_bytes() == BODY
    assert left(target) == {"file"}
    assert reports[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})


def test_a_redirect_is_followed_to_the_file(files: Files, target: Path) -> None:
    files.odd["/old"] = lambda handler: handler.reply(302, Location="/older")
    files.odd["/older"] = lambda handler: handler.reply(301, Location=files.url("/file"))

    assert got(files.url("/old"), target, sha256=SHA).sha256 == SHA


@pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "{}", "../cache/source"])
def test_a_file_on_disk_is_a_source_too(form: str, target: Path) -> None:
    source = target.parent / "source"
    source.write_bytes(BODY)

    assert got(f"{form.format(source)}#sha256={SHA}", target).bytes == len(BODY)

    assert left(target) == {"source", "file"}


def test_nothing_comes_when_the_file_in_place_is_the_newest(files: Files, target: Path) -> None:
    first = got(files.url("/file"), target)

    again = anyio.run(lambda: fetch(files.url("/file"), target, etag=first.etag))
    files.content["/file"] = b"new"
    changed = anyio.run(lambda: fetch(files.url("/file"), target, etag=first.etag))

    assert again is None
    assert changed is not None
    assert target.read_bytes() == b"new"


def test_a_file_replaces_a_link_and_does_not_follow_it(files: Files, target: Path) -> None:
    other = target.parent.parent / "other"
    other.write_bytes(b"mine")
    target.symlink_to(other)
    target.with_name(".file.part").symlink_to(other)

    got(files.url("/file"), target)

    assert other.read_bytes() == b"mine"
    assert not target.is_symlink()


# Going on


def half(files: Files) -> None:
    """Say all of it, send half, and hang up."""

    def reply(handler: Handler) -> None:
        about = {"ETag": _etag(BODY)} if files.validators else {}
        handler.reply(200, BODY[: len(BODY) // 2], Content_Length=len(BODY), **about)
        handler.hang_up()

    files.odd["/file"] = reply


def _etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def test_a_broken_download_goes_on_where_it_broke(files: Files, target: Path) -> None:
    half(files)
    error = refused(files.url("/file"), target)
    del files.odd["/file"]

    arrived = got(files.url("/file"), target)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert error.retryable
    assert arrived.resumed == len(BODY) // 2
    assert (arrived.sha256, target.read_bytes()) == (SHA, BODY)
    assert files.asked("range") == ["", f"bytes={len(BODY) // 2}-"]
    assert files.asked("if-range") == ["", _etag(BODY)]
    assert left(target) == {"file"}


def test_a_broken_download_starts_anew_when_the_file_has_changed(
    files: Files, target: Path
) -> None:
    half(files)
    refused(files.url("/file"), target)
    del files.odd["/file"]
    files.content["/file"] = b"other"

    assert got(files.url("/file"), target).resumed == 0

    assert target.read_bytes() == b"other"


@pytest.mark.parametrize(
    "lie",
    [
        {"Content_Range": f"bytes 0-9/{len(BODY)}"},
        {"Content_Range": "bytes 256000-256009/256010", "ETag": '"other"'},
        {"Content_Range": "nonsense"},
        {},
    ],
)
def test_a_range_that_does_not_fit_is_not_appended(
    lie: dict[str, str], files: Files, target: Path
) -> None:
    half(files)
    refused(files.url("/file"), target)

    def reply(handler: Handler) -> None:
        if handler.headers.get("Range"):
            handler.reply(206, b"0123456789", **lie)
        else:
            handler.reply(200, BODY)

    files.odd["/file"] = reply

    assert got(files.url("/file"), target).resumed == 0
    assert target.read_bytes() == BODY


def test_without_a_validator_a_broken_download_starts_anew(files: Files, target: Path) -> None:
    files.validators = False
    half(files)
    refused(files.url("/file"), target)
    del files.odd["/file"]

    assert got(files.url("/file"), target).resumed == 0
    assert files.asked("range") == ["", ""]


def test_bytes_of_another_file_are_not_gone_on_with(files: Files, target: Path) -> None:
    files.content["/other"] = b"x" * 999_999
    half(files)
    refused(files.url("/file"), target)

    assert got(files.url("/other"), target).resumed == 0
    assert target.read_bytes() == b"x" * 999_999


def test_a_cancelled_download_leaves_only_what_the_next_goes_on_with(
    files: Files, target: Path
) -> None:
    go_on = threading.Event()

    def slowly(handler: Handler) -> None:
        handler.reply(200, BODY[:70_000], Content_Length=len(BODY), ETag=_etag(BODY))
        handler.wfile.flush()
        go_on.wait(60)
        handler.hang_up()

    files.odd["/file"] = slowly

    async def main() -> None:
        with anyio.CancelScope() as scope:
            wanted = order(files.url("/file"), target)

            def stop(done: int, total: int) -> None:
                if done == 70_000:
                    scope.cancel()

            async with fetched(wanted, policy(target), stop):
                pytest.fail("it must not arrive")

    anyio.run(main)
    go_on.set()

    assert left(target) == {".file.part", ".file.part.json"}
    del files.odd["/file"]
    assert got(files.url("/file"), target).resumed == 70_000
    assert (target.read_bytes(), left(target)) == (BODY, {"file"})


# Refusals


def test_a_wrong_hash_puts_nothing_in_place_and_leaves_nothing(files: Files, target: Path) -> None:
    for pinned in (f"#sha256={'0' * 64}", ""):
        error = refused(files.url("/file") + pinned, target, sha256="1" * 64)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert SHA in error.message
        assert left(target) == set()


def test_a_file_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(
    files: Files, target: Path
) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            try:
                handler.wfile.write(b"x" * 50_000)
            except OSError:
                return

    files.odd |= {
        "/says": lambda handler: handler.reply(200, b"", Content_Length=LIMIT + 1),
        "/is": endless,
    }
    (target.parent / "big").write_bytes(b"x" * (LIMIT + 1))
    for address in (files.url("/says"), files.url("/is"), str(target.parent / "big")):
        error = refused(address, target)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert not error.retryable
        assert left(target) == {"big"}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (404, ErrorCode.NOT_FOUND, False),
        (410, ErrorCode.NOT_FOUND, False),
        (403, ErrorCode.FORBIDDEN, False),
        (400, ErrorCode.DOWNLOAD_VERIFY_FAILED, False),
        (429, ErrorCode.DOWNLOAD_VERIFY_FAILED, True),
        (503, ErrorCode.DOWNLOAD_VERIFY_FAILED, True),
        (204, ErrorCode.DOWNLOAD_VERIFY_FAILED, False),
        (206, ErrorCode.DOWNLOAD_VERIFY_FAILED, True),
        (304, ErrorCode.DOWNLOAD_VERIFY_FAILED, True),
        (416, ErrorCode.DOWNLOAD_VERIFY_FAILED, True),
    ],
)
def test_an_answer_without_the_file_is_an_error_that_says_so(
    status: int, code: ErrorCode, retryable: bool, files: Files, target: Path
) -> None:
    files.odd["/odd"] = lambda handler: handler.reply(status)

    error = refused(files.url("/odd"), target)

    assert (error.code, error.retryable) == (code, retryable)
    assert str(status) in error.message
    assert left(target) == set()


@pytest.mark.parametrize(
    "location",
    ["/loop", "file:///etc/passwd", "ftp://127.0.0.1/x", "", "http://", "http://u:p@127.0.0.1/"],
)
def test_a_redirect_that_leads_nowhere_is_refused(
    location: str, files: Files, target: Path
) -> None:
    files.odd["/loop"] = lambda handler: handler.reply(302, Location=location)

    error = refused(files.url("/loop"), target)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert not error.retryable
    assert len(files.seen) <= 6


def test_a_redirect_to_a_host_that_is_not_allowed_is_refused(files: Files, target: Path) -> None:
    files.odd["/out"] = lambda handler: handler.reply(302, Location="http://localhost:1/file")

    assert refused(files.url("/out"), target).code is ErrorCode.FORBIDDEN


def test_a_compressed_answer_is_refused(files: Files, target: Path) -> None:
    files.odd["/gz"] = lambda handler: handler.reply(200, b"x", Content_Encoding="gzip")

    assert "gzip" in refused(files.url("/gz"), target).message


def test_nonsense_instead_of_an_answer_is_worth_another_try(files: Files, target: Path) -> None:
    def nonsense(handler: Handler) -> None:
        handler.wfile.write(b"\x00\x01 nonsense\r\n\r\n")
        handler.hang_up()

    files.odd["/odd"] = nonsense

    error = refused(files.url("/odd"), target)

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, True)


def test_nobody_listening_is_worth_another_try(target: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening, so that nobody else does
        error = refused(f"http://127.0.0.1:{taken.getsockname()[1]}/file", target)

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, True)


def test_a_file_that_is_missing_or_no_file_is_refused(target: Path) -> None:
    os.mkfifo(target.parent / "pipe")

    assert refused(str(target.parent / "missing"), target).code is ErrorCode.NOT_FOUND
    assert refused(str(target.parent / "pipe"), target).code is ErrorCode.INVALID_REQUEST
    assert refused(str(target.parent), target).code is ErrorCode.INVALID_REQUEST
