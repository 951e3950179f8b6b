"""The git state of a repository; reading it runs no program of the repository."""

import shutil
from pathlib import Path

import pytest

from cleats.toolsets.code.analysis.history.head import GitState, read_git_state
from tests.support.git_repositories import GitCheckout, configure_trap, is_trap_sprung, write_trap_program


@pytest.fixture
def checkout(tmp_path: Path) -> GitCheckout:
    return GitCheckout.create(tmp_path / "repo")


def test_a_folder_in_no_repository_has_no_state(tmp_path: Path) -> None:
    assert read_git_state(tmp_path) is None


def test_before_the_first_commit_there_is_a_branch_only(checkout: GitCheckout) -> None:
    assert read_git_state(checkout.root) == GitState("main", None)


def test_a_clean_checkout_has_a_branch_and_a_commit(checkout: GitCheckout) -> None:
    head = checkout.commit(a__py="1\n")

    assert read_git_state(checkout.root) == GitState("main", head)


def test_changed_tracked_files_make_it_dirty_and_new_ones_do_not(checkout: GitCheckout) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.write_file("new.py", "1\n")
    untracked = read_git_state(checkout.root)
    checkout.write_file("a.py", "2\n")
    changed = read_git_state(checkout.root)

    assert untracked == GitState("main", head)
    assert changed == GitState("main", head, dirty=True)


def test_a_checkout_of_a_commit_has_no_branch(checkout: GitCheckout) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.run_git("checkout", "--quiet", "--detach")

    assert read_git_state(checkout.root) == GitState(None, head)


def test_a_worktree_has_its_own_branch(checkout: GitCheckout, tmp_path: Path) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.run_git("worktree", "add", "--quiet", "-b", "side/work", str(tmp_path / "other"))

    assert read_git_state(tmp_path / "other") == GitState("side/work", head)


def test_a_folder_of_a_repository_knows_only_its_own_changes(checkout: GitCheckout) -> None:
    checkout.write_file("docs/a.md", "1\n")
    head = checkout.commit(a__py="1\n")

    checkout.write_file("a.py", "2\n")

    assert read_git_state(checkout.root / "docs") == GitState("main", head)


def test_a_bare_repository_has_a_branch_and_a_commit(checkout: GitCheckout, tmp_path: Path) -> None:
    empty = GitCheckout.create(tmp_path / "empty", "--bare")
    head = checkout.commit(a__py="1\n")
    checkout.run_git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))

    assert read_git_state(tmp_path / "bare") == GitState("main", head)
    assert read_git_state(empty.root) == GitState("main", None)


def test_a_broken_repository_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")

    git_state = read_git_state(tmp_path)

    assert git_state is not None
    assert not git_state.is_repo
    assert "not a git repository" in git_state.warning


def test_without_git_a_repository_is_a_warning_and_a_folder_nothing(
    checkout: GitCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert read_git_state(tmp_path) is None
    assert read_git_state(checkout.root) == GitState(is_repo=False, warning="git is not installed")


def test_a_git_that_lies_in_the_checkout_is_not_run(checkout: GitCheckout, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trap_program(checkout, "git")
    monkeypatch.setenv("PATH", str(checkout.root))

    git_state = read_git_state(checkout.root)

    assert git_state == GitState(is_repo=False, warning="git is not installed")
    assert not is_trap_sprung(checkout)


def test_a_repository_of_somebody_else_is_a_warning_that_says_how_to_allow_it(
    checkout: GitCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    real = shutil.which("git")
    shim.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("HOME", str(tmp_path))

    git_state = read_git_state(checkout.root)

    assert git_state is not None
    assert not git_state.is_repo
    assert "safe.directory" in git_state.warning


def test_a_server_that_runs_in_a_hook_asks_about_the_right_repository(
    checkout: GitCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = checkout.commit(a__py="1\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    assert read_git_state(checkout.root) == GitState("main", head)


def test_looking_does_not_touch_the_repository(checkout: GitCheckout) -> None:
    checkout.commit(a__py="1\n")
    checkout.write_file("a.py", "1\n")  # another time, the same text: git would like to note that
    index = checkout.root / ".git" / "index"
    before = index.stat().st_mtime_ns, index.read_bytes()

    read_git_state(checkout.root)

    assert (index.stat().st_mtime_ns, index.read_bytes()) == before
    assert not (checkout.root / ".git" / "index.lock").exists()


TRAP_SETTINGS = [
    "core.fsmonitor",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.e.v.il.clean",
]


@pytest.mark.parametrize("setting", TRAP_SETTINGS)
def test_no_program_that_a_repository_names_is_run(checkout: GitCheckout, setting: str) -> None:
    configure_trap(checkout, setting)

    git_state = read_git_state(checkout.root)

    assert git_state is not None
    assert git_state.dirty
    assert not is_trap_sprung(checkout)


def test_a_filter_that_cannot_be_switched_off_stops_us(checkout: GitCheckout) -> None:
    configure_trap(checkout, "filter.e=vil.clean")

    git_state = read_git_state(checkout.root)

    assert git_state is not None
    assert not git_state.is_repo
    assert "filter" in git_state.warning
    assert not is_trap_sprung(checkout)


def test_a_submodule_is_not_asked(checkout: GitCheckout, tmp_path: Path) -> None:
    inner = GitCheckout.create(tmp_path / "inner")
    inner.commit(a__py="1\n")
    command = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    checkout.run_git(*command, str(inner.root), "sub")
    head = checkout.commit()
    configure_trap(GitCheckout(checkout.root / "sub"), "filter.evil.clean")

    assert read_git_state(checkout.root) == GitState("main", head, dirty=True)
    assert not is_trap_sprung(checkout)
    assert not is_trap_sprung(GitCheckout(checkout.root / "sub"))
