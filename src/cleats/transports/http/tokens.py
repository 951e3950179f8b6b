"""Access to the API: tokens, the file that defines their rights, and the policy that a request is checked against.

The file of tokens is TOML. It holds no token, only the SHA-256 of each, so that reading it gives no access:

    [[token]]
    name = "ci"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    toolsets = ["code"]            # default: all that are served
    repositories = ["/srv/repos"]  # default: the server's own and those of `http_roots`
    per_minute = 120               # requests; default: no limit
    burst = 20                     # requests at once; default: `per_minute`

A plain hash is enough, because we generate tokens from 256 random bits: they cannot be guessed.
"""

import hmac
import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import msgspec

from cleats.contract.violations import Validator
from cleats.settings import SettingError

TOKEN_PREFIX = "cleats_"
"""The start of every generated token, so that a scanner finds one that was committed by mistake."""

_TOKEN_NAME_PATTERN = "^[A-Za-z0-9_.@-]{1,64}$"

_TOKENS_FILE_SCHEMA = msgspec.json.decode(Path(__file__).with_name("tokens.schema.json").read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """The rights of one caller. None means no limit except the server's own."""

    name: str = ""
    sha256: str = ""
    toolsets: tuple[str, ...] | None = None
    repositories: tuple[Path, ...] | None = None
    per_minute: float | None = None
    burst: int | None = None


SINGLE_TOKEN_NAME = "http_token"
"""The name of the token that the setting `http_token` holds."""

ANONYMOUS_TOKEN = AccessToken()
"""The caller of a server without tokens."""


def is_token_name(text: str) -> bool:
    """Return whether a text is a valid name for a token."""
    return re.fullmatch(_TOKEN_NAME_PATTERN, text) is not None and text != SINGLE_TOKEN_NAME


def hash_token(token: str | bytes) -> str:
    """Return the hash of a token as stored in the file."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def generate_token() -> str:
    """Return a new random token."""
    return TOKEN_PREFIX + token_urlsafe(32)


def format_entry(token: AccessToken) -> str:
    """Format a token as an entry of the file."""
    values = {field.name: getattr(token, field.name) for field in fields(token)}
    lines = [f"{name} = {_format_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join(["[[token]]", *lines]) + "\n"


def _format_value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, str | Path):
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def load_tokens(single: str, file: str, served_names: Sequence[str]) -> tuple[AccessToken, ...]:
    """Return every token that grants access; an empty tuple means that anyone may call.

    Raises:
        SettingError: The file cannot be read or is invalid, names a toolset that is not among `served_names`, or can be
            written by others than its owner.
    """
    tokens = [AccessToken(name=SINGLE_TOKEN_NAME, sha256=hash_token(single))] if single else []
    if file:
        tokens += _read_tokens_file(Path(file).expanduser().absolute(), served_names)
    return tuple(tokens)


def _read_tokens_file(path: Path, served_names: Sequence[str]) -> list[AccessToken]:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            document = tomllib.load(file)
    except OSError as error:
        raise SettingError(f"http_tokens: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"http_tokens: {path} is not valid TOML: {error}") from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingError(f"http_tokens: others can write {path}; run: chmod go-w {path}")
    try:
        violations = Validator(_TOKENS_FILE_SCHEMA).find_violations(document)
    except (TypeError, ValueError):  # TOML has dates, JSON does not
        raise SettingError(f"http_tokens: {path}: an entry has a value of a type that is not allowed") from None
    if violations:
        raise SettingError(f"http_tokens: {path}: {violations[0].path or 'the file'}: {violations[0].message}")
    tokens = [_parse_token(row) for row in document["token"]]
    _check_tokens(path, tokens, served_names)
    return tokens


def _parse_token(row: Mapping[str, Any]) -> AccessToken:
    values = dict(row)
    if "toolsets" in values:
        values["toolsets"] = tuple(values["toolsets"])
    if "repositories" in values:
        values["repositories"] = tuple(Path(folder).expanduser().resolve() for folder in values["repositories"])
    return AccessToken(**values)


def _check_tokens(path: Path, tokens: Sequence[AccessToken], served_names: Sequence[str]) -> None:
    names = [token.name for token in tokens]
    for name in {name for name in names if names.count(name) > 1 or name == SINGLE_TOKEN_NAME}:
        raise SettingError(f"http_tokens: {path}: two entries have the name {name!r}")
    hashes = [token.sha256 for token in tokens]
    if len(set(hashes)) < len(hashes):
        raise SettingError(f"http_tokens: {path}: two names have the same token")
    for name in {toolset_name for token in tokens for toolset_name in token.toolsets or ()} - set(served_names):
        raise SettingError(f"http_tokens: {path}: no toolset {name!r} is served")


def match_bearer_token(tokens: Sequence[AccessToken], header: str) -> AccessToken | None:
    """Return the token in an Authorization header, or None if it is unknown.

    Every entry is compared, and each comparison takes as long for any wrong token.
    """
    scheme, _, credential = header.partition(" ")
    # Headers are read as Latin-1; the bytes are what the caller sent.
    digest = hash_token(credential.strip().encode("latin-1", "replace")).encode()
    matched = None
    for token in tokens:
        if hmac.compare_digest(digest, token.sha256.encode()):
            matched = token
    return matched if scheme.lower() == "bearer" else None


PROBE_PATHS = frozenset({"/health", "/ready"})
"""Routes that reveal only the health of the server."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def is_local_host(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class AccessPolicy:
    """The operator's decisions about callers.

    `origins` are full origins or bare hosts, `*` for any. `hosts` are the names of the server. Without any, a local
    server accepts local names only, because a page of a foreign site can make its own name resolve to this machine; a
    server for the network has its token against that.
    """

    host: str
    tokens: Sequence[AccessToken] = ()
    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()
    open_probes: bool = False
    """True if probes need no token; a load balancer often has none."""

    def find_caller(self, authorization: str) -> AccessToken | None:
        """Return the caller's token, or None if it is unknown."""
        return match_bearer_token(self.tokens, authorization) if self.tokens else ANONYMOUS_TOKEN

    def allows_anonymous(self, method: str, path: str) -> bool:
        """Return whether a request is answered without a token and under any host name."""
        return self.open_probes and path in PROBE_PATHS and method in {"GET", "HEAD"}

    def knows_host(self, header: str) -> bool:
        """Return whether a Host header names this server."""
        if not self.hosts and not is_local_host(self.host):
            return True
        name, colon, port = header.lower().rpartition(":")
        return (name if colon and port.isdecimal() else header.lower()) in self._host_names

    @cached_property
    def _host_names(self) -> frozenset[str]:
        return LOCAL_NAMES | {self.host.lower(), *map(str.lower, self.hosts)}

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of this origin may call the API; our own pages always may."""
        if "*" in self.origins or origin in self.origins:
            return True
        try:
            name = urlsplit(origin).hostname
        except ValueError:
            return False
        if name is not None and name in self.origins:
            return True
        return self.is_own_origin(origin, host)

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Return whether an origin is that of the server itself."""
        try:
            netloc = urlsplit(origin).netloc
        except ValueError:
            return False
        return bool(netloc) and netloc == host and self.knows_host(host)


class RateLimiter:
    """A limit of `burst` requests at once and `per_minute` in the long run."""

    def __init__(self, per_minute: float, burst: int | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_minute / 60
        self._capacity = float(burst if burst is not None else max(1, int(per_minute)))
        self._available = self._capacity
        self._clock = clock
        self._updated_at = clock()

    def take(self) -> float:
        """Take one request and return 0, or return the seconds until one is available."""
        now = self._clock()
        self._available = min(self._capacity, self._available + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._available >= 1:
            self._available -= 1
            return 0.0
        return (1 - self._available) / self._per_second


def build_limiters(tokens: Sequence[AccessToken]) -> dict[str, RateLimiter]:
    """Return the rate limit of every token that has one, by name."""
    return {token.name: RateLimiter(token.per_minute, token.burst) for token in tokens if token.per_minute is not None}
