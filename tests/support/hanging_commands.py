"""A `git` and an `eslint` that hang on request, with a child that ignores SIGTERM.

`HangingCommands.environ` puts git at the front of a server's PATH; a checkout brings its own ESLint.
Each process of a command that
hangs has the folder in its command line, so that a test finds it wherever it went.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tests.support import process_trees
from tests.support.waiting import wait_until

_COMMAND_SOURCE = """#!/bin/sh
if [ -e "{folder}/hang-{name}" ]; then
  trap '' TERM
  "{folder}/child" &
  read -r _ < "{folder}/fifo"
fi
exec "{real}" "$@"
"""

_CHILD_SOURCE = """#!/bin/sh
trap '' TERM
read -r _ < "{folder}/fifo"
"""

COMMAND_PROCESS_COUNT = 2
"""Processes of one command that hangs: itself and its child."""


class HangingCommands:
    """The commands of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        os.mkfifo(folder / "fifo")  # nobody ever writes to it
        self._write_script("child", _CHILD_SOURCE.format(folder=folder))
        for name in ("git", "eslint"):
            real = shutil.which(name) or "/bin/true"
            self._write_script(name, _COMMAND_SOURCE.format(folder=folder, name=name, real=real))

    def _write_script(self, name: str, source: str) -> None:
        (self.folder / name).write_text(source)
        (self.folder / name).chmod(0o755)

    def install_linter(self, root: Path) -> None:
        """Make the linter that of a checkout."""
        folder = root / "node_modules" / ".bin"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "eslint").write_text(f'#!/bin/sh\nexec "{self.folder}/eslint" "$@"\n')
        (folder / "eslint").chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}

    def hang(self, name: str) -> None:
        """Let a command hang from now on."""
        (self.folder / f"hang-{name}").touch()

    def work(self) -> None:
        """Let all commands work again."""
        for name in ("git", "eslint"):
            with suppress(FileNotFoundError):
                (self.folder / f"hang-{name}").unlink()

    def find_living(self) -> list[int]:
        return process_trees.find_living(self.folder)

    def wait_until_hanging(self, commands: int = 1) -> None:
        """Wait until so many commands hang."""
        wait_until(lambda: len(self.find_living()) >= commands * COMMAND_PROCESS_COUNT)

    def wait_until_gone(self) -> None:
        """Wait until no process of any command is left."""
        wait_until(lambda: not self.find_living())
