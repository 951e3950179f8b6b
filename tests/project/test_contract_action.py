"""Tests of the GitHub Action and the pre-commit hook: their commands are run as their hosts run them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import REPOSITORY_ROOT, TESTS_FOLDER

STOCK_SERVER_PATH = TESTS_FOLDER / "fixtures" / "stock_server.py"
COMMAND_TIMEOUT_SECONDS = 150
"""Far more than a command takes, which starts Python and a server: other tests may keep the machine busy."""
SERVER_TIMEOUT_SECONDS = 120
pytestmark = pytest.mark.timeout(4 * COMMAND_TIMEOUT_SECONDS)
SCHEMA = {"type": "object", "properties": {"a": {}}}
TOOL = {"name": "add", "description": "Add.", "inputSchema": SCHEMA}


def run_script(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-ec", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def committed_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository with a server, its configuration and a committed lock file."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tools.json").write_text(json.dumps([TOOL]))
    command = f"'{sys.executable}' '{STOCK_SERVER_PATH}' tools.json"
    server = {"command": command, "lock": "lock.json", "timeout": SERVER_TIMEOUT_SECONDS}
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in server.items())
    (folder / "cleats-contract.toml").write_text(f"[servers.stock]\n{settings}\n")
    author = "-c user.name=A -c user.email=a@example.org"
    script = f"cleats contract check --update && git init -q && git add -A && git {author} commit -qm One"
    assert run_script(script, folder).returncode == 0
    return folder


@pytest.fixture
def project(committed_project: Path, tmp_path: Path) -> Path:
    """Copy the repository, so that a test can change it."""
    return Path(shutil.copytree(committed_project, tmp_path / "project"))


def break_server(project: Path) -> None:
    (project / "tools.json").write_text(json.dumps([{**TOOL, "inputSchema": {**SCHEMA, "required": ["a"]}}]))


def load_yaml(name: str) -> Any:
    return yaml.safe_load((REPOSITORY_ROOT / name).read_text())


@pytest.mark.parametrize("ref", ["", "HEAD"])
def test_the_action_annotates_a_break_and_fails(project: Path, ref: str) -> None:
    script = load_yaml("action.yml")["runs"]["steps"][1]["run"]
    variables = {"CONFIG": "cleats-contract.toml", "AGAINST_REF": ref}

    same = run_script(script, project, **variables)
    break_server(project)
    broken = run_script(script, project, **variables)

    assert (same.returncode, same.stdout) == (0, "")
    assert broken.returncode == 1
    assert "::error file=lock.json,line=" in broken.stdout
    assert "INPUT_REQUIRED_ADDED add" in broken.stdout


def test_the_action_compares_with_the_lock_file_of_the_base(project: Path) -> None:
    script = load_yaml("action.yml")["runs"]["steps"][1]["run"]
    break_server(project)
    run_script("cleats contract check --update", project)

    agreed = run_script(script, project, CONFIG="cleats-contract.toml", AGAINST_REF="")
    against_base = run_script(script, project, CONFIG="cleats-contract.toml", AGAINST_REF="HEAD")

    assert (agreed.returncode, against_base.returncode) == (0, 1)


def test_the_hook_refuses_a_break(project: Path) -> None:
    [hook] = load_yaml(".pre-commit-hooks.yaml")

    same = run_script(hook["entry"], project)
    break_server(project)
    broken = run_script(hook["entry"], project)

    assert (same.returncode, broken.returncode) == (0, 1)
    assert "the server differs from lock.json" in broken.stderr
