"""The measurements, each in a fresh home."""

import json
import os
import shutil
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.calls.process import BenchmarkError, ServerProcess, limit_time, run_server
from bench.calls.wire import build_initialize, build_initialized
from bench.launch import world
from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import RecordedStep, Run

MEDIAN_CALLS = 100
SERVER_TIMEOUT_SECONDS = 300.0


@dataclass(slots=True)
class LaunchFigures:
    """The figures of a round: milliseconds of wall time, unless the name says otherwise."""

    list: float | None = None
    filtered: float | None = None
    status: float | None = None
    start: float | None = None
    start_cpu: float | None = None
    steps_per_second: float | None = None
    run_cpu: float | None = None
    """Seconds, without git and Hugo."""
    tools_cpu: float | None = None
    """Seconds of git and Hugo."""


def measure_reading(count: int) -> dict[str, LaunchFigures]:
    """Measure lists and status among this many runs, over MCP and in SQLite itself."""
    with TemporaryDirectory() as name:
        home = Path(name)
        world.create_runs(home, count)
        ids = [world.format_run_id(number % count) for number in range(MEDIAN_CALLS)]
        our_figures = LaunchFigures()
        with _run_server(home, "launch") as client:
            our_figures.list = _measure_median(lambda _: client.call_tool("launch_list_runs"))
            run_filter = {"product_slug": world.PRODUCT_SLUGS[-1], "state": "READY_FOR_PR"}
            our_figures.filtered = _measure_median(lambda _: client.call_tool("launch_list_runs", filter=run_filter))
            our_figures.status = _measure_median(lambda n: client.call_tool("launch_get_status", run_id=ids[n]))
        return {"cleats": our_figures, "sqlite": _measure_bare_reading(home, ids)}


def _measure_bare_reading(home: Path, ids: list[str]) -> LaunchFigures:
    database = sqlite3.connect(world.locate_store(home))
    columns = "SELECT run_id, product_slug, state, started_at, finished_at FROM runs"

    def run_query(query: str, *values: str) -> list[Any]:
        return database.execute(query, values).fetchall()

    figures = LaunchFigures(
        list=_measure_median(lambda _: run_query(f"{columns} ORDER BY number DESC LIMIT 50")),
        filtered=_measure_median(
            lambda _: run_query(
                f"{columns} WHERE product_slug = ? AND state = ? ORDER BY number DESC LIMIT 50",
                world.PRODUCT_SLUGS[-1],
                "READY_FOR_PR",
            )
        ),
        status=_measure_median(lambda n: run_query("SELECT snapshot FROM runs WHERE run_id = ?", ids[n])),
    )
    database.close()
    return figures


def measure_start(toolset: str) -> LaunchFigures:
    """Measure a server from its start to its list of tools."""
    with TemporaryDirectory() as name:
        start_time = time.perf_counter()
        with _run_server(Path(name), toolset) as client:
            client.send_request("tools/list")
            elapsed = time.perf_counter() - start_time
            return LaunchFigures(start=elapsed * 1e3, start_cpu=client.server.read_usage().cpu * 1e3)


def measure_journal(count: int) -> LaunchFigures:
    """Measure steps recorded one after the other, each on the disk before the next."""
    with TemporaryDirectory() as name:
        store = SqliteStore(Path(name) / "runs.sqlite")
        config = {"product_slug": "x", "required_sections": ["docs"]}
        new = Run(
            run_id=world.FIRST_RUN_ID,
            product_slug="x",
            config=config,
            shown_config=config,
            config_hash="a" * 64,
        )
        store.create(new, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], NO_TRACE)
        lease = store.acquire(world.FIRST_RUN_ID, "bench", 1e9)
        assert lease is not None
        drafts = [EventDraft("GATE_RUN_FINISHED", {"gate": "links", "ok": True})]
        start_time = time.perf_counter()
        for number in range(count):
            store.record(lease, drafts, NO_TRACE, step=RecordedStep(f"s{number}", {"n": number}, 0.0))
        elapsed = time.perf_counter() - start_time
        store.close()
    return LaunchFigures(steps_per_second=count / elapsed)


def measure_bare_journal(count: int) -> LaunchFigures:
    """Measure the limit: one row per transaction, in a file with the same settings."""
    with TemporaryDirectory() as name:
        database = sqlite3.connect(Path(name) / "bare.sqlite", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE steps (run TEXT, step TEXT, output TEXT)")
        start_time = time.perf_counter()
        for number in range(count):
            database.execute("INSERT INTO steps VALUES (?,?,?)", ("r", f"s{number}", "{}"))
        elapsed = time.perf_counter() - start_time
        database.close()
    return LaunchFigures(steps_per_second=count / elapsed)


def measure_whole_run() -> LaunchFigures:
    """Measure the bundled sample from start to request: CPU of the server and its workers."""
    with TemporaryDirectory() as name:
        home = Path(name)
        config = world.prepare_sample(home)
        log = home / "times.log"
        log.touch()
        tools = home / "tools"
        tools.mkdir()
        _write_counting_wrapper(tools, "git", shutil.which("git"), log)
        _write_counting_wrapper(tools, "hugo", _find_hugo(), log)
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "CLEATS_LAUNCH_HUGO": str(tools / "hugo")}
        with _run_server(home, "launch", **env) as client:
            cpu_before = client.server.read_usage().cpu
            started = client.call_tool("launch_start_run", run_config=config)
            ended = client.call_tool("launch_resume", run_id=started["run_id"])
            if ended["status"]["state"] != "DONE":
                raise BenchmarkError(f"the run is {ended['status']['state']}: {ended}"[:400])
            total_cpu = client.server.read_usage().cpu - cpu_before
        tools_cpu = _sum_logged_seconds(log.read_text())
        return LaunchFigures(run_cpu=total_cpu - tools_cpu, tools_cpu=tools_cpu)


def _write_counting_wrapper(folder: Path, name: str, real: str | None, log: Path) -> None:
    """Write a wrapper around a program that logs the CPU time the program used."""
    if real is None:
        raise BenchmarkError(f"{name} is not installed")
    file = folder / name
    file.write_text(f'#!/bin/sh\n"{real}" "$@"\ncode=$?\ntimes >> "{log}"\nexit $code\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def _find_hugo() -> str | None:
    bundled_hugo = Path(sys.executable).parent / "hugo"
    return str(bundled_hugo) if bundled_hugo.exists() else shutil.which("hugo")


def _sum_logged_seconds(log: str) -> float:
    """Sum the seconds in lines like `0m0.012s 0m0.004s`, for the shell and for its child."""
    total = 0.0
    for word in log.split():
        minutes, _, seconds = word.rstrip("s").partition("m")
        total += int(minutes) * 60 + float(seconds)
    return total


class StdioClient:
    """A client that sends requests to a server one after the other."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self._pending = b""
        self._request_number = 0

    def call_tool(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.send_request("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise BenchmarkError(f"{tool}: {result}"[:400])
        body: dict[str, Any] = result["structuredContent"]
        return body

    def send_request(self, method: str, **params: Any) -> dict[str, Any]:
        self._request_number += 1
        message = {"jsonrpc": "2.0", "id": self._request_number, "method": method, "params": params}
        self.server.send(json.dumps(message).encode() + b"\n")
        while (frame := self.read_frame()).get("id") != self._request_number:
            pass
        if "result" not in frame:
            raise BenchmarkError(str(frame)[:400])
        result: dict[str, Any] = frame["result"]
        return result

    def read_frame(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            self._pending += self.server.receive()
        line, _, self._pending = self._pending.partition(b"\n")
        frame: dict[str, Any] = json.loads(line)
        return frame


@contextmanager
def _run_server(home: Path, toolset: str, **environ: str) -> Iterator[StdioClient]:
    server_environ = {"HOME": str(home), "PATH": os.environ["PATH"], **environ}
    assignments = [f"{name}={value}" for name, value in server_environ.items()]
    command = ["env", "-i", *assignments, sys.executable, "-m", "cleats", "serve", toolset]
    with run_server(command) as server, limit_time(SERVER_TIMEOUT_SECONDS):
        client = StdioClient(server)
        server.send(build_initialize())
        client.read_frame()
        server.send(build_initialized())
        yield client


def _measure_median(work: Callable[[int], object]) -> float:
    work(0)
    times = []
    for number in range(MEDIAN_CALLS):
        start_time = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - start_time)
    return sorted(times)[MEDIAN_CALLS // 2] * 1e3
