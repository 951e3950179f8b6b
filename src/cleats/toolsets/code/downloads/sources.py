"""Where downloads may come from: addresses as callers write them, and what the operator allows.

A checkout can be full of addresses, and a server can reach what its callers cannot. So a host on a
private network must be named by the operator, a file must lie in the repository, the cache or a
folder that the operator named, and the address that was checked is the one that is connected to.
"""

import ipaddress
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
from cleats.contract.pathnames import usable
from cleats.settings import Settings

PORTS: Final = {"http": 80, "https": 443}
_PIN = re.compile(r"sha256[=:]([0-9a-fA-F]{64})")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class Source:
    """A file somewhere else."""

    url: str
    """What identifies it, without what it must be."""
    sha256: str = ""
    """What it must be, from the part behind `#`; empty for anything."""
    path: Path | None = None
    """Where it is, if it is on this machine."""

    @property
    def encrypted(self) -> bool:
        """Whether nobody between it and this machine can change it."""
        return self.path is not None or self.url.startswith("https:")

    @property
    def shown(self) -> str:
        """The address without its query, which may hold a key."""
        return self.url.partition("?")[0]


def read(text: str, base: Path) -> Source:
    """A source as a caller writes it: a URL, or a path from `base`.

    `#sha256=...` at its end says what must come.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    address, mark, rest = text.strip().partition("#")
    pin = _PIN.fullmatch(rest)
    if mark and pin is None:
        raise _bad(text, "what follows # is no sha256= with 64 digits")
    digest = pin[1].lower() if pin else ""
    if not address or any(ord(sign) < 33 for sign in address if sign != " "):
        raise _bad(text, "it is empty or has control characters")
    if not _SCHEME.match(address):  # a drive has one letter, a scheme more
        place = _path(address, base)
        return Source(str(place), digest, place)
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise _bad(text, str(error)) from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise _bad(text, "expected file:///PATH")
        return Source(address, digest, _path(_local(unquote(parts.path)), base))
    return Source(_checked(parts, text), digest)


def _local(path: str) -> str:
    """The path of a file URL; before a drive it has a slash too many."""
    return path.lstrip("/") if os.name == "nt" else path


def _checked(parts: SplitResult, text: str) -> str:
    if parts.scheme not in PORTS:
        raise _bad(text, "expected http, https, file or a path")
    if not parts.hostname or " " in parts.netloc:
        raise _bad(text, "it names no host")
    if parts.username is not None or parts.password is not None:
        raise _bad(text.replace(parts.netloc, "…"), "it has a name or a password in it")
    return urlunsplit(parts._replace(fragment="", path=parts.path or "/"))


def _path(text: str, base: Path) -> Path:
    try:
        return (base / Path(usable(text)).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        raise _bad(text, "it is no usable path") from None


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator allows."""

    hosts: tuple[str, ...]
    roots: tuple[Path, ...]
    limit: int

    @classmethod
    def of(cls, settings: Settings) -> "Policy":
        roots = (settings.cache_dir, *settings.download_roots)
        return cls(settings.download_hosts, roots, settings.download_limit)

    def check_file(self, source: Source, repository: Path) -> Path:
        """The file that a source is.

        Raises:
            ToolError: FORBIDDEN.
        """
        assert source.path is not None  # noqa: S101 - callers ask for files only
        for root in (repository, *self.roots):
            if source.path.is_relative_to(root.resolve()):
                return source.path
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{source.shown} is neither in the repository nor in the cache.",
            hint="CLEATS_DOWNLOAD_ROOTS names more folders that files may be taken from.",
        )

    async def address(self, host: str, port: int) -> str:
        """An address of a host, which is the one to connect to.

        Raises:
            ToolError: FORBIDDEN; NOT_FOUND, there is no such host.
        """
        named = any(fnmatchcase(host.lower(), each.lower()) for each in self.hosts)
        if self.hosts and not named:
            raise _forbidden(host, "is not among the hosts that downloads may come from")
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"There is no host {host}, or its address cannot be found now.",
                hint="Check the name and the network.",
                retryable=True,
            ) from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
        if not named and not all(map(is_public, addresses)):
            raise _forbidden(host, "is on a private network")
        return addresses[0]


def is_public(text: str) -> bool:
    """Whether an address means the same machine from everywhere."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast


_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")
"""IPv4 addresses, as networks write them that only have the other kind."""


def _bad(text: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{text[:200]!r} cannot be downloaded: {why}.",
        hint="Give an http(s) URL, a file:// URL or a path, with #sha256=... for what must come.",
    )


def _forbidden(host: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{host} {why}.",
        hint="The setting CLEATS_DOWNLOAD_HOSTS names those that are allowed.",
    )
