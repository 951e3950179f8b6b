"""The maintenance commands as used by people and by scripts."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cleats.cli.tool_command import replace_argument_names
from tests.support.shell import Shell

CORE_SOURCE = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


@pytest.fixture
def project(shell: Shell) -> Path:
    """Return the repository that the commands run in, with an index."""
    folder = shell.folder / "work"
    (folder / "app").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, env=shell.environ, check=True)
    (folder / "app" / "core.py").write_text(CORE_SOURCE)
    shell.folder = folder
    return folder


@pytest.fixture
def home(project: Path) -> dict[str, str]:
    return {"CLEATS_CACHE_DIR": str(project.parent / "cache"), "HOME": str(project.parent)}


def test_show_prints_the_lines_alone_when_a_program_reads(shell: Shell, project: Path, home: dict[str, str]) -> None:
    lines = shell.run("show", "app/core.py:5-6", **home)
    with_context = json.loads(shell.run("show", "app/core.py:5", "-C", "1", "--json", **home).stdout)
    cut = shell.run("show", "app/core.py", "--max-bytes", "20", **home)

    assert (lines.stdout, lines.stderr) == ("def second():\n    return 2\n", "")
    assert (with_context["startLine"], with_context["endLine"]) == (4, 6)
    assert cut.stdout == "def first():\n"
    assert "cut after line 1" in cut.stderr


def test_show_numbers_the_lines_in_a_terminal(shell: Shell, project: Path, home: dict[str, str]) -> None:
    terminal, other = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "cleats", "show", "app/core.py:1-2"],
        cwd=project,
        env={**shell.environ, **home, "NO_COLOR": "1"},
        stdout=other,
        check=True,
    )
    os.close(other)
    output = b""
    with suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(terminal, 10_000):
            output += piece
    os.close(terminal)

    assert output.decode().splitlines() == [
        "app/core.py:1-2 of 6 lines",
        "1  def first():",
        "2      return 1",
    ]


def test_show_takes_paths_from_here_and_from_the_root(shell: Shell, project: Path, home: dict[str, str]) -> None:
    shell.folder = project / "app"

    here, root = shell.run("show", "core.py:1", **home), shell.run("show", "app/core.py:1", **home)

    assert here.stdout == root.stdout == "def first():\n"


def test_show_says_what_is_wrong_and_how_to_go_on(shell: Shell, project: Path, home: dict[str, str]) -> None:
    late = shell.run("show", "app/core.py:99", **home)
    gone = shell.run("show", "nothing.py", **home)
    outside = shell.run("show", "/etc/hostname", **home)
    backwards = shell.run("show", "app/core.py:9-3", **home)
    zero = shell.run("show", "app/core.py:0", **home)
    (project / "short.txt").write_text("all of it\n")
    short = shell.run("show", "short.txt:2", **home)

    assert (late.returncode, gone.returncode, outside.returncode) == (2, 1, 1)
    assert "It has only 6 lines." in late.stderr
    assert "It has only 1 line." in short.stderr
    assert (zero.returncode, "Error: Lines are counted from 1.\n" in zero.stderr) == (2, True)
    assert gone.stderr.startswith("Error: The file ")
    assert "is outside the repository" in outside.stderr
    assert "set --repo to use another repository" in outside.stderr
    assert backwards.stderr.startswith("Error: END 3 comes before LINE 9.\n")


def test_an_index_is_reported_packed_and_removed(shell: Shell, project: Path, home: dict[str, str]) -> None:
    bare = shell.run("artifacts", **home)
    steps = shell.run("bootstrap", "--with-sqlite", **home)
    report = shell.run("artifacts", **home)
    built = shell.run("sqlite", "build", "--incremental", **home)
    packed = shell.run("sqlite", "compact", "--dry-run", **home)
    collected = shell.run("cache", "gc", **home)
    tried = shell.run("cache", "clean", "--dry-run", **home)
    cleaned = shell.run("cache", "clean", **home)

    assert bare.returncode == 1
    assert "The repository has no index." in bare.stdout
    assert "`cleats index`" in bare.stdout
    assert "Packages are never installed" in steps.stdout
    assert report.returncode == 0
    assert str(project) in report.stdout
    assert "already exists" in built.stdout
    assert "already compact" in packed.stdout
    assert collected.stdout == "0 B freed.\n"
    assert tried.stdout.endswith("would be freed.\n")
    assert cleaned.stdout.endswith("freed.\n")
    assert cleaned.stdout.replace("freed", "would be freed") == tried.stdout
    assert json.loads(shell.run("artifacts", "--json", **home).stdout)["allRepos"] == []


def test_the_configuration_shows_what_differs_and_all_on_demand(
    shell: Shell, project: Path, home: dict[str, str]
) -> None:
    token = {**home, "CLEATS_HTTP_TOKEN": "hunter2", "CLEATS_QUEUE": "7", "OTHER": "hunter2"}

    short, full = shell.run("config", **token), shell.run("config", "--all", **token)
    as_json = json.loads(shell.run("config", "--json", **token).stdout)

    assert short.returncode == 1  # there is no index
    assert "queue" in short.stdout
    assert "index_max_lines" not in short.stdout
    assert "index_max_lines" in full.stdout
    assert "hunter2" not in short.stdout + full.stdout + json.dumps(as_json)
    assert "environ" not in as_json["config"]["settings"]
    assert as_json["config"]["settings"]["log_level"] == "info"


def test_a_workspace_shows_what_can_be_searched_together(shell: Shell, project: Path, home: dict[str, str]) -> None:
    (project.parent / "all.jsonc").write_text(
        '{"schemaVersion": 1, "repos": [{"root": "work", "alias": "app"}, // here\n]}'
    )
    bare = shell.run("workspace", "../all.jsonc", **home)
    shell.run("index", "--quiet", **home)

    ready = shell.run("workspace", "../all.jsonc", **home)
    wrong = shell.run("workspace", "app/core.py", **home)
    search_result = shell.run("search", "second", "--workspace", "../all.jsonc", "--compact", **home)

    assert (bare.returncode, ready.returncode, wrong.returncode) == (1, 0, 2)
    assert "no index" in bare.stdout
    assert "2 chunks" in ready.stdout
    assert search_result.stdout.startswith("app:app/core.py:5: function second")


def test_what_is_said_of_an_argument_is_said_of_its_flag_and_of_nothing_else() -> None:
    flags = {"repoPath": "--repo", "meta": "--meta"}

    assert replace_argument_names("repoPath: not there", flags) == "--repo: not there"
    assert replace_argument_names("meta: the meta of it", flags) == "--meta: the meta of it"
    assert replace_argument_names("Leave repoPath out.", flags) == "Leave --repo out."
    assert replace_argument_names("No file '/src/repoPath/a' or 'repoPath'", flags) == (
        "No file '/src/repoPath/a' or 'repoPath'"
    )


def test_all_and_a_path_do_not_go_together(shell: Shell, project: Path, home: dict[str, str]) -> None:
    result = shell.run("cache", "clean", "--all", ".", **home)

    assert result.returncode == 2
    assert "every repository" in result.stderr
