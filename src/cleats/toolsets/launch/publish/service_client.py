"""JSON requests to a service: a deadline, retries of transient failures, explicit errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
import msgspec

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.launch.publish.model import publish_error
from cleats.toolsets.launch.runs.job import SECRET_PLACEHOLDER

if TYPE_CHECKING:
    import httpx2

ATTEMPT_TIMEOUT_SECONDS: Final = 60.0
"""Seconds for one attempt."""

MAX_ATTEMPTS: Final = 4
"""The first attempt and three retries."""

FIRST_RETRY_SECONDS: Final = 0.5
"""Seconds before the second attempt; every further wait is twice as long."""

TRANSIENT_STATUSES: Final = frozenset({502, 503, 504})
"""Statuses of a failure that may be over in a moment; the request is retried at once."""

RETRYABLE_STATUSES: Final = TRANSIENT_STATUSES | {429, 500}
"""Statuses after which the caller may retry later."""

MAX_REPLY_BYTES: Final = 4 << 20
"""Bytes of a reply that are read."""


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """The reply of a service."""

    status: int
    body: Any
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True)
class ServiceClient:
    """A client of a JSON service at one address."""

    name: str
    base_url: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: float = FIRST_RETRY_SECONDS
    _client: "httpx2.AsyncClient | None" = None

    async def __aenter__(self) -> Self:
        import httpx2  # noqa: PLC0415 - heavy, and most runs publish with git

        headers = {"accept": "application/json", "user-agent": f"cleats/{TOOLING_VERSION}"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        # A redirect would send the token elsewhere; only the configured endpoint may receive it.
        self._client = httpx2.AsyncClient(
            headers={**headers, **self.headers},
            timeout=ATTEMPT_TIMEOUT_SECONDS,
            trust_env=False,
            follow_redirects=False,
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
        headers: Mapping[str, str] | None = None,
    ) -> ServiceReply:
        """Send one request and retry it while the service is unavailable.

        Every request here is safe to repeat: those that change something carry a key or name what
        they create.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, the service cannot be reached.
        """
        pause, last_failure = self.pause, ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                reply = await self._send_once(method, path, body, headers or {})
            except ConnectionError as error:
                last_failure = str(error)
            else:
                if reply.status not in TRANSIENT_STATUSES or attempt == MAX_ATTEMPTS:
                    return reply
                last_failure = f"status {reply.status}"
            if attempt < MAX_ATTEMPTS:
                await anyio.sleep(pause)
                pause *= 2
        raise publish_error(
            f"{self.name} cannot be reached ({last_failure}).",
            retryable=True,
            hint="Try again when it is back; nothing is published twice.",
            attempts=MAX_ATTEMPTS,
        )

    async def _send_once(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> ServiceReply:
        import httpx2  # noqa: PLC0415 - see above

        assert self._client is not None  # noqa: S101 - asked inside the block only
        body_headers = {} if body is None else {"content-type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        try:
            with anyio.fail_after(ATTEMPT_TIMEOUT_SECONDS):
                async with self._client.stream(
                    method, self.base_url + path, content=content, headers={**body_headers, **headers}
                ) as response:
                    raw = await _read_reply_body(response)
                    return ServiceReply(response.status_code, raw, _parse_retry_after(response))
        except TimeoutError:
            raise ConnectionError(f"no answer in {ATTEMPT_TIMEOUT_SECONDS:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ConnectionError(type(error).__name__) from None

    def error_from_reply(self, reply: ServiceReply, action: str) -> Exception:
        """Return the error for an unexpected reply."""
        reply_fields = reply.body if isinstance(reply.body, Mapping) else {}
        details: dict[str, Any] = {"status": reply.status}
        if code := self._quote_reply_text(reply_fields.get("code")):
            details["service_code"] = code
        if reply.retry_after is not None:
            details["retry_after_s"] = reply.retry_after
        explanation = self._quote_reply_text(reply_fields.get("message")) or "no explanation"
        return publish_error(
            f"{self.name} refused {action}: {reply.status}, {explanation}",
            retryable=reply.status in RETRYABLE_STATUSES,
            **details,
        )

    def _quote_reply_text(self, value: Any) -> str:
        """Return a text of the reply, shortened; it may hold anything, even the access token."""
        if not isinstance(value, str):
            return ""
        # Redact before shortening: a token cut in half would no longer be recognised.
        redacted = value.replace(self.token, SECRET_PLACEHOLDER) if self.token else value
        return " ".join(redacted.split())[:300]


async def _read_reply_body(response: "httpx2.Response") -> Any:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            raise ConnectionError("the answer is too large")
    try:
        return msgspec.json.decode(bytes(content)) if content else None
    except msgspec.DecodeError:
        return None


def _parse_retry_after(response: "httpx2.Response") -> float | None:
    header = response.headers.get("retry-after", "")
    return float(header) if header.isdigit() else None
