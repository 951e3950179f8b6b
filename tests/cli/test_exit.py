"""Tests of the end of a command, which does not wait until Python has freed every object."""

import subprocess
import sys

import pytest

END_SCRIPT = """
import atexit, sys
from cleats import __main__ as entry
import cleats.cli.main as cli

class Witness:
    def __del__(self):
        print("freed", flush=True)

def run():
    sys.stdout.write("answer ")
    sys.exit(CODE)

witness = Witness()
atexit.register(print, "registered")
sys.argv = ["cleats", *sys.argv[1:]]
cli.main = run
entry.main()
"""


def end_command(code: object, *words: str) -> subprocess.CompletedProcess[str]:
    script = END_SCRIPT.replace("CODE", repr(code))
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "expected"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_ends_at_once_with_its_code_and_all_of_its_output(code: object, expected: int) -> None:
    done = end_command(code, "tools")

    assert (done.returncode, done.stdout.split(), done.stderr) == (expected, ["answer", "registered"], "")


def test_python_prints_a_code_that_is_a_text() -> None:
    done = end_command("a message", "tools")

    assert (done.returncode, done.stderr) == (1, "a message\n")


def test_a_server_frees_what_it_has() -> None:
    done = end_command(0, "serve")

    assert (done.returncode, done.stdout.split()) == (0, ["answer", "registered", "freed"])
