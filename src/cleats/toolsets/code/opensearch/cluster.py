"""Requests to an OpenSearch: plain HTTP, a few tries where a try can help, honest failures."""

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

TIMEOUT: Final = 60.0
"""Seconds for one try of who is in no hurry."""

PAUSE: Final = 0.5
"""Seconds before the second try; each further one waits twice as long, and a little by chance, so
that many who were turned away do not come back together."""

LONGEST_PAUSE: Final = 30.0
LATER: Final = frozenset({429, 502, 503, 504})
"""Statuses of a cluster that may be well again in a moment."""

MOST: Final = 256 << 20
"""Bytes of an answer that are read: texts of a thousand files at most."""

JSON, LINES = "application/json", "application/x-ndjson"


class ClusterError(OSError):
    """A cluster that cannot be reached, or is not well."""


class RefusedError(ClusterError):
    """A cluster that does not do what it was asked for."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"it answered {status}, {kind or 'no reason'}: {reason}")
        self.status = status
        self.kind = kind
        """As OpenSearch names it: `index_not_found_exception`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and who we are to it."""

    base: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    authorities: str = ""
    """A file with the certificates that its own is checked with; those of this machine without."""
    tries: int = 8
    """How often a request is sent at most: for a minute, about."""
    pause: float = PAUSE

    def verified(self) -> ssl.SSLContext:
        """How its certificate is checked, if it has one."""
        if self.base.startswith("http://"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return ssl.create_default_context(cafile=self.authorities or None)


def place(settings: Settings) -> Place:
    """The cluster that the settings name.

    Raises:
        SettingError: the address is none, or has a password in it.
    """
    url = urlsplit(settings.opensearch_url)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise SettingError("opensearch_url: expected https://host:port, or http://…")
    if url.username or url.password:
        raise SettingError(
            "opensearch_url: keep who you are out of the address; "
            "use opensearch_user and opensearch_password"
        )
    return Place(
        settings.opensearch_url.rstrip("/"),
        settings.opensearch_user,
        settings.opensearch_password,
        settings.opensearch_token,
        settings.opensearch_ca,
    )


@dataclass(slots=True)
class Cluster:
    """A connection to it, for a while."""

    place: Place
    verified: ssl.SSLContext
    tries: int = 0
    """How often a request is sent at most; 0 is as often as the place says."""
    timeout: float = TIMEOUT
    """Seconds for one try."""
    _client: "httpx2.AsyncClient | None" = None

    async def __aenter__(self) -> Self:
        import httpx2  # noqa: PLC0415 - heavy, and few have a cluster

        place = self.place
        headers = {"accept": JSON, "user-agent": f"cleats/{TOOLING_VERSION}"}
        if place.token:
            headers["authorization"] = f"Bearer {place.token}"
        # A redirect would carry the password elsewhere; what we talk to is what the settings say.
        self._client = httpx2.AsyncClient(
            headers=headers,
            auth=httpx2.BasicAuth(place.user, place.password) if place.user else None,
            timeout=self.timeout,
            trust_env=False,
            follow_redirects=False,
            verify=self.verified,
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
        lines: bytes | None = None,
        missing: bool = False,
    ) -> Any:
        """One request, sent again while the cluster is busy or away; what it answers.

        Every request here may be repeated. With `missing`, None is the answer when there is no
        such thing.

        Raises:
            ClusterError: it cannot be reached, or refuses.
        """
        content = (
            lines if lines is not None else None if body is None else msgspec.json.encode(body)
        )
        kind = LINES if lines is not None else JSON
        tries = self.tries or self.place.tries
        for attempt in range(1, tries + 1):
            status, answer, after = await self._tried(method, path, content, kind, attempt == tries)
            if status == 404 and missing:
                return None
            if 200 <= status < 300:
                return answer
            if status not in LATER | {0} or attempt == tries:
                raise _refusal(status, answer)
            await self.rest(attempt, after)
        raise ClusterError("it was not asked")

    async def rest(self, attempt: int, after: float | None = None) -> None:
        """Wait before the next try."""
        pause = after if after is not None else self.place.pause * 2 ** (attempt - 1)
        chance = 1 + random.random() / 4  # noqa: S311 - no secret
        await anyio.sleep(min(pause, LONGEST_PAUSE) * chance)

    async def _tried(
        self, method: str, path: str, content: bytes | None, kind: str, last: bool
    ) -> tuple[int, Any, float | None]:
        """The status, what was said and when to come again; status 0 when nothing came back."""
        import httpx2  # noqa: PLC0415 - see above

        assert self._client is not None  # noqa: S101 - asked inside the block only
        sent = {"content-type": kind} if content is not None else {}
        try:
            with anyio.fail_after(self.timeout):
                async with self._client.stream(
                    method, self.place.base + path, content=content, headers=sent
                ) as response:
                    body = await _read(response)
                    return response.status_code, body, _seconds(response)
        except TimeoutError:
            failure = f"no answer in {self.timeout:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            failure = type(error).__name__  # its text has the address
        if last:
            raise ClusterError(f"it cannot be reached ({failure})")
        return 0, None, None


async def _read(response: "httpx2.Response") -> Any:
    kept = bytearray()
    async for part in response.aiter_bytes():
        kept += part
        if len(kept) > MOST:
            raise ClusterError("its answer is too large")
    try:
        return msgspec.json.decode(bytes(kept)) if kept else None
    except msgspec.DecodeError:
        return None


def _seconds(response: "httpx2.Response") -> float | None:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdigit() else None


def _refusal(status: int, answer: Any) -> ClusterError:
    kind, reason = reason_of(answer)
    return RefusedError(status, kind, reason)


def reason_of(answer: Any) -> tuple[str, str]:
    """Why a cluster refused: the kind of error and its text, kept short; it may say anything."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(error, str):
        return "", _word(error)
    if not isinstance(error, Mapping):
        return "", "no explanation"
    causes = error.get("root_cause")
    cause = causes[0] if isinstance(causes, list) and causes else error
    told = cause if isinstance(cause, Mapping) else error
    return _word(told.get("type")), _word(told.get("reason")) or "no explanation"


def _word(value: Any) -> str:
    return " ".join(str(value).split())[:300] if isinstance(value, str) else ""


def unavailable(error: ClusterError, name: str) -> ToolError:
    """What a caller is told."""
    status = error.status if isinstance(error, RefusedError) else 0
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
