"""Sending an asset to the backend: one POST, five seconds, no second try.

What the configuration holds stays here: a password in the URL is sent as such and is neither
logged nor answered.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from cleats.contract.versions import TOOLING_VERSION
from cleats.settings import SettingError, Settings

if TYPE_CHECKING:
    import ssl

    import httpx2

TIMEOUT: Final = 5.0
"""Seconds for the whole exchange, slow bodies included."""

MOST: Final = 64 * 1024
"""Bytes of an answer that are read; an id needs few of them, and so does an explanation."""

HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": f"cleats/{TOOLING_VERSION}",
}

DETAIL: Final = 500
"""Characters of an explanation that are passed on."""


@dataclass(frozen=True, slots=True)
class Backend:
    """Where assets go, taken apart."""

    shown: str
    """The URL as it was configured, without its password."""
    target: str
    auth: tuple[str, str] | None

    async def post(self, asset: Any) -> dict[str, Any]:
        """Send an asset; the payload of `populate_backend`, whatever happened."""
        import asyncio  # noqa: PLC0415 - the command line validates without it

        import httpx2  # noqa: PLC0415 - heavy, and most servers never publish

        # The environment's proxies and .netrc are none of a tool's business: what it talks to is
        # what its settings say.
        client = httpx2.AsyncClient(
            timeout=TIMEOUT, trust_env=False, follow_redirects=False, verify=self._trust()
        )
        try:
            async with client, asyncio.timeout(TIMEOUT):
                status, body = await self._exchange(client, asset)
        except (TimeoutError, httpx2.TimeoutException):
            return backend_error(HTTPStatus.GATEWAY_TIMEOUT, "timeout")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError):
            return backend_error(HTTPStatus.SERVICE_UNAVAILABLE, "network_unreachable")
        if not 200 <= status < 300:
            return backend_error(status, _explanation(status, body))
        identity = _identity(body)
        if identity is None:
            return backend_error(status, "invalid_response")
        return {"ok": True, "asset_id": identity, "backend_url": self.shown}

    async def _exchange(self, client: "httpx2.AsyncClient", asset: Any) -> tuple[int, bytes]:
        content = msgspec.json.encode(asset)
        async with client.stream(
            "POST", self.target, content=content, headers=HEADERS, auth=self.auth
        ) as response:
            return response.status_code, await _beginning(response)

    def _trust(self) -> "bool | ssl.SSLContext":
        """The system's certificates, which take longer to load than all the rest, if needed."""
        if self.target.startswith("https:"):
            return True
        import ssl  # noqa: PLC0415

        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def backend(settings: Settings) -> Backend | None:
    """The backend that is configured; None when publishing is off.

    Raises:
        SettingError: the URL is none that can be posted to. It is not repeated: it may have a
            password in it.
    """
    if not settings.backend_url:
        return None
    try:
        parts = urlsplit(settings.backend_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise SettingError("SYN_BACKEND_URL: expected http(s)://HOST[:PORT][/PATH]")
    place = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{place}{f':{port}' if port else ''}{parts.path}"
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    return Backend(shown, shown.rstrip("/") + "/" + settings.backend_assets_path.lstrip("/"), auth)


def backend_error(status: int, detail: str) -> dict[str, Any]:
    return {"ok": False, "reason": "backend_error", "status": int(status), "detail": detail}


async def _beginning(response: "httpx2.Response") -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MOST:
            break
    return body[:MOST]


def _identity(body: bytes) -> str | None:
    try:
        answer = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    for key in ("id", "asset_id") if isinstance(answer, dict) else ():
        identity = answer.get(key)
        usable = isinstance(identity, str | int) and not isinstance(identity, bool)
        if usable and identity != "":
            return str(identity)
    return None


def _explanation(status: int, body: bytes) -> str:
    text = body.decode(errors="replace").strip()
    if text:
        return text if len(text) <= DETAIL else text[: DETAIL - 1] + "…"
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "no explanation"
