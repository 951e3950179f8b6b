"""Requests to an OpenSearch cluster over HTTP, with retries where they can help."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings
from cleats.system.http_client import JSON_CONTENT_TYPE, HttpClient, RequestFailedError, RetryPolicy

REQUEST_TIMEOUT_SECONDS: Final = 60.0
"""Seconds for one attempt when nobody waits for the result."""

FIRST_RETRY_SECONDS: Final = 0.5
RETRYABLE_STATUSES: Final = frozenset({429, 502, 503, 504})
"""Statuses of a cluster that may recover in a moment."""

MAX_RESPONSE_BYTES: Final = 256 << 20
"""Bytes of a response that are read: the texts of a thousand files at most."""

NDJSON_CONTENT_TYPE: Final = "application/x-ndjson"


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
    url = urlsplit(settings.code.opensearch_url)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise SettingError("opensearch_url: expected https://host:port, or http://…")
    if url.username or url.password:
        raise SettingError(
            "opensearch_url: the address must not contain credentials; set opensearch_user and opensearch_password"
        )
    return ClusterAddress(
        settings.code.opensearch_url.rstrip("/"),
        settings.code.opensearch_user,
        settings.code.opensearch_password,
        settings.code.opensearch_token,
        settings.code.opensearch_ca,
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
    _client: HttpClient = field(init=False)

    async def __aenter__(self) -> Self:
        address = self.address
        tries = self.tries or address.tries
        self._client = HttpClient(
            base_url=address.base,
            headers={"accept": JSON_CONTENT_TYPE},
            token=address.token,
            auth=(address.user, address.password) if address.user else None,
            timeout=self.timeout,
            max_bytes=MAX_RESPONSE_BYTES,
            ssl_context=self.ssl_context,
            retries=RetryPolicy(tries, address.pause, RETRYABLE_STATUSES, jitter=0.25),
        )
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.__aexit__(*exception)

    async def send(
        self, method: str, path: str, body: Any = None, *, ndjson: bytes | None = None, allow_missing: bool = False
    ) -> Any:
        """Send a request, retrying while the cluster is busy or unreachable; return the answer.

        Every request here is safe to repeat. With `allow_missing`, return None on status 404.

        Raises:
            ClusterError: the cluster cannot be reached, or rejects the request.
        """
        content = ndjson if ndjson is not None else None if body is None else msgspec.json.encode(body)
        headers = {} if ndjson is None else {"content-type": NDJSON_CONTENT_TYPE}
        try:
            reply = await self._client.send(method, path, content, headers)
        except RequestFailedError as error:
            raise ClusterError(f"it cannot be reached ({error})") from None
        if reply.is_truncated:
            raise ClusterError("its answer is too large")
        if reply.status == 404 and allow_missing:
            return None
        answer = reply.parse_json()
        if not reply.ok:
            raise _build_rejection(reply.status, answer)
        return answer

    async def wait_before_retry(self, attempt: int) -> None:
        """Wait before the next attempt."""
        await self._client.retries.wait(attempt)


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
    message = f"OpenSearch, which has the index {name}, failed: {error}."
    return ToolError(ErrorCode.UNAVAILABLE, message, hint="Try again in a moment.")
