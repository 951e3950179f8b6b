"""The server that is put under load: `cleats http` with workers, on the code of this project."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY_ROOT = Path(__file__).parents[2]
START_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 60.0

QUERIES = (
    "parse content length",
    "open connection",
    "rate limit of a token",
    "write metrics",
    "session cookie",
    "merge index segments",
    "read git history",
    "validate schema",
)


@dataclass(frozen=True)
class LoadedServer:
    """A running server."""

    url: str
    pid: int
    log: Path


def prepare_home(home: Path) -> Path:
    """Copy the code of this project into a home, and index it."""
    project = home / "project"
    shutil.copytree(REPOSITORY_ROOT / "src", project, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "cleats", "index", str(project), "--quiet"]
    subprocess.run(command, env=build_environ(home), check=True)
    return home


def build_environ(home: Path) -> dict[str, str]:
    """Return an environment in which Cleats knows only this home."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CLEATS_", "XDG_"))}
    return {**inherited, "HOME": str(home), "PYTHONPATH": str(REPOSITORY_ROOT)}


@contextmanager
def serve_workers(home: Path, workers: int, options: Sequence[str] = (), **environ: str) -> Iterator[LoadedServer]:
    """Run a server with this many workers."""
    command = [sys.executable, "-m", "cleats", "http", "code", "--port", "0", "--json"]
    command += ["--repo", str(home / "project"), "--workers", str(workers), *options]
    log = home / "server.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env={**build_environ(home), **environ}
        )
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_SECONDS)
        line = process.stdout.readline() if readable else b""
        if not line:
            raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
        yield LoadedServer(json.loads(line)["baseUrl"], process.pid, log)
        process.terminate()
        exit_code = process.wait(STOP_TIMEOUT_SECONDS)
        if exit_code:
            raise RuntimeError(f"the server ended with exit code {exit_code}: {log.read_text()[-2000:]}")
    finally:
        process.kill()
        process.wait()


def list_processes(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        child_pids = [int(child) for child in children.read_text().split()]
    except OSError:
        return []
    return [pid, *(descendant for child in child_pids for descendant in list_processes(child))]


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants."""
    ticks = 0
    for process in list_processes(pid):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def read_memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants, with shared pages counted once."""
    total = 0
    for process in list_processes(pid):
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total / 1024
