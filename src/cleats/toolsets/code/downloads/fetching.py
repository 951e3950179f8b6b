"""Downloading a source to a verified file, within the size limit and with the expected hash.

The caller receives the downloaded file, inspects it, and then moves it into place or drops it. A cancelled call or a
broken connection keeps the bytes for the next attempt to resume; bytes that turn out to be wrong are removed.
"""

import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec
from anyio import from_thread, to_thread
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import replace_text, sync_path
from cleats.system.safe_paths import NotRegularFileError, open_regular_file
from cleats.toolsets.code.downloads.sources import DownloadPolicy, DownloadSource, open_response

if TYPE_CHECKING:
    from httpx2 import Response

READ_CHUNK_BYTES: Final = 1 << 20
_WRITE_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class DownloadOrigin(Struct, frozen=True, omit_defaults=True):
    """The file and version that the bytes come from."""

    url: str
    etag: str = ""
    modified: str = ""
    total: int = 0

    @property
    def resume_validator(self) -> str:
        """The `If-Range` value that limits a resumed download to the same file, or empty."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified


# At import: the process crashes if two threads show msgspec a new type at the same time.
_decode_origin = msgspec.json.Decoder(DownloadOrigin).decode


class PartialDownload:
    """The bytes downloaded so far."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.part")
        self._origin_path = target.with_name(f".{target.name}.part.json")
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self.size = 0

    def read_origin(self, url: str) -> DownloadOrigin | None:
        """Return the origin of the existing bytes, or None if they cannot be reused."""
        try:
            origin = _decode_origin(self._origin_path.read_bytes())
            size = self.path.lstat().st_size
        except (OSError, msgspec.MsgspecError):
            return None
        can_continue = size > 0 and (not origin.total or size < origin.total)
        return origin if origin.url == url and origin.resume_validator and can_continue else None

    def restart(self, origin: DownloadOrigin) -> None:
        """Start an empty download."""
        self.discard()
        replace_text(self._origin_path, msgspec.json.encode(origin).decode())
        self._open()

    def resume(self) -> None:
        """Continue after the existing bytes."""
        file = self._open()
        while block := file.read(READ_CHUNK_BYTES):
            self._hash.update(block)
            self.size += len(block)

    def _open(self) -> BinaryIO:
        self._file = os.fdopen(os.open(self.path, _WRITE_FLAGS, 0o644), "r+b")
        return self._file

    def write(self, block: bytes) -> None:
        assert self._file is not None  # noqa: S101 - it was restarted or resumed
        self._file.write(block)
        self._hash.update(block)
        self.size += len(block)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Flush the bytes to disk; they can then be read from the path."""
        self.close()
        sync_path(self.path)

    def move_to_target(self) -> None:
        """Replace the target with the downloaded file in one step."""
        self.path.replace(self.target)
        sync_path(self.target.parent)
        self.discard()

    def discard(self) -> None:
        """Delete the downloaded bytes and their origin."""
        self.close()
        for path in (self._origin_path, self.path):
            with suppress(FileNotFoundError):
                path.unlink()
        self._hash, self.size = hashlib.sha256(), 0

    def close(self) -> None:
        """Close the file and keep its bytes."""
        if self._file is not None:
            self._file.close()
            self._file = None


def hash_file(path: Path) -> str | None:
    """Return the SHA-256 of a file, or None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


DownloadProgressCallback = Callable[[int, int], None]
"""Receives the bytes read so far and the total, or 0 if the total is unknown."""

_CONTENT_RANGE_PATTERN = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """A file to download, and the facts known about it."""

    source: DownloadSource
    target: Path
    repository: Path
    sha256: str = ""
    """The required hash; a hash in the source itself takes precedence."""
    etag: str = ""
    modified: str = ""
    """Validators of the file in place: nothing is downloaded if the source has the same version."""

    @property
    def expected_sha256(self) -> str:
        return self.source.sha256 or self.sha256


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A verified file that is not in place yet."""

    path: Path
    sha256: str
    bytes: int
    etag: str
    modified: str
    resumed: int
    """Bytes that an earlier call had downloaded."""
    move_to_target: Callable[[], None]
    """Moves the file to its target."""


@asynccontextmanager
async def download_file(
    request: DownloadRequest, policy: DownloadPolicy, on_progress: DownloadProgressCallback
) -> AsyncIterator[DownloadedFile | None]:
    """Download a file; yield None if the file in place is still current.

    A file that is not moved to its target is removed at the end of the block.

    Raises:
        ToolError: FORBIDDEN, NOT_FOUND, INVALID_REQUEST or DOWNLOAD_VERIFY_FAILED.
    """
    with closing(PartialDownload(request.target)) as partial:
        transfer = _DownloadTransfer(request, policy, on_progress, partial)
        origin = await (transfer.fetch_from_web() if request.source.path is None else transfer.copy_from_disk())
        if origin is None:
            yield None
            return
        try:
            if request.expected_sha256 not in ("", partial.sha256):
                reason = f"its sha256 is {partial.sha256}, not {request.expected_sha256}"
                raise _verification_error(request.source, reason)
            await to_thread.run_sync(partial.finish)
            yield DownloadedFile(
                partial.path,
                partial.sha256,
                partial.size,
                origin.etag,
                origin.modified,
                transfer.resumed,
                partial.move_to_target,
            )
        finally:
            partial.discard()


@dataclass(slots=True)
class _DownloadTransfer:
    request: DownloadRequest
    policy: DownloadPolicy
    on_progress: DownloadProgressCallback
    partial: PartialDownload
    resumed: int = 0

    async def copy_from_disk(self) -> DownloadOrigin:
        path = self.policy.resolve_file(self.request.source, self.request.repository)
        try:
            await to_thread.run_sync(self._copy_file, path)
        except BaseException:
            self.partial.discard()  # copying again is as fast as checking the existing bytes
            raise
        self.on_progress(self.partial.size, self.partial.size)
        return DownloadOrigin(self.request.source.url)

    def _copy_file(self, path: Path) -> None:
        with _open_local_file(path, self.request.source) as file:
            self._check_size(os.fstat(file.fileno()).st_size)
            self.partial.restart(DownloadOrigin(self.request.source.url))
            while block := file.read(READ_CHUNK_BYTES):
                from_thread.check_cancelled()
                self._check_size(self.partial.size + len(block))
                self.partial.write(block)

    async def fetch_from_web(self) -> DownloadOrigin | None:
        """Download the file, resuming if the server still has the same version."""
        source = self.request.source
        origin = self.partial.read_origin(source.url)
        if origin is not None:
            offset = self.partial.path.lstat().st_size
            request_headers = {"range": f"bytes={offset}-", "if-range": origin.resume_validator}
            async with open_response(source, self.policy, request_headers) as response:
                if response.status_code == 206 and _can_resume(response, origin, offset):
                    await to_thread.run_sync(self.partial.resume)
                    self.resumed = offset
                    await self._read_body(response, origin.total)
                    return origin
                if response.status_code == 200:
                    return await self._read_full_response(response)
            self.partial.discard()
        conditions = {"if-none-match": self.request.etag, "if-modified-since": self.request.modified}
        request_headers = {name: value for name, value in conditions.items() if value}
        async with open_response(source, self.policy, request_headers) as response:
            if response.status_code == 304 and request_headers:
                return None
            if response.status_code != 200:
                raise _verification_error(source, f"the server sent an unexpected status {response.status_code}")
            return await self._read_full_response(response)

    async def _read_full_response(self, response: "Response") -> DownloadOrigin:
        headers = response.headers
        length = headers.get("content-length", "")
        origin = DownloadOrigin(
            self.request.source.url,
            headers.get("etag", ""),
            headers.get("last-modified", ""),
            int(length) if length.isdigit() and len(length) < 19 else 0,
        )
        self._check_size(origin.total)
        await to_thread.run_sync(self.partial.restart, origin)
        await self._read_body(response, origin.total)
        return origin

    async def _read_body(self, response: "Response", total: int) -> None:
        partial = self.partial
        async for block in response.aiter_raw():
            self._check_size(partial.size + len(block))
            partial.write(block)
            self.on_progress(partial.size, total)
        if total and partial.size != total:
            error = _verification_error(
                self.request.source, f"{partial.size:,} bytes were received instead of {total:,}"
            )
            if partial.size > total:
                partial.discard()
            raise error

    def _check_size(self, size: int) -> None:
        if size <= self.policy.limit:
            return
        self.partial.discard()
        raise ToolError(
            ErrorCode.DOWNLOAD_VERIFY_FAILED,
            f"{self.request.source.public_url} has more than {self.policy.limit:,} bytes. Nothing was installed.",
            hint="Raise CLEATS_DOWNLOAD_LIMIT to allow larger downloads.",
            retryable=False,
        )


def _can_resume(response: "Response", origin: DownloadOrigin, offset: int) -> bool:
    """Return whether a response continues the same file exactly where the existing bytes end."""
    match = _CONTENT_RANGE_PATTERN.fullmatch(response.headers.get("content-range", ""))
    if match is None or int(match[1]) != offset:
        return False
    total = 0 if match[3] == "*" else int(match[3])
    same_total = not total or not origin.total or total == origin.total
    return same_total and bool(response.headers.get("etag", origin.etag) == origin.etag)


def _open_local_file(path: Path, source: DownloadSource) -> BinaryIO:
    try:
        return open_regular_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(
            ErrorCode.NOT_FOUND, f"The file {source.public_url} does not exist.", hint="Check the path."
        ) from None
    except NotRegularFileError:
        message = f"{source.public_url} is not a regular file."
        raise ToolError(ErrorCode.INVALID_REQUEST, message, hint="Give the path of a file.") from None
    except OSError as error:
        message = f"{source.public_url} cannot be read: {error.strerror}."
        raise ToolError(ErrorCode.FORBIDDEN, message, hint="Check its permissions.") from None


def _verification_error(source: DownloadSource, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.public_url} failed verification: {reason}. Nothing was installed.",
        hint="Retry; if it fails again, check the address and the sha256.",
    )
