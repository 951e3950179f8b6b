"""The commands as a person meets them: what they print, where, and how they leave."""

import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.cli import clients, doctor, printing
from cleats.cli.call import Ticker, _pair
from cleats.cli.main import COMMANDS, cli
from cleats.cli.tools import kind_of, summary
from cleats.runtime.progress import Report

ROOT = Path(__file__).parents[1]
PATIENCE = 60
"""Seconds until a process that must end is given up; a busy machine needs a few."""

HEAVY = {"mcp", "mcp_types", "pydantic", "starlette", "httpx", "httpx2", "uvicorn", "numpy"}


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

    def call(
        self, *words: str, given: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """`cleats call`, over the tools of `tests.cli_host`."""
        return self.run("call", *words, module="tests.cli_host", given=given, **environ)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


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
def test_looking_around_imports_no_sdk_and_no_heavy_library(
    shell: Shell, words: tuple[str, ...]
) -> None:
    code = (
        "import sys\nfrom cleats.cli.main import cli\n"
        f"try:\n    cli.main({list(words)!r}, 'cleats')\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=shell.environ,
        cwd=shell.folder,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )

    imported = {name.partition(".")[0] for name in done.stderr.decode().split()}
    assert "click" in imported
    assert not imported & HEAVY
    if words[0].startswith("--"):
        assert not imported & {"asyncio", "anyio", "msgspec", "jsonschema_rs", "opentelemetry"}


def test_help_lists_every_command_with_its_line(shell: Shell) -> None:
    done = shell.run("--help")

    assert done.returncode == 0
    assert all(
        name in done.stdout and entry.about in done.stdout for name, entry in COMMANDS.items()
    )


def test_a_misspelt_command_is_told_the_right_one(shell: Shell) -> None:
    done = shell.run("tols")

    assert done.returncode == 2
    assert "did you mean 'tools'?" in done.stderr


def test_a_wrong_setting_stops_a_command_with_one_clear_line(shell: Shell) -> None:
    done = shell.run("tools", CLEATS_CONCURRENCY="many")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: CLEATS_CONCURRENCY: expected a number, not 'many'\n"


def test_a_failure_nobody_foresaw_is_two_lines_and_no_trace(shell: Shell) -> None:
    (shell.folder / "msgspec.py").write_text("raise ImportError('broken')")

    done = shell.run("tools", PYTHONPATH=str(shell.folder))

    assert done.returncode == 2
    assert done.stderr.startswith("Error: ImportError: broken\n")
    assert "cleats doctor" in done.stderr


def _leaves(command: click.Command, ctx: click.Context) -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return {ctx.command_path: command}
    found: dict[str, click.Command] = {}
    for name in command.list_commands(ctx):
        below = command.get_command(ctx, name)
        assert below is not None
        found |= _leaves(below, click.Context(below, info_name=name, parent=ctx))
    return found


LEAVES = _leaves(cli, click.Context(cli, info_name="cleats"))


@pytest.mark.parametrize("path", LEAVES)
def test_the_help_of_every_command_teaches_by_example(path: str) -> None:
    text = LEAVES[path].help or ""

    assert "Example" in text
    examples = [line.split() for line in text.splitlines() if line.startswith("  cleats ")]
    assert all(words[1] in COMMANDS for words in examples)


# tools


def test_tools_shows_one_line_a_tool_that_fits_the_terminal(shell: Shell) -> None:
    done = shell.run("tools", module="tests.cli_host", COLUMNS="80")

    lines = done.stdout.splitlines()
    assert done.returncode == 0
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
    done = shell.run("tools", CLEATS_TIMEOUTS="check_status=90")

    assert "90 s" in done.stdout


def test_tools_as_json_is_what_the_contract_snapshot_says(shell: Shell) -> None:
    snapshot = json.loads(shell.run("contract", "snapshot").stdout)

    everything = json.loads(shell.run("tools", "--json").stdout)
    one = json.loads(shell.run("tools", "--json", "--show", "check_status").stdout)

    assert everything == snapshot["tools"]
    assert one == snapshot["tools"]["check_status"]


def test_tools_takes_the_names_of_toolsets_and_refuses_others(shell: Shell) -> None:
    some, none = shell.run("tools", "code"), shell.run("tools", "cod")

    assert "check_status" in some.stdout
    assert (none.returncode, none.stdout) == (2, "")
    assert "There is no toolset 'cod'; there are: code" in none.stderr


def test_show_explains_a_tool_by_any_of_its_names(shell: Shell) -> None:
    done = shell.run("tools", "--show", "repeat", module="tests.cli_host")

    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "echo"
    assert "old name  repeat, deprecated since 2.0.0" in done.stdout
    assert "  text   string, required\n         What to say.\n" in done.stdout
    assert "  n      integer, default 3\n" in done.stdout
    assert '  mode   "fast" | "slow"\n' in done.stdout
    assert "  later  string, reserved\n" in done.stdout
    assert "  NOT_FOUND   The named file" in done.stdout


def test_the_example_that_show_gives_can_be_pasted_into_a_shell(shell: Shell) -> None:
    shown = shell.run("tools", "--show", "echo", module="tests.cli_host").stdout
    line = shown.splitlines()[-1].strip().removeprefix("cleats ")

    done = subprocess.run(
        f"{sys.executable} -m tests.cli_host {line}",
        shell=True,
        env=shell.environ,
        cwd=shell.folder,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )

    assert json.loads(done.stdout)["result"]["text"] == "it's"


def test_show_suggests_the_tool_that_was_meant(shell: Shell) -> None:
    done = shell.run("tools", "--show", "chek_status")

    assert done.returncode == 2
    assert "Did you mean check_status?" in done.stderr


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
    assert kind_of(schema) == words


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
    assert summary(text) == first


# call


def test_a_call_prints_the_payload_and_exits_0(shell: Shell) -> None:
    done = shell.call("echo", '{"text": "grüß dich", "n": 4}')

    body = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert body["ok"] is True
    assert body["result"] == {"text": "grüß dich", "n": 4}
    assert done.stdout.count("\n") == 1


def test_a_call_goes_through_the_dispatcher_with_its_defaults_and_warnings(shell: Shell) -> None:
    body = json.loads(shell.call("repeat", '{"text": "x"}').stdout)

    assert body["result"]["n"] == 3
    assert body["_meta"]["warnings"][0]["code"] == "DEPRECATED_NAME"


def test_content_is_printed_as_its_text(shell: Shell) -> None:
    plain = shell.call("say", '{"text": "two\\nlines"}')
    wrapped = shell.call("say", '{"text": "x"}', "--json")

    assert (plain.returncode, plain.stdout) == (0, "two\nlines\n")
    assert json.loads(wrapped.stdout) == {"content": [{"type": "text", "text": "x"}]}


def test_arguments_come_from_stdin_from_a_file_and_one_by_one(shell: Shell) -> None:
    (shell.folder / "a.json").write_text('{"text": "file", "n": 1}')

    from_stdin = shell.call("echo", "-", given='{"text": "stdin"}')
    from_file = shell.call("echo", "@a.json", "--arg", "n=5")
    one_by_one = shell.call("echo", "--arg", "text=a=b", "--arg", 'mode="fast"')

    results = [json.loads(done.stdout)["result"] for done in (from_stdin, from_file, one_by_one)]
    assert results == [
        {"n": 3, "text": "stdin"},
        {"n": 5, "text": "file"},
        {"n": 3, "text": "a=b", "mode": "fast"},
    ]


def test_a_tool_that_fails_exits_1_with_its_error_on_stdout(shell: Shell) -> None:
    done = shell.call("fail")

    body = json.loads(done.stdout)
    assert done.returncode == 1
    assert body["error"]["code"] == "NOT_FOUND"


def test_a_tool_that_runs_too_long_exits_1_and_names_the_setting(shell: Shell) -> None:
    done = shell.call("wait", CLEATS_TIMEOUTS="wait=0.01")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "TOOL_TIMEOUT"
    assert "CLEATS_TIMEOUTS=wait=SECONDS" in done.stderr


def test_a_crash_is_one_line_until_the_trace_is_asked_for(shell: Shell) -> None:
    short, long = shell.call("crash"), shell.call("crash", "-v")

    assert short.returncode == long.returncode == 1
    assert json.loads(short.stdout)["error"]["code"] == "INTERNAL"
    assert short.stderr.splitlines()[1:] == ["With -v the trace is shown."]
    assert "ZeroDivisionError: secret" in long.stderr


def test_an_answer_that_is_no_json_is_an_internal_error(shell: Shell) -> None:
    done = shell.call("mumble", "--arg", "unspeakable=true")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["message"] == "The tool's answer is not JSON."


def test_what_a_tool_prints_is_not_its_answer(shell: Shell) -> None:
    done = shell.call("mumble")

    assert json.loads(done.stdout)["ok"] is True
    assert done.stderr == "a stray line\n"


def test_an_unknown_tool_exits_2_and_suggests_near_ones(shell: Shell) -> None:
    done = shell.call("ecco")

    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "UNKNOWN_TOOL"
    assert done.stderr == "Did you mean echo?\n"


def test_arguments_that_do_not_fit_exit_2_and_say_where_to_look(shell: Shell) -> None:
    done = shell.call("echo", "--arg", "text=5")

    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert (error["code"], error["details"][0]["instancePath"]) == ("INVALID_REQUEST", "/text")
    assert done.stderr == "`cleats tools --show echo` lists the arguments.\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("{",), "The arguments are not JSON: "),
        (('{"n": NaN}',), "The arguments are not JSON: "),
        (("text=x",), "Use --arg for NAME=VALUE."),
        (("[1]",), "The arguments must be a JSON object"),
        (("@missing.json",), "missing.json: No such file"),
        (("--arg", "text"), "--arg takes NAME=VALUE, not 'text'."),
    ],
)
def test_arguments_that_cannot_be_read_exit_2_without_an_answer(
    shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    done = shell.call("echo", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_only_a_verbose_call_shows_its_log_line(shell: Shell) -> None:
    quiet, verbose = shell.call("say", '{"text":""}'), shell.call("say", '{"text":""}', "-v")

    assert quiet.stderr == ""
    assert verbose.stderr.startswith("call.end surface=cli ")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_call_is_cancelled_cleanly(shell: Shell, number: signal.Signals) -> None:
    with shell.start("call", "wait", module="tests.cli_host") as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)

    assert first == "idle: waiting (25%)\n"
    assert process.returncode == 1
    assert json.loads(out)["error"]["code"] == "CANCELLED"
    assert err.splitlines() == ["cancelling; Ctrl-C again leaves at once", "cleaned up"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAME = st.text(min_size=1).filter(lambda name: "=" not in name)


@given(NAME, JSON)
def test_an_argument_that_is_json_is_that_value(name: str, value: Any) -> None:
    assert _pair(f"{name}={json.dumps(value)}") == (name, value)


@given(NAME, st.text())
def test_any_other_argument_is_the_text_itself(name: str, text: str) -> None:
    assert _pair(f"{name}=?{text}") == (name, f"?{text}")


class Screen(io.StringIO):
    """A terminal that remembers what is on its last line."""

    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        return self.getvalue().rpartition("\r")[2]


@pytest.mark.anyio
async def test_progress_in_a_terminal_is_one_line_that_goes_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "60")
    ticker = Ticker()

    await ticker.show(Report(1.0, 3.0, "parsed\na\x1b[2Jfile", "index"))
    first = screen.line
    await ticker.show(Report(2.0, None, "x" * 200, "progress"))
    second = screen.line
    ticker.clear()

    assert first == "index: parsed a [2Jfile (33%)"
    assert second == "x" * 58 + "…"
    assert screen.line == ""
    assert "\n" not in screen.getvalue()


# doctor


def test_a_healthy_machine_exits_0_and_says_so(shell: Shell) -> None:
    done = shell.run("doctor")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Ready.\n")
    for title in ("Versions", "Libraries", "Settings", "Files", "Folders", "Capabilities"):
        assert f"\n{title}\n" in f"\n{done.stdout}"


def test_the_doctor_knows_where_each_setting_came_from(shell: Shell) -> None:
    (shell.folder / ".cleats.toml").write_text("queue = 3")
    url = "https://user:secret@example.org/v1"

    done = shell.run(
        "doctor",
        "--json",
        CLEATS_CONCURRENCY="2",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url,
        CLEATS_CONCURENCY="1",
    )

    findings = json.loads(done.stdout)
    values = {each["name"]: (each["value"], each["source"]) for each in findings["settings"]}
    assert done.returncode == 0
    assert values["concurrency"] == (2, "environment")
    assert values["queue"] == (3, str(shell.folder / ".cleats.toml"))
    assert values["drain"] == (2.0, "default")
    assert values["otlp_endpoint"] == ("https://***@example.org/v1", "environment")
    assert "Did you mean CLEATS_CONCURRENCY?" in findings["notes"][0]


def test_a_wrong_setting_is_the_doctors_to_explain(shell: Shell) -> None:
    done = shell.run("doctor", CLEATS_QUEUE="x")

    assert done.returncode == 1
    assert "Problem: CLEATS_QUEUE: expected a number, not 'x'" in done.stdout


def test_a_folder_that_cannot_be_written_is_a_problem_with_a_remedy(shell: Shell) -> None:
    (shell.folder / "file").write_text("")

    done = shell.run("doctor", CLEATS_CACHE_DIR=str(shell.folder / "file" / "cache"))

    assert done.returncode == 1
    assert "cannot be written to\nSet CLEATS_CACHE_DIR to a folder that can.\n" in done.stdout


def test_a_missing_library_is_a_problem_and_comes_with_its_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "mcp":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)

    findings = doctor.examine(shell.environ, shell.folder)

    assert not findings.ok
    assert findings.problems[0].what == "mcp is not installed"
    assert findings.problems[0].remedy.startswith("pip install 'mcp")


def test_the_doctor_works_where_a_library_is_broken(shell: Shell) -> None:
    (shell.folder / "msgspec.py").write_text("raise ImportError('broken')")

    done = shell.run("doctor", PYTHONPATH=str(shell.folder))

    assert done.returncode == 1
    assert "Problem: an import fails: broken" in done.stdout


def test_the_doctor_lists_what_is_missing_and_how_to_get_it(shell: Shell) -> None:
    findings = json.loads(shell.run("doctor", "--json", PATH="/nowhere").stdout)

    git = next(each for each in findings["capabilities"] if each["group"] == "git")
    assert git["present"] is False
    assert git["remedy"].startswith("Install git")


# client-config

READERS: dict[str, Callable[[str], Any]] = {
    "claude-code": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "claude-desktop": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "cursor": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "codex": lambda text: tomllib.loads(text)["mcp_servers"]["cleats"],
    "vscode": lambda text: json.loads(text)["servers"]["cleats"],
    "gemini": lambda text: json.loads(text)["mcpServers"]["cleats"],
}


@pytest.mark.parametrize("client", clients.CLIENTS)
def test_stdout_has_only_the_block_and_stderr_says_where_it_goes(shell: Shell, client: str) -> None:
    done = shell.run("client-config", client, "--toolset", "code")

    entry = READERS[client](done.stdout)
    assert done.returncode == 0
    assert entry["args"][-2:] == ["serve", "code"]
    assert entry.get("type", "stdio") == "stdio"
    assert next(iter(clients.CLIENTS[client].files.values())) in done.stderr


@given(command=st.text(min_size=1), toolsets=st.lists(st.text(), max_size=2))
@pytest.mark.parametrize("client", clients.CLIENTS)
def test_every_block_gives_back_the_command_it_was_made_of(
    client: str, command: str, toolsets: list[str]
) -> None:
    launch = clients.Launch(command, ("serve", *toolsets))

    entry = READERS[client](clients.CLIENTS[client].block(launch))

    assert [entry["command"], *entry["args"]] == launch.words


def test_the_registered_command_starts_a_server_from_anywhere(shell: Shell) -> None:
    entry = READERS["cursor"](shell.run("client-config", "cursor").stdout)

    served = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd="/",
        env={"HOME": str(shell.folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )

    assert Path(entry["command"]).is_absolute()
    assert (served.returncode, served.stdout) == (0, b"")


def test_a_link_to_the_script_is_registered_as_it_is(shell: Shell) -> None:
    link = shell.folder / "cleats"
    link.symlink_to(Path(sys.executable).with_name("cleats"))

    done = subprocess.run(
        ["./cleats", "client-config", "cursor"],
        cwd=shell.folder,
        env=shell.environ,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )

    assert READERS["cursor"](done.stdout.decode())["command"] == str(link)


def test_without_a_client_they_are_listed(shell: Shell) -> None:
    done = shell.run("client-config")
    as_json = shell.run("client-config", "--json")

    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(clients.CLIENTS)
    assert list(json.loads(as_json.stdout)) == list(clients.CLIENTS)


def test_an_unknown_client_is_told_the_known_ones(shell: Shell) -> None:
    done = shell.run("client-config", "emacs")

    assert (done.returncode, done.stdout) == (2, "")
    assert "there are: claude-code, claude-desktop, cursor, codex, vscode, gemini" in done.stderr


# Printing


WORD = st.text("abcdefgh", min_size=1, max_size=12)


@given(
    rows=st.lists(st.tuples(WORD, WORD, st.lists(WORD, max_size=30).map(" ".join)), min_size=1),
    cut=st.booleans(),
)
def test_columns_are_aligned_and_no_line_is_too_long(
    rows: list[tuple[str, str, str]], cut: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        styled = [(click.style(first, fg="red"), *rest) for first, *rest in rows]

        lines = click.unstyle(printing.columns(styled, cut=cut)).splitlines()

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
    [(None, "none"), (0.5, "0.5 s"), (90, "90 s"), (120, "2 min"), (7200, "2 h")],
)
def test_a_duration_reads_as_people_say_it(seconds: float | None, words: str) -> None:
    assert printing.duration(seconds) == words


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")]
)
def test_a_size_reads_as_people_say_it(amount: int, words: str) -> None:
    assert printing.size(amount) == words
