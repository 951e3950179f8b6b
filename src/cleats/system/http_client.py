"""Outgoing HTTP requests with limits: seconds per attempt, bytes per response, retries.

Redirects are not followed, because they would send a token or a password elsewhere, and the
proxies and passwords of the environment are not used: only the settings decide which hosts are
contacted. What a failure means, and what is said about it, is up to the caller.
"""

import ipaddress
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
import msgspec

from cleats.contract.versions import TOOLING_VERSION

if TYPE_CHECKING:
    import ssl

    import httpx2

USER_AGENT: Final = f"cleats/{TOOLING_VERSION}"

JSON_CONTENT_TYPE: Final = "application/json"


_NAT64_NETWORK: Final = ipaddress.ip_network("64:ff9b::/96")
"""The NAT64 prefix: IPv4 addresses as IPv6-only networks write them."""


class RequestFailedError(Exception):
    """Raised when there is no response."""

    def __init__(self, reason: str, *, is_timeout: bool = False) -> None:
        super().__init__(reason)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response, with as much of its body as the limit allows."""

    status: int
    body: bytes
    is_truncated: bool = False
    retry_after: int | None = None
    """Seconds after which the server wants to be asked again."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def parse_json(self) -> Any:
        """Return the document in the body, or None if there is none."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except msgspec.DecodeError:
            return None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of attempts, and the pauses between them."""

    tries: int
    pause: float
    """Seconds before the second attempt; each further attempt waits twice as long."""
    statuses: frozenset[int]
    """Statuses after which another attempt may succeed; so may one without a response."""
    max_pause: float = 30.0
    jitter: float = 0.0
    """The part of a pause that is added at random, so that many clients do not return together."""
    obeys_retry_after: bool = True
    retries_truncated: bool = False

    async def wait(self, attempt: int, retry_after: float | None = None) -> None:
        """Wait after an attempt, counted from 1."""
        pause = self.pause * 2 ** (attempt - 1)
        if retry_after is not None and self.obeys_retry_after:
            pause = retry_after
        await anyio.sleep(min(pause, self.max_pause) * (1 + random.random() * self.jitter))  # noqa: S311 - no secret

    def should_retry(self, reply: HttpReply) -> bool:
        """Return whether another attempt may give a better response."""
        return reply.status in self.statuses or (reply.is_truncated and self.retries_truncated)


SINGLE_ATTEMPT: Final = RetryPolicy(1, 0.0, frozenset())


@dataclass(slots=True, kw_only=True)
class HttpClient:
    """A client for one or many servers; use it as an async context manager."""

    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str = field(default="", repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    timeout: float
    """Seconds for one attempt, with its body."""
    max_bytes: int
    """Bytes of a response that are read."""
    ssl_context: "ssl.SSLContext | None" = None
    retries: RetryPolicy = SINGLE_ATTEMPT
    _client: "httpx2.AsyncClient | None" = None

    async def __aenter__(self) -> Self:
        authorization = {"authorization": f"Bearer {self.token}"} if self.token else {}
        self._client = create_client(
            headers={"user-agent": USER_AGENT, **authorization, **self.headers},
            auth=self.auth,
            timeout=self.timeout,
            verify=self.ssl_context or (_make_plain_context() if self.base_url.startswith("http:") else True),
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def send(
        self, method: str, path: str = "", content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Send a request, and repeat it as the policy says; only for requests safe to repeat.

        Content is JSON, unless the headers say otherwise.

        Raises:
            RequestFailedError: The last attempt had no response.
        """
        attempt = 0
        while True:
            attempt += 1
            is_last = attempt >= self.retries.tries
            reply: HttpReply | None = None
            try:
                reply = await self._send_once(method, path, content, headers or {})
            except RequestFailedError:
                if is_last:
                    raise
            if reply is not None and (is_last or not self.retries.should_retry(reply)):
                return reply
            await self.retries.wait(attempt, None if reply is None else reply.retry_after)

    async def _send_once(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> HttpReply:
        import httpx2  # noqa: PLC0415 - see create_client

        assert self._client is not None  # noqa: S101 - used inside the block only
        content_headers = {} if content is None else {"content-type": JSON_CONTENT_TYPE}
        request_headers = {**content_headers, **headers}
        try:
            with anyio.fail_after(self.timeout):
                async with self._client.stream(
                    method, self.base_url + path, content=content, headers=request_headers
                ) as response:
                    body = await _read_body(response, self.max_bytes)
                    retry_after = response.headers.get("retry-after", "")
        except (TimeoutError, httpx2.TimeoutException):
            raise RequestFailedError(f"no answer in {self.timeout:g} s", is_timeout=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise RequestFailedError(type(error).__name__) from None  # its text has the address
        return HttpReply(
            response.status_code,
            body[: self.max_bytes],
            len(body) > self.max_bytes,
            int(retry_after) if retry_after.isdecimal() else None,
        )


def _make_plain_context() -> "ssl.SSLContext":
    """Return a context without the system certificates, which are slow to load."""
    import ssl  # noqa: PLC0415 - as slow as the certificates

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def create_client(**options: Any) -> "httpx2.AsyncClient":
    """Return a client that follows no redirect and takes nothing from the environment."""
    import httpx2  # noqa: PLC0415 - heavy, and most servers and runs send nothing

    return httpx2.AsyncClient(trust_env=False, follow_redirects=False, **options)


async def _read_body(response: "httpx2.Response", max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            break
    return bytes(body)


def is_public_address(text: str) -> bool:
    """Return whether an IP address refers to the same machine from everywhere."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and address in _NAT64_NETWORK:
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            address = embedded
    return address.is_global and not address.is_multicast
