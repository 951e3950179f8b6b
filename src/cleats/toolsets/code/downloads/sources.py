"""Download sources: addresses as callers write them, and the operator's policy.

A checkout can contain any address, and a server can reach hosts that its callers cannot. A host on a private network
must therefore be allowed by the operator, a file must be in the repository, the cache or a folder that the operator
allowed, and the connection goes to the address that was checked.
"""

import os
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

import anyio
from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.system.http_client import USER_AGENT, create_client, is_public_address
from cleats.system.safe_paths import resolve_path

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SHA256_FRAGMENT_PATTERN = re.compile(r"sha256[=:]([0-9a-fA-F]{64})")
_URL_SCHEME_PATTERN = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """A file to download or copy."""

    url: str
    """The address that identifies it, without the fragment."""
    sha256: str = ""
    """The required hash, from the fragment; empty if any content is accepted."""
    path: Path | None = None
    """Its path, if it is on this machine."""

    @property
    def is_encrypted(self) -> bool:
        """True if nobody between the source and this machine can change the file."""
        return self.path is not None or self.url.startswith("https:")

    @property
    def public_url(self) -> str:
        """The address without its query, which may contain a key."""
        return self.url.partition("?")[0]


def parse_source(text: str, base: Path) -> DownloadSource:
    """Parse a source as a caller writes it: a URL, or a path relative to `base`.

    A fragment `#sha256=...` is the required hash.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    address, separator, fragment = text.strip().partition("#")
    pin = _SHA256_FRAGMENT_PATTERN.fullmatch(fragment)
    if separator and pin is None:
        raise _invalid_source_error(text, "the text after # is not sha256= with 64 digits")
    digest = pin[1].lower() if pin else ""
    if not address or any(ord(char) < 33 for char in address if char != " "):
        raise _invalid_source_error(text, "it is empty or has control characters")
    if not _URL_SCHEME_PATTERN.match(address):  # a drive has one letter, a scheme has more
        path = _resolve_path(address, base)
        return DownloadSource(str(path), digest, path)
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise _invalid_source_error(text, str(error)) from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise _invalid_source_error(text, "expected file:///PATH")
        file = unquote(parts.path)
        # On Windows, a slash precedes the drive.
        return DownloadSource(address, digest, _resolve_path(file.lstrip("/") if os.name == "nt" else file, base))
    return DownloadSource(_normalize_url(parts, text), digest)


def _normalize_url(parts: SplitResult, text: str) -> str:
    if parts.scheme not in DEFAULT_PORTS:
        raise _invalid_source_error(text, "expected http, https, file or a path")
    if not parts.hostname or " " in parts.netloc:
        raise _invalid_source_error(text, "it has no host")
    if parts.username is not None or parts.password is not None:
        raise _invalid_source_error(text.replace(parts.netloc, "…"), "it contains a user name or a password")
    return urlunsplit(parts._replace(fragment="", path=parts.path or "/"))


def _resolve_path(text: str, base: Path) -> Path:
    try:
        return resolve_path(base, text, expands_home=True)
    except ValueError:
        raise _invalid_source_error(text, "the path is invalid") from None


@dataclass(frozen=True, slots=True)
class DownloadPolicy:
    """The operator's limits on downloads."""

    hosts: tuple[str, ...]
    roots: tuple[Path, ...]
    limit: int

    @classmethod
    def from_settings(cls, settings: Settings) -> "DownloadPolicy":
        roots = (settings.cache_dir, *settings.code.download_roots)
        return cls(settings.code.download_hosts, roots, settings.code.download_limit)

    def resolve_file(self, source: DownloadSource, repository: Path) -> Path:
        """Return the path of a local source.

        Raises:
            ToolError: FORBIDDEN.
        """
        assert source.path is not None  # noqa: S101 - callers pass local sources only
        for root in (repository, *self.roots):
            if source.path.is_relative_to(root.resolve()):
                return source.path
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{source.public_url} is neither in the repository nor in the cache.",
            hint="Add its folder to CLEATS_DOWNLOAD_ROOTS to allow it.",
        )

    async def resolve_host(self, host: str, port: int) -> str:
        """Resolve a host to the address to connect to.

        Raises:
            ToolError: FORBIDDEN; NOT_FOUND, there is no such host.
        """
        is_allowed = any(fnmatchcase(host.lower(), pattern.lower()) for pattern in self.hosts)
        if self.hosts and not is_allowed:
            raise _forbidden_host_error(host, "is not an allowed download host")
        try:
            address_infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"Cannot resolve the host {host}.",
                hint="Check the name and the network.",
                retryable=True,
            ) from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in address_infos]
        if not is_allowed and not all(map(is_public_address, addresses)):
            raise _forbidden_host_error(host, "is on a private network")
        return addresses[0]


def _invalid_source_error(text: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{text[:200]!r} cannot be downloaded: {reason}.",
        hint="Give an http(s) URL, a file:// URL or a path, with #sha256=... to pin the content.",
    )


def _forbidden_host_error(host: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.FORBIDDEN, f"{host} {reason}.", hint="CLEATS_DOWNLOAD_HOSTS lists the allowed hosts.")


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
    raise _download_error(source, f"it redirects more than {MAX_REDIRECTS} times", retryable=False)


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
        next_source = parse_source(urljoin(url, location.partition("#")[0]), Path())
    except (ToolError, ValueError):
        next_source = None
    if not location or next_source is None or next_source.path is not None:
        raise _download_error(source, "it redirects to an invalid address", retryable=False)
    if url.startswith("https:") and not next_source.is_encrypted:
        raise _download_error(source, "it redirects from https to http", retryable=False)
    return next_source.url


def _check_response(response: "Response", source: DownloadSource) -> None:
    status = response.status_code
    phrases = {int(known): known.phrase for known in HTTPStatus}
    status_text = f"the server answered {status} {phrases.get(status, '')}".rstrip()
    if status in (404, 410):
        raise ToolError(
            ErrorCode.NOT_FOUND, f"{source.public_url} does not exist: {status_text}.", hint="Check the address."
        )
    if status in (401, 403, 407):
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"Access to {source.public_url} is denied: {status_text}.",
            hint="Use an address that needs no password, or download the file yourself and give its path.",
        )
    if status not in (200, 206, 304, 416):
        raise _download_error(source, status_text, retryable=status in _RETRYABLE_STATUSES)
    encoding = response.headers.get("content-encoding", "identity")
    if encoding not in ("", "identity"):
        raise _download_error(source, f"it has the unexpected encoding {encoding[:40]!r}", retryable=False)


@contextmanager
def _wrap_http_errors(source: DownloadSource) -> Iterator[None]:
    import ssl  # noqa: PLC0415

    import httpx2  # noqa: PLC0415

    try:
        yield
    except httpx2.TimeoutException:
        raise _download_error(source, "the server does not answer", retryable=True) from None
    except httpx2.RemoteProtocolError as error:
        raise _download_error(source, f"the connection broke ({error})", retryable=True) from None
    except (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError) as error:
        reason = f"the server cannot be reached ({str(error) or type(error).__name__})"
        raise _download_error(source, reason, retryable=True) from None
    except httpx2.InvalidURL as error:
        raise ToolError(
            ErrorCode.INVALID_REQUEST, f"{source.public_url} cannot be downloaded: {error}.", hint="Check the address."
        ) from None


def _download_error(source: DownloadSource, reason: str, *, retryable: bool) -> ToolError:
    hint = "Retry; the download continues where it stopped." if retryable else "Use another address."
    message = f"{source.public_url} could not be downloaded: {reason}. Nothing was installed."
    return ToolError(ErrorCode.DOWNLOAD_VERIFY_FAILED, message, hint=hint, retryable=retryable)
