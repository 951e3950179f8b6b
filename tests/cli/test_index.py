"""`cleats index` as used by people and by scripts."""

import json
import os
import pty
import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell

CORE_SOURCE = "def first():\n    return 1\n"


@pytest.fixture
def project(shell: Shell) -> Path:
    """Return the repository that the command runs in."""
    subprocess.run(["git", "init", "-q"], cwd=shell.folder, env=shell.environ, check=True)
    (shell.folder / ".gitignore").write_text("/.cache/\n/.local/\n/out/\n")
    (shell.folder / "core.py").write_text(CORE_SOURCE)
    (shell.folder / "README.md").write_text("# Title\n\nSome words.\n")
    (shell.folder / "data.py").write_bytes(b"\0" * 50)
    return shell.folder


def test_the_first_index_says_what_it_has_and_what_it_left_out(shell: Shell, project: Path) -> None:
    result = shell.run("index")

    assert result.returncode == 0
    first, *rest = result.stdout.splitlines()
    assert first.startswith("~ indexed in ")
    assert first.endswith("3 files (3 new), 3 chunks.")
    assert rest == [
        "  files     1 ignore, 1 markdown, 1 python",
        "  chunks    2 code, 1 prose",
        "  left out  1 binary",
    ]
    assert result.stderr == ""


def test_an_index_is_updated_by_default_and_built_anew_on_demand(shell: Shell, project: Path) -> None:
    shell.run("index", "--quiet")

    second = shell.run("index")
    (project / "more.py").write_text("x = 1\n")
    update = json.loads(shell.run("index", ".", "--json").stdout)
    full = json.loads(shell.run("index", "--full", "--json", "--mode", "code").stdout)

    assert second.stdout == "~ is up to date: 3 files, 3 chunks.\n"
    assert (update["files"]["added"], update["files"]["unchanged"]) == (1, 3)
    assert (full["files"]["added"], full["files"]["unchanged"]) == (4, 0)
    assert full["repoPath"] == str(project)


def test_quiet_says_nothing_but_what_went_wrong(shell: Shell, project: Path) -> None:
    fine, wrong = shell.run("index", "--quiet"), shell.run("index", "nowhere", "--quiet")

    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("Error: Repo path not found: nowhere\n")


def test_the_repository_may_be_named_as_for_a_search(
    shell: Shell, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    there = str(project)
    shell.folder = tmp_path_factory.mktemp("elsewhere")

    built = shell.run("index", "--repo", there, "--quiet")
    status = shell.run("index", "status", "--repo", there, "--json")
    twice = shell.run("index", there, "--repo", there)

    assert (built.returncode, status.returncode, twice.returncode) == (0, 0, 2)
    assert json.loads(status.stdout)["repoPath"] == there
    assert "PATH and --repo are the same" in twice.stderr


def test_a_file_is_told_apart_from_what_is_not_there(shell: Shell, project: Path) -> None:
    (project / "one.py").write_text("x = 1\n")

    wrong = shell.run("index", "one.py")

    assert wrong.returncode == 2
    assert wrong.stderr == f"Error: one.py is a file.\nGive its folder: {project}.\n"


def test_a_folder_with_nothing_to_index_is_told_as_such(shell: Shell) -> None:
    (shell.folder / "bare").mkdir()
    (shell.folder / "secret").mkdir()
    (shell.folder / "secret" / ".env").write_text("TOKEN=secret\n")

    bare, secret = shell.run("index", "bare"), shell.run("index", "secret")

    assert (bare.returncode, secret.returncode) == (0, 0)
    assert bare.stdout == "Nothing to index in ~/bare.\n"
    assert secret.stdout == "Nothing to index in ~/secret.\n  left out  1 secret\n"


def test_a_slip_in_a_command_of_index_is_no_folder(shell: Shell, project: Path) -> None:
    slip = shell.run("index", "statsu")
    (project / "statsu").mkdir()
    folder = shell.run("index", "statsu")

    assert slip.returncode == 2
    assert "The folder 'statsu' does not exist. Did you mean 'cleats index status'?" in slip.stderr
    assert folder.returncode == 0


def test_a_file_that_was_understood_in_part_is_named(shell: Shell, project: Path) -> None:
    (project / "broken.py").write_text("def f(:\n" * 3)

    result = shell.run("index")

    assert "Parsed only in part: 1 file:\n  broken.py: " in result.stdout


def test_status_tells_whether_there_is_an_index_and_whether_it_is_fresh(shell: Shell, project: Path) -> None:
    none = shell.run("index", "status")
    shell.run("index", "--quiet")
    fresh = shell.run("index", "status")
    (project / "core.py").write_text(CORE_SOURCE * 2)
    stale = shell.run("index", "status")
    as_json = json.loads(shell.run("index", "status", "--json").stdout)
    skipped = shell.run("index", "status", "--skipped")

    assert (none.returncode, fresh.returncode, stale.returncode) == (1, 0, 1)
    assert none.stdout == f"{project} has no index. Run `cleats index` to build one.\n"
    assert "\n  state     up to date\n" in fresh.stdout
    assert "\n  left out  " in fresh.stdout
    words = " ".join(stale.stdout.split())
    assert "state stale: 1 changed; run `cleats index` to update it" in words
    assert as_json["freshness"]["changed"] == 1
    assert skipped.stdout.splitlines()[1].split() == ["binary", "data.py"]


def test_a_bare_repository_has_no_files_to_index(shell: Shell) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", "here.git"], cwd=shell.folder, check=True)

    result = shell.run("index", "here.git")

    assert result.returncode == 2
    assert "here.git is a bare git repository, which has no files." in result.stderr
    assert "a clone or a worktree" in result.stderr


def test_an_index_of_a_folder_above_is_mentioned(shell: Shell, project: Path) -> None:
    (project / "inner" / ".git").mkdir(parents=True)
    shell.run("index", "--quiet")

    result = shell.run("search", "x", "--repo", "inner")

    assert result.returncode == 2
    assert f"{project / 'inner'} has no index, but {project} has one.\n" in result.stderr


def test_status_says_why_git_was_not_read(
    shell: Shell, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git = tmp_path_factory.mktemp("bin") / "git"
    real = shutil.which("git")
    git.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    git.chmod(0o755)
    shell.run("index", "--quiet")

    fine = shell.run("index", "status")
    refused = shell.run("index", "status", PATH=f"{git.parent}:{shell.environ['PATH']}")

    assert fine.stderr == ""
    assert refused.stderr.startswith("Note: git does not read this repository, because it belongs")


def test_an_index_can_be_exported_and_begun_from(shell: Shell, project: Path) -> None:
    shell.run("index", "--quiet")

    out = shell.run("index", "export", "out")
    second = shell.run("index", "export", "out")
    restored = shell.run("index", "--from", "out", "--json", CLEATS_CACHE_DIR=str(project / ".cache/x"))

    assert out.returncode == 0
    assert second.returncode == 1
    assert "it is not empty" in second.stderr
    assert json.loads(restored.stdout)["restoredArtifacts"]
    assert json.loads(restored.stdout)["files"]["unchanged"] == 3


def test_export_without_an_index_says_how_to_make_one(shell: Shell, project: Path) -> None:
    result = shell.run("index", "export", "out")

    assert result.returncode == 1
    assert "has no index" in result.stderr
    assert "cleats index" in result.stderr


@pytest.mark.parametrize("limit", [512, 40_000])
def test_a_disk_that_takes_no_more_leaves_the_last_index(shell: Shell, project: Path, limit: int) -> None:
    shell.run("index", "--quiet")
    (project / "more.py").write_text(CORE_SOURCE)

    failed = subprocess.run(
        [sys.executable, "-m", "cleats", "index"],
        cwd=project,
        # Half of a compiled module would stay, for everybody who imports it.
        env={**shell.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)),
    )
    status = json.loads(shell.run("index", "status", "--json").stdout)

    assert failed.returncode == 1
    assert "cannot be written: " in failed.stderr
    assert "An earlier index, if there is one, is still used." in failed.stderr
    assert "CLEATS_CACHE_DIR" in failed.stderr
    assert status["index"]["files"] == 3
    assert shell.run("index").returncode == 0


def test_two_builders_take_turns(shell: Shell, project: Path) -> None:
    both = [shell.start_process("index", "--json", module="cleats") for _ in range(2)]

    printed = [json.loads(process.communicate(timeout=EXIT_TIMEOUT_SECONDS)[0]) for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert sorted(result["published"] for result in printed) == [False, True]
    assert len({result["generation"] for result in printed}) == 1


def test_help_teaches_what_can_be_done_at_once(shell: Shell) -> None:
    help_text = shell.run("index", "--help").stdout

    assert "cleats index [OPTIONS] [PATH]" in help_text
    for word in ("--mode", "--full", "--json", "status", "export", ".cleatsignore", "Exits 0"):
        assert word in help_text


def test_a_terminal_sees_progress_and_a_pipe_does_not(shell: Shell, project: Path) -> None:
    terminal, child_terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cleats", "index"],
        cwd=project,
        env=shell.environ,
        stdout=subprocess.PIPE,
        stderr=child_terminal,
    )
    os.close(child_terminal)
    output = b""
    try:
        while piece := os.read(terminal, 4096):
            output += piece
    except OSError:  # how Linux says that the terminal has been hung up
        pass
    finally:
        os.close(terminal)
        printed, _ = process.communicate(timeout=EXIT_TIMEOUT_SECONDS)

    assert b"looking for files" in output
    assert b"[####################] 100% 4 of 4 files" in output
    assert b"3 files (3 new)" in printed
    assert b"\r" not in printed
