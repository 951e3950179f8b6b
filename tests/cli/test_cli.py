"""The command line as a person uses it: help, tools, and how results are printed."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cleats.cli import output
from cleats.cli.main import COMMANDS_BY_NAME, cli
from cleats.cli.tool_command import json_command
from cleats.cli.tools import describe_type, first_sentence
from cleats.contract.snapshot import attach_results
from cleats.settings import Settings
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.shell import EXIT_TIMEOUT_SECONDS, LAW_SETTINGS, Shell

HEAVY_MODULES = {"mcp", "mcp_types", "pydantic", "starlette", "httpx", "httpx2", "uvicorn", "numpy"}


WORK_MODULES = {"asyncio", "anyio", "jsonschema_rs", "opentelemetry"}
"""Modules that commands need, but not their help."""


def list_imported_modules(shell: Shell, words: Sequence[str]) -> set[str]:
    code = (
        "import sys\nfrom cleats.cli.main import cli\n"
        f"try:\n    cli.main({list(words)!r}, 'cleats')\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=shell.environ,
        cwd=shell.folder,
        capture_output=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )
    return set(result.stderr.decode().split())


# Start-up


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("tools",),
        ("tools", "--json"),
        ("tools", "--show", "check_status"),
        ("client-config", "cursor"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_looking_around_imports_no_sdk_and_no_heavy_library(shell: Shell, words: tuple[str, ...]) -> None:
    imported = {module.partition(".")[0] for module in list_imported_modules(shell, words)}

    assert "click" in imported
    assert not imported & HEAVY_MODULES
    if words[0].startswith("--"):
        assert not imported & WORK_MODULES


@pytest.mark.parametrize("name", ["assets", "call", "index", "search", "serve", "skills", "triage"])
def test_the_help_of_a_command_imports_no_library_of_its_work(shell: Shell, name: str) -> None:
    imported = list_imported_modules(shell, (name, "--help"))

    assert "click" in imported
    assert not {module.partition(".")[0] for module in imported} & (HEAVY_MODULES | WORK_MODULES)


def test_help_lists_every_command_with_its_line(shell: Shell) -> None:
    result = shell.run("--help")

    assert result.returncode == 0
    assert all(name in result.stdout and entry.about in result.stdout for name, entry in COMMANDS_BY_NAME.items())


def test_a_misspelt_command_is_told_the_right_one(shell: Shell) -> None:
    result = shell.run("tols")

    assert result.returncode == 2
    assert "Did you mean 'tools'?" in result.stderr


def test_a_wrong_setting_stops_a_command_with_one_clear_line(shell: Shell) -> None:
    result = shell.run("tools", CLEATS_CONCURRENCY="many")

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: CLEATS_CONCURRENCY: expected a number, not 'many'\n"


@pytest.mark.parametrize(
    "words",
    [
        ("client-config", "notepad"),
        ("tools", "nowhere"),
        ("assets", "diff", "no.json", "none.json"),
        ("search",),
        ("search", "word", "--nonsense"),
        ("serch", "word"),
        ("--nonsense", "tools"),
        ("--json", "tools"),
    ],
    ids=" ".join,
)
def test_a_command_that_was_asked_wrongly_for_json_says_so_in_json(shell: Shell, words: tuple[str, ...]) -> None:
    result = shell.run(*words, "--json")

    answer = json.loads(result.stdout)
    assert (result.returncode, result.stderr, answer["ok"]) == (2, "", False)
    assert answer["error"]["code"] == "INVALID_REQUEST"


def test_a_wrong_setting_is_told_in_json_to_who_asked_for_json(shell: Shell) -> None:
    result = shell.run("tools", "--json", CLEATS_CONCURRENCY="many")

    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["message"].startswith("CLEATS_CONCURRENCY: ")


def test_a_failure_nobody_foresaw_is_json_too(shell: Shell) -> None:
    (shell.folder / "jsonschema_rs.py").write_text("raise ImportError('broken')")

    result = shell.run("tools", "--json", PYTHONPATH=str(shell.folder))

    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["code"] == "INTERNAL"


def test_a_folder_whose_name_is_not_utf8_is_told_in_json_as_it_is(shell: Shell) -> None:
    folder = shell.folder / os.fsdecode(b"caf\xe9")
    folder.mkdir()

    result = shell.run("index", "status", "--json", str(folder))

    assert (result.returncode, result.stderr) == (1, "")
    assert os.fsencode(json.loads(result.stdout)["repoPath"]) == os.fsencode(folder)


def test_a_word_behind_two_minuses_asks_for_no_json(shell: Shell) -> None:
    result = shell.run("search", "--", "--json")

    assert (result.returncode, result.stdout) == (2, "")
    assert "has no index" in result.stderr


def test_a_failure_nobody_foresaw_is_two_lines_and_no_trace(shell: Shell) -> None:
    (shell.folder / "jsonschema_rs.py").write_text("raise ImportError('broken')")

    result = shell.run("tools", PYTHONPATH=str(shell.folder))

    assert result.returncode == 2
    assert result.stderr.startswith("Error: ImportError: broken\n")
    assert "cleats doctor" in result.stderr


S3_SETTING = {"CLEATS_INDEX_URL": "s3://bucket/prefix"}
DATABASE_SETTING = {"CLEATS_DATABASE_URL": "postgresql://localhost/none"}


@requirement("a:error:table")
@pytest.mark.parametrize(
    ("words", "library", "setting"),
    [
        (("serve", "code"), "obstore", S3_SETTING),
        (("http", "code", "--port", "0"), "obstore", S3_SETTING),
        (("worker",), "psycopg", DATABASE_SETTING),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_setting_that_needs_an_extra_stops_a_server_with_the_name_of_the_extra(
    shell: Shell, words: tuple[str, ...], library: str, setting: dict[str, str]
) -> None:
    (shell.folder / f"{library}.py").write_text("raise ImportError('broken')")

    result = shell.run(*words, PYTHONPATH=str(shell.folder), **setting)

    assert result.returncode == 2
    assert (
        f" needs the package {library}. (CAPABILITY_MISSING)\nInstall it: pip install 'cleats[fleet]'\n"
        in result.stderr
    )
    assert "ToolError" not in result.stderr
    assert "ImportError" not in result.stderr


def test_a_missing_extra_is_json_to_who_asked_for_json(shell: Shell) -> None:
    (shell.folder / "obstore.py").write_text("raise ImportError('broken')")

    result = shell.run("config", "--json", PYTHONPATH=str(shell.folder), **S3_SETTING)

    assert result.returncode == 2
    error = json.loads(result.stdout)["error"]
    assert (error["code"], error["details"]["hint"]) == (
        "CAPABILITY_MISSING",
        "Install it: pip install 'cleats[fleet]'",
    )


@pytest.mark.parametrize("library", ["click", "msgspec"])
def test_without_a_library_it_stands_on_the_command_says_how_to_get_it(shell: Shell, library: str) -> None:
    (shell.folder / f"{library}.py").write_text("raise ImportError('broken')")

    result = shell.run("doctor", PYTHONPATH=str(shell.folder))

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ImportError: broken\nReinstall Cleats and its libraries: pip install ")


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
)
def test_a_terminal_that_has_no_colour_gets_none(environ: dict[str, str], *, coloured: bool) -> None:
    result = CliRunner(env={"NO_COLOR": None, **environ}).invoke(cli, ["tools"], color=True)

    assert ("\x1b[" in result.stdout) is coloured


def _collect_helps(command: click.Command, ctx: click.Context) -> dict[str, str]:
    """Return the help of every command by its path."""
    helps = {ctx.command_path: inspect.cleandoc(command.help or "")} if ctx.parent else {}
    if not isinstance(command, click.Group):
        return helps
    for name in command.list_commands(ctx):
        subcommand = command.get_command(ctx, name)
        assert subcommand is not None
        helps |= _collect_helps(subcommand, click.Context(subcommand, info_name=name, parent=ctx))
    return helps


HELP_BY_COMMAND = _collect_helps(cli, click.Context(cli, info_name="cleats"))


@pytest.mark.parametrize("words", [("--help",), ("search", "--help"), ("tools", "--json"), ("doctor",)], ids=" ".join)
def test_a_command_that_nobody_reads_any_more_ends_quietly_as_shells_say_it(
    shell: Shell, words: tuple[str, ...]
) -> None:
    result = shell.run_with_closed_output(*words)

    assert (result.returncode, result.stderr) == (141, b"")


def _install_signal(shell: Shell, module: str, number: signal.Signals) -> str:
    """Return a Python path on which the signal arrives while this module is imported."""
    startup = shell.folder / "startup"
    startup.mkdir()
    (startup / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            os.kill(os.getpid(), {number.value})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    return f"{startup}{os.pathsep}{REPOSITORY_ROOT}"


@pytest.mark.parametrize("module", ["click", "cleats.cli.doctor"])
def test_ctrl_c_ends_a_command_quietly_from_its_first_moment(shell: Shell, module: str) -> None:
    """Send the signal while the very first module is imported, and while a command's own is."""
    result = shell.run("doctor", PYTHONPATH=_install_signal(shell, module, signal.SIGINT))

    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_a_folder_that_is_gone_is_said_to_be_so(shell: Shell) -> None:
    gone = shell.folder / "gone"
    gone.mkdir()
    code = (
        "import os, sys; from cleats.__main__ import main; os.rmdir(sys.argv.pop()); sys.argv.append('tools'); main()"
    )

    result = subprocess.run(
        [sys.executable, "-P", "-c", code, str(gone)],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    message = "Error: the current folder no longer exists; change to another one\n"
    assert (result.returncode, result.stderr) == (2, message)


@requirement("c:signals:starting")
@pytest.mark.parametrize("module", ["cleats.cli.main", "cleats.app"])
@pytest.mark.parametrize("command", ["serve", "http"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_still_starting_leaves_with_zero_and_a_message_on_a_signal(
    shell: Shell, module: str, command: str, number: signal.Signals
) -> None:
    result = shell.run(command, "skills", PYTHONPATH=_install_signal(shell, module, number))

    message = f"serve.end reason={number.name}, before the server was ready\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, "", message)


@requirement("c:signals:starting")
@pytest.mark.parametrize("command", ["serve", "http"])
def test_ctrl_c_before_the_signal_handler_is_installed_ends_a_server_the_same_way(shell: Shell, command: str) -> None:
    path = _install_signal(shell, "cleats.runtime.early_signals", signal.SIGINT)

    result = shell.run(command, "skills", PYTHONPATH=path)

    message = "serve.end reason=SIGINT, before the server was ready\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, "", message)


@pytest.mark.parametrize("path", HELP_BY_COMMAND)
def test_the_help_of_every_command_teaches_by_an_example_of_it(path: str) -> None:
    examples = re.findall(r"^(?:Examples?:| ) .*\b(cleats [a-z].*)", HELP_BY_COMMAND[path], re.MULTILINE)

    assert any(f"{example} ".startswith(f"{path} ") for example in examples)
    assert {example.split()[1] for example in examples} <= set(COMMANDS_BY_NAME)


@pytest.mark.parametrize("group", sorted({path.rpartition(" ")[0] for path in HELP_BY_COMMAND}))
def test_the_line_of_a_command_in_the_help_of_its_group_is_whole(group: str) -> None:
    result = CliRunner().invoke(cli, [*group.split()[1:], "--help"], terminal_width=80)

    _, _, command_lines = result.stdout.partition("\nCommands:\n")
    assert command_lines
    assert "..." not in command_lines


# tools


def test_tools_shows_one_line_a_tool_that_fits_the_terminal(shell: Shell) -> None:
    result = shell.run("tools", "probes", module="tests.support.cli_host", COLUMNS="80")

    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert lines[0] == "probes  Show what can happen."
    assert lines[1].split() == ["TOOL", "V", "TIMEOUT", "WHAT", "IT", "DOES"]
    assert [line.split()[0] for line in lines[2:]] == [
        "crash",
        "echo",
        "fail",
        "mumble",
        "say",
        "wait",
    ]
    assert lines[3] == "  echo    2  2 min    (was repeat) Give the arguments back"
    assert all(len(line) <= 80 for line in lines)


def test_tools_shows_the_timeout_in_force(shell: Shell) -> None:
    result = shell.run("tools", CLEATS_TIMEOUTS="check_status=90")

    assert "90 s" in result.stdout


def test_tools_as_json_is_what_the_contract_snapshot_says_with_the_results_in_full(shell: Shell) -> None:
    results = json.loads((REPOSITORY_ROOT / "contracts" / "results.json").read_bytes())
    snapshot = attach_results(json.loads(shell.run("contract", "snapshot").stdout), results)

    everything = json.loads(shell.run("tools", "--json").stdout)
    one = json.loads(shell.run("tools", "--json", "--show", "check_status").stdout)

    assert everything == snapshot["tools"]
    assert one == snapshot["tools"]["check_status"]


def test_tools_takes_the_names_of_toolsets_and_refuses_others(shell: Shell) -> None:
    some, none = shell.run("tools", "code"), shell.run("tools", "cod")

    assert "check_status" in some.stdout
    assert (none.returncode, none.stdout) == (2, "")
    assert "Unknown toolset 'cod'. Known toolsets: code" in none.stderr


def test_show_explains_a_tool_by_any_of_its_names(shell: Shell) -> None:
    result = shell.run("tools", "--show", "repeat", module="tests.support.cli_host")

    assert result.returncode == 0
    assert result.stdout.splitlines()[0] == "echo"
    assert "old name  repeat, deprecated since 2.0.0" in result.stdout
    assert "  text   string, required\n         What to say.\n" in result.stdout
    assert "  n      integer, default 3\n" in result.stdout
    assert '  mode   "fast" | "slow"\n' in result.stdout
    assert "  later  string, reserved\n" in result.stdout
    assert "  NOT_FOUND   The named file" in result.stdout


def test_the_example_that_show_gives_can_be_pasted_into_a_shell(shell: Shell) -> None:
    help_text = shell.run("tools", "--show", "echo", module="tests.support.cli_host").stdout
    line = help_text.splitlines()[-1].strip().removeprefix("cleats ")

    result = subprocess.run(
        f"{sys.executable} -m tests.support.cli_host {line}",
        shell=True,
        env=shell.environ,
        cwd=shell.folder,
        capture_output=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert json.loads(result.stdout)["result"]["text"] == "it's"


def test_show_suggests_the_tool_that_was_meant(shell: Shell) -> None:
    result = shell.run("tools", "--show", "chek_status")

    assert result.returncode == 2
    assert "Did you mean check_status" in result.stderr


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": True}, "true"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}, "string or anything[]"),
        (True, "anything"),
    ],
)
def test_a_schema_is_said_in_words(schema: Any, words: str) -> None:
    assert describe_type(schema) == words


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Do it. Then rest.", "Do it"),
        ("Do it\nover two lines. More.", "Do it over two lines"),
        ("Use v1.2 of `x.y`. More.", "Use v1.2 of `x.y`"),
        ("", ""),
    ],
)
def test_the_summary_of_a_tool_is_its_first_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first


# Printing


WORD_STRATEGY = st.text("abcdefgh", min_size=1, max_size=12)


@LAW_SETTINGS
@given(
    rows=st.lists(
        st.tuples(WORD_STRATEGY, WORD_STRATEGY, st.lists(WORD_STRATEGY, max_size=30).map(" ".join)), min_size=1
    ),
    cut=st.booleans(),
)
def test_columns_are_aligned_and_no_line_is_too_long(rows: list[tuple[str, str, str]], cut: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        styled = [(click.style(first, fg="red") if "a" in first else first, *rest) for first, *rest in rows]

        lines = click.unstyle(output.format_columns(styled, cut=cut)).splitlines()

    second = 2 + max(len(first) for first, *_ in rows) + 2
    heads = [line for line in lines if line[2] != " "]
    assert [(line.split()[0], line[second:].split()[0]) for line in heads] == [
        (first, middle) for first, middle, _ in rows
    ]
    assert max(map(len, lines)) <= 80
    if not cut:
        words = " ".join(" ".join(row) for row in rows).split()
        assert " ".join(lines).split() == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "none"), (0, "0 s"), (0.5, "0.5 s"), (90, "90 s"), (120, "2 min"), (7200, "2 h")],
)
def test_a_duration_reads_as_people_say_it(seconds: float | None, words: str) -> None:
    assert output.format_duration(seconds) == words


@pytest.mark.parametrize(("amount", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")])
def test_a_size_reads_as_people_say_it(amount: int, words: str) -> None:
    assert output.format_bytes(amount) == words


@pytest.mark.parametrize(
    ("arguments", "rendered", "expected"),
    [
        ([], "one line", "one line\n"),
        ([], ["first", "second"], "first\nsecond\n"),
        (["--json"], "one line", '{\n  "answer": 1\n}\n'),
    ],
)
def test_an_answer_is_printed_for_a_person_or_for_a_program(
    arguments: list[str], rendered: str | list[str], expected: str
) -> None:
    @click.command()
    @json_command
    def command(_settings: Settings) -> None:
        output.print_answer({"answer": 1}, lambda _answer: rendered)

    assert CliRunner().invoke(command, arguments, obj=Settings()).output == expected


def test_examples_and_exit_codes_are_not_wrapped_in_a_help_text() -> None:
    lines = CliRunner().invoke(cli, ["workspace", "--help"]).output.splitlines()

    assert "    cleats workspace all.jsonc" in lines
    assert "  Exits 0  if every enabled repository can be searched," in lines
