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
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cleats.cli import client_config
from tests.support.shell import EXIT_TIMEOUT_SECONDS, LAW_SETTINGS, Shell

CONFIG_READERS: dict[str, Callable[[str], Any]] = {
    "claude-code": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "claude-desktop": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "cursor": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "codex": lambda text: tomllib.loads(text)["mcp_servers"]["cleats"],
    "vscode": lambda text: json.loads(text)["servers"]["cleats"],
    "gemini": lambda text: json.loads(text)["mcpServers"]["cleats"],
    "zed": lambda text: json.loads(text)["context_servers"]["cleats"],
}


@pytest.mark.parametrize("client", client_config.CLIENTS_BY_NAME)
def test_stdout_has_only_the_block_and_stderr_says_where_it_goes(shell: Shell, client: str) -> None:
    process = shell.run("client-config", client, "--toolset", "code")

    entry = CONFIG_READERS[client](process.stdout)
    assert process.returncode == 0
    assert entry["args"][-2:] == ["serve", "code"]
    assert entry.get("type", "stdio") == "stdio"
    assert next(iter(client_config.CLIENTS_BY_NAME[client].files.values())) in process.stderr


@LAW_SETTINGS
@given(command=st.text(min_size=1), toolsets=st.lists(st.text(), max_size=2))
@pytest.mark.parametrize("client", client_config.CLIENTS_BY_NAME)
def test_every_block_gives_back_the_command_it_was_made_of(client: str, command: str, toolsets: list[str]) -> None:
    launch = client_config.ServerCommand(command, ("serve", *toolsets))

    entry = CONFIG_READERS[client](client_config.CLIENTS_BY_NAME[client].render_block(launch))

    assert [entry["command"], *entry["args"]] == launch.argv


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
    entry = CONFIG_READERS["codex"](shell.run("client-config", "codex", "--repo", "a project").stdout)
    request_line = b'{"jsonrpc":"2.0","id":1,"method":"check_status"}\n'

    served = subprocess.run(
        [entry["command"], *entry["args"], "code", "--wire", "rpc"],
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

    assert [line.split()[0] for line in process.stdout.splitlines()[1:]] == list(client_config.CLIENTS_BY_NAME)
    assert list(json.loads(as_json.stdout)) == list(client_config.CLIENTS_BY_NAME)


@pytest.mark.parametrize(
    ("platform", "place"),
    [("linux", ".config"), ("darwin", "Library"), ("win32", "APPDATA"), ("plan9", ".config")],
)
def test_the_list_has_the_file_of_this_system(platform: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(platform=platform, argv=sys.argv, executable=sys.executable)
    monkeypatch.setattr(client_config, "sys", here)  # Python itself goes on where it is

    lines = CliRunner().invoke(client_config.client_config).stdout.splitlines()

    [desktop] = [line for line in lines if line.startswith("claude-desktop")]
    assert place in desktop


def test_an_unknown_client_is_told_the_known_ones(shell: Shell) -> None:
    process = shell.run("client-config", "emacs")

    assert (process.returncode, process.stdout) == (2, "")
    assert f"there are: {', '.join(client_config.CLIENTS_BY_NAME)}." in process.stderr
