"""One round of one route: load from wrk, CPU from the kernel."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.calls.process import Broken, Server, running, time_limit

CONNECTIONS = 16
WARM_UP = 0.5
"""Seconds of load that are not counted: code paths and connections get warm."""

START_LIMIT = 30.0


@dataclass(frozen=True, slots=True)
class Route:
    """Something to ask for, and the call that it stands for."""

    name: str
    path: str
    body: str = ""
    tool: str = ""
    """The tool whose call without HTTP is set beside it."""

    connections: int = CONNECTIONS


@dataclass(frozen=True, slots=True)
class Sample:
    """What wrk saw and what the server used."""

    rate: float
    cpu_us: float


@contextmanager
def serving(module: str) -> Iterator[tuple[Server, str]]:
    """A peer and its address."""
    with running([sys.executable, "-m", module]) as server:
        with time_limit(START_LIMIT):
            url = json.loads(server.receive_line())["baseUrl"]
        yield server, url


def load(server: Server, url: str, route: Route, seconds: float) -> Sample:
    """Ask as fast as the server answers, for a while.

    Raises:
        Broken: some answer was not 200, or wrk failed.
    """
    script = Path.cwd() / f".wrk-{os.getpid()}.lua"
    script.write_text(_lua(route))
    try:
        _wrk(url, route, script, WARM_UP)
        before = server.usage().cpu
        requests, took = _wrk(url, route, script, seconds)
        return Sample(requests / took, (server.usage().cpu - before) / requests * 1e6)
    finally:
        script.unlink()


def _lua(route: Route) -> str:
    if not route.body:
        return ""
    body = route.body.replace("]]", "")
    return (
        'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
        f"wrk.body = [[{body}]]\n"
    )


def _wrk(url: str, route: Route, script: Path, seconds: float) -> tuple[int, float]:
    # wrk counts in whole seconds; its own report says how long it really took.
    load = ["-t1", f"-c{route.connections}", f"-d{max(1, round(seconds))}s"]
    command = ["wrk", *load, "-s", str(script), url + route.path]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) requests in ([\d.]+)(m?)s", ended.stdout)
    if ended.returncode or found is None:
        raise Broken(f"wrk failed: {ended.stderr or ended.stdout}")
    if "Non-2xx" in ended.stdout:
        raise Broken(f"{route.path} did not answer 200: {ended.stdout.splitlines()[-3:]}")
    requests, took = int(found[1]), float(found[2]) * (60 if found[3] else 1)
    return requests, took


def in_process(route: Route, seconds: float) -> float:
    """CPU microseconds of the same call without HTTP."""
    command = [sys.executable, "-m", "bench.http.peers.in_process"]
    ended = subprocess.run(
        [*command, route.tool, route.body or "{}", str(seconds)],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise Broken(f"{route.tool} in process: {ended.stderr.splitlines()[-1:]}")
    return float(ended.stdout)


def hang_up(url: str, streams: int) -> float:
    """Milliseconds from the moment many clients leave until nothing of their calls is left."""
    host, port = url.removeprefix("http://").split(":")
    links = []
    for _ in range(streams):
        link = http.client.HTTPConnection(host, int(port), timeout=START_LIMIT)
        link.request("POST", "/tools/wait/stream", b"{}", {"content-type": "application/json"})
        assert link.getresponse().status == 200
        links.append(link)
    _until(url, streams)
    begun = time.monotonic()
    for link in links:
        link.close()
    _until(url, 0)
    return (time.monotonic() - begun) * 1000


def _until(url: str, calls: int) -> None:
    end = time.monotonic() + START_LIMIT
    while _open_calls(url) != calls:
        if time.monotonic() > end:
            raise Broken(f"there were never {calls} open calls")
        time.sleep(0.001)


def _open_calls(url: str) -> int:
    host, port = url.removeprefix("http://").split(":")
    link = http.client.HTTPConnection(host, int(port), timeout=START_LIMIT)
    link.request("GET", "/metrics")
    text = link.getresponse().read().decode()
    link.close()
    figures = dict(line.split(" ", 1) for line in text.splitlines())
    return int(figures["cleats_calls_running"]) + int(figures["cleats_calls_waiting"])
