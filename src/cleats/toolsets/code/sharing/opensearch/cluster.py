"""Requests to an OpenSearch cluster over HTTP, with retries where they can help."""

import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import anyio
import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.versions import TOOLING_VERSION
from cleats.settings import SettingError, Settings

if TYPE_CHECKING:
    import httpx2

REQUEST_TIMEOUT_SECONDS: Final = 60.0
"""Seconds for one attempt when nobody waits for the result."""

FIRST_RETRY_SECONDS: Final = 0.5
"""Seconds before the second attempt; each further attempt waits twice as long, with some jitter so
that many rejected clients do not return together."""

MAX_RETRY_SECONDS: Final = 30.0
RETRYABLE_STATUSES: Final = frozenset({429, 502, 503, 504})
"""Statuses of a cluster that may recover in a moment."""

MAX_RESPONSE_BYTES: Final = 256 << 20
"""Bytes of a response that are read: the texts of a thousand files at most."""

JSON_CONTENT_TYPE, NDJSON_CONTENT_TYPE = "application/json", "application/x-ndjson"


class ClusterError(OSError):
    """A cluster that cannot be reached or is unhealthy."""


class ClusterRejectedError(ClusterError):
    """A request that the cluster rejected."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"it answered {status}, {kind or 'no reason'}: {reason}")
        self.status = status
        self.kind = kind
        """The error type as OpenSearch names it: `index_not_found_exception`."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The address and credentials of a cluster."""

    base: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    authorities: str = ""
    """A file with the CA certificates for its certificate; by default those of this machine."""
    tries: int = 8
    """Maximum number of attempts per request: for about a minute."""
    pause: float = FIRST_RETRY_SECONDS

    def create_ssl_context(self) -> ssl.SSLContext:
        """Create the SSL context that verifies the cluster's certificate."""
        if self.base.startswith("http://"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return ssl.create_default_context(cafile=self.authorities or None)


def read_cluster_address(settings: Settings) -> ClusterAddress:
    """Return the address of the cluster from the settings.

    Raises:
        SettingError: the address is invalid, or contains a password.
    """
    url = urlsplit(settings.opensearch_url)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise SettingError("opensearch_url: expected https://host:port, or http://…")
    if url.username or url.password:
        raise SettingError(
            "opensearch_url: keep who you are out of the address; use opensearch_user and opensearch_password"
        )
    return ClusterAddress(
        settings.opensearch_url.rstrip("/"),
        settings.opensearch_user,
        settings.opensearch_password,
        settings.opensearch_token,
        settings.opensearch_ca,
    )


@dataclass(slots=True)
class Cluster:
    """A connection to a cluster."""

    address: ClusterAddress
    ssl_context: ssl.SSLContext
    tries: int = 0
    """Maximum number of attempts per request; 0 uses the default of the address."""
    timeout: float = REQUEST_TIMEOUT_SECONDS
    """Seconds for one attempt."""
    _client: "httpx2.AsyncClient | None" = None

    async def __aenter__(self) -> Self:
        import httpx2  # noqa: PLC0415 - heavy, and few have a cluster

        address = self.address
        headers = {"accept": JSON_CONTENT_TYPE, "user-agent": f"cleats/{TOOLING_VERSION}"}
        if address.token:
            headers["authorization"] = f"Bearer {address.token}"
        # A redirect would send the password elsewhere; only the settings choose the host.
        self._client = httpx2.AsyncClient(
            headers=headers,
            auth=httpx2.BasicAuth(address.user, address.password) if address.user else None,
            timeout=self.timeout,
            trust_env=False,
            follow_redirects=False,
            verify=self.ssl_context,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        ndjson: bytes | None = None,
        allow_missing: bool = False,
    ) -> Any:
        """Send a request, retrying while the cluster is busy or unreachable; return the answer.

        Every request here is safe to repeat. With `allow_missing`, return None on status 404.

        Raises:
            ClusterError: the cluster cannot be reached, or rejects the request.
        """
        content = ndjson if ndjson is not None else None if body is None else msgspec.json.encode(body)
        content_type = NDJSON_CONTENT_TYPE if ndjson is not None else JSON_CONTENT_TYPE
        tries = self.tries or self.address.tries
        for attempt in range(1, tries + 1):
            status, answer, retry_after = await self._send_once(method, path, content, content_type, attempt == tries)
            if status == 404 and allow_missing:
                return None
            if 200 <= status < 300:
                return answer
            if status not in RETRYABLE_STATUSES | {0} or attempt == tries:
                raise _build_rejection(status, answer)
            await self.wait_before_retry(attempt, retry_after)
        raise ClusterError("it was not asked")

    async def wait_before_retry(self, attempt: int, retry_after: float | None = None) -> None:
        """Wait before the next attempt."""
        pause = retry_after if retry_after is not None else self.address.pause * 2 ** (attempt - 1)
        jitter = 1 + random.random() / 4  # noqa: S311 - no secret
        await anyio.sleep(min(pause, MAX_RETRY_SECONDS) * jitter)

    async def _send_once(
        self, method: str, path: str, content: bytes | None, content_type: str, is_last: bool
    ) -> tuple[int, Any, float | None]:
        """Return the status, or 0 without a response, the body, and the retry delay."""
        import httpx2  # noqa: PLC0415 - see above

        assert self._client is not None  # noqa: S101 - used inside the block only
        headers = {"content-type": content_type} if content is not None else {}
        try:
            with anyio.fail_after(self.timeout):
                async with self._client.stream(
                    method, self.address.base + path, content=content, headers=headers
                ) as response:
                    body = await _read_body(response)
                    return response.status_code, body, _read_retry_after(response)
        except TimeoutError:
            failure = f"no answer in {self.timeout:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            failure = type(error).__name__  # its text has the address
        if is_last:
            raise ClusterError(f"it cannot be reached ({failure})")
        return 0, None, None


async def _read_body(response: "httpx2.Response") -> Any:
    content = bytearray()
    async for block in response.aiter_bytes():
        content += block
        if len(content) > MAX_RESPONSE_BYTES:
            raise ClusterError("its answer is too large")
    try:
        return msgspec.json.decode(bytes(content)) if content else None
    except msgspec.DecodeError:
        return None


def _read_retry_after(response: "httpx2.Response") -> float | None:
    header = response.headers.get("retry-after", "")
    return float(header) if header.isdigit() else None


def _build_rejection(status: int, answer: Any) -> ClusterError:
    kind, reason = parse_error_reason(answer)
    return ClusterRejectedError(status, kind, reason)


def parse_error_reason(answer: Any) -> tuple[str, str]:
    """Return the type and the text of the error in a response, shortened."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(error, str):
        return "", _shorten_text(error)
    if not isinstance(error, Mapping):
        return "", "no explanation"
    causes = error.get("root_cause")
    cause = causes[0] if isinstance(causes, list) and causes else error
    source = cause if isinstance(cause, Mapping) else error
    return _shorten_text(source.get("type")), _shorten_text(source.get("reason")) or "no explanation"


def _shorten_text(value: Any) -> str:
    return " ".join(str(value).split())[:300] if isinstance(value, str) else ""


def build_search_error(error: ClusterError, name: str) -> ToolError:
    """Build the tool error for a failed request."""
    status = error.status if isinstance(error, ClusterRejectedError) else 0
    if status in (401, 403):
        return ToolError(
            ErrorCode.UNAVAILABLE,
            f"OpenSearch does not let this server read the index {name}: {error}.",
            hint="The operator has to check opensearch_user, opensearch_password and its rights.",
            retryable=False,
        )
    if status == 400:
        return ToolError(
            ErrorCode.INVALID_REQUEST,
            f"OpenSearch cannot answer this search: {error}.",
            hint="Use fewer words, fewer values of a filter, or a simpler pattern.",
        )
    return ToolError(
        ErrorCode.UNAVAILABLE,
        f"OpenSearch, which has the index {name}, failed: {error}.",
        hint="Try again in a moment.",
    )
