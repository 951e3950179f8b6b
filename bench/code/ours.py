"""Our own index: built by the command, searched in this process."""

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

from bench.calls.process import BenchmarkError, limit_time
from bench.code.answers import MAX_RESULTS, ResultPassage
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation

BUILD_TIMEOUT_SECONDS = 900.0
"""Seconds for one build."""


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The usage of a program: seconds, and the peak memory of its largest process in megabytes."""

    wall: float
    cpu: float
    peak: float


def run_measured(command: Sequence[str], cache: Path, stdin_text: str = "") -> tuple[ProgramCost, str]:
    """Run a command to its end; return its cost and its output.

    Raises:
        BenchmarkError: The command failed, with the last line that it wrote; or it took too long.
    """
    with (
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
        limit_time(BUILD_TIMEOUT_SECONDS),
    ):
        stdin.write(stdin_text)
        stdin.seek(0)
        start_time = time.perf_counter()
        environment = {**os.environ, "CLEATS_CACHE_DIR": str(cache), "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment)
        try:
            # Unlike RUSAGE_CHILDREN, this counts only this process and its own children.
            _, status, usage = os.wait4(process.pid, 0)
        except BenchmarkError:
            process.kill()
            raise
        wall = time.perf_counter() - start_time
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode:
            error_lines = stderr.read().strip().splitlines() or ["no reason given"]
            raise BenchmarkError(error_lines[-1][:300])
        return ProgramCost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), stdout.read()


def build_index(folder: Path, cache: Path, *options: str) -> ProgramCost:
    """Build the index of a repository, or update it."""
    command = [sys.executable, "-m", "cleats", "index", "build", str(folder), "--quiet"]
    return run_measured([*command, *options], cache)[0]


@contextmanager
def open_engine(folder: Path, cache: Path) -> Iterator[SearchEngine]:
    """Open the index of a repository for searching."""
    lease = GenerationStore(cache, Repository.from_path(str(folder), folder)).lease_current()
    if lease is None:
        raise BenchmarkError(f"{folder} has no index")
    with lease:
        engine = SearchEngine.open(lease.folder)
        try:
            yield engine
        finally:
            engine.close()


def search_code(
    engine: SearchEngine, question: str, *, tests_lower: bool = True, **arguments: Any
) -> list[dict[str, Any]]:
    """Return the hits in code; hits in tests are demoted, as in a server with default settings."""
    search_arguments = {"query": question, "mode": "code", "top": MAX_RESULTS, **arguments}
    answer = render_answer(engine, search_generation(engine, parse_request(search_arguments, demote_tests=tests_lower)))
    hits: list[dict[str, Any]] = answer["code"]
    return hits


def iterate_passages(hits: list[dict[str, Any]]) -> Iterator[ResultPassage]:
    for hit in hits:
        yield ResultPassage(hit["file"], hit["startLine"], hit["endLine"])
