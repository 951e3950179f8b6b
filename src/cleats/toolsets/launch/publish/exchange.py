"""Requests to a service: a deadline, a few tries where a try can help, honest failures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
import msgspec

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.launch.publish.port import refused
from cleats.toolsets.launch.workers.job import HUSHED

if TYPE_CHECKING:
    import httpx2

TIMEOUT: Final = 60.0
"""Seconds for one try."""

TRIES: Final = 4
"""The first and three more."""

PAUSE: Final = 0.5
"""Seconds before the second try; each further one waits twice as long."""

PASSING: Final = frozenset({502, 503, 504})
"""Statuses of a service that may be well again in a moment."""

LATER: Final = PASSING | {429, 500}
"""Statuses after which the caller may come again, later."""

MOST: Final = 4 << 20
"""Bytes of an answer that are read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    body: Any
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True)
class Service:
    """A service at an address, spoken to in JSON."""

    name: str
    base: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: float = PAUSE
    _client: "httpx2.AsyncClient | None" = None

    async def __aenter__(self) -> Self:
        import httpx2  # noqa: PLC0415 - heavy, and most runs publish with git

        headers = {"accept": "application/json", "user-agent": f"cleats/{TOOLING_VERSION}"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        # A redirect would carry the token elsewhere; what we talk to is what the settings say.
        self._client = httpx2.AsyncClient(
            headers={**headers, **self.headers},
            timeout=TIMEOUT,
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

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request, tried again while the service is away.

        Every request here may be repeated: those that change something carry a key or name what
        they make.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, the service cannot be reached.
        """
        pause, last = self.pause, ""
        for attempt in range(1, TRIES + 1):
            try:
                reply = await self._once(method, path, body, headers or {})
            except ConnectionError as error:
                last = str(error)
            else:
                if reply.status not in PASSING or attempt == TRIES:
                    return reply
                last = f"status {reply.status}"
            if attempt < TRIES:
                await anyio.sleep(pause)
                pause *= 2
        raise refused(
            f"{self.name} cannot be reached ({last}).",
            retryable=True,
            hint="Try again when it is back; nothing is published twice.",
            attempts=TRIES,
        )

    async def _once(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Reply:
        import httpx2  # noqa: PLC0415 - see above

        assert self._client is not None  # noqa: S101 - asked inside the block only
        sent = {} if body is None else {"content-type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        try:
            with anyio.fail_after(TIMEOUT):
                async with self._client.stream(
                    method, self.base + path, content=content, headers={**sent, **headers}
                ) as response:
                    raw = await _read(response)
                    return Reply(response.status_code, raw, _seconds(response))
        except TimeoutError:
            raise ConnectionError(f"no answer in {TIMEOUT:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ConnectionError(type(error).__name__) from None

    def refusal(self, reply: Reply, doing: str) -> Exception:
        """The error for an answer that is not the one hoped for."""
        said = reply.body if isinstance(reply.body, Mapping) else {}
        facts: dict[str, Any] = {"status": reply.status}
        if code := self._word(said.get("code")):
            facts["service_code"] = code
        if reply.retry_after is not None:
            facts["retry_after_s"] = reply.retry_after
        explained = self._word(said.get("message")) or "no explanation"
        return refused(
            f"{self.name} refused {doing}: {reply.status}, {explained}",
            retryable=reply.status in LATER,
            **facts,
        )

    def _word(self, value: Any) -> str:
        """What a service says, kept short; it may say anything, our token included."""
        if not isinstance(value, str):
            return ""
        # Before it is cut: of a token that lies across the cut, nobody would know the first part.
        hushed = value.replace(self.token, HUSHED) if self.token else value
        return " ".join(hushed.split())[:300]


async def _read(response: "httpx2.Response") -> Any:
    kept = bytearray()
    async for part in response.aiter_bytes():
        kept += part
        if len(kept) > MOST:
            raise ConnectionError("the answer is too large")
    try:
        return msgspec.json.decode(bytes(kept)) if kept else None
    except msgspec.DecodeError:
        return None


def _seconds(response: "httpx2.Response") -> float | None:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdigit() else None
