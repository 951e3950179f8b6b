"""Publishing an asset to the backend: one POST, five seconds, no retry.

The configuration stays secret: a password in the URL is sent as such and is neither logged nor returned.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from cleats.settings import SettingError, Settings

BACKEND_TIMEOUT_SECONDS: Final = 5.0
"""The time limit for the whole exchange, slow bodies included."""

MAX_RESPONSE_BYTES: Final = 64 * 1024
"""The maximum part of a response that is read; an id or an explanation needs little."""

REQUEST_HEADERS: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
}

MAX_DETAIL_CHARS: Final = 500
"""The maximum length of an explanation in an answer."""


@dataclass(frozen=True, slots=True)
class AssetBackend:
    """The address and the credentials of the backend."""

    public_url: str
    """The configured URL without its password."""
    post_url: str
    auth: tuple[str, str] | None

    async def post(self, asset: Any) -> dict[str, Any]:
        """Send an asset and return the payload of `populate_backend`, whatever happened."""
        # Loaded here, because the command line validates without an event loop.
        from cleats.system.http_client import HttpClient, RequestFailedError  # noqa: PLC0415

        client = HttpClient(
            base_url=self.post_url,
            headers=REQUEST_HEADERS,
            auth=self.auth,
            timeout=BACKEND_TIMEOUT_SECONDS,
            max_bytes=MAX_RESPONSE_BYTES,
        )
        try:
            async with client:
                reply = await client.send("POST", content=msgspec.json.encode(asset))
        except RequestFailedError as error:
            if error.is_timeout:
                return backend_error(HTTPStatus.GATEWAY_TIMEOUT, "timeout")
            return backend_error(HTTPStatus.SERVICE_UNAVAILABLE, "network_unreachable")
        status, body = reply.status, reply.body
        if not reply.ok:
            return backend_error(status, _describe_failure(status, body))
        asset_id = _parse_asset_id(body)
        if asset_id is None:
            return backend_error(status, "invalid_response")
        return {"ok": True, "asset_id": asset_id, "backend_url": self.public_url}


def create_backend(settings: Settings) -> AssetBackend | None:
    """Return the configured backend, or None if publishing is off.

    Raises:
        SettingError: The URL cannot be posted to. The message omits it, because it may contain a password.
    """
    if not settings.assets.backend_url:
        return None
    try:
        parts = urlsplit(settings.assets.backend_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise SettingError("SYN_BACKEND_URL: expected http(s)://HOST[:PORT][/PATH]")
    host_text = f"[{host}]" if ":" in host else host
    public_url = f"{parts.scheme}://{host_text}{f':{port}' if port else ''}{parts.path}"
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    path = settings.assets.backend_assets_path.lstrip("/")
    return AssetBackend(public_url, f"{public_url.rstrip('/')}/{path}", auth)


def backend_error(status: int, detail: str) -> dict[str, Any]:
    return {"ok": False, "reason": "backend_error", "status": int(status), "detail": detail}


def _parse_asset_id(body: bytes) -> str | None:
    try:
        answer = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    for key in ("id", "asset_id") if isinstance(answer, dict) else ():
        asset_id = answer.get(key)
        is_usable = isinstance(asset_id, str | int) and not isinstance(asset_id, bool)
        if is_usable and asset_id != "":
            return str(asset_id)
    return None


def _describe_failure(status: int, body: bytes) -> str:
    text = body.decode(errors="replace").strip()
    if text:
        return text if len(text) <= MAX_DETAIL_CHARS else text[: MAX_DETAIL_CHARS - 1] + "…"
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "no explanation"
