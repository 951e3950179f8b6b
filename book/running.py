"""Run the blocks of one page, in their order, in one shell and one home of its own."""

import ast
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from book.comparing import differs
from book.pages import ROOT, Block, Page

PORT = "7345"
"""The port on the pages; a free one is taken instead, since others may use this one."""

READERS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "python": ast.parse,
}
"""What is looked at before anything runs; a text that is none raises."""

LIMIT = 280
"""Seconds for a page; far more than any needs, also on a busy machine."""

SHELL = frozenset({"sh", "console"})
PLAIN = frozenset({"text"})
"""What is no code: trees, messages, usage lines."""

COPIED = ("README.md", "LICENSE", "CHANGELOG.md", "contracts", "docs", "examples")
"""What of the checkout a page finds in its folder."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A block that does not do what it shows."""

    page: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the shell of a page is told, and what it should say."""

    block: Block
    command: str
    shown: str = ""
    """Nothing where the page leaves the output out."""


def check(page: Page) -> list[Problem]:
    """Everything on a page that is not so."""
    problems: list[Problem] = []
    steps: list[Step] = []
    for block in page.blocks():
        try:
            steps += _steps(block)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            problems.append(Problem(page.path, block.line, str(error)))
    return problems + list(_run(page, steps) if steps else ())


def _steps(block: Block) -> Iterator[Step]:
    """What the shell has to do for a block; data is looked at here and now.

    Raises:
        ValueError, SyntaxError, YAMLError: it is not what it says it is.
    """
    if "not run" in block.notes or (block.language in PLAIN and "file" not in block.notes):
        return
    if block.language in READERS:
        READERS[block.language](block.text)
    if "file" in block.notes:
        path = shlex.quote(block.notes["file"])
        folder = f"mkdir -p $(dirname {path})"
        yield Step(block, f"{folder}; cat > {path} <<'END OF BLOCK'\n{block.text}END OF BLOCK")
    elif block.language == "console":
        yield from _session(block)
    elif block.language == "sh":
        yield Step(block, block.text)
    elif block.language == "python":
        yield Step(block, f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK")
    elif block.language not in READERS:
        known = ", ".join(sorted({*SHELL, *PLAIN, *READERS}))
        raise ValueError(f"a block of {block.language or 'no language'}; known are {known}")


def _session(block: Block) -> Iterator[Step]:
    """The commands of a block with prompts, each with the lines below it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if parts[0].strip() or len(parts) == 1:
        raise ValueError("a console block begins with a command after `$ `")
    for part in parts[1:]:
        lines = part.splitlines(keepends=True)
        length = next(n for n, line in enumerate(lines, start=1) if not line.endswith("\\\n"))
        yield Step(block, "".join(lines[:length]), "".join(lines[length:]).strip("\n"))


def _run(page: Page, steps: list[Step]) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory(prefix="cleats-book-") as name:
        home = Path(name)
        checkout, outputs = home / "cleats", home / ".outputs"
        outputs.mkdir()
        checkout.mkdir()
        for each in COPIED:
            _copy(ROOT / each, checkout / each)
        ended = _shell(_script(steps, outputs), home, checkout)
        for number, step in enumerate(steps):
            said = outputs / f"{number}.out"
            code = outputs / f"{number}.code"
            if not code.exists():
                text = said.read_text(errors="replace") if said.exists() else ""
                yield Problem(page.path, step.block.line, f"{_named(step)}: {ended}\n{text}")
                return
            last = not any(each.block is step.block for each in steps[number + 1 :])
            wanted = step.block.notes.get("exit", "0") if last else "0"
            text = said.read_text(encoding="utf-8", errors="replace")
            if code.read_text().strip() != wanted:
                what = f"{_named(step)}: exit code {code.read_text().strip()}, not {wanted}\n{text}"
                yield Problem(page.path, step.block.line, what)
            elif step.shown and (line := differs(step.shown, text, str(home))):
                what = f"{_named(step)}: it is not said: {line}\n{text}"
                yield Problem(page.path, step.block.line, what)


def _script(steps: list[Step], outputs: Path) -> str:
    """One shell for the page, so that `cd` and `export` last; any failing command counts."""
    lines = ["trap 'failed=$?' ERR"]
    for number, step in enumerate(steps):
        where = outputs / str(number)
        lines.append("failed=0")
        lines.append(f"{{ {step.command.rstrip()}\n}} > {where}.out 2>&1 < /dev/null")
        lines.append(f"echo $failed > {where}.code")
    return "\n".join(lines) + "\n"


def _shell(script: str, home: Path, folder: Path) -> str:
    """Run a script to its end, and end what it left running. Gives how it ended."""
    process = subprocess.Popen(
        ["bash", "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environ(home),
        start_new_session=True,
    )
    try:
        process.communicate(script.replace(PORT, str(_free_port())).encode(), timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"it was not done after {LIMIT} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"the shell ended before it, with {process.returncode}"


def environ(home: Path) -> dict[str, str]:
    """A world with nothing of ours in it but the program."""
    bin_folder = Path(sys.executable).parent
    return {
        "HOME": str(home),
        "PATH": f"{bin_folder}:{os.environ.get('PATH', '')}",
        "COLUMNS": "96",
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_CONFIG_NOSYSTEM": "1",
        # What a page installs goes into its home, from its folder, and takes nothing with it.
        "PIP_TARGET": str(home / ".installed"),
        "PYTHONPATH": str(home / ".installed"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copyfile(source, target)


def _free_port() -> int:
    """A port that nobody has, below those that the system gives to whoever connects meanwhile."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("there is no free port")


def _named(step: Step) -> str:
    first = step.command.strip().splitlines()[0]
    return f"`{first}`"
