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

from bench.calls.process import Broken, Server, running, time_limit
from bench.calls.servers import CACHE, FASTMCP
from bench.calls.wire import initialize, initialized
from bench.skills import world

PEERS = Path(__file__).parent / "peers"
CALLS = 300
"""Calls whose median is taken; the machine's pauses are longer than a call."""

LIMIT = 300.0
"""Seconds for all of a round; FastMCP asks its provider for every request, whatever it is."""


@dataclass(slots=True)
class Figures:
    """What a round measured. Milliseconds of CPU, unless the name says wall; megabytes."""

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


def ours(folder: Path, count: int) -> Figures:
    """Cleats, over its own wire."""
    command = [sys.executable, "-m", "bench.skills.peers.cleats_skills", str(folder)]
    figures = Figures()
    with _client([*command, "alone"]) as (client, begun):
        (tool, *_) = client.ask("tools/list")["tools"]
        figures.start_wall = _ms(time.perf_counter() - begun)
        figures.description = len(tool["description"])
        figures.memory = client.server.usage().peak / 1e6
    with _client(command) as (client, _):
        figures.build = float(client.call("build")) * 1e3
        figures.echo_wall = client.median(lambda n: client.call("echo", text=str(n)))
        names = [world.name(number % count) for number in range(CALLS)]
        figures.load_wall = client.median(lambda n: client.call("skill", name=names[n]))
        figures.missing_wall = client.median(
            lambda n: client.call("skill", name=f"{names[n][:-1]}x", fails=True)
        )
        client.call("refresh")
        figures.idle_refresh = min(float(client.call("refresh")) for _ in range(5)) * 1e3
        figures.echo_during_wall = max(client.during("refresh") for _ in range(5))
        changed = [folder / world.name(number) for number in range(0, count, 100)]
        for number, skill in enumerate(changed):
            world.edit(skill, number * 100, 1)
        world.settle([skill / "SKILL.md" for skill in changed])
        figures.busy_refresh = float(client.call("refresh")) * 1e3
    return figures


def fastmcp(folder: Path, count: int) -> Figures:
    """FastMCP: skills are resources, found at the start, or anew for every request."""
    python = CACHE / f"fastmcp-{FASTMCP}" / "bin" / "python"
    if not python.exists():
        raise Broken("not installed; `python -m bench.calls --only fastmcp` does that")
    command = [str(python), str(PEERS / "fastmcp_skills.py"), str(folder)]
    figures = Figures()
    with _client([*command, "once"]) as (client, begun):
        client.ask("resources/list")
        figures.start_wall = _ms(time.perf_counter() - begun)
        figures.memory = client.server.usage().peak / 1e6
        times = 20 if count <= 1000 else 3
        figures.echo_wall = client.median(lambda n: client.call("echo", text=str(n)), times)
        uris = [f"skill://{world.name(number % count)}/SKILL.md" for number in range(times)]
        read = client.median(lambda n: client.ask("resources/read", uri=uris[n]), times)
        figures.load_wall = read
    with _client([*command, "reload"]) as (client, _):
        client.ask("resources/read", uri=uris[0])
        before = client.server.usage().cpu
        client.ask("resources/read", uri=uris[0])
        figures.idle_refresh = _ms(client.server.usage().cpu - before)
    return figures


def bare(folder: Path, _count: int) -> Figures:
    """The limit: what the system calls alone cost from Python."""
    command = [sys.executable, str(PEERS / "bare.py"), str(folder)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    build, look = (float(line) * 1e3 for line in ran.stdout.split())
    return Figures(build=build, idle_refresh=look)


class Client:
    """Requests one after the other, each answer checked."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._next = 1
        self._pending = b""

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._send(method, params)
        return self._result(self._next)

    def call(self, tool: str, *, fails: bool = False, **arguments: Any) -> str:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError", False) is not fails:
            raise Broken(f"{tool}: {result}"[:300])
        return str(result["content"][0]["text"])

    def median(self, work: Callable[[int], object], times: int = CALLS) -> float:
        """Milliseconds that one of these takes."""
        work(0)
        took = sorted(_timed(work, number) for number in range(times))
        return _ms(took[times // 2])

    def during(self, tool: str) -> float:
        """The longest that an echo takes while another tool works, in milliseconds."""
        self._send("tools/call", {"name": tool, "arguments": {}})
        slow = self._next
        longest = 0.0
        while True:
            begun = time.perf_counter()
            self._send("tools/call", {"name": "echo", "arguments": {"text": "x"}})
            mine = self._next
            over = False
            while (answer := self.frame()).get("id") != mine:
                over |= answer.get("id") == slow
            if over:
                return longest
            longest = max(longest, _ms(time.perf_counter() - begun))

    def _send(self, method: str, params: dict[str, Any]) -> None:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self.server.send(json.dumps(message).encode() + b"\n")

    def _result(self, request_id: int) -> dict[str, Any]:
        while (answer := self.frame()).get("id") != request_id:
            pass
        if "result" not in answer:
            raise Broken(str(answer)[:300])
        result: dict[str, Any] = answer["result"]
        return result

    def frame(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            self._pending += self.server.receive()
        line, _, self._pending = self._pending.partition(b"\n")
        frame: dict[str, Any] = json.loads(line)
        return frame


@contextmanager
def _client(command: Sequence[str]) -> Iterator[tuple[Client, float]]:
    """A started server after the handshake, and when it was started."""
    root = Path(__file__).parents[2]
    begun = time.perf_counter()
    with running(["env", f"PYTHONPATH={root}", *command]) as server, time_limit(LIMIT):
        client = Client(server)
        server.send(initialize())
        client.frame()
        server.send(initialized())
        yield client, begun


def _timed(work: Callable[[int], object], number: int) -> float:
    begun = time.perf_counter()
    work(number)
    return time.perf_counter() - begun


def _ms(seconds: float) -> float:
    return seconds * 1e3
