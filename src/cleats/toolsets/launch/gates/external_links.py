"""Every link to the world outside leads somewhere. Only asked for: it needs the network.

Links come from repositories that anybody may write, so they are no way into a private network:
only HTTPS, and only hosts whose every address is public, unless the operator lists the host. A
redirect is judged like the link itself.
"""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2

from cleats.toolsets.launch.gates.addresses import Addresses
from cleats.toolsets.launch.gates.model import Gate, Said, error, warning
from cleats.toolsets.launch.gates.site import Site

SECONDS = 10.0
"""For one address; a page that takes longer is as good as gone for a reader."""
AT_ONCE = 8
REDIRECTS = 5
GONE = frozenset({404, 410})
NO_HEAD = frozenset({403, 404, 405, 406, 429, 501})
"""Answers to HEAD that say little about GET."""


async def errand(site: Site) -> list[Said]:
    if site.job.settings.get("offline"):
        return ["not asked: the operator works offline"]
    if site.config.get("offline_mode"):
        return ["not asked: the run works offline"]
    places: dict[str, list[tuple[str, int]]] = {}
    addresses = Addresses(site)
    for file in site.files:
        for link in file.links:
            if addresses.target(file, link.target).kind == "outside":
                places.setdefault(link.target.split("#", 1)[0], []).append((file.path, link.line))
    listed = tuple(site.job.settings.get("link_hosts") or ())
    answers: dict[str, str] = {}
    slots = anyio.CapacityLimiter(AT_ONCE)
    async with (
        httpx2.AsyncClient(follow_redirects=False, timeout=SECONDS, trust_env=False) as client,
        anyio.create_task_group() as tasks,
    ):
        for url in sorted(places):
            tasks.start_soon(_ask, client, slots, url, listed, answers)
    return _said(places, answers)


def _said(
    places: Mapping[str, Sequence[tuple[str, int]]], answers: Mapping[str, str]
) -> list[Said]:
    said: list[Said] = []
    for url, where in sorted(places.items()):
        answer = answers[url]
        said.append(f"{url}: {answer}")
        if answer == "there":
            continue
        gone = answer == "gone"
        make, code = (
            (error, "GATE_EXTERNAL_GONE") if gone else (warning, "GATE_EXTERNAL_UNREACHABLE")
        )
        said.extend(make(code, f"{answer}: {url}", path, line) for path, line in where)
    return said


async def _ask(
    client: httpx2.AsyncClient,
    slots: anyio.CapacityLimiter,
    url: str,
    listed: Sequence[str],
    answers: dict[str, str],
) -> None:
    async with slots:
        try:
            with anyio.fail_after(2 * SECONDS):
                answers[url] = await _answer(client, url, listed)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError):
            answers[url] = "no answer"


async def _answer(client: httpx2.AsyncClient, url: str, listed: Sequence[str]) -> str:
    for _ in range(REDIRECTS + 1):
        if not await allowed(url, listed):
            return "not asked: not a public HTTPS address"
        status, onward = await _status(client, url)
        if not onward:
            if status in GONE:
                return "gone"
            return "there" if status < 400 else f"answered {status}"
        url = urljoin(url, onward)
    return "redirected too often"


async def _status(client: httpx2.AsyncClient, url: str) -> tuple[int, str]:
    head = await client.head(url)
    status, onward = head.status_code, head.headers.get("location", "")
    if status in NO_HEAD:
        async with client.stream("GET", url) as got:  # the body is not read
            status, onward = got.status_code, got.headers.get("location", "")
    return status, onward if 300 <= status < 400 else ""


async def allowed(url: str, listed: Sequence[str]) -> bool:
    """Whether an address may be asked: listed by the operator, or HTTPS and public."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.netloc in listed or parts.hostname in listed:
        return parts.scheme in ("http", "https")
    if parts.scheme != "https" or not parts.hostname or parts.username or port not in (None, 443):
        return False
    found = await anyio.getaddrinfo(parts.hostname, 443, type=socket.SOCK_STREAM)
    return bool(found) and all(ipaddress.ip_address(each[4][0]).is_global for each in found)


GATE = Gate(name="external_links", purpose=__doc__, errand=errand, local=300.0, strict=600.0)
