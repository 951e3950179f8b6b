"""`cleats client-config` prints a block that works at once, in the format the client expects."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cleats.cli import client_config, clients
from cleats.cli.clients import CLIENTS_BY_NAME, ServerCommand
from tests.support.shell import EXIT_TIMEOUT_SECONDS, LAW_SETTINGS, Shell

CONFIG_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(CLIENTS_BY_NAME, lambda text: json.loads(text)["mcpServers"]["cleats"]),
    "codex": lambda text: tomllib.loads(text)["mcp_servers"]["cleats"],
    "vscode": lambda text: json.loads(text)["servers"]["cleats"],
    "zed": lambda text: json.loads(text)["context_servers"]["cleats"],
    "opencode": lambda text: json.loads(text)["mcp"]["cleats"],
    "continue": lambda text: yaml.safe_load(text)["mcpServers"][0],
}


def read_argv(client: str, text: str) -> list[str]:
    entry = CONFIG_READERS[client](text)
    return entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]


@pytest.mark.parametrize("client", CLIENTS_BY_NAME)
def test_stdout_has_only_the_block_and_stderr_says_where_it_goes(shell: Shell, client: str) -> None:
    process = shell.run("client-config", client, "--toolset", "code")

    assert process.returncode == 0
    assert read_argv(client, process.stdout)[-2:] == ["serve", "code"]
    assert all(path in process.stderr for files in CLIENTS_BY_NAME[client].files.values() for path in files.values())


def test_codex_is_told_to_wait_for_the_server(shell: Shell) -> None:
    entry = CONFIG_READERS["codex"](shell.run("client-config", "codex").stdout)

    assert entry["required"] is True
    assert entry["startup_timeout_sec"] >= 10


def test_the_project_file_that_two_clients_share_suits_both(shell: Shell) -> None:
    copilot = CONFIG_READERS["copilot"](shell.run("client-config", "copilot").stdout)
    claude = CONFIG_READERS["claude-code"](shell.run("client-config", "claude-code").stdout)

    assert CLIENTS_BY_NAME["copilot"].files["project"] == CLIENTS_BY_NAME["claude-code"].files["project"]
    assert copilot == {**claude, "tools": ["*"]}


def test_a_registration_is_lean_unless_toolsets_are_named(shell: Shell) -> None:
    lean = shell.run("client-config", "cursor").stdout
    whole = shell.run("client-config", "cursor", "--toolset", "all", "--read-only").stdout
    chosen = shell.run("client-config", "cursor", "--tools", "find_code,skill").stdout

    assert read_argv("cursor", lean)[-3:] == ["serve", "explore", "skills"]
    assert read_argv("cursor", whole)[-2:] == ["serve", "--read-only"]
    assert read_argv("cursor", chosen)[-3:] == ["serve", "--tools", "find_code,skill"]


@pytest.mark.parametrize(
    "client", ["gemini", "opencode", "qwen", "cline", "continue", "cursor", "zed", "claude-desktop"]
)
def test_clients_that_refuse_our_protocol_version_negotiate(shell: Shell, client: str) -> None:
    entry = CONFIG_READERS[client](shell.run("client-config", client).stdout)

    assert (entry.get("env") or entry["environment"]) == {"CLEATS_PROTOCOL": "negotiate"}


@LAW_SETTINGS
@given(command=st.text(min_size=1), toolsets=st.lists(st.text(), max_size=2))
@pytest.mark.parametrize("client", CLIENTS_BY_NAME)
def test_every_block_gives_back_the_command_it_was_made_of(client: str, command: str, toolsets: list[str]) -> None:
    launch = ServerCommand(command, ("serve", *toolsets))

    assert read_argv(client, CLIENTS_BY_NAME[client].render_block(launch)) == launch.argv


def test_the_registered_command_starts_a_server_from_anywhere(shell: Shell) -> None:
    entry = CONFIG_READERS["cursor"](shell.run("client-config", "cursor").stdout)

    served = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd="/",
        env={"HOME": str(shell.folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert Path(entry["command"]).is_absolute()
    assert (served.returncode, served.stdout) == (0, b"")


def test_the_repository_that_is_named_is_the_one_that_is_served(shell: Shell) -> None:
    project = shell.folder / "a project"
    project.mkdir()
    entry = CONFIG_READERS["codex"](
        shell.run("client-config", "codex", "--toolset", "code", "--repo", "a project").stdout
    )
    request_line = b'{"jsonrpc":"2.0","id":1,"method":"check_status"}\n'

    served = subprocess.run(
        [entry["command"], *entry["args"], "--wire", "rpc"],
        cwd="/",
        env={"HOME": str(shell.folder), "MCP_READY_FILE": "/dev/null"},
        input=request_line,
        capture_output=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert entry["args"][-2:] == ["--repo", str(project)]
    result = json.loads(served.stdout)["result"]
    assert result["result"]["repository"]["repoPath"] == str(project)


def test_a_link_to_the_script_is_registered_as_it_is(shell: Shell) -> None:
    link = shell.folder / "cleats"
    link.symlink_to(Path(sys.executable).with_name("cleats"))

    process = subprocess.run(
        ["./cleats", "client-config", "cursor"],
        cwd=shell.folder,
        env=shell.environ,
        capture_output=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert CONFIG_READERS["cursor"](process.stdout.decode())["command"] == str(link)


def test_without_a_client_they_are_listed(shell: Shell) -> None:
    process = shell.run("client-config")
    as_json = shell.run("client-config", "--json")

    assert [line.split()[0] for line in process.stdout.splitlines()[1:]] == list(CLIENTS_BY_NAME)
    assert list(json.loads(as_json.stdout)) == list(CLIENTS_BY_NAME)


@pytest.mark.parametrize(
    ("platform", "place"),
    [("linux", ".config"), ("darwin", "Library"), ("win32", "AppData"), ("plan9", ".config")],
)
def test_the_list_has_the_file_of_this_system(platform: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "sys", SimpleNamespace(platform=platform))  # Python itself goes on where it is

    lines = CliRunner().invoke(client_config.client_config).stdout.splitlines()

    [desktop] = [line for line in lines if line.startswith("claude-desktop")]
    assert place in desktop


def test_an_unknown_client_is_told_the_known_ones(shell: Shell) -> None:
    process = shell.run("client-config", "emacs")

    assert (process.returncode, process.stdout) == (2, "")
    assert f"clients: {', '.join(CLIENTS_BY_NAME)}." in process.stderr
