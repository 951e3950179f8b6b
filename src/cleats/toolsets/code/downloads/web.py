"""A GET request over a limited number of redirects, to an address that was checked.

Proxies and passwords of the environment are not used: only the arguments of a tool and the
operator's settings decide which hosts it contacts.
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
from cleats.system.http_client import USER_AGENT, create_client
from cleats.toolsets.code.downloads import sources
from cleats.toolsets.code.downloads.sources import DEFAULT_PORTS, DownloadPolicy, DownloadSource

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS = 15.0, 30.0
"""Seconds until a host must have accepted the connection, and between two blocks of a response."""

MAX_REDIRECTS: Final = 5

_BASE_HEADERS: Final = {
    "accept": "*/*",
    "accept-encoding": "identity",  # sizes, ranges and hashes refer to the file itself
    "user-agent": USER_AGENT,
}

_REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
_RETRYABLE_STATUSES: Final = (408, 425, 429, 500, 502, 503, 504)


@asynccontextmanager
async def open_response(
    source: DownloadSource, policy: DownloadPolicy, headers: Mapping[str, str]
) -> "AsyncIterator[Response]":
    """Send a GET request and yield the response with its body unread: 200, 206, 304 or 416.

    Raises:
        ToolError: for every other status, and if there is no response.
    """
    from httpx2 import Timeout, create_ssl_context  # noqa: PLC0415 - heavy

    timeout = Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    trust = await to_thread.run_sync(partial(create_ssl_context, trust_env=False))
    with _wrap_http_errors(source):
        async with create_client(timeout=timeout, verify=trust) as client:
            url = source.url
            for _ in range(MAX_REDIRECTS + 1):
                response = await _send_request(client, url, policy, headers)
                try:
                    if response.status_code not in _REDIRECT_STATUSES:
                        _check_response(response, source)
                        yield response
                        return
                    url = _resolve_redirect(url, response.headers.get("location", ""), source)
                finally:
                    await response.aclose()
    raise _download_error(source, f"it leads on more than {MAX_REDIRECTS} times", retryable=False)


async def _send_request(
    client: "AsyncClient", url: str, policy: DownloadPolicy, headers: Mapping[str, str]
) -> "Response":
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    address = await policy.resolve_host(host, port)
    netloc_host = f"[{address}]" if ":" in address else address
    request = client.build_request(
        "GET",
        parts._replace(netloc=f"{netloc_host}:{port}").geturl(),
        headers={**_BASE_HEADERS, **headers, "host": parts.netloc},
        extensions={"sni_hostname": host},
    )
    return await client.send(request, stream=True)


def _resolve_redirect(url: str, location: str, source: DownloadSource) -> str:
    try:
        next_source = sources.parse_source(urljoin(url, location.partition("#")[0]), Path())
    except (ToolError, ValueError):
        next_source = None
    if not location or next_source is None or next_source.path is not None:
        raise _download_error(source, "it leads to an address that cannot be used", retryable=False)
    if url.startswith("https:") and not next_source.is_encrypted:
        raise _download_error(source, "it leads from https to http", retryable=False)
    return next_source.url


def _check_response(response: "Response", source: DownloadSource) -> None:
    status = response.status_code
    status_text = f"the server says {status} {_status_phrase(status)}".rstrip()
    if status in (404, 410):
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is nothing at {source.public_url}: {status_text}.",
            hint="Check the address.",
        )
    if status in (401, 403, 407):
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{source.public_url} may not be read: {status_text}.",
            hint="Use an address that needs no password, or fetch the file and give its path.",
        )
    if status not in (200, 206, 304, 416):
        raise _download_error(source, status_text, retryable=status in _RETRYABLE_STATUSES)
    encoding = response.headers.get("content-encoding", "identity")
    if encoding not in ("", "identity"):
        raise _download_error(source, f"it is sent as {encoding[:40]!r}, unasked", retryable=False)


def _status_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


@contextmanager
def _wrap_http_errors(source: DownloadSource) -> Iterator[None]:
    """Convert transport errors into errors for the caller."""
    import ssl  # noqa: PLC0415

    import httpx2  # noqa: PLC0415

    try:
        yield
    except httpx2.TimeoutException:
        raise _download_error(source, "the server is silent", retryable=True) from None
    except httpx2.RemoteProtocolError as error:
        raise _download_error(source, f"the answer broke off ({error})", retryable=True) from None
    except (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError) as error:
        reason = f"the server cannot be reached ({str(error) or type(error).__name__})"
        raise _download_error(source, reason, retryable=True) from None
    except httpx2.InvalidURL as error:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{source.public_url} cannot be downloaded: {error}.",
            hint="Check the address.",
        ) from None


def _download_error(source: DownloadSource, reason: str, *, retryable: bool) -> ToolError:
    hint = "Try again; what has come is kept." if retryable else "Use another address."
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.public_url} could not be downloaded: {reason}. Nothing was put in place.",
        hint=hint,
        retryable=retryable,
    )
