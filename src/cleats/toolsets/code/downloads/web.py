"""One GET, over as many redirects as are reasonable, to an address that was checked.

The environment's proxies and passwords are not used: what a tool talks to is what its arguments
and the operator's settings say.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.code.downloads import sources
from cleats.toolsets.code.downloads.sources import PORTS, Policy, Source

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

CONNECT, SILENCE = 15.0, 30.0
"""Seconds until a host must have answered, and between two pieces of an answer."""

REDIRECTS: Final = 5

_HEADERS: Final = {
    "accept": "*/*",
    "accept-encoding": "identity",  # sizes, ranges and hashes are those of the file itself
    "user-agent": f"cleats/{TOOLING_VERSION}",
}

_MOVED: Final = (301, 302, 303, 307, 308)
_LATER: Final = (408, 425, 429, 500, 502, 503, 504)


@asynccontextmanager
async def answered(
    source: Source, policy: Policy, headers: Mapping[str, str]
) -> "AsyncIterator[Response]":
    """The answer to a GET, its body unread: 200, 206, 304 or 416.

    Raises:
        ToolError: for every other answer, and when none comes.
    """
    from httpx2 import AsyncClient, Timeout, create_ssl_context  # noqa: PLC0415 - heavy

    timeout = Timeout(SILENCE, connect=CONNECT)
    trust = await to_thread.run_sync(partial(create_ssl_context, trust_env=False))
    with _explained(source):
        async with AsyncClient(timeout=timeout, trust_env=False, verify=trust) as client:
            url = source.url
            for _ in range(REDIRECTS + 1):
                response = await _get(client, url, policy, headers)
                try:
                    if response.status_code not in _MOVED:
                        _check(response, source)
                        yield response
                        return
                    url = _next(url, response.headers.get("location", ""), source)
                finally:
                    await response.aclose()
    raise _failed(source, f"it leads on more than {REDIRECTS} times", retryable=False)


async def _get(
    client: "AsyncClient", url: str, policy: Policy, headers: Mapping[str, str]
) -> "Response":
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or PORTS[parts.scheme]
    address = await policy.address(host, port)
    shown = f"[{address}]" if ":" in address else address
    request = client.build_request(
        "GET",
        parts._replace(netloc=f"{shown}:{port}").geturl(),
        headers={**_HEADERS, **headers, "host": parts.netloc},
        extensions={"sni_hostname": host},
    )
    return await client.send(request, stream=True, follow_redirects=False)


def _next(url: str, location: str, source: Source) -> str:
    try:
        following = sources.read(urljoin(url, location.partition("#")[0]), Path())
    except (ToolError, ValueError):
        following = None
    if not location or following is None or following.path is not None:
        raise _failed(source, "it leads to an address that cannot be used", retryable=False)
    if url.startswith("https:") and not following.encrypted:
        raise _failed(source, "it leads from https to http", retryable=False)
    return following.url


def _check(response: "Response", source: Source) -> None:
    status = response.status_code
    said = f"the server says {status} {_phrase(status)}".rstrip()
    if status in (404, 410):
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is nothing at {source.shown}: {said}.",
            hint="Check the address.",
        )
    if status in (401, 403, 407):
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{source.shown} may not be read: {said}.",
            hint="Use an address that needs no password, or fetch the file and give its path.",
        )
    if status not in (200, 206, 304, 416):
        raise _failed(source, said, retryable=status in _LATER)
    encoding = response.headers.get("content-encoding", "identity")
    if encoding not in ("", "identity"):
        raise _failed(source, f"it is sent as {encoding[:40]!r}, unasked", retryable=False)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    """What can go wrong on the way, as errors for the caller."""
    import ssl  # noqa: PLC0415

    import httpx2  # noqa: PLC0415

    try:
        yield
    except httpx2.TimeoutException:
        raise _failed(source, "the server is silent", retryable=True) from None
    except httpx2.RemoteProtocolError as error:
        raise _failed(source, f"the answer broke off ({error})", retryable=True) from None
    except (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError) as error:
        why = f"the server cannot be reached ({str(error) or type(error).__name__})"
        raise _failed(source, why, retryable=True) from None
    except httpx2.InvalidURL as error:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{source.shown} cannot be downloaded: {error}.",
            hint="Check the address.",
        ) from None


def _failed(source: Source, why: str, *, retryable: bool) -> ToolError:
    hint = "Try again; what has come is kept." if retryable else "Use another address."
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.shown} could not be downloaded: {why}. Nothing was put in place.",
        hint=hint,
        retryable=retryable,
    )
