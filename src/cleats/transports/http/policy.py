"""Who may speak to the API: values and questions, no I/O."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import urlsplit

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
    token: str = ""
    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()

    def authorized(self, header: str) -> bool:
        """Whether an Authorization header has the token. Takes as long for any wrong one."""
        if not self.token:
            return True
        scheme, _, given = header.partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self.token.encode())
        return right and scheme.lower() == "bearer"

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
