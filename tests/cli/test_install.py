"""`cleats install` writes a registration, keeps everything else, and takes it back."""

import json
import tomllib
from pathlib import Path

import pytest

from cleats.cli.clients import CLIENTS_BY_NAME, McpClient
from cleats.cli.install import BACKUP_SUFFIX, find_file
from tests.support.shell import Shell

JSON_CLIENTS = [name for name, client in CLIENTS_BY_NAME.items() if client.format == "json"]


def locate_file(shell: Shell, client: McpClient) -> Path:
    relative = next(iter(client.files["user"].values())).removeprefix("~/")
    return Path(shell.environ["HOME"]) / relative


@pytest.mark.parametrize("name", CLIENTS_BY_NAME)
def test_a_registration_is_written_shown_and_taken_back(shell: Shell, name: str) -> None:
    installed = shell.run("install", name, "--command", "cleats")
    again = shell.run("install", name, "--command", "cleats")
    path = Path(installed.stdout.splitlines()[0].removeprefix("--- "))
    text = path.read_text()
    removed = shell.run("install", name, "--uninstall")

    assert (installed.returncode, again.returncode, removed.returncode) == (0, 0, 0)
    assert "+++ " in installed.stdout
    assert "explore" in text
    assert "needs no change" in again.stdout
    assert "explore" not in path.read_text()


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_other_servers_and_settings_stay_and_the_first_version_is_kept(shell: Shell, name: str) -> None:
    client = CLIENTS_BY_NAME[name]
    path = locate_file(shell, client)
    path.parent.mkdir(parents=True, exist_ok=True)
    original = json.dumps({"theme": "dark", client.key: {"other": {"command": "x"}}})
    path.write_text(original)

    shell.run("install", name)
    document = json.loads(path.read_text())
    shell.run("install", name, "--uninstall")

    assert document["theme"] == "dark"
    assert document[client.key].keys() == {"other", "cleats"}
    assert path.with_name(path.name + BACKUP_SUFFIX).read_text() == original
    assert json.loads(path.read_text()) == json.loads(original)


def test_the_rest_of_a_toml_file_keeps_its_comments(shell: Shell) -> None:
    path = locate_file(shell, CLIENTS_BY_NAME["codex"])
    path.parent.mkdir(parents=True)
    original = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n'
    path.write_text(original)

    shell.run("install", "codex")
    written = path.read_text()
    shell.run("install", "codex", "--uninstall")

    assert written.startswith(original)
    assert tomllib.loads(written)["mcp_servers"].keys() == {"other", "cleats"}
    assert path.read_text() == original


def test_a_file_with_comments_is_left_alone_and_the_block_is_printed(shell: Shell) -> None:
    path = locate_file(shell, CLIENTS_BY_NAME["zed"])
    path.parent.mkdir(parents=True)
    path.write_text('// mine\n{"theme": "One"}\n')

    process = shell.run("install", "zed")

    assert process.returncode == 2
    assert '"context_servers"' in process.stderr
    assert path.read_text() == '// mine\n{"theme": "One"}\n'


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    process = shell.run("install", "cursor", "--dry-run", "--json")

    answer = json.loads(process.stdout)
    assert (answer["changed"], Path(answer["file"]).exists()) == (False, False)
    assert "explore" in answer["diff"]


def test_a_project_has_its_file_in_the_current_folder(shell: Shell) -> None:
    shell.run("install", "claude-code", "--scope", "project")

    assert json.loads((shell.folder / ".mcp.json").read_text())["mcpServers"].keys() == {"cleats"}


def test_a_client_without_project_files_says_so(shell: Shell) -> None:
    process = shell.run("install", "cline", "--scope", "project")

    assert process.returncode == 2
    assert "has no configuration file for one project" in process.stderr
    with pytest.raises(Exception, match="no configuration file"):
        find_file(CLIENTS_BY_NAME["cline"], "project")
