"""Our own index: made by the command, searched in this process."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls.process import Broken, time_limit
from bench.code.answers import DEPTH, Passage
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.store.generations import Shelf

LIMIT = 900.0
"""Seconds for one build."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program used: seconds, and the peak of its largest process in megabytes."""

    wall: float
    cpu: float
    peak: float


def run(command: Sequence[str], cache: Path, given: str = "") -> tuple[Cost, str]:
    """Run a command to its end; return what it cost and what it printed.

    Raises:
        Broken: it failed, with the last line that it wrote; or it took too long.
    """
    with (
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
        time_limit(LIMIT),
    ):
        stdin.write(given)
        stdin.seek(0)
        begun = time.perf_counter()
        environment = {**os.environ, "CLEATS_CACHE_DIR": str(cache), "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment
        )
        try:
            # Unlike a count of all children so far, this is of one and its own children.
            _, status, usage = os.wait4(process.pid, 0)
        except Broken:
            process.kill()
            raise
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode:
            said = stderr.read().strip().splitlines() or ["no reason given"]
            raise Broken(said[-1][:300])
        return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), stdout.read()


def build(folder: Path, cache: Path, *options: str) -> Cost:
    """Make the index of a repository, or bring it up to date."""
    command = [sys.executable, "-m", "cleats.cli.main", "index", "build", str(folder), "--quiet"]
    return run([*command, *options], cache)[0]


@contextmanager
def opened(folder: Path, cache: Path) -> Iterator[Engine]:
    """The index of a repository, open for searching."""
    lease = Shelf(cache, Repository.at(str(folder), folder)).current()
    if lease is None:
        raise Broken(f"{folder} has no index")
    with lease:
        engine = Engine.open(lease.folder)
        try:
            yield engine
        finally:
            engine.close()


def ask(
    engine: Engine, question: str, *, tests_lower: bool = True, **arguments: Any
) -> list[dict[str, Any]]:
    """The hits in code; those of tests lower, as a server has it that is told nothing else."""
    given = {"query": question, "mode": "code", "top": DEPTH, **arguments}
    answer = payload(engine, engine.search(read(given, tests_lower=tests_lower)))
    hits: list[dict[str, Any]] = answer["code"]
    return hits


def passages(hits: list[dict[str, Any]]) -> Iterator[Passage]:
    for hit in hits:
        yield Passage(hit["file"], hit["startLine"], hit["endLine"])
