"""Where a repository stands, and that asking runs nothing of it."""

import shutil
from pathlib import Path

import pytest

from cleats.toolsets.code.history.state import GitState, state
from tests.git_world import Checkout, set_trap, sprung, trap


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.new(tmp_path / "repo")


def test_a_folder_in_no_repository_has_no_state(tmp_path: Path) -> None:
    assert state(tmp_path) is None


def test_before_the_first_commit_there_is_a_branch_only(checkout: Checkout) -> None:
    assert state(checkout.root) == GitState("main", None)


def test_a_clean_checkout_has_a_branch_and_a_commit(checkout: Checkout) -> None:
    head = checkout.commit(a__py="1\n")

    assert state(checkout.root) == GitState("main", head)


def test_changed_tracked_files_make_it_dirty_and_new_ones_do_not(checkout: Checkout) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.write("new.py", "1\n")
    untracked = state(checkout.root)
    checkout.write("a.py", "2\n")
    changed = state(checkout.root)

    assert untracked == GitState("main", head)
    assert changed == GitState("main", head, dirty=True)


def test_a_checkout_of_a_commit_has_no_branch(checkout: Checkout) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.git("checkout", "--quiet", "--detach")

    assert state(checkout.root) == GitState(None, head)


def test_a_worktree_has_its_own_branch(checkout: Checkout, tmp_path: Path) -> None:
    head = checkout.commit(a__py="1\n")

    checkout.git("worktree", "add", "--quiet", "-b", "side/work", str(tmp_path / "other"))

    assert state(tmp_path / "other") == GitState("side/work", head)


def test_a_folder_of_a_repository_knows_only_its_own_changes(checkout: Checkout) -> None:
    checkout.write("docs/a.md", "1\n")
    head = checkout.commit(a__py="1\n")

    checkout.write("a.py", "2\n")

    assert state(checkout.root / "docs") == GitState("main", head)


def test_a_bare_repository_has_a_branch_and_a_commit(checkout: Checkout, tmp_path: Path) -> None:
    empty = Checkout.new(tmp_path / "empty", "--bare")
    head = checkout.commit(a__py="1\n")
    checkout.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))

    assert state(tmp_path / "bare") == GitState("main", head)
    assert state(empty.root) == GitState("main", None)


def test_a_broken_repository_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")

    found = state(tmp_path)

    assert found is not None
    assert not found.is_repo
    assert "not a git repository" in found.warning


def test_without_git_a_repository_is_a_warning_and_a_folder_nothing(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert state(tmp_path) is None
    assert state(checkout.root) == GitState(is_repo=False, warning="git is not installed")


def test_a_git_that_lies_in_the_checkout_is_not_run(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap(checkout, "git")
    monkeypatch.setenv("PATH", str(checkout.root))

    found = state(checkout.root)

    assert found == GitState(is_repo=False, warning="git is not installed")
    assert not sprung(checkout)


def test_a_repository_of_somebody_else_is_a_warning_that_says_how_to_allow_it(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    real = shutil.which("git")
    shim.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("HOME", str(tmp_path))

    found = state(checkout.root)

    assert found is not None
    assert not found.is_repo
    assert "safe.directory" in found.warning


def test_a_server_that_runs_in_a_hook_asks_about_the_right_repository(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = checkout.commit(a__py="1\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    assert state(checkout.root) == GitState("main", head)


def test_looking_does_not_touch_the_repository(checkout: Checkout) -> None:
    checkout.commit(a__py="1\n")
    checkout.write("a.py", "1\n")  # another time, the same text: git would like to note that
    index = checkout.root / ".git" / "index"
    before = index.stat().st_mtime_ns, index.read_bytes()

    state(checkout.root)

    assert (index.stat().st_mtime_ns, index.read_bytes()) == before
    assert not (checkout.root / ".git" / "index.lock").exists()


TRAPS = [
    "core.fsmonitor",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.e.v.il.clean",
]


@pytest.mark.parametrize("setting", TRAPS)
def test_no_program_that_a_repository_names_is_run(checkout: Checkout, setting: str) -> None:
    set_trap(checkout, setting)

    found = state(checkout.root)

    assert found is not None
    assert found.dirty
    assert not sprung(checkout)


def test_a_filter_that_cannot_be_switched_off_stops_us(checkout: Checkout) -> None:
    set_trap(checkout, "filter.e=vil.clean")

    found = state(checkout.root)

    assert found is not None
    assert not found.is_repo
    assert "filter" in found.warning
    assert not sprung(checkout)


def test_a_submodule_is_not_asked(checkout: Checkout, tmp_path: Path) -> None:
    inner = Checkout.new(tmp_path / "inner")
    inner.commit(a__py="1\n")
    command = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    checkout.git(*command, str(inner.root), "sub")
    head = checkout.commit()
    set_trap(Checkout(checkout.root / "sub"), "filter.evil.clean")

    assert state(checkout.root) == GitState("main", head, dirty=True)
    assert not sprung(checkout)
    assert not sprung(Checkout(checkout.root / "sub"))
