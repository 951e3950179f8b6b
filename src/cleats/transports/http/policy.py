"""The access policy of the API: values and predicates, no I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from time import monotonic
from urllib.parse import urlsplit

from cleats.transports.http.tokens import ANONYMOUS_TOKEN, AccessToken, match_bearer_token

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

    `origins` are full origins or bare hosts, `*` for any. `hosts` are the names of the server.
    Without any, a local server accepts local names only, because a page of a foreign site can make
    its own name resolve to this machine; a server for the network has its token against that.
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
        names = self._host_names
        return names is None or _strip_port(header.lower()) in names

    @cached_property
    def _host_names(self) -> frozenset[str] | None:
        """The host names of the server, or None if every name is accepted."""
        if not self.hosts and not is_local_host(self.host):
            return None
        return LOCAL_NAMES | {self.host.lower(), *map(str.lower, self.hosts)}

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of this origin may call the API; our own pages always may."""
        if "*" in self.origins or origin in self.origins:
            return True
        try:
            parts = urlsplit(origin)
            name = parts.hostname
        except ValueError:
            return False
        if name is not None and name in self.origins:
            return True
        return bool(parts.netloc) and parts.netloc == host and self.knows_host(host)


def _strip_port(header: str) -> str:
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdecimal() else header


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


def create_limiter(token: AccessToken) -> RateLimiter | None:
    """Return the rate limiter of a caller, or None if it has no limit."""
    return None if token.per_minute is None else RateLimiter(token.per_minute, token.burst)
