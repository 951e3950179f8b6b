"""Downloads from a real server with ranges, validators, redirects and lies, and from disk."""

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
from cleats.toolsets.code.downloads.fetching import DownloadedFile, DownloadRequest, download_file
from cleats.toolsets.code.downloads.sources import DownloadPolicy
from tests.support.file_server import FileRequestHandler, ServedFiles, serve_files

FILE_CONTENT = bytes(range(256)) * 2000
CONTENT_SHA256 = hashlib.sha256(FILE_CONTENT).hexdigest()
SIZE_LIMIT_BYTES = 1 << 20


@pytest.fixture
def files() -> Iterator[ServedFiles]:
    with serve_files(ServedFiles({"/file": FILE_CONTENT})) as files:
        yield files


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "file"


def make_policy(target: Path, **overrides: Any) -> DownloadPolicy:
    return DownloadPolicy(
        **{"hosts": ("127.0.0.1",), "roots": (target.parent,), "limit": SIZE_LIMIT_BYTES, **overrides}
    )


def make_request(text: str, target: Path, **validators: str) -> DownloadRequest:
    repository = target.parent.parent / "repository"
    repository.mkdir(exist_ok=True)
    return DownloadRequest(sources.parse_source(text, repository), target, repository, **validators)


async def fetch_and_place(
    text: str,
    target: Path,
    allowed: DownloadPolicy | None = None,
    *,
    reports: list[tuple[int, int]] | None = None,
    **validators: Any,
) -> DownloadedFile | None:
    """Fetch a file and put it in place."""
    progress = [] if reports is None else reports
    request = make_request(text, target, **validators)
    async with download_file(request, allowed or make_policy(target), lambda *at: progress.append(at)) as download:
        if download is not None:
            download.move_to_target()
        return download


def fetch_file(text: str, target: Path, allowed: DownloadPolicy | None = None, **validators: Any) -> DownloadedFile:
    download = anyio.run(lambda: fetch_and_place(text, target, allowed, **validators))
    assert download is not None
    return download


def fetch_refused(text: str, target: Path, allowed: DownloadPolicy | None = None, **validators: Any) -> ToolError:
    with pytest.raises(ToolError) as error:
        anyio.run(lambda: fetch_and_place(text, target, allowed, **validators))
    assert not target.exists()
    return error.value


def list_leftovers(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()}


# Good ways


def test_a_file_arrives_whole_and_progress_says_how_far_it_is(files: ServedFiles, target: Path) -> None:
    reports: list[tuple[int, int]] = []

    download = anyio.run(lambda: fetch_and_place(files.build_url("/file"), target, reports=reports))

    assert download is not None
    assert (download.sha256, download.bytes, download.resumed) == (CONTENT_SHA256, len(FILE_CONTENT), 0)
    assert target.read_bytes() == FILE_CONTENT
    assert list_leftovers(target) == {"file"}
    assert reports[-1] == (len(FILE_CONTENT), len(FILE_CONTENT))
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})


def test_a_redirect_is_followed_to_the_file(files: ServedFiles, target: Path) -> None:
    files.special_handlers["/old"] = lambda handler: handler.send_reply(302, Location="/older")
    files.special_handlers["/older"] = lambda handler: handler.send_reply(301, Location=files.build_url("/file"))

    assert fetch_file(files.build_url("/old"), target, sha256=CONTENT_SHA256).sha256 == CONTENT_SHA256


@pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "{}", "../cache/source"])
def test_a_file_on_disk_is_a_source_too(form: str, target: Path) -> None:
    source = target.parent / "source"
    source.write_bytes(FILE_CONTENT)

    assert fetch_file(f"{form.format(source)}#sha256={CONTENT_SHA256}", target).bytes == len(FILE_CONTENT)

    assert list_leftovers(target) == {"source", "file"}


def test_nothing_comes_when_the_file_in_place_is_the_newest(files: ServedFiles, target: Path) -> None:
    first = fetch_file(files.build_url("/file"), target)

    second = anyio.run(lambda: fetch_and_place(files.build_url("/file"), target, etag=first.etag))
    files.content["/file"] = b"new"
    changed = anyio.run(lambda: fetch_and_place(files.build_url("/file"), target, etag=first.etag))

    assert second is None
    assert changed is not None
    assert target.read_bytes() == b"new"


def test_a_file_replaces_a_link_and_does_not_follow_it(files: ServedFiles, target: Path) -> None:
    other = target.parent.parent / "other"
    other.write_bytes(b"mine")
    target.symlink_to(other)
    target.with_name(".file.part").symlink_to(other)

    fetch_file(files.build_url("/file"), target)

    assert other.read_bytes() == b"mine"
    assert not target.is_symlink()


# Going on


def serve_half(files: ServedFiles) -> None:
    """Announce the full length, send half, and close the connection."""

    def reply(handler: FileRequestHandler) -> None:
        headers = {"ETag": _make_etag(FILE_CONTENT)} if files.validators else {}
        handler.send_reply(200, FILE_CONTENT[: len(FILE_CONTENT) // 2], Content_Length=len(FILE_CONTENT), **headers)
        handler.hang_up()

    files.special_handlers["/file"] = reply


def _make_etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def test_a_broken_download_goes_on_where_it_broke(files: ServedFiles, target: Path) -> None:
    serve_half(files)
    error = fetch_refused(files.build_url("/file"), target)
    del files.special_handlers["/file"]

    download = fetch_file(files.build_url("/file"), target)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert error.retryable
    assert download.resumed == len(FILE_CONTENT) // 2
    assert (download.sha256, target.read_bytes()) == (CONTENT_SHA256, FILE_CONTENT)
    assert files.list_header_values("range") == ["", f"bytes={len(FILE_CONTENT) // 2}-"]
    assert files.list_header_values("if-range") == ["", _make_etag(FILE_CONTENT)]
    assert list_leftovers(target) == {"file"}


def test_a_broken_download_starts_anew_when_the_file_has_changed(files: ServedFiles, target: Path) -> None:
    serve_half(files)
    fetch_refused(files.build_url("/file"), target)
    del files.special_handlers["/file"]
    files.content["/file"] = b"other"

    assert fetch_file(files.build_url("/file"), target).resumed == 0

    assert target.read_bytes() == b"other"


@pytest.mark.parametrize(
    "lie",
    [
        {"Content_Range": f"bytes 0-9/{len(FILE_CONTENT)}"},
        {"Content_Range": "bytes 256000-256009/256010", "ETag": '"other"'},
        {"Content_Range": "nonsense"},
        {},
    ],
)
def test_a_range_that_does_not_fit_is_not_appended(lie: dict[str, str], files: ServedFiles, target: Path) -> None:
    serve_half(files)
    fetch_refused(files.build_url("/file"), target)

    def reply(handler: FileRequestHandler) -> None:
        if handler.headers.get("Range"):
            handler.send_reply(206, b"0123456789", **lie)
        else:
            handler.send_reply(200, FILE_CONTENT)

    files.special_handlers["/file"] = reply

    assert fetch_file(files.build_url("/file"), target).resumed == 0
    assert target.read_bytes() == FILE_CONTENT


def test_without_a_validator_a_broken_download_starts_anew(files: ServedFiles, target: Path) -> None:
    files.validators = False
    serve_half(files)
    fetch_refused(files.build_url("/file"), target)
    del files.special_handlers["/file"]

    assert fetch_file(files.build_url("/file"), target).resumed == 0
    assert files.list_header_values("range") == ["", ""]


def test_bytes_of_another_file_are_not_gone_on_with(files: ServedFiles, target: Path) -> None:
    files.content["/other"] = b"x" * 999_999
    serve_half(files)
    fetch_refused(files.build_url("/file"), target)

    assert fetch_file(files.build_url("/other"), target).resumed == 0
    assert target.read_bytes() == b"x" * 999_999


def test_a_cancelled_download_leaves_only_what_the_next_goes_on_with(files: ServedFiles, target: Path) -> None:
    go_on = threading.Event()

    def reply_slowly(handler: FileRequestHandler) -> None:
        handler.send_reply(200, FILE_CONTENT[:70_000], Content_Length=len(FILE_CONTENT), ETag=_make_etag(FILE_CONTENT))
        handler.wfile.flush()
        go_on.wait(60)
        handler.hang_up()

    files.special_handlers["/file"] = reply_slowly

    async def main() -> None:
        with anyio.CancelScope() as scope:
            request = make_request(files.build_url("/file"), target)

            def stop(done: int, total: int) -> None:
                if done == 70_000:
                    scope.cancel()

            async with download_file(request, make_policy(target), stop):
                pytest.fail("it must not arrive")

    anyio.run(main)
    go_on.set()

    assert list_leftovers(target) == {".file.part", ".file.part.json"}
    del files.special_handlers["/file"]
    assert fetch_file(files.build_url("/file"), target).resumed == 70_000
    assert (target.read_bytes(), list_leftovers(target)) == (FILE_CONTENT, {"file"})


# Refusals


def test_a_wrong_hash_puts_nothing_in_place_and_leaves_nothing(files: ServedFiles, target: Path) -> None:
    for pinned in (f"#sha256={'0' * 64}", ""):
        error = fetch_refused(files.build_url("/file") + pinned, target, sha256="1" * 64)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert CONTENT_SHA256 in error.message
        assert list_leftovers(target) == set()


def test_a_file_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(
    files: ServedFiles, target: Path
) -> None:
    def reply_endlessly(handler: FileRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            try:
                handler.wfile.write(b"x" * 50_000)
            except OSError:
                return

    files.special_handlers |= {
        "/says": lambda handler: handler.send_reply(200, b"", Content_Length=SIZE_LIMIT_BYTES + 1),
        "/is": reply_endlessly,
    }
    (target.parent / "big").write_bytes(b"x" * (SIZE_LIMIT_BYTES + 1))
    for address in (files.build_url("/says"), files.build_url("/is"), str(target.parent / "big")):
        error = fetch_refused(address, target)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert not error.retryable
        assert list_leftovers(target) == {"big"}


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
    status: int, code: ErrorCode, retryable: bool, files: ServedFiles, target: Path
) -> None:
    files.special_handlers["/odd"] = lambda handler: handler.send_reply(status)

    error = fetch_refused(files.build_url("/odd"), target)

    assert (error.code, error.retryable) == (code, retryable)
    assert str(status) in error.message
    assert list_leftovers(target) == set()


@pytest.mark.parametrize(
    "location",
    ["/loop", "file:///etc/passwd", "ftp://127.0.0.1/x", "", "http://", "http://u:p@127.0.0.1/"],
)
def test_a_redirect_that_leads_nowhere_is_refused(location: str, files: ServedFiles, target: Path) -> None:
    files.special_handlers["/loop"] = lambda handler: handler.send_reply(302, Location=location)

    error = fetch_refused(files.build_url("/loop"), target)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert not error.retryable
    assert len(files.requests) <= 6


def test_a_redirect_to_a_host_that_is_not_allowed_is_refused(files: ServedFiles, target: Path) -> None:
    files.special_handlers["/out"] = lambda handler: handler.send_reply(302, Location="http://localhost:1/file")

    assert fetch_refused(files.build_url("/out"), target).code is ErrorCode.FORBIDDEN


def test_a_compressed_answer_is_refused(files: ServedFiles, target: Path) -> None:
    files.special_handlers["/gz"] = lambda handler: handler.send_reply(200, b"x", Content_Encoding="gzip")

    assert "gzip" in fetch_refused(files.build_url("/gz"), target).message


def test_nonsense_instead_of_an_answer_is_worth_another_try(files: ServedFiles, target: Path) -> None:
    def reply_nonsense(handler: FileRequestHandler) -> None:
        handler.wfile.write(b"\x00\x01 nonsense\r\n\r\n")
        handler.hang_up()

    files.special_handlers["/odd"] = reply_nonsense

    error = fetch_refused(files.build_url("/odd"), target)

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, True)


def test_nobody_listening_is_worth_another_try(target: Path) -> None:
    with socket.socket() as idle_socket:
        idle_socket.bind(("127.0.0.1", 0))  # and not listening, so that nobody else does
        error = fetch_refused(f"http://127.0.0.1:{idle_socket.getsockname()[1]}/file", target)

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, True)


def test_a_file_that_is_missing_or_no_file_is_refused(target: Path) -> None:
    os.mkfifo(target.parent / "pipe")

    assert fetch_refused(str(target.parent / "missing"), target).code is ErrorCode.NOT_FOUND
    assert fetch_refused(str(target.parent / "pipe"), target).code is ErrorCode.INVALID_REQUEST
    assert fetch_refused(str(target.parent), target).code is ErrorCode.INVALID_REQUEST
