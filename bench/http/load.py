"""A server under mixed load at saturation: `python -m bench.http.load --seconds 1800`.

Two tokens search, one on many connections and one on a few; others call tools, use MCP sessions, read event streams,
read slowly, and hang up in the middle of calls. 1,000 MCP sessions are open and idle. The report says whether an answer
was lost or wrong, how long answers took, whether the tokens were treated alike, and how the memory grew.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from bench.http.load_client import LoadConnection, LostAnswerError
from bench.http.load_server import QUERIES, LoadedServer, prepare_home, read_memory_mb, serve_workers
from cleats.transports.http.tokens import AccessToken, format_entry, hash_token

MCP_HEADERS = {"accept": "application/json, text/event-stream"}
INITIALIZE_PARAMS = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "load", "version": "1"},
}
MANY_CONNECTIONS, FEW_CONNECTIONS = 24, 2
SLOW_READERS = 20
SLOW_READ_SECONDS = 0.5
ABANDONED_CALLS = 100
ABANDON_INTERVAL_SECONDS = 2.0
MEMORY_INTERVAL_SECONDS = 5.0
OVERLOAD_PAUSE_SECONDS = 0.02
"""The pause of a client whose call was refused because the queue is full."""

MAX_P99_SECONDS = 5.0
MAX_GROWTH_MB_PER_HOUR = 60.0
MAX_UNFAIRNESS = 3.0
"""The latency of a token with a few connections, at most this multiple of that of the one with many."""


@dataclass
class LoadRecord:
    """What the clients saw."""

    durations: dict[str, list[float]] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def add(self, kind: str, seconds: float) -> None:
        self.durations.setdefault(kind, []).append(seconds)

    def refuse(self, kind: str) -> None:
        self.refusals[kind] = self.refusals.get(kind, 0) + 1


class MixedLoad:
    """The clients of one server."""

    def __init__(self, url: str, tokens: dict[str, str], seconds: float) -> None:
        self.record = LoadRecord()
        self.url = url
        self._tokens = tokens
        self._end = monotonic() + seconds
        self._chance = random.Random(7)

    def connect(self, name: str) -> LoadConnection:
        return LoadConnection(self.url, {"authorization": f"Bearer {self._tokens[name]}"})

    async def repeat(self, kind: str, name: str, step: Callable[[LoadConnection], Awaitable[bool]]) -> None:
        """Repeat a step on one connection; it returns False for a refusal because of the load."""
        connection = self.connect(name)
        while monotonic() < self._end:
            started_at = monotonic()
            try:
                if await step(connection):
                    self.record.add(kind, monotonic() - started_at)
                else:
                    self.record.refuse(kind)
                    await asyncio.sleep(OVERLOAD_PAUSE_SECONDS)
            except LostAnswerError as error:
                self.record.lost.append(f"{kind}: {error}")
        connection.close()

    def check(self, kind: str, *, holds: bool, text: bytes) -> None:
        if not holds:
            self.record.wrong.append(f"{kind}: {text[:300]!r}")

    async def search(self, connection: LoadConnection) -> bool:
        answer = await connection.request("POST", "/search", {"query": self._chance.choice(QUERIES)})
        if answer.status == 503:
            return False
        self.check("search", holds=answer.status == 200 and b'"ok":true' in answer.body, text=answer.body)
        return True

    async def call_tool(self, connection: LoadConnection) -> bool:
        answer = await connection.request("POST", "/tools/index_status", {})
        if answer.status == 503:
            return False
        self.check("tool", holds=answer.status == 200, text=answer.body)
        return True

    async def stream(self, connection: LoadConnection) -> bool:
        answer = await connection.request("POST", "/search/stream", {"query": self._chance.choice(QUERIES)})
        if b"QUEUE_OVERLOADED" in answer.body:
            return False
        is_whole = answer.body.count(b"event: done") == 1 and b"event: result" in answer.body
        self.check("stream", holds=answer.status == 200 and is_whole, text=answer.body)
        return True

    async def open_session(self, connection: LoadConnection) -> dict[str, str]:
        """Open an MCP session and return its headers."""
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE_PARAMS}
        answer = await connection.request("POST", "/mcp", message, MCP_HEADERS)
        self.check("initialize", holds=answer.status == 200, text=answer.body)
        return {**MCP_HEADERS, "mcp-session-id": answer.headers.get("mcp-session-id", "")}

    async def use_session(self) -> None:
        opening = self.connect("many")
        session: dict[str, str] = {}
        number = 0

        async def call(connection: LoadConnection) -> bool:
            nonlocal session, number
            session = session or await self.open_session(opening)
            number += 1
            params = {"name": "search", "arguments": {"query": QUERIES[number % len(QUERIES)]}}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            answer = await connection.request("POST", "/mcp", message, session)
            if b"QUEUE_OVERLOADED" in answer.body:
                return False
            is_own = b'"id":%d' % number in answer.body
            self.check("mcp", holds=answer.status == 200 and is_own, text=answer.body)
            return True

        await self.repeat("mcp", "many", call)
        opening.close()

    async def read_slowly(self) -> None:
        while monotonic() < self._end:
            connection = self.connect("many")
            try:
                reader, _ = await connection.send("GET", "/openapi.json")
                for _ in range(10):
                    await asyncio.sleep(SLOW_READ_SECONDS)
                    await reader.read(1024)
            except OSError as error:
                self.record.lost.append(f"slow reader: {error}")
            connection.close()

    async def abandon_calls(self) -> None:
        while monotonic() < self._end:
            connections = [self.connect("many") for _ in range(ABANDONED_CALLS)]
            for connection in connections:
                await connection.send("POST", "/search", {"query": self._chance.choice(QUERIES)})
            await asyncio.sleep(self._chance.uniform(0, 0.05))
            for connection in connections:
                connection.close()
            await asyncio.sleep(ABANDON_INTERVAL_SECONDS)

    async def watch_memory(self, pid: int) -> None:
        while monotonic() < self._end:
            self.record.memory.append((monotonic(), await asyncio.to_thread(read_memory_mb, pid)))
            await asyncio.sleep(MEMORY_INTERVAL_SECONDS)

    async def run(self, server: LoadedServer, idle_count: int) -> None:
        """Put the server under load until the time is over."""
        connection = self.connect("many")
        idle_sessions = [await self.open_session(connection) for _ in range(idle_count)]
        await asyncio.gather(
            *(self.repeat("search, many", "many", self.search) for _ in range(MANY_CONNECTIONS)),
            *(self.repeat("search, few", "few", self.search) for _ in range(FEW_CONNECTIONS)),
            *(self.repeat("tool", "many", self.call_tool) for _ in range(2)),
            *(self.repeat("stream", "many", self.stream) for _ in range(4)),
            *(self.use_session() for _ in range(4)),
            *(self.read_slowly() for _ in range(SLOW_READERS)),
            self.abandon_calls(),
            self.watch_memory(server.pid),
        )
        connection.close()  # the server has closed it meanwhile, as it was idle
        for session in idle_sessions:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            try:
                answer = await connection.request("POST", "/mcp", message, session)
                self.check("idle session", holds=answer.status == 200, text=answer.body)
            except LostAnswerError as error:
                self.record.lost.append(f"idle session: {error}")
        connection.close()


def find_percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def compute_growth(memory: Sequence[tuple[float, float]]) -> float:
    """Return the growth in MB an hour, by least squares over the second half of the time."""
    samples = memory[len(memory) // 2 :]
    if len(samples) < 3:
        return 0.0
    mean_time = sum(when for when, _ in samples) / len(samples)
    mean_size = sum(size for _, size in samples) / len(samples)
    spread = sum((when - mean_time) ** 2 for when, _ in samples)
    return sum((when - mean_time) * (size - mean_size) for when, size in samples) / spread * 3600


def report(record: LoadRecord, metrics: str) -> list[str]:
    """Print the figures, and return every promise that was broken."""
    broken = [f"lost: {text}" for text in record.lost[:10]] + [f"wrong: {text}" for text in record.wrong[:10]]
    print(f"{'':16}{'answers':>9}{'refused':>9}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    for kind, values in sorted(record.durations.items()):
        p50, p99 = find_percentile(values, 0.5), find_percentile(values, 0.99)
        cells = (f"{value * 1000:9.0f}" for value in (p50, p99, max(values)))
        print(f"{kind:16}{len(values):9}{record.refusals.get(kind, 0):9}{''.join(cells)}")
        if p99 > MAX_P99_SECONDS:
            broken.append(f"p99 of {kind} is {p99:.1f} s, over {MAX_P99_SECONDS:g} s")
    few, many = (find_percentile(record.durations.get(f"search, {name}", ()), 0.5) for name in ("few", "many"))
    print(f"a search of the token with a few connections takes {few / many:.2f}x one of the other (p50)")
    if few > MAX_UNFAIRNESS * many:
        broken.append(f"unfair: {few / many:.1f}x")
    refused_few = record.refusals.get("search, few", 0) / max(1, len(record.durations.get("search, few", ())))
    if refused_few > 0.05:
        broken.append(f"unfair: {refused_few:.0%} of the searches of the token with a few connections are refused")
    growth = compute_growth(record.memory)
    print(f"memory {record.memory[0][1]:.0f} MB, {record.memory[-1][1]:.0f} MB at the end, {growth:+.0f} MB an hour")
    if growth > MAX_GROWTH_MB_PER_HOUR:
        broken.append(f"memory grows by {growth:.0f} MB an hour")
    open_calls = next(line for line in metrics.splitlines() if line.startswith("cleats_calls_running "))
    if open_calls != "cleats_calls_running 0":
        broken.append(f"calls are left: {open_calls}")
    return broken


async def load_server(server: LoadedServer, tokens: dict[str, str], seconds: float, idle_count: int) -> list[str]:
    load = MixedLoad(server.url, tokens, seconds)
    await load.run(server, idle_count)
    await asyncio.sleep(1)  # cancelled calls clean up
    metrics = await load.connect("many").request("GET", "/metrics")
    return report(load.record, metrics.body.decode())


def main() -> int:
    """Return 0 if every promise was kept, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.http.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800, help="of load (default 1800)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server (default 2)")
    parser.add_argument("--idle", type=int, default=1000, help="idle MCP sessions (default 1000)")
    options = parser.parse_args()
    tokens = {name: f"cleats_load_{name}_{os.urandom(16).hex()}" for name in ("many", "few")}
    with tempfile.TemporaryDirectory() as name:
        home = prepare_home(Path(name))
        token_file = home / "tokens.toml"
        entries = [format_entry(AccessToken(name=key, sha256=hash_token(value))) for key, value in tokens.items()]
        token_file.write_text("\n".join(entries))
        token_file.chmod(0o600)
        with serve_workers(
            home, options.workers, CLEATS_HTTP_TOKENS=str(token_file), CLEATS_LOG_LEVEL="warning"
        ) as server:
            broken = asyncio.run(load_server(server, tokens, options.seconds, options.idle))
            log = server.log.read_text()
        if "worker.exit" in log or "Traceback" in log:
            broken.append(f"the log of the server: {log[-2000:]}")
    print(json.dumps({"broken": broken}, indent=2))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
