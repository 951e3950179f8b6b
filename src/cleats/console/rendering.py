"""Rendering: templates, their filters, and the headers of every page. The first page served imports Jinja."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from cleats.console.static_files import get_static_url
from cleats.contract.versions import TOOLING_VERSION

if TYPE_CHECKING:
    from jinja2 import Environment

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere, no frame: hostile text that got past the escaping cannot run."""

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Not "no-referrer": browsers would then send forms with `Origin: null`, which the guard refuses.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

TEMPLATES_FOLDER: Final = Path(__file__).with_name("templates")


@cache
def load_environment() -> "Environment":
    """Return the template engine, which escapes everything by default."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - by the first page

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {"static": get_static_url, "link": build_link, "tooling_version": TOOLING_VERSION}
    environment.filters |= {
        "ago": format_age,
        "bytes": format_bytes,
        "duration": format_duration,
        "number": lambda value: f"{value:,}",
        "plural": lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}",
        "pretty_json": format_json,
        "parse_time": parse_time,
    }
    return environment


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """Render a template to HTML."""
    return load_environment().get_template(template).render(values)


def page_response(html: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return HTML as a response with the headers of every page."""
    return Response(html, status, {**PAGE_HEADERS, **(headers or {})}, "text/html; charset=utf-8")


def build_link(path: str, *pairs: tuple[str, Any], **query: Any) -> str:
    """Return a path with a query; empty and missing values are left out."""
    items = [(name, value) for name, value in (*pairs, *query.items()) if value not in (None, "", False)]
    return f"{path}?{urlencode(items, doseq=True)}" if items else path


def parse_time(text: str | None) -> float | None:
    """Return the moment of an ISO timestamp, or None without one."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def format_age(moment: float | None) -> str:
    """Format a moment as the time since then."""
    if moment is None:
        return ""
    seconds = max(0, time() - moment)
    if seconds < 10:
        return "just now"
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def format_duration(milliseconds: float | None) -> str:
    """Format a duration with a sensible unit."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def format_bytes(count: float) -> str:
    """Format a number of bytes with a sensible unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return ""


def format_json(value: Any) -> str:
    """Format a JSON value for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
