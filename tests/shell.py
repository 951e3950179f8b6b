"""The `cleats` command as a process of its own, in a folder and a home of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[1]
PATIENCE = 100
"""Seconds until a process that must end is given up; a busy machine needs a few."""

LAW = settings(deadline=None)
"""How laws are tried, the rest as the profile says: a busy machine is slow, and proves nothing."""


@dataclass
class Shell:
    """Starts the command in a folder and a home of its own."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "100",
        }

    def start(self, *words: str, module: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(
        self, *words: str, module: str = "cleats", given: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        with self.start(*words, module=module, **environ) as process:
            out, err = process.communicate(given, timeout=PATIENCE)
        assert "Traceback" not in err or "-v" in words
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def unread(self, *words: str, module: str = "cleats") -> subprocess.CompletedProcess[bytes]:
        """A command whose output nobody reads any more, as in `| head`."""
        unread, written = os.pipe()
        os.close(unread)
        try:
            return subprocess.run(
                [sys.executable, "-m", module, *words],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.PIPE,
                check=False,
                timeout=PATIENCE,
            )
        finally:
            os.close(written)

    def call(
        self, *words: str, given: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """`cleats call`, over the tools of `tests.cli_host`."""
        return self.run("call", *words, module="tests.cli_host", given=given, **environ)
