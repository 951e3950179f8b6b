"""Every link to another site must lead somewhere. This gate is opt-in: it needs the network.

Links come from repositories that anybody may write, so they must not open a way into a private
network: only HTTPS is used, and only hosts with public addresses alone, unless the operator lists
the host. Each redirect is checked like the link itself.
"""

import socket
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2

from cleats.system.http_client import create_client, is_public_address
from cleats.toolsets.launch.gates.internal_links import LinkResolver, fix_broken_links
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite

REQUEST_TIMEOUT_SECONDS = 10.0
"""Timeout of one request; for a reader, a page that takes longer is as good as gone."""
MAX_CONCURRENT_REQUESTS = 8
MAX_REDIRECTS = 5
GONE_STATUS_CODES = frozenset({404, 410})
HEAD_RETRY_STATUS_CODES = frozenset({403, 404, 405, 406, 429, 501})
"""Status codes after HEAD that say little about GET."""

PAGE_GONE = IssueKind(
    "GATE_EXTERNAL_GONE", "error", "Link to a page that exists, or remove the link and keep its text.", fix_broken_links
)
PAGE_UNREACHABLE = IssueKind("GATE_EXTERNAL_UNREACHABLE", "warn", "Follow the link by hand; it may only be slow.")


async def check_external_links(site: LaunchSite) -> list[GateMessage]:
    if site.job.settings.get("offline") or site.config.get("offline_mode"):
        return [f"not checked: the {'operator' if site.job.settings.get('offline') else 'run'} works offline"]
    locations_by_url: dict[str, list[tuple[str, int]]] = {}
    resolver = LinkResolver(site)
    for file in site.files:
        for link in file.links:
            if resolver.parse_link(file, link.target).kind == "outside":
                locations_by_url.setdefault(link.target.split("#", 1)[0], []).append((file.path, link.line))
    allowed_hosts = tuple(site.job.settings.get("link_hosts") or ())
    answers: dict[str, str] = {}
    slots = anyio.CapacityLimiter(MAX_CONCURRENT_REQUESTS)

    async def request_url(url: str) -> None:
        async with slots:
            try:
                with anyio.fail_after(2 * REQUEST_TIMEOUT_SECONDS):
                    answers[url] = await _follow_url(client, url, allowed_hosts)
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError):
                answers[url] = "no answer"

    async with create_client(timeout=REQUEST_TIMEOUT_SECONDS) as client, anyio.create_task_group() as tasks:
        for url in sorted(locations_by_url):
            tasks.start_soon(request_url, url)
    messages: list[GateMessage] = []
    for url, locations in sorted(locations_by_url.items()):
        answer = answers[url]
        messages.append(f"{url}: {answer}")
        kind = PAGE_GONE if answer == "gone" else PAGE_UNREACHABLE
        if answer != "there":
            messages.extend(kind.draft(f"{answer}: {url}", path, line) for path, line in locations)
    return messages


async def _follow_url(client: httpx2.AsyncClient, url: str, allowed_hosts: Sequence[str]) -> str:
    for _ in range(MAX_REDIRECTS + 1):
        if not await is_allowed_url(url, allowed_hosts):
            return "not checked: not a public HTTPS address"
        status, redirect_url = await _fetch_status(client, url)
        if not redirect_url:
            if status in GONE_STATUS_CODES:
                return "gone"
            return "there" if status < 400 else f"answered {status}"
        url = urljoin(url, redirect_url)
    return "redirected too often"


async def _fetch_status(client: httpx2.AsyncClient, url: str) -> tuple[int, str]:
    head = await client.head(url)
    status, redirect_url = head.status_code, head.headers.get("location", "")
    if status in HEAD_RETRY_STATUS_CODES:
        async with client.stream("GET", url) as response:  # the body is not read
            status, redirect_url = response.status_code, response.headers.get("location", "")
    return status, redirect_url if 300 <= status < 400 else ""


async def is_allowed_url(url: str, allowed_hosts: Sequence[str]) -> bool:
    """Return whether a URL may be requested: listed by the operator, or HTTPS and public."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.netloc in allowed_hosts or parts.hostname in allowed_hosts:
        return parts.scheme in ("http", "https")
    if parts.scheme != "https" or not parts.hostname or parts.username or port not in (None, 443):
        return False
    addresses = await anyio.getaddrinfo(parts.hostname, 443, type=socket.SOCK_STREAM)
    return bool(addresses) and all(is_public_address(str(address[4][0])) for address in addresses)


GATE = Gate("external_links", __doc__, check_external_links, local_seconds=300.0, strict_seconds=600.0)
