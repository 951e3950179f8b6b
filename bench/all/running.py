"""Find the benchmarks, run each of them, and keep their results."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench import ratios
from bench.ratios import Ratio

BENCH_FOLDER = Path(__file__).parents[1]
SAVED_RUN_FORMAT = 1
"""The version of the layout of a saved run."""


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """The result of one benchmark."""

    ratios: list[Ratio] = field(default_factory=list)
    others: float = 0.0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """The results of all benchmarks of one commit on one machine."""

    commit: str
    machine: str
    outcomes: dict[str, BenchmarkOutcome]

    def as_json(self) -> dict[str, Any]:
        """Return the run in its saved form."""
        return {"format": SAVED_RUN_FORMAT, **asdict(self)}


BENCHMARKS_WITH_AGENT: Final = frozenset({"agents"})
"""Benchmarks that need an agent, and therefore do not take part."""


def list_benchmarks() -> list[str]:
    """Return the names of all benchmarks that run by themselves."""
    package_names = {main_file.parent.name for main_file in BENCH_FOLDER.glob("*/__main__.py")}
    return sorted(package_names - {Path(__file__).parent.name} - BENCHMARKS_WITH_AGENT)


def run_benchmarks(chosen: Sequence[str], *, quick: bool) -> BenchmarkRun:
    """Run benchmarks one after another; in parallel they would disturb each other."""
    outcomes = {}
    for name in chosen:
        print(f"bench.{name}", file=sys.stderr, flush=True)
        outcomes[name] = _run_benchmark(name, quick=quick)
    return BenchmarkRun(_describe_commit(), _describe_machine(), outcomes)


def read_saved_run(path: Path) -> BenchmarkRun:
    """Read a saved run.

    Raises:
        ValueError: The file is not a saved run.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != SAVED_RUN_FORMAT:
        raise ValueError(f"{path} is not what bench.all --save writes")
    outcomes = {
        name: BenchmarkOutcome(**{**outcome, "ratios": ratios.parse_ratios(outcome)})
        for name, outcome in document["outcomes"].items()
    }
    return BenchmarkRun(document["commit"], document["machine"], outcomes)


def get_arguments(name: str, *, quick: bool) -> tuple[str, ...]:
    """Return the command-line arguments of a benchmark."""
    package = import_module(f"bench.{name}")
    command_arguments: tuple[str, ...] = getattr(package, "QUICK_ARGUMENTS" if quick else "FULL_ARGUMENTS", ())
    return command_arguments


def _run_benchmark(name: str, *, quick: bool) -> BenchmarkOutcome:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        ratios_file = Path(folder) / "ratios.json"
        words = [*get_arguments(name, quick=quick), "--ratios", str(ratios_file)]
        completed = subprocess.run(
            [sys.executable, "-m", f"bench.{name}", *words],
            cwd=BENCH_FOLDER.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(completed.stdout, file=sys.stderr, flush=True)
        seconds = time.monotonic() - began
        problem = f"exit code {completed.returncode}" if completed.returncode else ""
        if not ratios_file.exists():
            return BenchmarkOutcome(seconds=seconds, problem=problem or "it did not run here")
        document = json.loads(ratios_file.read_text(encoding="utf-8"))
        return BenchmarkOutcome(ratios.parse_ratios(document), document["others"], seconds, problem)


def _describe_commit() -> str:
    """Return the commit, with a plus if files differ from it."""
    git_commands = [["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno"]]
    try:
        commit, changes = (
            subprocess.run(["git", *words], cwd=BENCH_FOLDER, capture_output=True, text=True, check=True).stdout.strip()
            for words in git_commands
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}+" if changes else commit


def _describe_machine() -> str:
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"
