"""Tests of words that people try first: they run the obvious command or name it."""

import re
from typing import Any

import pytest

from cleats.cli import main
from cleats.cli.guesses import COMMANDS_BY_GUESS
from tests.support.shell import Shell


def test_status_runs_index_status(shell: Shell) -> None:
    guess, command = shell.run("status"), shell.run("index", "status")

    assert (guess.returncode, guess.stdout, guess.stderr) == (command.returncode, command.stdout, command.stderr)
    assert "has no index" in guess.stdout


def test_help_prints_the_help_of_the_program_or_of_a_command(shell: Shell) -> None:
    assert shell.run("help").stdout == shell.run("--help").stdout
    assert shell.run("help", "index", "status").stdout == shell.run("index", "status", "--help").stdout
    unknown = shell.run("help", "serach")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "Unknown command 'serach'. Did you mean 'search'?" in unknown.stderr


def test_version_prints_the_version(shell: Shell) -> None:
    guess = shell.run("version")

    assert (guess.returncode, guess.stdout) == (0, shell.run("--version").stdout)


def test_a_guess_with_several_meanings_names_the_commands(shell: Shell) -> None:
    guess = shell.run("list")

    assert (guess.returncode, guess.stdout) == (2, "")
    assert "Unknown command 'list'. Use `cleats tools`, `cleats skills list`," in guess.stderr


def test_every_command_that_is_advised_exists() -> None:
    context = main.cli.make_context("cleats", ["tools"])
    advised_commands = re.findall(r"`cleats ([a-z ]+)", " ".join(main.ADVICE_BY_GUESS.values()))
    for words in [*(text.split() for text in advised_commands), *main.GUESSES.values()]:
        command: Any = main.cli
        for word in words:
            command = command.get_command(context, word)
            assert command is not None, words
    assert main.COMMANDS_BY_NAME.keys().isdisjoint(main.ADVICE_BY_GUESS.keys() | main.GUESSES.keys())


@pytest.mark.parametrize(
    ("group", "guess", "command"),
    [(group, guess, command) for group, guesses in COMMANDS_BY_GUESS.items() for guess, command in guesses.items()],
)
def test_a_guess_in_a_group_runs_the_command(group: str, guess: str, command: str) -> None:
    context = main.cli.make_context("cleats", ["tools"])
    commands: Any = main.cli.get_command(context, group)

    assert guess not in commands.commands
    assert commands.resolve_command(context, [guess])[1] is commands.commands[command]


@pytest.mark.parametrize(
    ("words", "meant"), [(("statsu",), "status"), (("launch", "strat"), "start"), (("cache", "cleen"), "clean")]
)
def test_a_misspelt_command_gets_a_suggestion(shell: Shell, words: tuple[str, ...], meant: str) -> None:
    result = shell.run(*words)

    assert (result.returncode, result.stdout) == (2, "")
    assert f"Unknown command '{words[-1]}'. Did you mean '{meant}'?" in result.stderr


def test_a_misspelt_variable_is_reported_on_stderr_with_the_nearest_setting(shell: Shell) -> None:
    result = shell.run("tools", "--json", CLEATS_LOGLEVEL="debug", _CLEATS_SOMETHING="x")

    assert result.returncode == 0
    assert result.stdout == shell.run("tools", "--json").stdout
    assert result.stderr == (
        "Warning: CLEATS_LOGLEVEL is not a setting and is ignored. Did you mean CLEATS_LOG_LEVEL?\n"
    )


def test_a_variable_without_a_near_setting_is_reported_without_a_suggestion(shell: Shell) -> None:
    result = shell.run("tools", CLEATS_QQQQQQ="1")

    assert result.stderr == "Warning: CLEATS_QQQQQQ is not a setting and is ignored.\n"


def test_a_relative_home_is_refused_before_anything_is_written(shell: Shell) -> None:
    process = shell.run("index", "status", HOME="rel")

    assert (process.returncode, process.stdout) == (2, "")
    assert "HOME is 'rel', which is not an absolute path" in process.stderr
