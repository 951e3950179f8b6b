"""A source becomes a checked file: as large as it may be, with the hash that it must have.

What arrives is handed to the caller, who looks into it and then puts it in place or does not. A
call that is cancelled, or a connection that breaks, leaves the bytes for the next one to go on
with; bytes that turn out to be wrong are removed.
"""

import os
import re
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from anyio import from_thread, to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.downloads import web
from cleats.toolsets.code.downloads.partial import PIECE, Origin, Partial
from cleats.toolsets.code.downloads.sources import Policy, Source

if TYPE_CHECKING:
    from httpx2 import Response

Report = Callable[[int, int], None]
"""Told the bytes so far and, if that is known, of how many; 0 otherwise."""

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Order:
    """What to fetch, and what is known about it."""

    source: Source
    target: Path
    repository: Path
    sha256: str = ""
    """What it must be; what the source itself says goes before."""
    etag: str = ""
    modified: str = ""
    """Of the file that is in place: nothing comes when the source still has the same."""

    @property
    def expected(self) -> str:
        return self.source.sha256 or self.sha256


@dataclass(frozen=True, slots=True)
class Arrived:
    """A file that is what it should be, but not in place yet."""

    path: Path
    sha256: str
    bytes: int
    etag: str
    modified: str
    resumed: int
    """Bytes that an earlier call had fetched."""
    place: Callable[[], None]
    """Puts it at its target."""


@asynccontextmanager
async def fetched(order: Order, policy: Policy, report: Report) -> AsyncIterator[Arrived | None]:
    """Fetch a file; None when the one in place is still the newest.

    What is not placed is removed when the block is left.

    Raises:
        ToolError: FORBIDDEN, NOT_FOUND, INVALID_REQUEST or DOWNLOAD_VERIFY_FAILED.
    """
    with Partial(order.target) as partial:
        fetch = _Fetch(order, policy, report, partial)
        origin = await (fetch.from_web() if order.source.path is None else fetch.from_disk())
        if origin is None:
            yield None
            return
        try:
            _check_hash(order, partial.sha256)
            await to_thread.run_sync(partial.finish)
            yield Arrived(
                partial.path,
                partial.sha256,
                partial.size,
                origin.etag,
                origin.modified,
                fetch.resumed,
                partial.place,
            )
        finally:
            partial.discard()


@dataclass(slots=True)
class _Fetch:
    """Bytes on their way from a source to the partial file."""

    order: Order
    policy: Policy
    report: Report
    partial: Partial
    resumed: int = 0

    async def from_disk(self) -> Origin:
        path = self.policy.check_file(self.order.source, self.order.repository)
        try:
            await to_thread.run_sync(self._copy, path)
        except BaseException:
            self.partial.discard()  # to copy it again is as fast as to check what is there
            raise
        self.report(self.partial.size, self.partial.size)
        return Origin(self.order.source.url)

    def _copy(self, path: Path) -> None:
        with _plain(path, self.order.source) as file:
            self._check_size(os.fstat(file.fileno()).st_size)
            self.partial.restart(Origin(self.order.source.url))
            while piece := file.read(PIECE):
                from_thread.check_cancelled()
                self._check_size(self.partial.size + len(piece))
                self.partial.write(piece)

    async def from_web(self) -> Origin | None:
        """The bytes, by going on with those that are there if the server has the same file."""
        source = self.order.source
        earlier = self.partial.origin(source.url)
        if earlier is not None:
            at = self.partial.present
            asked = {"range": f"bytes={at}-", "if-range": earlier.condition}
            async with web.answered(source, self.policy, asked) as response:
                if response.status_code == 206 and _continues(response, earlier, at):
                    await to_thread.run_sync(self.partial.resume)
                    self.resumed = at
                    await self._read(response, earlier.total)
                    return earlier
                if response.status_code == 200:
                    return await self._whole(response)
            self.partial.discard()
        conditions = {"if-none-match": self.order.etag, "if-modified-since": self.order.modified}
        asked = {name: value for name, value in conditions.items() if value}
        async with web.answered(source, self.policy, asked) as response:
            if response.status_code == 304 and asked:
                return None
            if response.status_code != 200:
                raise _wrong(source, f"the server says {response.status_code}, unasked")
            return await self._whole(response)

    async def _whole(self, response: "Response") -> Origin:
        headers = response.headers
        length = headers.get("content-length", "")
        origin = Origin(
            self.order.source.url,
            headers.get("etag", ""),
            headers.get("last-modified", ""),
            int(length) if length.isdigit() and len(length) < 19 else 0,
        )
        self._check_size(origin.total)
        await to_thread.run_sync(self.partial.restart, origin)
        await self._read(response, origin.total)
        return origin

    async def _read(self, response: "Response", total: int) -> None:
        partial = self.partial
        async for piece in response.aiter_raw():
            self._check_size(partial.size + len(piece))
            partial.write(piece)
            self.report(partial.size, total)
        if total and partial.size != total:
            came = partial.size
            if came > total:
                partial.discard()
            raise _wrong(self.order.source, f"{came:,} bytes came instead of {total:,}")

    def _check_size(self, size: int) -> None:
        if size <= self.policy.limit:
            return
        self.partial.discard()
        raise ToolError(
            ErrorCode.DOWNLOAD_VERIFY_FAILED,
            f"{self.order.source.shown} has more than {self.policy.limit:,} bytes. "
            "Nothing was put in place.",
            hint="CLEATS_DOWNLOAD_LIMIT allows larger downloads.",
            retryable=False,
        )


def _continues(response: "Response", earlier: Origin, at: int) -> bool:
    """Whether an answer goes on where the bytes end, with the same file."""
    found = _RANGE.fullmatch(response.headers.get("content-range", ""))
    if found is None or int(found[1]) != at:
        return False
    total = 0 if found[3] == "*" else int(found[3])
    known = not total or not earlier.total or total == earlier.total
    return known and bool(response.headers.get("etag", earlier.etag) == earlier.etag)


def _plain(path: Path, source: Source) -> BinaryIO:
    try:
        descriptor = os.open(path, _OPEN)  # without waiting: it may be a pipe
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(
            ErrorCode.NOT_FOUND, f"There is no file {source.shown}.", hint="Check the path."
        ) from None
    except OSError as error:
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{source.shown} cannot be read: {error.strerror}.",
            hint="Check who may read it.",
        ) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{source.shown} is no plain file.",
            hint="Give the path of a file.",
        )
    return os.fdopen(descriptor, "rb")


def _check_hash(order: Order, sha256: str) -> None:
    if order.expected and sha256 != order.expected:
        why = f"its sha256 is {sha256}, not {order.expected}"
        raise _wrong(order.source, why)


def _wrong(source: Source, why: str) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.shown} is not what it should be: {why}. Nothing was put in place.",
        hint="Try again; if it stays so, check the address and the sha256.",
    )
