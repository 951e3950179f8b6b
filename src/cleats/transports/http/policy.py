"""Who may speak to the API: values and questions, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import urlsplit

from cleats.transports.http.tokens import ANYONE, Token, bearer

PROBES = frozenset({"/health", "/ready"})
"""Routes that tell nothing but how the server is."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the operator decided about callers.

    `origins` are whole origins or bare hosts, `*` for any. `hosts` are the names that the server
    goes by. Without any, a local server answers to local names only, because a page of a foreign
    site can make its own name lead here; a server for the network has its token against that.
    """

    host: str
    tokens: Sequence[Token] = ()
    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()
    open_probes: bool = False
    """Whether anybody may ask how the server is; a load balancer often has no token to show."""

    def caller(self, authorization: str) -> Token | None:
        """Whose request it is; None when its token is nobody's."""
        return bearer(self.tokens, authorization) if self.tokens else ANYONE

    def is_open(self, method: str, path: str) -> bool:
        """Whether a request is answered without a token, under whatever name it came."""
        return self.open_probes and path in PROBES and method in {"GET", "HEAD"}

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this server."""
        names = self._names
        return names is None or _without_port(header.lower()) in names

    @cached_property
    def _names(self) -> frozenset[str] | None:
        """What the server goes by; None when every name will do."""
        if not self.hosts and not is_local(self.host):
            return None
        return LOCAL_NAMES | {self.host.lower(), *map(str.lower, self.hosts)}

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may speak to us; our own pages always may."""
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


def _without_port(header: str) -> str:
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdecimal() else header
