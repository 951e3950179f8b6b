"""`cleats contract` as a person meets it: on ourselves, on files, and on servers of others."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from cleats.cli.main import cli
from cleats.contract.compat import RULES
from cleats.contract.snapshot import dump
from cleats.transports.mcp.client import ServerFaultError, surface

ROOT = Path(__file__).parents[1]
STOCK = Path(__file__).parent / "fixtures" / "stock_server.py"
PATIENCE = 60
"""Seconds until a process that must end is given up; a busy machine needs a few."""

ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
    "annotations": {"readOnlyHint": True},
}
LIST = {"name": "list", "description": "List them.", "inputSchema": {"type": "object"}}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Shell":
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Shell(tmp_path)


@dataclass(frozen=True)
class Shell:
    """Runs `cleats contract` in a folder of its own."""

    folder: Path

    def run(self, *words: str) -> Ended:
        """In a process of its own, as a person would."""
        done = subprocess.run(
            [sys.executable, "-m", "cleats", "contract", *words],
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def call(self, *words: str) -> Ended:
        """In this process, which has imported the SDK already."""
        done = CliRunner().invoke(cli, ["contract", *words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ended(done.exit_code, done.stdout, done.stderr)

    def write(self, name: str, value: Any) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(value))
        return name

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_bytes())

    def server(self, *tools: Any) -> str:
        """The command that starts the stand-in of a third party with these tools."""
        path = self.folder / "stock.json"
        path.write_text(json.dumps(tools))
        return f"'{sys.executable}' '{STOCK}' '{path}'"


# On ourselves


def test_the_committed_contract_is_the_current_one_to_the_byte(shell: Shell) -> None:
    accepted = shell.run("check", "--accept")
    again = shell.run("check")

    assert (accepted.code, again.code) == (0, 0), again.stderr
    assert "nothing changed" in again.stdout
    assert shell.run("snapshot").stdout.encode() == (
        (shell.folder / "contracts/tools.json").read_bytes()
    )


def test_without_a_committed_contract_there_is_nothing_to_check(shell: Shell) -> None:
    done = shell.run("check")

    assert done.code == 2
    assert "there is no contracts/tools.json here; --against says where" in done.stderr


def test_a_missing_bump_is_refused_and_cannot_be_accepted(shell: Shell) -> None:
    shell.run("snapshot", "-o", "contracts/tools.json")
    old = shell.read("contracts/tools.json")
    old["tools"]["gone"] = {"inputSchema": {"type": "object"}, "schemaVersion": 1}
    shell.write("contracts/tools.json", old)

    refused = shell.run("check")
    unaccepted = shell.run("check", "--accept")

    assert (refused.code, unaccepted.code) == (1, 1)
    assert "TOOL_REMOVED" in refused.stdout
    assert "the contract needs version" in refused.stdout
    assert shell.read("contracts/tools.json") == old


def test_a_right_bump_has_to_be_written_down_before_it_passes(shell: Shell) -> None:
    shell.run("snapshot", "-o", "contracts/tools.json")
    old = shell.read("contracts/tools.json")
    old["schemaVersion"] = "1.0.0"
    old["tools"]["gone"] = {"inputSchema": {"type": "object"}, "schemaVersion": 1}
    shell.write("contracts/tools.json", old)

    stale = shell.run("check")
    accepted = shell.run("check", "--accept")
    after = shell.run("check")

    assert stale.code == 1
    assert "cleats contract check --accept" in stale.stderr
    assert (accepted.code, after.code) == (0, 0)


def test_the_bump_can_be_measured_against_a_commit(shell: Shell) -> None:
    shell.run("snapshot", "-o", "contracts/tools.json")
    current = shell.read("contracts/tools.json")
    before = {**current, "tools": {**current["tools"], "gone": {"inputSchema": {}}}}
    shell.write("contracts/tools.json", before)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], check=True)
    shell.write("contracts/tools.json", current)

    against_file = shell.run("check")
    against_commit = shell.run("check", "--against-ref", "HEAD")
    nowhere = shell.run("check", "--against-ref", "nowhere")

    assert against_file.code == 0
    assert against_commit.code == 1
    assert "`gone` is gone." in against_commit.stdout
    assert nowhere.code == 2


# On files


def test_two_files_are_compared_in_every_format(shell: Shell) -> None:
    base = {"snapshot": 1, "schemaVersion": "1.0.0"}
    old = shell.write("old.json", {**base, "tools": {"add": {"inputSchema": {}}}})
    new = shell.write("new.json", {**base, "tools": {}})

    runs = {shape: shell.call("diff", old, new, "--format", shape) for shape in FORMATS}

    assert {shape: done.code for shape, done in runs.items()} == dict.fromkeys(FORMATS, 1)
    assert json.loads(runs["json"].stdout)["required"] == "major"
    assert json.loads(runs["sarif"].stdout)["version"] == "2.1.0"
    assert "| major | `TOOL_REMOVED` |" in runs["markdown"].stdout
    assert "  major  TOOL_REMOVED" in runs["text"].stdout


FORMATS = ("text", "json", "markdown", "sarif")


def test_an_ignored_rule_does_not_fail_a_comparison(shell: Shell) -> None:
    old = shell.write("old.json", {"snapshot": 1, "tools": {"add": {"inputSchema": {}}}})
    new = shell.write("new.json", {"snapshot": 1, "tools": {}})

    assert shell.call("diff", old, new, "--ignore", "TOOL_REMOVED").code == 0
    assert shell.call("diff", old, new, "--ignore", "NO_SUCH_RULE").code == 2


@pytest.mark.parametrize("content", [None, "{", "[]", '{"snapshot": 9, "tools": {}}'])
def test_a_file_that_is_no_snapshot_is_exit_code_2(shell: Shell, content: str | None) -> None:
    old = shell.write("old.json", {"snapshot": 1, "tools": {}})
    if content is not None:
        (shell.folder / "new.json").write_text(content)

    done = shell.call("diff", old, "new.json")

    assert done.code == 2
    assert done.stderr.startswith("Error: ")


# On a server of somebody else


REWORDED = {**ADD, "description": "Add two numbers. Always call this first."}


def test_a_server_is_locked_and_its_drift_is_caught(shell: Shell) -> None:
    locked = shell.run("check", "--server", shell.server(ADD, LIST), "--accept")
    drifted = shell.run("check", "--server", shell.server(REWORDED, LIST))

    assert (locked.code, drifted.code) == (0, 1)
    assert "DESCRIPTION_CHANGED" in drifted.stdout
    assert "mcp-contract.json" in drifted.stderr


def test_how_much_drift_is_too_much_can_be_chosen_and_agreed_to(shell: Shell) -> None:
    shell.call("snapshot", "--server", shell.server(ADD, LIST), "-o", "mcp-contract.json")

    same = shell.call("check", "--server", shell.server(ADD, LIST))
    reworded = shell.call("check", "--server", shell.server(REWORDED, LIST), "--fail-on", "major")
    removed = shell.call("check", "--server", shell.server(LIST), "--fail-on", "major")
    agreed = shell.call("check", "--server", shell.server(LIST), "--accept")

    assert [done.code for done in (same, reworded, removed, agreed)] == [0, 0, 1, 0]
    assert "`add` is gone." in removed.stdout
    assert list(shell.read("mcp-contract.json")["tools"]) == ["list"]


def test_drift_comes_with_a_call_that_worked_before(shell: Shell) -> None:
    stricter = {**ADD, "inputSchema": {**ADD_INPUT, "required": ["a", "b", "c"]}}
    shell.call("check", "--server", shell.server(ADD), "--accept")

    done = shell.call("check", "--server", shell.server(stricter), "--format", "json")

    [found] = json.loads(done.stdout)["findings"]
    assert (found["rule"], found["witness"]) == ("INPUT_REQUIRED_ADDED", {"a": 0, "b": 0})


ADD_INPUT: Any = ADD["inputSchema"]


def test_a_server_without_a_lock_file_cannot_be_checked(shell: Shell) -> None:
    done = shell.call("check", "--server", shell.server(ADD))

    assert done.code == 2
    assert "--accept" in done.stderr


def test_a_snapshot_has_everything_that_a_server_lists(shell: Shell) -> None:
    done = shell.call("snapshot", "--server", shell.server(ADD, LIST))

    assert json.loads(done.stdout) == {
        "snapshot": 1,
        "server": {"name": "stock", "version": "1.0.0"},
        "tools": {
            name: {key: value for key, value in tool.items() if key != "name"}
            for name, tool in (("add", ADD), ("list", LIST))
        },
    }


def test_we_are_such_a_server_too(shell: Shell) -> None:
    command = f"'{sys.executable}' -m cleats serve"

    done = shell.call("snapshot", "--server", command)

    ours = json.loads(shell.call("snapshot").stdout)["tools"]
    theirs = json.loads(done.stdout)["tools"]
    assert theirs.keys() == ours.keys()
    assert all(theirs[name]["inputSchema"] == ours[name]["inputSchema"] for name in ours)


def test_a_server_at_an_address_is_read_the_same_way(shell: Shell) -> None:
    with listening(shell.server(ADD, LIST)) as url:
        by_url = shell.call("snapshot", "--url", url, "--header", "Authorization: Bearer x")
        unknown = shell.call("snapshot", "--url", url)

    by_command = shell.call("snapshot", "--server", shell.server(ADD, LIST))
    assert by_url.code == 0, by_url.stderr
    assert by_url.stdout == by_command.stdout
    assert unknown.code == 2


@contextmanager
def listening(command: str) -> Iterator[str]:
    """The stand-in over HTTP; it takes its socket from us, so there is nothing to wait for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        words = [word.strip("'") for word in command.split("' '")]
        with subprocess.Popen(
            [*words, str(listener.fileno())], pass_fds=[listener.fileno()]
        ) as server:
            try:
                yield f"http://127.0.0.1:{port}/mcp"
            finally:
                server.terminate()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--server", "no-such-command-anywhere"], "cannot be started"),
        (["--server", f"'{sys.executable}' -c 'raise SystemExit(3)'"], "exit code 3"),
        (["--server", "'unfinished"], "No closing quotation"),
        (["--server", ""], "no command"),
        (["--url", "http://127.0.0.1:1/mcp"], "connection"),
        (["--url", "no address"], "no address"),
        (["--server", "a", "--url", "b"], "give one"),
        (["--url", "b", "--header", "no colon"], "NAME: VALUE"),
    ],
)
def test_a_server_that_cannot_be_read_is_exit_code_2(
    shell: Shell, words: list[str], why: str
) -> None:
    done = shell.call("snapshot", *words)

    assert done.code == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def python(script: str) -> str:
    return f"'{sys.executable}' -c '{script}'"


HANGS = "import sys; sys.stdin.read()"
BABBLES = 'import sys; print("hello, this is no JSON", flush=True); sys.stdin.read()'


@pytest.mark.anyio
async def test_a_server_that_hangs_is_given_up_and_ended() -> None:
    with pytest.raises(ServerFaultError, match=r"did not answer within 0\.5 s"):
        await surface(command=python(HANGS), timeout=0.5)


def test_a_server_that_takes_its_time_to_end_has_the_grace_that_is_set(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer_than_usual = "trap 'sleep 3; touch ended' TERM"
    stays = "tail -f /dev/null & wait"
    (shell.folder / "server.sh").write_text(f"{longer_than_usual}\n{shell.server(ADD)}\n{stays}\n")
    monkeypatch.setenv("CLEATS_GRACE", str(PATIENCE))

    done = shell.call("snapshot", "--server", "sh server.sh")

    assert done.code == 0
    assert (shell.folder / "ended").exists()


@pytest.mark.anyio
async def test_a_server_that_speaks_something_else_is_quoted() -> None:
    for patience in (1, 4, 16, 64):  # a busy machine takes a while to start it
        with pytest.raises(ServerFaultError, match="did not answer within") as caught:
            await surface(command=python(BABBLES), timeout=patience)
        if "stdout" in str(caught.value):
            break

    assert "hello, this is no JSON" in str(caught.value)


@pytest.mark.anyio
async def test_an_answer_that_does_not_fit_mcp_is_told_with_its_place(tmp_path: Path) -> None:
    unfit = {"tools": [ADD, {"name": "read", "inputSchema": {}}, {"name": "write"}]}
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    greeting |= {"serverInfo": {"name": "unfit", "version": "1"}}
    answers = {"initialize": greeting, "tools/list": unfit}
    server = tmp_path / "server.py"
    server.write_text(
        f"import json, sys\n"
        f"for line in sys.stdin:\n"
        f"    asked = json.loads(line)\n"
        f"    if (result := {answers}.get(asked['method'])) is not None:\n"
        f"        answer = {{'jsonrpc': '2.0', 'id': asked['id'], 'result': result}}\n"
        f"        print(json.dumps(answer), flush=True)\n"
    )

    with pytest.raises(ServerFaultError) as caught:
        await surface(command=f"'{sys.executable}' '{server}'")

    assert "/tools/1/inputSchema/type: Field required (and 1 more)" in str(caught.value)


@pytest.mark.anyio
async def test_a_stray_line_on_stdout_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([ADD]))
    noisy = f"echo starting && exec '{sys.executable}' '{STOCK}' '{tmp_path}/tools.json'"

    with anyio.fail_after(PATIENCE):
        read = await surface(command=f'sh -c "{noisy}"')

    assert list(read["tools"]) == ["add"]


@pytest.mark.anyio
async def test_two_tools_with_one_name_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([ADD, ADD]))

    with pytest.raises(ServerFaultError, match="two tools called 'add'"):
        await surface(command=f"'{sys.executable}' '{STOCK}' '{tmp_path}/tools.json'")


@pytest.mark.parametrize(
    "words",
    [
        ["snapshot", "--header", "A: b"],
        ["snapshot", "--timeout", "3"],
        ["check", "--lock", "x.json"],
        ["check", "--fail-on", "major"],
        ["check", "--server", "x", "--against", "x.json"],
        ["check", "--server", "x", "--against-ref", "main"],
    ],
)
def test_an_option_that_would_do_nothing_is_refused(shell: Shell, words: list[str]) -> None:
    done = shell.call(*words)

    assert done.code == 2
    assert "is only for" in done.stderr


# Help


def test_every_rule_can_be_listed_and_explained(shell: Shell) -> None:
    listed = shell.call("rules").stdout
    explained = shell.call("rules", "INPUT_NARROWED").stdout

    assert all(rule in listed for rule in RULES)
    assert "needs a major bump" in explained
    assert shell.call("--explain", "INPUT_NARROWED").stdout == explained
    assert shell.call("rules", "NO_SUCH_RULE").code == 2


@pytest.mark.parametrize("command", ["check", "diff", "snapshot", "rules"])
def test_help_teaches_by_example(shell: Shell, command: str) -> None:
    done = shell.call(command, "--help")

    assert "Example" in done.stdout
    assert f"cleats contract {command}" in done.stdout
