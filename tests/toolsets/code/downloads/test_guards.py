"""Downloads over TLS, to the address that was checked; and two downloads at once."""

import asyncio
import errno
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import anyio
import httpx2
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import FileLock, try_exclusive_lock
from cleats.toolsets.code.downloads import dictionaries, sources, targets
from cleats.toolsets.code.downloads.fetching import DownloadRequest, download_file
from cleats.toolsets.code.downloads.sources import DownloadPolicy
from cleats.toolsets.code.downloads.targets import LOCK_FILENAME, lock_folder
from tests.support.file_server import ServedFiles, serve_files
from tests.support.waiting import WAIT_TIMEOUT_SECONDS

OPEN_POLICY = DownloadPolicy(("*",), (), 1 << 20)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a key and a certificate for the name `localhost` only."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    folder = tmp_path_factory.mktemp("identity")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    return folder


def fetch_sha256(url: str, folder: Path) -> str:
    async def main() -> str:
        request = DownloadRequest(sources.parse_source(url, folder), folder / "file", folder)
        async with download_file(request, OPEN_POLICY, lambda *_: None) as download:
            assert download is not None
            return download.sha256

    return anyio.run(main)


def test_a_certificate_must_be_known_and_of_the_name_in_the_url(
    identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity / "cert.pem", identity / "key.pem")
    ssl_context = ssl.create_default_context(cafile=str(identity / "cert.pem"))

    with serve_files(ServedFiles({"/file": b"hello"}), server) as files:
        localhost_url = files.build_url("/file").replace("127.0.0.1", "localhost")
        with pytest.raises(ToolError) as unknown:
            fetch_sha256(localhost_url, tmp_path)
        monkeypatch.setattr(httpx2, "create_ssl_context", lambda **_: ssl_context)
        with pytest.raises(ToolError) as other:
            fetch_sha256(files.build_url("/file"), tmp_path)
        sha256 = fetch_sha256(localhost_url, tmp_path)

    assert "CERTIFICATE_VERIFY_FAILED" in unknown.value.message
    assert "CERTIFICATE_VERIFY_FAILED" in other.value.message
    assert other.value.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert sha256.startswith("2cf24dba")
    assert [request.headers["host"] for request in files.requests] == [localhost_url.split("/")[2]]


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved_hosts = []

    async def resolve_host(self: DownloadPolicy, host: str, port: int) -> str:
        resolved_hosts.append(host)
        return "127.0.0.1"

    monkeypatch.setattr(DownloadPolicy, "resolve_host", resolve_host)
    with serve_files(ServedFiles({"/file": b"hello"})) as files:
        fetch_sha256(files.build_url("/file").replace("127.0.0.1", "name.invalid"), tmp_path)

    assert resolved_hosts == ["name.invalid"]  # no other name was looked up: this one has no address


def test_two_downloads_of_one_list_do_not_disturb_each_other(tmp_path: Path) -> None:
    with serve_files(ServedFiles({"/de.txt": b"haus\n"})) as files:
        word_lists = dictionaries.parse_named_sources(f"de={files.build_url('/de.txt')}", tmp_path)
        folders = [dictionaries.DictionaryFolder(tmp_path / "words", tmp_path, OPEN_POLICY) for _ in range(3)]

        async def main() -> None:
            async with anyio.create_task_group() as group:
                for folder in folders:
                    group.start_soon(folder.ensure_dictionaries, None, word_lists, lambda *_: None)

        anyio.run(main)

    assert len(files.requests) == 1
    assert sum(len(folder.downloaded) for folder in folders) == 1
    assert [entry["reason"] for folder in folders for entry in folder.skipped] == ["present"] * 2


def test_a_folder_is_left_without_a_lock_however_the_work_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with lock_folder(tmp_path / "a"):
            assert (tmp_path / "a" / LOCK_FILENAME).exists()
            raise KeyError

    with pytest.raises(KeyError):
        anyio.run(main)

    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (errno.ENOSPC, ErrorCode.INTERNAL, True),
        (errno.EACCES, ErrorCode.FORBIDDEN, False),
        (errno.EROFS, ErrorCode.FORBIDDEN, False),
    ],
)
def test_a_disk_that_is_full_or_closed_is_said_to_be(
    number: int, code: ErrorCode, retryable: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        async with lock_folder(tmp_path / "a"):
            raise OSError(number, "because")

    with pytest.raises(ToolError) as refused:
        anyio.run(main)

    assert (refused.value.code, refused.value.retryable) == (code, retryable)


def test_a_download_that_is_withdrawn_while_it_claims_its_folder_leaves_it_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claiming, go_on = threading.Event(), threading.Event()

    def claim_slowly(path: Path) -> FileLock | None:
        claiming.set()
        go_on.wait(WAIT_TIMEOUT_SECONDS)
        return try_exclusive_lock(path)

    async def download() -> str:
        async with lock_folder(tmp_path):
            return "had"

    async def main() -> str:
        withdrawn = asyncio.create_task(download())
        await asyncio.to_thread(claiming.wait, WAIT_TIMEOUT_SECONDS)
        withdrawn.cancel()
        await asyncio.wait({withdrawn})
        go_on.set()
        with anyio.fail_after(WAIT_TIMEOUT_SECONDS):
            return await download()

    monkeypatch.setattr(targets, "try_exclusive_lock", claim_slowly)

    assert asyncio.run(main()) == "had"
