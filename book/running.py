"""Run the blocks of one page in order, in one shell and in a home of its own."""

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

from book.comparing import find_difference
from book.pages import BookPage, PageBlock
from tests.support.paths import REPOSITORY_ROOT

PAGE_PORT = "7345"
"""The port on the pages; it is replaced by a free port, since others may use this one."""

PARSERS_BY_LANGUAGE: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "python": ast.parse,
}
"""Parsers that check a block before anything runs; they raise for an invalid text."""

PAGE_TIMEOUT_SECONDS = 280
"""Seconds for a page; far more than any page needs, even on a busy machine."""

SHELL_LANGUAGES = frozenset({"sh", "console"})
PLAIN_LANGUAGES = frozenset({"text"})
"""Languages of blocks that are not code: trees, messages, usage lines."""

COPIED_PATHS = ("README.md", "LICENSE", "CHANGELOG.md", "contracts", "docs", "examples")
"""The parts of the checkout that a page finds in its folder."""


@dataclass(frozen=True, slots=True)
class PageProblem:
    """A block that does not do what the page shows."""

    page: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class ShellStep:
    """One command for the shell of a page, with its expected output."""

    block: PageBlock
    command: str
    expected_output: str = ""
    """The expected output, empty if the page leaves it out."""


def check_page(page: BookPage) -> list[PageProblem]:
    """Return every problem of a page."""
    problems: list[PageProblem] = []
    steps: list[ShellStep] = []
    for block in page.iterate_blocks():
        try:
            steps += _build_steps(block)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            problems.append(PageProblem(page.path, block.line, str(error)))
    return problems + list(_run_steps(page, steps) if steps else ())


def _build_steps(block: PageBlock) -> Iterator[ShellStep]:
    """Yield the shell commands of a block; data is parsed at once.

    Raises:
        ValueError, SyntaxError, YAMLError: The block is not in its language.
    """
    if "not run" in block.notes or (block.language in PLAIN_LANGUAGES and "file" not in block.notes):
        return
    if block.language in PARSERS_BY_LANGUAGE:
        PARSERS_BY_LANGUAGE[block.language](block.text)
    if "file" in block.notes:
        path = shlex.quote(block.notes["file"])
        folder = f"mkdir -p $(dirname {path})"
        yield ShellStep(block, f"{folder}; cat > {path} <<'END OF BLOCK'\n{block.text}END OF BLOCK")
    elif block.language == "console":
        yield from _parse_session(block)
    elif block.language == "sh":
        yield ShellStep(block, block.text)
    elif block.language == "python":
        yield ShellStep(block, f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK")
    elif block.language not in PARSERS_BY_LANGUAGE:
        known_languages = ", ".join(sorted({*SHELL_LANGUAGES, *PLAIN_LANGUAGES, *PARSERS_BY_LANGUAGE}))
        raise ValueError(f"a block of {block.language or 'no language'}; known are {known_languages}")


def _parse_session(block: PageBlock) -> Iterator[ShellStep]:
    """Yield the commands of a block with prompts, each with the output below it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if parts[0].strip() or len(parts) == 1:
        raise ValueError("a console block begins with a command after `$ `")
    for part in parts[1:]:
        lines = part.splitlines(keepends=True)
        length = next(number for number, line in enumerate(lines, start=1) if not line.endswith("\\\n"))
        yield ShellStep(block, "".join(lines[:length]), "".join(lines[length:]).strip("\n"))


def _run_steps(page: BookPage, steps: list[ShellStep]) -> Iterator[PageProblem]:
    with tempfile.TemporaryDirectory(prefix="cleats-book-") as name:
        home = Path(name)
        checkout, outputs = home / "cleats", home / ".outputs"
        outputs.mkdir()
        checkout.mkdir()
        for item in COPIED_PATHS:
            _copy_path(REPOSITORY_ROOT / item, checkout / item)
        ending = _run_script(_build_script(steps, outputs), home, checkout)
        for number, step in enumerate(steps):
            output_file = outputs / f"{number}.out"
            code = outputs / f"{number}.code"
            if not code.exists():
                text = output_file.read_text(errors="replace") if output_file.exists() else ""
                yield PageProblem(page.path, step.block.line, f"{_quote(step)}: {ending}\n{text}")
                return
            is_last = not any(item.block is step.block for item in steps[number + 1 :])
            expected = step.block.notes.get("exit", "0") if is_last else "0"
            text = output_file.read_text(encoding="utf-8", errors="replace")
            if code.read_text().strip() != expected:
                what = f"{_quote(step)}: exit code {code.read_text().strip()}, not {expected}\n{text}"
                yield PageProblem(page.path, step.block.line, what)
            elif step.expected_output and (line := find_difference(step.expected_output, text, str(home))):
                what = f"{_quote(step)}: it is not said: {line}\n{text}"
                yield PageProblem(page.path, step.block.line, what)


def _build_script(steps: list[ShellStep], outputs: Path) -> str:
    """Build one script for the page, so that `cd` and `export` last; any failing command counts."""
    lines = ["trap 'failed=$?' ERR"]
    for number, step in enumerate(steps):
        output_base = outputs / str(number)
        lines.append("failed=0")
        lines.append(f"{{ {step.command.rstrip()}\n}} > {output_base}.out 2>&1 < /dev/null")
        lines.append(f"echo $failed > {output_base}.code")
    return "\n".join(lines) + "\n"


def _run_script(script: str, home: Path, folder: Path) -> str:
    """Run a script, kill the processes that it left running, and describe how it ended."""
    process = subprocess.Popen(
        ["bash", "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=build_environ(home),
        start_new_session=True,
    )
    try:
        process.communicate(script.replace(PAGE_PORT, str(_find_free_port())).encode(), timeout=PAGE_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"it was not done after {PAGE_TIMEOUT_SECONDS} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"the shell ended before it, with {process.returncode}"


def build_environ(home: Path) -> dict[str, str]:
    """Build an environment that contains only this program."""
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
        # Packages are installed into the home of the page, from its folder, without dependencies.
        "PIP_TARGET": str(home / ".installed"),
        "PYTHONPATH": str(home / ".installed"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _copy_path(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copyfile(source, target)


def _find_free_port() -> int:
    """Return a free port below the range from which the system takes ports for clients."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("there is no free port")


def _quote(step: ShellStep) -> str:
    first = step.command.strip().splitlines()[0]
    return f"`{first}`"
