"""Fetching over TLS, to the address that was checked; and two downloads at once."""

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
from cleats.toolsets.code.downloads import dictionaries, places, sources
from cleats.toolsets.code.downloads.fetching import Order, fetched
from cleats.toolsets.code.downloads.places import LOCK, held
from cleats.toolsets.code.downloads.sources import Policy
from cleats.toolsets.code.store.locks import Lock, claim
from tests.file_server import Files, serving
from tests.waiting import LIMIT

ANYWHERE = Policy(("*",), (), 1 << 20)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of the name `localhost`, and no other."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    folder = tmp_path_factory.mktemp("identity")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(
        ["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True
    )
    return folder


def fetch(url: str, folder: Path) -> str:
    async def main() -> str:
        order = Order(sources.read(url, folder), folder / "file", folder)
        async with fetched(order, ANYWHERE, lambda *_: None) as arrived:
            assert arrived is not None
            return arrived.sha256

    return anyio.run(main)


def test_a_certificate_must_be_known_and_of_the_name_in_the_url(
    identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity / "cert.pem", identity / "key.pem")
    known = ssl.create_default_context(cafile=str(identity / "cert.pem"))

    with serving(Files({"/file": b"hello"}), server) as files:
        named = files.url("/file").replace("127.0.0.1", "localhost")
        with pytest.raises(ToolError) as unknown:
            fetch(named, tmp_path)
        monkeypatch.setattr(httpx2, "create_ssl_context", lambda **_: known)
        with pytest.raises(ToolError) as other:
            fetch(files.url("/file"), tmp_path)
        sha256 = fetch(named, tmp_path)

    assert "CERTIFICATE_VERIFY_FAILED" in unknown.value.message
    assert "CERTIFICATE_VERIFY_FAILED" in other.value.message
    assert other.value.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert sha256.startswith("2cf24dba")
    assert [seen.headers["host"] for seen in files.seen] == [named.split("/")[2]]


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def changing(self: Policy, host: str, port: int) -> str:
        asked.append(host)
        return "127.0.0.1"

    monkeypatch.setattr(Policy, "address", changing)
    with serving(Files({"/file": b"hello"})) as files:
        fetch(files.url("/file").replace("127.0.0.1", "name.invalid"), tmp_path)

    assert asked == ["name.invalid"]  # no other name was looked up: this one has no address


def test_two_downloads_of_one_list_do_not_disturb_each_other(tmp_path: Path) -> None:
    with serving(Files({"/de.txt": b"haus\n"})) as files:
        given = dictionaries.named(f"de={files.url('/de.txt')}", tmp_path)
        shelves = [dictionaries.Shelf(tmp_path / "words", tmp_path, ANYWHERE) for _ in range(3)]

        async def main() -> None:
            async with anyio.create_task_group() as group:
                for shelf in shelves:
                    group.start_soon(shelf.bring, None, given, lambda *_: None)

        anyio.run(main)

    assert len(files.seen) == 1
    assert sum(len(shelf.downloaded) for shelf in shelves) == 1
    assert [each["reason"] for shelf in shelves for each in shelf.skipped] == ["present"] * 2


def test_a_folder_is_left_without_a_lock_however_the_work_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with held(tmp_path / "a"):
            assert (tmp_path / "a" / LOCK).exists()
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
        async with held(tmp_path / "a"):
            raise OSError(number, "because")

    with pytest.raises(ToolError) as refused:
        anyio.run(main)

    assert (refused.value.code, refused.value.retryable) == (code, retryable)


def test_a_download_that_is_withdrawn_while_it_claims_its_folder_leaves_it_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claiming, go_on = threading.Event(), threading.Event()

    def slowly(path: Path) -> Lock | None:
        claiming.set()
        go_on.wait(LIMIT)
        return claim(path)

    async def download() -> str:
        async with held(tmp_path):
            return "had"

    async def main() -> str:
        withdrawn = asyncio.create_task(download())
        await asyncio.to_thread(claiming.wait, LIMIT)
        withdrawn.cancel()
        await asyncio.wait({withdrawn})
        go_on.set()
        with anyio.fail_after(LIMIT):
            return await download()

    monkeypatch.setattr(places, "claim", slowly)

    assert asyncio.run(main()) == "had"
