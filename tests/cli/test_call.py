"""Tests of `cleats call`: the answer on stdout, the rest on stderr, and a reliable exit code."""

import io
import json
import signal
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.cli.call import _parse_pair
from cleats.cli.output import ProgressPrinter
from cleats.runtime.progress import ProgressReport
from cleats.toolsets.code.index.progress import BuildProgress
from tests.support.shell import EXIT_TIMEOUT_SECONDS, LAW_SETTINGS, Shell


def test_a_call_prints_the_payload_and_exits_0(shell: Shell) -> None:
    done = shell.call_tool("echo", '{"text": "grüß dich", "n": 4}')

    body = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert body["ok"] is True
    assert body["result"] == {"text": "grüß dich", "n": 4}
    assert done.stdout == json.dumps(body, separators=(",", ":"), ensure_ascii=False) + "\n"


def test_a_call_goes_through_the_dispatcher_with_its_defaults_and_warnings(shell: Shell) -> None:
    body = json.loads(shell.call_tool("repeat", '{"text": "x"}').stdout)

    assert body["result"]["n"] == 3
    assert body["_meta"]["warnings"][0]["code"] == "DEPRECATED_NAME"


def test_content_is_printed_as_its_text(shell: Shell) -> None:
    plain = shell.call_tool("say", '{"text": "two\\nlines"}')
    wrapped = shell.call_tool("say", '{"text": "x"}', "--json")

    assert (plain.returncode, plain.stdout) == (0, "two\nlines\n")
    assert json.loads(wrapped.stdout) == {"content": [{"type": "text", "text": "x"}]}


def test_arguments_come_from_stdin_from_a_file_and_one_by_one(shell: Shell) -> None:
    (shell.folder / "a.json").write_text('{"text": "file", "n": 1}')

    from_stdin = shell.call_tool("echo", "-", stdin_text='{"text": "stdin"}')
    from_file = shell.call_tool("echo", "@a.json", "--arg", "n=5")
    one_by_one = shell.call_tool("echo", "--arg", "text=a=b", "--arg", 'mode="fast"')

    results = [json.loads(done.stdout)["result"] for done in (from_stdin, from_file, one_by_one)]
    assert results == [
        {"n": 3, "text": "stdin"},
        {"n": 5, "text": "file"},
        {"n": 3, "text": "a=b", "mode": "fast"},
    ]


def test_a_tool_that_fails_exits_1_with_its_error_on_stdout(shell: Shell) -> None:
    done = shell.call_tool("fail")

    body = json.loads(done.stdout)
    assert done.returncode == 1
    assert body["error"]["code"] == "NOT_FOUND"


def test_a_tool_that_runs_too_long_exits_1_and_names_the_setting(shell: Shell) -> None:
    done = shell.call_tool("wait", CLEATS_TIMEOUTS="wait=0.01")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "TOOL_TIMEOUT"
    assert "CLEATS_TIMEOUTS=wait=SECONDS" in done.stderr


def test_a_crash_is_one_line_until_the_trace_is_asked_for(shell: Shell) -> None:
    short, long = shell.call_tool("crash"), shell.call_tool("crash", "-v")

    assert short.returncode == long.returncode == 1
    assert json.loads(short.stdout)["error"]["code"] == "INTERNAL"
    assert short.stderr.splitlines()[1:] == ["-v shows the traceback."]
    assert "ZeroDivisionError: secret" in long.stderr


def test_an_answer_that_is_no_json_is_an_internal_error(shell: Shell) -> None:
    done = shell.call_tool("mumble", "--arg", "unspeakable=true")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["message"] == "The tool's result is not valid JSON."


def test_what_a_tool_prints_is_not_its_answer(shell: Shell) -> None:
    done = shell.call_tool("mumble")

    assert json.loads(done.stdout)["ok"] is True
    assert done.stderr == "a stray line\n"


def test_an_unknown_tool_exits_2_and_suggests_near_ones(shell: Shell) -> None:
    done = shell.call_tool("ecco")

    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "UNKNOWN_TOOL"
    assert done.stderr == "Did you mean echo?\n"


def test_arguments_that_do_not_fit_exit_2_and_say_where_to_look(shell: Shell) -> None:
    done = shell.call_tool("echo", "--arg", "text=5")

    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert (error["code"], error["details"][0]["instancePath"]) == ("INVALID_REQUEST", "/text")
    assert done.stderr == "`cleats tools --show echo` lists the arguments.\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("{",), "The arguments are not valid JSON: "),
        (('{"n": NaN}',), "The arguments are not valid JSON: "),
        (("text=x",), "Use --arg for NAME=VALUE."),
        (("[1]",), "The arguments must be a JSON object"),
        (("@missing.json",), "missing.json: No such file"),
        (("--arg", "text"), "--arg takes NAME=VALUE, not 'text'."),
    ],
)
def test_arguments_that_cannot_be_read_exit_2_without_an_answer(
    shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    done = shell.call_tool("echo", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: cleats call ")
    assert problem in done.stderr


def test_a_toolset_that_cannot_start_fails_its_own_tools_and_no_others(shell: Shell) -> None:
    other, failing_call = shell.call_tool("say", '{"text": "fine"}'), shell.call_tool("never")

    assert (other.returncode, other.stdout, other.stderr) == (0, "fine\n", "")
    assert (failing_call.returncode, failing_call.stdout) == (2, "")
    assert failing_call.stderr.startswith("Error: RuntimeError: no store\n")


def test_an_answer_is_not_lost_to_a_toolset_that_does_not_stop_well(shell: Shell) -> None:
    done = shell.call_tool("once")

    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"] is True
    assert "call.stop tool=once: the call was answered" in done.stderr


def test_only_a_verbose_call_shows_its_log_line(shell: Shell) -> None:
    quiet, verbose = shell.call_tool("say", '{"text":""}'), shell.call_tool("say", '{"text":""}', "-v")

    assert quiet.stderr == ""
    assert verbose.stderr.startswith("call.end surface=cli ")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_call_is_cancelled_cleanly(shell: Shell, number: signal.Signals) -> None:
    with shell.start_process("call", "wait", module="tests.support.cli_host") as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=EXIT_TIMEOUT_SECONDS)

    assert first == "idle: waiting (25%)\n"
    assert process.returncode == 1
    assert json.loads(out)["error"]["code"] == "CANCELLED"
    assert err.splitlines() == ["Cancelling; press Ctrl-C again to exit at once", "cleaned up"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
ARGUMENT_NAMES = st.text(min_size=1).filter(lambda name: "=" not in name)


@LAW_SETTINGS
@given(ARGUMENT_NAMES, JSON_VALUES)
def test_an_argument_that_is_json_is_that_value(name: str, value: Any) -> None:
    assert _parse_pair(f"{name}={json.dumps(value)}") == (name, value)


@LAW_SETTINGS
@given(ARGUMENT_NAMES, st.text())
def test_any_other_argument_is_the_text_itself(name: str, text: str) -> None:
    assert _parse_pair(f"{name}=?{text}") == (name, f"?{text}")


class FakeTerminal(io.StringIO):
    """A terminal whose last line can be read."""

    def isatty(self) -> bool:
        return True

    @property
    def last_line(self) -> str:
        return self.getvalue().rpartition("\r")[2]


@pytest.mark.anyio
async def test_progress_in_a_terminal_is_one_line_that_goes_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "60")
    ticker = ProgressPrinter()

    await ticker.show(ProgressReport(1.0, 3.0, "parsed\na\x1b[2Jfile", "index"))
    first = screen.last_line
    await ticker.show(ProgressReport(2.0, None, "x" * 200, "progress"))
    second = screen.last_line
    ticker.clear()

    assert first == "index: parsed a [2Jfile (33%)"
    assert second == "x" * 58 + "…"
    assert screen.last_line == ""
    assert "\n" not in screen.getvalue()


def test_the_progress_of_a_build_is_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", screen)

    with ProgressPrinter(outside_terminal=False) as bar:
        bar.show_build(BuildProgress("look", "looking"))
        first = screen.last_line
        bar.show_build(BuildProgress("read", "reading", 5, 20))
        second = screen.last_line

    assert (first, second) == ("looking", "[#####...............] 25% reading")
    assert screen.last_line == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_quiet_progress_prints_nothing(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    screen = FakeTerminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)

    with ProgressPrinter(quiet=True) as bar:
        bar.print_line("hidden")

    assert screen.getvalue() == ""
