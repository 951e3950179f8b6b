"""Tests of the completions that a shell offers when Tab is pressed."""

import pytest

from cleats.cli.main import COMMANDS_BY_NAME
from tests.support.example_toolset import install_toolset
from tests.support.shell import Shell


def complete_line(shell: Shell, line: str, **environ: str) -> list[str]:
    """Return the words that bash offers for the last word of a line, which may be empty."""
    words = line.split(" ")
    process = shell.run(
        _CLEATS_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
        **environ,
    )

    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cleats doc", ["plain,doctor"]),
        ("cleats index st", ["plain,status"]),
        ("cleats index --mod", ["plain,--mode"]),
        ("cleats index status --ski", ["plain,--skipped"]),
        ("cleats index sr", ["dir,sr"]),
        ("cleats index --repo sr", ["dir,sr"]),
        ("cleats serve sk", ["plain,skills"]),
        ("cleats client-config cu", ["plain,cursor"]),
        ("cleats client-config cursor --toolset as", ["plain,assets"]),
        ("cleats call check_", ["plain,check_status"]),
        ("cleats tools --show check_", ["plain,check_status"]),
        ("cleats contract explain INPUT_REQUIRED_A", ["plain,INPUT_REQUIRED_ADDED"]),
        ("cleats show sr", ["file,sr"]),
        ("cleats assets validate sr", ["file,sr"]),
    ],
)
def test_a_shell_is_offered_what_the_command_takes(shell: Shell, line: str, words: list[str]) -> None:
    assert complete_line(shell, line) == words


def test_a_misspelt_command_on_the_way_is_no_error_in_the_middle_of_a_line(shell: Shell) -> None:
    assert complete_line(shell, "cleats serch ") == [f"plain,{name}" for name in COMMANDS_BY_NAME]
    assert complete_line(shell, "cleats index statu --mod") == ["plain,--mode"]


def test_a_wrong_setting_offers_nothing_and_says_nothing(shell: Shell) -> None:
    assert complete_line(shell, "cleats call check_", CLEATS_CONCURRENCY="many") == []


def test_a_package_that_does_not_load_offers_nothing_and_says_nothing(shell: Shell) -> None:
    folder = install_toolset(shell.folder / "packages", "hello", "raise RuntimeError")

    assert complete_line(shell, "cleats call check_", PYTHONPATH=str(folder)) == ["plain,check_status"]
