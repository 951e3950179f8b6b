"""Find the benchmarks, run each, and keep what they found."""

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
from typing import Any

from bench import ratios
from bench.ratios import Ratio

FOLDER = Path(__file__).parents[1]
FORMAT = 1
"""The layout of a saved run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one benchmark gave."""

    ratios: list[Ratio] = field(default_factory=list)
    others: float = 0.0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """All benchmarks of one commit on one machine."""

    commit: str
    machine: str
    outcomes: dict[str, Outcome]

    def as_json(self) -> dict[str, Any]:
        """The run as it is saved."""
        return {"format": FORMAT, **asdict(self)}


def names() -> list[str]:
    """Every benchmark there is."""
    found = (each.parent.name for each in FOLDER.glob("*/__main__.py"))
    return sorted(name for name in found if name != Path(__file__).parent.name)


def run(chosen: Sequence[str], *, quick: bool) -> Run:
    """Run benchmarks one after another; side by side they would measure each other."""
    outcomes = {}
    for name in chosen:
        print(f"bench.{name}", file=sys.stderr, flush=True)
        outcomes[name] = _one(name, quick=quick)
    return Run(_commit(), _machine(), outcomes)


def read(path: Path) -> Run:
    """A saved run.

    Raises:
        ValueError: the file is none.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is not what bench.all --save writes")
    outcomes = {
        name: Outcome(**{**each, "ratios": ratios.read(each)})
        for name, each in document["outcomes"].items()
    }
    return Run(document["commit"], document["machine"], outcomes)


def arguments(name: str, *, quick: bool) -> tuple[str, ...]:
    """What a benchmark is run with."""
    package = import_module(f"bench.{name}")
    given: tuple[str, ...] = getattr(package, "QUICK" if quick else "WHOLE", ())
    return given


def _one(name: str, *, quick: bool) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "ratios.json"
        words = [*arguments(name, quick=quick), "--ratios", str(left)]
        ended = subprocess.run(
            [sys.executable, "-m", f"bench.{name}", *words],
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(ended.stdout, file=sys.stderr, flush=True)
        seconds = time.monotonic() - began
        problem = f"exit code {ended.returncode}" if ended.returncode else ""
        if not left.exists():
            return Outcome(seconds=seconds, problem=problem or "it did not run here")
        document = json.loads(left.read_text(encoding="utf-8"))
        return Outcome(ratios.read(document), document["others"], seconds, problem)


def _commit() -> str:
    """The commit, with a plus when files differ from it."""
    asked = [["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno"]]
    try:
        commit, changes = (
            subprocess.run(
                ["git", *words], cwd=FOLDER, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}+" if changes else commit


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"
