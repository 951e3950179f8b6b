"""Download sources: addresses as callers write them, and the operator's policy.

A checkout can contain any address, and a server can reach hosts that its callers cannot. A host on
a private network must therefore be allowed by the operator, a file must be in the repository, the
cache or a folder that the operator allowed, and the connection goes to the address that was
checked.
"""

import os
import re
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.system.http_client import is_public_address
from cleats.system.safe_paths import resolve_path

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
        raise _invalid_source_error(text, "what follows # is no sha256= with 64 digits")
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
        return DownloadSource(address, digest, _resolve_path(_file_url_path(unquote(parts.path)), base))
    return DownloadSource(_normalize_url(parts, text), digest)


def _file_url_path(path: str) -> str:
    """Return the path of a file URL; on Windows, without the slash before the drive."""
    return path.lstrip("/") if os.name == "nt" else path


def _normalize_url(parts: SplitResult, text: str) -> str:
    if parts.scheme not in DEFAULT_PORTS:
        raise _invalid_source_error(text, "expected http, https, file or a path")
    if not parts.hostname or " " in parts.netloc:
        raise _invalid_source_error(text, "it names no host")
    if parts.username is not None or parts.password is not None:
        raise _invalid_source_error(text.replace(parts.netloc, "…"), "it has a name or a password in it")
    return urlunsplit(parts._replace(fragment="", path=parts.path or "/"))


def _resolve_path(text: str, base: Path) -> Path:
    try:
        return resolve_path(base, text, expands_home=True)
    except ValueError:
        raise _invalid_source_error(text, "it is no usable path") from None


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
            hint="CLEATS_DOWNLOAD_ROOTS names more folders that files may be taken from.",
        )

    async def resolve_host(self, host: str, port: int) -> str:
        """Resolve a host to the address to connect to.

        Raises:
            ToolError: FORBIDDEN; NOT_FOUND, there is no such host.
        """
        is_allowed = any(fnmatchcase(host.lower(), pattern.lower()) for pattern in self.hosts)
        if self.hosts and not is_allowed:
            raise _forbidden_host_error(host, "is not among the hosts that downloads may come from")
        try:
            address_infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"There is no host {host}, or its address cannot be found now.",
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
        hint="Give an http(s) URL, a file:// URL or a path, with #sha256=... for what must come.",
    )


def _forbidden_host_error(host: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN, f"{host} {reason}.", hint="The setting CLEATS_DOWNLOAD_HOSTS names those that are allowed."
    )
