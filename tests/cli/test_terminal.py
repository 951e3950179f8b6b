"""Answers in a terminal: colour and a pager as people know them from git, and plain text elsewhere."""

import os
import pty
import shutil
import struct
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from cleats.cli.output import choose_color
from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell

SCREEN_LINES = 24
LONG_SOURCE = "def tally():\n" + "".join(f"    value_{number} = {number}\n" for number in range(60))
SHORT_SOURCE = "def brief():\n    return 'a\x1b[31mb'\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "long.py").write_text(LONG_SOURCE)
    (tmp_path / "short.py").write_text(SHORT_SOURCE)
    (tmp_path / ".cleats.toml").touch()  # a home is indexed only if that says so
    return Shell(tmp_path)


def run_in_terminal(shell: Shell, *words: str, **environ: str) -> str:
    """Run a command in a terminal of its own, and return all that the terminal received."""
    reader, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", SCREEN_LINES, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cleats", *words],
        cwd=shell.folder,
        env={**shell.environ, "TERM": "xterm", **environ},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    received = b""
    try:
        while block := os.read(reader, 1 << 16):
            received += block
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    os.close(reader)
    assert process.wait(EXIT_TIMEOUT_SECONDS) == 0
    return received.decode().replace("\r\n", "\n")


def make_pager(shell: Shell) -> str:
    """Make a program that stores what it is given to show, and return its path."""
    program = shell.folder / "pager"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("cat")} > "{shell.folder}/paged"\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("words", ["symbol tally", "show long.py", "search tally --full --refresh"])
def test_an_answer_that_is_longer_than_the_screen_is_shown_by_the_pager(shell: Shell, words: str) -> None:
    shown = run_in_terminal(shell, *words.split(), PAGER=make_pager(shell))

    paged = (shell.folder / "paged").read_text()
    assert "value_59" not in shown
    assert "value_59 = 59" in paged
    assert "tally" in "".join(paged.splitlines(keepends=True)[:SCREEN_LINES])


def test_less_is_the_pager_and_the_first_lines_stay_on_the_screen(shell: Shell) -> None:
    program = shell.folder / "less"
    program.write_text(f'#!/bin/sh\necho "LESS=$LESS"; exec {shutil.which("cat")}\n')
    program.chmod(0o755)

    shown = run_in_terminal(shell, "symbol", "tally", PATH=f"{shell.folder}:{os.environ['PATH']}")

    assert "LESS=-FRX" in shown
    assert "\x1b[32m60\x1b[0m:" in shown


@pytest.mark.parametrize(
    ("words", "pager"),
    [
        (("symbol", "tally", "--no-pager"), None),
        (("symbol", "brief"), None),
        (("symbol", "tally"), ""),
        (("symbol", "tally"), "cat"),
    ],
)
def test_no_pager_is_started_for_a_short_answer_or_when_none_is_wanted(
    shell: Shell, words: tuple[str, ...], pager: str | None
) -> None:
    shown = run_in_terminal(shell, *words, PAGER=make_pager(shell) if pager is None else pager)

    assert not (shell.folder / "paged").exists()
    assert ("value_59 = 59" if words[1] == "tally" else "def brief()") in shown


def test_the_escape_sequences_of_a_file_do_not_reach_the_terminal(shell: Shell) -> None:
    shown = run_in_terminal(shell, "symbol", "brief", "--color", "never")

    assert "a\\x1b[31mb" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, None),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, None),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_the_environment_asks_for_colour_or_forbids_it(environ: dict[str, str], expected: bool | None) -> None:
    assert choose_color(environ) is expected


@pytest.mark.parametrize(
    ("words", "environ", "is_colored"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
@pytest.mark.parametrize("command", [("grep", "value_5"), ("search", "tally", "--refresh")])
def test_a_pipe_gets_colour_only_when_it_is_asked_for(
    shell: Shell, command: tuple[str, ...], words: tuple[str, ...], environ: dict[str, str], is_colored: bool
) -> None:
    result = shell.run(*command, *words, **environ)

    assert result.returncode == 0, result.stderr
    assert ("\x1b[31m\x1b[1m" in result.stdout) == is_colored


def test_a_terminal_gets_colour_unless_the_environment_forbids_it(shell: Shell) -> None:
    assert "\x1b[31m\x1b[1mvalue_5\x1b[0m" in run_in_terminal(shell, "grep", "value_5")
    assert "\x1b[" not in run_in_terminal(shell, "grep", "value_5", NO_COLOR="1")
