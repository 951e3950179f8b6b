"""One round with one server over one folder of skills."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls.process import BenchmarkError, ServerProcess, limit_time, run_server
from bench.calls.servers import CACHE_FOLDER, FASTMCP_VERSION
from bench.calls.wire import build_initialize, build_initialized
from bench.skills import world

PEERS_FOLDER = Path(__file__).parent / "peers"
MEDIAN_CALLS = 300
"""The number of calls whose median is taken; pauses of the machine are longer than a call."""

ROUND_TIMEOUT_SECONDS = 300.0
"""Seconds for a whole round; FastMCP asks its provider for every request of any kind."""


@dataclass(slots=True)
class SkillFigures:
    """The figures of a round: milliseconds of CPU unless the name says wall; megabytes."""

    start_wall: float | None = None
    build: float | None = None
    idle_refresh: float | None = None
    busy_refresh: float | None = None
    echo_wall: float | None = None
    load_wall: float | None = None
    missing_wall: float | None = None
    echo_during_wall: float | None = None
    description: float | None = None
    memory: float | None = None


def measure_cleats(folder: Path, count: int) -> SkillFigures:
    """Measure Cleats over its own wire."""
    command = [sys.executable, "-m", "bench.skills.peers.cleats_skills", str(folder)]
    figures = SkillFigures()
    with _open_client([*command, "alone"]) as (client, start_time):
        (tool, *_) = client.send_request("tools/list")["tools"]
        figures.start_wall = _to_milliseconds(time.perf_counter() - start_time)
        figures.description = len(tool["description"])
        figures.memory = client.server.read_usage().peak / 1e6
    with _open_client(command) as (client, _):
        figures.build = float(client.call_tool("build")) * 1e3
        figures.echo_wall = client.measure_median(lambda n: client.call_tool("echo", text=str(n)))
        names = [world.format_skill_name(number % count) for number in range(MEDIAN_CALLS)]
        figures.load_wall = client.measure_median(lambda n: client.call_tool("skill", name=names[n]))
        figures.missing_wall = client.measure_median(
            lambda n: client.call_tool("skill", name=f"{names[n][:-1]}x", fails=True)
        )
        client.call_tool("refresh")
        figures.idle_refresh = min(float(client.call_tool("refresh")) for _ in range(5)) * 1e3
        figures.echo_during_wall = max(client.measure_echo_during("refresh") for _ in range(5))
        changed = [folder / world.format_skill_name(number) for number in range(0, count, 100)]
        for number, skill in enumerate(changed):
            world.write_skill(skill, number * 100, 1)
        world.backdate_files([skill / "SKILL.md" for skill in changed])
        figures.busy_refresh = float(client.call_tool("refresh")) * 1e3
    return figures


def measure_fastmcp(folder: Path, count: int) -> SkillFigures:
    """Measure FastMCP: skills are resources, found at the start or again for every request."""
    python = CACHE_FOLDER / f"fastmcp-{FASTMCP_VERSION}" / "bin" / "python"
    if not python.exists():
        raise BenchmarkError("not installed; `python -m bench.calls --only fastmcp` does that")
    command = [str(python), str(PEERS_FOLDER / "fastmcp_skills.py"), str(folder)]
    figures = SkillFigures()
    with _open_client([*command, "once"]) as (client, start_time):
        client.send_request("resources/list")
        figures.start_wall = _to_milliseconds(time.perf_counter() - start_time)
        figures.memory = client.server.read_usage().peak / 1e6
        times = 20 if count <= 1000 else 3
        figures.echo_wall = client.measure_median(lambda n: client.call_tool("echo", text=str(n)), times)
        uris = [f"skill://{world.format_skill_name(number % count)}/SKILL.md" for number in range(times)]
        read_time = client.measure_median(lambda n: client.send_request("resources/read", uri=uris[n]), times)
        figures.load_wall = read_time
    with _open_client([*command, "reload"]) as (client, _):
        client.send_request("resources/read", uri=uris[0])
        cpu_before = client.server.read_usage().cpu
        client.send_request("resources/read", uri=uris[0])
        figures.idle_refresh = _to_milliseconds(client.server.read_usage().cpu - cpu_before)
    return figures


def measure_bare(folder: Path, _count: int) -> SkillFigures:
    """Measure the limit: the cost of the system calls alone from Python."""
    command = [sys.executable, str(PEERS_FOLDER / "bare.py"), str(folder)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=ROUND_TIMEOUT_SECONDS)
    build, look = (float(line) * 1e3 for line in completed.stdout.split())
    return SkillFigures(build=build, idle_refresh=look)


class SkillsClient:
    """A client that sends requests one after the other and checks each answer."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self._last_id = 1
        self._pending = b""

    def send_request(self, method: str, **params: Any) -> dict[str, Any]:
        self._send_message(method, params)
        return self._wait_for_result(self._last_id)

    def call_tool(self, tool: str, *, fails: bool = False, **arguments: Any) -> str:
        result = self.send_request("tools/call", name=tool, arguments=arguments)
        if result.get("isError", False) is not fails:
            raise BenchmarkError(f"{tool}: {result}"[:300])
        return str(result["content"][0]["text"])

    def measure_median(self, work: Callable[[int], object], times: int = MEDIAN_CALLS) -> float:
        """Return the median milliseconds of one call."""
        work(0)
        durations = sorted(_measure_seconds(work, number) for number in range(times))
        return _to_milliseconds(durations[times // 2])

    def measure_echo_during(self, tool: str) -> float:
        """Return the longest milliseconds of an echo while another tool works."""
        self._send_message("tools/call", {"name": tool, "arguments": {}})
        slow_id = self._last_id
        longest = 0.0
        while True:
            start_time = time.perf_counter()
            self._send_message("tools/call", {"name": "echo", "arguments": {"text": "x"}})
            echo_id = self._last_id
            is_done = False
            while (answer := self.read_frame()).get("id") != echo_id:
                is_done |= answer.get("id") == slow_id
            if is_done:
                return longest
            longest = max(longest, _to_milliseconds(time.perf_counter() - start_time))

    def _send_message(self, method: str, params: dict[str, Any]) -> None:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.server.send(json.dumps(message).encode() + b"\n")

    def _wait_for_result(self, request_id: int) -> dict[str, Any]:
        while (answer := self.read_frame()).get("id") != request_id:
            pass
        if "result" not in answer:
            raise BenchmarkError(str(answer)[:300])
        result: dict[str, Any] = answer["result"]
        return result

    def read_frame(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            self._pending += self.server.receive()
        line, _, self._pending = self._pending.partition(b"\n")
        frame: dict[str, Any] = json.loads(line)
        return frame


@contextmanager
def _open_client(command: Sequence[str]) -> Iterator[tuple[SkillsClient, float]]:
    """Start a server, do the handshake, and yield the client and the start time."""
    root = Path(__file__).parents[2]
    start_time = time.perf_counter()
    with run_server(["env", f"PYTHONPATH={root}", *command]) as server, limit_time(ROUND_TIMEOUT_SECONDS):
        client = SkillsClient(server)
        server.send(build_initialize())
        client.read_frame()
        server.send(build_initialized())
        yield client, start_time


def _measure_seconds(work: Callable[[int], object], number: int) -> float:
    start_time = time.perf_counter()
    work(number)
    return time.perf_counter() - start_time


def _to_milliseconds(seconds: float) -> float:
    return seconds * 1e3
