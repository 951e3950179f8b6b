"""Tests of the path fence: by name, on the disk, and against changes while it works."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from tests.support.paths import TESTS_FOLDER
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

ALLOWED_PATHS = ["content/docs/note", "content/blog/", "data/menus.toml"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    for folder in ("content/docs/note", "content/docs/notebook", ".git"):
        (root / folder).mkdir(parents=True)
    (root / "content/docs/note/a.md").write_text("old")
    (root / ".git/config").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("secret")
    return root


def read_files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def catch_refusal(action: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        action()
    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    return str(caught.value.details["reason"])


def run_or_refuse(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except ToolError as error:
        if error.code is not ErrorCode.ALLOWED_PATHS_VIOLATION:
            raise
        return None


def test_inside_the_allowed_paths_files_are_written_read_and_deleted(site: Path) -> None:
    fence = WorktreeGuard(site, ALLOWED_PATHS)

    fence.write("content/docs/note/deep/er/b.md", b"new")
    fence.write("content/docs/note/a.md", b"changed")
    fence.write("data/menus.toml", b"menu")

    assert fence.read("content/docs/note/deep/er/b.md") == b"new"
    assert (site / "content/docs/note/a.md").read_bytes() == b"changed"
    assert fence.read("content/blog/none.md") is None
    fence.delete("content/docs/note/a.md")
    fence.delete("content/docs/note/a.md")
    assert fence.read("content/docs/note/a.md") is None
    assert [path.name for path in site.rglob("*part*")] == []


def test_a_file_keeps_its_mode(site: Path) -> None:
    page = site / "content/docs/note/a.md"
    page.chmod(0o600)

    WorktreeGuard(site, ALLOWED_PATHS).write("content/docs/note/a.md", b"new")

    assert page.stat().st_mode & 0o777 == 0o600


@requirement("e:allowed-paths:guard")
@pytest.mark.parametrize(
    "path",
    [
        "content/docs/notebook/a.md",  # a sibling that begins the same way
        "content/docs/note.md",
        "content/docs",
        "content/docs/note/../notebook/a.md",
        "../outside/secret.md",
        "content/docs/note/../../../../outside/secret.md",
        "/etc/passwd",
        "//server/share",
        "C:/windows",
        "content\\docs\\note\\a.md",
        "content/docs/note\\..\\..\\x",
        "content/docs/note/./a.md",
        "content/docs//note/a.md",
        "content/docs/note/a.md\0.txt",
        "content/docs/note/a\n.md",
        "content/docs/note/\u202egpj.md",
        "",
        ".",
        "./content/docs/note/a.md",
        "CONTENT/docs/note/a.md",
        "content/docs/NOTE/a.md",
        "content/docs/\uff4eote/a.md",
        "content/docs/note/.git/config",
        "content/docs/note/.GIT/config",
        "content/docs/note/.Git",
        "content/docs/note/.g\u200cit/config",
        "content/docs/note/git~1/config",
        "content/docs/note/.git./config",
        "content/docs/note/.git /config",
        "content/docs/note/a.md:stream",
        "content/docs/note/.git::$INDEX_ALLOCATION/config",
        "content/docs/note/" + "a" * 300,
        "data/menus.toml.bak",
        "data/menus",
        "~/x",
    ],
)
def test_a_path_that_is_not_plainly_inside_is_refused(site: Path, path: str) -> None:
    fence = WorktreeGuard(site, ALLOWED_PATHS)
    before = read_files(site.parent)

    for action in (
        lambda: fence.check_path(path),
        lambda: fence.read(path),
        lambda: fence.write(path, b"x"),
        lambda: fence.delete(path),
    ):
        catch_refusal(action)

    assert read_files(site.parent) == before


def test_nothing_is_allowed_when_nothing_is_named(site: Path) -> None:
    catch_refusal(lambda: WorktreeGuard(site, []).check_path("content/docs/note/a.md"))


@pytest.mark.parametrize("entry", ["", ".", "/", "..", "/content", "a/../..", "content/**/x", ".git"])
def test_an_allowed_path_must_itself_be_a_plain_path(site: Path, entry: str) -> None:
    catch_refusal(lambda: WorktreeGuard(site, [entry]))


def test_a_folder_may_be_allowed_in_three_spellings(site: Path) -> None:
    for entry in ("content/docs/note", "content/docs/note/", "content/docs/note/**"):
        assert WorktreeGuard(site, [entry]).check_path("content/docs/note/x/y.md") == "content/docs/note/x/y.md"
        catch_refusal(partial(WorktreeGuard(site, [entry]).check_path, "content/docs/notebook/y.md"))


@pytest.mark.parametrize("path", ["content/blog/secret.md", "content/docs/note/link/secret.md"])
def test_a_link_is_never_followed(site: Path, path: str) -> None:
    (site / "content/blog").symlink_to(site.parent / "outside")
    (site / "content/docs/note/link").symlink_to("../../../../outside")
    fence = WorktreeGuard(site, ALLOWED_PATHS)

    catch_refusal(lambda: fence.read(path))
    catch_refusal(lambda: fence.write(path, b"x"))
    catch_refusal(lambda: fence.write(path.replace("secret", "new"), b"x"))
    catch_refusal(lambda: fence.delete(path))

    assert read_files(site.parent / "outside") == {"secret.md": b"secret"}


def test_a_file_that_is_a_link_is_refused_and_its_target_untouched(site: Path) -> None:
    (site / "content/docs/note/l.md").symlink_to(site.parent / "outside/secret.md")
    (site / "content/docs/note/dangling.md").symlink_to(site.parent / "outside/none.md")
    fence = WorktreeGuard(site, ALLOWED_PATHS)

    for name in ("l.md", "dangling.md"):
        catch_refusal(partial(fence.read, f"content/docs/note/{name}"))
        catch_refusal(partial(fence.write, f"content/docs/note/{name}", b"x"))
        catch_refusal(partial(fence.delete, f"content/docs/note/{name}"))

    assert read_files(site.parent / "outside") == {"secret.md": b"secret"}


def test_a_hard_link_is_cut_not_written_through(site: Path) -> None:
    os.link(site.parent / "outside/secret.md", site / "content/docs/note/hard.md")

    WorktreeGuard(site, ALLOWED_PATHS).write("content/docs/note/hard.md", b"mine")

    assert (site.parent / "outside/secret.md").read_bytes() == b"secret"
    assert (site / "content/docs/note/hard.md").read_bytes() == b"mine"


def test_what_is_no_plain_file_is_refused(site: Path) -> None:
    os.mkfifo(site / "content/docs/note/pipe.md")
    fence = WorktreeGuard(site, ALLOWED_PATHS)

    catch_refusal(lambda: fence.read("content/docs/note/pipe.md"))
    catch_refusal(lambda: fence.write("content/docs/note/pipe.md", b"x"))
    catch_refusal(lambda: fence.read("content/docs/note"))
    catch_refusal(lambda: fence.write("content/docs/note/a.md/b.md", b"x"))


def test_a_name_that_differs_only_in_case_or_composition_is_refused(site: Path) -> None:
    (site / "content/docs/note/Über").mkdir()
    fence = WorktreeGuard(site, ALLOWED_PATHS)

    assert "case" in catch_refusal(lambda: fence.write("content/docs/note/A.md", b"x"))
    assert "case" in catch_refusal(lambda: fence.write("content/docs/note/u\u0308ber/x.md", b"x"))
    assert "case" in catch_refusal(lambda: fence.read("content/docs/note/A.MD"))


def test_a_worktree_that_is_a_link_or_missing_is_refused(site: Path) -> None:
    link = site.parent / "link"
    link.symlink_to(site)

    catch_refusal(lambda: WorktreeGuard(link, ALLOWED_PATHS))
    catch_refusal(lambda: WorktreeGuard(site.parent / "none", ALLOWED_PATHS))
    catch_refusal(lambda: WorktreeGuard(site / "content/docs/note/a.md", ALLOWED_PATHS))


def test_a_system_that_cannot_hold_the_fence_says_so(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())

    with pytest.raises(ToolError) as caught:
        WorktreeGuard(site, ALLOWED_PATHS)

    assert caught.value.code is ErrorCode.CAPABILITY_MISSING


@pytest.mark.parametrize("replacement", ["nothing", "copy", "link"])
def test_a_worktree_swapped_for_another_folder_is_refused(site: Path, replacement: str) -> None:
    fence = WorktreeGuard(site, ALLOWED_PATHS)
    moved = site.rename(site.parent / "moved")
    if replacement == "copy":
        (site / "content/docs/note").mkdir(parents=True)
    elif replacement == "link":
        site.symlink_to(moved)
    before = read_files(site.parent)

    for action in (
        lambda: fence.read("content/docs/note/a.md"),
        lambda: fence.write("content/docs/note/a.md", b"x"),
        lambda: fence.delete("content/docs/note/a.md"),
    ):
        assert "worktree" in catch_refusal(action)

    assert read_files(site.parent) == before


def test_a_worktree_removed_and_made_anew_is_another_one(site: Path) -> None:
    # The kernel likes to give the same inode again; the open folder keeps it from doing so.
    empty = site.parent / "empty"
    empty.mkdir()
    fence = WorktreeGuard(empty, ["docs"])
    empty.rmdir()
    empty.mkdir()

    catch_refusal(lambda: fence.write("docs/a.md", b"x"))

    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("call", ["open", "mkdir", "rename", "fsync", "stat", "listdir"])
@pytest.mark.parametrize("nth", range(8))
def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(
    site: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    outside = site.parent / "outside"
    (outside / "note").mkdir()
    docs = site / "content/docs"
    real: Callable[..., Any] = getattr(os, call)
    count = 0

    def swap_then_call(*args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth + 1 and not docs.is_symlink():
            docs.replace(site / "content/moved")
            docs.symlink_to(outside)
        return real(*args, **more)

    fence = WorktreeGuard(site, ALLOWED_PATHS)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, swap_then_call)
        run_or_refuse(lambda: fence.write("content/docs/note/new/x.md", b"x"))

    assert read_files(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize("call", ["open", "mkdir", "rename", "fsync", "stat", "listdir"])
@pytest.mark.parametrize("nth", range(8))
def test_a_folder_that_is_removed_at_any_moment_is_a_refusal_and_no_crash(
    site: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    real: Callable[..., Any] = getattr(os, call)
    count = 0

    def remove_then_call(*args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth + 1:
            shutil.rmtree(site / "content/docs")
        return real(*args, **more)

    fence = WorktreeGuard(site, ALLOWED_PATHS)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, remove_then_call)
        run_or_refuse(lambda: fence.write("content/docs/note/new/x.md", b"x"))

    assert list(site.rglob("*part*")) == []


def test_a_folder_carried_out_of_the_worktree_takes_no_new_file_along(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, taken_folder = site / "content/docs/note", site.parent / "outside/taken"
    real = os.fsync

    def carry_then_sync(file: int) -> None:
        if note.exists():
            note.rename(taken_folder)
        real(file)

    monkeypatch.setattr(os, "fsync", carry_then_sync)

    assert "swapped" in catch_refusal(lambda: WorktreeGuard(site, ALLOWED_PATHS).write("content/docs/note/x.md", b"x"))
    assert read_files(taken_folder) == {"a.md": b"old"}


def test_under_a_storm_of_swaps_nothing_lands_outside(site: Path) -> None:
    outside = site.parent / "outside"
    note, parked_folder = site / "content/docs/note", site / "content/docs/aside"
    link = site / "content/docs/link"
    link.symlink_to(outside)
    over = threading.Event()

    def swap_folders() -> None:
        while not over.is_set():
            shutil.rmtree(parked_folder, ignore_errors=True)  # of a round that the fence got between
            with suppress(OSError):
                note.rename(parked_folder)
                link.rename(note)
            with suppress(OSError):
                note.rename(link)
                parked_folder.rename(note)

    storm = threading.Thread(target=swap_folders)
    storm.start()
    fence = WorktreeGuard(site, ALLOWED_PATHS)
    try:
        for number in range(100):
            run_or_refuse(partial(fence.write, f"content/docs/note/n{number}.md", b"x"))
    finally:
        over.set()
        storm.join(10)

    assert read_files(outside) == {"secret.md": b"secret"}


PATH_NAMES = st.sampled_from(
    ["content", "docs", "note", "notebook", "..", ".", "", "a.md", ".git", "NOTE", "b", "\0", "\\"]
) | st.text(max_size=3)


@LAW_SETTINGS
@given(st.lists(PATH_NAMES, min_size=1, max_size=7), st.sampled_from(["", "/", "./", "../"]))
def test_what_passes_is_inside_for_any_path(names: list[str], lead: str) -> None:
    path = lead + "/".join(names)
    root = TESTS_FOLDER
    fence = WorktreeGuard(root, ["content/docs/note"])

    passed = run_or_refuse(lambda: fence.check_path(path))

    if passed is None:
        return
    inside = root / "content/docs/note"
    assert inside == root / passed or inside in Path(os.path.normpath(root / passed)).parents
    assert ".." not in passed.split("/")
    assert ".git" not in passed.lower().split("/")
