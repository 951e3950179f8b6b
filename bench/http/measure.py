"""One round of one route: load from wrk, CPU time from the kernel."""

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

from bench.calls.process import BenchmarkError, ServerProcess, limit_time, run_server

CONNECTION_COUNT = 16
WARM_UP_SECONDS = 0.5
"""Seconds of load that are not counted, to warm up code paths and connections."""

START_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BenchRoute:
    """A request to measure, and the tool call that it corresponds to."""

    name: str
    path: str
    body: str = ""
    tool: str = ""
    """The tool whose call without HTTP is compared with the route."""

    connections: int = CONNECTION_COUNT


@dataclass(frozen=True, slots=True)
class RouteSample:
    """The rate that wrk saw and the CPU time that the server used."""

    rate: float
    cpu_us: float


@contextmanager
def run_peer(module: str) -> Iterator[tuple[ServerProcess, str]]:
    """Run a peer and yield its process and its address."""
    with run_server([sys.executable, "-m", module]) as server:
        with limit_time(START_TIMEOUT_SECONDS):
            url = json.loads(server.receive_line())["baseUrl"]
        yield server, url


def measure_load(server: ServerProcess, url: str, route: BenchRoute, seconds: float) -> RouteSample:
    """Send requests as fast as the server answers, for a while.

    Raises:
        BenchmarkError: An answer was not 200, or wrk failed.
    """
    script = Path.cwd() / f".wrk-{os.getpid()}.lua"
    script.write_text(_build_lua_script(route))
    try:
        _run_wrk(url, route, script, WARM_UP_SECONDS)
        before = server.read_usage().cpu
        requests, elapsed = _run_wrk(url, route, script, seconds)
        return RouteSample(requests / elapsed, (server.read_usage().cpu - before) / requests * 1e6)
    finally:
        script.unlink()


def _build_lua_script(route: BenchRoute) -> str:
    if not route.body:
        return ""
    body = route.body.replace("]]", "")
    return f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[{body}]]\n'


def _run_wrk(url: str, route: BenchRoute, script: Path, seconds: float) -> tuple[int, float]:
    # wrk takes whole seconds; its report has the real duration.
    load_options = ["-t1", f"-c{route.connections}", f"-d{max(1, round(seconds))}s"]
    command = ["wrk", *load_options, "-s", str(script), url + route.path]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    summary = re.search(r"(\d+) requests in ([\d.]+)(m?)s", completed.stdout)
    if completed.returncode or summary is None:
        raise BenchmarkError(f"wrk failed: {completed.stderr or completed.stdout}")
    if "Non-2xx" in completed.stdout:
        raise BenchmarkError(f"{route.path} did not answer 200: {completed.stdout.splitlines()[-3:]}")
    requests, elapsed = int(summary[1]), float(summary[2]) * (60 if summary[3] else 1)
    return requests, elapsed


def measure_in_process(route: BenchRoute, seconds: float) -> float:
    """Return the CPU microseconds of the same call without HTTP."""
    command = [sys.executable, "-m", "bench.http.peers.in_process"]
    completed = subprocess.run(
        [*command, route.tool, route.body or "{}", str(seconds)],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise BenchmarkError(f"{route.tool} in process: {completed.stderr.splitlines()[-1:]}")
    return float(completed.stdout)


def measure_hang_up(url: str, streams: int) -> float:
    """Return the milliseconds from the moment many clients leave until their calls are gone."""
    host, port = url.removeprefix("http://").split(":")
    connections = []
    for _ in range(streams):
        connection = http.client.HTTPConnection(host, int(port), timeout=START_TIMEOUT_SECONDS)
        connection.request("POST", "/tools/wait/stream", b"{}", {"content-type": "application/json"})
        assert connection.getresponse().status == 200
        connections.append(connection)
    _wait_for_calls(url, streams)
    start_time = time.monotonic()
    for connection in connections:
        connection.close()
    _wait_for_calls(url, 0)
    return (time.monotonic() - start_time) * 1000


def _wait_for_calls(url: str, calls: int) -> None:
    end = time.monotonic() + START_TIMEOUT_SECONDS
    while _count_open_calls(url) != calls:
        if time.monotonic() > end:
            raise BenchmarkError(f"there were never {calls} open calls")
        time.sleep(0.001)


def _count_open_calls(url: str) -> int:
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=START_TIMEOUT_SECONDS)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    figures = dict(line.split(" ", 1) for line in text.splitlines())
    return int(figures["cleats_calls_running"]) + int(figures["cleats_calls_waiting"])
