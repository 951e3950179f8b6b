"""The `cleats` command as a separate process, in a folder and a home of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings

from tests.support.paths import REPOSITORY_ROOT

EXIT_TIMEOUT_SECONDS = 100
"""Seconds to wait for a process that must exit; a busy machine needs a few."""

LAW_SETTINGS = settings(deadline=None)
"""Hypothesis settings without a deadline, as a slow machine proves nothing; the rest is the
profile."""


@dataclass
class Shell:
    """Starts the command in a folder that is also its home."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY_ROOT),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "100",
        }

    def start_process(self, *words: str, module: str, **environ: str) -> subprocess.Popen[str]:
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
        self, *words: str, module: str = "cleats", stdin_text: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        with self.start_process(*words, module=module, **environ) as process:
            out, err = process.communicate(stdin_text, timeout=EXIT_TIMEOUT_SECONDS)
        assert "Traceback" not in err or "-v" in words
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def run_with_closed_output(self, *words: str, module: str = "cleats") -> subprocess.CompletedProcess[bytes]:
        """Run a command whose output is closed by the reader, as in `| head`."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            return subprocess.run(
                [sys.executable, "-m", module, *words],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=subprocess.PIPE,
                check=False,
                timeout=EXIT_TIMEOUT_SECONDS,
            )
        finally:
            os.close(write_end)

    def call_tool(self, *words: str, stdin_text: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `cleats call` with the tools of `tests.support.cli_host`."""
        return self.run("call", *words, module="tests.support.cli_host", stdin_text=stdin_text, **environ)
